"""Verifying a ledger: everything it says is derived again from its chain, and compared with what was published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flows.ledger.anchor import Anchor
from flows.ledger.books import Books
from flows.ledger.chain import Entry, linked
from flows.ledger.entering import read_entry
from flows.ledger.errors import LedgerError
from flows.ledger.keys import key_from, private_bytes, public_of
from flows.ledger.ledger import FINGERPRINT_KEY, OFFICE_KEY, SALT_BYTES
from flows.ledger.spending import commitment
from flows.ledger.store import LAYOUT, Store


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was checked."""

    name: str
    ok: bool
    detail: str


def verify_ledger(store: Store, anchors: Sequence[Anchor] = ()) -> list[Check]:
    """Every check of a ledger, whatever the others find."""
    try:
        database = store.faults()
    except LedgerError as fault:
        return [Check("database", ok=False, detail=str(fault))]
    checks = [Check("database", not database, "; ".join(database) or "sound, and its triggers are in place")]
    entries: list[Entry] = []
    books = Books()
    try:
        for entry in linked(store.entries_after(0)):
            read_entry(books, entry)
            entries.append(entry)
        checks.append(Check("chain", bool(entries), f"{len(entries)} entries, each follows from the one before"))
    except LedgerError as fault:
        checks.append(Check("chain", ok=False, detail=str(fault)))
    checks.append(_budgets(books))
    try:
        checks.append(_layout(books, store.layout()))
        checks.append(_secrets(books, store))
    except LedgerError as fault:
        checks.append(Check("confidential values", ok=False, detail=str(fault)))
    return checks + [_anchor(books, entries, one) for one in anchors]


def _budgets(books: Books) -> Check:
    over = [
        f"{'/'.join(name)}: {books.spent(name)} of {policy.cap}"
        for name, policy in books.policies.items()
        if books.spent(name) > policy.cap and name not in books.gaps
    ]
    detail = "; ".join(over) or f"{len(books.policies)} policies, none overspent"
    return Check("budgets", not over, detail)


def _layout(books: Books, found: int) -> Check:
    """Whether the tables are still those that the chain tells of: a layout that is set back has fewer guards."""
    newest = "" if found == LAYOUT else f" of {LAYOUT}; margrave ledger migrate brings it up to date"
    detail = f"{found}{newest}" if found >= books.layout else f"{found}, and the chain tells of {books.layout}"
    return Check("layout", found >= books.layout, detail)


def _secrets(books: Books, store: Store) -> Check:
    """Whether the confidential values are those that the chain committed to, all of them and no others."""
    stated = {FINGERPRINT_KEY: books.fingerprint_key}
    for run in books.runs.values():
        stated[f"run/{run.id}/key"] = run.key
        if run.dataset is not None:
            stated[f"run/{run.id}/dataset"] = run.dataset
        if run.places is not None:
            stated[f"run/{run.id}/places"] = run.places
    wrong = sorted({OFFICE_KEY, *stated} ^ set(store.confided_names()))
    for name, expected in stated.items():
        kept = store.confided(name) or b""
        if name not in wrong and commitment(name, kept[:SALT_BYTES], kept[SALT_BYTES:]) != expected:
            wrong.append(name)
    if OFFICE_KEY not in wrong and not _is_key_of(store.confided(OFFICE_KEY) or b"", books.office_key):
        wrong.append(OFFICE_KEY)
    return Check("confidential values", not wrong, f"not as committed to: {', '.join(wrong)}" if wrong else "as stated")


def _is_key_of(private: bytes, public: str) -> bool:
    try:
        key = key_from(private)
        return public_of(key) == public and private_bytes(key) == private
    except (ValueError, TypeError):
        return False


def _anchor(books: Books, entries: Sequence[Entry], anchor: Anchor) -> Check:
    name = f"anchor {anchor.seq}"
    if anchor.ledger != books.ledger:
        return Check(name, ok=False, detail=f"it is of ledger {anchor.ledger}, this is {books.ledger or 'none'}")
    if anchor in books.lost:
        return Check(name, ok=False, detail="its entries were lost and charged when a copy was taken into use")
    if anchor.seq > len(entries):
        lost = anchor.seq - len(entries)
        return Check(
            name, ok=False, detail=f"{lost} entries that were published are missing: a cut tail or an old copy"
        )
    if anchor.seq < 1 or entries[anchor.seq - 1].hash != anchor.hash:
        return Check(name, ok=False, detail="the entries before it are not those that were published")
    return Check(name, ok=True, detail="the chain passes through it")
