"""The lines of a budget divided so that the published estimates err least, every measurement helping all tables.

Amounts are exact: parts of a line, rounded down to five digits, so that they never exceed it and are the same on every
machine. A promise is a floor: no division gives a query less than its promise costs, as long as all floors fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from estimation.allotment import Market, Offer, Share
from estimation.foresight import outlooks
from flows.planning.families import Means
from flows.planning.shares import Line, Wish
from mechanisms.choose import Currency
from release_specs.checks.draft import Draft
from release_specs.language.tables import Optimal
from release_specs.tallies import EXACT, Tally, tallies_of

DIGITS = 5
"""A part of a line has so many digits."""
Amounts = dict[Wish, Fraction]
Floors = Mapping[Wish, Fraction]


@dataclass(frozen=True, slots=True)
class Stall:
    """What a release could measure, and what it publishes."""

    draft: Draft
    tallies: Sequence[Tally]

    def divide(self, lines: Sequence[Line], floors: Floors, means: Means) -> Amounts:
        """The amount of every query, in exact parts of its line."""
        wishes = [wish for line in lines for wish in line.wishes]
        if all(len(line.wishes) == 1 for line in lines):  # nothing to divide, and nothing to look at
            return {line.wishes[0]: line.amount for line in lines}
        place = {wish: number for number, wish in enumerate(wishes)}
        shares = [Share(float(line.amount), tuple(place[wish] for wish in line.wishes)) for line in lines]
        start = {wish: line.amount / len(line.wishes) for line in lines for wish in line.wishes}
        market = self._market(start, means)
        found = market.divide(shares, [float(floors.get(wish, 0)) for wish in wishes])
        amounts: Amounts = {}
        for line in lines:
            parts = {wish: Fraction(float(found[place[wish]])) / line.amount for wish in line.wishes}
            amounts |= exactly(line, parts, floors)
        return amounts

    def _market(self, amounts: Mapping[Wish, Fraction], means: Means) -> Market:
        """Everything that can be bought, priced near some amounts."""
        spec, power = self.draft.spec, 2 if means.purse.currency is Currency.EPSILON else 1
        goals = [
            (tally, level)
            for tally in tallies_of(spec, self.draft.domain)
            if tally.table != EXACT and spec.tables[tally.table].publish
            for level in tally.levels or (None,)
        ]
        measured = [(wish.tally, wish.level) for wish in amounts]
        found = outlooks(self.draft, self.tallies, measured=measured, goals=goals)
        offers = []
        for wish, amount in amounts.items():
            number, outlook = next((n, one) for n, (one, _) in enumerate(found) if wish.tally.name in one.tallies)
            precision = 1 / means.noise(wish, amount).variance / float(amount) ** power
            offers.append(Offer(number, outlook.seen(wish.tally, wish.level), precision, power))
        optimal = spec.spend.optimal
        weights = tuple(tuple(_weight(optimal, *goal) for goal in mine) for _, mine in found)
        worths = tuple(one.worth for one, _ in found)
        return Market(worths, tuple(offers), weights, worst=optimal.minimise == "worst variance")


def _weight(optimal: Optimal, tally: Tally, level: str | None) -> float:
    """How much the variance of one cell matters, in units of the squared influence of one record."""
    importance = optimal.importance
    held = importance.get(tally.table, Fraction(1)) * importance.get(level or "", Fraction(1))
    influence = max(1, *(abs(bound) for bound in tally.adds.bounds)) if tally.adds is not None else 1
    relative = (tally.areas(level) * tally.cells) ** 2 if optimal.minimise == "total relative variance" else 1
    return float(held * relative / influence**2)


def exactly(line: Line, parts: Mapping[Wish, Fraction], floors: Floors) -> Amounts:
    """Parts of a line as exact amounts: rounded down, but none below its floor, and together at most the line."""
    if len(line.wishes) == 1:
        return {line.wishes[0]: line.amount}
    fits = sum((floors.get(wish, Fraction(0)) for wish in line.wishes), Fraction(0)) <= line.amount
    least = {wish: floors.get(wish, Fraction(0)) if fits else Fraction(0) for wish in line.wishes}
    amounts = {wish: max(least[wish], line.amount * rounded_down(parts[wish])) for wish in line.wishes}
    over = sum(amounts.values(), Fraction(0)) - line.amount
    for wish in sorted(line.wishes, key=lambda one: least[one] - amounts[one]):
        if over > 0:
            cut = min(over, (amounts[wish] - least[wish]) / 2 if not least[wish] else amounts[wish] - least[wish])
            amounts[wish], over = amounts[wish] - cut, over - cut
    return amounts


def rounded_down(part: Fraction) -> Fraction:
    """A positive number with its first digits only."""
    unit = Fraction(1)
    while part / unit < 10 ** (DIGITS - 1):
        unit /= 10
    while part / unit >= 10**DIGITS:
        unit *= 10
    return int(part / unit) * unit
