"""Where entries are kept: an append-only table, one writer at a time, and a table of confidential values beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from flows.ledger.chain import Entry
from flows.ledger.errors import HERE, LedgerError, NoLedger, Refused

LAYOUT = 2
"""The layout of the tables. A migration adds to it and never rewrites an entry: old hashes stay verifiable."""
POSTGRES = ("postgresql://", "postgres://")
SQLITE = "sqlite:///"


class Writing(Protocol):
    """A transaction that excludes every other writer; all or nothing of it becomes durable."""

    def append(self, entry: Entry) -> None:
        """Adds the next entry."""

    def confide(self, name: str, value: bytes) -> None:
        """Keeps a confidential value under a new name."""


class Store(Protocol):
    """A ledger's tables."""

    @property
    def place(self) -> str:
        """Where it is, without a password."""

    def exists(self) -> bool:
        """Whether there is a ledger."""

    def create(self, *, layout: int = LAYOUT) -> None:
        """Makes the tables, where nothing is yet; in an earlier layout for those who go back to an earlier version."""

    def layout(self) -> int:
        """The layout of its tables."""

    def writing(self) -> AbstractContextManager[Writing]:
        """Excludes other writers until the end; durable when it ends without an error."""

    def migrating(self) -> AbstractContextManager[Writing]:
        """Writing, in tables that are brought to the newest layout; durable together, or not at all."""

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """The entries after a number, in their order."""

    def confided(self, name: str) -> bytes | None:
        """A confidential value."""

    def confided_names(self) -> list[str]:
        """The names of all confidential values."""

    def faults(self) -> list[str]:
        """What the database itself finds wrong with its files or tables."""

    def advice(self) -> list[str]:
        """What whoever founded or migrated it should know about who may write to it."""

    def close(self) -> None:
        """Lets go of the database."""


def require_known(place: str, layout: int) -> None:
    """Refuses tables that a later version of Margrave laid out."""
    if layout > LAYOUT:
        raise LedgerError(
            f"{place} was written by a newer version of Margrave (layout {layout}, this one knows {LAYOUT}); "
            "use that version"
        )


def require_newest(store: Store) -> None:
    """Refuses to write to tables of an earlier layout; reading them is always possible."""
    layout = store.layout()
    require_known(store.place, layout)
    if layout < LAYOUT:
        raise Refused(
            f"the ledger {store.place} was laid out by an earlier version of Margrave (layout {layout}, now {LAYOUT}). "
            f"It can be read as it is; to write to it, bring it up to date with: margrave ledger migrate{HERE}"
        )


def open_store(url: str) -> Store:
    """The store of a ledger's address: a path, sqlite:///PATH, or postgresql://..."""
    if url.startswith(POSTGRES):
        from flows.ledger.postgres_store import PostgresStore

        return PostgresStore(url)
    from flows.ledger.sqlite_store import SqliteStore

    if "://" in url and not url.startswith(SQLITE):
        raise NoLedger(f"'{url.partition('://')[0]}' is no kind of ledger; name a file, or postgresql://HOST/DATABASE")
    return SqliteStore(Path(url.removeprefix(SQLITE)))
