"""The verb of the local server: start, status and stop. `run` starts one by itself; this is for who wants to see it."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from flows.terminal import OK, UserError, say, tell
from flows.verbs import Verbs, add_verb

NOT_RUNNING = 1
MINUTES = 30.0


def add_server_verbs(verbs: Verbs) -> None:
    """Adds the verb of the local server with its help and an example."""
    server = add_verb(
        verbs,
        "server",
        _server,
        help="start, look at or stop the private local server",
        description="Flows report to a Prefect server. Where PREFECT_API_URL names none, 'margrave run' starts a\n"
        "private one: on this machine's loopback alone, with credentials and a database in a folder that only you\n"
        "may enter. It stays for later runs and ends itself when nobody needs it. 'status' exits with 1 if none runs.",
        example="margrave server start\n          margrave server status --json\n          margrave server stop",
    )
    server.add_argument("do", metavar="start|status|stop", choices=tuple(_DEEDS), help="what to do")
    server.add_argument("--home", metavar="DIR", type=Path, help="the server's folder (or MARGRAVE_SERVER_HOME)")
    server.add_argument(
        "--idle", metavar="MINUTES", type=_minutes, default=MINUTES, help="with start: ends after so long unused (30)"
    )
    server.add_argument("--json", action="store_true", help="print one JSON object")


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes <= 60 * 24 * 7:
        raise argparse.ArgumentTypeError(f"'{text}' is no time to wait; write minutes, at most a week: 90")
    return minutes


def _server(chosen: argparse.Namespace) -> int:
    return _DEEDS[chosen.do](chosen)


def _start(chosen: argparse.Namespace) -> int:
    from flows.server import local_api

    if named := os.environ.get("PREFECT_API_URL"):
        raise UserError(f"PREFECT_API_URL names a server, {named}: runs use it and none is started. Unset it first")
    api = local_api(chosen.home, tell=tell, idle=60 * chosen.idle)
    _answer(chosen, "started" if api.started else "running", f"The local Prefect server runs at {api.url}.")
    return OK


def _status(chosen: argparse.Namespace) -> int:
    from flows.server import running_server

    if running_server(chosen.home) is None:
        _answer(chosen, "stopped", "No local Prefect server runs.")
        return NOT_RUNNING
    _answer(chosen, "running", "A local Prefect server runs.")
    return OK


def _stop(chosen: argparse.Namespace) -> int:
    from flows.server import stop_server

    found = stop_server(chosen.home)
    _answer(chosen, "stopped", "The local Prefect server is stopped." if found else "No local Prefect server ran.")
    return OK


_DEEDS = {"start": _start, "status": _status, "stop": _stop}


def _answer(chosen: argparse.Namespace, state: str, sentence: str) -> None:
    """What a person or a script is told; never the credentials."""
    from flows.orchestration.home import read_running, server_home

    home = server_home(chosen.home)
    running = read_running(home)
    if chosen.json:
        process = {} if running is None else {"url": running.url, "pid": running.pid, "prefect": running.version}
        say(json.dumps({"server": state, "home": str(home)} | process))
    else:
        say(f"{sentence} Its folder: {home}")
