"""What each measurement is worth: how fast the errors of all estimates fall as one measurement becomes more precise.

A population's least squares falls apart into parts (see `coordinates`), so its errors do too. For each part the two
passes of `stages` and `variances` are run with given precisions, and then backwards: the derivative of an inverse P of
A is -P dA P, and everything else is sums and products. Areas of one kind share their matrices, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from estimation.arrays import Floats, Integers
from estimation.coordinates import Coordinates
from estimation.kernels.blocks import orthonormal
from estimation.observations import Margin, Observation
from estimation.spaces import Spaces
from estimation.tree import Level, Tree

NOTHING = 1e-9
"""Directions shorter than this are none."""

Seen = tuple[str, str]
"""A measurement: its level in the tree, and its margin."""
Weigh = Callable[[list[Floats]], list[Floats]]
"""From the variances of all goals to how much each matters."""


@dataclass(frozen=True, eq=False)
class Goal:
    """A margin at a level, whose errors matter: measured there or not."""

    margin: Margin
    level: str


@dataclass(frozen=True, eq=False)
class _Node:
    """A level of the tree by kinds of areas, and kinds of areas together with the ways down to them."""

    name: str
    above: int
    """The number of the level above; -1 for the whole."""
    children: Floats = field(repr=False)
    """For each kind of the level above how many children of each kind it has."""
    kind: Integers = field(repr=False)
    """For each way down the kind at its end."""
    way_above: Integers = field(repr=False)
    """For each way down the one it goes on from, among those of the level above."""
    kind_above: Integers = field(repr=False)
    areas: Floats = field(repr=False)
    """For each way down how many areas it leads to."""


@dataclass(frozen=True, eq=False)
class _Strand:
    """One part: what each measurement tells of it, and at each level the directions that are measured."""

    number: int
    tells: Mapping[Seen, Floats] = field(repr=False)
    """For each measurement its information at a precision of one: (direction, direction)."""
    bases: tuple[Floats, ...] = field(repr=False)
    basis: Floats = field(repr=False)
    """All directions that are measured at some level, in core coordinates."""


@dataclass(frozen=True, eq=False)
class _Passed:
    """A strand after both passes: matrices by level."""

    own: list[Floats]
    told: list[Floats]
    best: list[Floats]


@dataclass(frozen=True, eq=False)
class Worth:
    """The measurements of one population, and the goals that they serve."""

    coordinates: Coordinates
    goals: tuple[Goal, ...]
    nodes: tuple[_Node, ...] = field(repr=False)
    strands: tuple[_Strand, ...] = field(repr=False)

    @classmethod
    def of(
        cls, coordinates: Coordinates, core: int, *, tree: Tree, seen: Sequence[Observation], goals: Sequence[Goal]
    ) -> Worth:
        """What measurements, exact totals among them, would be worth; their numbers and variances do not matter."""
        nodes = _nodes(tree)
        spaces = [Spaces.spanned_by(coordinates, core, _seen_within(node.name, nodes, seen)) for node in nodes]
        strands = [_strand(number, spaces, seen, coordinates) for number in range(len(coordinates.parts))]
        return cls(coordinates, tuple(goals), nodes, tuple(one for one in strands if len(one.basis)))

    def areas(self, goal: Goal) -> Floats:
        """For each way down to a goal's level how many areas it leads to."""
        return self.nodes[self._place(goal)].areas

    def variances(self, precisions: Mapping[Seen, float]) -> list[Floats]:
        """For each goal the variances of its estimates: (way down, core cell)."""
        return self._variances([_pass(one, self.nodes, precisions) for one in self.strands])

    def _variances(self, passed: Sequence[_Passed]) -> list[Floats]:
        found = []
        for goal in self.goals:
            total = np.zeros((len(self.areas(goal)), len(goal.margin.cells)))
            for strand, known in zip(self.strands, passed, strict=True):
                seen = self._seen(goal, strand)
                if seen is not None:
                    total += np.einsum("ci,dij,cj->dc", seen, known.best[self._place(goal)], seen, optimize=True)
            found.append(total)
        return found

    def slopes(self, precisions: Mapping[Seen, float], weigh: Weigh) -> tuple[float, dict[Seen, float]]:
        """A weighted sum of the variances, and for each measurement how fast it falls with its precision."""
        passed = [_pass(one, self.nodes, precisions) for one in self.strands]
        variances = self._variances(passed)
        weights = weigh(variances)
        falls: dict[Seen, float] = dict.fromkeys(precisions, 0.0)
        for strand, known in zip(self.strands, passed, strict=True):
            asked = self._asked(strand, weights)
            for name, fall in _fall(strand, self.nodes, known, asked).items():
                falls[name] = falls.get(name, 0.0) + fall
        return sum(float((one * weight).sum()) for one, weight in zip(variances, weights, strict=True)), falls

    def _asked(self, strand: _Strand, weights: Sequence[Floats]) -> list[Floats]:
        """For each level and way down, what the weighted sum of variances asks of a strand's covariances."""
        size = len(strand.basis)
        asked = [np.zeros((len(node.kind), size, size)) for node in self.nodes]
        for goal, weight in zip(self.goals, weights, strict=True):
            seen = self._seen(goal, strand)
            if seen is not None:
                asked[self._place(goal)] += np.einsum("dc,ci,cj->dij", weight, seen, seen, optimize=True)
        return asked

    def _place(self, goal: Goal) -> int:
        return next(number for number, node in enumerate(self.nodes) if node.name == goal.level)

    def _seen(self, goal: Goal, strand: _Strand) -> Floats | None:
        """A goal's cells in the directions of a strand, so that variances add up over strands; None if it sees none."""
        free = goal.margin.free
        spread = float(self.coordinates.spread(free, free, alike=free)[strand.number])
        found: Floats = np.sqrt(spread) * (goal.margin.cells @ strand.basis.T)
        return found if spread > 0 else None


