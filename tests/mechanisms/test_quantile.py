"""A quantile on a grid: its law, how far records move its scores, and grids with everyone or no one on them."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.exponential_mechanism import ExponentialMechanism
from mechanisms.noise.seeded import SeededBits
from mechanisms.quantile import Quantile
from mechanisms.randomness import Randomness
from mechanisms.sensitivity import RECORD, Relation, Scores, Unit
from tests.mechanisms.fit import IMPLAUSIBLE, exponential_law, fit

QUANTILES = [Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(2, 3), Fraction(1)]
MEDIAN = Quantile(Fraction(1, 2), ExponentialMechanism(Fraction(4)))


def quantile(q: Fraction, scale: Fraction = Fraction(4)) -> Quantile:
    return Quantile(q, ExponentialMechanism(scale))


def selected(what: Quantile, counts: list[int], draws: int = 4000) -> list[int]:
    bits, array = SeededBits(1), np.array(counts)
    return [what.answer(array, bits) for _ in range(draws)]


def nearest_rank_distance(values: list[int], point: int, q: Fraction) -> Fraction:
    """From the words: of all ranks that the point has, the one nearest to q * n, and how far it is from it."""
    below, here = sum(value < point for value in values), sum(value == point for value in values)
    wanted = q * len(values)
    nearest = min(max(wanted, below), below + here)
    return abs(nearest - wanted)


# Scores.


@pytest.mark.parametrize("q", QUANTILES)
@given(values=st.lists(st.integers(0, 4), max_size=12))
def test_a_score_is_the_distance_of_the_nearest_rank_of_a_point(q: Fraction, values: list[int]) -> None:
    counts = np.bincount(np.array(values, np.int64), minlength=5)
    distances = quantile(q).distances(counts)
    expected = [q.denominator * nearest_rank_distance(values, point, q) for point in range(5)]
    assert distances.tolist() == expected


@pytest.mark.parametrize("q", QUANTILES)
def test_no_record_moves_a_score_further_than_the_law_says(q: Fraction) -> None:
    """All counts of up to 3 on 3 points; a record comes or goes, or is exchanged for another or for none."""
    tables = list(product(range(4), repeat=3))
    distances = {table: quantile(q).distances(np.array(table)) for table in tables}
    places = np.eye(3, dtype=np.int64)
    furthest = {Relation.ADD_REMOVE: 0, Relation.REPLACE: 0}
    for table in tables:
        arrivals = [tuple(np.add(table, place)) for place in places]
        reached = [other for other in arrivals if other in distances]
        for relation, start in ((Relation.ADD_REMOVE, [table]), (Relation.REPLACE, [table, *reached])):
            pairs = product(start, reached)
            moves = [int(np.abs(distances[one] - distances[other]).max()) for one, other in pairs]
            furthest[relation] = max([furthest[relation], *moves])
    for relation, moved in furthest.items():
        declared = Scores(quantile=q).sensitivity(RECORD, relation).l1
        assert Fraction(moved, q.denominator) <= declared
        assert Scores(quantile=q).sensitivity(Unit(3), relation).l1 == 3 * declared
    assert Fraction(furthest[Relation.ADD_REMOVE], q.denominator) == max(q, 1 - q)


def test_where_half_of_all_share_one_value_it_is_their_median() -> None:
    assert MEDIAN.distances(np.array([0, 0, 100, 0])).tolist() == [100, 100, 0, 100]
    assert MEDIAN.distances(np.array([49, 0, 51, 0])).tolist() == [2, 2, 0, 100]


# The law.


@pytest.mark.parametrize("q", QUANTILES)
def test_a_point_is_selected_with_exactly_its_probability(q: Fraction) -> None:
    counts, what = [3, 0, 9, 2, 1], quantile(q)
    scores = [-int(distance) for distance in what.distances(np.array(counts))]
    assert fit(selected(what, counts), exponential_law(scores, 4 * q.denominator)) > IMPLAUSIBLE


def test_a_scale_that_is_a_tenth_off_would_be_noticed() -> None:
    counts = [10, 4, 0, 6, 20]
    places = selected(MEDIAN, counts, draws=15_000)
    scores = [-int(distance) for distance in MEDIAN.distances(np.array(counts))]
    assert fit(places, exponential_law(scores, 8)) > IMPLAUSIBLE
    assert fit(places, exponential_law(scores, 7.2)) < IMPLAUSIBLE
    assert fit(places, exponential_law(scores, 8.8)) < IMPLAUSIBLE


def test_without_records_every_point_is_equally_probable() -> None:
    assert fit(selected(MEDIAN, [0] * 6), [1 / 6] * 6) > IMPLAUSIBLE


def test_with_many_records_the_quantile_itself_is_selected() -> None:
    counts = np.full(1000, 10**6)
    for q, place in ((Fraction(1, 10), 99), (Fraction(1, 2), 499), (Fraction(9, 10), 899)):
        assert quantile(q).answer(counts, SeededBits(2)) in (place, place + 1)


def test_counts_beyond_64_bits_together_keep_the_law() -> None:
    counts = np.array([2**62, 2**62 + 10, 2**62])
    what = quantile(Fraction(1, 3))
    assert what.distances(counts).tolist() == [10, 0, 3 * 2**62 + 20]
    places = selected(what, counts.tolist())
    assert fit(places, exponential_law([-10, 0, -(10**6)], 12)) > IMPLAUSIBLE


def test_a_quantile_of_many_digits_is_taken_as_it_is() -> None:
    what = quantile(Fraction(123456789, 10**12 + 39))
    assert what.distances(np.array([10**8, 0])).tolist()[0] == 0
    assert what.answer(np.array([10**8, 0]), SeededBits(1)) == 0


# What is refused.


@pytest.mark.parametrize("wrong", [0.5, 1, Fraction(3, 2), Fraction(-1, 2)])
def test_a_quantile_is_a_fraction_between_0_and_1(wrong: Any) -> None:
    with pytest.raises(ValueError, match="Fraction between 0 and 1"):
        quantile(wrong)


def test_counts_are_exact_and_refusals_quote_none_of_them() -> None:
    with pytest.raises(ValueError, match="not negative") as refusal:
        MEDIAN.measure(np.array([71, -71]), Randomness())
    assert "71" not in str(refusal.value)
    for wrong in (np.array([71.0]), np.array([np.nan]), np.array([np.inf]), np.array([True])):
        with pytest.raises(TypeError, match="no float is noised"):
            MEDIAN.measure(wrong, Randomness())
    with pytest.raises(ValueError, match="one integer for each candidate"):
        MEDIAN.measure(np.array([], np.int64), Randomness())


def test_seeded_bits_cannot_measure_a_quantile() -> None:
    with pytest.raises(TypeError, match="takes its noise from Randomness"):
        MEDIAN.measure(np.array([1, 2]), SeededBits(1))  # type: ignore[arg-type]
    assert MEDIAN.measure(np.array([1, 2]), Randomness()) in (0, 1)
