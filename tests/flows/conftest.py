"""One Prefect server for all tests of flows, whichever worker runs them: the product's own lock sees to that."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import pytest

from flows.orchestration.home import DATABASE, locked
from flows.server import Api, enter, in_use, local_api, stop_server
from flows.terminal import tell

Furnish = Callable[[Path], None]


@pytest.fixture(scope="session")
def server_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this test session share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def furnish(pytestconfig: pytest.Config) -> Furnish:
    """Puts a database that is already made into a server's folder, if an earlier session left one to copy."""
    template = _template(pytestconfig)

    def put(home: Path) -> None:
        place = home / DATABASE
        if template.exists() and not place.exists():
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            home.chmod(0o700)
            fresh = place.with_suffix(f".{os.getpid()}")
            shutil.copy(template, fresh)
            fresh.chmod(0o600)
            fresh.replace(place)

    return put


@pytest.fixture(scope="session")
def prefect_api(server_base: Path, furnish: Furnish, pytestconfig: pytest.Config) -> Iterator[Api]:
    """The API of the one real server that the tests of flows share; the last worker to leave stops it."""
    home, users, turn = (server_base / f"prefect-server{name}" for name in ("", "-users", "-turn"))
    users.mkdir(exist_ok=True)
    mine = users / str(os.getpid())
    with locked(turn, 300), pytest.MonkeyPatch.context() as patch:
        mine.touch()
        patch.delenv("PREFECT_API_URL", raising=False)
        furnish(home)
        api = local_api(home, tell=tell, idle=300)
        if api.started:
            _keep(home / DATABASE, _template(pytestconfig))
    try:
        with in_use(api):
            yield api
    finally:
        with locked(turn, 300):
            mine.unlink()
            if not any(users.iterdir()):
                stop_server(home)


@pytest.fixture(scope="session")
def flow_environment(prefect_api: Api) -> dict[str, str]:
    """The environment of another process in which a flow runs on the shared server."""
    environ = dict(os.environ)
    enter(prefect_api, environ)
    return environ


def _template(config: pytest.Config) -> Path:
    folder = config.cache.mkdir(f"prefect-{version('prefect')}")
    return folder / "prefect.db"


def _keep(database: Path, template: Path) -> None:
    """Keeps a copy of a database as the server made it, for later sessions with the same Prefect."""
    if template.exists():
        return
    fresh = template.with_suffix(f".{os.getpid()}")
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(fresh)) as copy:
        source.backup(copy)
    fresh.replace(template)
