"""Where flows report to: the server that PREFECT_API_URL names, or a private one that Margrave starts once and keeps.

    api = local_api(tell=tell)      # found running, or started
    enter(api)                      # before Prefect is imported
    with in_use(api):               # however long it takes, the server stays
        release(...)

The private server listens on loopback alone, asks for credentials that only its folder holds, and ends itself when
nobody has needed it for half an hour. Prefect's implicit server is never used.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from flows.orchestration.home import LOCK, STATE, Running, forget, lives, locked, read_running, server_home, touch
from flows.orchestration.life import END, PAUSE, START, answers, end, start
from flows.orchestration.settings import Api, enter, environment
from flows.terminal import UserError

__all__ = [
    "Api",
    "Early",
    "enter",
    "environment",
    "in_use",
    "local_api",
    "running_server",
    "start_early",
    "stop_server",
]

IDLE = 30 * 60.0
ANSWER, HEARTBEAT = 20.0, 60.0
"""Seconds until a running server must answer, and between two signs that one is in use."""
Tell = Callable[[str], None]


def local_api(home: Path | None = None, *, tell: Tell, idle: float = IDLE) -> Api:
    """The API that flows report to. A private server is started if none runs and PREFECT_API_URL names none.

    `tell` hears what is waited for; a started server ends after `idle` seconds in which nobody needed it.
    """
    folder = server_home(home)
    if named := os.environ.get("PREFECT_API_URL"):
        return Api(named, None, started=False, home=folder)
    with _sole(folder):
        touch(folder)
        found = _usable(folder)
        running = found or start(folder, idle, tell=tell)
    return Api(running.url, running.auth, started=found is None, home=folder)


def running_server(home: Path | None = None) -> Running | None:
    """The private server, if one runs and answers."""
    running = read_running(server_home(home))
    return running if running is not None and answers(running) else None


def stop_server(home: Path | None = None) -> bool:
    """Ends the private server; False if none ran."""
    folder = server_home(home)
    with _sole(folder):
        running = read_running(folder)
        if running is not None:
            end(running)
        forget(folder)
    return running is not None


class Early:
    """A server that is being looked for or started while other work goes on."""

    def __init__(self, home: Path | None, idle: float) -> None:
        self._found: Api | None = None
        self._fault: Exception | None = None
        self._thread = threading.Thread(target=self._look, args=(home, idle), daemon=True)
        self._thread.start()

    def _look(self, home: Path | None, idle: float) -> None:
        try:
            self._found = local_api(home, tell=_nobody, idle=idle)
        except Exception as fault:  # noqa: BLE001 - raised again where somebody waits for it
            self._fault = fault

    def wait(self, tell: Tell) -> Api:
        """The API, as soon as it is there; `tell` hears what is waited for. Raises what went wrong."""
        if self._thread.is_alive():
            tell("Waiting for the local Prefect server; its first start makes a database and takes up to a minute")
        self._thread.join()
        if self._found is None:
            raise self._fault or RuntimeError("the search for the server ended without an answer")
        return self._found


def start_early(home: Path | None = None, *, idle: float = IDLE) -> Early:
    """Looks for the server, or starts it, in the background; wait on what is returned."""
    return Early(home, idle)


@contextmanager
def in_use(api: Api) -> Iterator[None]:
    """While it lasts, the private server does not take silence for idleness: a long step asks nothing of it."""
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(HEARTBEAT):
            touch(api.home)

    touch(api.home)
    threading.Thread(target=beat, daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        touch(api.home)


def _nobody(text: str) -> None:
    """Somebody else tells what is waited for."""


@contextmanager
def _sole(folder: Path) -> Iterator[None]:
    """One command at a time looks for, starts or stops the server."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / LOCK, START + 2 * END))
        except TimeoutError:
            raise UserError(
                f"a command has been starting or stopping the server in {folder} for minutes: let it end, or end it"
            ) from None
        except OSError as fault:
            raise UserError(
                f"{folder / LOCK} cannot be opened: {fault.strerror}; the server's folder is unfit"
            ) from None
        yield


def _usable(folder: Path) -> Running | None:
    """The server that runs, if it is of our version and answers; one that is not so is ended."""
    running = read_running(folder)
    if running is None:
        forget(folder)
        return None
    if running.version == version("prefect"):
        age = time.time() - (folder / STATE).stat().st_mtime
        until = time.monotonic() + max(ANSWER, START - age)  # it may still be starting for a command that was ended
        while lives(running) and time.monotonic() < until:
            if answers(running):
                return running
            time.sleep(PAUSE)
    end(running)
    forget(folder)
    return None
