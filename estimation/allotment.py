"""How to divide a budget among measurements so that the estimates err least.

The variances of least-squares estimates are convex in the precisions of the measurements, and `worth` knows how fast
each falls. Where a measurement errs alone its best amount goes with the square root of what it is worth (where budget
buys precision in proportion; the cube root where precision grows with the square of it). Applied again and again to
measurements that help each other, the same rule descends to the best division, as for optimal designs of experiments
(Yu 2010). How far from the best a division can be at most is known from its slopes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from estimation.arrays import Floats, Integers
from estimation.worth import Seen, Worth

ROUNDS, NEAR = 100, 5e-3
"""The rule is applied at most so often, and no more once no division can be better by this part of the error."""
TRIFLE = 1e-5
"""Nobody is given less than this part of a line: what is planned is measured."""
HASTE = 1.5
"""Steps are longer than the rule's: measurements that help each other come closer only slowly."""
SHARPNESS = 12
"""The largest of several errors is approached by the sum of their powers of this degree."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A measurement that can be bought: an amount x of budget buys a precision of `precision` * x ** `power`."""

    population: int
    seen: Seen
    precision: float
    power: int = 1


@dataclass(frozen=True, slots=True)
class Share:
    """An amount that some offers, by their numbers, divide among them."""

    amount: float
    offers: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Market:
    """Everything that can be bought, and what is gained by it: the populations of a release together."""

    worths: tuple[Worth, ...]
    offers: tuple[Offer, ...]
    weights: tuple[tuple[float, ...], ...] = field(repr=False)
    """For each population and goal how much the variance of one of its cells matters."""
    worst: bool = False
    """Whether the largest of the weighted variances is to be small, rather than their sum."""

    def divide(self, shares: Sequence[Share], floors: Sequence[float]) -> Floats:
        """Amounts for all offers, with the least error: none is below its floor, as far as those fit its share."""
        least = self._least(shares, np.array(floors, float))
        amounts = np.zeros(len(self.offers))
        for share in shares:
            mine = list(share.offers)
            spare = share.amount - least[mine].sum()
            amounts[mine] = least[mine] + spare / len(mine)
        for _ in range(ROUNDS):
            error, falls = self.slopes(amounts)
            if self._gap(shares, amounts, falls, least) < NEAR * error:
                break
            for share in shares:
                places = np.array(share.offers, np.int64)
                amounts[places] = self._shared(share.amount, amounts[places], falls[places], least[places], places)
        return amounts

    def slopes(self, amounts: Floats) -> tuple[float, Floats]:
        """The error, and for each offer how fast it falls with the amount."""
        falls: dict[tuple[int, Seen], float] = {}
        error = 0.0
        for number, worth in enumerate(self.worths):
            bought = {
                offer.seen: offer.precision * float(amount) ** offer.power
                for offer, amount in zip(self.offers, amounts, strict=True)
                if offer.population == number
            }
            if bought:
                part, slopes = worth.slopes(bought, partial(self._weigh, number))
                error += part
                falls |= {(number, seen): slope for seen, slope in slopes.items()}
        per_amount = [
            falls[offer.population, offer.seen] * offer.precision * offer.power * float(amount) ** (offer.power - 1)
            for offer, amount in zip(self.offers, amounts, strict=True)
        ]
        return error, np.maximum(np.array(per_amount), 0.0)

    def _weigh(self, number: int, found: list[Floats]) -> list[Floats]:
        """How much every variance matters: each area's, or the largest of each goal's."""
        worth, weights = self.worths[number], []
        for goal, one, weight in zip(worth.goals, found, self.weights[number], strict=True):
            if self.worst:
                weights.append(weight * (weight * one) ** (SHARPNESS - 1))
            else:
                alike = worth.coordinates.cells(goal.margin.free)
                weights.append(np.broadcast_to(weight * alike * worth.areas(goal)[:, None], one.shape))
        return weights

    def _least(self, shares: Sequence[Share], floors: Floats) -> Floats:
        """What nobody is given less than. Floors that do not fit their share are given up together."""
        least = np.zeros(len(self.offers))
        for share in shares:
            mine = list(share.offers)
            trifle = np.full(len(mine), TRIFLE * share.amount / len(mine))
            wanted = np.maximum(floors[mine], trifle)
            least[mine] = wanted if wanted.sum() <= share.amount else trifle
        return least

    def _gap(self, shares: Sequence[Share], amounts: Floats, falls: Floats, least: Floats) -> float:
        """By how much another division can be better at most: all that is movable, where it is worth most."""
        gap = 0.0
        for share in shares:
            mine = list(share.offers)
            movable = amounts[mine] - least[mine]
            gap += float(falls[mine].max() * movable.sum() - (falls[mine] * movable).sum())
        return gap

    def _shared(self, total: float, amounts: Floats, falls: Floats, least: Floats, places: Integers) -> Floats:
        """A share divided anew, as if every measurement erred alone, but none below its floor."""
        powers = np.array([self.offers[number].power for number in places], float)
        steep = SHARPNESS if self.worst else 1
        step = amounts * falls ** (HASTE / (1 + powers * steep))
        low, high = 0.0, 2 * total / max(step.sum(), 1e-300)
        while np.maximum(least, high * step).sum() < total and high < 1e300:
            high *= 2
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if np.maximum(least, middle * step).sum() < total else (low, middle)
        found: Floats = np.maximum(least, low * step)
        return found
