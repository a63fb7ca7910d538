"""A release as work to be done: its populations in order, each with its tree, its least squares and its bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from estimation.arranging import arranged
from estimation.arrays import Floats, Integers, Labels
from estimation.design import Design, design
from estimation.errors import Infeasible
from estimation.estimate import Settled, Work
from estimation.forest import Forest, forest
from estimation.histogram import Histogram, alone
from estimation.least_squares import fit
from estimation.limits import Bounds, Limited, handed_on, pushed_up
from estimation.measurement import ExactNumbers, Measurement
from estimation.observations import Observation
from estimation.passes import chain_of
from estimation.rules import Compared, Side, compared, whole_side
from estimation.stages import Stage
from release_specs.domain import Domain
from release_specs.histograms import Arrangement
from release_specs.populations import Population, Populations
from release_specs.public_totals import PublicBound, public_bounds, public_totals
from release_specs.reading.public_files import PublicFiles
from release_specs.reading.resolve import group_of
from release_specs.spec import ReleaseSpec
from release_specs.tallies import EXACT, Tally


@dataclass(frozen=True, eq=False)
class Planned:
    """A population as far as the spec alone decides it."""

    population: Population
    design: Design
    forest: Forest
    arrangement: Arrangement
    histograms: tuple[Histogram, ...] = field(repr=False)

    def home(self, name: str) -> tuple[int, Labels]:
        """The histogram that holds a tally, and the tally's cells as labels of the histogram's."""
        return next((n, one.labels[name]) for n, one in enumerate(self.histograms) if name in one.labels)

    def side(self, side: Side) -> tuple[int, Labels]:
        """The histogram of one side of a rule, and the rule's groups as labels of its cells."""
        number, labels = self.home(side.tally.name)
        turned = self.design.margins[side.tally.name].to_margin(side.group_of[None]).reshape(-1)
        return number, np.where(labels >= 0, turned[np.maximum(labels, 0)], -1).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Problem:
    """A release, from the spec alone: populations in the order they are settled, and the rules between them.

    `bounds` are the public columns that rules name, and `public` the exact totals that are public.
    """

    spec: ReleaseSpec
    populations: tuple[Planned, ...]
    rules: tuple[Compared, ...]
    bounds: tuple[PublicBound, ...] = ()
    public: tuple[ExactNumbers, ...] = ()

    def of(self, tally: Tally) -> Planned:
        """The population of a tally."""
        return next(one for one in self.populations if tally.name in one.design.margins)

    @property
    def tallies(self) -> list[Tally]:
        """Every tally, exact ones included."""
        return [tally for one in self.populations for tally in one.population.tallies]


def problem(spec: ReleaseSpec, domain: Domain, tallies: Sequence[Tally], *, folder: Path | None = None) -> Problem:
    """What settling a release will take. Groups come before their rows, so that rules bind rows to what groups are.

    `folder` holds the public files of the spec, where exact totals and rules name some. Raises `Infeasible` where what
    is exact, impossible or a rule cannot hold together: before any data is read.
    """
    files = PublicFiles(folder) if folder is not None else None
    totals = public_totals(spec, domain, files) if files is not None else []
    bounds = public_bounds(spec, tallies, files) if files is not None else []
    tallies = [*tallies, *{one.tally.name: one.tally for one in totals}.values()]
    populations = Populations(spec, domain, tallies)
    by_table: dict[str, list[Tally]] = {}
    for tally in tallies:
        if tally.statistic == "count":
            by_table.setdefault(tally.table, []).append(tally)
    rules = tuple(one for rule in spec.rules for one in compared(rule, by_table))
    order = sorted(
        populations.all, key=lambda one: (_depth(spec, one.key.entity), one.key.adds is not None, _first_name(one))
    )
    planned = tuple(_planned(populations, one, rules) for one in order)
    public = tuple(ExactNumbers(one.tally, one.level, np.array(one.numbers, np.int64)) for one in totals)
    found = Problem(spec, planned, rules, tuple(bounds), public)
    for rule in rules:
        _require_tenable(found, rule)
    for one in planned:
        _require_feasible(found, one)
    return found


