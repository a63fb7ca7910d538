"""The histograms that a population is settled in: their cells, the margins they hold, and what they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from estimation.arrays import Flags, Integers, Labels
from estimation.atoms import Atoms
from estimation.design import Design
from estimation.errors import Infeasible
from estimation.forest import keys_of
from estimation.kernels.rounding import Keys
from estimation.passes import Meeting, Pass, Sight, all_seen, chain_of, joint, meeting, passes_of
from release_specs.histograms import Arranged, Arrangement
from release_specs.meanings import Node
from release_specs.tallies import Tally


@dataclass(frozen=True, eq=False)
class Link:
    """What a histogram shares with an earlier one: the same groups, as labels of the cells of both."""

    later: int
    earlier: int
    groups: int
    here: Labels = field(repr=False)
    there: Labels = field(repr=False)


@dataclass(frozen=True, eq=False)
class Histogram:
    """Cells that are settled together. `labels` gives for each tally it holds the cell of its margin."""

    nodes: frozenset[Node]
    cells: int
    atoms: Atoms = field(repr=False)
    """One combination of atoms for each cell."""
    labels: dict[str, Labels] = field(repr=False)
    link: Link | None
    keys: Keys = field(repr=False)
    foreign: tuple[Sight, ...] = field(repr=False, default=())
    """What it sees of margins that other histograms hold."""

    def sights(self, sizes: dict[str, int]) -> list[Sight]:
        """Everything it sees, given how many cells the margins have."""
        own = [Sight.in_full(name, labels, sizes[name]) for name, labels in self.labels.items()]
        return [*own, *self.foreign]


def histograms(design: Design, arrangement: Arrangement, finest: Sequence[Tally]) -> tuple[Histogram, ...]:
    """The histograms of a population in the order they are settled; `finest` are the tallies they were arranged for."""
    arranged = arrangement.histograms
    held = _homes(design, arranged, finest)
    needs, shared = _resolutions(design, arranged, held)
    atoms = [_cells(design, found) for found in needs]
    links = _links(design, arranged, held, atoms, shared)
    kept = [_kept(design, held[n], atoms[n], [(link, n) for link in links if link]) for n in range(len(arranged))]
    found = []
    for number, one in enumerate(arranged):
        here, link = kept[number], links[number]
        if link is not None:
            link = Link(number, link.earlier, link.groups, link.here[here], link.there[kept[link.earlier]])
        cells = atoms[number].at(here)
        labels = {tally.name: design.cells_of(tally, cells) for tally in held[number]}
        others = [tally for n, tallies in enumerate(held) if n != number for tally in tallies]
        foreign = _foreign(design, others, atoms[number], here, needs[number])
        keys = keys_of(_names(design, cells))
        found.append(Histogram(one.nodes, cells.size, cells, labels, link, keys, foreign))
    return tuple(found)


def _foreign(
    design: Design, tallies: Sequence[Tally], cells: Atoms, kept: Integers, needs: dict[Node, Labels]
) -> tuple[Sight, ...]:
    """What a histogram sees of tallies of others through the columns they share, where it keeps all cells of a code.

    Of tallies that share no column it sees their total; of those that count a part of its rows, what there is at least.
    """
    dropped = np.ones(cells.size, bool)
    dropped[kept] = False
    found = []
    for tally in tallies:
        nodes = design.populations.nodes_of(tally)
        shared = sorted(nodes & set(needs))
        own = Atoms.enough_of(design.populations, design.population, nodes)
        codes = [needs[node][np.concatenate([own.index[node], cells.index[node]])] for node in shared]
        groups = joint(codes, own.size + cells.size)
        here = groups[own.size :]
        partial = np.isin(groups[: own.size], here[dropped])  # the histogram lacks some of these rows
        cell = design.cells_of(tally, own)
        lost = np.zeros(tally.cells, bool)
        lost[cell[partial & (cell >= 0)]] = True
        count = int(groups.max()) + 1
        met = meeting(np.where(partial, -1, cell).astype(np.int32), tally.cells, groups[: own.size], count)
        inside = np.where((cell >= 0) & lost[np.maximum(cell, 0)], -1, cell).astype(np.int32)
        part = meeting(inside, tally.cells, groups[: own.size], count, at_least=True)
        if met.sums:
            found.append(_sight(tally, met, here[kept]))
        if ((part.fold >= 0) & (met.fold < 0)).any() and not tally.adds:
            found.append(replace(_sight(tally, part, here[kept]), at_least=True))
    return tuple(found)


def _sight(tally: Tally, met: Meeting, groups: Labels) -> Sight:
    sizes = np.bincount(met.fold[met.fold >= 0], minlength=met.sums).astype(float)
    return Sight(tally.name, met.sum_of[groups], met.fold, sizes)


def _kept(design: Design, tallies: Sequence[Tally], atoms: Atoms, links: Sequence[tuple[Link, int]]) -> Integers:
    """The cells that a tally of the histogram counts, or that it shares with another."""
    seen = np.zeros(atoms.size, bool)
    for tally in tallies:
        seen |= design.cells_of(tally, atoms) >= 0
    for link, number in links:
        if link.later == number:
            seen |= link.here >= 0
        if link.earlier == number:
            seen |= link.there >= 0
    return np.flatnonzero(seen)


def alone(design: Design) -> tuple[Histogram, ...]:
    """The one histogram of a tally that shares its rows with no other."""
    (tally,) = design.population.tallies
    atoms = Atoms(design.populations, design.population, {}, tally.cells)
    labels = {tally.name: np.arange(tally.cells, dtype=np.int32)}
    keys = keys_of(str(cell) for cell in range(tally.cells))
    return (Histogram(frozenset(), tally.cells, atoms, labels, None, keys),)


def _homes(design: Design, arranged: Sequence[Arranged], finest: Sequence[Tally]) -> list[list[Tally]]:
    """The tallies of each histogram: the finest where they were put, every other beside one it is a margin of."""
    homes: list[list[Tally]] = [[] for _ in arranged]
    populations, population = design.populations, design.population
    for tally in finest:
        nodes = frozenset(populations.nodes_of(tally))
        fitting = [number for number, one in enumerate(arranged) if nodes <= one.nodes]
        exact = [number for number in fitting if arranged[number].nodes == nodes and not homes[number]]
        homes[(exact or fitting)[0]].append(tally)
    for tally in sorted(population.tallies, key=lambda one: one.name):
        if tally not in finest:
            above = (
                n for n, held in enumerate(homes) for one in held if populations.is_margin_of(population, tally, one)
            )
            homes[next(above)].append(tally)
    return homes


def _resolutions(
    design: Design, arranged: Sequence[Arranged], held: Sequence[Sequence[Tally]]
) -> tuple[list[dict[Node, Labels]], list[dict[Node, Labels]]]:
    """What each histogram tells apart of each column, and what it shares of it with the one that it hangs on.

    Two sides share what both tell apart; where they divide a column across each other, all that either tells apart; and
    whatever decides on the later side whether a row counts. So a part of the rows never outnumbers them.
    """
    shared: list[dict[Node, Labels]] = []
    for number, one in enumerate(arranged):
        below = _subtree(arranged, number)
        sides = [
            [t for n, tallies in enumerate(held) if (n in below) is side for t in tallies] for side in (True, False)
        ]
        shared.append({node: _shared(design, node, sides) for node in one.shared})
    needs = []
    for number, one in enumerate(arranged):
        edges = [shared[number], *(shared[n] for n, other in enumerate(arranged) if other.after == number)]
        found = {}
        for node in one.nodes:
            told = [*_readings(design, held[number], node), *_tests(design, one.nodes, node)]
            told += [edge[node].astype(np.int64) for edge in edges if node in edge]
            found[node] = joint([labels.astype(np.int32) for labels in told], len(design.population.columns[node]))
        needs.append(found)
    return needs, shared


def _readings(design: Design, tallies: Sequence[Tally], node: Node, *, tests_only: bool = False) -> list[Integers]:
    atoms = design.population.columns[node].atoms
    uses = design.populations.readings(design.population.key, tallies, node)
    return [np.array([read(place) for place in atoms]) for name, read in uses if not (tests_only and name)]


def _shared(design: Design, node: Node, sides: Sequence[Sequence[Tally]]) -> Labels:
    size = len(design.population.columns[node])
    told = [joint([one.astype(np.int32) for one in _readings(design, side, node)], size) for side in sides]
    met = meeting(told[0], int(told[0].max()) + 1, told[1], int(told[1].max()) + 1).sum_of[told[1]]
    parts = [np.bincount(np.unique(np.stack([met, one]), axis=1)[0])[met] for one in told]
    crossing = (parts[0] > 1) & (parts[1] > 1)
    tests = [test.astype(np.int32) for test in _readings(design, sides[0], node, tests_only=True)]
    return joint([met, *(np.where(crossing, one, -1).astype(np.int32) for one in told), *tests], size)


def _tests(design: Design, nodes: frozenset[Node], node: Node) -> list[Integers]:
    """What impossible combinations and rules of applicability ask of a column, where all their columns are here."""
    population, populations = design.population, design.populations
    asked = [(population.key.entity, one) for one in population.impossible]
    asked += [(other[0], one) for other in sorted(nodes) if (one := populations.applies_to(other)) is not None]
    found = []
    for entity, condition in asked:
        if populations.meanings.nodes(entity, condition) <= nodes:
            single = Atoms(populations, population, {node: np.arange(len(population.columns[node]))}, 0)
            for _, criterion in condition.criteria():
                test = populations.meanings.test(entity, criterion)
                if test.node == node:
                    found.append(single.wanted(test).astype(np.int64))
    return found


def _cells(design: Design, needs: dict[Node, Labels]) -> Atoms:
    """Every possible combination of what is told apart, with one atom standing for those that are not."""
    columns = sorted(needs)
    firsts = [_firsts(design, node, needs[node]) for node in columns]
    sizes = tuple(len(found) for found in firsts)
    grid = np.indices(sizes).reshape(len(sizes), -1) if sizes else np.zeros((0, 1), np.int64)
    index = {node: first[codes] for node, first, codes in zip(columns, firsts, grid, strict=True)}
    atoms = Atoms(design.populations, design.population, index, grid.shape[1]).possible()
    if atoms.size == 0:
        raise Infeasible(f"every combination of {', '.join(node[1] for node in columns)} is impossible")
    return atoms


def _firsts(design: Design, node: Node, labels: Labels) -> Integers:
    """An atom for each label, in an order that does not depend on that of codes."""
    places = design.population.columns[node].atoms
    ranked = sorted(range(len(places)), key=lambda number: design.populations.word_of(node, places[number]))
    found = {int(labels[number]): number for number in reversed(ranked)}
    return np.array([number for number in ranked if found[int(labels[number])] == number], np.int64)


def _links(
    design: Design,
    arranged: Sequence[Arranged],
    held: Sequence[Sequence[Tally]],
    atoms: Sequence[Atoms],
    told: Sequence[dict[Node, Labels]],
) -> list[Link | None]:
    """What each histogram shares with the one it hangs on: groups that some tally on either side counts in full.

    The other side may count only a part of such a group; its other cells are what is left, so a part never outnumbers
    the whole.
    """
    below = [_subtree(arranged, number) for number in range(len(arranged))]
    found: list[Link | None] = []
    for number, one in enumerate(arranged):
        if one.after is None:
            found.append(None)
            continue
        pair = (atoms[number], atoms[one.after])
        columns = [[told[number][node][cells.index[node]] for cells in pair] for node in sorted(one.shared)]
        size = pair[0].size + pair[1].size
        both = joint([np.concatenate(column).astype(np.int32) for column in columns], size)
        sides = [
            [t for n in range(len(arranged)) if (n in below[number]) is side for t in held[n]] for side in (True, False)
        ]
        counted = [_covered(design, side, pair, one.shared) for side in sides]
        groups = int(both.max()) + 1
        shared = np.zeros(groups, bool)
        for side in counted:
            full = np.zeros(groups, bool)
            for tally in side:
                missed = np.zeros(groups, bool)
                missed[both[~tally]] = True
                full |= ~missed
            shared |= full
        rename = np.where(shared, np.cumsum(shared) - 1, -1).astype(np.int32)
        both = rename[both]
        found.append(Link(number, one.after, int(shared.sum()), both[: pair[0].size], both[pair[0].size :]))
    return found


def _subtree(arranged: Sequence[Arranged], number: int) -> set[int]:
    found = {number}
    for later in range(number + 1, len(arranged)):
        if arranged[later].after in found:
            found.add(later)
    return found


def _covered(
    design: Design, tallies: Sequence[Tally], pair: tuple[Atoms, Atoms], shared: frozenset[Node]
) -> list[Flags]:
    """For each tally, which cells of both histograms have shared codes of which the tally counts every row."""
    found = []
    known: dict[tuple[object, ...], Flags] = {}
    for tally in tallies:
        conditions = tuple(design.populations.conditions_of(tally))
        key = (frozenset(design.populations.nodes_of(tally)), conditions, tally.usable)
        if key not in known:
            own = Atoms.enough_of(design.populations, design.population, design.populations.nodes_of(tally))
            counted = own.cell(tally, tally.attributes) >= 0
            columns = sorted(shared & set(own.index))
            size = own.size + pair[0].size + pair[1].size
            codes = [np.concatenate([own.index[n], pair[0].index[n], pair[1].index[n]]) for n in columns]
            same = joint([code.astype(np.int32) for code in codes], size)
            full = np.ones(int(same.max()) + 1, bool)
            full[same[: own.size][~counted]] = False
            known[key] = full[same[own.size :]]
        found.append(known[key])
    return found


def _names(design: Design, atoms: Atoms) -> list[str]:
    """A text for each cell that says which it is, whatever the order of codes."""
    places = [(node, atoms.places(node)) for node in sorted(atoms.index)]
    words = [
        ["{}={}{}".format(node[1], *design.populations.word_of(node, int(place))) for place in found]
        for node, found in places
    ]
    return [";".join(parts) for parts in zip(*words, strict=True)] if words else [""] * atoms.size


def passes_for(histogram: Histogram, sights: Sequence[Sight], must: Sequence[Labels]) -> tuple[Pass, ...]:
    """The passes in which a histogram is settled, given the partitions that must be settled on the way."""
    first = [histogram.link.here] if histogram.link is not None else []
    seen = {sight.name for sight in sights}
    may = [labels for name, labels in histogram.labels.items() if name in seen and all_seen(labels, sights)]
    chain = chain_of(histogram.cells, must=[*first, *must], may=may)
    return passes_of(chain, sights, must=[*first, *must])
