"""Exact variances and covariances of the unbiased estimates, from the stages alone: no number is looked at."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from estimation.arrays import Floats, Integers
from estimation.coordinates import Coordinates
from estimation.observations import Margin
from estimation.stages import Stage
from estimation.tree import Level


@dataclass(frozen=True, eq=False)
class Place:
    """A level in the tree: its stage, and the way down to it from the whole."""

    stage: Stage
    kinds: Integers = field(repr=False)
    """For each area the number of its covariance matrix."""
    best: Floats = field(repr=False)
    """Covariances of the best estimates: (kind, part, core, core)."""
    above: Place | None = None
    level: Level | None = None
    branch: int = 0


def places(whole: Stage) -> dict[str, Place]:
    """Every level of a tree with the covariances of its best estimates."""
    found = {whole.name: Place(whole, whole.kinds, whole.covariance)}
    ahead = [whole.name]
    while ahead:
        above = found[ahead.pop()]
        for branch, (level, stage) in enumerate(above.stage.below):
            found[stage.name] = _below(above, branch, level, stage)
            ahead.append(stage.name)
    return found


def _below(above: Place, branch: int, level: Level, stage: Stage) -> Place:
    pairs = np.stack([stage.kinds, above.kinds[level.parents]], axis=1)
    _, examples, kinds = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    own = stage.covariance[stage.kinds[examples]]
    parent = level.parents[examples]
    passed = above.stage.upwards[branch][above.stage.kinds[parent]]
    best = own - own @ (passed - passed @ above.best[above.kinds[parent]] @ passed) @ own
    return Place(stage, kinds.reshape(-1).astype(np.int64), best, above, level, branch)


def cell_variances(coordinates: Coordinates, margin: Margin, at: Place) -> Floats:
    """The variance of a margin's best estimate, (area, core cell): the same for all combinations of free codes."""
    spread = coordinates.spread(margin.free, margin.free, alike=margin.free)
    by_kind = np.einsum("p,ci,kpij,cj->kc", spread, margin.cells, at.best, margin.cells, optimize=True)
    known: Floats = np.maximum(by_kind, 0.0)
    return known[at.kinds]


def cell_covariances(coordinates: Coordinates, margin: Margin, other: Margin, at: Place) -> Floats:
    """The covariance of two margins' best estimates in the same cell of the same area, (area, core cell)."""
    if margin.free != other.free or len(margin.cells) != len(other.cells):
        raise ValueError(f"'{margin.name}' and '{other.name}' have different cells")
    spread = coordinates.spread(margin.free, margin.free, alike=margin.free)
    by_kind: Floats = np.einsum("p,ci,kpij,cj->kc", spread, margin.cells, at.best, other.cells, optimize=True)
    return by_kind[at.kinds]


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of one margin in one area: a core cell, and a code of each free attribute."""

    margin: Margin
    level: str
    area: int
    core_cell: int
    codes: tuple[int, ...]


def covariance(coordinates: Coordinates, levels: dict[str, Place], one: Cell, other: Cell) -> float:
    """The covariance of the best estimates of two numbers, wherever they stand."""
    between = _between(levels, (one.level, one.area), (other.level, other.area))
    codes = dict(zip(one.margin.free, one.codes, strict=True))
    alike = [
        axis for axis, code in zip(other.margin.free, other.codes, strict=True) if axis in codes and codes[axis] == code
    ]
    spread = coordinates.spread(one.margin.free, other.margin.free, alike=alike)
    left, right = one.margin.cells[one.core_cell], other.margin.cells[other.core_cell]
    return float(np.einsum("p,i,pij,j->", spread, left, between, right))


def _between(levels: dict[str, Place], one: tuple[str, int], other: tuple[str, int]) -> Floats:
    """The covariance matrices (part, core, core) of the best estimates of two areas."""
    first, second = _way_up(levels, one), _way_up(levels, other)
    shared = 0
    while shared < min(len(first), len(second)) and first[shared] == second[shared]:
        shared += 1
    if shared == len(first) == len(second):
        return _best(levels, first[-1])
    if shared == len(first):
        return _best(levels, first[-1]) @ _passed(levels, second[shared:]).swapaxes(1, 2)
    if shared == len(second):
        return _passed(levels, first[shared:]) @ _best(levels, second[-1])
    mine, theirs = first[shared], second[shared]
    above = _best(levels, first[shared - 1])
    if mine[0] == theirs[0]:  # siblings: what one gets the other lacks
        place = levels[mine[0]]
        if place.above is None:
            raise ValueError("the whole has no siblings")
        parent = first[shared - 1][1]
        above = above - _sum_of_children(place, parent)
    return _passed(levels, first[shared:]) @ above @ _passed(levels, second[shared:]).swapaxes(1, 2)


def _sum_of_children(place: Place, parent: int) -> Floats:
    if place.level is None:
        raise ValueError("the whole has no parent")
    start, end = place.level.starts[parent : parent + 2]
    total: Floats = place.stage.covariance[place.stage.kinds[start:end]].sum(axis=0)
    return total


def _best(levels: dict[str, Place], area: tuple[str, int]) -> Floats:
    place = levels[area[0]]
    matrices: Floats = place.best[place.kinds[area[1]]]
    return matrices


def _way_up(levels: dict[str, Place], area: tuple[str, int]) -> list[tuple[str, int]]:
    """The areas from the whole down to this one."""
    way = [area]
    place = levels[area[0]]
    while place.above is not None and place.level is not None:
        way.append((place.above.stage.name, int(place.level.parents[way[-1][1]])))
        place = place.above
    return way[::-1]


def _passed(levels: dict[str, Place], way: list[tuple[str, int]]) -> Floats:
    """The gains along a way down, multiplied: what of an error above the first area reaches the last."""
    product: Floats | None = None
    for name, area in way:
        place = levels[name]
        if place.above is None or place.level is None:
            raise ValueError("the whole has nothing above it")
        parent = place.level.parents[area]
        passed = place.above.stage.upwards[place.branch][place.above.stage.kinds[parent]]
        gain = place.stage.covariance[place.stage.kinds[area]] @ passed
        product = gain if product is None else gain @ product
    if product is None:
        raise ValueError("the way has no step")
    return product
