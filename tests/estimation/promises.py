"""What every release promises of its published numbers, checked in plain code: sentences about all that is broken.

Tables are compared through the rows they count: a table's cells are looked up for every kind of row that can occur,
and sums of two tables that surely hold the same rows must be the same number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from estimation.atoms import Atoms
from estimation.measurement import ExactNumbers
from estimation.problem import Planned
from estimation.release import Estimated
from estimation.settling import MOST_OFF
from release_specs.domain import Hierarchy
from release_specs.language.phrases import TablePart
from release_specs.meanings import Node
from release_specs.tallies import EXACT, Tally

Numbers = npt.NDArray[np.float64] | npt.NDArray[np.int64]
Labels = npt.NDArray[np.int64]
Reader = Callable[[Tally, str | None], Numbers]
Cells = Callable[[Planned, Sequence[Tally]], list[Labels]]
"""For some tallies of a population, the cell of each kind of row that can occur; negative for none."""
CLOSE = 1e-6


@dataclass(frozen=True)
class Shared:
    """Two tallies of one population, the places that both have, and the cells of every kind of row in both."""

    planned: Planned
    pair: tuple[Tally, Tally]
    places: tuple[tuple[str | None, str | None], ...]
    cells: tuple[Labels, Labels]

    def __str__(self) -> str:
        return f"{self.pair[0].name} and {self.pair[1].name}"

    @property
    def nodes(self) -> set[Node]:
        """The columns that both look at."""
        one, other = (self.planned.design.populations.nodes_of(tally) for tally in self.pair)
        return one & other


def cells_by_atoms(planned: Planned, tallies: Sequence[Tally]) -> list[Labels]:
    """Cells as the product reads them off its atoms."""
    populations = planned.design.populations
    nodes = set().union(*(populations.nodes_of(tally) for tally in tallies))
    atoms = Atoms.all_of(populations, planned.population, nodes)
    return [atoms.cell(tally, tally.attributes).astype(np.int64) for tally in tallies]


def broken(found: Estimated, exact: Sequence[ExactNumbers] = (), *, cells_of: Cells = cells_by_atoms) -> list[str]:
    """Everything that a release breaks of what it promises; nothing at all where it is sound."""
    estimates: Reader = found.estimate
    return [
        *_not_whole(found),
        *_levels_that_do_not_add_up(found, found.value, 0),
        *_levels_that_do_not_add_up(found, estimates, CLOSE),
        *_disagreeing(found, cells_of),
        *_impossible_but_published(found, cells_of),
        *_broken_rules(found),
        *_missed_totals(found, exact),
        *_unsettled(found),
    ]


def _numbers(found: Estimated) -> Iterator[tuple[Tally, str | None]]:
    for tally in found.problem.tallies:
        for level in tally.levels or (None,):
            yield tally, level


def _not_whole(found: Estimated) -> Iterator[str]:
    for tally, level in _numbers(found):
        value = found.value(tally, level)
        if value.shape != (tally.areas(level), tally.cells) or not np.issubdtype(value.dtype, np.integer):
            yield f"{tally.name} at {level} is no table of whole numbers"
        if (tally.adds is None or tally.adds.bounds[0] >= 0) and (value < 0).any():
            yield f"{tally.name} at {level} has a negative number"


def ancestors(spine: Hierarchy, upper: str, lower: str) -> Labels:
    """For each area of a level the number of the area of a larger level that holds it."""
    first, last = spine.levels.index(upper), spine.levels.index(lower)
    found = []
    for area in spine.areas[lower]:
        now = area
        for depth in range(last - 1, first - 1, -1):
            now = next(one for one in spine.areas[spine.levels[depth]] if one.code == now.parent)
        found.append([one.code for one in spine.areas[upper]].index(now.code))
    return np.array(found)


def _levels_that_do_not_add_up(found: Estimated, read: Reader, close: float) -> Iterator[str]:
    for tally in found.problem.tallies:
        for upper, lower in zip(tally.levels, tally.levels[1:], strict=False):
            assert tally.spine is not None
            above, below = read(tally, upper), read(tally, lower)
            total = np.zeros_like(above)
            np.add.at(total, ancestors(tally.spine, upper, lower), below)
            if not np.abs(total - above).max() <= close * max(1, np.abs(above).max()):
                yield f"{tally.name}: {lower} does not add up to {upper}"


def shared_places(found: Estimated, cells_of: Cells = cells_by_atoms) -> Iterator[Shared]:
    """Every pair of tallies of one population that are published at one place at least."""
    for planned in found.problem.populations:
        for one, other in combinations(planned.population.tallies, 2):
            places = _common_levels(one, other)
            if places and planned.population.key.alone is None:
                first, second = cells_of(planned, (one, other))
                kinds = np.unique((first + 1) * (other.cells + 1) + second + 1)  # alike rows once
                cells = kinds // (other.cells + 1) - 1, kinds % (other.cells + 1) - 1
                yield Shared(planned, (one, other), tuple(places), cells)


def _common_levels(one: Tally, other: Tally) -> list[tuple[str | None, str | None]]:
    """The levels of both on one spine; of two spines or none their wholes."""
    mine, theirs = one.levels or (None,), other.levels or (None,)
    if one.spine is not None and other.spine is not None and one.spine.name == other.spine.name:
        return [(level, level) for level in mine if level in theirs]
    wholes = [(a, b) for a in mine for b in theirs if one.areas(a) == other.areas(b) == 1]
    return wholes[:1]


def _disagreeing(found: Estimated, cells_of: Cells) -> Iterator[str]:
    for shared in shared_places(found, cells_of):
        sums = same_sums(*shared.cells, (shared.pair[0].cells, shared.pair[1].cells))
        crosses = bool(shared.nodes & set(shared.planned.arrangement.crossing))
        covered = [] if crosses else list(coverings(shared))
        for levels in shared.places:
            best = [found.estimate(tally, level) for tally, level in zip(shared.pair, levels, strict=True)]
            whole = [found.value(tally, level) for tally, level in zip(shared.pair, levels, strict=True)]
            for words, (one, other), close in (("estimates", best, CLOSE), ("numbers", whole, 0.0)):
                off = np.abs(_folded(one, sums[0]) - _folded(other, sums[1])).max(initial=0)
                if not (off <= close * max(1, np.abs(one).max()) or (crosses and words == "numbers")):
                    yield f"{words} of {shared} at {levels[0]} are off by {off}"
            for place, cells, holding in covered:
                if (whole[place][:, cells] > whole[1 - place] @ holding.T).any():
                    yield f"a cell of {shared.pair[place].name} exceeds the whole that holds it: {shared}, {levels[0]}"


def same_sums(first: Labels, second: Labels, sizes: tuple[int, int]) -> tuple[Labels, Labels]:
    """For the cells of two tables the finest sums that hold the same rows in both; negative for none."""
    nodes = sizes[0] + sizes[1] + 2  # the last two stand for rows outside either table
    one = np.where(first >= 0, first, nodes - 2)
    other = np.where(second >= 0, sizes[0] + second, nodes - 1)
    links = coo_array((np.ones(len(one)), (one, other)), shape=(nodes, nodes))
    _, group = connected_components(links, directed=False)
    inside = (group != group[nodes - 2]) & (group != group[nodes - 1])
    inside[np.setdiff1d(np.arange(nodes), np.concatenate([one, other]))] = False  # no row is ever there
    labels = np.where(inside, group, -1)[: nodes - 2]
    _, packed = np.unique(labels, return_inverse=True)
    packed = np.where(labels >= 0, packed - (labels.min() < 0), -1)
    return packed[: sizes[0]], packed[sizes[0] :]


def _folded(numbers: Numbers, labels: Labels) -> Numbers:
    kept = np.flatnonzero(labels >= 0)
    shape = (numbers.shape[1], int(labels.max(initial=-1)) + 1)
    fold = coo_array((np.ones(len(kept), numbers.dtype), (kept, labels[kept])), shape=shape).tocsr()
    return numbers @ fold


def coverings(shared: Shared) -> Iterator[tuple[int, Labels, csr_array]]:
    """Which of the two is a part, its cells all of whose rows the other counts, and the cells there that hold them."""
    for place, (mine, theirs) in enumerate((shared.cells, shared.cells[::-1])):
        part, whole = shared.pair[place], shared.pair[1 - place]
        if part.adds is None:
            cells = np.setdiff1d(mine, [-1, *mine[theirs < 0]])
            inside = np.isin(mine, cells)
            pairs = np.unique(np.stack([mine[inside], theirs[inside]]), axis=1)
            shape = part.cells, whole.cells
            yield place, cells, coo_array((np.ones(pairs.shape[1], np.int64), pairs), shape=shape).tocsr()[cells]


def _impossible_but_published(found: Estimated, cells_of: Cells) -> Iterator[str]:
    for planned in found.problem.populations:
        for tally in planned.population.tallies:
            if planned.population.key.alone is None:
                (cells,) = cells_of(planned, [tally])
                never = np.setdiff1d(np.arange(tally.cells), cells)
                for level in tally.levels or (None,):
                    if found.value(tally, level)[:, never].any():
                        yield f"{tally.name} at {level} has rows in an impossible cell"


def rule_sides(found: Estimated) -> Iterator[tuple[str, str, Numbers, Numbers]]:
    """For every rule between tables and every level its words, its relation and both sides' published sums."""
    counts = [tally for tally in found.problem.tallies if tally.statistic == "count"]
    for rule in found.problem.spec.rules:
        if not isinstance(rule.right, TablePart):
            continue
        for one in (tally for tally in counts if tally.table == rule.left.table):
            for other in (tally for tally in counts if tally.table == rule.right.table):
                for levels in _rule_levels(one, other):
                    left = _summed(found.value(one, levels), one, rule.left, other, rule.right)
                    right = _summed(found.value(other, levels), other, rule.right, one, rule.left)
                    yield f"{rule} at {levels}", rule.relation, left, right


