"""Sums and contrasts: there and back, at right angles, the sum first."""

from __future__ import annotations

from math import prod

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimation.coordinates import Coordinates
from estimation.kernels.contrasts import from_contrasts, shrinking, to_contrasts

Floats = npt.NDArray[np.float64]
Sizes = tuple[int, ...]

shapes = st.lists(st.integers(1, 5), max_size=3).map(tuple)
seeds = st.integers(0, 2**32 - 1)
quick = settings(deadline=None, max_examples=50)


def there(numbers: Floats, sizes: Sizes) -> Floats:
    """Numbers as sums and contrasts."""
    found, shape = numbers.copy(), np.array(sizes, np.int64)
    for row in found:
        to_contrasts(row, shape, shrinking(shape), np.empty(len(row)))
    return found


def back(contrasts: Floats, sizes: Sizes) -> Floats:
    """Sums and contrasts as numbers."""
    found, shape = contrasts.copy(), np.array(sizes, np.int64)
    for row in found:
        from_contrasts(row, shape, shrinking(shape), np.empty(len(row)))
    return found


def matrix_of(sizes: Sizes) -> Floats:
    """The matrix of the contrasts: row i is what contrast i makes of each cell."""
    return there(np.eye(prod(sizes)), sizes).T


@given(sizes=shapes, seed=seeds)
@quick
def test_contrasts_lead_back_to_the_numbers_they_came_from(sizes: Sizes, seed: int) -> None:
    numbers = np.random.default_rng(seed).normal(0, 1000, (3, prod(sizes)))
    assert back(there(numbers, sizes), sizes) == pytest.approx(numbers, abs=1e-8)
    assert there(back(numbers, sizes), sizes) == pytest.approx(numbers, abs=1e-8)


@given(sizes=shapes)
@quick
def test_the_first_is_the_sum_of_all(sizes: Sizes) -> None:
    assert matrix_of(sizes)[0] == pytest.approx(np.ones(prod(sizes)))


@pytest.mark.parametrize("size", range(1, 9))
def test_contrasts_are_orthonormal_and_at_right_angles_to_the_sum(size: int) -> None:
    matrix = matrix_of((size,))
    expected = np.eye(size)
    expected[0, 0] = size  # the sum is not scaled: its length is the root of how many it adds
    assert matrix @ matrix.T == pytest.approx(expected, abs=1e-12)
    assert matrix @ matrix.T != pytest.approx(1.01 * expected, abs=1e-12)  # and one per cent of length shows


@given(sizes=shapes)
@quick
def test_contrasts_of_several_attributes_are_products_of_those_of_each(sizes: Sizes) -> None:
    expected = np.ones((1, 1))
    for size in sizes:
        expected = np.kron(expected, matrix_of((size,)))
    assert matrix_of(sizes) == pytest.approx(expected, abs=1e-12)


@given(sizes=shapes)
@quick
def test_independent_noise_stays_independent_with_the_dilution_that_is_claimed(sizes: Sizes) -> None:
    axes = tuple(range(len(sizes)))
    coordinates = Coordinates.seen_by(sizes, [axes])
    matrix = matrix_of(sizes)
    claimed = coordinates.dilution(axes)[coordinates.part_of[coordinates.positions(axes)]]
    assert matrix @ matrix.T == pytest.approx(np.diag(claimed), abs=1e-9)


@given(sizes=shapes, data=st.data())
@quick
def test_a_coarser_margin_sees_its_contrasts_where_the_finer_one_does(sizes: Sizes, data: st.DataObject) -> None:
    axes = tuple(range(len(sizes)))
    kept = tuple(axis for axis in axes if data.draw(st.booleans()))
    coordinates = Coordinates.seen_by(sizes, [axes, kept])
    numbers = np.random.default_rng(1).normal(size=(1, prod(sizes)))
    summed = numbers.reshape(sizes).sum(axis=tuple(axis for axis in axes if axis not in kept)).reshape(1, -1)
    fine, coarse = np.zeros(coordinates.length), np.full(coordinates.length, np.nan)
    fine[coordinates.positions(axes)] = there(numbers, sizes)
    coarse[coordinates.positions(kept)] = there(summed, tuple(sizes[axis] for axis in kept))
    seen = ~np.isnan(coarse)
    assert seen.sum() == summed.size
    assert coarse[seen] == pytest.approx(fine[seen], abs=1e-9)


@given(sizes=shapes.filter(len), data=st.data())
@quick
def test_two_cells_covary_as_the_parts_say(sizes: Sizes, data: st.DataObject) -> None:
    axes = tuple(range(len(sizes)))
    coordinates = Coordinates.seen_by(sizes, [axes])
    one, other = (tuple(data.draw(st.integers(0, size - 1)) for size in sizes) for _ in range(2))
    variances = np.random.default_rng(2).uniform(1, 5, len(coordinates.parts))
    inverse = np.linalg.inv(matrix_of(sizes))
    by_place = variances[coordinates.part_of[coordinates.positions(axes)]]
    rows = [inverse[np.ravel_multi_index(cell, sizes)] for cell in (one, other)]
    alike = [axis for axis in axes if one[axis] == other[axis]]
    found = coordinates.spread(axes, axes, alike=alike) @ variances
    assert found == pytest.approx((rows[0] * by_place * rows[1]).sum(), abs=1e-9)
