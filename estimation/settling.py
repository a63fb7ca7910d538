"""Settles histograms: non-negative whole numbers that add up, from the whole down, pass by pass within each family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from estimation.arrays import Floats, Integers, Labels
from estimation.errors import Infeasible, Unsettled
from estimation.kernels.certify import left_off
from estimation.kernels.families import Families, Result
from estimation.kernels.rounding import Fractions, Keys, round_off
from estimation.kernels.sweep import settle
from estimation.newton import settle_one
from estimation.passes import Aim, Pass, folded

TOLERANCE = 0.02
"""Sweeps go on until no multiplier has to make up for more than this, in persons."""
MOST_OFF = 0.2
"""How far a sum may be off before rounding, in persons: less than rounding moves it."""
MOST_SWEEPS = 2_000
RAKINGS = 200
"""At most so many rounds of raking make the targets of cells that nothing was measured of."""
FAINT = 0.01
"""The weight of cells that nothing was measured of, relative to what was measured of their sums."""
MOST_LIFTED = 3_000
"""Sums of more groups than this are left to the sweeps."""
NONE = np.zeros((0, 0))


@dataclass(frozen=True, eq=False)
class Certificate:
    """How one pass of one level went: for each parent its sweeps and how far any sum was off before rounding.

    `rescued` are the parents that the fallback solved; `moved` counts units that rounding put elsewhere than in a
    neighbouring whole number.
    """

    level: str
    depth: int
    sweeps: Integers = field(repr=False)
    off: Floats = field(repr=False)
    moved: Integers = field(repr=False)
    rescued: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Seen:
    """What was measured of some areas: for each margin of a histogram its estimate from the areas' own subtree.

    `precisions` are those of one cell, zero where a margin was not measured; `typical` are their means over the level.
    """

    estimates: Sequence[Floats]
    precisions: Sequence[Floats]
    typical: Sequence[float]


@dataclass(frozen=True, eq=False)
class Limits:
    """Bounds of groups of a histogram's cells, for some areas: (area, group)."""

    of_cell: Labels = field(repr=False)
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)


@dataclass(frozen=True, eq=False)
class Family:
    """Parents with their children, to be settled: one row of `parents` for each, none for the whole."""

    level: str
    starts: Integers
    parents: Floats
    seen: Seen
    limits: Sequence[Limits]
    keys: Keys
    signed: bool = False


def settle_families(passes: Sequence[Pass], family: Family, cell_keys: Keys) -> tuple[Floats, list[Certificate]]:
    """Whole numbers (area, cell) of the children, and how each pass went."""
    areas = int(family.starts[-1] - family.starts[0])
    settled, certificates = np.zeros((areas, 0)), []
    for depth, one in enumerate(passes):
        columns = folded(family.parents, one.of_cell, one.groups) if len(family.parents) else NONE
        low, high = bounds_of(one, family, areas)
        problem = _problem(one, family, settled, (columns, low, high))
        result, rescued = _solved(problem, family.level)
        keys = _first_keys(one, cell_keys)
        if family.signed:
            low = np.maximum(low, np.floor(result.numbers) - 1)
        whole, moved = np.zeros_like(result.numbers), np.zeros(len(result.off), np.int64)
        soft_of = _with_rest(problem.soft_of, problem.soft.shape[1])
        fractions = Fractions(
            result.numbers, problem.starts, columns, problem.group_of, settled, low, high, family.keys, keys,
            soft_of, int(soft_of.max(initial=-1)) + 1,
        )  # fmt: skip
        round_off(fractions, whole, moved, 0, len(moved))
        if (moved < 0).any():
            raise Infeasible(
                f"level '{family.level}': rounding found no whole numbers within the bounds of rules and exact totals"
            )
        certificates.append(Certificate(family.level, depth, result.sweeps, result.off, moved, rescued))
        settled = whole
    return settled, certificates


def _with_rest(soft_of: Labels, count: int) -> Labels:
    """Soft sums, and for each kind one more of the cells that are in none: what one has too little of is there."""
    rest = count + np.arange(len(soft_of), dtype=np.int32)[:, None]
    return np.where(soft_of >= 0, soft_of, rest).astype(np.int32)


