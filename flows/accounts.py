"""What may be read off a ledger: show, verify, anchor, doctor; and giving a reservation back."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.keyholders import in_words, place_of
from flows.ledger.errors import HERE
from flows.terminal import NOT_SO, OK, UserError, plainly, say

if TYPE_CHECKING:
    from flows.ledger.anchor import Anchor
    from flows.ledger.books import Books, Run

OF_ACCOUNTS = ("account", "period", "currency", "cap", "spent", "reserved", "left", "all_time")
OF_RUNS = ("run", "release", "edition", "state", "spent", "attempts", "versions")
NO_ACCOUNT = f"none yet; margrave ledger grant SPEC --cap AMOUNT{HERE} opens one"
FRACTION = re.compile(r"\d+/\d+")
_STANDS = {
    "reserved": "nothing was charged",
    "identified": "nothing was charged",
    "charged": "it is paid and nothing is stored",
    "stored": "its measurements are stored",
}
DONE = ("published", "released", "rejected")


def show(chosen: argparse.Namespace) -> int:
    """Prints the balances, runs and what waits."""
    place = place_of(chosen)
    found = as_data(place.open_ledger().books())
    say(json.dumps(found, indent=2) if chosen.json else place.hinted("\n".join(_lines(found))))
    return OK


def as_data(books: Books) -> dict[str, Any]:
    """The books as plain data."""
    return {
        "ledger": books.ledger,
        "office": books.office,
        "solo": books.solo,
        "accounts": [
            {
                "account": account,
                "period": period,
                "currency": policy.currency,
                "cap": str(policy.cap),
                "spent": str(books.spent((account, period))),
                "reserved": str(books.held((account, period))),
                "left": str(books.left((account, period))),
                "all_time": str(books.all_time(account)),
                "closes": policy.closes,
                "protects": str(policy.identity),
                "approvals": {"to_spend": policy.to_spend, "to_publish": policy.to_publish},
            }
            for (account, period), policy in books.policies.items()
        ],
        "runs": [_run(run) for run in books.runs.values()],
        "keys": [
            {"person": key.person, "role": key.role, "key": key.public, "revoked": key.revoked}
            for key in books.keys.values()
        ],
        "waiting": [
            {
                "act": act,
                "about": in_words(act, would),
                "number": subject,
                "approved_by": list(books.approvers(subject, at=datetime.now(UTC))),
            }
            for subject, (act, would) in books.proposals.items()
        ],
        "looks": len(books.looks),
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "run": run.id,
        "release": run.asked.release,
        "edition": run.asked.edition,
        "account": run.asked.account,
        "period": run.asked.period,
        "state": run.state,
        "spent": str(run.spent),
        "attempts": run.attempts,
        "versions": len(run.versions),
    }


def _lines(found: dict[str, Any]) -> list[str]:
    alone = ", for one person without approvals" if found["solo"] else ""
    lines = [f"ledger {found['ledger']} of {found['office']}{alone}", ""]
    lines += _table("accounts", OF_ACCOUNTS, found["accounts"], NO_ACCOUNT)
    lines += _table("runs", OF_RUNS, found["runs"], "none yet")
    if found["keys"]:
        lines += _table("keys", ("person", "role", "revoked", "key"), found["keys"], "")
    if found["waiting"]:
        lines += [f"waiting for approval (margrave ledger approve NUMBER --key KEY{HERE})"]
        for one in found["waiting"]:
            given = f"; approved by {', '.join(one['approved_by'])}" if one["approved_by"] else ""
            lines.append(f"  {one['number'][:16]}  {one['act']}: {one['about']}{given}")
        lines.append("")
    return [*lines, LEGEND.rstrip()] if found["accounts"] or found["runs"] else lines


LEGEND = """\
cap: what may be spent in the period; spent: what was charged; reserved: what is held for runs that are not charged;
left: cap - spent - reserved; all time: what the account was charged in all its periods
state of a run: reserved (its price is held), identified (its files are known), charged (paid), stored (measured),
published; released (given back, nothing was charged), rejected (never published, what it paid stays spent)
attempts: how often noise was drawn, of which one is stored; versions: how often it was published
"""
"""What the columns and states of `show` mean."""


def _table(title: str, columns: Sequence[str], rows: Sequence[dict[str, Any]], none: str) -> list[str]:
    """Rows under their column names, each as wide as it must be."""
    if not rows:
        return [f"{title}: {none}", ""]
    cells = [[name.replace("_", " ") for name in columns], *[[_shown(row[name]) for name in columns] for row in rows]]
    widths = [max(len(line[place]) for line in cells) for place in range(len(columns))]
    shown = ["  " + "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)) for line in cells]
    return [title, *(line.rstrip() for line in shown), ""]


def _shown(value: object) -> str:
    """A value in a table; a long fraction as a decimal, as people read it."""
    text = str(value)
    return plainly(Fraction(text)) if FRACTION.fullmatch(text) else text


def verify(chosen: argparse.Namespace) -> int:
    """Checks everything again."""
    from flows.ledger.store import open_store
    from flows.ledger.verifying import verify_ledger

    place = place_of(chosen)
    store = open_store(place.ledger)
    if not store.exists():
        place.open_ledger()  # says that there is none
    checks = verify_ledger(store, [read_anchor(path) for path in chosen.anchor])
    ok = all(one.ok for one in checks)
    if chosen.json:
        listed = [{"name": one.name, "ok": one.ok, "detail": one.detail} for one in checks]
        say(json.dumps({"ok": ok, "checks": listed}, indent=2))
    else:
        for one in checks:
            say(f"{'ok    ' if one.ok else 'FAILED'}  {one.name}: {one.detail}")
        if not chosen.anchor:
            say("No anchor was given: a cut tail or a chain rewritten as a whole shows only against a published one.")
    return OK if ok else NOT_SO


def read_anchor(path: Path) -> Anchor:
    """The anchor in a file of its own or in a release's manifest."""
    from flows.ledger.anchor import Anchor

    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
        is_manifest = isinstance(found, dict) and isinstance(found.get("ledger"), dict)
        return Anchor.from_data(found["ledger"].get("anchor") if is_manifest else found)
    except OSError as fault:
        raise UserError(f"{path} cannot be read: {fault.strerror}") from None
    except (ValueError, AttributeError) as fault:
        raise UserError(f"{path} holds no anchor: {fault}") from None


