"""Non-negative tables of children that add up to their parent: a quadratic problem for each family, by sweeps.

For each family: numbers x (child, cell), as near as possible to targets z, with weights, such that
* the children of a cell add up to the parent's number of that cell (columns),
* each child's cells of a settled group add up to its settled number (groups),
* low <= x <= high,
while sums of cells that were measured too are kept near targets of their own (soft sums).

With a multiplier for every column, group and soft sum the solution is x = z + multipliers, cut to its bounds; a
multiplier is right if its own sum is. A sweep puts right one multiplier after another: block ascent of the dual problem,
the quadratic kin of raking. Each is a piecewise linear equation in one unknown, solved by Newton's steps: a step down
cannot overshoot, a step up can and is then taken back, so steps are repeated while they are large. Stationarity and
signs hold at every moment; what is left to reach is that all sums are right, and how far they are off is the
certificate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from estimation.arrays import Floats, Integers, Labels
from estimation.kernels.compiled import compiled

STEPS = 8
"""At most so many steps for one multiplier in one sweep."""


class Families(NamedTuple):
    """Parents with their children. Arrays without rows stand for: no columns (the whole), no groups, no bounds."""

    targets: Floats
    """z: (child, cell)."""
    ease: Floats
    """One over the weight of each child's cells, in any common unit."""
    cell_ease: Floats
    """The same for cells: the weight of x is one over the product of both."""
    starts: Integers
    """Where the children of each parent begin."""
    columns: Floats
    """(parent, cell)."""
    group_of: Labels
    """For each cell its settled group."""
    groups: Floats
    """(child, group)."""
    soft_of: Labels
    """(kind of sum, cell): the number of the soft sum, negative for none."""
    soft: Floats
    """Targets of soft sums: (child, sum)."""
    pull: Floats
    """Weights of soft sums, as multiples of the weight of the child's cells: (child, sum)."""
    soft_starts: Integers
    """Where the sums of each kind begin."""
    low: Floats
    high: Floats


class Result(NamedTuple):
    """Where the solution goes, and for each parent how many sweeps it took and how far any sum is off."""

    numbers: Floats
    sweeps: Integers
    off: Floats


class Side(NamedTuple):
    """One family with its children side by side, so that what is done to a cell is done to all children at once.

    Cells stand group by group. Children are filled up to a round number by ones that are minus infinity everywhere,
    have no weight and are asked for nothing.
    """

    numbers: Floats
    """Target plus multipliers, before it is cut to its bounds: (cell, child)."""
    low: Floats
    high: Floats
    ease: Floats
    """(cell)."""
    pace: Floats
    """The ease of each child."""
    edges: Integers
    """Where the cells of each group begin, after those of none."""
    groups: Floats
    """(group, child)."""
    columns: Floats
    soft_of: Labels
    """(kind of sum, cell): one more than the last sum for none; at least one kind."""
    soft: Floats
    """(sum, child)."""
    pull: Floats
    multiplier: Floats
    """Of soft sums: (sum, child)."""
    rows: Integers
    """(kind of sum, place): the cells, sum by sum."""
    bounds: Integers
    """Where the cells of each soft sum begin and end there."""


class Desk(NamedTuple):
    """Room to work in."""

    sums: Floats
    """What the soft sums come to: (sum, child), and a row for cells in none."""
    slopes: Floats
    """How fast they grow with their multiplier."""
    steps: Floats
    """Steps of their multipliers."""
    row: tuple[Floats, Floats, Floats]
    """Sums, slopes and steps of one group: (1, child)."""
    cut: Floats
    """(use, child): numbers of one cell within their bounds, and the paces of those that move."""
    moves: Floats
    """Steps of columns, times the ease of their cells."""
    nought: Labels
    """Zero for every cell."""
    line: Floats
    """(use, cell or child): numbers, ease and bounds of the cells of one sum."""


@compiled
def settle(families: Families, result: Result, first: int, last: int, tolerance: float, most_sweeps: int) -> None:
    """Solves the families from `first` to `last` (without)."""
    order = np.argsort(families.group_of, kind="mergesort")
    for parent in range(first, last):
        cells = order
        if len(families.columns) > 0 and len(families.low) == 0:  # what is zero in the parent is zero in every child
            cells = order[families.columns[parent][order] != 0]
        start, end = families.starts[parent] - families.starts[0], families.starts[parent + 1] - families.starts[0]
        side = _side_by_side(families, parent, (start, end), cells)
        result.sweeps[parent], result.off[parent] = _one_family(
            side, families.soft_starts, end - start, tolerance, most_sweeps
        )
        bounded = len(families.low) > 0
        for k in range(len(cells)):
            for child in range(end - start):
                x = side.numbers[k, child]
                x = min(max(x, side.low[k, child]), side.high[k, child]) if bounded else max(x, 0.0)
                result.numbers[start + child, cells[k]] = x


