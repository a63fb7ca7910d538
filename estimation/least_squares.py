"""The best linear unbiased estimate over a whole tree of areas and all measured margins at once.

One pass up gathers for each area what its own measurements and all below it tell; one pass down adds what is known
from above. Both work family by family (a parent and its children), so nothing larger than a few families is held at
once, and any subtree can be done elsewhere. The result equals generalised least squares on the stacked measurements
(Hay et al. 2010 for one number in a tree; here for every part of `coordinates` with a matrix in place of the number).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from estimation.arrays import Floats, Integers, Numbers
from estimation.coordinates import Coordinates
from estimation.kernels.blocks import add_seen, added_numbers, added_up, read_margin, times
from estimation.observations import Margin, Observation
from estimation.stages import Stage, stages
from estimation.tree import Level, Tree

FAMILY_CELLS = 1_000_000
"""About so many coordinates of children are worked on at once."""
Each = Callable[[Callable[[tuple[int, int]], None], Iterable[tuple[int, int]]], Iterable[None]]
"""How pieces of work are done: one after the other, or by a pool."""


@dataclass(frozen=True, eq=False)
class Fit:
    """Everything the measurements told, gathered upwards; estimates are read off it family by family."""

    coordinates: Coordinates
    core: int
    whole: Stage
    told: dict[str, Floats] = field(repr=False)
    """For each level but the smallest: what the areas below it tell, (area, core, place)."""
    exact: dict[str, tuple[tuple[Observation, Floats], ...]] = field(repr=False)
    """For each level the exact numbers that are known of it, with the map to coordinates (part, cell, core)."""

    @property
    def part_of(self) -> Integers:
        """For each coordinate the number of its part."""
        return self.coordinates.part_of

    def subtree(self, at: Stage, first: int = 0, last: int | None = None) -> Floats:
        """The estimate of areas from their own measurements and all below them: (area, core, place)."""
        end = at.areas if last is None else last
        kinds = at.kinds[first:end]
        told = np.zeros((end - first, self.core, self.coordinates.length))
        if at.name in self.told:
            told += self.told[at.name][first:end]
        for one in at.observations:
            if not one.is_exact:
                self._add(told, one.numbers[first:end], one.margin, self._maps(one), one.precision[first:end])
        known = self._known(at, first, end)
        if known is None:
            return times(at.covariance, kinds, self.part_of, told)
        told -= times(at.information, kinds, self.part_of, known)
        return known + times(at.covariance, kinds, self.part_of, told)

    def sum_of_subtrees(self, at: Stage, starts: Integers) -> Floats:
        """The estimates of areas from their subtrees, added up to their parents: (parent, core, place).

        Where siblings are alike and nothing lies below them, their measurements are added up before anything else.
        """
        first, last = int(starts[0]), int(starts[-1])
        if at.below or self.exact[at.name] or len(at.covariance) > 1:
            return added_up(self.subtree(at, first, last), starts)
        told = np.zeros((len(starts) - 1, self.core, self.coordinates.length))
        for one in at.observations:
            numbers = added_numbers(one.numbers[first:last], starts)
            self._add(told, numbers, one.margin, self._maps(one), np.full(len(numbers), one.precision[0]))
        return times(at.covariance, np.zeros(len(told), np.int64), self.part_of, told)

    def best_of_whole(self) -> Floats:
        """The best estimate of the whole."""
        return self.subtree(self.whole)

    def corrections(
        self, above: Stage, branch: int, *, parents: tuple[int, int], best: Floats, total: Floats
    ) -> tuple[Floats, Integers]:
        """What the best estimates of children add to those from their subtrees, and for each child which it is.

        Siblings of one kind share it. `best` are the parents' best estimates, `total` the children's added up.
        """
        level, lower = above.below[branch]
        starts = level.starts[parents[0] : parents[1] + 1]
        passed = times(above.upwards[branch], above.kinds[parents[0] : parents[1]], self.part_of, best - total)
        siblings = level.parents[starts[0] : starts[-1]] - parents[0]
        kinds = lower.kinds[starts[0] : starts[-1]]
        pairs, which = np.unique(siblings * len(lower.covariance) + kinds, return_inverse=True)
        parent, kind = np.divmod(pairs, len(lower.covariance))
        return times(lower.covariance, kind, self.part_of, passed[parent]), which.astype(np.int64)

    def read(self, margin: Margin, coordinates: Floats, into: Floats | None = None) -> Floats:
        """The numbers of a margin: (area, core cell, combination of free codes), written where asked."""
        where = self.coordinates.positions(margin.free)
        shape = (len(coordinates), len(margin.cells), len(where))
        out = np.empty(shape) if into is None else into.reshape(shape)
        read_margin(out, coordinates, self.coordinates.shape(margin.free), margin.cells, where)
        return out

    def _add(self, target: Floats, numbers: Numbers, margin: Margin, maps: Floats, precision: Floats) -> None:
        where, sizes = self.coordinates.positions(margin.free), self.coordinates.shape(margin.free)
        add_seen(target, numbers, sizes, maps, where, self.part_of, precision)

    def _maps(self, one: Observation) -> Floats:
        """By part, what a cell of a measurement tells about the coordinates, per unit of its precision."""
        seen = 1 / self.coordinates.dilution(one.margin.free)
        parts = np.where(np.isnan(seen), 0.0, seen)
        found: Floats = parts[:, None, None] * one.margin.cells[None]
        return found

    def _known(self, at: Stage, first: int, last: int) -> Floats | None:
        """What is exactly known of areas: their coordinates within the exact directions, zero elsewhere."""
        if not self.exact[at.name]:
            return None
        known = np.zeros((last - first, self.core, self.coordinates.length))
        for one, maps in self.exact[at.name]:
            self._add(known, one.numbers[first:last], one.margin, maps, np.ones(last - first))
        return known


def fit(
    tree: Tree, observations: Sequence[Observation], *, coordinates: Coordinates, core: int, workers: int = 1
) -> Fit:
    """Gathers what measurements and exact totals tell, from the smallest areas up to the whole."""
    whole = stages(tree, observations, coordinates=coordinates, core=core)
    found = Fit(coordinates, core, whole, {}, {})
    with ThreadPoolExecutor(workers) as pool:
        _gather(found, whole, pool.map)
    return found


def refitted(known: Fit, numbers: Callable[[Observation], Numbers]) -> Fit:
    """The same measurements with other numbers: precisions and gains stay what they are."""

    def again(at: Stage) -> Stage:
        seen = tuple(replace(one, numbers=numbers(one)) for one in at.observations)
        return replace(at, observations=seen, below=tuple((level, again(lower)) for level, lower in at.below))

    found = Fit(known.coordinates, known.core, again(known.whole), {}, {})
    _gather(found, found.whole, map)
    return found


def _gather(found: Fit, at: Stage, each: Each) -> None:
    """The pass up: the smallest areas first. Each piece of work writes to parents of its own."""
    told = np.zeros((at.areas, found.core, found.coordinates.length)) if at.below else None
    for branch, (level, lower) in enumerate(at.below):
        _gather(found, lower, each)

        def add(parents: tuple[int, int], branch: int = branch, level: Level = level, lower: Stage = lower) -> None:
            first, last = parents
            total = found.sum_of_subtrees(lower, level.starts[first : last + 1])
            if told is not None:
                told[first:last] += times(at.upwards[branch], at.kinds[first:last], found.part_of, total)

        pieces = level.families(cells=found.core * found.coordinates.length, most=FAMILY_CELLS)
        list(each(add, pieces))
    if told is not None:
        found.told[at.name] = told
    found.exact[at.name] = tuple(_exact_maps(_exact_numbers(found, at), found))


def _exact_numbers(found: Fit, at: Stage) -> list[Observation]:
    """Exact numbers of a level: its own, and those of levels below, added up."""
    own = [one for one in at.observations if one.is_exact]
    for level, lower in at.below:
        for one, _ in found.exact[lower.name]:
            own.append(Observation(one.margin, at.name, np.add.reduceat(one.numbers, level.starts[:-1], axis=0), 0.0))
    return own


def _exact_maps(observations: list[Observation], found: Fit) -> list[tuple[Observation, Floats]]:
    """For each exact observation, by part, what its cells add to the coordinates within the exact directions."""
    parts = found.coordinates.parts
    maps = [np.zeros((len(parts), len(one.margin.cells), found.core)) for one in observations]
    for number, part in enumerate(parts):
        seen = [index for index, one in enumerate(observations) if set(part) <= set(one.margin.free)]
        if seen:
            inverse = np.linalg.pinv(np.concatenate([observations[index].margin.cells for index in seen]))
            ends = np.cumsum([len(observations[index].margin.cells) for index in seen])
            for index, columns in zip(seen, np.split(inverse, ends[:-1], axis=1), strict=True):
                maps[index][number] = columns.T
    return list(zip(observations, maps, strict=True))