def _require_feasible(found: Problem, planned: Planned) -> None:
    """What is known before the data can be obeyed: chains that do not cross, bounds that leave room."""
    limited = [pushed_up(one, planned.forest.tree) for one in limits_of(found, planned, found.public, [])]
    for number, histogram in enumerate(planned.histograms):
        must = [one.of_cell for one in handed_on(limited, planned.histograms) if one.histogram == number]
        sides = [side for rule in found.rules for side in (rule.left, rule.right)]
        must += [
            planned.side(side)[1]
            for side in sides
            if side.tally.name in planned.design.margins and planned.side(side)[0] == number
        ]
        exact = [tally.name for tally in planned.population.tallies if tally.table == EXACT]
        must += [histogram.labels[name] for name in exact if name in histogram.labels]
        try:
            chain_of(histogram.cells, must=[histogram.link.here, *must] if histogram.link else must, may=[])
        except ValueError:
            columns = ", ".join(sorted(node[1] for node in histogram.nodes))
            raise Infeasible(
                f"rules and exact totals cross in the tables by {columns}: whole numbers that keep all of them at once "
                "cannot be promised. State them by nested attributes, or drop one"
            ) from None
    for one in limited:
        _require_cells(one)


def _require_cells(limited: Limited) -> None:
    """No exact number without a cell that may hold it."""
    held = np.unique(limited.of_cell[limited.of_cell >= 0])
    for level, (low, _) in limited.bounds.items():
        empty = np.ones(low.shape[1], bool)
        empty[held] = False
        if (low[:, empty] > 0).any():
            raise Infeasible(f"{limited.reason}: at level '{level}' it asks for rows in cells that are impossible")


def _first_name(population: Population) -> str:
    return min(tally.name for tally in population.tallies)


def _depth(spec: ReleaseSpec, entity: str) -> int:
    above = group_of(spec, entity)
    return 0 if above is None else 1 + _depth(spec, above)


def _planned(populations: Populations, population: Population, rules: Sequence[Compared]) -> Planned:
    made = design(populations, population)
    tree = forest(population.tallies)
    if population.key.alone is not None:
        return Planned(population, made, tree, Arrangement((), ()), alone(made))
    bound = {side.tally.name for rule in rules for side in (rule.left, rule.right)}
    bound |= {tally.name for tally in population.tallies if tally.table == EXACT}
    return Planned(population, made, tree, *arranged(made, tree, bound))


def _require_tenable(found: Problem, rule: Compared) -> None:
    """A rule inside one population must follow from what its cells are: it cannot be imposed on them."""
    left, right = found.of(rule.left.tally), found.of(rule.right.tally)
    if left is not right:
        return
    (one, mine), (other, theirs) = left.side(rule.left), right.side(rule.right)
    inside = one == other and bool(np.all((mine < 0) | (mine == theirs)))
    outside = one == other and bool(np.all((theirs < 0) | (mine == theirs)))
    holds = {"<=": inside, ">=": outside, "=": inside and outside}[rule.relation]
    if not holds:
        raise Infeasible(
            f"rule '{rule.rule}' compares two parts of the same rows, and does not follow from what they count; "
            "rules bind tables of different entities"
        )


def work_for(
    found: Problem,
    planned: Planned,
    told: tuple[Sequence[Measurement], Sequence[ExactNumbers]],
    earlier: Sequence[tuple[Planned, Settled]],
    workers: int = 1,
) -> Work:
    """Everything that settling one population needs, given those settled before it."""
    measurements, exact = told
    mine = [one for one in measurements if one.tally.name in planned.design.margins]
    observations = observed_of(planned, measurements, exact)
    design = planned.design
    made = fit(planned.forest.tree, observations, coordinates=design.coordinates, core=design.core, workers=workers)
    adds = planned.population.key.adds
    limited = [pushed_up(one, planned.forest.tree) for one in limits_of(found, planned, exact, earlier)]
    return Work(
        planned.design,
        planned.forest,
        made,
        planned.histograms,
        tuple(handed_on(limited, planned.histograms)),
        _precisions(planned, mine, made.whole),
        wanted_of(planned),
        signed=adds is not None and adds.bounds[0] < 0,
        keep=_asked_for(found, planned),
    )