@compiled
def _turned(numbers: Floats, span: tuple[int, int], width: int, rest: float) -> Floats:
    """Rows of a span as columns, filled up to a width."""
    start, end = span
    found = np.full((numbers.shape[1], width), rest)
    for k in range(numbers.shape[1]):
        for child in range(end - start):
            found[k, child] = numbers[start + child, k]
    return found


@compiled
def _picked(numbers: Floats, span: tuple[int, int], cells: Integers, width: int, rest: float) -> Floats:
    """The same for some cells."""
    start, end = span
    found = np.full((len(cells), width), rest)
    for k in range(len(cells)):
        for child in range(end - start):
            found[k, child] = numbers[start + child, cells[k]]
    return found


@compiled
def _side_by_side(families: Families, parent: int, span: tuple[int, int], cells: Integers) -> Side:
    """The family of one parent."""
    children = span[1] - span[0]
    width = 4 if children <= 4 else (children + 15) // 16 * 16
    bounded = len(families.low) > 0
    none = np.zeros((0, width))
    pace = np.zeros(width)
    pace[:children] = families.ease[span[0] : span[1]]
    group_of = families.group_of[cells]
    count, sums = families.groups.shape[1], families.soft.shape[1]
    edges = np.searchsorted(group_of, np.arange(count + 1))
    edges[-1] = len(cells)
    soft_of = np.full((max(len(families.soft_of), 1), len(cells)), np.int32(sums), np.int32)
    for kind in range(len(families.soft_of)):
        for k in range(len(cells)):
            if families.soft_of[kind, cells[k]] >= 0:
                soft_of[kind, k] = families.soft_of[kind, cells[k]]
    rows, bounds = _sorted(soft_of, sums)
    return Side(
        _picked(families.targets, span, cells, width, -np.inf),
        _picked(families.low, span, cells, width, 0.0) if bounded else none,
        _picked(families.high, span, cells, width, 0.0) if bounded else none,
        families.cell_ease[cells],
        pace,
        edges,
        _turned(families.groups, span, width, 0.0),
        families.columns[parent][cells] if len(families.columns) > 0 else np.zeros(0),
        soft_of,
        _turned(families.soft, span, width, 0.0),
        _turned(families.pull, span, width, 0.0),
        np.zeros((sums, width)),
        rows,
        bounds,
    )


@compiled
def _sorted(soft_of: Labels, count: int) -> tuple[Integers, Integers]:
    """For each kind the cells sum by sum, and where each sum begins and ends."""
    rows, bounds = np.zeros(soft_of.shape, np.int64), np.zeros((count + 1, 2), np.int64)
    for kind in range(len(soft_of)):
        rows[kind] = np.argsort(soft_of[kind], kind="mergesort")
        last = -1
        for place in range(soft_of.shape[1]):
            label = soft_of[kind, rows[kind, place]]
            if label != last:
                bounds[label, 0], last = place, label
            bounds[label, 1] = place + 1
    return rows, bounds


@compiled
def _one_family(
    side: Side, soft_starts: Integers, children: int, tolerance: float, most_sweeps: int
) -> tuple[int, float]:
    """Sweeps over one family until every sum is right."""
    size, width = side.numbers.shape
    sums = len(side.soft)
    desk = Desk(
        np.zeros((sums + 1, width)), np.zeros((sums + 1, width)), np.zeros((sums + 1, width)),
        (np.zeros((1, width)), np.zeros((1, width)), np.zeros((1, width))), np.zeros((2, width)),
        np.zeros(size), np.zeros(size, np.int32), np.zeros((4, max(size, width))),
    )  # fmt: skip
    _add_up(side, (0, size), side.ease, desk.steps, side.soft_of[0], desk.sums, desk.slopes, side.soft_of[0])
    coarse, off, sweep = 100 * tolerance, np.inf, 0
    while sweep < most_sweeps:
        sweep += 1
        before, off = off, 0.0
        for kind in range(len(soft_starts) - 1):
            if kind > 0:
                _add_up(
                    side, (0, size), side.ease, desk.steps, side.soft_of[kind - 1],
                    desk.sums, desk.slopes, side.soft_of[kind],
                )  # fmt: skip
            for i in range(soft_starts[kind], soft_starts[kind + 1]):
                off = max(off, _soft_step(side, desk, kind, i, children, coarse))
        desk.sums[:], desk.slopes[:] = 0.0, 0.0
        for group in range(-1, len(side.groups)):
            off = max(off, _group_step(side, desk, group, children, coarse))
        if off < tolerance:
            break
        if off > before:
            coarse = 10 * tolerance  # it does not settle by itself: solve each multiplier more closely
    return sweep, off


