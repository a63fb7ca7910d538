"""Exact counts: confidential whole numbers for every declared cell, kept sparse and shown dense where they are used.

They go to a mechanism and nowhere else. Nothing here prints a number: what a person or a log would see of them is
their tally's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from release_specs.domain import Hierarchy
from release_specs.tallies import Tally

Integers = npt.NDArray[np.int64]
ROOM = 8
"""A dense array of up to so many cells for each key is quicker than sorting the keys."""
LIMIT = 2**62
"""Sums are held at this size: a limit of slope 1, which moves no two totals apart."""


@dataclass(frozen=True, eq=False)
class Leaves:
    """What was counted together: a number for each key area * cells + cell of the smallest level; other keys have 0."""

    level: str | None
    cells: int
    keys: Integers = field(repr=False)


@dataclass(frozen=True, eq=False)
class ExactCounts:
    """The exact counts of one tally, read off what was counted together with it.

    `onto` gives for each cell of the leaves that of the tally, negative where there is none; None where they are the
    same.
    """

    tally: Tally
    leaves: Leaves
    numbers: npt.NDArray[Any] = field(repr=False)
    onto: Integers | None = field(repr=False, default=None)

    def at(self, level: str | None) -> SparseCounts:
        """The counts at a level: the cells that are not zero."""
        areas, cells = np.divmod(self.leaves.keys, self.leaves.cells)
        numbers = self.numbers
        if self.onto is not None:
            cells = self.onto[cells]
            if (self.onto < 0).any():
                inside = cells >= 0
                areas, cells, numbers = areas[inside], cells[inside], numbers[inside]
        spine = self.tally.spine
        if spine is not None and level is not None and self.leaves.level is not None and level != self.leaves.level:
            areas = ancestors(spine, self.leaves.level, level)[areas]
        return summed(self.tally, level, areas * self.tally.cells + cells, numbers)

    @property
    def smallest(self) -> SparseCounts:
        """The counts at the smallest level that the tally asks for."""
        return self.at(self.tally.levels[-1] if self.tally.levels else None)

    def dense(self, level: str | None) -> Integers:
        """Every cell of every area of a level, zeros included: one row an area, one column a cell."""
        return self.at(level).block(0, self.tally.areas(level))

    def blocks(self, level: str | None, *, cells: int) -> Iterator[tuple[int, Integers]]:
        """The same a few areas at a time, with the first area of each, where all would not fit: about `cells` cells."""
        found, areas = self.at(level), self.tally.areas(level)
        step = max(1, cells // self.tally.cells)
        for first in range(0, areas, step):
            yield first, found.block(first, min(first + step, areas))


@dataclass(frozen=True, eq=False)
class SparseCounts:
    """The cells of a tally at one level that are not zero: keys area * cells + cell, in order, and their numbers."""

    tally: Tally
    keys: Integers = field(repr=False)
    values: npt.NDArray[Any] = field(repr=False)

    def block(self, first: int, last: int) -> Integers:
        """The areas from `first` up to and without `last`, every cell."""
        start, end = np.searchsorted(self.keys, [first * self.tally.cells, last * self.tally.cells])
        dense = np.zeros((last - first) * self.tally.cells, np.int64)
        dense[self.keys[start:end] - first * self.tally.cells] = limited(self.values[start:end])
        return dense.reshape(last - first, self.tally.cells)


def ancestors(spine: Hierarchy, level: str, above: str) -> Integers:
    """For each area of a level the number of the area of a larger level that it lies in."""
    depths = {name: depth for depth, name in enumerate(spine.levels)}
    places = np.arange(len(spine.areas[level]))
    for depth in range(depths[level], depths[above], -1):
        numbers = {area.code: number for number, area in enumerate(spine.areas[spine.levels[depth - 1]])}
        parents = np.array([numbers[area.parent or ""] for area in spine.areas[spine.levels[depth]]], np.int64)
        places = parents[places]
    return places


def summed(tally: Tally, level: str | None, keys: Integers, values: npt.NDArray[Any]) -> SparseCounts:
    """Counts from keys in any order, each perhaps several times."""
    size = tally.areas(level) * tally.cells
    if values.dtype == np.int64 and size <= ROOM * (len(keys) + ROOM) and _is_small(values):
        dense = np.bincount(keys, values, minlength=size)
        filled = np.flatnonzero(dense)
        return SparseCounts(tally, filled, dense[filled].astype(np.int64))
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.zeros(0, np.int64)
    totals = np.add.reduceat(values, first) if len(keys) else values
    return SparseCounts(tally, keys[first], totals)


def _is_small(values: Integers) -> bool:
    """Whether sums of these numbers are exact in double precision, which is what bincount adds in."""
    return bool(np.abs(values.astype(np.float64)).sum() < 2**53)


def limited(values: npt.NDArray[Any]) -> Integers:
    """Whole numbers of any size, held at plus or minus 2^62."""
    if values.dtype == np.int64:
        held: Integers = np.clip(values, -LIMIT, LIMIT)
        return held
    return np.array([min(max(int(value), -LIMIT), LIMIT) for value in values], np.int64)


def integers_of(column: Any) -> npt.NDArray[Any]:
    """A fetched column as 64-bit integers; sums as Python integers, which have no largest."""
    if str(column.type).startswith("decimal"):
        return np.array([int(value) for value in column.to_pylist()], object)
    return np.asarray(column.to_numpy(), np.int64)