def _nodes(tree: Tree) -> tuple[_Node, ...]:
    """Every level, the whole first."""
    nothing = np.zeros(1, np.int64)
    found = [_Node(tree.whole, -1, np.zeros((0, 1)), nothing, nothing, nothing, np.ones(1))]
    for levels in tree.branches:
        above, kinds_above, ways_above = 0, nothing, nothing
        for level, kinds in zip(levels, _kinds(levels), strict=True):
            ways = _alike(np.stack([kinds, ways_above[level.parents]], axis=1))
            examples = np.unique(ways, return_index=True)[1]
            first, parents = np.unique(kinds_above, return_index=True)[1], level.parents[examples]
            held = _held(level, kinds)[first].astype(float)
            ends = (kinds[examples], ways_above[parents], kinds_above[parents])
            found.append(_Node(level.name, above, held, *ends, np.bincount(ways).astype(float)))
            above, kinds_above, ways_above = len(found) - 1, kinds, ways
    return tuple(found)


def _kinds(levels: Sequence[Level]) -> list[Integers]:
    """For each level and area its kind: areas with as many children of every kind are of one kind."""
    found = [np.zeros(levels[-1].areas, np.int64)]
    for level in reversed(levels[1:]):
        found.append(_alike(_held(level, found[-1])))
    return found[::-1]


def _held(level: Level, kinds: Integers) -> Integers:
    """For each area above how many children of each kind it has."""
    held = np.zeros((level.above, int(kinds.max()) + 1), np.int64)
    np.add.at(held, (level.parents, kinds), 1)
    return held


def _alike(rows: Integers) -> Integers:
    """For each row the number of its kind: rows that are equal are of one."""
    found: Integers = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return found


def _seen_within(name: str, nodes: Sequence[_Node], seen: Sequence[Observation]) -> list[Observation]:
    """What is seen at a level and at all below it."""
    inside = {number for number, node in enumerate(nodes) if node.name == name}
    for number, node in enumerate(nodes):
        if node.above in inside:
            inside.add(number)
    names = {nodes[number].name for number in inside}
    return [one for one in seen if one.level in names]


