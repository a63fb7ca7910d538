"""Copies of a ledger, and taking one into use.

A copy is a ledger file of its own, whatever the store it came from. When a published anchor is ahead of a copy, entries
were lost: the copy is taken into use only with two approvals, and what it lost is charged in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from flows.ledger.anchor import Anchor
from flows.ledger.errors import Held, Refused
from flows.ledger.ledger import Ledger
from flows.ledger.sqlite_store import SqliteStore
from flows.ledger.store import LAYOUT, Store, open_store
from flows.ledger.verifying import verify_ledger


def copy_ledger(source: Store, target: Store, *, layout: int = LAYOUT) -> None:
    """Writes all entries and confidential values of a ledger, as of one moment, into a new one."""
    with source.writing():  # nobody enters anything between the entries and the values they commit to
        entries = list(source.entries_after(0))
        secrets = {name: source.confided(name) for name in source.confided_names()}
    target.create(layout=layout)
    with target.writing() as writing:
        for entry in entries:
            writing.append(entry)
        for name, value in secrets.items():
            writing.confide(name, value or b"")


def back_up(url: str, file: Path) -> Anchor:
    """Copies a ledger to a file and verifies the copy; returns the anchor it reaches."""
    with closing(open_store(url)) as source, closing(SqliteStore(file)) as copy:
        copy_ledger(source, copy)
        require_sound(copy)
        return Ledger(copy).anchor()


def restore(file: Path, url: str, *, anchors: Sequence[Anchor], keys: Sequence[Ed25519PrivateKey] = ()) -> Anchor:
    """Takes a copy into use as a new ledger; approved by `keys` where an anchor is ahead of it."""
    with (
        TemporaryDirectory(dir=file.parent, prefix=".restore-") as folder,
        closing(SqliteStore(file)) as copy,
        closing(SqliteStore(Path(folder) / "ledger")) as aside,
        closing(open_store(url)) as target,
    ):
        reached = Ledger(copy).anchor().seq
        require_sound(copy, [one for one in anchors if one.seq <= reached])
        copy_ledger(copy, aside)
        ledger = Ledger(aside)
        _catch_up_with(ledger, [one for one in anchors if one.seq > reached], keys)
        copy_ledger(aside, target)
        return ledger.anchor()


def require_sound(store: Store, anchors: Sequence[Anchor] = ()) -> None:
    """Refuses a ledger, or a copy of one, that does not verify."""
    failed = [one for one in verify_ledger(store, anchors) if not one.ok]
    if failed:
        raise Refused(f"{store.place} does not verify: {failed[0].name}: {failed[0].detail}")


def _catch_up_with(ledger: Ledger, anchors: Sequence[Anchor], keys: Sequence[Ed25519PrivateKey]) -> None:
    """Charges what a copy is behind the anchors that are ahead of it."""
    if not anchors:
        return
    behind = max(one.seq for one in anchors) - ledger.anchor().seq
    try:
        ledger.restore(anchors)
    except Held as held:
        for key in keys:
            ledger.approve(held.pending.subject, key)
    else:
        return
    try:
        ledger.restore(anchors)
    except Held as still:
        raise Refused(
            f"a published anchor is {behind} entries ahead of this copy. It can be used only with "
            f"the approvals of two persons (--key KEY --key KEY), and what is missing is charged in full. "
            f"Approved by: {', '.join(still.pending.given) or 'nobody'}"
        ) from None
