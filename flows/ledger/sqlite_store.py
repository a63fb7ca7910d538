"""A ledger in one SQLite file: write-ahead log, full synchronisation, on a local disk."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from flows.ledger.chain import Entry
from flows.ledger.errors import LedgerError, NoLedger, Refused
from flows.ledger.store import SCHEMA_VERSION

PATIENCE = 60.0
"""Seconds to wait for another writer."""
TRIES, PAUSE = 100, 0.05
NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "ceph", "glusterfs", "lustre")
"""File systems on which locks do not hold."""
TABLES = f"""
BEGIN IMMEDIATE;
CREATE TABLE entries(seq INTEGER PRIMARY KEY, before TEXT NOT NULL, text TEXT NOT NULL, hash TEXT NOT NULL UNIQUE);
CREATE TABLE confidential(name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;
CREATE TRIGGER entries_last BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never removed'); END;
CREATE TRIGGER secrets_stay BEFORE UPDATE ON confidential BEGIN SELECT RAISE(ABORT, 'values are never changed'); END;
CREATE TRIGGER secrets_last BEFORE DELETE ON confidential BEGIN SELECT RAISE(ABORT, 'values are never removed'); END;
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""


class SqliteStore:
    """The tables of a ledger in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None

    @property
    def place(self) -> str:
        """The file."""
        return str(self.path)

    def exists(self) -> bool:
        """Whether the file is there."""
        return self.path.exists()

    def create(self) -> None:
        """Makes the file, for its owner's eyes only."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _require_local(self.path.parent)
        try:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            raise Refused(f"there is a file {self.path} already; a ledger is founded once") from None
        with _plainly(self.place):
            self._connected().executescript(TABLES)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

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
                    connection.execute("ROLLBACK")

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """The entries after a number."""
        with _plainly(self.place):
            rows = self._connected().execute(
                "SELECT seq, before, text, hash FROM entries WHERE seq > ? ORDER BY seq", (seq,)
            )
            for row in rows:
                yield Entry(int(row[0]), str(row[1]), str(row[2]), str(row[3]))

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
        """What SQLite's own check of the file finds, and missing triggers."""
        with _plainly(self.place):
            connection = self._connected()
            told = [str(row[0]) for row in connection.execute("PRAGMA integrity_check").fetchall()]
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        wanted = {"entries_stay", "entries_last", "secrets_stay", "secrets_last"}
        missing = sorted(wanted - {str(row[0]) for row in rows})
        return [f"the file is damaged: {one}" for one in told if one != "ok"] + [
            f"the trigger {one} was removed" for one in missing
        ]

    def close(self) -> None:
        """Closes the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            if not self.exists():
                raise NoLedger(f"there is no ledger at {self.place}; found one with: margrave ledger init")
            _require_local(self.path.parent)
            self._connection = _connect(self.path)
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


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    for turn in range(TRIES):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as fault:  # switching to the write-ahead log does not wait for other writers
            if "locked" not in str(fault) or turn == TRIES - 1:
                connection.close()
                raise
            time.sleep(PAUSE)
    connection.execute("PRAGMA synchronous = FULL")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        connection.close()
        raise LedgerError(f"{path} was written by a newer version of Margrave (layout {version}); use that version")
    return connection


@contextmanager
def _plainly(place: str) -> Iterator[None]:
    """Says in our words what SQLite could not do."""
    try:
        yield
    except sqlite3.DatabaseError as fault:
        raise LedgerError(f"the ledger {place} cannot be used: {fault}. Nothing was written by this step.") from None


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