def _strand(number: int, spaces: Sequence[Spaces], seen: Sequence[Observation], coordinates: Coordinates) -> _Strand:
    measured = [one.measured[number] for one in spaces]
    stacked = np.ascontiguousarray(np.concatenate(measured))  # what is exact of the whole may be measured below
    basis = orthonormal(stacked, np.zeros((0, stacked.shape[1])))
    tells = {}
    for one in seen:
        if not one.is_exact and (found := _told(one, number, basis, coordinates)) is not None:
            tells[one.level, one.margin.name] = found
    return _Strand(number, tells, tuple(space @ basis.T for space in measured), basis)


def _told(one: Observation, number: int, basis: Floats, coordinates: Coordinates) -> Floats | None:
    diluted = float(coordinates.dilution(one.margin.free)[number])
    cells = one.margin.cells @ basis.T
    if np.isnan(diluted) or not np.abs(cells).max(initial=0) > NOTHING:
        return None
    found: Floats = cells.T @ cells / diluted
    return found


def _within(matrices: Floats, basis: Floats) -> Floats:
    """The inverses of matrices within the span of a basis."""
    inner = basis @ matrices @ basis.T
    found: Floats = basis.T @ np.linalg.inv(inner) @ basis
    return found


def _pass(strand: _Strand, nodes: Sequence[_Node], precisions: Mapping[Seen, float]) -> _Passed:
    """Up, then down."""
    size = len(strand.basis)
    known = [np.zeros((node.kind.max() + 1, size, size)) for node in nodes]
    for (level, name), information in strand.tells.items():
        number = next(place for place, node in enumerate(nodes) if node.name == level)
        known[number] += precisions.get((level, name), 0.0) * information
    own, told, best = ([np.zeros(0)] * len(nodes) for _ in range(3))
    for number in range(len(nodes) - 1, -1, -1):
        node = nodes[number]
        own[number] = _within(known[number], strand.bases[number])
        if node.above >= 0:
            summed = np.einsum("kc,cij->kij", node.children, own[number])
            told[number] = _within(summed, strand.bases[number])
            known[node.above] = known[node.above] + told[number]
    for number, node in enumerate(nodes):
        mine = own[number][node.kind]
        if node.above >= 0:
            passed = told[number][node.kind_above]
            mine = mine - mine @ _surprise(passed, best[node.above][node.way_above]) @ mine
        best[number] = mine
    return _Passed(own, told, best)


def _surprise(passed: Floats, above: Floats) -> Floats:
    found: Floats = passed - passed @ above @ passed
    return found


def _fall(strand: _Strand, nodes: Sequence[_Node], known: _Passed, asked: list[Floats]) -> dict[Seen, float]:
    """Both passes backwards: from what is asked of the best estimates to what each measurement adds to it."""
    size = len(strand.basis)
    of_own = [np.zeros_like(one) for one in known.own]
    of_told = [np.zeros_like(one) if one.ndim > 1 else np.zeros((0, size, size)) for one in known.told]
    for number in range(len(nodes) - 1, -1, -1):
        node, mine = nodes[number], asked[number]
        if node.above < 0:
            np.add.at(of_own[number], node.kind, mine)
            continue
        own, passed = known.own[number][node.kind], known.told[number][node.kind_above]
        above = known.best[node.above][node.way_above]
        surprise = _surprise(passed, above)
        np.add.at(of_own[number], node.kind, mine - mine @ own @ surprise - surprise @ own @ mine)
        back = -own @ mine @ own
        np.add.at(of_told[number], node.kind_above, back - back @ passed @ above - above @ passed @ back)
        np.add.at(asked[node.above], node.way_above, -passed @ back @ passed)
    falls: dict[Seen, float] = {}
    for number, node in enumerate(nodes):
        if node.above >= 0:  # the level above is done: what it asks of this one is known
            up = known.told[number] @ of_told[number] @ known.told[number]
            of_own[number] -= np.einsum("kc,kij->cij", node.children, up)
        information = known.own[number] @ of_own[number] @ known.own[number]
        total = information.sum(axis=0)
        for (level, name), tells in strand.tells.items():
            if level == node.name:
                falls[level, name] = float(np.sum(total * tells))
        for lower, below in enumerate(nodes):
            if below.above == number:
                of_told[lower] -= information
    return falls