def anchor(chosen: argparse.Namespace) -> int:
    """Prints the head of the ledger."""
    ledger = place_of(chosen).open_ledger()
    found = ledger.anchor()
    if chosen.where:
        ledger.record_anchor(found, chosen.where)
    say(json.dumps(found.as_data(), indent=2))
    return OK


def doctor(chosen: argparse.Namespace) -> int:
    """Says what unfinished runs need."""
    place = place_of(chosen)
    books = place.open_ledger().books()
    unfinished = [run for run in books.runs.values() if run.state not in DONE]
    for run in unfinished:
        name = f"run {run.id} ({run.asked.release}, edition {run.asked.edition})"
        say(place.hinted(f"{name} is {run.state}: {needed_next(books, run)}"))
    if not unfinished:
        say("No run is unfinished.")
    return OK


def needed_next(books: Books, run: Run) -> str:
    """What an unfinished run needs: who must approve it, and the command that goes on with it."""
    from flows.ledger.rules import awaited

    held, go_on = awaited(books, run, at=datetime.now(UTC)), f"margrave resume {run.id}{HERE}"
    told = f"{_STANDS[run.state]}. "
    if held is not None and not held.is_met:
        missing = held.needed - len(held.given)
        return (
            f"{told}It waits for {missing} more approval{'s' if missing != 1 else ''}: {held}; then go on with: {go_on}"
        )
    if held is not None:
        return f"{told}It is approved by {', '.join(held.given)}. Go on with: {go_on}"
    told += f"Go on with: {go_on}"
    return told if run.charged else f"{told}; or give it up with: margrave ledger release {run.id}{HERE}"


def give_back(chosen: argparse.Namespace) -> int:
    """Gives a reservation back."""
    place = place_of(chosen)
    run = place.run_named(chosen.run)
    place.open_ledger().release(run)
    place.forget_dataset(run)
    say(f"The reservation of run {run} is given back.")
    return OK