def _asked_for(found: Problem, planned: Planned) -> frozenset[str]:
    """The levels at which rules of other populations ask for this one's numbers."""
    sides = [(side, rule.levels) for rule in found.rules for side in (rule.left, rule.right)]
    return frozenset(
        planned.forest.name_of(side.tally.spine, level)
        for side, levels in sides
        if side.tally.name in planned.design.margins
        for level in levels
    )


def observed_of(
    planned: Planned, measurements: Sequence[Measurement], exact: Sequence[ExactNumbers]
) -> list[Observation]:
    """What a population is told, of all that is known of a release."""
    return [
        *(_observed(planned, one, one.variances) for one in measurements if one.tally.name in planned.design.margins),
        *(_observed(planned, one, 0.0) for one in exact if one.tally.name in planned.design.margins),
    ]


def _observed(planned: Planned, one: Measurement | ExactNumbers, variances: Floats | float) -> Observation:
    """Numbers in the order of the tree and of the margin."""
    level = planned.forest.name_of(one.tally.spine, one.level)
    order = planned.forest.order[level]
    margin = planned.design.margins[one.tally.name]
    spread = variances if isinstance(variances, float) else variances[order]
    numbers = one.numbers if (np.diff(order) == 1).all() else one.numbers[order]
    return Observation(margin.margin, level, margin.to_margin(numbers), spread)


def wanted_of(planned: Planned) -> dict[str, tuple[str, ...]]:
    """For each level of the tree the tallies that are published there."""
    wanted: dict[str, list[str]] = {}
    for tally in planned.population.tallies:
        for level in tally.levels or (None,):
            wanted.setdefault(planned.forest.name_of(tally.spine, level), []).append(tally.name)
    return {level: tuple(names) for level, names in wanted.items()}


def _precisions(planned: Planned, measurements: Sequence[Measurement], whole: Stage) -> dict[str, dict[str, Floats]]:
    """For each level and tally the precision of one cell, from an area's own measurement and all below it."""
    own: dict[tuple[str, str], Floats] = {}
    for one in measurements:
        level = planned.forest.name_of(one.tally.spine, one.level)
        seen = 1 / one.variances[planned.forest.order[level]]
        own[level, one.tally.name] = own.get((level, one.tally.name), 0.0) + seen
    found: dict[str, dict[str, Floats]] = {}

    def gather(stage: Stage) -> None:
        for _, lower in stage.below:
            gather(lower)
        here = found.setdefault(stage.name, {})
        for name in planned.design.margins:
            total = own.get((stage.name, name), np.zeros(stage.areas))
            for level, lower in stage.below:
                below = found[lower.name].get(name)
                if below is not None and (below > 0).all():
                    total = total + 1 / level.summed(1 / below)
            if (total > 0).any():
                here[name] = total

    gather(whole)
    return found


def limits_of(
    found: Problem, planned: Planned, exact: Sequence[ExactNumbers], earlier: Sequence[tuple[Planned, Settled]]
) -> list[Limited]:
    """The bounds of a population: its exact totals, and rules against what is settled or exact elsewhere."""
    limited = _exact_limits(planned, exact)
    settled = {id(one): numbers for one, numbers in earlier}
    for rule in found.rules:
        for mine, relation, theirs in (
            (rule.left, rule.relation, rule.right),
            (rule.right, _turned(rule.relation), rule.left),
        ):
            other = found.of(theirs.tally)
            if found.of(mine.tally) is not planned or other is planned:
                continue
            number, of_cell = planned.side(mine)
            bounds = {}
            for level in rule.levels:
                here, there = (one.forest.name_of(mine.tally.spine, level) for one in (planned, other))
                sums = (
                    _settled_sums(other, theirs, settled[id(other)], there)
                    if id(other) in settled
                    else _exact_bounds(other, theirs, exact, there)
                )
                if sums is not None:
                    bounds[here] = _related(relation, _reordered(sums, other, planned, (there, here)))
            if bounds:
                limited.append(Limited(f"rule '{rule.rule}'", number, of_cell, bounds))
    return [*limited, *_public_limits(found, planned)]


