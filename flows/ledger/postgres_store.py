"""A ledger in PostgreSQL, for offices that share one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from flows.ledger.chain import Entry, entry_of
from flows.ledger.errors import FOUND_ONE, LedgerError, NoLedger, Refused
from flows.ledger.store import SCHEMA_VERSION

TABLES = f"""
CREATE SCHEMA margrave;
CREATE TABLE margrave.entries(
    seq BIGINT PRIMARY KEY, before TEXT NOT NULL, text TEXT NOT NULL, hash TEXT NOT NULL UNIQUE);
CREATE TABLE margrave.confidential(name TEXT PRIMARY KEY, value BYTEA NOT NULL);
CREATE TABLE margrave.layout(version INTEGER NOT NULL);
INSERT INTO margrave.layout VALUES({SCHEMA_VERSION});
CREATE FUNCTION margrave.stay() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'entries are never changed or removed' ; END $$;
CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON margrave.entries
    FOR EACH STATEMENT EXECUTE FUNCTION margrave.stay();
CREATE TRIGGER secrets_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON margrave.confidential
    FOR EACH STATEMENT EXECUTE FUNCTION margrave.stay();
REVOKE ALL ON SCHEMA margrave FROM PUBLIC;
"""
TRIGGERS = {"entries_stay": "margrave.entries", "secrets_stay": "margrave.confidential"}
KEPT = """
SELECT tgname::text, tgrelid::regclass::text FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid
WHERE NOT tgisinternal AND tgenabled IN ('O', 'A') AND tgtype = 58 AND prosrc LIKE '%BEGIN RAISE EXCEPTION%'
"""
"""The triggers that are switched on, before every update, removal and truncation, and really refuse."""
PATIENCE = "60s"
"""How long to wait for another writer."""


class PostgresStore:
    """The tables of a ledger in the schema `margrave` of a database."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Any = None
        self._is_writing = False

    @property
    def place(self) -> str:
        """The server and database."""
        try:
            parts = urlsplit(self._url)
        except ValueError:
            return "postgresql://"
        return f"postgresql://{parts.hostname or ''}{parts.path}"

    def exists(self) -> bool:
        """Whether the schema is there."""
        with _plainly(self.place):
            found = self._all("SELECT count(*) FROM pg_namespace WHERE nspname = 'margrave'")
        return int(found[0][0]) > 0

    def create(self) -> None:
        """Makes the schema and its tables; goes on where an earlier call was interrupted before the first entry."""
        if self.exists():
            if next(iter(self.entries_after(0)), None) is not None:
                raise Refused(f"there is a ledger in {self.place} already; a ledger is founded once")
            return
        with _plainly(self.place):
            for statement in TABLES.split(";\n"):
                if statement.strip():
                    self._do(statement)
            self._connected().commit()

    @contextmanager
    def writing(self) -> Iterator[_Writing]:
        """Excludes other writers until the end."""
        done, self._is_writing = False, True
        try:
            with _plainly(self.place):
                self._do("SET LOCAL synchronous_commit = on")
                self._do(f"SET LOCAL lock_timeout = '{PATIENCE}'")
                self._do("LOCK TABLE margrave.entries IN EXCLUSIVE MODE")
            yield _Writing(self)
            with _plainly(self.place):
                self._connected().commit()
            done = True
        finally:
            self._is_writing = False
            if not done:
                self._undo()

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """The entries after a number."""
        if not self.exists():
            raise NoLedger(f"there is no ledger in {self.place}; {FOUND_ONE}")
        with _plainly(self.place):
            query = "SELECT seq, before, text, hash FROM margrave.entries WHERE seq > $1 ORDER BY seq"
            for row in self._all(query, seq):
                yield entry_of(row)

    def confided(self, name: str) -> bytes | None:
        """A confidential value."""
        with _plainly(self.place):
            rows = self._all("SELECT value FROM margrave.confidential WHERE name = $1", name)
        return bytes(rows[0][0]) if rows else None

    def confided_names(self) -> list[str]:
        """The names of all confidential values."""
        with _plainly(self.place):
            rows = self._all("SELECT name FROM margrave.confidential ORDER BY name")
        return [str(row[0]) for row in rows]

    def faults(self) -> list[str]:
        """Missing triggers."""
        with _plainly(self.place):
            kept = {(str(row[0]), str(row[1])) for row in self._all(KEPT)}
        return [
            f"the trigger {one[0]} was removed, changed or switched off" for one in TRIGGERS.items() if one not in kept
        ]

    def close(self) -> None:
        """Closes the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):  # the server may be gone
                connection.close()

    def _undo(self) -> None:
        """Ends the transaction without it, whatever state an error left it in."""
        try:
            if self._connection is not None:
                self._connection.rollback()
        except Exception:  # noqa: BLE001 - the server may be gone
            self.close()

    def insert(self, statement: str, *values: object) -> None:
        """Inserts inside the transaction that is open."""
        with _plainly(self.place):
            self._do(statement, *values)

    def _connected(self) -> Any:
        if self._connection is None:
            from adbc_driver_postgresql import dbapi

            self._connection = dbapi.connect(self._url)
        return self._connection

    def _do(self, statement: str, *values: object) -> None:
        with self._connected().cursor() as cursor:
            cursor.execute(statement, values or None)

    def _all(self, statement: str, *values: object) -> list[Any]:
        """The rows of a query. Outside a transaction of ours it is ended, so that the next one sees new rows."""
        try:
            with self._connected().cursor() as cursor:
                cursor.execute(statement, values or None)
                found = list(cursor.fetchall())
            if not self._is_writing:
                self._connected().commit()
        except Exception:
            self.close()  # a connection that failed is not used again
            raise
        return found


class _Writing:
    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    def append(self, entry: Entry) -> None:
        """Adds the next entry."""
        self._store.insert(
            "INSERT INTO margrave.entries VALUES($1, $2, $3, $4)", entry.seq, entry.before, entry.text, entry.hash
        )

    def confide(self, name: str, value: bytes) -> None:
        """Keeps a confidential value."""
        self._store.insert("INSERT INTO margrave.confidential VALUES($1, $2)", name, value)


@contextmanager
def _plainly(place: str) -> Iterator[None]:
    """Says in our words what PostgreSQL could not do; its own words may hold a password."""
    failed = ""
    try:
        yield
    except LedgerError:
        raise
    except ImportError:
        failed = "install the extra: pip install 'margrave[postgres]'"
    except Exception as fault:  # noqa: BLE001 - the driver has several families of errors
        failed = f"PostgreSQL says {getattr(fault, 'sqlstate', None) or type(fault).__name__}"
    if failed:
        raise LedgerError(f"the ledger {place} cannot be used: {failed}. Nothing was written by this step.")