def _rule_levels(one: Tally, other: Tally) -> list[str | None]:
    if one.spine is None and other.spine is None:
        return [None]
    same = one.spine is not None and other.spine is not None and one.spine.name == other.spine.name
    return [level for level in one.levels if same and level in other.levels]


def _summed(numbers: Numbers, tally: Tally, part: TablePart, other: Tally, beside: TablePart) -> Numbers:
    """A side of a rule: fixed codes picked, shared attributes kept without "not stated", all others summed."""
    cube = numbers[:, : int(np.prod(tally.shape))].reshape(len(numbers), *tally.shape)
    fixed = dict(part.where)
    kept = []
    for attribute in reversed(tally.attributes):
        axis = 1 + tally.attributes.index(attribute)
        codes = [category.code for category in attribute.categories]
        if attribute.name in fixed:
            cube = cube.take(codes.index(fixed[attribute.name]), axis=axis)
        elif attribute in other.attributes and attribute.name not in dict(beside.where):
            cube = cube.take(range(len(codes)), axis=axis)
            kept.insert(0, attribute.name)
        else:
            cube = cube.sum(axis=axis)
    return cube.transpose(0, *(1 + np.argsort(kept, kind="stable"))).reshape(len(numbers), -1)


def _broken_rules(found: Estimated) -> Iterator[str]:
    for words, relation, left, right in rule_sides(found):
        met = {"<=": left <= right, ">=": left >= right, "=": left == right}[relation]
        if not met.all():
            yield f"rule {words} is broken"


