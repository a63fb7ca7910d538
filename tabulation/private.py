"""A private folder for what spills to disk: nobody else may look in, and it is gone when the work ends.

It is removed on success, on failure and on the signals that ask a process to end. What a killed process leaves behind
is removed by the next one: every folder holds a lock for as long as its process lives.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

PREFIX = "margrave-private-"
LOCK = "lock"
YOUNG = 2.0
"""Seconds in which a folder may be made and not yet locked."""
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
DEFAULT = (signal.SIG_DFL, signal.default_int_handler)
_asked: list[BaseException] = []
"""What we were asked to end with. An engine may swallow the exception and stop with an error of its own."""


def asked_to_end() -> BaseException | None:
    """The exception that a signal called for since it was last asked, if any; asked once."""
    found = _asked[-1] if _asked else None
    _asked.clear()
    return found


def ask_to_end(stop: BaseException) -> None:
    """Notes that the process is to end, for when an engine swallows the exception."""
    _asked.append(type(stop)(*stop.args))


@contextmanager
def private_folder(within: Path | None = None) -> Iterator[Path]:
    """A folder that only this user may enter, inside `within` or the system's temporary folder."""
    base = within if within is not None else Path(tempfile.gettempdir())
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    _sweep(base)
    with _ending_as_exception():
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
        lock = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _sweep(base: Path) -> None:
    """Removes folders of processes that are no more: those whose lock nobody holds."""
    for left in base.glob(f"{PREFIX}*"):
        try:
            if time.time() - left.stat().st_mtime < YOUNG:
                continue
            lock = os.open(left / LOCK, os.O_RDWR)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
        except OSError:
            continue
        finally:
            os.close(lock)


@contextmanager
def _ending_as_exception() -> Iterator[None]:
    """Turns signals that end a process into an exception, so that folders are removed on the way out."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    for number, handler in before.items():
        if handler in DEFAULT:
            signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
    stop = KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
    ask_to_end(stop)
    raise stop
