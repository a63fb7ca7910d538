"""Sums and contrasts along one attribute after another, and back.

Along an attribute of n codes the first number becomes the sum of all, and number i the contrast of code i with the
codes before it (Helmert's, of length one). The contrasts are orthonormal and at right angles to the sum, so independent
noise of equal variance stays so. Running sums make each direction a few operations a number.
"""

from __future__ import annotations

import numpy as np

from estimation.arrays import Floats, Integers
from estimation.kernels.compiled import compiled


@compiled
def shrinking(sizes: Integers) -> Floats:
    """For each number of codes before it what makes a contrast of length one: 1 / sqrt(i (i + 1))."""
    most = 1
    for size in sizes:
        most = max(most, size)
    found = np.zeros(most)
    for code in range(1, most):
        found[code] = 1.0 / np.sqrt(code * (code + 1.0))
    return found


@compiled
def to_contrasts(numbers: Floats, sizes: Integers, shrink: Floats, before: Floats) -> None:
    """In place: numbers over a product of attributes, into sums and contrasts. `before` is room to work in."""
    length = len(numbers)
    inner = length
    for size in sizes:
        inner //= size
        for block in range(length // (size * inner)):
            start = block * size * inner
            for k in range(inner):
                before[k] = numbers[start + k]
            for code in range(1, size):
                here = start + code * inner
                for k in range(inner):
                    value = numbers[here + k]
                    numbers[here + k] = (before[k] - code * value) * shrink[code]
                    before[k] += value
            for k in range(inner):
                numbers[start + k] = before[k]


@compiled
def from_contrasts(numbers: Floats, sizes: Integers, shrink: Floats, after: Floats) -> None:
    """In place: the inverse of `to_contrasts`."""
    length = len(numbers)
    inner = length
    for size in sizes:
        inner //= size
        for block in range(length // (size * inner)):
            start = block * size * inner
            for k in range(inner):
                after[k] = numbers[start + k] / size
            for code in range(size - 1, 0, -1):
                here = start + code * inner
                for k in range(inner):
                    scaled = numbers[here + k] * shrink[code]
                    numbers[here + k] = after[k] - code * scaled
                    after[k] += scaled
            for k in range(inner):
                numbers[start + k] = after[k]
