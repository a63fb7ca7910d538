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
LIMIT = 2**62
"""Sums are held at this size: a limit of slope 1, which moves no two totals apart."""


@dataclass(frozen=True, eq=False)
class ExactCounts:
    """The exact counts of one tally for the areas of its smallest level: keys area * cells + cell, in order."""

    tally: Tally
    level: str | None
    keys: Integers = field(repr=False)
    values: npt.NDArray[Any] = field(repr=False)

    def at(self, level: str | None) -> ExactCounts:
        """The same counts added up to a larger level."""
        if level == self.level or self.tally.spine is None or level is None or self.level is None:
            return self
        upwards = ancestors(self.tally.spine, self.level, level)
        areas, cells = np.divmod(self.keys, self.tally.cells)
        return summed(self.tally, level, upwards[areas] * self.tally.cells + cells, self.values)

    def dense(self, level: str | None) -> Integers:
        """Every cell of every area of a level, zeros included: one row an area, one column a cell."""
        return self.at(level).block(0, self.tally.areas(level))

    def blocks(self, level: str | None, *, cells: int) -> Iterator[tuple[int, Integers]]:
        """The same a few areas at a time, with the first area of each, where all would not fit: about `cells` cells."""
        found, areas = self.at(level), self.tally.areas(level)
        step = max(1, cells // self.tally.cells)
        for first in range(0, areas, step):
            yield first, found.block(first, min(first + step, areas))

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


def summed(tally: Tally, level: str | None, keys: Integers, values: npt.NDArray[Any]) -> ExactCounts:
    """Counts from keys in any order, each perhaps several times."""
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.zeros(0, np.int64)
    totals = np.add.reduceat(values, first) if len(keys) else values
    return ExactCounts(tally, level, keys[first], totals)


def limited(values: npt.NDArray[Any]) -> Integers:
    """Whole numbers of any size, held at plus or minus 2^62."""
    if values.dtype == np.int64:
        return np.clip(values, -LIMIT, LIMIT)
    return np.array([min(max(int(value), -LIMIT), LIMIT) for value in values], np.int64)


def integers_of(column: Any) -> npt.NDArray[Any]:
    """A fetched column as 64-bit integers; sums as Python integers, which have no largest."""
    if str(column.type).startswith("decimal"):
        return np.array([int(value) for value in column.to_pylist()], object)
    return np.asarray(column.to_numpy(), np.int64)
