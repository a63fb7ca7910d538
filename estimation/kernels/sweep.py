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


@compiled
def settle(families: Families, result: Result, first: int, last: int, tolerance: float, most_sweeps: int) -> None:
    """Solves the families from `first` to `last` (without)."""
    for parent in range(first, last):
        cells = _support(families, parent)
        result.sweeps[parent], result.off[parent] = _one_family(
            families, parent, cells, result.numbers, tolerance, most_sweeps
        )


@compiled
def _support(families: Families, parent: int) -> Integers:
    """The cells that are not zero in the parent: the others are zero in every child."""
    count = families.targets.shape[1]
    if len(families.columns) == 0 or len(families.low) > 0:
        return np.arange(count)
    return np.flatnonzero(families.columns[parent])


@compiled
def _one_family(
    families: Families, parent: int, cells: Integers, numbers: Floats, tolerance: float, most_sweeps: int
) -> tuple[int, float]:
    """Sweeps over one family until every sum is right."""
    start, end = families.starts[parent] - families.starts[0], families.starts[parent + 1] - families.starts[0]
    children, size = end - start, len(cells)
    here = families.targets[start:end][:, cells]
    bounded = len(families.low) > 0
    low = families.low[start:end][:, cells] if bounded else np.zeros((1, 1))
    high = families.high[start:end][:, cells] if bounded else np.zeros((1, 1))
    ease = families.cell_ease[cells]
    group_of = families.group_of[cells]
    soft_of = families.soft_of[:, cells]
    column = np.zeros(size)
    shift = np.zeros(size)
    soft = np.zeros((children, families.soft.shape[1]))
    room = max(families.groups.shape[1], families.soft.shape[1])
    scratch = (np.empty(room), np.empty(room))
    coarse, off, sweep = 100 * tolerance, np.inf, 0
    while sweep < most_sweeps:
        sweep += 1
        before, off = off, 0.0
        for child in range(children):
            for k in range(size):
                shift[k] = families.ease[start + child] * ease[k] * column[k]
            bounds = (low[child if bounded else 0], high[child if bounded else 0])
            for kind in range(len(soft_of)):
                span = (families.soft_starts[kind], families.soft_starts[kind + 1])
                off = max(
                    off,
                    _soft_step(
                        here[child], shift, ease, soft_of[kind], soft[child], families.soft[start + child],
                        families.pull[start + child], span, scratch, bounds, bounded, coarse,
                    ),
                )  # fmt: skip
            if families.groups.shape[1] > 0:
                off = max(
                    off,
                    _group_step(
                        here[child], shift, ease, group_of, families.groups[start + child],
                        scratch, bounds, bounded, coarse,
                    ),
                )  # fmt: skip
        if len(families.columns) > 0:
            wanted = families.columns[parent][cells]
            off = max(
                off, _column_step(here, column, ease, families.ease[start:end], wanted, low, high, bounded, coarse)
            )
        if off < tolerance:
            break
        if off > before:
            coarse = 10 * tolerance  # it does not settle by itself: solve each multiplier more closely
    for child in range(children):
        for k in range(size):
            x = here[child, k] + families.ease[start + child] * ease[k] * column[k]
            least = low[child, k] if bounded else 0.0
            most = high[child, k] if bounded else np.inf
            numbers[start + child, cells[k]] = min(max(x, least), most)
    return sweep, off


@compiled
def _add_up(
    here: Floats, shift: Floats, ease: Floats, label: Labels, scratch: tuple[Floats, Floats], span: tuple[int, int],
    bounds: tuple[Floats, Floats], bounded: bool,
) -> None:  # fmt: skip
    """Sums of the cells of each label, and how fast they grow with their multiplier."""
    sums, slopes = scratch
    for i in range(span[0], span[1]):
        sums[i], slopes[i] = 0.0, 0.0
    total, slope, last = 0.0, 0.0, np.int32(-1)
    for k in range(len(label)):
        if label[k] != last:  # neighbours often have the same label: they are added before they are stored
            if last >= 0:
                sums[last] += total
                slopes[last] += slope
            total, slope, last = 0.0, 0.0, label[k]
        x = here[k] + shift[k]
        if bounded:
            total += min(max(x, bounds[0][k]), bounds[1][k])
            slope += ease[k] if bounds[0][k] < x < bounds[1][k] else 0.0
        else:
            total += max(x, 0.0)
            slope += ease[k] if x > 0.0 else 0.0
    if last >= 0:
        sums[last] += total
        slopes[last] += slope


@compiled
def _stuck_step(
    here: Floats, shift: Floats, ease: Floats, label: Labels, which: int, gap: float, bounds: tuple[Floats, Floats],
    bounded: bool,
) -> float:  # fmt: skip
    """Where no cell of a label moves with its multiplier: the step to the nearest that will, and as far again."""
    nearest = np.inf
    for k in range(len(label)):
        if label[k] == which:
            x = here[k] + shift[k]
            if gap > 0.0 and x <= (bounds[0][k] if bounded else 0.0):
                nearest = min(nearest, ((bounds[0][k] if bounded else 0.0) - x) / ease[k])
            if gap < 0.0 and bounded and x >= bounds[1][k]:
                nearest = min(nearest, (x - bounds[1][k]) / ease[k])
    if nearest == np.inf:
        return 0.0
    return nearest + gap if gap > 0.0 else gap - nearest


