"""Whole numbers near a fractional table that keep all its sums.

A family falls apart into tables (child, cell of one settled group) whose row and column sums are whole numbers already.
Such a table is a network: whole numbers with these sums exist within any whole bounds that fractions can meet. Whole
parts are given first, then single units in the order of what is left over; what remains goes along a path of exchanges
found in the network. Ties are broken by keys of areas and cells, not by the order in which they stand.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from estimation.arrays import Floats, Integers, Labels
from estimation.kernels.compiled import compiled

GRAIN = 1e-6
"""Fractions that differ by less are ties."""
MOST_GRAINS = 2**24 - 1
"""What is left over counts as at most so many grains: sixteen units."""

Keys = npt.NDArray[np.uint64]


class Fractions(NamedTuple):
    """What is to be rounded, for every family. Arrays without rows stand for: no columns (the whole), no bounds."""

    numbers: Floats
    starts: Integers
    columns: Floats
    group_of: Labels
    groups: Floats
    low: Floats
    high: Floats
    area_keys: Keys
    cell_keys: Keys
    soft_of: Labels
    """(kind of sum, cell): sums that are kept too as long as they can be, negative for none."""
    soft_count: int


@compiled
def round_off(fractions: Fractions, whole: Floats, moved: Integers, first: int, last: int) -> None:
    """Rounds the families from `first` to `last` (without). `moved` counts exchanges; -1 where there is no way."""
    cells = _in_order(fractions)
    for parent in range(first, last):
        start = fractions.starts[parent] - fractions.starts[0]
        end = fractions.starts[parent + 1] - fractions.starts[0]
        rows = start + np.argsort(fractions.area_keys[start:end], kind="mergesort")
        due_soft = _due_soft(fractions, start, end)
        moved[parent], begin = 0, 0
        while begin < len(cells):
            group, stop = fractions.group_of[cells[begin]], begin + 1
            while stop < len(cells) and fractions.group_of[cells[stop]] == group:
                stop += 1
            exchanged = _one_table(fractions, parent, rows, cells[begin:stop], group, whole, due_soft)
            if exchanged < 0:
                moved[parent] = -1
                break
            moved[parent] += exchanged
            begin = stop


@compiled
def _in_order(fractions: Fractions) -> Integers:
    """The cells by group, both in the order of their keys, so that nothing depends on where they stand."""
    cells = np.argsort(fractions.cell_keys, kind="mergesort")
    rank, seen = np.full(max(fractions.groups.shape[1], 1), -1), 0
    for cell in cells:
        if rank[fractions.group_of[cell]] < 0:
            rank[fractions.group_of[cell]] = seen
            seen += 1
    return cells[np.argsort(rank[fractions.group_of[cells]], kind="mergesort")]


@compiled
def _due_soft(fractions: Fractions, start: int, end: int) -> Floats:
    """What single units may still add to each soft sum: what it comes to, rounded, less its cells' whole parts."""
    due = np.zeros((end - start, fractions.soft_count))
    parts = np.zeros(fractions.soft_count)
    for i in range(end - start if len(fractions.soft_of) > 0 else 0):
        parts[:] = 0.0
        for k in range(fractions.soft_of.shape[1]):
            number = fractions.numbers[start + i, k]
            if number != 0.0:
                for kind in range(len(fractions.soft_of)):
                    if fractions.soft_of[kind, k] >= 0:
                        due[i, fractions.soft_of[kind, k]] += number
                        parts[fractions.soft_of[kind, k]] += np.floor(number + GRAIN)
        for j in range(fractions.soft_count):
            due[i, j] = np.floor(due[i, j] + 0.5 + GRAIN) - parts[j]
    return due


@compiled
def _one_table(
    fractions: Fractions, parent: int, rows: Integers, group_cells: Integers, group: int, whole: Floats,
    due_soft: Floats,
) -> int:  # fmt: skip
    """Rounds the cells of one group in one family; `rows` are its children in the order of their keys."""
    start = fractions.starts[parent] - fractions.starts[0]
    bounded, columns = len(fractions.low) > 0, len(fractions.columns) > 0
    cells = group_cells
    if columns and not bounded:
        cells = group_cells[fractions.columns[parent][group_cells] > 0]
    if fractions.groups.shape[1] > 0 and not bounded:
        rows = rows[fractions.groups[:, group][rows] > 0]
    size, width = len(rows), len(cells)
    x, low, room = np.empty((size, width)), np.zeros((size, width)), np.full((size, width), np.inf)
    for i in range(size):
        for k in range(width):
            x[i, k] = fractions.numbers[rows[i], cells[k]]
        for k in range(width if bounded else 0):
            low[i, k] = fractions.low[rows[i], cells[k]]
            room[i, k] = fractions.high[rows[i], cells[k]] - low[i, k]
    due_rows, due_columns = np.full(size, np.inf), np.full(width, np.inf)
    if fractions.groups.shape[1] > 0:
        for i in range(size):
            due_rows[i] = fractions.groups[rows[i], group] - low[i].sum()
    if columns:
        for k in range(width):
            due_columns[k] = fractions.columns[parent][cells[k]] - low[:, k].sum()
    if (due_rows < 0).any() or (due_columns < 0).any() or not np.isfinite(x).all():
        return -1
    if not columns and fractions.groups.shape[1] == 0:
        for i in range(size):
            for k in range(width):
                whole[rows[i], cells[k]] = low[i, k] + min(
                    room[i, k], np.floor(max(x[i, k] - low[i, k], 0.0) + 0.5 + GRAIN)
                )
        return 0
    given = _whole_parts(x - low, room, due_rows, due_columns)
    keys = (fractions.area_keys[rows], fractions.cell_keys[cells])
    soft = (fractions.soft_of[:, cells], due_soft[rows - start])
    _single_units(x - low - given, given, room, (due_rows, due_columns), keys, soft)
    due_soft[rows - start] = soft[1]
    exchanged = _exchanges(given, room, due_rows, due_columns)
    for i in range(size):
        for k in range(width):
            whole[rows[i], cells[k]] = low[i, k] + given[i, k]
    return exchanged


