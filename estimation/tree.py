"""The areas of a spine as numbers: every level's areas in the order of their parents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from estimation.arrays import Floats, Integers


@dataclass(frozen=True, eq=False)
class Level:
    """The areas of one level: for each the number of its parent, in ascending order, so siblings stand together."""

    name: str
    parents: Integers
    above: int
    """How many areas the level above has."""

    def __post_init__(self) -> None:
        if len(self.parents) and (np.diff(self.parents) < 0).any():
            raise ValueError(f"the areas of '{self.name}' are not in the order of their parents")
        if len(np.unique(self.parents)) != self.above or self.parents[-1] != self.above - 1:
            raise ValueError(f"an area above '{self.name}' has no area in it")

    @property
    def areas(self) -> int:
        """How many areas it has."""
        return len(self.parents)

    @cached_property
    def starts(self) -> Integers:
        """Where the children of each parent begin, and where the last end."""
        return np.searchsorted(self.parents, np.arange(self.above + 1)).astype(np.int64)

    @property
    def fan_out(self) -> Integers:
        """How many children each parent has."""
        return np.diff(self.starts)

    def summed(self, numbers: Floats) -> Floats:
        """Numbers of the areas, added up to their parents."""
        total: Floats = np.add.reduceat(numbers, self.starts[:-1], axis=0)
        return total

    def families(self, *, cells: int, most: int) -> Iterator[tuple[int, int]]:
        """Parents from first to last (without), a few at a time: about `most` cells of their children."""
        first = 0
        while first < self.above:
            room = self.starts[first] + max(1, most // max(cells, 1))
            last = max(first + 1, int(np.searchsorted(self.starts, room, side="right")) - 1)
            yield first, min(last, self.above)
            first = min(last, self.above)


@dataclass(frozen=True, eq=False)
class Tree:
    """One area, the whole, and below it the levels of one spine or of several that share it: each is a branch."""

    whole: str
    branches: tuple[tuple[Level, ...], ...] = ()

    def __post_init__(self) -> None:
        for branch in self.branches:
            above = 1
            for level in branch:
                if level.above != above:
                    raise ValueError(f"'{level.name}' counts {level.above} areas above it where there are {above}")
                above = level.areas

    @property
    def levels(self) -> dict[str, int]:
        """Every level with its number of areas, the whole first."""
        return {self.whole: 1} | {level.name: level.areas for branch in self.branches for level in branch}
