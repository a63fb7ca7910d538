"""The life of the private server: it is started, asked whether it answers, and ended."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from flows.orchestration import served
from flows.orchestration.home import DATABASE, LOG, Running, forget, lives, read_running
from flows.orchestration.settings import drop_settings
from flows.terminal import UserError

START, END = 120.0, 15.0
"""Seconds until a started server must answer, and until one that was asked to end must be gone."""
PAUSE = 0.2
LOG_LIMIT = 1 << 20


def start(folder: Path, idle: float, *, tell: Callable[[str], None]) -> Running:
    """A new server, as soon as it answers; raises `UserError` if it does not in time."""
    first = not (folder / DATABASE).exists()
    tell("Starting the local Prefect server" + (", which makes its database the first time" if first else "") + " ...")
    child = _spawn(folder, idle)
    until = time.monotonic() + START
    while child.poll() is None and time.monotonic() < until:
        running = read_running(folder)
        if running is not None and running.pid == child.pid and answers(running):
            threading.Thread(target=child.wait, daemon=True).start()  # so that it leaves nothing behind when it ends
            return running
        time.sleep(PAUSE)
    raise _unstarted(folder, child)


def _unstarted(folder: Path, child: subprocess.Popen[bytes]) -> UserError:
    """Why there is no server; what was begun is ended."""
    ended = child.poll()
    if ended is None:
        child.kill()
        child.wait(END)
        forget(folder)
        return UserError(f"the local Prefect server did not answer within {START:.0f} seconds; see {folder / LOG}")
    if ended == served.OCCUPIED:
        return UserError(
            f"a server that nobody knows of still runs in {folder}. It ends itself when nobody asks for it: "
            "wait or end it, or set MARGRAVE_SERVER_HOME to another folder"
        )
    return UserError(f"the local Prefect server ended as it started (exit code {ended}); see {folder / LOG}")


def _spawn(folder: Path, idle: float) -> subprocess.Popen[bytes]:
    environ = dict(os.environ)
    drop_settings(environ)
    rooms = str(Path(__file__).resolve().parents[2])
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, (rooms, environ.get("PYTHONPATH"))))
    log = folder / LOG
    if log.exists() and log.stat().st_size > LOG_LIMIT:
        log.replace(log.with_suffix(".old"))
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        return subprocess.Popen(  # noqa: S603 - our own module, with our own interpreter
            [sys.executable, "-P", "-m", served.__name__, str(folder), str(idle)],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=handle,
            stderr=handle,
            start_new_session=True,
        )
    finally:
        os.close(handle)


def answers(running: Running) -> bool:
    """Whether the server lets us in and is of the version that it says; no proxy is asked."""
    token = base64.b64encode(running.auth.encode()).decode()
    asked = http.client.HTTPConnection("127.0.0.1", running.port, timeout=5)
    try:
        asked.request("GET", "/api/admin/version", headers={"Authorization": f"Basic {token}"})
        answer = asked.getresponse()
        return answer.status == http.HTTPStatus.OK and bool(json.loads(answer.read()) == running.version)
    except (OSError, http.client.HTTPException, ValueError):
        return False
    finally:
        asked.close()


def end(running: Running) -> None:
    """Asks the process to end, and makes it end. Held by its descriptor, so that no later process is hit."""
    try:
        door = os.pidfd_open(running.pid)
    except OSError:
        return
    try:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not lives(running):
                return
            signal.pidfd_send_signal(door, number)
            until = time.monotonic() + END
            while lives(running) and time.monotonic() < until:
                time.sleep(PAUSE)
    except ProcessLookupError:
        return
    finally:
        os.close(door)