@compiled
def _add_up(
    side: Side, span: tuple[int, int], factor: Floats, steps: Floats, step_of: Labels,
    sums: Floats, slopes: Floats, sum_of: Labels,
) -> None:  # fmt: skip
    """Moves the cells of a span and adds them up: sums, and how fast they grow with their multiplier."""
    numbers, low, high, ease = side.numbers, side.low, side.high, side.ease
    for k in range(span[0], span[1]):
        step, into, by, pace = step_of[k], sum_of[k], factor[k], ease[k]
        if len(low) > 0:
            for j in range(numbers.shape[1]):
                x = numbers[k, j] + by * steps[step, j]
                numbers[k, j] = x
                sums[into, j] += min(max(x, low[k, j]), high[k, j])
                slopes[into, j] += pace if low[k, j] < x < high[k, j] else 0.0
        else:
            for j in range(numbers.shape[1]):
                x = numbers[k, j] + by * steps[step, j]
                numbers[k, j] = x
                sums[into, j] += max(x, 0.0)
                slopes[into, j] += pace if x > 0.0 else 0.0


@compiled
def _soft_step(side: Side, desk: Desk, kind: int, i: int, children: int, coarse: float) -> float:
    """Puts right the multipliers of one soft sum; returns the largest first step."""
    steps, multiplier, pull, soft, sums, slopes = desk.steps, side.multiplier, side.pull, side.soft, desk.sums, desk.slopes
    for j in range(steps.shape[1]):
        gap = pull[i, j] * (soft[i, j] - sums[i, j]) - multiplier[i, j]
        step = gap / (1.0 + pull[i, j] * slopes[i, j])
        steps[i, j] = step
        multiplier[i, j] += step
    largest = 0.0
    for j in range(children):
        largest = max(largest, abs(steps[i, j]))
    if largest >= coarse:
        for j in range(children):
            if abs(steps[i, j]) >= coarse:
                rows = side.rows[kind, side.bounds[i, 0] : side.bounds[i, 1]]
                size = _note(side, desk.line, rows, j)
                give = 1.0 / side.pull[i, j]
                wanted = side.soft[i, j] - give * (multiplier[i, j] - steps[i, j])
                more = _repeated(desk.line, size, wanted, give, steps[i, j], len(side.low) > 0, coarse)
                steps[i, j] += more
                multiplier[i, j] += more
    return largest


@compiled
def _group_step(side: Side, desk: Desk, group: int, children: int, coarse: float) -> float:
    """Puts right one group of each child, then the columns of its cells (-1: cells in none); returns how far they were off."""
    span = (side.edges[group] if group >= 0 else 0, side.edges[group + 1])
    sums, slopes, steps = desk.row
    sums[:], slopes[:], steps[:] = 0.0, 0.0, 0.0
    _add_up(side, span, side.ease, desk.steps, side.soft_of[-1], sums, slopes, desk.nought)
    off = 0.0
    if group >= 0:
        for j in range(steps.shape[1]):
            sums[0, j] = side.groups[group, j] - sums[0, j]
            steps[0, j] = sums[0, j] / slopes[0, j] if slopes[0, j] > 0.0 else 0.0
        for j in range(children):
            off = max(off, abs(sums[0, j]))
        for j in range(children):
            if abs(sums[0, j]) >= coarse or (slopes[0, j] <= 0.0 and sums[0, j] != 0.0):
                size, bounded = _note(side, desk.line, np.arange(span[0], span[1]), j), len(side.low) > 0
                if slopes[0, j] <= 0.0:
                    steps[0, j] = _stuck_step(desk.line, size, sums[0, j], 0.0)
                if abs(sums[0, j]) >= coarse:
                    steps[0, j] += _repeated(desk.line, size, side.groups[group, j], 0.0, steps[0, j], bounded, coarse)
    off = max(off, _column_steps(side, desk, span, children, coarse))
    _add_up(
        side, span, desk.moves, side.pace.reshape((1, -1)), desk.nought, desk.sums, desk.slopes, side.soft_of[0]
    )
    return off