def _first_keys(one: Pass, cell_keys: Keys) -> Keys:
    """A key for each group of a pass: the smallest of its cells', whatever their order."""
    keys = np.full(one.groups, np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(keys, one.of_cell, cell_keys)
    return keys


def _solved(problem: Families, level: str) -> tuple[Result, tuple[int, ...]]:
    parents = len(problem.starts) - 1
    if not np.isfinite(problem.targets).all():
        raise Unsettled(f"level '{level}': some estimates are not numbers; measurements of some areas are missing")
    result = Result(np.zeros(problem.targets.shape), np.zeros(parents, np.int64), np.zeros(parents))
    settle(problem, result, 0, parents, TOLERANCE, MOST_SWEEPS)
    late = np.flatnonzero(~(result.off < TOLERANCE))
    for parent in late:
        numbers, off = settle_one(problem, int(parent))
        if not off < TOLERANCE:
            raise Unsettled(
                f"level '{level}': {len(late)} of {parents} families did not settle; in the first, a sum is off by "
                f"{off:.3g} after both solvers. Rules, exact totals and impossible combinations may contradict each "
                "other there"
            )
        start, end = problem.starts[parent : parent + 2] - problem.starts[0]
        result.numbers[start:end] = numbers
    result.off[:] = left_off(problem, result.numbers)
    if not (result.off < MOST_OFF).all():
        raise Unsettled(f"level '{level}': a sum is off by {result.off.max():.3g} in numbers that were called settled")
    return result, tuple(int(parent) for parent in late)


def _problem(one: Pass, family: Family, settled: Floats, frame: tuple[Floats, Floats, Floats]) -> Families:
    """The quadratic problem of one pass."""
    columns, low, high = frame
    areas = int(family.starts[-1] - family.starts[0])
    own = [aim for aim in one.aims if aim.is_own and family.seen.typical[aim.margin] > 0]
    soft = [aim for aim in one.aims if not (aim.is_own or aim.at_least) and family.seen.typical[aim.margin] > 0]
    weight, cell_weight = np.zeros(areas), np.zeros(one.groups)
    for aim in own:
        usual = family.seen.typical[aim.margin]
        weight += np.maximum(family.seen.precisions[aim.margin], FAINT * usual) * (1 / aim.sizes).mean()
        cell_weight += (1 / aim.sizes)[aim.sum_of] * usual
    pulls = [family.seen.precisions[aim.margin][:, None] / aim.sizes for aim in soft]
    if own:
        aim = own[0]
        targets = folded(family.seen.estimates[aim.margin], aim.fold, aim.sums)[:, aim.sum_of]
        cell_ease = cell_weight.mean() / cell_weight
    else:
        strongest = np.max([pull.max(axis=1) for pull in pulls], axis=0) if pulls else np.ones(areas)
        weight = np.where(strongest > 0, FAINT * strongest, 1.0)
        targets, cell_ease = _in_proportion(one, family, settled, columns), np.ones(one.groups)
        if family.signed:
            targets = _lifted(targets, one, soft, family.seen, settled) if soft else targets
        else:
            targets = _raked(targets, one, [*soft, *(aim for aim in one.aims if aim.at_least)], family.seen, settled)
    edges = np.cumsum([0, *(aim.sums for aim in soft)])
    return Families(
        targets=np.ascontiguousarray(targets),
        ease=1 / weight,
        cell_ease=cell_ease,
        starts=family.starts,
        columns=columns,
        group_of=one.within if one.earlier else np.zeros(one.groups, np.int32),
        groups=settled,
        soft_of=np.array(
            [np.where(aim.sum_of >= 0, aim.sum_of + start, -1) for aim, start in zip(soft, edges[:-1], strict=True)],
            np.int32,
        ).reshape(len(soft), one.groups),
        soft=_side_by_side([folded(family.seen.estimates[aim.margin], aim.fold, aim.sums) for aim in soft], areas),
        pull=_side_by_side(pulls, areas) / weight[:, None],
        soft_starts=edges.astype(np.int64),
        low=low,
        high=high,
    )


def _lifted(near: Floats, one: Pass, aims: Sequence[Aim], seen: Seen, settled: Floats) -> Floats:
    """The numbers nearest to given ones that have all settled and measured sums, as far as they can be had together."""
    if near.shape[1] > MOST_LIFTED:
        return near
    sums = [(aim.sum_of, folded(seen.estimates[aim.margin], aim.fold, aim.sums)) for aim in aims]
    sums += [(one.within, settled)] if one.earlier else []
    matrix = np.concatenate([np.equal(np.arange(wanted.shape[1])[:, None], label) for label, wanted in sums])
    missing = np.concatenate([wanted for _, wanted in sums], axis=1) - np.einsum("ij,kj->ik", near, matrix * 1.0)
    found: Floats = near + np.einsum("ij,kj->ik", missing, np.linalg.pinv(matrix * 1.0, rcond=1e-10))
    return found


def _raked(near: Floats, one: Pass, aims: Sequence[Aim], seen: Seen, settled: Floats) -> Floats:
    """Given numbers multiplied until they have all settled and measured sums, as far as these can be had together."""
    sums = [(aim.sum_of, folded(seen.estimates[aim.margin], aim.fold, aim.sums), aim.at_least) for aim in aims]
    sums += [(one.within, settled, False)] if one.earlier and aims else []
    found = np.maximum(near, FAINT) if aims else near
    for _ in range(RAKINGS if aims else 0):
        off = np.zeros(len(found))
        for label, wanted, at_least in sums:
            now = folded(found, label, wanted.shape[1])
            most = np.maximum(wanted, now if at_least else 0.0)
            factor = most / np.where(now > 0, now, 1.0)
            off = np.maximum(off, np.abs(now - most).max(axis=1, initial=0))
            moving = (label >= 0) & (off > TOLERANCE / 10)[:, None]  # an area that has arrived stays where it is
            found = found * np.where(moving, factor[:, np.maximum(label, 0)], 1.0)
        if not (off > TOLERANCE / 10).any():
            break
    return found


def _side_by_side(arrays: Sequence[Floats], areas: int) -> Floats:
    return np.concatenate([np.zeros((areas, 0)), *arrays], axis=1)


def _in_proportion(one: Pass, family: Family, settled: Floats, columns: Floats) -> Floats:
    """What a child's cells would be if each of its settled groups were divided as its parent's is."""
    areas = int(family.starts[-1] - family.starts[0])
    group_of = one.within if one.earlier else np.zeros(one.groups, np.int32)
    held = settled if one.earlier else np.zeros((areas, 1))
    count = held.shape[1]
    if not len(columns):
        return (held / np.maximum(np.bincount(group_of, minlength=count), 1))[:, group_of]
    shares = columns / np.maximum(folded(columns, group_of, count), 1)[:, group_of]
    if not one.earlier:
        held = np.repeat(columns.sum(axis=1) / np.diff(family.starts), np.diff(family.starts))[:, None]
    return held[:, group_of] * np.repeat(shares, np.diff(family.starts), axis=0)


def bounds_of(one: Pass, family: Family, areas: int) -> tuple[Floats, Floats]:
    """The least and the most of each group of a pass; empty arrays where zero is the only bound."""
    if not family.limits and not family.signed:
        return NONE, NONE
    low = np.full((areas, one.groups), -np.inf if family.signed else 0.0)
    high = np.full((areas, one.groups), np.inf)
    for limits in family.limits:
        least, most = implied(limits, one.of_cell, one.groups, signed=family.signed)
        low, high = np.maximum(low, least), np.minimum(high, most)
    if (low > high).any():
        raise Infeasible(f"level '{family.level}': rules and exact totals leave no number for some cells")
    return low, high


def implied(limits: Limits, of_cell: Labels, groups: int, *, signed: bool = False) -> tuple[Floats, Floats]:
    """What bounds of some groups of cells say about other groups: sums of those that lie inside, if they fill them.

    Where nothing is negative, those that lie inside are a least even if they do not.
    """
    inside = limits.of_cell >= 0
    pairs = np.unique(np.stack([of_cell[inside], limits.of_cell[inside]], axis=1), axis=0).reshape(-1, 2)
    home = np.full(limits.low.shape[1], -1, np.int64)
    home[pairs[:, 1]] = pairs[:, 0]
    apart = np.bincount(pairs[:, 1], minlength=len(home)) > 1  # a bound over several groups says nothing about one
    home[apart] = -1
    filled = np.ones(groups, bool)
    filled[of_cell[~inside]] = False
    filled[pairs[apart[pairs[:, 1]], 0]] = False
    told = np.zeros(groups, bool)
    told[home[home >= 0]] = True
    told &= filled | (not signed)
    least = np.where(told, folded(limits.low, home, groups), -np.inf)
    most = np.where(filled, folded(limits.high, home, groups), np.inf)
    return least, most
