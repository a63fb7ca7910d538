"""Coordinates in which measurements of many margins fall apart into small problems of their own.

Attributes are of two kinds. A *free* attribute appears in every query either in full or not at all, and in no
impossible combination or universe. Along free attributes numbers are turned into sums and contrasts: a query sees the
contrasts of its own free attributes and nothing else, and sees each with independent noise of one variance. So the
least-squares problem falls apart into *parts*, one for each set of free attributes that some query holds. The other
attributes form the *core*: recodes of unequal size, universes and impossible combinations live there, as one short
vector in each part. Without a core that vector has length one and everything is in closed form.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np

from estimation.arrays import Floats, Integers

Axes = tuple[int, ...]
"""Numbers of free attributes, in ascending order."""


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The sums and contrasts that a set of queries can see, part after part."""

    sizes: tuple[int, ...]
    """How many codes each free attribute has."""
    parts: tuple[Axes, ...]
    """Every set of free attributes that some query holds, the empty one first."""
    _found: dict[Axes, Integers] = field(init=False, repr=False, default_factory=dict)

    @classmethod
    def seen_by(cls, sizes: tuple[int, ...], queries: Iterable[Axes]) -> Coordinates:
        """The coordinates seen by queries that hold these free attributes."""
        held = {part for axes in set(queries) for n in range(len(axes) + 1) for part in combinations(axes, n)}
        return cls(sizes, tuple(sorted(held | {()}, key=lambda part: (len(part), part))))

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """How many contrasts each part has."""
        return tuple(prod(self.sizes[axis] - 1 for axis in part) for part in self.parts)

    @property
    def length(self) -> int:
        """How many coordinates there are."""
        return sum(self.lengths)

    @cached_property
    def part_of(self) -> Integers:
        """For each coordinate the number of its part."""
        return np.repeat(np.arange(len(self.parts)), self.lengths)

    def cells(self, axes: Axes) -> int:
        """How many combinations of codes a set of free attributes has."""
        return prod(self.sizes[axis] for axis in axes)

    def shape(self, axes: Axes) -> Integers:
        """The sizes of these free attributes, for the kernels."""
        return np.array([self.sizes[axis] for axis in axes], np.int64)

    def positions(self, axes: Axes) -> Integers:
        """Where each sum or contrast of a query over these free attributes stands among all coordinates."""
        if axes not in self._found:
            self._found[axes] = self._positions(axes)
        return self._found[axes]

    def _positions(self, axes: Axes) -> Integers:
        starts = dict(zip(self.parts, np.cumsum([0, *self.lengths[:-1]]), strict=True))
        where = np.zeros(self.cells(axes), np.int64)
        index = np.indices(tuple(self.sizes[axis] for axis in axes)).reshape(len(axes), -1) if axes else None
        for part, start in starts.items():
            if not set(part) <= set(axes):
                continue
            inside = np.ones(len(where), bool)
            place = np.zeros(len(where), np.int64)
            for depth, axis in enumerate(axes):
                codes = index[depth] if index is not None else place
                inside &= (codes > 0) == (axis in part)
                if axis in part:
                    place = place * (self.sizes[axis] - 1) + codes - 1
            where[inside] = start + place[inside]
        return where

    def dilution(self, axes: Axes) -> Floats:
        """For each part, the variance of a query's noise in it relative to that of one cell; nan where it is unseen."""
        return np.array(
            [
                self.cells(tuple(axis for axis in axes if axis not in part)) if set(part) <= set(axes) else np.nan
                for part in self.parts
            ],
            float,
        )

    def spread(self, axes: Axes, others: Axes, *, alike: Iterable[int]) -> Floats:
        """The covariance of two cells of two margins in each part, where the part's own variance is one.

        `alike` are the free attributes in which the two cells have the same code. A part that one of the margins does
        not see gives nothing.
        """
        same, weights = set(alike), np.zeros(len(self.parts))
        for number, part in enumerate(self.parts):
            if set(part) <= set(axes) and set(part) <= set(others):
                weight = 1.0
                for axis in part:
                    weight *= (axis in same) - 1 / self.sizes[axis]
                for margin in (axes, others):
                    weight /= self.cells(tuple(axis for axis in margin if axis not in part))
                weights[number] = weight
        return weights
