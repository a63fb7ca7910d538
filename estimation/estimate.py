"""From measurements to tables: the unbiased estimates, and whole numbers that agree, for one population at a time.

The whole first, then family by family down the levels. Within a family the unbiased estimates come first, then each
histogram is settled in its turn: given its parent's numbers, what earlier histograms settled, and all bounds. Families
are independent, so several are worked on at once; the numbers do not depend on how many.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from estimation.arrays import Floats, Integers, Labels
from estimation.design import Design, TallyMargin
from estimation.forest import WHOLE, Forest
from estimation.histogram import Histogram, passes_for
from estimation.kernels.blocks import add_shared, added_up
from estimation.least_squares import FAMILY_CELLS, Fit
from estimation.limits import Limited
from estimation.passes import Pass, Sight, folded
from estimation.settling import Certificate, Family, Limits, Seen, settle_families
from estimation.stages import Stage

WORKERS = os.cpu_count() or 1

Ways = dict[str, list[tuple[list[Sight], tuple[Pass, ...]]]]
"""For each level and histogram what it sees there, and its passes."""


@dataclass(frozen=True, eq=False)
class Settled:
    """The numbers of a population in the order of its tree, and how each family was settled.

    `whole` and `best` hold for each level and tally the published whole numbers and the unbiased estimates, in the
    order of the tally's margin.
    """

    whole: dict[tuple[str, str], Integers] = field(repr=False, default_factory=dict)
    best: dict[tuple[str, str], Floats] = field(repr=False, default_factory=dict)
    histograms: dict[str, list[Integers]] = field(repr=False, default_factory=dict)
    """For each level the settled histograms: kept for the levels that rules or simulations ask for."""
    certificates: list[Certificate] = field(repr=False, default_factory=list)


@dataclass(frozen=True, eq=False)
class Work:
    """Everything that settling a population needs; see `problem`."""

    design: Design
    forest: Forest
    fit: Fit
    histograms: tuple[Histogram, ...]
    limited: tuple[Limited, ...]
    precisions: dict[str, dict[str, Floats]] = field(repr=False)
    """For each level and measured tally the precision of a cell from the area's own subtree."""
    wanted: dict[str, tuple[str, ...]]
    """For each level the tallies that are published there."""
    signed: bool = False
    keep: frozenset[str] = frozenset()
    """The levels whose histograms are kept."""

    def ways(self) -> Ways:
        """How each histogram is settled at each level: levels of which the same is known share their passes."""
        sizes = {name: self._cells(one) for name, one in self.design.margins.items()}
        known: dict[tuple[object, ...], list[tuple[list[Sight], tuple[Pass, ...]]]] = {}
        found = {}
        for level, precisions in self.precisions.items():
            told = (frozenset(precisions), *(level in one.bounds for one in self.limited))
            if told not in known:
                known[told] = [self._way(number, level, sizes) for number in range(len(self.histograms))]
            found[level] = known[told]
        return found

    def _way(self, number: int, level: str, sizes: dict[str, int]) -> tuple[list[Sight], tuple[Pass, ...]]:
        histogram = self.histograms[number]
        sights = [one for one in histogram.sights(sizes) if one.name in self.precisions[level]]
        must = [one.of_cell for one in self.limited if one.histogram == number and level in one.bounds]
        return sights, passes_for(histogram, sights, must)

    def _cells(self, one: TallyMargin) -> int:
        return len(one.margin.cells) * self.design.coordinates.cells(one.margin.free)


def settle_population(work: Work, *, workers: int = WORKERS, progress: Callable[[str], None] | None = None) -> Settled:
    """Settles a population from the whole down."""
    ways, settled = work.ways(), Settled()
    root = _Family(work, ways, work.fit.whole, (0, 1))
    best = work.fit.best_of_whole()
    numbers, certificates = root.settle(best, starts=np.array([0, 1]), parents=[])
    _make_room(settled, work, WHOLE, 1, numbers)
    root.store(settled, numbers, best, np.zeros_like(best), np.zeros(1, np.int64))
    settled.certificates.extend(certificates)
    _keep(settled, work, WHOLE, numbers)
    with ThreadPoolExecutor(workers) as pool:
        _descend(_Descent(work, ways, settled, pool, progress), work.fit.whole, best, numbers)
    return settled


