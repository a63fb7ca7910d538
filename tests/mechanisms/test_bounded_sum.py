"""Sums before the noise: clipped, exact in every order, never wrapped, and priced by the bounds they are clipped to."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms import bounded_sum
from mechanisms.bounded_sum import BoundedSum, limited
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.noise.laws import LaplaceLaw
from mechanisms.noise.seeded import SeededBits
from mechanisms.noisy_counts import FURTHEST, LIMIT
from mechanisms.randomness import Randomness
from mechanisms.sensitivity import RECORD, Relation, Sums
from tests.mechanisms.fit import IMPLAUSIBLE, fit_noise

INCOME = BoundedSum(Sums(0, 1000))
WIDEST = BoundedSum(Sums(-LIMIT, LIMIT))
LAPLACE = DiscreteLaplace(Fraction(3))

int64 = st.integers(-(2**63), 2**63 - 1)
rows = st.lists(st.tuples(int64, st.integers(0, 3)), max_size=30)


def totals(what: BoundedSum, rows: list[tuple[int, int]], size: int = 4) -> list[int]:
    ticks, cells = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    return what.totals(ticks, cells, size=size).tolist()


def expected(what: BoundedSum, rows: list[tuple[int, int]], size: int = 4) -> list[int]:
    """In Python's integers, which have no largest."""
    sums = [sum(max(what.shape.low, min(what.shape.high, v)) for v, c in rows if c == cell) for cell in range(size)]
    return [max(-LIMIT, min(LIMIT, total)) for total in sums]


# Exact sums.


@pytest.mark.parametrize(
    "what", [INCOME, WIDEST, BoundedSum(Sums(-7, -3)), BoundedSum(Sums(5, 5)), BoundedSum(Sums(-(2**40), 3))]
)
@given(rows=rows)
def test_sums_are_those_of_integers_without_a_largest(what: BoundedSum, rows: list[tuple[int, int]]) -> None:
    assert totals(what, rows) == expected(what, rows)


@given(rows=rows, shuffled=st.randoms())
def test_the_order_of_rows_does_not_matter(rows: list[tuple[int, int]], shuffled: Any) -> None:
    other = list(rows)
    shuffled.shuffle(other)
    assert totals(WIDEST, rows) == totals(WIDEST, other)


@given(rows=rows, cut=st.integers(1, 7))
def test_rows_are_added_alike_in_pieces_of_any_length(rows: list[tuple[int, int]], cut: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounded_sum, "ROWS", cut)
        assert totals(WIDEST, rows) == expected(WIDEST, rows)


@pytest.mark.parametrize("sign", [1, -1])
def test_nothing_wraps_where_64_bits_would(sign: int) -> None:
    half = sign * 2**62
    assert totals(WIDEST, [(half, 0)] * 7, size=1) == [half]  # 7 * 2^62 is limited
    assert totals(WIDEST, [(half, 0)] * 7 + [(-half, 0)] * 6, size=1) == [half]  # passes 2^64 on the way
    assert totals(WIDEST, [(half, 0)] * 7 + [(-half, 0)] * 7 + [(5, 0)], size=1) == [5]
    assert totals(WIDEST, [(half - sign, 0), (sign, 0)], size=1) == [half]


def test_values_beyond_the_clip_count_as_its_ends() -> None:
    assert totals(INCOME, [(-5, 0), (2000, 0), (999, 1), (2**63 - 1, 2), (-(2**63), 3)]) == [1000, 999, 1000, 0]


def test_a_sum_is_wrapped_by_no_width_of_the_values() -> None:
    ticks = np.array([127, 127, -128], np.int8)
    assert INCOME.totals(ticks, np.array([0, 0, 1], np.uint8), size=2).tolist() == [254, 0]


@given(rows=rows, row=st.tuples(int64, st.integers(0, 3)))
def test_one_row_more_moves_the_totals_no_further_than_the_price_assumes(
    rows: list[tuple[int, int]], row: tuple[int, int]
) -> None:
    what = BoundedSum(Sums(-300, 1000))
    moved = [abs(one - other) for one, other in zip(totals(what, rows), totals(what, [*rows, row]), strict=True)]
    assert sum(moved) <= what.shape.sensitivity(RECORD, Relation.ADD_REMOVE).l1 == 1000


