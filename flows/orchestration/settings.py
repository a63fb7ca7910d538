"""What must stand in a process's environment before Prefect is first imported in it.

Settings alone do not keep text out of Prefect (`flows.guard` does); they close what has a switch: telemetry, persisted
results, caches, retries, console output, loggers of other libraries, and the implicit server that nobody started.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path

from flows.orchestration.home import DATABASE, PREFECT

QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_TELEMETRY_ENABLE_RESOURCE_METRICS": "false",
    "PREFECT_DEBUG_MODE": "false",
    "PREFECT_LOGGING_EXTRA_LOGGERS": "",
    "PREFECT_LOGGING_LOG_PRINTS": "false",
}
"""For the server and for flows: nothing is sent anywhere, and no other library's words are passed on."""

FLOW = {
    "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",
    "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
    "PREFECT_LOGGING_LEVEL": "INFO",
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",
    "PREFECT_TASKS_DEFAULT_PERSIST_RESULT": "false",
    "PREFECT_TASKS_DEFAULT_NO_CACHE": "true",
    "PREFECT_TASKS_DISABLE_CACHING": "true",
    "PREFECT_TASKS_DEFAULT_RETRIES": "0",
    "PREFECT_FLOWS_DEFAULT_RETRIES": "0",
}
"""For flows: never Prefect's implicit server, a clean terminal, and nothing kept, cached or repeated."""

LOOPBACK = ("127.0.0.1", "localhost")


@dataclass(frozen=True, slots=True)
class Api:
    """The Prefect API that flows report to. `started` tells whether this call started the server behind it.

    `auth` is None where PREFECT_API_URL names the server: how to be let in is then the environment's own affair.
    """

    url: str
    auth: str | None = field(repr=False)
    started: bool
    home: Path
    """The private folder; whatever Prefect keeps beside the server lands in it."""


def environment(api: Api) -> dict[str, str]:
    """Everything a flow's process must have in its environment before Prefect is imported."""
    kept = {
        "PREFECT_API_URL": api.url,
        "PREFECT_RESULTS_LOCAL_STORAGE_PATH": str(api.home / PREFECT / "storage"),
        "PREFECT_LOGGING_CONFIG_PATH": str(api.home / PREFECT / "logging.yml"),
    }
    if api.auth is None:
        return QUIET | FLOW | kept
    own = {
        "PREFECT_API_AUTH_STRING": api.auth,
        "PREFECT_HOME": str(api.home / PREFECT),
        "PREFECT_PROFILES_PATH": str(api.home / PREFECT / "profiles.toml"),
        "PREFECT_PROFILE": "local",
    }
    return QUIET | FLOW | kept | own | _straight(os.environ)


def _straight(environ: Mapping[str, str]) -> dict[str, str]:
    """Loopback is reached without a proxy: it would be told the credentials."""
    before = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    names = dict.fromkeys([*filter(None, before.split(",")), *LOOPBACK])
    return dict.fromkeys(("NO_PROXY", "no_proxy"), ",".join(names))


def enter(api: Api, environ: MutableMapping[str, str] | None = None) -> None:
    """Makes an environment, without more said this process's own, fit for flows.

    Of Prefect's settings that stand there already none outlives a private server. Too late once Prefect is imported.
    """
    if environ is None:
        if "prefect" in sys.modules:
            raise RuntimeError("the settings come too late: Prefect is already imported in this process")
        environ = os.environ
    if api.auth is not None:
        drop_settings(environ)
    environ.update(environment(api))


def drop_settings(environ: MutableMapping[str, str]) -> None:
    """Removes every setting of Prefect."""
    for name in [name for name in environ if name.startswith("PREFECT_")]:
        del environ[name]


def server_settings(home: Path, auth: str) -> dict[str, str]:
    """The settings of the private server itself, which runs with `home` as its working folder."""
    return QUIET | {
        "PREFECT_HOME": str(home / PREFECT),
        "PREFECT_PROFILES_PATH": str(home / PREFECT / "profiles.toml"),
        "PREFECT_PROFILE": "local",
        "PREFECT_SERVER_API_AUTH_STRING": auth,
        "PREFECT_API_AUTH_STRING": auth,
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{DATABASE}",
        "PREFECT_SERVER_UI_ENABLED": "false",
        "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
        "PREFECT_LOGGING_LEVEL": "WARNING",
        "PREFECT_LOGGING_TO_API_ENABLED": "false",
        "PREFECT_LOGGING_COLORS": "false",
    }
