"""Into which histograms the tables of a population are put: a tree of them, none of which is settled blindly.

A table that is published for large areas only tells nothing about small ones. If a part of its rows is published for
small areas too, the table's histogram would be settled there by nothing that was measured, and the part would have to
fit into what was made up. Such a pair becomes one histogram, as long as that is not too large.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from math import prod

import numpy as np

from estimation.arrays import Flags
from estimation.design import Design
from estimation.forest import WHOLE, Forest
from estimation.histogram import Histogram, Link, histograms
from release_specs.histograms import MOST_CELLS, Arrangement, arrange, contracted
from release_specs.meanings import Node
from release_specs.tallies import Tally


def arranged(design: Design, forest: Forest, bound: AbstractSet[str]) -> tuple[Arrangement, tuple[Histogram, ...]]:
    """The histograms of a population, those of the tallies in `bound` (by name) first where it can be helped."""
    populations, population = design.populations, design.population
    finest = populations.finest(population)
    sizes = {node: len(column) for node, column in population.columns.items()}
    nodes = {tally.name: frozenset(populations.nodes_of(tally)) for tally in population.tallies}
    arrangement = arrange(
        [nodes[tally.name] for tally in finest], sizes, first=[nodes[name] for name in sorted(bound & nodes.keys())]
    )
    seen = {tally.name: _levels_of(tally, forest) for tally in population.tallies}
    found = histograms(design, arrangement, finest)
    for _ in range(len(found)):
        blind = [one.link.later for one in found if one.link is not None and _is_blind(found, one.link, seen)]
        tried = (contracted(arrangement, number) for number in blind)
        fitting = (one for one in tried if max(_cells(one, sizes)) <= max(MOST_CELLS, *_cells(arrangement, sizes)))
        if (better := next(fitting, None)) is None:
            break
        arrangement, found = better, histograms(design, better, finest)
    return arrangement, found


def _cells(arrangement: Arrangement, sizes: Mapping[Node, int]) -> list[int]:
    return [prod(sizes[node] for node in one.nodes) for one in arrangement.histograms]


def _levels_of(tally: Tally, forest: Forest) -> frozenset[str]:
    """The levels about which a tally tells something: its own and those above them."""
    found = {WHOLE}
    own = {forest.name_of(tally.spine, level) for level in tally.levels or (None,)}
    for branch in forest.tree.branches:
        names = [level.name for level in branch]
        deepest = max((names.index(name) for name in own & set(names)), default=-1)
        found |= set(names[: deepest + 1])
    return frozenset(found)


def _is_blind(found: Sequence[Histogram], link: Link, seen: Mapping[str, frozenset[str]]) -> bool:
    """Whether the earlier of two linked histograms does not see what they share, at a level that the later one sees."""
    shared = link.there >= 0
    levels = frozenset[str]().union(*(seen[name] for name in found[link.later].labels))
    return any(not _covered(found[link.earlier], level, seen)[shared].all() for level in levels)


def _covered(histogram: Histogram, level: str, seen: Mapping[str, frozenset[str]]) -> Flags:
    """The cells of a histogram of which something was measured at a level, alone or together with others."""
    covered = np.zeros(histogram.cells, bool)
    for name, labels in histogram.labels.items():
        if level in seen[name]:
            covered |= labels >= 0
    for sight in histogram.foreign:
        if level in seen[sight.name] and not sight.at_least:
            covered |= sight.sum_of >= 0
    return covered