def test_totals_of_an_engine_of_128_bits_are_limited() -> None:
    assert limited([2**126, -(2**100), LIMIT, -LIMIT, 7]).tolist() == [LIMIT, -LIMIT, LIMIT, -LIMIT, 7]
    assert limited([]).tolist() == []
    for wrong in ([1.0], [True], [np.float64(2)], [None]):
        with pytest.raises(TypeError, match="no float is noised"):
            limited(wrong)  # type: ignore[arg-type]


# The noise on them.


def test_every_cell_is_noised_the_empty_ones_included() -> None:
    ticks, cells = np.array([700, 2000]), np.array([0, 0])
    noisy = INCOME.answer(ticks, cells, size=20_000, noise=LAPLACE, bits=SeededBits(1))
    assert (noisy.dtype, noisy.shape) == (np.int64, (20_000,))
    noisy[0] -= 1700
    assert fit_noise(noisy, LaplaceLaw(Fraction(3)), reach=12) > IMPLAUSIBLE
    assert fit_noise(noisy, LaplaceLaw(Fraction(27, 10)), reach=12) < IMPLAUSIBLE


@pytest.mark.parametrize("noise", [DiscreteLaplace(Fraction(2**57)), DiscreteGaussian(Fraction(2**114))])
def test_noise_on_a_sum_at_its_limit_saturates(noise: Any) -> None:
    for sign in (1, -1):
        ticks = np.full(6, sign * 2**62)
        noisy = WIDEST.answer(ticks, np.arange(6) % 3, size=3, noise=noise, bits=SeededBits(2))
        assert (np.abs(noisy) <= FURTHEST).all()
        assert (np.abs(noisy) == FURTHEST).any()
        assert (np.sign(noisy) == sign).all()


def test_a_measurement_takes_release_grade_randomness_only() -> None:
    ticks, cells = np.array([1, 2]), np.array([0, 1])
    assert INCOME.measure(ticks, cells, size=2, noise=LAPLACE, randomness=Randomness()).shape == (2,)
    with pytest.raises(TypeError, match="takes its noise from Randomness"):
        INCOME.measure(ticks, cells, size=2, noise=LAPLACE, randomness=SeededBits(1))  # type: ignore[arg-type]


def test_a_total_is_a_number_of_steps() -> None:
    cents = BoundedSum(Sums(0, 100), step=Fraction(1, 100))
    assert cents.in_units(np.int64(1234)) == Fraction(617, 50)


# What is refused.


@pytest.mark.parametrize(
    "wrong", [np.array([71.0]), np.array([np.nan]), np.array([-np.inf]), np.array([71], np.uint64)]
)
def test_floats_nan_and_infinities_are_refused_and_not_quoted(wrong: np.ndarray) -> None:
    with pytest.raises(TypeError, match="no float is noised") as refusal:
        INCOME.totals(wrong, np.array([0]), size=1)
    assert "71" not in str(refusal.value)
    with pytest.raises(TypeError):
        INCOME.totals(np.array([0]), wrong, size=1)


@pytest.mark.parametrize("cells", [[0, 71], [-1, 0], [0], [[0, 1]]])
def test_every_value_has_one_declared_cell(cells: Any) -> None:
    with pytest.raises(ValueError, match="every value has") as refusal:
        INCOME.totals(np.array([1, 2]), np.array(cells), size=3)
    assert "71" not in str(refusal.value)


def test_a_sum_has_the_cells_it_was_priced_for() -> None:
    alone = BoundedSum(Sums(0, 10, one_cell=True))
    assert alone.totals(np.array([3, 4]), np.array([0, 0]), size=1).tolist() == [7]
    for size in (2, 0):
        with pytest.raises(ValueError, match="as many cells as it was priced for"):
            alone.totals(np.array([], np.int64), np.array([], np.int64), size=size)


def test_clips_beyond_2_to_the_62_and_steps_that_are_floats_are_refused() -> None:
    with pytest.raises(ValueError, match="choose a wider step"):
        BoundedSum(Sums(0, LIMIT + 1))
    with pytest.raises(TypeError, match="floats are not exact"):
        BoundedSum(Sums(0, 1), step=0.01)  # type: ignore[arg-type]