@dataclass(frozen=True, eq=False)
class _Descent:
    work: Work
    ways: Ways
    settled: Settled
    pool: ThreadPoolExecutor
    progress: Callable[[str], None] | None


def _descend(descent: _Descent, above: Stage, best: Floats, numbers: list[Floats]) -> None:
    """Settles the levels below one, branch by branch."""
    work, settled = descent.work, descent.settled
    size = work.fit.core * work.design.coordinates.length + sum(one.cells for one in work.histograms)
    for branch, (level, lower) in enumerate(above.below):
        if descent.progress is not None:
            descent.progress(level.name)
        _make_room(settled, work, level.name, lower.areas, numbers)
        step = _Step(descent, above, branch, best, numbers, *_rooms(work, lower, best))
        for certificates in descent.pool.map(step.settle, level.families(cells=size, most=FAMILY_CELLS)):
            settled.certificates.extend(certificates)
        _keep(settled, work, level.name, step.lower_numbers)
        if lower.below:
            _descend(descent, lower, step.lower_best, step.lower_numbers)


def _rooms(work: Work, lower: Stage, best: Floats) -> tuple[Floats, list[Floats]]:
    """Room for the best estimates and histograms of a level, where a level below or a rule asks for them."""
    lower_best = np.empty((lower.areas if lower.below else 0, *best.shape[1:]))
    keep = bool(lower.below) or lower.name in work.keep
    return lower_best, [np.empty((lower.areas, one.cells)) for one in work.histograms] if keep else []


@dataclass(frozen=True, eq=False)
class _Step:
    """From one level to the next of a branch."""

    descent: _Descent
    above: Stage
    branch: int
    best: Floats
    numbers: list[Floats]
    lower_best: Floats
    lower_numbers: list[Floats]

    def settle(self, parents: tuple[int, int]) -> list[Certificate]:
        """The families of some parents: estimates first, then whole numbers."""
        level, lower = self.above.below[self.branch]
        work, mine = self.descent.work, slice(*parents)
        starts = level.starts[parents[0] : parents[1] + 1]
        span = (int(starts[0]), int(starts[-1]))
        family = _Family(work, self.descent.ways, lower, span)
        subtree = work.fit.subtree(lower, *span)
        correction, which = work.fit.corrections(
            self.above, self.branch, parents=parents, best=self.best[mine], total=added_up(subtree, starts)
        )
        settled, certificates = family.settle(subtree, starts=starts, parents=[one[mine] for one in self.numbers])
        family.store(self.descent.settled, settled, subtree, correction, which)
        if len(self.lower_best):
            self.lower_best[span[0] : span[1]] = subtree + correction[which]
        for target, one in zip(self.lower_numbers, settled if self.lower_numbers else [], strict=True):
            target[span[0] : span[1]] = one
        return certificates


