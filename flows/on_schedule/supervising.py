"""`margrave serve`: keeps a server and a runner going until it is told to end. Prefect itself is not imported here.

A private server has another address and other credentials after each start, and Prefect reads its settings once per
process. So the process that serves is a child, made for one server: when the server is gone a new one is started, and
a new child for it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path

from flows.deployments.load import load_deployments
from flows.on_schedule.claims import persons_of, place_of
from flows.orchestration.home import locked, read_running, server_home
from flows.orchestration.settings import Api
from flows.server import enter, in_use, local_api
from flows.terminal import OK, UserError, tell

RUNNER = "flows.on_schedule.runner"
WATCH, PAUSE, STOP = 1.0, 5.0, 60.0
"""Seconds between two looks at server and child, before a child is started again, and until a child must have ended."""
SHORT, MOST_SHORT = 30.0, 5
"""A child that lived for less has failed to start; after so many in a row nobody tries again."""


def serve(file: Path) -> int:
    """Serves the deployments of a file until SIGTERM or Ctrl-C."""
    deployments = load_deployments(file)
    for one in deployments:
        persons_of(one, place_of(one).open_ledger().books())
    with _sole(file), _told_to_end() as ended:
        _keep_serving(file.resolve(), ended)
    tell(f"Stopped serving {file}. Dates stay in place; what falls due meanwhile is looked at on the next start.")
    return OK


def _keep_serving(file: Path, ended: threading.Event) -> None:
    afresh, short = True, 0
    while not ended.is_set():
        api = local_api(tell=tell)
        began = time.monotonic()
        with in_use(api):
            _one_child(file, api, ended, afresh=afresh)
        short = short + 1 if time.monotonic() - began < SHORT else 0
        if short == MOST_SHORT and not ended.is_set():
            raise UserError(f"{file} could not be served {MOST_SHORT} times in a row; mend what is said above")
        afresh = False
        if not ended.is_set():
            tell("The server or its runner is gone: both are looked for, or started, anew.")
            ended.wait(PAUSE)


def _one_child(file: Path, api: Api, ended: threading.Event, *, afresh: bool) -> None:
    """Serves with one child, until it, the server or we come to an end."""
    child = _spawn(file, api, afresh=afresh)
    try:
        while child.poll() is None and not ended.wait(WATCH):
            if not _is_there(api):
                child.kill()  # it could reach nobody; what it started goes on by itself
    finally:
        _end(child)


def _is_there(api: Api) -> bool:
    """Whether the private server is still the one that the child was made for; of others the child will know."""
    if api.auth is None:
        return True
    running = read_running(api.home)
    return running is not None and (running.url, running.auth) == (api.url, api.auth)


def _spawn(file: Path, api: Api, *, afresh: bool) -> subprocess.Popen[bytes]:
    environ = dict(os.environ)
    enter(api, environ)
    rooms = str(Path(__file__).resolve().parents[2])
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, (rooms, environ.get("PYTHONPATH"))))
    environ["PYTHONSAFEPATH"] = "1"  # a folder 'flows' where we happen to stand is not ours
    return subprocess.Popen(  # noqa: S603 - our own module, with our own interpreter
        [sys.executable, "-m", RUNNER, str(file), *(["afresh"] if afresh else [])],
        env=environ,
        stdin=subprocess.PIPE,  # its end tells the child that we are gone
        start_new_session=True,  # Ctrl-C is for us
    )


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
    try:
        child.wait(STOP)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    if child.stdin is not None:
        child.stdin.close()


@contextmanager
def _told_to_end() -> Iterator[threading.Event]:
    """An event that SIGTERM and Ctrl-C set."""
    ended = threading.Event()
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield ended
    finally:
        for number, action in before.items():
            signal.signal(number, action)


@contextmanager
def _sole(file: Path) -> Iterator[None]:
    """One process serves a file."""
    name = sha256(str(file.resolve()).encode()).hexdigest()[:16]
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(server_home() / f"serve-{name}.lock", 0))
        except TimeoutError:
            raise UserError(f"{file} is being served by another process; end that one first") from None
        yield
