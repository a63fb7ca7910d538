"""The order in which a histogram is settled: totals before detail, each pass within what the one before it settled.

A pass works on groups of a histogram's cells, from a *chain* of partitions each of which refines the one before; the
last is the cells themselves. What was measured enters every pass as far as the pass can see it: by the finest groups
that are both unions of the pass's groups and of the measured cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from estimation.arrays import Floats, Integers, Labels
from estimation.kernels.blocks import fold_onto


@dataclass(frozen=True, eq=False)
class Aim:
    """How a pass sees a measured margin: its groups as sums, and the margin's cells folded onto the same sums."""

    margin: int
    """The number of the margin among those of the histogram."""
    sum_of: Labels = field(repr=False)
    """For each group of the pass the sum it adds to, negative for none."""
    fold: Labels = field(repr=False)
    """For each cell of the margin the sum it adds to, negative for none."""
    sizes: Floats = field(repr=False)
    """How many cells of the margin each sum has: its noise is so many times that of a cell."""
    is_own: bool
    """Whether every group is a sum of its own."""
    at_least: bool = False
    """Whether the groups may hold more than was measured: rows that the margin does not count."""

    @property
    def sums(self) -> int:
        """How many sums there are."""
        return len(self.sizes)


@dataclass(frozen=True, eq=False)
class Sight:
    """How a histogram sees a measured margin: sums of its cells, and the margin's cells folded onto the same sums.

    A margin of its own cells is seen in full; of one whose other columns it lacks, what can be told without them: sums,
    or, where the margin counts only a part of the rows, what they are at least.
    """

    name: str
    sum_of: Labels = field(repr=False)
    """For each cell of the histogram the sum it adds to, negative for none."""
    fold: Labels = field(repr=False)
    """For each cell of the margin the sum it adds to, negative for none."""
    sizes: Floats = field(repr=False)
    """How many cells of the margin each sum has."""
    at_least: bool = False

    @classmethod
    def in_full(cls, name: str, labels: Labels, cells: int) -> Sight:
        """A margin whose cells are unions of the histogram's."""
        return cls(name, labels, np.arange(cells, dtype=np.int32), np.ones(cells))


@dataclass(frozen=True, eq=False)
class Pass:
    """One pass: groups of the histogram's cells, each inside a group of the pass before."""

    groups: int
    of_cell: Labels = field(repr=False)
    """For each cell of the histogram its group."""
    within: Labels = field(repr=False)
    """For each group the one of the pass before that holds it; empty for the first pass."""
    earlier: int
    """How many groups the pass before has; 0 for the first."""
    aims: tuple[Aim, ...]


def joint(labels: Sequence[Labels], size: int) -> Labels:
    """The coarsest partition that refines all of these; cells without a group have one of their own together."""
    if not labels:
        return np.zeros(size, np.int32)
    _, first, found = np.unique(np.stack(labels, axis=1), axis=0, return_index=True, return_inverse=True)
    order = np.empty(len(first), np.int64)
    order[np.argsort(first)] = np.arange(len(first))  # groups are numbered as they first appear
    return order[found.reshape(-1)].astype(np.int32)


def refines(fine: Labels, coarse: Labels) -> bool:
    """Whether every group of one partition lies in one group of another."""
    pairs = np.unique(np.stack([fine, coarse], axis=1), axis=0)
    return len(pairs) == len(np.unique(fine))


def chain_of(size: int, *, must: Sequence[Labels], may: Sequence[Labels]) -> tuple[Labels, ...]:
    """The chain of a histogram: total first, cells last, between them all that must and what may be settled on the way.

    Raises ValueError where partitions that must be settled cross.
    """
    chain = [np.zeros(size, np.int32)]
    for wanted in sorted((joint([one], size) for one in must), key=_count):
        if not refines(wanted, chain[-1]):
            raise ValueError("partitions that must be settled cross")
        if _count(wanted) > _count(chain[-1]):
            chain.append(wanted)
    cells = np.arange(size, dtype=np.int32)
    for wanted in sorted((joint([one], size) for one in may), key=_count):
        for place, after in enumerate([*chain[1:], cells], start=1):
            before = chain[place - 1]
            if refines(wanted, before) and refines(after, wanted) and _count(before) < _count(wanted) < _count(after):
                chain.insert(place, wanted)
                break
    if _count(chain[-1]) < size:
        chain.append(cells)
    return tuple(chain)


