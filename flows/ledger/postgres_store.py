"""A ledger in PostgreSQL, for offices that share one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from flows.ledger.chain import Entry, entry_of
from flows.ledger.errors import FOUND_ONE, Broken, LedgerError, NoLedger, Refused
from flows.ledger.postgres_layouts import ALONE_SINCE, FOUND, TOO_FREE, expected, grants, steps, writer_of
from flows.ledger.store import LAYOUT, require_known

PATIENCE = "60s"
"""How long to wait for another writer."""
NO_RIGHT = "42501"
MAY_MAKE_ROLES = "SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user"


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

    def create(self, *, layout: int = LAYOUT) -> None:
        """Makes the schema and its tables; goes on where an earlier call was interrupted before the first entry."""
        if self.exists():
            if next(iter(self.entries_after(0)), None) is not None:
                raise Refused(f"there is a ledger in {self.place} already; a ledger is founded once")
            return
        with self._transaction(), _plainly(self.place):
            self._lay(0, layout)

    def layout(self) -> int:
        """The layout of the schema."""
        if not self.exists():
            raise NoLedger(f"there is no ledger in {self.place}; {FOUND_ONE}")
        with _plainly(self.place):
            found = self._all("SELECT max(version) FROM margrave.layout")[0][0]
        if not isinstance(found, int) or found < 1:
            raise Broken(f"the number of the layout is missing from the ledger {self.place}")
        require_known(self.place, found)
        return found

    def advice(self) -> list[str]:
        """Which role adds entries and changes none, and how persons get it."""
        with _plainly(self.place):
            ((database, exists),) = self._all(
                "SELECT current_database()::text, EXISTS (SELECT 1 FROM pg_roles "
                "WHERE rolname = left('margrave_writer_' || current_database(), 63))"
            )
        role = writer_of(database)
        first, then = "For daily work, connect as a member of a role that adds entries and can change none", list[str]()
        if not exists:
            first = "You may not make roles. Have an administrator make one that adds entries and can change none"
            then = [f"CREATE ROLE {role} NOLOGIN", *grants(role)]
        return [f"{first}:", *(f"  {one};" for one in (*then, f"GRANT {role} TO SOMEBODY"))]

    @contextmanager
    def migrating(self) -> Iterator[_Writing]:
        """Writing, in a schema that is brought to the newest layout."""
        with self.writing() as writing:
            layout = self.layout()
            with _plainly(self.place):
                self._lay(layout, LAYOUT)
            yield writing

    def _lay(self, before: int, after: int) -> None:
        """Takes the steps from one layout to another, and lets the writers' role do what it needs in it."""
        for statement in steps(before, after):
            self._do(statement)
        if after < ALONE_SINCE:
            return
        role = writer_of(str(self._all("SELECT current_database()::text")[0][0]))
        exists = self._all("SELECT count(*) FROM pg_roles WHERE rolname = $1", role.strip('"').replace('""', '"'))
        if not exists[0][0] and self._all(MAY_MAKE_ROLES)[0][0]:
            self._do(f"CREATE ROLE {role} NOLOGIN")
        elif not exists[0][0]:
            return
        for statement in grants(role):
            self._do(statement)

    @contextmanager
    def writing(self) -> Iterator[_Writing]:
        """Excludes other writers until the end."""
        with self._transaction():
            layout = self.layout()
            with _plainly(self.place):
                self._do("SET LOCAL synchronous_commit = on")
                self._do(f"SET LOCAL lock_timeout = '{PATIENCE}'")
                is_old = layout < ALONE_SINCE
                self._do("LOCK TABLE margrave.entries IN EXCLUSIVE MODE" if is_old else "CALL margrave.write_alone()")
            yield _Writing(self)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All that is done meanwhile becomes durable together, or not at all."""
        done, self._is_writing = False, True
        try:
            yield
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
        """Triggers, functions and indexes that are not as they were made, and roles that may do more than insert."""
        wanted = expected(self.layout())
        with _plainly(self.place):
            found = {(str(name), str(what)) for name, what in self._all(FOUND)}
            free = self._all(TOO_FREE)
        odd = sorted({name for name, _ in wanted ^ found})
        return [f"the {name} was removed, added, changed or switched off" for name in odd] + [
            f"{who} may change or remove what is in the table {table}" for who, table in sorted(free)
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
        state = getattr(fault, "sqlstate", None)
        failed = f"PostgreSQL says {state or type(fault).__name__}"
        if state == NO_RIGHT:
            failed = "the role of this connection lacks the right to do that; ask who founded the ledger for it"
    if failed:
        raise LedgerError(f"the ledger {place} cannot be used: {failed}. Nothing was written by this step.")
