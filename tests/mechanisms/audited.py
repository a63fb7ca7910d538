"""What is audited: mechanisms on neighbouring inputs, drawn as a release draws, beside the epsilon that is charged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from mechanisms.accountant import gaussian_epsilon, state
from mechanisms.bounded_sum import BoundedSum
from mechanisms.charge import Charge
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.noise.laws import GaussianLaw, LaplaceLaw
from mechanisms.noise.scales import FEW, draw_each
from mechanisms.randomised_response import RandomisedResponse
from mechanisms.randomness import Randomness
from mechanisms.sensitivity import RECORD, Counts, Relation, Responses, Sums, Unit
from tests.mechanisms.audit import Draws, Integers, epsilon_at_least

ADD_REMOVE, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE
DELTA = Fraction(1, 1000)
RANDOM = Randomness()


@dataclass(frozen=True)
class Pair:
    """A mechanism on two neighbouring inputs, and the epsilon that it claims at delta."""

    first: Draws
    second: Draws
    claim: float
    delta: float = 0.0

    def seen(self, draws: int) -> float:
        """The epsilon that shows from outside, as a part of the claim."""
        return epsilon_at_least(self.first, self.second, draws=draws, delta=self.delta) / self.claim


Measure = Callable[[Integers], Integers]
"""Counts in, noisy counts out; every row is a table measured by itself."""


def tables(measure: Measure, counts: list[int], other: list[int], *, squared: bool = False) -> tuple[Draws, Draws]:
    """Noisy tables on either input: several cells by their likelihood, a single one as it is, lest a fault hide."""
    these, those = np.array(counts), np.array(other)

    def told(held: Integers, draws: int) -> Integers:
        noisy = measure(np.tile(held, (draws, 1)))
        return noisy[:, 0] if len(held) == 1 else likelihood(noisy, these, those, squared=squared)

    return partial(told, these), partial(told, those)


def likelihood(noisy: Integers, these: Integers, those: Integers, *, squared: bool = False) -> Integers:
    """The logarithm of how much likelier noisy tables are on those counts than on these, in units of its own.

    It is the difference of their distances, absolute for the Laplace law and squared for the Gaussian one.
    """
    if squared:
        return noisy @ (those - these)
    return (np.abs(noisy - these) - np.abs(noisy - those)).sum(axis=1)


def released(mechanism: Any) -> Measure:
    """The way of a release: the mechanism's own `measure`, with fresh entropy."""
    return lambda counts: mechanism.measure(counts, RANDOM)


def laplace(
    epsilon: Fraction, shape: Counts, unit: Unit, relation: Relation, *, counts: list[int], other: list[int]
) -> Pair:
    """A table with discrete Laplace noise, bought for epsilon."""
    mechanism = DiscreteLaplace.costing(shape.sensitivity(unit, relation), epsilon=epsilon)
    charge = Charge("table", mechanism, shape, unit, relation)
    return Pair(*tables(released(mechanism), counts, other), float(charge.epsilon or 0))


def gaussian(
    variance: int, shape: Counts, unit: Unit, relation: Relation, *, counts: list[int], other: list[int]
) -> Pair:
    """A table with discrete Gaussian noise; its claim is the accountant's exact epsilon at delta."""
    mechanism = DiscreteGaussian(Fraction(variance))
    exact = state([Charge("table", mechanism, shape, unit, relation)], DELTA).price("exact")
    draws = tables(released(mechanism), counts, other, squared=True)
    return Pair(*draws, float(exact.epsilon or 0), float(DELTA))


def responses(epsilon: Fraction, choices: int) -> Pair:
    """One answer of a record with code 0 or 1."""
    shape = Responses()
    mechanism = RandomisedResponse.costing(choices, shape.sensitivity(RECORD, REPLACE), epsilon=epsilon)
    charge = Charge("answers", mechanism, shape, RECORD, REPLACE)
    first, second = (lambda draws, code=code: released(mechanism)(np.full(draws, code)) for code in (0, 1))
    return Pair(first, second, float(charge.epsilon or 0))


