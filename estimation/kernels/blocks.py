"""Small symmetric matrices by the thousand: one for each part of each kind of area."""

from __future__ import annotations

import numpy as np

from estimation.arrays import Floats, Integers, Labels, Numbers
from estimation.kernels.compiled import compiled
from estimation.kernels.contrasts import from_contrasts, shrinking, to_contrasts

NEGLIGIBLE = 1e-10


@compiled
def add_seen(
    target: Floats, numbers: Numbers, sizes: Integers, maps: Floats, where: Integers, parts: Integers,
    precision: Floats,
) -> None:  # fmt: skip
    """Adds to coordinates (area, core, place) what a query counted (area, cell, combination of free codes).

    Each part has its own map (part, cell, core); each area its own precision.
    """
    areas, cells, length = numbers.shape
    core = target.shape[1]
    shrink, row, room = shrinking(sizes), np.empty(length), np.empty(length)
    factors = np.empty((cells, core, length))
    for k in range(length):
        factors[:, :, k] = maps[parts[where[k]]]
    for area in range(areas):
        for cell in range(cells):
            for k in range(length):
                row[k] = numbers[area, cell, k]
            to_contrasts(row, sizes, shrink, room)
            for i in range(core):
                for k in range(length):
                    target[area, i, where[k]] += precision[area] * factors[cell, i, k] * row[k]


@compiled
def read_margin(target: Floats, coordinates: Floats, sizes: Integers, cells: Floats, where: Integers) -> None:
    """The numbers of a margin (area, cell, combination of free codes) from coordinates (area, core, place)."""
    areas, core, _ = coordinates.shape
    length = len(where)
    shrink, row, room = shrinking(sizes), np.empty(length), np.empty(length)
    for area in range(areas):
        for cell in range(cells.shape[0]):
            row[:] = 0.0
            for i in range(core):
                factor = cells[cell, i]
                if factor != 0.0:
                    for k in range(length):
                        row[k] += factor * coordinates[area, i, where[k]]
            from_contrasts(row, sizes, shrink, room)
            target[area, cell] = row


@compiled
def times(matrices: Floats, kinds: Integers, parts: Integers, vectors: Floats) -> Floats:
    """For each area and coordinate the core vector times the matrix of the area's kind and the coordinate's part."""
    areas, core, length = vectors.shape
    out = np.zeros_like(vectors)
    factors, last = np.empty((core, core, length)), -1
    for area in range(areas):
        if kinds[area] != last:
            last = kinds[area]
            for k in range(length):
                factors[:, :, k] = matrices[last, parts[k]]
        for i in range(core):
            for j in range(core):
                for k in range(length):
                    out[area, i, k] += factors[i, j, k] * vectors[area, j, k]
    return out


@compiled
def added_up(numbers: Floats, starts: Integers) -> Floats:
    """Coordinates of areas, added up to their parents."""
    parents = len(starts) - 1
    out = np.zeros((parents, numbers.shape[1], numbers.shape[2]))
    for parent in range(parents):
        for area in range(starts[parent] - starts[0], starts[parent + 1] - starts[0]):
            out[parent] += numbers[area]
    return out


@compiled
def added_numbers(numbers: Numbers, starts: Integers) -> Floats:
    """Numbers of areas (area, cell, combination), added up to their parents."""
    parents, cells, length = len(starts) - 1, numbers.shape[1], numbers.shape[2]
    out = np.zeros((parents, cells, length))
    for parent in range(parents):
        for area in range(starts[parent] - starts[0], starts[parent + 1] - starts[0]):
            for cell in range(cells):
                for k in range(length):
                    out[parent, cell, k] += numbers[area, cell, k]
    return out


@compiled
def add_shared(target: Floats, numbers: Floats, shared: Floats, which: Integers) -> None:
    """Numbers of areas (area, cell) plus the row that each area shares with its like."""
    for area in range(len(numbers)):
        for k in range(numbers.shape[1]):
            target[area, k] = numbers[area, k] + shared[which[area], k]


@compiled
def fold_onto(target: Floats, numbers: Floats, labels: Labels) -> None:
    """Adds the columns of some rows up by their labels; columns without one are left out."""
    for row in range(len(numbers) if len(labels) > 0 else 0):
        label, total = labels[0], 0.0
        for k in range(len(labels)):  # neighbours often have the same label: written when it changes
            if labels[k] != label:
                if label >= 0:
                    target[row, label] += total
                label, total = labels[k], 0.0
            total += numbers[row, k]
        if label >= 0:
            target[row, label] += total


@compiled
def inverse_within(matrices: Floats, basis: Floats) -> Floats:
    """For each matrix A the matrix U (U' A U)^-1 U', where U is an orthonormal basis: the inverse within its span."""
    count, core, _ = matrices.shape
    rank = basis.shape[0]
    out = np.zeros((count, core, core))
    inner = np.empty((rank, rank))
    half = np.empty((rank, core))
    for number in range(count):
        for a in range(rank):
            for b in range(a + 1):
                total = 0.0
                for i in range(core):
                    if basis[a, i] != 0.0:
                        row = 0.0
                        for j in range(core):
                            row += matrices[number, i, j] * basis[b, j]
                        total += basis[a, i] * row
                inner[a, b] = total
        for a in range(rank):  # Cholesky, then the basis divided by the factor
            for b in range(a + 1):
                total = inner[a, b]
                for c in range(b):
                    total -= inner[a, c] * inner[b, c]
                inner[a, b] = np.sqrt(total) if a == b else total / inner[b, b]
            for i in range(core):
                total = basis[a, i]
                for c in range(a):
                    total -= inner[a, c] * half[c, i]
                half[a, i] = total / inner[a, a]
        for a in range(rank):
            for i in range(core):
                if half[a, i] != 0.0:
                    for j in range(core):
                        out[number, i, j] += half[a, i] * half[a, j]
    return out


@compiled
def orthonormal(rows: Floats, against: Floats) -> Floats:
    """An orthonormal basis of the span of some rows, at right angles to those of an orthonormal basis."""
    count, core = rows.shape
    found = np.zeros((core, core))
    rank = 0
    for number in range(count):
        if rank == core:
            break
        row = rows[number].copy()
        size = np.sqrt((row * row).sum())
        for _ in range(2):  # a second time for what rounding left of the first
            for other in range(len(against)):
                row -= (row * against[other]).sum() * against[other]
            for other in range(rank):
                row -= (row * found[other]).sum() * found[other]
        left = np.sqrt((row * row).sum())
        if left > NEGLIGIBLE * max(size, 1.0):
            found[rank] = row / left
            rank += 1
    return found[:rank].copy()
