"""What each measurement is worth: how fast the errors of all estimates fall as one measurement becomes more precise.

A population's least squares falls apart into parts (see `coordinates`), so its errors do too. For each part the two
passes of `stages` and `variances` are run with given precisions, and then backwards: the derivative of an inverse P of
A is -P dA P, and everything else is sums and products. Areas of one kind share their matrices, as there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from estimation.arrays import Floats, Integers
from estimation.coordinates import Coordinates
from estimation.kernels.blocks import orthonormal
from estimation.observations import Margin, Observation
from estimation.stages import Stage
from estimation.variances import Place, places

NOTHING = 1e-9
"""Directions shorter than this are none."""

Seen = tuple[str, str]
"""A measurement: its level in the tree, and its margin."""


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
    def of(cls, coordinates: Coordinates, whole: Stage, goals: Sequence[Goal]) -> Worth:
        """What the stages of a population say, whatever precisions they were made with."""
        at = places(whole)
        nodes = _nodes(at)
        strands = [_strand(number, at, nodes, coordinates) for number in range(len(coordinates.parts))]
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

    def slopes(
        self, precisions: Mapping[Seen, float], weigh: Sequence[Floats] | None = None
    ) -> tuple[list[Floats], dict[Seen, float]]:
        """The variances, and for each measurement how fast their weighted sum falls with its precision.

        `weigh` has a weight for every variance; without it each counts once for every area.
        """
        passed = [_pass(one, self.nodes, precisions) for one in self.strands]
        weights = [self.areas(goal)[:, None] for goal in self.goals] if weigh is None else weigh
        falls: dict[Seen, float] = dict.fromkeys(precisions, 0.0)
        for strand, known in zip(self.strands, passed, strict=True):
            size = len(strand.basis)
            asked = [np.zeros((len(node.kind), size, size)) for node in self.nodes]
            for goal, weight in zip(self.goals, weights, strict=True):
                seen = self._seen(goal, strand)
                if seen is not None:
                    each = np.broadcast_to(weight, (len(self.areas(goal)), len(seen)))
                    asked[self._place(goal)] += np.einsum("dc,ci,cj->dij", each, seen, seen, optimize=True)
            for name, fall in _fall(strand, self.nodes, known, asked).items():
                falls[name] = falls.get(name, 0.0) + fall
        return self._variances(passed), falls

    def _place(self, goal: Goal) -> int:
        return next(number for number, node in enumerate(self.nodes) if node.name == goal.level)

    def _seen(self, goal: Goal, strand: _Strand) -> Floats | None:
        """A goal's cells in the directions of a strand, so that variances add up over strands; None if it sees none."""
        free = goal.margin.free
        spread = float(self.coordinates.spread(free, free, alike=free)[strand.number])
        found: Floats = np.sqrt(spread) * (goal.margin.cells @ strand.basis.T)
        return found if spread > 0 else None


def _nodes(at: Mapping[str, Place]) -> tuple[_Node, ...]:
    """Every level, the whole first."""
    names, found = list(at), []
    for place in at.values():
        if place.above is None or place.level is None:
            nothing = np.zeros(1, np.int64)
            found.append(_Node(place.stage.name, -1, np.zeros((0, 1)), nothing, nothing, nothing, np.ones(1)))
            continue
        examples = np.unique(place.kinds, return_index=True)[1]
        parents, above = place.level.parents[examples], place.above
        held = np.zeros((len(above.stage.covariance), len(place.stage.covariance)))
        first = np.unique(above.stage.kinds, return_index=True)[1]
        for kind, parent in enumerate(first):
            start, end = place.level.starts[parent : parent + 2]
            held[kind] = np.bincount(place.stage.kinds[start:end], minlength=held.shape[1])
        found.append(
            _Node(
                place.stage.name,
                names.index(above.stage.name),
                held,
                place.stage.kinds[examples],
                above.kinds[parents],
                above.stage.kinds[parents],
                np.bincount(place.kinds).astype(float),
            )
        )
    return tuple(found)


def _strand(number: int, at: Mapping[str, Place], nodes: Sequence[_Node], coordinates: Coordinates) -> _Strand:
    spaces = [place.stage.spaces.measured[number] for place in at.values()]
    stacked = np.ascontiguousarray(np.concatenate(spaces))  # what is exact of the whole may be measured below
    basis = orthonormal(stacked, np.zeros((0, stacked.shape[1])))
    tells = {}
    for place in at.values():
        for one in place.stage.observations:
            if not one.is_exact and (found := _told(one, number, basis, coordinates)) is not None:
                tells[place.stage.name, one.margin.name] = found
    return _Strand(number, tells, tuple(space @ basis.T for space in spaces), basis)


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
