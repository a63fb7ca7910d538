"""Random calls in random order against a plain model of balances: never overspent, and the chain verifies."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from shutil import rmtree

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from flows.ledger.errors import Held, Refused
from flows.ledger.ledger import Ledger
from tests.flows.ledger.offices import IDENTITY, KEYS, NAME, POLICY, Clock, asked, charges, failed, found

RUNS = st.integers(0, 3)
PRICES = st.sampled_from([Fraction(1, 7), Fraction(1, 3), Fraction(1, 2), Fraction(2, 3)])
CAPS = st.sampled_from([Fraction(1, 4), Fraction(1), Fraction(3, 2)])


@dataclass
class Told:
    """What the model believes of one run."""

    price: Fraction
    edition: int
    is_identified: bool = False
    paid: int = 0
    draws: int = 0
    is_stored: bool = False
    is_published: bool = False
    is_over: bool = False


class Office(RuleBasedStateMachine):
    """An office that calls the ledger in any order, and a second process that looks on."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="margrave-"))
        self.ledger = found(str(self.folder / "ledger"))
        self.other = Ledger.open(str(self.folder / "ledger"), now=Clock())
        self.runs: dict[int, Told] = {}
        self.cap = POLICY.cap

    @property
    def spent(self) -> Fraction:
        return sum((one.price * one.paid for one in self.runs.values()), Fraction(0))

    @property
    def held(self) -> Fraction:
        return sum((one.price for one in self.runs.values() if not one.paid and not one.is_over), Fraction(0))

    def expect(self, allowed: bool, act: object) -> bool:
        """Calls, and compares with what the model allows. What is held is approved by two and called again."""
        assert callable(act)
        try:
            act()
        except Held as held:
            for person in ("Ada", "Ben"):
                self.ledger.approve(held.pending.subject, KEYS[person])
            act()
        except Refused:
            assert not allowed
            return False
        assert allowed
        return True

    @rule(run=RUNS, edition=st.integers(0, 2), price=PRICES)
    def reserve(self, run: int, edition: int, price: Fraction) -> None:
        claimed = any(one.edition == edition and not one.is_over for one in self.runs.values())
        allowed = run not in self.runs and not claimed and self.spent + self.held + price <= self.cap
        what = asked(edition, price=price)
        if self.expect(allowed, lambda: self.ledger.reserve(str(run), what, IDENTITY)):
            self.runs[run] = Told(price, edition)

    @rule(run=RUNS)
    def identify(self, run: int) -> None:
        told = self.runs.get(run)
        allowed = told is not None and (told.is_identified or not told.is_over)
        if self.expect(allowed, lambda: self.ledger.identify(str(run), b"microdata")):
            self.runs[run].is_identified = True

    @rule(run=RUNS)
    def charge(self, run: int) -> None:
        told = self.runs.get(run)
        price = told.price if told is not None else Fraction(1, 7)
        allowed = told is not None and told.is_identified and not told.is_stored and not told.is_over
        if told is not None and told.paid:
            allowed = allowed and told.draws == 3 * told.paid and self.spent + self.held + price <= self.cap
        if self.expect(allowed, lambda: self.ledger.charge(str(run), charges(price), price=price)) and told is not None:
            told.paid += 1

    @rule(run=RUNS)
    def attempt(self, run: int) -> None:
        told = self.runs.get(run)
        open_ = told is not None and not told.is_stored and not told.is_over
        if self.expect(bool(told and open_ and told.draws < 3 * told.paid), lambda: self.ledger.attempt(str(run))):
            self.runs[run].draws += 1

    @rule(run=RUNS, behind=st.integers(0, 1))
    def store(self, run: int, behind: int) -> None:
        told = self.runs.get(run)
        number = (told.draws if told is not None else 1) - behind
        allowed = told is not None and bool(told.draws) and not behind and not told.is_stored and not told.is_over
        if self.expect(allowed, lambda: self.ledger.store(str(run), sha256="x", attempt=number)):
            self.runs[run].is_stored = True

    @rule(run=RUNS)
    def publish(self, run: int) -> None:
        told = self.runs.get(run)
        allowed = told is not None and told.is_stored and not told.is_over and not told.is_published
        if self.expect(allowed, lambda: self.ledger.publish(str(run), version=1, manifest="m", tables="t")):
            self.runs[run].is_published = True

    @rule(run=RUNS)
    def release(self, run: int) -> None:
        told = self.runs.get(run)
        allowed = told is not None and not told.paid and not told.is_over
        if self.expect(allowed, lambda: self.ledger.release(str(run))):
            self.runs[run].is_over = True

    @rule(run=RUNS)
    def reject(self, run: int) -> None:
        told = self.runs.get(run)
        allowed = told is not None and told.paid > 0 and not told.is_published and not told.is_over
        if self.expect(allowed, lambda: self.ledger.review(str(run), by="C", reason="withdrawn")):
            self.runs[run].is_over = True

    @rule(cap=CAPS)
    def grant(self, cap: Fraction) -> None:
        if self.expect(cap >= self.spent + self.held, lambda: self.ledger.grant(replace(POLICY, cap=cap))):
            self.cap = cap

    @invariant()
    def both_agree_and_nothing_is_overspent(self) -> None:
        books = self.other.books()
        assert (books.spent(NAME), books.held(NAME)) == (self.spent, self.held)
        assert books.left(NAME) == self.cap - self.spent - self.held >= 0
        assert {int(name): run.attempts for name, run in books.runs.items()} == {
            number: one.draws for number, one in self.runs.items()
        }

    def teardown(self) -> None:
        anchor = self.ledger.anchor()
        self.ledger.close()
        self.other.close()
        assert failed(str(self.folder / "ledger"), [anchor]) == {}
        rmtree(self.folder)


TestOffice = Office.TestCase
TestOffice.settings = settings(
    max_examples=50, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
