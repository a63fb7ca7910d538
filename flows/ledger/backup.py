"""Copies of a ledger, and taking one into use.

A copy is a ledger file of its own, whatever the store it came from. When a published anchor is ahead of a copy, entries
were lost: the copy is taken into use only with two approvals, and what it lost is charged in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from flows.ledger.anchor import Anchor
from flows.ledger.chain import Body
from flows.ledger.errors import Held, Refused
from flows.ledger.ledger import Ledger
from flows.ledger.sqlite_store import SqliteStore
from flows.ledger.store import Store, open_store
from flows.ledger.verifying import verify_ledger


def copy_ledger(source: Store, target: Store) -> None:
    """Writes all entries and confidential values of a ledger into a new one."""
    entries = list(source.entries_after(0))
    secrets = {name: source.confided(name) for name in source.confided_names()}
    target.create()
    with target.writing() as writing:
        for entry in entries:
            writing.append(entry)
        for name, value in secrets.items():
            writing.confide(name, value or b"")


def back_up(url: str, file: Path) -> Anchor:
    """Copies a ledger to a file and verifies the copy; returns the anchor it reaches."""
    copy_ledger(open_store(url), SqliteStore(file))
    failed = [one for one in verify_ledger(SqliteStore(file)) if not one.ok]
    if failed:
        raise Refused(f"the copy does not verify: {failed[0].name}: {failed[0].detail}")
    return Ledger.open(str(file)).anchor()


def restore(file: Path, url: str, *, anchors: Sequence[Anchor], keys: Sequence[Ed25519PrivateKey] = ()) -> Anchor:
    """Takes a copy into use as a new ledger; approved by `keys` where an anchor is ahead of it."""
    failed = [one for one in verify_ledger(SqliteStore(file)) if not one.ok]
    if failed:
        raise Refused(f"{file} does not verify: {failed[0].name}: {failed[0].detail}")
    with TemporaryDirectory(dir=file.parent, prefix=".restore-") as folder:
        aside = SqliteStore(Path(folder) / "ledger")
        copy_ledger(SqliteStore(file), aside)
        ledger = Ledger(aside)
        for anchor in sorted(anchors, key=lambda one: one.seq):
            _catch_up_with(ledger, anchor, keys)
        copy_ledger(aside, open_store(url))
        reached = ledger.anchor()
        ledger.close()
    return reached


def _catch_up_with(ledger: Ledger, anchor: Anchor, keys: Sequence[Ed25519PrivateKey]) -> None:
    here = ledger.anchor()
    if anchor.ledger != here.ledger:
        raise Refused(f"the anchor is of ledger {anchor.ledger}, the copy of {here.ledger}")
    if anchor.seq <= here.seq:
        return
    gaps = gaps_of(ledger, anchor)
    try:
        ledger.restore(anchor, gaps)
    except Held as held:
        for key in keys:
            ledger.approve(held.pending.subject, key)
        try:
            ledger.restore(anchor, gaps)
        except Held as still:
            raise Refused(
                f"a published anchor is {anchor.seq - here.seq} entries ahead of this copy. It can be used only with "
                f"two approvals (--key KEY --key KEY), and what is missing is charged in full. {still.pending.given}"
            ) from None


def gaps_of(ledger: Ledger, anchor: Anchor) -> list[Body]:
    """What a copy is behind an anchor, for each policy it knows; a policy it does not know cannot be spent from it."""
    books, found = ledger.books(), []
    for account, period in books.policies:
        ahead = anchor.spent.get(f"{account}/{period}", Fraction(0)) - books.spent((account, period))
        if ahead > 0:
            found.append({"account": account, "period": period, "amount": str(ahead)})
    return found
