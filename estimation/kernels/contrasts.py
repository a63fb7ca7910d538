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
def to_contrasts(numbers: Floats, sizes: Integers) -> None:
    """In place: rows of numbers over a product of attributes, into sums and contrasts."""
    rows, length = numbers.shape
    before = np.empty(length)
    for row in range(rows):
        inner = length
        for size in sizes:
            inner //= size
            outer = length // (size * inner)
            for block in range(outer):
                start = block * size * inner
                for k in range(inner):
                    before[k] = numbers[row, start + k]
                for code in range(1, size):
                    here = start + code * inner
                    shrink = 1.0 / np.sqrt(code * (code + 1.0))
                    for k in range(inner):
                        value = numbers[row, here + k]
                        numbers[row, here + k] = (before[k] - code * value) * shrink
                        before[k] += value
                for k in range(inner):
                    numbers[row, start + k] = before[k]


@compiled
def from_contrasts(numbers: Floats, sizes: Integers) -> None:
    """In place: the inverse of `to_contrasts`."""
    rows, length = numbers.shape
    after = np.empty(length)
    for row in range(rows):
        inner = length
        for size in sizes:
            inner //= size
            outer = length // (size * inner)
            for block in range(outer):
                start = block * size * inner
                for k in range(inner):
                    after[k] = numbers[row, start + k] / size
                for code in range(size - 1, 0, -1):
                    here = start + code * inner
                    shrink = 1.0 / np.sqrt(code * (code + 1.0))
                    for k in range(inner):
                        scaled = numbers[row, here + k] * shrink
                        numbers[row, here + k] = after[k] - code * scaled
                        after[k] += scaled
                for k in range(inner):
                    numbers[row, start + k] = after[k]
