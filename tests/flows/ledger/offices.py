"""Offices for the tests of the ledger: persons with keys, a clock, a policy, and runs that go as far as asked."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

from flows.ledger.books import Asked, Identity, Policy
from flows.ledger.chain import Body, Entry, entry_after
from flows.ledger.errors import Held
from flows.ledger.keys import new_key, public_of
from flows.ledger.ledger import Ledger
from flows.ledger.store import open_store
from flows.ledger.verifying import verify_ledger
from mechanisms.charge import Charge
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.sensitivity import Counts, Relation, Unit

PERSONS = ("Ada", "Ben", "Cleo", "Dora")
KEYS = {person: new_key() for person in PERSONS}
IDENTITY = Identity("persons", "add-remove")
POLICY = Policy(
    account="census",
    period="2026",
    currency="rho",
    cap=Fraction(1),
    delta=Fraction(1, 10**10),
    identity=IDENTITY,
    closes="",
    to_spend=0,
    to_publish=0,
)
NAME = POLICY.name
ASKED = Asked(
    release="people",
    account="census",
    period="2026",
    edition="2026",
    spec="spec-1",
    plan="plan-1",
    code="code-1",
    price=Fraction(1, 4),
    exact=0,
    author="Author",
    started_by="Starter",
    to_spend=0,
    to_publish=0,
)


@dataclass
class Clock:
    """A clock that stands still until it is set."""

    now: datetime = field(default=datetime(2026, 3, 1, 12, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> None:
        """Sets the clock on, or back."""
        self.now += timedelta(**by)


def founders(persons: Sequence[str] = PERSONS) -> list[dict[str, str]]:
    """The founding keys of persons."""
    return [{"person": one, "role": "director", "key": public_of(KEYS[one])} for one in persons]


def found(url: str, clock: Clock | None = None, *, solo: bool = False, policy: Policy | None = POLICY) -> Ledger:
    """A ledger with one policy."""
    ledger = Ledger.found(url, office="Office", founders=() if solo else founders(), solo=solo, now=clock or Clock())
    if policy is not None:
        grant(ledger, policy)
    return ledger


def grant(ledger: Ledger, policy: Policy) -> None:
    """Opens a policy with the approvals it needs."""
    with_approvals(ledger, lambda: ledger.grant(policy))


def with_approvals(ledger: Ledger, act: Any, persons: Sequence[str] = PERSONS) -> None:
    """Does what is held until persons approved it."""
    try:
        act()
    except Held as held:
        for person in persons[: held.pending.needed]:
            ledger.approve(held.pending.subject, KEYS[person])
        act()


def charges(price: Fraction, relation: Relation = Relation.ADD_REMOVE) -> list[Charge]:
    """One measurement at a price in rho."""
    squared = Counts().sensitivity(Unit(), relation).l2_squared
    return [Charge("people", DiscreteGaussian(squared / (2 * price)), Counts(), Unit(), relation)]


def asked(number: int = 1, **other: Any) -> Asked:
    """What the run of an edition is opened for."""
    return replace(ASKED, **({"edition": f"edition-{number}"} | other))


STEPS = ("reserved", "identified", "charged", "attempted", "stored", "published")


def go(ledger: Ledger, run: str, what: Asked, *, to: str = "published", data: bytes = b"microdata") -> None:
    """Takes a run through its steps, up to one of them."""
    steps = {
        "reserved": lambda: ledger.reserve(run, what, IDENTITY),
        "identified": lambda: _identify(ledger, run, what, data),
        "charged": lambda: ledger.charge(run, charges(what.price), price=what.price),
        "attempted": lambda: ledger.attempt(run),
        "stored": lambda: ledger.store(run, sha256=f"hash of {run}", attempt=1),
        "published": lambda: ledger.publish(run, version=1, manifest=f"manifest of {run}", tables="tables"),
    }
    for step in STEPS[: STEPS.index(to) + 1]:
        steps[step]()


def _identify(ledger: Ledger, run: str, what: Asked, data: bytes) -> None:
    """Names the microdata, and the exact totals that come from them."""
    ledger.identify(run, data)
    for number in range(what.exact):
        ledger.declare_exact(run, f"total{number}", at=["county"], because="the law says so")


def head(url: str) -> tuple[int, str]:
    """The number and hash of the last entry."""
    last = entries(url)[-1]
    return last.seq, last.hash


def entries(url: str) -> list[Entry]:
    """All entries."""
    store = open_store(url)
    found = list(store.entries_after(0))
    store.close()
    return found


def rechained(bodies: Sequence[Body]) -> Iterator[Entry]:
    """A chain made anew from bodies, as an attacker who knows the format would."""
    last = None
    for body in bodies:
        last = entry_after(last, body)
        yield last


def failed(url: str, anchors: Sequence[Any] = ()) -> dict[str, str]:
    """What verification finds wrong: the checks that fail, with their details."""
    store = open_store(url)
    try:
        return {one.name: one.detail for one in verify_ledger(store, anchors) if not one.ok}
    finally:
        store.close()


def unlocked(url: str, *statements: tuple[str, Sequence[Any]]) -> None:
    """Writes to a file with its triggers dropped, and puts them back as they were."""
    with closing(sqlite3.connect(url)) as file, file:
        triggers = file.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            file.execute(f"DROP TRIGGER {name}")
        for statement, values in statements:
            file.execute(statement, values)
        for _, sql in triggers:
            file.execute(sql)