def _missed_totals(found: Estimated, exact: Sequence[ExactNumbers]) -> Iterator[str]:
    for one in exact:
        if not np.array_equal(found.value(one.tally, one.level), one.numbers):
            yield f"{one.tally.name} at {one.level} is not the exact total"
        if not np.allclose(found.estimate(one.tally, one.level), one.numbers, atol=CLOSE):
            yield f"the estimate of {one.tally.name} at {one.level} is not the exact total"


def _unsettled(found: Estimated) -> Iterator[str]:
    """Every family of every level has a certificate, and no sum was off by more than the tolerance."""
    for one in found.done:
        tree = one.planned.forest.tree
        families = {tree.whole: 1} | {level.name: level.above for branch in tree.branches for level in branch}
        for level, expected in families.items():
            mine = [found for found in one.settled.certificates if found.level == level and found.depth == 0]
            count = sum(len(found.off) for found in mine)
            if count != expected * len(one.planned.histograms):
                yield f"{one.planned.population.name}: {count} of {expected} families of {level} have a certificate"
        for certificate in one.settled.certificates:
            if not (certificate.off < MOST_OFF).all():
                yield f"{one.planned.population.name}: {certificate.level} was off by {certificate.off.max()}"


def exact_numbers_of(tallies: Sequence[Tally], truth: dict[tuple[str, str | None], Labels]) -> list[ExactNumbers]:
    """The exact totals among some tallies."""
    return [
        ExactNumbers(tally, level, truth[tally.name, level])
        for tally in tallies
        if tally.table == EXACT
        for level in tally.levels or (None,)
    ]
