"""Fractional tables whose rows and columns add up to whole numbers, and what rounding makes of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from estimation.kernels.rounding import Fractions, round_off

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
NONE = np.zeros((0, 0))


@dataclass(frozen=True)
class Rounded:
    """Whole numbers, and for each parent how many units went along exchanges (-1: there is no way)."""

    whole: Floats
    moved: Integers


def fractions(
    numbers: Floats,
    *,
    group_of: list[int] | npt.NDArray[np.int64] | None = None,
    groups: Floats | None = None,
    columns: Floats | None = None,
    bounds: tuple[Floats, Floats] = (NONE, NONE),
    starts: list[int] | None = None,
) -> Fractions:
    """Children of one parent (or of several) to be rounded; sums are those of the numbers unless they are given."""
    children, cells = numbers.shape
    edges = np.array([0, children] if starts is None else starts)
    label = np.asarray(np.zeros(cells) if group_of is None else group_of, np.int32)
    summed = np.stack([numbers[:, label == group].sum(axis=1) for group in range(label.max() + 1)], axis=1)
    rng = np.random.default_rng(12)
    return Fractions(
        numbers=numbers,
        starts=edges,
        columns=np.rint(np.add.reduceat(numbers, edges[:-1], axis=0)) if columns is None else columns,
        group_of=label,
        groups=np.rint(summed) if groups is None else groups,
        low=bounds[0],
        high=bounds[1],
        area_keys=rng.integers(0, 2**63, children, np.uint64),
        cell_keys=rng.integers(0, 2**63, cells, np.uint64),
        soft_of=np.zeros((0, cells), np.int32),
        soft_count=0,
    )


def random_table(
    rng: np.random.Generator, *, children: int | None = None, cells: int | None = None, groups: int = 2
) -> Fractions:
    """A fractional table with whole sums: a mixture of whole tables that have the same sums."""
    size = int(children or rng.integers(1, 7)), int(cells or rng.integers(2, 9))
    whole = rng.poisson(rng.gamma(0.7, 3, size)).astype(float)
    group_of = rng.integers(0, groups, size[1])
    group_of[0] = groups - 1
    mixture = sum(share * _shuffled(rng, whole, group_of) for share in rng.dirichlet(np.ones(4)))
    return fractions(
        np.asarray(mixture), group_of=group_of, groups=_sums(whole, group_of, groups), columns=whole.sum(0)[None]
    )


def _sums(numbers: Floats, label: npt.NDArray[np.int64], count: int) -> Floats:
    return np.stack([numbers[:, label == group].sum(axis=1) for group in range(count)], axis=1)


def _shuffled(rng: np.random.Generator, whole: Floats, group_of: npt.NDArray[np.int64]) -> Floats:
    """The same sums by other numbers: units are exchanged between pairs of children and of cells of one group."""
    found = whole.copy()
    for _ in range(3 * found.size):
        first, second = rng.integers(0, len(found), 2)
        one, other = rng.integers(0, found.shape[1], 2)
        apart = first != second and one != other and group_of[one] == group_of[other]
        units = min(found[first, one], found[second, other])
        if apart and units > 0:
            found[first, one] -= 1
            found[second, other] -= 1
            found[first, other] += 1
            found[second, one] += 1
    return found


def with_bounds(rng: np.random.Generator, table: Fractions) -> Fractions:
    """The same within bounds that its numbers keep."""
    low = np.maximum(np.floor(table.numbers + 1e-9) - rng.poisson(0.3, table.numbers.shape), 0)
    return table._replace(low=low, high=np.ceil(table.numbers - 1e-9) + rng.poisson(0.3, table.numbers.shape))


def with_soft_sums(rng: np.random.Generator, table: Fractions, *, kinds: int = 2) -> Fractions:
    """The same with sums that are kept where they can be; each kind takes every cell."""
    labels = rng.integers(0, 3, (kinds, table.numbers.shape[1])) + 3 * np.arange(kinds)[:, None]
    return table._replace(soft_of=labels.astype(np.int32), soft_count=3 * kinds)


def rounded(table: Fractions) -> Rounded:
    """What the product makes of a table."""
    parents = len(table.starts) - 1
    whole, moved = np.zeros_like(table.numbers), np.zeros(parents, np.int64)
    round_off(table, whole, moved, 0, parents)
    return Rounded(whole, moved)


def turned(table: Fractions, areas: Integers, cells: Integers) -> Fractions:
    """The same table with areas and cells in another order, each with its key."""

    def both(numbers: Floats) -> Floats:
        return np.ascontiguousarray(numbers[areas][:, cells]) if len(numbers) else numbers

    return table._replace(
        numbers=both(table.numbers),
        columns=np.ascontiguousarray(table.columns[:, cells]),
        group_of=table.group_of[cells],
        groups=table.groups[areas],
        low=both(table.low),
        high=both(table.high),
        area_keys=table.area_keys[areas],
        cell_keys=table.cell_keys[cells],
        soft_of=np.ascontiguousarray(table.soft_of[:, cells]),
    )
