"""Families of a level: parents with their children and what is asked of them, and one of them laid out for sweeps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from estimation.arrays import Floats, Integers, Labels
from estimation.kernels.compiled import compiled


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
    have no weight and are asked for nothing. Minus infinity is zero for good.
    """

    numbers: Floats
    """Target plus multipliers, before it is cut to its bounds: (cell, child)."""
    low: Floats
    high: Floats
    ease: Floats
    pace: Floats
    """The ease of each child; `even` is one for each."""
    even: Floats
    group_of: Labels
    """For each cell its group, one more than the last for none."""
    edges: Integers
    """Where the cells of each group begin, after those of none."""
    groups: Floats
    """(group, child)."""
    columns: Floats
    soft_of: Labels
    """(kind of sum, cell): one more than the last sum for none; at least one kind."""
    soft: Floats
    """(sum, child), as are their pulls and multipliers."""
    pull: Floats
    multiplier: Floats
    rows: Integers
    """(kind of sum, place): the cells, sum by sum; `bounds` say where those of each sum begin and end."""
    bounds: Integers


@compiled
def _turned(numbers: Floats, children: Integers, cells: Integers, width: int, rest: float) -> Floats:
    """Some cells of some children as (cell, child), filled up to a width."""
    found = np.full((len(cells), width), rest)
    for k in range(len(cells)):
        for place in range(len(children)):
            found[k, place] = numbers[children[place], cells[k]]
    return found


@compiled
def side_by_side(families: Families, parent: int, children: Integers, cells: Integers) -> Side:
    """The family of one parent: those children and cells that are not zero in any case."""
    width = 4 if len(children) <= 4 else (len(children) + 7) // 8 * 8
    bounded = len(families.low) > 0
    none = np.zeros((0, width))
    pace = np.zeros(width)
    pace[: len(children)] = families.ease[children]
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
    groups = _turned(families.groups, children, np.arange(count), width, 0.0)
    numbers = _turned(families.targets, children, cells, width, -np.inf)
    if not bounded:
        _clear(numbers, group_of, groups)
    return Side(
        numbers,
        _turned(families.low, children, cells, width, 0.0) if bounded else none,
        _turned(families.high, children, cells, width, 0.0) if bounded else none,
        families.cell_ease[cells],
        pace,
        np.ones(width),
        np.where((group_of < 0) | (count == 0), count, group_of).astype(np.int32),
        edges,
        groups,
        families.columns[parent][cells] if len(families.columns) > 0 else np.zeros(0),
        soft_of,
        _turned(families.soft, children, np.arange(sums), width, 0.0),
        _turned(families.pull, children, np.arange(sums), width, 0.0),
        np.zeros((sums, width)),
        rows,
        bounds,
    )


@compiled
def _clear(numbers: Floats, group_of: Labels, groups: Floats) -> None:
    """Takes out what is in a group of which nothing is left to divide: it is zero, whatever its multipliers."""
    for k in range(len(numbers)):
        if 0 <= group_of[k] < len(groups):
            for j in range(numbers.shape[1]):
                if groups[group_of[k], j] == 0.0:
                    numbers[k, j] = -np.inf


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
