"""What the textbooks say, reproduced: by exact laws where they are known, by simulation where they are not.

Dwork and Roth, The Algorithmic Foundations of Differential Privacy (2014), sections 3.2 to 3.4 and 12.1.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp, log, sqrt
from typing import Any

import numpy as np
import pytest

from mechanisms.accounting.conversion import group_approximate, group_concentrated, group_pure
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.exponential_mechanism import ExponentialMechanism
from mechanisms.noise.laws import LaplaceLaw
from mechanisms.noise.seeded import SeededBits
from mechanisms.prices import GRAIN
from mechanisms.randomised_response import RandomisedResponse
from mechanisms.sensitivity import RECORD, Counts, Relation, Responses, Scores, Unit
from tests.mechanisms.fit import exponential_law

PERSON = Counts().sensitivity(RECORD, Relation.ADD_REMOVE)


# Randomised response.


def test_the_coin_of_a_half_a_quarter_and_a_quarter_is_ln_3_private() -> None:
    """Heads: the truth. Tails: a second coin says yes or no."""
    truth = Fraction(1, 2) + Fraction(1, 4)
    coin = RandomisedResponse(2, truth)
    assert (coin.truth, coin.lie, coin.odds) == (Fraction(3, 4), Fraction(1, 4), 3)
    epsilon = coin.epsilon(Responses().sensitivity(RECORD, Relation.REPLACE))
    assert 0 <= epsilon - Fraction("1.098612288668109691395245") < GRAIN


# The Laplace mechanism.


def test_noise_of_scale_10_exceeds_10_with_probability_1_over_e() -> None:
    step = Fraction(1, 1000)
    law = LaplaceLaw(10 / step)
    assert 2 * law.tail(int(10 / step) + 1) == pytest.approx(exp(-1), abs=1e-3)
    noise = DiscreteLaplace(10 / step).answer(np.zeros(200_000, np.int64), SeededBits(1))
    found = float((np.abs(noise) > 10 / step).mean())
    assert abs(found - exp(-1)) < 5 * sqrt(exp(-1) * (1 - exp(-1)) / 200_000)
    assert abs(found - exp(-1 / 0.9)) > 5 * sqrt(exp(-1) / 200_000)  # and a tenth less noise would be noticed


def all_names_within(scale: Fraction, tables: int) -> float:
    """In how many of so many tables of 10,000 first names no count is off by more than 12.2."""
    mechanism, bits = DiscreteLaplace(scale), SeededBits(2)
    errors = (int(np.abs(mechanism.answer(np.zeros(10_000, np.int64), bits)).max()) for _ in range(tables))
    return sum(error <= 12.2 for error in errors) / tables


def test_ten_thousand_first_names_are_all_within_12_2_with_probability_95_percent() -> None:
    mechanism = DiscreteLaplace.costing(PERSON, epsilon=Fraction(1))
    assert log(10_000 / 0.05) == pytest.approx(12.2, abs=0.01)
    exact = (1 - 2 * mechanism.law.tail(13)) ** 10_000
    assert exact == pytest.approx(0.9675, abs=1e-4)
    assert abs(all_names_within(Fraction(1), 300) - exact) < 5 * sqrt(exact * (1 - exact) / 300)
    assert all_names_within(Fraction(11, 10), 300) < 0.95  # a tenth more noise, and the promise is broken


def test_a_table_by_sex_and_hair_colour_costs_epsilon_and_not_twelve_epsilon() -> None:
    """A person is in one of its 12 cells, so all are measured for the price of one."""
    mechanism = DiscreteLaplace.costing(PERSON, epsilon=Fraction(1, 10))
    noisy = mechanism.answer(np.zeros((2, 6), np.int64), SeededBits(3))
    assert noisy.size == 12
    assert mechanism.epsilon(PERSON) == Fraction(1, 10)
    asked_one_by_one = Counts(answers=12).sensitivity(RECORD, Relation.ADD_REMOVE)
    assert mechanism.epsilon(asked_one_by_one) == Fraction(12, 10)


def test_every_candidate_is_within_the_union_bound() -> None:
    """With probability 1 - beta no one of k counts is off by more than ln(k / beta) / epsilon, rounded to whole."""
    for cells, beta, epsilon in ((10, 0.1, 2), (1000, 0.01, 1), (50, 0.05, Fraction(1, 10))):
        law = LaplaceLaw(Fraction(1) / epsilon)
        beyond = int(log(cells / beta) / float(epsilon)) + 1
        assert 1 - (1 - 2 * law.tail(beyond)) ** cells <= beta


# Groups.


@pytest.mark.parametrize("members", [1, 2, 5])
def test_a_group_of_k_costs_k_times_epsilon_and_k_squared_times_rho(members: int) -> None:
    family = Counts().sensitivity(Unit(members), Relation.ADD_REMOVE)
    laplace, gaussian = DiscreteLaplace(Fraction(8)), DiscreteGaussian(Fraction(8))
    assert laplace.epsilon(family) == group_pure(laplace.epsilon(PERSON), members) == Fraction(members, 8)
    assert gaussian.rho(family) == group_concentrated(gaussian.rho(PERSON), members) == Fraction(members**2, 16)


def test_a_group_of_k_has_k_epsilon_and_a_delta_that_grows_with_it() -> None:
    epsilon, delta = group_approximate(0.5, Fraction(1, 10**6), size=3)
    assert epsilon == pytest.approx(1.5)
    assert float(delta) == pytest.approx(3 * exp(1.0) * 1e-6)


# The exponential mechanism.


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_the_best_of_many_is_missed_by_more_than_its_bound_only_with_probability_e_to_the_minus_t(epsilon: Any) -> None:
    delta = Scores().sensitivity(RECORD, Relation.ADD_REMOVE)
    mechanism = ExponentialMechanism.costing(delta, epsilon=epsilon)
    assert mechanism.scale == 2 / epsilon
    scores = [*range(0, 101, 4), *[40] * 74]
    chances, optimum = exponential_law(scores, float(mechanism.scale)), max(scores)
    for t in (0.5, 1, 2, 4):
        bound = optimum - 2 / float(epsilon) * (log(len(scores)) + t)
        assert sum(chance for score, chance in zip(scores, chances, strict=True) if score <= bound) <= exp(-t)


def test_one_of_two_diseases_that_is_more_common_is_told_almost_surely() -> None:
    """Counts 0 and c: the rarer one is told with probability at most 2 e^(-epsilon c / 2)."""
    mechanism = ExponentialMechanism.costing(Scores().sensitivity(RECORD, Relation.ADD_REMOVE), epsilon=Fraction(1, 2))
    for count in (4, 20, 60):
        wrong = exponential_law([0, count], float(mechanism.scale))[0]
        assert wrong <= 2 * exp(-count * 0.5 / 2)


# Local or central: randomised response against Laplace noise.


def root_mean_square(errors: list[float]) -> float:
    return sqrt(sum(error**2 for error in errors) / len(errors))


def error_of_responses(people: int, repeats: int = 250) -> float:
    """The error of a share, estimated from randomised answers at epsilon = ln 3."""
    coin, bits = RandomisedResponse(2, Fraction(3, 4)), SeededBits(people)
    codes = (np.arange(people) % 10 < 3).astype(np.int64)
    errors = []
    for _ in range(repeats):
        answers = np.bincount(coin.answer(codes, bits), minlength=2)
        errors.append(float(coin.estimate(answers)[1] - int(codes.sum())) / people)
    return root_mean_square(errors)


def error_of_laplace(people: int, repeats: int = 4000) -> float:
    """The error of the same share from one noisy count at no larger epsilon."""
    noise = DiscreteLaplace.costing(PERSON, epsilon=Fraction(1098, 1000)).answer(
        np.zeros(repeats, np.int64), SeededBits(people)
    )
    return root_mean_square((noise / people).tolist())


def test_the_error_of_a_mean_falls_with_n_in_the_middle_and_with_its_root_at_the_source() -> None:
    sizes = (100, 1_600, 25_600)
    local, central = ([error(size) for size in sizes] for error in (error_of_responses, error_of_laplace))
    for smaller, larger in ((0, 1), (1, 2)):
        assert local[smaller] / local[larger] == pytest.approx(4, rel=0.25)
        assert central[smaller] / central[larger] == pytest.approx(16, rel=0.1)
    for size, found in zip(sizes, local, strict=True):
        stated = RandomisedResponse(2, Fraction(3, 4)).variance(3 * size // 10, respondents=size)
        assert found == pytest.approx(sqrt(float(stated)) / size, rel=0.2)
    assert local[2] / central[2] > 100
