"""Bringing a ledger of an earlier version to the newest layout, so that it is written to for years to come.

Only tables, triggers and rights change: every entry keeps its bytes and its hash, and anchors that were published
before are met as before. A copy in the old layout is made first. The rest is one transaction: the new layout, an entry
that says so, and a verification of everything; whatever stops it leaves the ledger as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from flows.ledger.anchor import Anchor
from flows.ledger.backup import copy_ledger, require_sound
from flows.ledger.books import Books
from flows.ledger.chain import linked
from flows.ledger.entering import next_entry, read_entry
from flows.ledger.errors import Refused
from flows.ledger.ledger import Clock, utc_now
from flows.ledger.sqlite_store import SqliteStore
from flows.ledger.store import LAYOUT, Store, open_store


@dataclass(frozen=True, slots=True)
class Migrated:
    """What a migration did."""

    before: int
    after: int
    entries: int
    """How many entries there were, all of them untouched."""
    advice: tuple[str, ...]


def migrate(url: str, *, backup: Path, anchors: Sequence[Anchor] = (), now: Clock = utc_now) -> Migrated | None:
    """Brings a ledger to the newest layout, after copying it to a file; nothing where it has that layout."""
    with closing(open_store(url)) as store:
        before = store.layout()
        if before == LAYOUT:
            return None
        require_sound(store, anchors)
        with closing(SqliteStore(backup)) as copy:
            copy_ledger(store, copy, layout=before)
            require_sound(copy, anchors)
            entries = _lay_out(store, copy, anchors, now)
        return Migrated(before, LAYOUT, entries, tuple(store.advice()))


def _lay_out(store: Store, copy: SqliteStore, anchors: Sequence[Anchor], now: Clock) -> int:
    """The one transaction; returns how many entries were there before it."""
    before = store.layout()
    with store.migrating() as writing:
        entries = list(store.entries_after(0))
        if entries != list(copy.entries_after(0)):
            raise Refused(f"something was entered in {store.place} while it was copied; call again")
        books = Books()
        for entry in linked(entries):
            read_entry(books, entry)
        writing.append(next_entry(books, entries[-1], now(), "migrated", {"from": before, "to": LAYOUT}))
        require_sound(store, anchors)
    return len(entries)
