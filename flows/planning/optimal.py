"""The optimal division of a line of the budget, each query by itself: what it errs by, against what it is given.

A query's variance, in units of its squared sensitivity, is 1 / (2 rho) in every cell, or about 2 / epsilon^2. The sum
over all cells is least where rho goes with the square root of weight times cells, and epsilon with the cube root.
Amounts are exact: whole parts of a million of the line, rounded down, so that they never exceed it. A promise is a
floor: no division gives a query less than its promise costs, as long as all floors fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mechanisms.choose import Currency
from release_specs.language.tables import Optimal

PARTS = 10**6
"""A line is divided into so many parts."""
DIGITS = 10**6
"""Roots are taken to so many parts of a whole."""


@dataclass(frozen=True, slots=True)
class Aim:
    """What is made small, and how much tables and levels matter."""

    optimal: Optimal
    currency: Currency

    def weight(self, table: str, level: str, *, cells: int) -> Fraction:
        """What a query's part is in proportion to."""
        importance = self.optimal.importance
        held = importance.get(table, Fraction(1)) * importance.get(level, Fraction(1))
        pure = self.currency is Currency.EPSILON
        if self.optimal.minimise == "worst variance":
            return root(held, 2) if pure else held
        power = 3 if self.optimal.minimise == "total relative variance" else 1
        return root(held * cells**power, 3 if pure else 2)


def root(number: Fraction, degree: int) -> Fraction:
    """The root of a positive number, rounded down to a millionth; by whole numbers, so alike on every machine."""
    wanted = number.numerator * DIGITS**degree // number.denominator
    low, high = 0, 1
    while high**degree <= wanted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**degree <= wanted else (low, middle)
    return Fraction(low, DIGITS)


def divide_optimally(total: Fraction, weights: Sequence[Fraction], floors: Sequence[Fraction]) -> list[Fraction]:
    """Amounts in proportion to weights, but none below its floor; together at most the total.

    Where one would fall below its floor it is given the floor, and the others divide what is left. Floors that add up
    to more than the total cannot be kept: they are then ignored.
    """
    if sum(floors, Fraction(0)) > total:
        floors = [Fraction(0)] * len(weights)
    given: dict[int, Fraction] = {}
    while len(given) < len(weights):
        free = [place for place in range(len(weights)) if place not in given]
        left = total - sum(given.values(), Fraction(0))
        amounts = _in_proportion(left, [weights[place] for place in free])
        short = {p: floors[p] for p, amount in zip(free, amounts, strict=True) if amount < floors[p]}
        given |= short or dict(zip(free, amounts, strict=True))
    return [given[place] for place in range(len(weights))]


def _in_proportion(total: Fraction, weights: Sequence[Fraction]) -> list[Fraction]:
    """One part for everybody, the others by weight, rounded down."""
    together, free = sum(weights, Fraction(0)) or Fraction(1), PARTS - len(weights)
    if free < 0:
        raise ValueError(f"a line of the budget is divided among at most {PARTS} queries")
    return [total * (1 + int(weight * free / together)) / PARTS for weight in weights]