@compiled
def _held_back(step: float, last: float) -> float:
    """A step after another: where it turns back it goes half the way at most, so that the two cannot take turns."""
    if step * last < 0.0 and abs(step) > abs(last) / 2:
        return -last / 2
    return step


@compiled
def _group_step(
    here: Floats, shift: Floats, ease: Floats, group_of: Labels, wanted: Floats,
    scratch: tuple[Floats, Floats], bounds: tuple[Floats, Floats], bounded: bool, coarse: float,
) -> float:  # fmt: skip
    """Puts right a child's groups; returns how far they were off."""
    sums, slopes = scratch
    span = (0, len(wanted))
    last = np.zeros(len(wanted))
    off = 0.0
    for step in range(STEPS):
        _add_up(here, shift, ease, group_of, scratch, span, bounds, bounded)
        largest = 0.0
        for i in range(len(wanted)):
            gap = abs(wanted[i] - sums[i])
            if step == 0:
                off = max(off, gap)
            largest = max(largest, gap)
            if slopes[i] > 0.0:
                sums[i] = (wanted[i] - sums[i]) / slopes[i]
            elif gap > 0.0:
                sums[i] = _stuck_step(here, shift, ease, group_of, i, wanted[i] - sums[i], bounds, bounded)
            else:
                sums[i] = 0.0
            if bounded:
                sums[i] = last[i] = _held_back(sums[i], last[i])
        for k in range(len(group_of)):
            if group_of[k] >= 0:
                here[k] += ease[k] * sums[group_of[k]]
        if largest < coarse:
            break
    return off


@compiled
def _soft_step(
    here: Floats, shift: Floats, ease: Floats, soft_of: Labels, multiplier: Floats, wanted: Floats, pull: Floats,
    span: tuple[int, int], scratch: tuple[Floats, Floats], bounds: tuple[Floats, Floats],
    bounded: bool, coarse: float,
) -> float:  # fmt: skip
    """Puts right the multipliers of a child's soft sums of one kind; returns the largest first step."""
    sums, slopes = scratch
    last = np.zeros(span[1] - span[0])
    off = 0.0
    for step in range(STEPS):
        _add_up(here, shift, ease, soft_of, scratch, span, bounds, bounded)
        largest = 0.0
        for i in range(span[0], span[1]):
            if pull[i] <= 0.0:
                sums[i] = 0.0
                continue
            gap = multiplier[i] / pull[i] + sums[i] - wanted[i]
            sums[i] = -gap / (1.0 / pull[i] + slopes[i])
            if bounded:
                sums[i] = last[i - span[0]] = _held_back(sums[i], last[i - span[0]])
            multiplier[i] += sums[i]
            largest = max(largest, abs(sums[i]))
        if step == 0:
            off = largest
        for k in range(len(soft_of)):
            if soft_of[k] >= 0:
                here[k] += ease[k] * sums[soft_of[k]]
        if largest < coarse:
            break
    return off


@compiled
def _column_step(
    here: Floats, column: Floats, ease: Floats, child_ease: Floats, wanted: Floats, low: Floats, high: Floats,
    bounded: bool, coarse: float,
) -> float:  # fmt: skip
    """Puts right the columns: sums of a cell over all children; returns how far they were off."""
    children, size = here.shape
    sums, slopes, last, off = np.empty(size), np.empty(size), np.zeros(size), 0.0
    for step in range(STEPS):
        sums[:], slopes[:] = 0.0, 0.0
        for child in range(children):
            pace = child_ease[child]
            for k in range(size):
                x = here[child, k] + pace * ease[k] * column[k]
                if bounded:
                    sums[k] += min(max(x, low[child, k]), high[child, k])
                    slopes[k] += pace * ease[k] if low[child, k] < x < high[child, k] else 0.0
                else:
                    sums[k] += max(x, 0.0)
                    slopes[k] += pace * ease[k] if x > 0.0 else 0.0
        largest = 0.0
        for k in range(size):
            gap = wanted[k] - sums[k]
            if step == 0:
                off = max(off, abs(gap))
            largest = max(largest, abs(gap))
            if slopes[k] > 0.0:
                move = gap / slopes[k]
            else:
                move = _stuck_column(here, column, ease, child_ease, k, gap, low, high, bounded)
            if bounded:
                move = last[k] = _held_back(move, last[k])
            column[k] += move
        if largest < coarse:
            break
    return off


@compiled
def _stuck_column(
    here: Floats, column: Floats, ease: Floats, child_ease: Floats, k: int, gap: float, low: Floats, high: Floats,
    bounded: bool,
) -> float:  # fmt: skip
    """Where no child of a column moves with its multiplier: the step to the nearest that will, and as far again."""
    nearest = np.inf
    for child in range(len(here)):
        pace = child_ease[child] * ease[k]
        x = here[child, k] + pace * column[k]
        if gap > 0.0 and x <= (low[child, k] if bounded else 0.0):
            nearest = min(nearest, ((low[child, k] if bounded else 0.0) - x) / pace)
        if gap < 0.0 and bounded and x >= high[child, k]:
            nearest = min(nearest, (x - high[child, k]) / pace)
    if nearest == np.inf:
        return 0.0
    return nearest + gap if gap > 0.0 else gap - nearest