@compiled
def _column_steps(side: Side, desk: Desk, span: tuple[int, int], children: int, coarse: float) -> float:
    """Moves cells by the steps of their group, then finds the steps of their columns; returns how far these were off."""
    steps, moves, cut, line = desk.row[2], desk.moves, desk.cut, desk.line
    numbers, low, high, ease, pace, columns = side.numbers, side.low, side.high, side.ease, side.pace, side.columns
    off, bounded = 0.0, len(low) > 0
    for k in range(span[0], span[1]):
        total, slope = _column_sum(numbers, low, high, pace, ease[k], cut, steps, k)
        if len(columns) == 0:
            continue
        slope *= ease[k]
        gap = columns[k] - total
        off = max(off, abs(gap))
        move = gap / slope if slope > 0.0 else 0.0
        if abs(gap) >= coarse or slope <= 0.0:
            _note_column(side, line, k, children)
            if slope <= 0.0:
                move = _stuck_step(line, children, gap, 0.0)
            if abs(gap) >= coarse:
                move += _repeated(line, children, columns[k], 0.0, move, bounded, coarse)
        moves[k] = ease[k] * move
    return off


@compiled
def _column_sum(
    numbers: Floats, low: Floats, high: Floats, pace: Floats, by: float, cut: Floats, steps: Floats, k: int
) -> tuple[float, float]:
    """Moves a cell by the steps of its group and adds up its children, in an order that is always the same."""
    if len(low) > 0:
        for j in range(numbers.shape[1]):
            x = numbers[k, j] + by * steps[0, j]
            numbers[k, j] = x
            cut[0, j] = min(max(x, low[k, j]), high[k, j])
            cut[1, j] = pace[j] if low[k, j] < x < high[k, j] else 0.0
    else:
        for j in range(numbers.shape[1]):
            x = numbers[k, j] + by * steps[0, j]
            numbers[k, j] = x
            cut[0, j] = max(x, 0.0)
            cut[1, j] = pace[j] if x > 0.0 else 0.0
    total, slope = 0.0, 0.0
    quarter = numbers.shape[1] // 4
    for j in range(quarter):
        cut[0, j] = (cut[0, j] + cut[0, j + quarter]) + (cut[0, j + 2 * quarter] + cut[0, j + 3 * quarter])
        cut[1, j] = (cut[1, j] + cut[1, j + quarter]) + (cut[1, j + 2 * quarter] + cut[1, j + 3 * quarter])
    for j in range(quarter):
        total += cut[0, j]
        slope += cut[1, j]
    return total, slope


@compiled
def _note(side: Side, line: Floats, rows: Integers, child: int) -> int:
    """Notes a child's numbers of some cells on a line; returns how many."""
    numbers, low, high, ease, bounded = side.numbers, side.low, side.high, side.ease, len(side.low) > 0
    for i in range(len(rows)):
        k = rows[i]
        line[0, i] = numbers[k, child]
        line[1, i] = ease[k]
        line[2, i] = low[k, child] if bounded else 0.0
        line[3, i] = high[k, child] if bounded else np.inf
    return len(rows)


@compiled
def _note_column(side: Side, line: Floats, k: int, children: int) -> int:
    """Notes the children's numbers of one cell on a line; returns how many."""
    numbers, low, high, pace, bounded = side.numbers, side.low, side.high, side.pace, len(side.low) > 0
    ease = side.ease[k]
    for j in range(children):
        line[0, j] = numbers[k, j]
        line[1, j] = ease * pace[j]
        line[2, j] = low[k, j] if bounded else 0.0
        line[3, j] = high[k, j] if bounded else np.inf
    return children


@compiled
def _repeated(
    line: Floats, size: int, wanted: float, give: float, first: float, bounded: bool, coarse: float
) -> float:
    """Further steps of one multiplier, after a first that was large."""
    move, last = first, first
    for _ in range(1, STEPS):
        total, slope = 0.0, 0.0
        for i in range(size):
            x = line[0, i] + line[1, i] * move
            total += min(max(x, line[2, i]), line[3, i])
            slope += line[1, i] if line[2, i] < x < line[3, i] else 0.0
        gap = wanted - total - give * move
        step = gap / (slope + give) if slope + give > 0.0 else _stuck_step(line, size, gap, move)
        if bounded:
            step = last = _held_back(step, last)
        move += step
        if abs(step if give > 0.0 else gap) < coarse:
            break
    return move - first


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


@compiled
def _held_back(step: float, last: float) -> float:
    """A step after another: where it turns back it goes half the way at most, so that the two cannot take turns."""
    if step * last < 0.0 and abs(step) > abs(last) / 2:
        return -last / 2
    return step
