"""From what is asked for to an entry, and from an entry to the books: both ask the same rules."""

from __future__ import annotations

from datetime import datetime

from flows.ledger.books import Books
from flows.ledger.chain import FORMAT, Body, Entry, entry_after
from flows.ledger.errors import Broken, Refused
from flows.ledger.rules import enter


def next_entry(books: Books, last: Entry | None, at: datetime, kind: str, content: Body) -> Entry:
    """Changes the books by the next entry, and returns it; what does not read as one is refused."""
    body = {"format": FORMAT, "kind": kind, "at": at.isoformat(timespec="seconds"), "content": content}
    try:
        enter(books, body)
        return entry_after(last, body)
    except (ValueError, TypeError, ArithmeticError) as fault:
        reason = str(fault)
    raise Refused(f"this cannot be entered in the ledger: {reason}")


def read_entry(books: Books, entry: Entry) -> None:
    """Changes the books by an entry of a chain. Raises `Broken` where the rules would never have allowed it."""
    try:
        enter(books, entry.body)
    except Refused as fault:
        reason = str(fault)
    except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError) as fault:
        reason = f"it does not read as an entry ({type(fault).__name__})"
    else:
        return
    raise Broken(f"entry {entry.seq} breaks the ledger's rules: {reason}")