@compiled
def _whole_parts(x: Floats, room: Floats, due_rows: Floats, due_columns: Floats) -> Floats:
    """What can be given without rounding."""
    given = np.zeros_like(x)
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            part = min(np.floor(x[i, k] + GRAIN), room[i, k], due_rows[i], due_columns[k])
            if part > 0:
                given[i, k] = part
                due_rows[i] -= part
                due_columns[k] -= part
    return given


@compiled
def _single_units(
    left: Floats, given: Floats, room: Floats, due: tuple[Floats, Floats], keys: tuple[Keys, Keys],
    soft: tuple[Labels, Floats],
) -> None:  # fmt: skip
    """One more each for the cells with most left over, as long as row and column are due one; soft sums first."""
    rows, columns = np.nonzero(left > GRAIN)
    rank = np.empty(len(rows), np.uint64)
    for place in range(len(rows)):
        grains = max(MOST_GRAINS - int(np.rint(left[rows[place], columns[place]] / GRAIN)), 0)
        tie = _mixed(keys[0][rows[place]], keys[1][columns[place]])
        rank[place] = np.uint64(grains) << np.uint64(40) | tie >> np.uint64(24)
    order = np.argsort(rank)
    done = np.zeros(len(rows), np.bool_)
    for gentle in (True, False):
        for place in order:
            i, k = rows[place], columns[place]
            if done[place] or due[0][i] <= 0 or due[1][k] <= 0 or given[i, k] >= room[i, k]:
                continue
            if gentle and not _all_due(soft, i, k):
                continue
            done[place] = True
            given[i, k] += 1
            due[0][i] -= 1
            due[1][k] -= 1
            for kind in range(len(soft[0])):
                if soft[0][kind, k] >= 0:
                    soft[1][i, soft[0][kind, k]] -= 1
        if len(soft[0]) == 0:
            break


@compiled
def _all_due(soft: tuple[Labels, Floats], row: int, column: int) -> bool:
    """Whether every soft sum of a cell is due one more."""
    for kind in range(len(soft[0])):
        if soft[0][kind, column] >= 0 and soft[1][row, soft[0][kind, column]] <= 0:
            return False
    return True


@compiled
def _mixed(one: np.uint64, other: np.uint64) -> np.uint64:
    """One key from two, that looks random in both (multiplication and shifts, as in splitmix64)."""
    key = one ^ (other * np.uint64(0x9E3779B97F4A7C15))
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return key ^ (key >> np.uint64(27))


@compiled
def _exchanges(given: Floats, room: Floats, due_rows: Floats, due_columns: Floats) -> int:
    """Gives what is still due along paths of exchanges; -1 where there is none."""
    rows, columns = given.shape
    exchanged = 0
    free_rows, free_columns = np.isinf(due_rows).any(), np.isinf(due_columns).any()
    for i in range(rows):
        while not free_rows and due_rows[i] > 0:
            path = _path(given, room, i, due_columns)
            if len(path) == 0:
                return -1
            for step in range(len(path)):
                given[path[step, 0], path[step, 1]] += 1 if step % 2 == 0 else -1
            due_rows[i] -= 1
            due_columns[path[-1, 1]] -= 1
            exchanged += 1
    if free_rows and not free_columns:
        for k in range(columns):
            while due_columns[k] > 0:
                i = 0
                while i < rows and given[i, k] >= room[i, k]:
                    i += 1
                if i == rows:
                    return -1
                given[i, k] += 1
                due_columns[k] -= 1
                exchanged += 1
    if not free_columns and (due_columns > 0).any():
        return -1
    return exchanged


@compiled
def _path(given: Floats, room: Floats, row: int, due_columns: Floats) -> Integers:
    """Cells that take and give in turn, from a row that is due one to a column that is; breadth first."""
    rows, columns = given.shape
    into = np.full(columns, -1)  # the row from which a column was reached
    out_of = np.full(rows, -2)  # the column from which a row was reached
    out_of[row] = -1
    queue = np.empty(rows, np.int64)
    queue[0], head, tail = row, 0, 1
    found = -1
    while head < tail and found < 0:
        i = queue[head]
        head += 1
        for k in range(columns):
            if into[k] < 0 and given[i, k] < room[i, k]:
                into[k] = i
                if due_columns[k] > 0:
                    found = k
                    break
                for other in range(rows):
                    if out_of[other] == -2 and given[other, k] > 0:
                        out_of[other] = k
                        queue[tail] = other
                        tail += 1
    if found < 0:
        return np.empty((0, 2), np.int64)
    length, k = 0, found
    while True:
        length += 1
        i = into[k]
        if out_of[i] < 0:
            break
        length += 1
        k = out_of[i]
    path = np.empty((length, 2), np.int64)
    k, place = found, length - 1
    while True:
        i = into[k]
        path[place, 0], path[place, 1] = i, k
        if out_of[i] < 0:
            break
        k = out_of[i]
        path[place - 1, 0], path[place - 1, 1] = i, k
        place -= 2
    return path
