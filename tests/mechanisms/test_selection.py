"""Selection: the exact law of each mechanism, its guarantee on all small neighbours, and scores at the edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, product
from math import exp, log
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms import noisy_max
from mechanisms.exponential_mechanism import ExponentialMechanism
from mechanisms.noise.integers import LARGEST
from mechanisms.noise.seeded import SeededBits
from mechanisms.noisy_max import NoisyMax
from mechanisms.permute_and_flip import PermuteAndFlip
from mechanisms.prices import pure_to_rho
from mechanisms.scores import coins_for_gaps, gaps_below_best
from mechanisms.sensitivity import RECORD, Relation, Scores, Sensitivity
from tests.mechanisms.fit import (
    IMPLAUSIBLE,
    exponential_law,
    fit,
    largest_loss,
    noisy_max_law,
    permute_and_flip_law,
    renyi_over_order,
)

ONE = Sensitivity(Fraction(1), Fraction(1))
EACH = pytest.mark.parametrize("kind", [ExponentialMechanism, PermuteAndFlip, NoisyMax])
LAWS = {ExponentialMechanism: exponential_law, PermuteAndFlip: permute_and_flip_law, NoisyMax: noisy_max_law}
DRAWS = 5_000


def exact_law(kind: type, scores: Sequence[int], scale: float) -> list[float]:
    return LAWS[kind](scores, scale)


def selected(mechanism: Any, scores: Sequence[int], draws: int = DRAWS, seed: int = 1) -> list[int]:
    bits, array = SeededBits(seed), np.array(scores)
    return [mechanism.answer(array, bits) for _ in range(draws)]


# The law.


@EACH
@pytest.mark.parametrize("scores", [[10, 9, 9, 7, 3, 0], [5, 5, 5], [0, -2], [-4, -4, -1, -4]])
def test_a_candidate_is_selected_with_exactly_its_probability(kind: type, scores: list[int]) -> None:
    places = selected(kind(Fraction(8, 3)), scores)
    assert fit(places, exact_law(kind, scores, 8 / 3)) > IMPLAUSIBLE


@EACH
def test_a_law_that_is_a_tenth_off_would_be_noticed(kind: type) -> None:
    scores = [12, 8, 0]
    places = selected(kind(Fraction(4)), scores, draws=16_000)
    assert fit(places, exact_law(kind, scores, 4)) > IMPLAUSIBLE
    assert fit(places, exact_law(kind, scores, 3.6)) < IMPLAUSIBLE
    assert fit(places, exact_law(kind, scores, 4.4)) < IMPLAUSIBLE


@pytest.mark.parametrize("kind", [ExponentialMechanism, PermuteAndFlip])
def test_a_scale_of_many_digits_is_taken_as_it_is(kind: type) -> None:
    scores, scale = [3, 2, 0], Fraction(10**13 + 1, 7 * 10**12 + 3)
    assert fit(selected(kind(scale), scores), exact_law(kind, scores, float(scale))) > IMPLAUSIBLE


@EACH
def test_only_distances_between_scores_matter(kind: type) -> None:
    mechanism, scores = kind(Fraction(2)), np.array([4, 7, 6])
    answers = [[mechanism.answer(scores + shift, SeededBits(n)) for n in range(50)] for shift in (0, -9, 10**15)]
    assert answers[0] == answers[1] == answers[2]


@EACH
def test_one_candidate_is_always_selected_and_none_is_refused(kind: type) -> None:
    mechanism = kind(Fraction(2))
    assert mechanism.answer(np.array([-5]), SeededBits(1)) == 0
    for wrong in (np.array([], np.int64), np.zeros((2, 2), np.int64), np.array(3)):
        with pytest.raises(ValueError, match="one integer for each candidate"):
            mechanism.answer(wrong, SeededBits(1))


def test_many_candidates_are_proposed_in_batches_until_one_is_kept() -> None:
    scores = np.zeros(20_000, np.int64)
    scores[12_345] = 10_000
    assert ExponentialMechanism(Fraction(1)).answer(scores, SeededBits(2)) == 12_345


# The guarantee, on all neighbours of small score vectors.


def neighbours(scores: Sequence[int], moved: int) -> list[tuple[int, ...]]:
    changes = product(range(-moved, moved + 1), repeat=len(scores))
    return [tuple(s + c for s, c in zip(scores, change, strict=True)) for change in changes]


@EACH
@pytest.mark.parametrize(("scores", "moved"), [((0, 0, 0), 1), ((2, 0, 1), 1), ((0, 3), 2), ((1, 1, 4, 0), 1)])
def test_no_neighbour_is_told_apart_better_than_the_prices_say(kind: type, scores: Any, moved: int) -> None:
    mechanism = kind(Fraction(2))
    sensitivity = Sensitivity(Fraction(moved), Fraction(moved**2))
    law = exact_law(kind, scores, 2)
    others = [exact_law(kind, other, 2) for other in neighbours(scores, moved)]
    losses = [largest_loss(law, other) for other in others]
    assert max(losses) <= float(mechanism.epsilon(sensitivity)) + 1e-9
    assert max(renyi_over_order(law, other) for other in others) <= float(mechanism.rho(sensitivity)) + 1e-9


@EACH
def test_nearly_all_of_the_pure_price_can_be_lost(kind: type) -> None:
    scores, other = [0] * 200, [1] * 199 + [-1]
    if kind is PermuteAndFlip:  # 200! orders are too many; two candidates come close as well
        scores, other = [9, 0], [8, 1]
    assert largest_loss(exact_law(kind, scores, 2), exact_law(kind, other, 2)) > 0.8


def test_the_price_of_bounded_range_would_not_cover_permute_and_flip() -> None:
    mechanism = PermuteAndFlip(Fraction(40))
    epsilon = float(mechanism.epsilon(ONE))
    found = renyi_over_order(permute_and_flip_law([0, 0], 40), permute_and_flip_law([1, -1], 40))
    assert 3 * epsilon**2 / 8 < found <= float(mechanism.rho(ONE))
    assert renyi_over_order(exponential_law([0, 0], 40), exponential_law([1, -1], 40)) <= epsilon**2 / 8


def test_a_sharp_exponential_mechanism_is_priced_like_any_pure_one() -> None:
    assert ExponentialMechanism(Fraction(2)).rho(ONE) == Fraction(1, 8)
    assert ExponentialMechanism(Fraction(1, 8)).rho(ONE) == pure_to_rho(Fraction(16)) < 32


def test_half_steps_are_priced_as_whole_ones_by_noisy_max_alone() -> None:
    third = Scores(quantile=Fraction(2, 3)).sensitivity(RECORD, Relation.ADD_REMOVE)
    assert NoisyMax(Fraction(2)).epsilon(third) == 1
    assert (
        ExponentialMechanism(Fraction(2)).epsilon(third) == PermuteAndFlip(Fraction(2)).epsilon(third) == Fraction(2, 3)
    )


# Utility.


@given(st.lists(st.integers(0, 20), min_size=2, max_size=6), st.fractions(Fraction(1, 2), 12))
def test_permute_and_flip_loses_no_more_than_the_exponential_mechanism(scores: list[int], scale: Fraction) -> None:
    gaps = [max(scores) - score for score in scores]
    losses = [
        sum(gap * chance for gap, chance in zip(gaps, law(scores, float(scale)), strict=True))
        for law in (permute_and_flip_law, exponential_law)
    ]
    assert losses[0] <= losses[1] + 1e-9


@given(st.lists(st.integers(0, 200), min_size=1, max_size=40), st.floats(0.1, 6))
def test_a_bad_score_is_as_improbable_as_the_utility_bound_says(scores: list[int], surprise: float) -> None:
    epsilon = ExponentialMechanism(Fraction(8)).epsilon(ONE)
    worst = max(scores) - 2 / float(epsilon) * (log(len(scores)) + surprise)
    chances = exponential_law(scores, 8)
    assert sum(chance for score, chance in zip(scores, chances, strict=True) if score <= worst) <= exp(-surprise)


# Edges of 64 bits.

LEAST = -(2**63)


@EACH
def test_scores_at_the_edges_of_64_bits_are_compared_without_a_wrap(kind: type) -> None:
    scores = [LEAST, LARGEST, LARGEST - 3, LEAST + 5]
    places = selected(kind(Fraction(4)), scores, draws=2000)
    chances = exact_law(kind, [0, 3], 4)
    assert set(places) == {1, 2}
    if kind is not NoisyMax:  # the order of the two decides ties
        assert fit([2 - place for place in places], chances) > IMPLAUSIBLE


def test_gaps_are_exact_whatever_their_size() -> None:
    assert gaps_below_best(np.array([LEAST, 0, LARGEST])).tolist() == [2**64 - 1, LARGEST, 0]
    assert gaps_below_best(np.array([3, -2, 5])).tolist() == [2, 7, 0]


@given(st.lists(st.integers(LEAST, LARGEST), min_size=1, max_size=8))
def test_every_gap_is_the_best_score_less_the_score(scores: list[int]) -> None:
    assert gaps_below_best(np.array(scores)).tolist() == [max(scores) - score for score in scores]


@pytest.mark.parametrize(
    "scale", [Fraction(2**64, 3), Fraction(2**63), Fraction(10**25, 10**6 + 1), Fraction(2**62 + 1)]
)
@pytest.mark.parametrize("kind", [ExponentialMechanism, PermuteAndFlip])
def test_a_scale_as_wide_as_the_scores_keeps_the_law_exact(kind: type, scale: Fraction) -> None:
    scores = [LEAST, 0, LARGEST]
    gaps = [float((score - LARGEST) / scale) for score in scores]
    assert fit(selected(kind(scale), scores, draws=2000), exact_law(kind, gaps, 1)) > IMPLAUSIBLE  # type: ignore[arg-type]


def test_coins_for_gaps_are_right_on_both_sides_of_64_bits() -> None:
    for gaps, scale in (
        ([2**61], Fraction(2**63, 9)),
        ([2**64 - 1], Fraction(2**64)),
        ([3], Fraction(10**15, 10**14 + 1)),
    ):
        array = np.array(gaps * 10_000, object if gaps[0] > LARGEST else np.int64)
        chance = exp(-gaps[0] / scale)
        assert fit(coins_for_gaps(array, scale, SeededBits(8)), [1 - chance, chance]) > IMPLAUSIBLE


# Ties and unbounded noise of the noisy maximum.


def scripted(*noise: int) -> Callable[..., np.ndarray]:
    """Draws that were written down, in place of the sampler."""
    left = list(noise)
    return lambda law, count, bits: np.array([left.pop(0) for _ in range(count)], np.int64)


def test_a_tie_goes_to_the_first_in_the_declared_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy_max, "draw", scripted(2, 5, 0, 1))
    assert NoisyMax(Fraction(1)).answer(np.array([3, 0, 5, 4]), SeededBits(0)) == 0


@pytest.mark.parametrize(
    ("draws", "place"),
    [
        ((LARGEST, LARGEST, 3, 4), 1),  # 3 and 4 beyond the limit
        ((LARGEST, LARGEST, 4, 4), 0),
        ((LARGEST, LARGEST, -9, LARGEST, -1, 2, LARGEST, 3), 1),  # negative draws are passed over, full ones added
        ((-LARGEST, -LARGEST, 3, 4), 0),
        ((LARGEST - 1, LARGEST, 0), 1),
        ((2**62, -(2**62)), 0),
    ],
)
def test_a_draw_at_the_limit_is_drawn_on_beyond_it(
    draws: tuple[int, ...], place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noisy_max, "draw", scripted(*draws))
    assert NoisyMax(Fraction(1)).answer(np.array([0, 0]), SeededBits(0)) == place


def test_noise_wider_than_64_bits_keeps_its_law() -> None:
    """In units of 2^62 it is a rounded continuous law, far finer than a test can see."""
    mechanism, half = NoisyMax(Fraction(2**63)), 2**62
    noise = mechanism._noise(15_000, SeededBits(9))
    coarse = np.array([min(max(round(Fraction(x, half)), -20), 20) + 20 for x in noise.tolist()])
    edges = [Fraction(2 * place - 1, 4) for place in range(-20, 22)]
    below = [exp(float(edge)) / 2 if edge < 0 else 1 - exp(-float(edge)) / 2 for edge in edges]
    below[0], below[-1] = 0, 1
    chances = [high - low for low, high in pairwise(below)]
    assert max(abs(x) for x in noise.tolist()) > 2 * LARGEST
    assert fit(coarse, chances) > IMPLAUSIBLE
