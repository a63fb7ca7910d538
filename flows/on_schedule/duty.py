"""What is remembered of a deployment between two firings, in the private folder of its ledger.

since          when it was first served: what fell due long before is nobody's
CLAIM.lock     held by whoever works on an edition, so that two firings never work on one at once
CLAIM.outcome  how the last firing for an edition ended, where it did not end well

Budget and editions are the ledger's affair; losing this folder costs a repeated message at most.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from flows.orchestration.home import locked
from flows.terminal import UserError
from flows.workplace import Workplace

SERVING, ALIVE = "serving", "alive"
FAILED, HELD, MISSED, CRASHED = "failed", "held", "missed", "crashed"
MOST_CRASHES = 3
"""How often an edition whose process was lost is begun again by itself."""


@dataclass(frozen=True, slots=True)
class Duty:
    """The folder of one deployment."""

    folder: Path

    @classmethod
    def of(cls, place: Workplace, name: str) -> Duty:
        """The folder of a deployment beside a ledger, made where it is not there."""
        return cls(_made(place.private, SERVING, name))

    def since(self, now: datetime) -> datetime:
        """When the deployment was first served: now, where nobody noted it yet."""
        path = self.folder / "since"
        with contextlib.suppress(OSError, ValueError):
            return datetime.fromisoformat(path.read_text(encoding="utf-8")).astimezone(UTC)
        _write(path, now.astimezone(UTC).isoformat())
        return now

    def outcome(self, claim: str) -> tuple[str, int]:
        """How the last firing for an edition ended, and how often in a row; nothing, where it ended well."""
        try:
            word, _, times = (self.folder / f"{claim}.outcome").read_text(encoding="utf-8").partition(" ")
            return word, int(times)
        except (OSError, ValueError):
            return "", 0

    def note(self, claim: str, word: str) -> None:
        """Remembers how a firing ended."""
        before, times = self.outcome(claim)
        _write(self.folder / f"{claim}.outcome", f"{word} {times + 1 if word == before else 1}")

    def forget(self, claim: str) -> None:
        """A firing ended well."""
        (self.folder / f"{claim}.outcome").unlink(missing_ok=True)

    @contextmanager
    def taken(self, claim: str, seconds: float) -> Iterator[None]:
        """Works on an edition alone. Raises `TimeoutError` while another does after so many seconds."""
        with locked(self.folder / f"{claim}.lock", seconds):
            yield

    def is_taken(self, claim: str) -> bool:
        """Whether somebody works on an edition now."""
        try:
            with self.taken(claim, 0):
                return False
        except TimeoutError:
            return True


@contextmanager
def living(private: Path, flow_run: str) -> Iterator[None]:
    """While it lasts, the process of a flow run is known to live: it holds a lock that ends with it."""
    path = _made(private, SERVING, ALIVE) / flow_run
    aside = path.with_name(f".{flow_run}")
    handle = os.open(aside, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        aside.replace(path)  # under its name it is locked, always
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def lost(private: Path) -> list[str]:
    """The flow runs whose processes ended without a word."""
    folder = _made(private, SERVING, ALIVE)
    return [path.name for path in sorted(folder.iterdir()) if not path.name.startswith(".") and _is_free(path)]


def forget_lost(private: Path, flow_run: str) -> None:
    """A lost flow run was taken care of."""
    (_made(private, SERVING, ALIVE) / flow_run).unlink(missing_ok=True)


def _is_free(path: Path) -> bool:
    try:
        with locked(path, 0):
            return True
    except TimeoutError:
        return False


def _made(private: Path, *parts: str) -> Path:
    folder = private
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for part in parts:
            folder /= part
            folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as fault:
        raise UserError(f"the private folder {folder} cannot be made: {fault.strerror}") from None
    return folder


def _write(path: Path, text: str) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    aside.replace(path)
