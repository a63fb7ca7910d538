"""Audits: draws of every mechanism on neighbouring inputs stay below its price, come close to it, and betray faults.

Every draw goes through `measure` and real entropy, as in a release. How close an audit comes is asked for with five
standard errors to spare, so that a failure means something. The quick audits take 10^5 draws where that leaves room,
the slow ones 10^7. Selections are drawn one a call, about a tenth of a millisecond each, so they take 10^4 and 2 * 10^5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from mechanisms.accountant import gaussian_epsilon, state
from mechanisms.bounded_sum import BoundedSum
from mechanisms.charge import Charge
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.exponential_mechanism import ExponentialMechanism
from mechanisms.noise.laws import GaussianLaw, LaplaceLaw
from mechanisms.noise.scales import FEW, draw_each
from mechanisms.noisy_max import NoisyMax
from mechanisms.permute_and_flip import PermuteAndFlip
from mechanisms.quantile import Quantile
from mechanisms.randomised_response import RandomisedResponse
from mechanisms.randomness import Randomness
from mechanisms.sensitivity import RECORD, Counts, Relation, Responses, Scores, Sums, Unit
from tests.mechanisms.audit import (
    Draws,
    Integers,
    chance_at_least,
    chance_at_most,
    choose_event,
    epsilon_at_least,
    lower_bound,
)
from tests.mechanisms.fit import exponential_law, largest_loss, noisy_max_law, permute_and_flip_law

ADD_REMOVE, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE
DELTA = Fraction(1, 1000)
EPSILONS = (Fraction(1), Fraction(3))
RANDOM = Randomness()


@dataclass(frozen=True)
class Pair:
    """A mechanism on two neighbouring inputs, and the epsilon that it claims at delta."""

    first: Draws
    second: Draws
    claim: float
    delta: float = 0.0

    def seen(self, draws: int, **options: float) -> float:
        """The epsilon that shows from outside, as a part of the claim."""
        return epsilon_at_least(self.first, self.second, draws=draws, delta=self.delta, **options) / self.claim


Measure = Callable[[Integers], Integers]
"""Counts in, noisy counts out; every row is a table measured by itself."""


def tables(measure: Measure, counts: list[int], other: list[int], *, squared: bool = False) -> tuple[Draws, Draws]:
    """Tables noised with one scale, each told by its likelihood on the other counts against that on these.

    The log-likelihood ratio is the difference of distances from the counts, absolute for the Laplace law and squared
    for the Gaussian one, up to a factor and a constant.
    """
    these, those = np.array(counts), np.array(other)

    def likelihood(noisy: Integers) -> Integers:
        if squared:
            return noisy @ (those - these)
        return (np.abs(noisy - these) - np.abs(noisy - those)).sum(axis=1)

    return tuple(lambda draws, held=held: likelihood(measure(np.tile(held, (draws, 1)))) for held in (these, those))  # type: ignore[return-value]


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
    parts = {
        level: tables(released(bought[level]), counts, [counts[0] + 1, *counts[1:]])
        for level, (counts, _) in levels.items()
    }

    def likelihood(side: int) -> Draws:
        return lambda draws: sum(k * parts[level][side](draws) for level, (_, k) in levels.items())  # type: ignore[return-value]

    return Pair(likelihood(0), likelihood(1), float(state(charges, None).published.epsilon or 0))


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
    """Cells of a thousand scales, from narrow to wide; each moves by what costs epsilon at its own scale."""

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


@dataclass(frozen=True)
class Case:
    """A pair, and the part of its claim that so many draws show."""

    name: str
    pair: Callable[[], Pair]
    quick: tuple[int, float]
    slow: tuple[int, float]


def pure_cases(epsilon: Fraction) -> list[Case]:
    """Every pure mechanism that draws many outputs in one call."""
    one, many, household = Counts(one_cell=True), Counts(), Unit(4)
    e = epsilon
    single, joint = (100_000, 0.90), (400_000, 0.90)
    best, good = (10**7, 0.99), (10**7, 0.985)
    return [
        Case("a count", lambda: laplace(e, one, RECORD, ADD_REMOVE, counts=[0], other=[1]), single, best),
        Case("a randomised answer of two", lambda: responses(e, 2), single, best),
        Case("a randomised answer of four", lambda: responses(e, 4), single, best),
        Case(
            "a record that moves to another cell",
            lambda: laplace(e, many, RECORD, REPLACE, counts=[7, 3, 0], other=[6, 4, 0]),
            joint,
            best,
        ),
        Case(
            "a household of four in one cell",
            lambda: laplace(e, many, household, ADD_REMOVE, counts=[0, 9], other=[4, 9]),
            joint,
            best,
        ),
        Case("a hierarchy of three levels", lambda: hierarchy(e), joint, good),
        Case("a clipped sum", lambda: bounded_sum(e), joint, (10**6, 0.96)),
        Case("a thousand scales", lambda: scales(e), joint, best),
    ]


def gaussian_cases() -> list[Case]:
    """The discrete Gaussian against its exact epsilon at delta. Rare events decide, so it takes more draws."""
    one, many = Counts(one_cell=True), Counts()
    quick, slow = (400_000, 0.60), (2 * 10**7, 0.95)
    return [
        Case("a count", lambda: gaussian(4, one, RECORD, ADD_REMOVE, counts=[0], other=[1]), quick, slow),
        Case("a moving record", lambda: gaussian(8, many, RECORD, REPLACE, counts=[2, 5], other=[3, 4]), quick, slow),
        Case("a household", lambda: gaussian(36, many, Unit(3), ADD_REMOVE, counts=[2, 5], other=[2, 8]), quick, slow),
        Case("eighty variances", variances, quick, slow),
    ]


CASES = [pytest.param(case, id=f"{case.name}, epsilon {e}") for e in EPSILONS for case in pure_cases(e)]
CASES += [pytest.param(case, id=f"{case.name}, Gaussian") for case in gaussian_cases()]


@pytest.mark.parametrize("case", CASES)
def test_what_shows_from_outside_is_below_the_claim_and_close_to_it(case: Case) -> None:
    draws, least = case.quick
    assert least <= case.pair().seen(draws) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_ten_million_draws_show_nearly_all_of_the_claim(case: Case) -> None:
    draws, least = case.slow
    assert least <= case.pair().seen(draws) <= 1
