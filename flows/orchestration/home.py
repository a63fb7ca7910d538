"""The server's private folder: who may enter, who may start a server, and which one runs.

lock          held while a server is looked for, started or stopped: two commands never start two
alive         held by the server for as long as it lives: two servers never share a database
server.json   which server runs: its own word, written once and whole
last_used     its time says when a command last needed the server
server.log    what the server says
prefect/      Prefect's own home, with the database
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from flows.terminal import UserError

LOCK, ALIVE, STATE, LAST_USED, LOG, PREFECT = "lock", "alive", "server.json", "last_used", "server.log", "prefect"
DATABASE = f"{PREFECT}/prefect.db"
PAUSE = 0.1


@dataclass(frozen=True, slots=True)
class Running:
    """A server as it describes itself: where it is, which process it is, and how to be let in."""

    pid: int
    began: int
    """Clock ticks from the machine's start to the process's start: tells a process from a later one of the same id."""
    port: int
    version: str
    auth: str = field(repr=False)

    @property
    def url(self) -> str:
        """The address of its API."""
        return f"http://127.0.0.1:{self.port}/api"


def server_home(home: Path | None = None) -> Path:
    """The server's folder, made if need be; refused where others could look in. MARGRAVE_SERVER_HOME names another."""
    folder = (home or _usual_home()).absolute()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as fault:
        raise UserError(f"{folder} cannot be the server's folder: {fault.strerror}. {_ANOTHER}") from None
    if not stat.S_ISDIR(found.st_mode):
        raise UserError(f"{folder} is not a folder of its own; the server's folder must be one. {_ANOTHER}")
    if found.st_uid != os.geteuid():
        raise UserError(f"{folder} belongs to somebody else; the server's folder must be yours. {_ANOTHER}")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise UserError(
            f"{folder} has mode {stat.S_IMODE(found.st_mode):04o}; nobody but you may enter the server's folder. "
            f"Close it (chmod 700). {_ANOTHER}"
        )
    return folder


_ANOTHER = "MARGRAVE_SERVER_HOME names another folder"


def _usual_home() -> Path:
    if named := os.environ.get("MARGRAVE_SERVER_HOME"):
        return Path(named)
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return base / "margrave" / "server"


@contextmanager
def locked(path: Path, seconds: float) -> Iterator[None]:
    """Holds the lock of a file. Raises `TimeoutError` when another still has it after `seconds`."""
    lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    until = time.monotonic() + seconds
    try:
        while not _taken(lock):
            if time.monotonic() > until:
                raise TimeoutError
            time.sleep(PAUSE)
        yield
    finally:
        os.close(lock)


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write_running(home: Path, running: Running) -> None:
    """Says which server runs, in one piece and for nobody else to read."""
    handle, name = tempfile.mkstemp(prefix=f"{STATE}.", dir=home)  # mode 0600
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(asdict(running), file)
        file.flush()
        os.fsync(file.fileno())
    Path(name).replace(home / STATE)


def read_running(home: Path) -> Running | None:
    """The server that is said to run, if its process still lives; what cannot be read says nothing."""
    try:
        said = json.loads((home / STATE).read_text(encoding="utf-8"))
        running = Running(**said)
    except (OSError, ValueError, TypeError):
        return None
    return running if lives(running) else None


def lives(running: Running) -> bool:
    """Whether the process that was started as this server still runs; a later process of the same id is another."""
    return began(running.pid) == running.began


def began(pid: int) -> int | None:
    """When a process began, in clock ticks since the machine started; None if it is no more."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    condition, *rest = text.rpartition(")")[2].split()
    return None if condition in "ZX" else int(rest[18])


def forget(home: Path) -> None:
    """Removes what is said about a server that is no more."""
    (home / STATE).unlink(missing_ok=True)


def touch(home: Path) -> None:
    """The server is needed now. A folder that is gone needs none."""
    with contextlib.suppress(OSError):
        (home / LAST_USED).touch(mode=0o600)


def last_touched(home: Path) -> float:
    """When the server was last needed, in seconds since 1970; 0 if never."""
    try:
        return (home / LAST_USED).stat().st_mtime
    except OSError:
        return 0.0