def _public_limits(found: Problem, planned: Planned) -> list[Limited]:
    """Rules against public columns."""
    limited = []
    for rule in dict.fromkeys(one.rule for one in found.bounds):
        for tally in planned.population.tallies:
            if tally.table != rule.left.table or tally.statistic != "count":
                continue
            number, of_cell = planned.side(whole_side(tally, rule.left))
            bounds = {}
            for one in found.bounds:
                if one.rule == rule and one.level in (tally.levels or (None,)):
                    level = planned.forest.name_of(tally.spine, one.level)
                    numbers = np.array(one.numbers, np.float64)[planned.forest.order[level]]
                    bounds[level] = _related(rule.relation, (numbers, numbers))
            if bounds:
                limited.append(Limited(f"rule '{rule}'", number, of_cell, bounds))
    return limited


def _exact_limits(planned: Planned, exact: Sequence[ExactNumbers]) -> list[Limited]:
    """Exact totals: the least is the most."""
    by_tally: dict[str, list[ExactNumbers]] = {}
    for one in exact:
        if one.tally.name in planned.design.margins:
            by_tally.setdefault(one.tally.name, []).append(one)
    limited = []
    for name, numbers in by_tally.items():
        bounds = {}
        for one in numbers:
            level = planned.forest.name_of(one.tally.spine, one.level)
            turned = planned.design.margins[name].to_margin(one.numbers[planned.forest.order[level]])
            fixed = turned.reshape(len(turned), -1).astype(np.float64)
            bounds[level] = fixed, fixed
        histogram, labels = planned.home(name)
        limited.append(Limited(f"the exact total of {numbers[0].tally.universe}", histogram, labels, bounds))
    return limited


def _turned(relation: str) -> str:
    return {"<=": ">=", ">=": "<=", "=": "="}[relation]


def _related(relation: str, other: Bounds) -> Bounds:
    """The bounds of one side of a rule, from those of the other."""
    low, high = other
    if relation == "=":
        return low, high
    return (np.zeros_like(low), high) if relation == "<=" else (low, np.full_like(high, np.inf))


def _settled_sums(planned: Planned, side: Side, settled: Settled, level: str) -> Bounds | None:
    if level not in settled.histograms:
        return None
    number, of_cell = planned.side(side)
    sums = np.zeros((len(settled.histograms[level][number]), side.groups))
    for group in range(side.groups):
        sums[:, group] = settled.histograms[level][number][:, of_cell == group].sum(axis=1)
    return sums, sums


def _exact_bounds(planned: Planned, side: Side, exact: Sequence[ExactNumbers], level: str) -> Bounds | None:
    """What exact totals say about one side of a rule whose table is settled later."""
    number, of_cell = planned.side(side)
    low, high = None, None
    for one in handed_on(
        [pushed_up(found, planned.forest.tree) for found in _exact_limits(planned, exact)], planned.histograms
    ):
        limits = one.at(level, 0, planned.forest.tree.levels[level]) if one.histogram == number else None
        if limits is not None:
            least, most = _inside(limits.of_cell, limits.low, limits.high, of_cell=of_cell, groups=side.groups)
            low = least if low is None else np.maximum(low, least)
            high = most if high is None else np.minimum(high, most)
    return None if low is None or high is None else (low, high)


def _inside(known: Labels, low: Floats, high: Floats, *, of_cell: Labels, groups: int) -> Bounds:
    """Bounds of groups from those of other groups: at least what lies inside, at most what covers."""
    least, most = np.zeros((len(low), groups)), np.full((len(low), groups), np.inf)
    for group in range(groups):
        mine = of_cell == group
        held = [one for one in np.unique(known[known >= 0]) if mine[known == one].all()]
        touched = np.unique(known[mine])
        if held:
            least[:, group] = low[:, held].sum(axis=1)
        if len(touched) and (touched >= 0).all():
            most[:, group] = high[:, touched].sum(axis=1)
    return least, most


def _reordered(bounds: Bounds, other: Planned, planned: Planned, levels: tuple[str, str]) -> Bounds:
    """Bounds in the order of another population's tree."""
    there, here = levels
    back: Integers = np.argsort(other.forest.order[there])
    order = back[planned.forest.order[here]]
    return bounds[0][order], bounds[1][order]
