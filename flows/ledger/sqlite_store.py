"""A ledger in one SQLite file: write-ahead log, full synchronisation, on a local disk."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from flows.ledger.chain import Entry, entry_of
from flows.ledger.errors import FOUND_ONE, LedgerError, NoLedger, Refused
from flows.ledger.sqlite_layouts import steps
from flows.ledger.store import LAYOUT, require_known

PATIENCE = 60.0
"""Seconds to wait for another writer."""
TRIES, PAUSE = 100, 0.05
NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "ceph", "glusterfs", "lustre")
"""File systems on which locks do not hold."""
MADE = "SELECT type, name, sql FROM sqlite_master"


class SqliteStore:
    """The tables of a ledger in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._file = (0, 0)

    @property
    def place(self) -> str:
        """The file."""
        return str(self.path)

    def exists(self) -> bool:
        """Whether the file is there."""
        with _plainly(self.place):
            return self.path.exists()

    def create(self, *, layout: int = LAYOUT) -> None:
        """Makes the file, for its owner's eyes only; goes on where an earlier call was interrupted."""
        if self.exists() and not self._is_unused():
            raise Refused(f"there is a file {self.path} already; a ledger is founded once")
        with _plainly(self.place):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _require_local(self.path.parent)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self.path.chmod(0o600)
            with closing(_connect(self.path, is_new=True)) as connection:
                if _layout(connection) == 0:
                    connection.executescript(";\n".join(["BEGIN IMMEDIATE", *steps(0, layout), "COMMIT;"]))
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _is_unused(self) -> bool:
        """Whether the file is empty, or a ledger without an entry: what an interrupted founding leaves."""
        with _plainly(self.place):
            if not self.path.is_file() or self.path.stat().st_size == 0:
                return self.path.is_file()
        try:
            return next(iter(self.entries_after(0)), None) is None
        except LedgerError:
            return False

    def layout(self) -> int:
        """The layout of the file."""
        with _plainly(self.place):
            return _layout(self._connected())

    def advice(self) -> list[str]:
        """A file belongs to its owner; there is no more to know."""
        return []

    @contextmanager
    def migrating(self) -> Iterator[_Writing]:
        """Writing, in a file that is brought to the newest layout."""
        with self.writing() as writing:
            with _plainly(self.place):
                for statement in steps(self.layout(), LAYOUT):
                    self._connected().execute(statement)
            yield writing

    @contextmanager
    def writing(self) -> Iterator[_Writing]:
        """Excludes other writers until the end."""
        with _plainly(self.place):
            connection = self._connected()
            connection.execute("BEGIN IMMEDIATE")
        try:
            yield _Writing(connection, self.place)
            with _plainly(self.place):
                connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                with suppress(sqlite3.Error):  # a disk that refused the entry may refuse this too
                    self.close()  # ends the transaction without it, whatever state an error left it in

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """The entries after a number."""
        with _plainly(self.place):
            rows = self._connected().execute(
                "SELECT seq, before, text, hash FROM entries WHERE seq > ? ORDER BY seq", (seq,)
            )
            for row in rows:
                yield entry_of(row)

    def confided(self, name: str) -> bytes | None:
        """A confidential value."""
        with _plainly(self.place):
            row = self._connected().execute("SELECT value FROM confidential WHERE name = ?", (name,)).fetchone()
        return bytes(row[0]) if row is not None else None

    def confided_names(self) -> list[str]:
        """The names of all confidential values."""
        with _plainly(self.place):
            rows = self._connected().execute("SELECT name FROM confidential ORDER BY name").fetchall()
        return [str(row[0]) for row in rows]

    def faults(self) -> list[str]:
        """What SQLite's own check of the file finds, and tables and triggers that are not as they were made."""
        with _plainly(self.place), closing(sqlite3.connect(":memory:")) as fresh:
            connection = self._connected()
            told = [str(row[0]) for row in connection.execute("PRAGMA integrity_check").fetchall()]
            fresh.executescript(";\n".join(steps(0, _layout(connection))))
            wanted, found = set(fresh.execute(MADE).fetchall()), set(connection.execute(MADE).fetchall())
        return [f"the file is damaged: {one}" for one in told if one != "ok"] + [
            f"the {kind} {name} was removed, added or changed"
            for kind, name in sorted({(str(kind), str(name)) for kind, name, _ in wanted ^ found})
        ]

    def close(self) -> None:
        """Closes the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> sqlite3.Connection:
        if not self.exists():
            raise NoLedger(f"there is no ledger at {self.place}; {FOUND_ONE}")
        if self.path.is_dir():
            raise NoLedger(f"{self.path} is no ledger but a folder; name the ledger's file in it")
        status = self.path.stat()
        if self._connection is None:
            _require_local(self.path.parent)
            self._connection, self._file = _connect(self.path), (status.st_dev, status.st_ino)
        elif self._file != (status.st_dev, status.st_ino):
            self.close()
            raise LedgerError(f"the ledger {self.place} was exchanged for another file while it was in use; run again")
        return self._connection


class _Writing:
    def __init__(self, connection: sqlite3.Connection, place: str) -> None:
        self._connection, self._place = connection, place

    def append(self, entry: Entry) -> None:
        """Adds the next entry."""
        with _plainly(self._place):
            self._connection.execute(
                "INSERT INTO entries VALUES(?, ?, ?, ?)", (entry.seq, entry.before, entry.text, entry.hash)
            )

    def confide(self, name: str, value: bytes) -> None:
        """Keeps a confidential value."""
        with _plainly(self._place):
            self._connection.execute("INSERT INTO confidential VALUES(?, ?)", (name, value))


def _layout(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _layout_in(connection: sqlite3.Connection) -> int:
    """The layout of a file; that of what is no database at all is less than any."""
    try:
        return _layout(connection)
    except sqlite3.DatabaseError as fault:
        if fault.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
            raise
    return -1


def _connect(path: Path, *, is_new: bool = False) -> sqlite3.Connection:
    """A connection to a ledger's file. Another program's file is left as it is."""
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        _require_known(path, _layout_in(connection), is_new=is_new)
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def _require_known(path: Path, layout: int, *, is_new: bool) -> None:
    if layout < 0 or (layout == 0 and not is_new):
        raise NoLedger(f"{path} is no ledger; name the ledger's file, or found one elsewhere")
    require_known(str(path), layout)


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    for turn in range(TRIES):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as fault:  # switching to the write-ahead log does not wait for other writers
            if "locked" not in str(fault) or turn == TRIES - 1:
                raise
            time.sleep(PAUSE)


@contextmanager
def _plainly(place: str) -> Iterator[None]:
    """Says in our words what SQLite or the disk could not do."""
    try:
        yield
    except OSError as fault:
        reason = fault.strerror
    except (sqlite3.Error, ValueError, OverflowError, MemoryError) as fault:
        reason = str(fault) or type(fault).__name__
    else:
        return
    raise LedgerError(f"the ledger {place} cannot be used: {reason}. Nothing was written by this step.")


def _require_local(folder: Path) -> None:
    """Refuses a network file system, where two writers would not see each other's locks."""
    kind = _file_system(folder.resolve())
    if kind in NETWORK:
        raise Refused(
            f"{folder} is on a network file system ({kind}), where locks do not hold; "
            "keep the ledger on a local disk, or in PostgreSQL"
        )


def _file_system(folder: Path) -> str:
    """The kind of file system that holds a folder; empty where the system does not tell."""
    mounts = Path("/proc/self/mounts")
    if not mounts.exists():
        return ""
    found = [line.split() for line in mounts.read_text(errors="replace").splitlines()]
    inside = [(len(line[1]), line[2]) for line in found if folder.is_relative_to(line[1].replace("\\040", " "))]
    return max(inside, default=(0, ""))[1]
