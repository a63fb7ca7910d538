"""Bounds of groups of a histogram's cells, for every area of every level: from exact totals, rules and public files.

Bounds are pushed up before anything is settled: an area's bound is at least as tight as the sum of its parts', and a
histogram's as tight as what later ones need of it. So what is settled above always leaves room below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from estimation.arrays import Floats, Labels
from estimation.errors import Infeasible
from estimation.histogram import Histogram, Link
from estimation.settling import Limits, implied
from estimation.tree import Level, Tree

Bounds = tuple[Floats, Floats]
"""The least and the most of each group, (area, group)."""


@dataclass(frozen=True, eq=False)
class Limited:
    """Groups of one histogram's cells with their bounds at some levels; areas in the order of the tree."""

    reason: str
    histogram: int
    of_cell: Labels = field(repr=False)
    bounds: dict[str, Bounds] = field(repr=False)

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return int(next(iter(self.bounds.values()))[0].shape[1])

    def at(self, level: str, first: int, last: int) -> Limits | None:
        """The bounds of some areas of a level."""
        if level not in self.bounds:
            return None
        low, high = self.bounds[level]
        return Limits(self.of_cell, low[first:last], high[first:last])


def pushed_up(limited: Limited, tree: Tree) -> Limited:
    """With every area's bounds as tight as those of the areas in it."""
    bounds = dict(limited.bounds)
    for branch in tree.branches:
        for depth in range(len(branch) - 1, -1, -1):
            level = branch[depth]
            if level.name in bounds:
                above = branch[depth - 1].name if depth else tree.whole
                bounds[above] = _tighter(bounds.get(above), _summed(bounds[level.name], level), limited.reason, above)
    return Limited(limited.reason, limited.histogram, limited.of_cell, bounds)


def _summed(bounds: Bounds, level: Level) -> Bounds:
    return level.summed(bounds[0]), level.summed(bounds[1])


def _tighter(known: Bounds | None, other: Bounds, reason: str, level: str) -> Bounds:
    low, high = other if known is None else (np.maximum(known[0], other[0]), np.minimum(known[1], other[1]))
    if (low > high).any():
        area, group = (int(found[0]) for found in np.nonzero(low > high))
        raise Infeasible(
            f"{reason}: at level '{level}', area number {area + 1} would need a number of at least "
            f"{low[area, group]:,.0f} and at most {high[area, group]:,.0f}. Two exact totals, rules or public columns "
            "contradict each other"
        )
    return low, high


def handed_on(limited: Sequence[Limited], histograms: Sequence[Histogram]) -> list[Limited]:
    """All bounds, with those that earlier histograms must keep so that later ones can keep theirs."""
    found = list(limited)
    for number in range(len(histograms) - 1, 0, -1):
        link = histograms[number].link
        if link is None:
            continue
        for one in [one for one in found if one.histogram == number]:
            bounds = {
                level: implied(Limits(one.of_cell, low, high), link.here, link.groups)
                for level, (low, high) in one.bounds.items()
            }
            if any((low > 0).any() or np.isfinite(high).any() for low, high in bounds.values()):
                found.append(Limited(one.reason, link.earlier, link.there, bounds))
            wide = _over_several(one.of_cell, link)
            if (wide >= 0).any():
                found.append(Limited(one.reason, link.earlier, wide, one.bounds))
    return found


def _over_several(of_cell: Labels, link: Link) -> Labels:
    """For each cell of the earlier histogram the bound group that it is in, of those made of several shared groups."""
    pairs = np.unique(np.stack([link.here, of_cell]), axis=1)
    split = np.bincount(pairs[0][pairs[0] >= 0], minlength=link.groups) > 1
    spoilt = np.unique(pairs[1][(pairs[0] < 0) | split[pairs[0]]])
    parts = np.bincount(pairs[1][pairs[1] >= 0], minlength=int(of_cell.max(initial=-1)) + 1)
    home = np.full(link.groups + 1, -1, np.int32)
    for group, bound in pairs.T:
        if group >= 0 and bound >= 0 and bound not in spoilt and parts[bound] > 1:
            home[group] = bound
    return home[link.there]