def _count(labels: Labels) -> int:
    return int(labels.max(initial=-1)) + 1


def passes_of(chain: Sequence[Labels], sights: Sequence[Sight], must: Sequence[Labels] = ()) -> tuple[Pass, ...]:
    """The passes of a chain, for margins as the histogram sees them."""
    found: list[Pass] = []
    needed = min((_count(joint([one], len(one))) for one in must), default=len(chain[-1]))
    while _count(chain[0]) < needed and not any(_aim(0, one, chain[0]).sums for one in _equal(sights)):
        chain = chain[1:]  # what nothing was measured of, and nothing is asked of, is not settled first
    for depth, of_cell in enumerate(chain):
        groups = _count(of_cell)
        within, earlier = np.zeros(0, np.int32), 0
        if depth:
            within, earlier = np.zeros(groups, np.int32), _count(chain[depth - 1])
            within[of_cell] = chain[depth - 1]
        aims = [_aim(number, sight, of_cell) for number, sight in enumerate(sights)]
        useful = [one for one in aims if one.sums and not (depth and _is_settled(one, within))]
        found.append(Pass(groups, of_cell, within, earlier, tuple(useful)))
    return tuple(found)


def all_seen(labels: Labels, sights: Sequence[Sight]) -> bool:
    """Whether something was measured of every group of a partition: what is not seen is not settled early."""
    of_cell = joint([labels], len(labels))
    seen = np.zeros(_count(of_cell), bool)
    for sight in _equal(sights):
        seen |= _aim(0, sight, of_cell).sum_of >= 0
    return bool(seen.all())


def _equal(sights: Sequence[Sight]) -> list[Sight]:
    return [one for one in sights if not one.at_least]


def _is_settled(aim: Aim, within: Labels) -> bool:
    """Whether an aim sees nothing that the pass before did not see."""
    return refines(within, aim.sum_of)


def _aim(number: int, sight: Sight, of_cell: Labels) -> Aim:
    """What a pass sees of what the histogram sees of a margin."""
    met = meeting(sight.sum_of, len(sight.sizes), of_cell, _count(of_cell), at_least=sight.at_least)
    sizes = folded(sight.sizes[None], met.fold, met.sums)[0]
    fold = np.where(sight.fold >= 0, met.fold[np.maximum(sight.fold, 0)], -1).astype(np.int32)
    own = met.sums == _count(of_cell) and bool((met.sum_of >= 0).all()) and not sight.at_least
    return Aim(number, met.sum_of, fold, sizes, own, sight.at_least)


@dataclass(frozen=True, eq=False)
class Meeting:
    """The finest sums that are unions of groups and of a margin's cells: for both the sum they add to."""

    sum_of: Labels
    fold: Labels
    sums: int


def meeting(labels: Labels, cells: int, of_cell: Labels, groups: int, *, at_least: bool = False) -> Meeting:
    """Where groups and a margin's cells meet. What holds a combination outside the margin is unseen, or at least it."""
    seen = labels >= 0
    pairs = np.unique(np.stack([of_cell[seen], labels[seen]], axis=1), axis=0).reshape(-1, 2)
    links = coo_array((np.ones(len(pairs)), (pairs[:, 0], groups + pairs[:, 1])), shape=(groups + cells,) * 2)
    _, together = connected_components(links, directed=False)
    spoilt = np.zeros(together.max(initial=0) + 1, bool)
    spoilt[together[of_cell[~seen]]] = not at_least
    covered = np.zeros(groups, bool)
    covered[pairs[:, 0]] = True
    sum_of = np.where(covered & ~spoilt[together[:groups]], together[:groups], -1)
    kept = np.unique(sum_of[sum_of >= 0])
    rename = np.full(together.max(initial=0) + 2, -1, np.int32)
    rename[kept] = np.arange(len(kept), dtype=np.int32)
    return Meeting(rename[sum_of], rename[together[groups:]], len(kept))


def folded(numbers: Floats, labels: Labels | Integers, count: int) -> Floats:
    """Columns added up by their labels; those without a label are left out."""
    if count == len(labels) and (labels == np.arange(count)).all():
        return numbers
    out = np.zeros((len(numbers), count))
    fold_onto(out, np.ascontiguousarray(numbers, dtype=np.float64), np.asarray(labels, np.int32))
    return out