@dataclass(frozen=True, eq=False)
class _Family:
    """Some areas of a level, to be settled given their parents."""

    work: Work
    ways: Ways
    stage: Stage
    span: tuple[int, int]
    read: dict[str, Floats] = field(default_factory=dict)
    """Margins of the subtrees' estimates that were read already."""

    def settle(
        self, subtree: Floats, *, starts: Integers, parents: list[Floats]
    ) -> tuple[list[Floats], list[Certificate]]:
        """Whole numbers of every histogram, one after the other."""
        found: list[Floats] = []
        certificates: list[Certificate] = []
        first, last = self.span
        ways = self.ways[self.stage.name]
        for number, (histogram, (sights, passes)) in enumerate(zip(self.work.histograms, ways, strict=True)):
            limits = [
                limits
                for one in self.work.limited
                if one.histogram == number and (limits := one.at(self.stage.name, first, last)) is not None
            ]
            if histogram.link is not None:
                shared = folded(found[histogram.link.earlier], histogram.link.there, histogram.link.groups)
                limits.append(Limits(histogram.link.here, shared, shared))
            family = Family(
                self.stage.name,
                starts,
                parents[number] if parents else np.zeros((0, 0)),
                self._seen(sights, subtree),
                limits,
                self.work.forest.keys[self.stage.name][first:last],
                self.work.signed,
            )
            numbers, passed = settle_families(passes, family, histogram.keys)
            found.append(numbers)
            certificates.extend(passed)
        return found, certificates

    def _seen(self, sights: Sequence[Sight], subtree: Floats) -> Seen:
        """The estimates of the margins that a histogram sees."""
        first, last = self.span
        estimates, precisions, typical = [], [], []
        for sight in sights:
            precision = self.work.precisions[self.stage.name][sight.name]
            estimates.append(self._margin(sight.name, subtree))
            precisions.append(precision[first:last])
            typical.append(float(precision.mean()))
        return Seen(estimates, precisions, typical)

    def _margin(self, name: str, subtree: Floats) -> Floats:
        if name not in self.read:
            margin = self.work.design.margins[name].margin
            self.read[name] = self.work.fit.read(margin, subtree).reshape(len(subtree), -1)
        return self.read[name]

    def store(
        self, settled: Settled, numbers: Sequence[Floats], subtree: Floats, correction: Floats, which: Integers
    ) -> None:
        """Puts the published margins of the areas where they belong."""
        level, (first, last) = self.stage.name, self.span
        for name in self.work.wanted.get(level, ()):
            histogram, labels = _home(self.work, name)
            target = settled.whole[level, name]
            target[first:last] = folded(numbers[histogram], labels, target.shape[1])
            margin = self.work.design.margins[name].margin
            more = self.work.fit.read(margin, correction).reshape(len(correction), -1)
            add_shared(settled.best[level, name][first:last], self._margin(name, subtree), more, which)


def _make_room(settled: Settled, work: Work, level: str, areas: int, above: Sequence[Floats]) -> None:
    """Arrays for what will be published at a level; 32 bits where no number can be larger."""
    largest = max((float(np.abs(one).max(initial=0)) for one in above), default=0.0)
    kind = np.int32 if largest < 2**30 and not work.signed else np.int64
    for name in work.wanted.get(level, ()):
        margin = work.design.margins[name].margin
        size = len(margin.cells) * work.design.coordinates.cells(margin.free)
        settled.whole[level, name] = np.empty((areas, size), kind)
        settled.best[level, name] = np.empty((areas, size))


def _home(work: Work, name: str) -> tuple[int, Labels]:
    return next((n, one.labels[name]) for n, one in enumerate(work.histograms) if name in one.labels)


def _keep(settled: Settled, work: Work, level: str, numbers: Sequence[Floats]) -> None:
    if level in work.keep:
        settled.histograms[level] = [one.astype(np.int64) for one in numbers]


def unbiased(work: Work) -> dict[tuple[str, str], Floats]:
    """The unbiased estimates alone, for each level and tally that is published there."""
    found: dict[tuple[str, str], Floats] = {}

    def visit(at: Stage, best: Floats) -> None:
        for name in work.wanted.get(at.name, ()):
            read = work.fit.read(work.design.margins[name].margin, best)
            found[at.name, name] = read.reshape(len(best), -1)
        for branch, (level, lower) in enumerate(at.below):
            subtree = work.fit.subtree(lower)
            total = added_up(subtree, level.starts)
            correction, which = work.fit.corrections(at, branch, parents=(0, at.areas), best=best, total=total)
            visit(lower, subtree + correction[which])

    visit(work.fit.whole, work.fit.best_of_whole())
    return found
