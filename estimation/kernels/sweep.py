"""Non-negative tables of children that add up to their parent: a quadratic problem for each family, by sweeps.

For each family: numbers x (child, cell), as near as possible to targets z, with weights, such that
* the children of a cell add up to the parent's number of that cell (columns),
* each child's cells of a settled group add up to its settled number (groups),
* low <= x <= high,
while sums of cells that were measured too are kept near targets of their own (soft sums).

With a multiplier for every column, group and soft sum the solution is x = z + multipliers, cut to its bounds; a
multiplier is right if its own sum is. A sweep puts right one multiplier after another: block ascent of the dual
problem, the quadratic kin of raking. Each is a piecewise linear equation in one unknown, solved by Newton's steps: a
step down cannot overshoot, a step up can and is then taken back, so a step is followed by others while it is large.
Stationarity and signs hold at every moment; what is left to reach is that all sums are right, and how far they are off
is the certificate.

Each number is read three times in a sweep: it takes the step of its soft sum while groups are added up, that of its
group while columns are, and that of its column while the soft sums of the next sweep are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from estimation.arrays import Floats, Integers, Labels
from estimation.kernels.compiled import compiled
from estimation.kernels.families import Families, Result, Side, side_by_side

STEPS = 8
"""At most so many steps for one multiplier in one sweep."""
FURTHER = 1.3
"""Steps that are small go so much further than their own sum asks: what pulls against them settles sooner."""


class Sums(NamedTuple):
    """Sums of one sort, soft or groups: (sum, child), with a last row for the cells in none."""

    totals: Floats
    slopes: Floats
    """How fast they grow with their multipliers."""
    steps: Floats
    """Steps of their multipliers."""


@compiled
def settle(families: Families, result: Result, first: int, last: int, tolerance: float, most_sweeps: int) -> None:
    """Solves the families from `first` to `last` (without). What is zero in any case is not written."""
    order = np.argsort(families.group_of, kind="mergesort")
    bounded = len(families.low) > 0
    for parent in range(first, last):
        children, cells = _not_empty(families, parent), order
        if len(families.columns) > 0 and not bounded:  # what is zero in the parent is zero in every child
            cells = order[families.columns[parent][order] != 0]
        side = side_by_side(families, parent, children, cells)
        sweeps, off = _one_family(side, families.soft_starts, len(children), tolerance, most_sweeps)
        result.sweeps[parent], result.off[parent] = sweeps, off
        for k in range(len(cells)):
            for place in range(len(children)):
                x = side.numbers[k, place]
                x = min(max(x, side.low[k, place]), side.high[k, place]) if bounded else max(x, 0.0)
                result.numbers[children[place], cells[k]] = x


@compiled
def _not_empty(families: Families, parent: int) -> Integers:
    """The children of a parent, without those that have nothing to divide."""
    start, end = families.starts[parent] - families.starts[0], families.starts[parent + 1] - families.starts[0]
    children = np.arange(start, end)
    if len(families.low) > 0 or families.groups.shape[1] == 0 or (families.group_of < 0).any():
        return children
    for child in range(start, end):
        if not families.groups[child].any():
            children[child - start] = -1
    return children[children >= 0]


@compiled
def _one_family(
    side: Side, soft_starts: Integers, children: int, tolerance: float, most_sweeps: int
) -> tuple[int, float]:
    """Sweeps over one family until every sum is right; the first leaves soft sums for the others."""
    size, width = side.numbers.shape
    rows, more = (len(side.soft) + 1, width), (len(side.groups) + 1, width)
    soft = Sums(np.zeros(rows), np.zeros(rows), np.zeros(rows))
    groups = Sums(np.zeros(more), np.zeros(more), np.zeros(more))
    line, moves = np.zeros((6, max(size, width) + 3)), np.zeros(size)
    pace, nought = side.pace.reshape((1, width)), np.zeros(size, np.int32)
    coarse, off, sweep, reach = 100 * tolerance, np.inf, 0, 1.0
    while sweep < most_sweeps:
        sweep += 1
        before, off = off, 0.0
        for kind in range(len(soft_starts) - 1 if sweep > 1 else 0):
            if kind > 0:
                _add_up(side, side.ease, soft.steps, side.soft_of[kind - 1], soft, side.soft_of[kind])
            span = (soft_starts[kind], soft_starts[kind + 1])
            off = max(off, _soft_steps(side, soft, span, side.rows[kind], children, line, coarse, reach))
        _add_up(side, side.ease, soft.steps, side.soft_of[-1], groups, side.group_of)
        off = max(off, _group_steps(side, groups, children, line, coarse, reach))
        off = max(off, _column_steps(side, groups.steps, moves, children, line, coarse, reach))
        _add_up(side, moves, pace, nought, soft, side.soft_of[0])
        if off < tolerance and (sweep > 1 or len(soft_starts) == 1):
            break
        reach = FURTHER if off < min(before, 5 * coarse) else 1.0
        if off > 0.99 * before:
            coarse = max(coarse / 2, 10 * tolerance)  # it does not settle by itself: solve each multiplier more closely
    return sweep, off


@compiled
def _add_up(side: Side, factor: Floats, steps: Floats, step_of: Labels, sums: Sums, sum_of: Labels) -> None:
    """Moves every cell by a step times a factor, and adds up where they are now."""
    numbers, low, high, ease, totals, slopes = side.numbers, side.low, side.high, side.ease, sums.totals, sums.slopes
    for k in range(len(ease)):
        step, into, by, pace = step_of[k], sum_of[k], factor[k], ease[k]
        if len(low) > 0:
            for j in range(numbers.shape[1]):
                x = numbers[k, j] + by * steps[step, j]
                numbers[k, j] = x
                totals[into, j] += min(max(x, low[k, j]), high[k, j])
                slopes[into, j] += pace if low[k, j] < x < high[k, j] else 0.0
        else:
            for j in range(numbers.shape[1]):
                x = numbers[k, j] + by * steps[step, j]
                numbers[k, j] = x
                totals[into, j] += max(x, 0.0)
                slopes[into, j] += pace if x > 0.0 else 0.0


@compiled
def _soft_steps(
    side: Side,
    sums: Sums,
    span: tuple[int, int],
    rows: Integers,
    children: int,
    line: Floats,
    coarse: float,
    reach: float,
) -> float:
    """Steps of the multipliers of soft sums of one kind; returns the largest first step. Sums are zero thereafter."""
    totals, slopes, steps = sums.totals, sums.slopes, sums.steps
    pull, wanted, multiplier = side.pull, side.soft, side.multiplier
    off = 0.0
    for i in range(span[0], span[1]):
        for j in range(steps.shape[1]):
            gap = pull[i, j] * (wanted[i, j] - totals[i, j]) - multiplier[i, j]
            steps[i, j] = gap / (1.0 + pull[i, j] * slopes[i, j])
            totals[i, j], slopes[i, j] = 0.0, 0.0
        largest = 0.0
        for j in range(children):
            largest = max(largest, abs(steps[i, j]))
        off = max(off, largest)
        if largest >= coarse:
            for j in range(children):
                if abs(steps[i, j]) >= coarse:
                    give = 1.0 / pull[i, j]
                    size = _note(side, line, rows[side.bounds[i, 0] : side.bounds[i, 1]], (j, j + 1), side.even)
                    rest = wanted[i, j] - give * multiplier[i, j]
                    steps[i, j] = _repeated(line, size, rest, give, steps[i, j], len(side.low) > 0, coarse)
        for j in range(steps.shape[1]):
            steps[i, j] *= reach
            multiplier[i, j] += steps[i, j]
    return off


@compiled
def _group_steps(side: Side, sums: Sums, children: int, line: Floats, coarse: float, reach: float) -> float:
    """Steps of the multipliers of groups; returns how far they were off. Sums are zero thereafter."""
    totals, slopes, steps, wanted, edges = sums.totals, sums.slopes, sums.steps, side.groups, side.edges
    off, bounded = 0.0, len(side.low) > 0
    for i in range(len(wanted)):
        for j in range(steps.shape[1]):
            totals[i, j] = wanted[i, j] - totals[i, j]
            steps[i, j] = totals[i, j] / slopes[i, j] if slopes[i, j] > 0.0 else 0.0
        for j in range(children):
            gap = totals[i, j]
            off = max(off, abs(gap))
            if abs(gap) >= coarse or (slopes[i, j] <= 0.0 and gap != 0.0):
                size = _note(side, line, np.arange(edges[i], edges[i + 1]), (j, j + 1), side.even)
                if slopes[i, j] <= 0.0:
                    steps[i, j] = _stuck_step(line, size, gap, 0.0)
                if abs(gap) >= coarse:
                    steps[i, j] = _repeated(line, size, wanted[i, j], 0.0, steps[i, j], bounded, coarse)
    steps *= reach
    totals[:], slopes[:] = 0.0, 0.0
    return off


@compiled
def _column_steps(
    side: Side, steps: Floats, moves: Floats, children: int, line: Floats, coarse: float, reach: float
) -> float:
    """Moves cells by the steps of their groups, then finds those of columns; returns how far these were off."""
    totals, slopes = _column_sums(side, steps)
    ease, columns, bounded = side.ease, side.columns, len(side.low) > 0
    off = 0.0
    for k in range(len(columns)):
        slope = slopes[k] * ease[k]
        gap = columns[k] - totals[k]
        off = max(off, abs(gap))
        move = gap / slope if slope > 0.0 else 0.0
        if abs(gap) >= coarse or slope <= 0.0:
            _note(side, line, np.arange(k, k + 1), (0, children), side.pace)
            if slope <= 0.0:
                move = _stuck_step(line, children, gap, 0.0)
            if abs(gap) >= coarse:
                move = _repeated(line, children, columns[k], 0.0, move, bounded, coarse)
        moves[k] = ease[k] * move * reach
    return off


@compiled
def _column_sums(side: Side, steps: Floats) -> tuple[Floats, Floats]:
    """Moves cells by the steps of their groups and adds up all children, in an order that is always the same."""
    numbers, low, high, pace, ease, group_of = side.numbers, side.low, side.high, side.pace, side.ease, side.group_of
    size, width = numbers.shape
    quarter = width // 4
    totals, slopes = np.zeros(size), np.zeros(size)
    cut, moving = np.zeros(width), np.zeros(width)
    for k in range(size):
        by, group = ease[k], group_of[k]
        if len(low) > 0:
            for j in range(width):
                x = numbers[k, j] + by * steps[group, j]
                numbers[k, j] = x
                cut[j] = min(max(x, low[k, j]), high[k, j])
                moving[j] = pace[j] if low[k, j] < x < high[k, j] else 0.0
        else:
            for j in range(width):
                x = numbers[k, j] + by * steps[group, j]
                numbers[k, j] = x
                cut[j] = max(x, 0.0)
                moving[j] = pace[j] if x > 0.0 else 0.0
        for j in range(quarter):
            cut[j] = (cut[j] + cut[j + quarter]) + (cut[j + 2 * quarter] + cut[j + 3 * quarter])
            moving[j] = (moving[j] + moving[j + quarter]) + (moving[j + 2 * quarter] + moving[j + 3 * quarter])
        total, slope = 0.0, 0.0
        for j in range(quarter):
            total += cut[j]
            slope += moving[j]
        totals[k], slopes[k] = total, slope
    return totals, slopes


@compiled
def _note(side: Side, line: Floats, cells: Integers, children: tuple[int, int], pace: Floats) -> int:
    """Notes the numbers of one sum, how fast each moves, and their bounds on a line; returns how many they are."""
    numbers, low, high, ease, bounded, size = side.numbers, side.low, side.high, side.ease, len(side.low) > 0, 0
    for k in cells:
        for j in range(children[0], children[1]):
            line[0, size] = numbers[k, j]
            line[1, size] = ease[k] * pace[j]
            line[2, size] = low[k, j] if bounded else 0.0
            line[3, size] = high[k, j] if bounded else np.inf
            size += 1
    return size


@compiled
def _repeated(line: Floats, size: int, wanted: float, give: float, first: float, bounded: bool, coarse: float) -> float:
    """The move of one multiplier of which the first step is large: that step and further ones."""
    move, last, filled = first, first, (size + 3) // 4 * 4
    for i in range(size, filled):
        line[0, i], line[1, i], line[2, i], line[3, i] = 0.0, 0.0, 0.0, 0.0
    for _ in range(1, STEPS):
        for i in range(filled):
            x = line[0, i] + line[1, i] * move
            y = x if x > line[2, i] else line[2, i]
            line[4, i] = y if y < line[3, i] else line[3, i]
            line[5, i] = line[1, i] if (line[2, i] < x) & (x < line[3, i]) else 0.0
        total, slope = 0.0, 0.0
        for i in range(0, filled, 4):
            total += (line[4, i] + line[4, i + 1]) + (line[4, i + 2] + line[4, i + 3])
            slope += (line[5, i] + line[5, i + 1]) + (line[5, i + 2] + line[5, i + 3])
        gap = wanted - total - give * move
        step = gap / (slope + give) if slope + give > 0.0 else _stuck_step(line, size, gap, move)
        if bounded and step * last < 0.0 and abs(step) > abs(last) / 2:
            step = -last / 2  # where a step turns back it goes half the way at most, so that two cannot take turns
        last = step
        move += step
        if abs(step if give > 0.0 else gap) < coarse:
            break
    return move


@compiled
def _stuck_step(line: Floats, size: int, gap: float, move: float) -> float:
    """Where no number moves with its multiplier: the step to the nearest that will, and as far again."""
    nearest = np.inf
    for i in range(size):
        x = line[0, i] + line[1, i] * move
        if gap > 0.0 and x <= line[2, i]:
            nearest = min(nearest, (line[2, i] - x) / line[1, i])
        if gap < 0.0 and x >= line[3, i]:
            nearest = min(nearest, (x - line[3, i]) / line[1, i])
    if nearest == np.inf:
        return 0.0
    return nearest + gap if gap > 0.0 else gap - nearest