def hierarchy(epsilon: Fraction) -> Pair:
    """Whole, regions and areas, measured one after another with half, a quarter and a quarter of epsilon."""
    shape, levels = Counts(), {"whole": ([4], 2), "region": ([3, 1], 1), "area": ([2, 1, 1, 0], 1)}
    sensitivity = shape.sensitivity(RECORD, ADD_REMOVE)
    bought = {level: DiscreteLaplace.costing(sensitivity, epsilon=epsilon * k / 4) for level, (_, k) in levels.items()}
    charges = [Charge(level, bought[level], shape, RECORD, ADD_REMOVE, level=level) for level in levels]

    def measured(level: str, draws: int, *, more: int) -> Integers:
        counts, quarters = levels[level]
        these, those = np.array(counts), np.array([counts[0] + 1, *counts[1:]])
        noisy = released(bought[level])(np.tile(those if more else these, (draws, 1)))
        return quarters * likelihood(noisy, these, those)

    first, second = (
        lambda draws, more=more: sum(measured(level, draws, more=more) for level in levels) for more in (0, 1)
    )
    return Pair(first, second, float(state(charges, None).published.epsilon or 0))


def bounded_sum(epsilon: Fraction) -> Pair:
    """Sums of values clipped to -2 .. 5; the neighbour has one record more, far beyond the clip. Each cell is a run."""
    shape = Sums(-2, 5)
    noise = DiscreteLaplace.costing(shape.sensitivity(RECORD, ADD_REMOVE), epsilon=epsilon)
    charge = Charge("sum", noise, shape, RECORD, ADD_REMOVE)

    def sums(values: list[int]) -> Draws:
        def draw(draws: int) -> Integers:
            ticks, cells = np.tile(values, draws), np.repeat(np.arange(draws), len(values))
            return BoundedSum(shape).measure(ticks, cells, size=draws, noise=noise, randomness=RANDOM)

        return draw

    return Pair(sums([3, -7]), sums([3, -7, 1000]), float(charge.epsilon or 0))


def scales(epsilon: Fraction) -> Pair:
    """Cells of a thousand scales, from narrow to wide; each moves by what costs epsilon at its own scale.

    The audit sees their average: a fault at one scale among the thousand would hide.
    """

    def cells(draws: int, *, moved: int) -> Integers:
        steps = 1 + np.arange(draws) % 1000
        above, below = steps * epsilon.denominator, np.full(draws, epsilon.numerator)
        noisy = moved * steps + draw_each(LaplaceLaw, above, below, RANDOM.bits())
        return 64 * (np.abs(noisy) - np.abs(noisy - steps)) // steps

    return Pair(lambda draws: cells(draws, moved=0), lambda draws: cells(draws, moved=1), float(epsilon))


def variances() -> Pair:
    """Cells of more variances than have tables of their own, (2 d)^2 for a move by d: the largest exact epsilon."""
    steps_of = np.arange(1, FEW + 17)
    rhos = {int(d): Fraction(1, 8 * int(d) ** 2) for d in steps_of}
    claim = max(gaussian_epsilon(rho, DELTA, shift=d).epsilon for d, rho in rhos.items())

    def cells(draws: int, *, moved: int) -> Integers:
        steps = steps_of[np.arange(draws) % len(steps_of)]
        noisy = moved * steps + draw_each(GaussianLaw, 4 * steps**2, np.ones(draws, np.int64), RANDOM.bits())
        return 16 * noisy // steps

    return Pair(lambda draws: cells(draws, moved=0), lambda draws: cells(draws, moved=1), claim, float(DELTA))


def selections(mechanism: Any, held: list[int]) -> Draws:
    """As many selections as asked for, each a call of its own."""
    array = np.array(held)
    return lambda draws: np.array([mechanism.measure(array, RANDOM) for _ in range(draws)])
