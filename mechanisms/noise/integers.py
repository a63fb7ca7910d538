"""Integers in, integers out: the one check that keeps floats out, and a sum that saturates where it would wrap."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

LARGEST = 2**63 - 1
"""Counts and draws beyond plus or minus this are held at it; the limits are symmetric, so -LARGEST is the smallest."""


def as_integers(values: NDArray[Any]) -> Integers:
    """The values as 64-bit integers; floats, booleans, objects and unsigned 64-bit words are refused by their type."""
    if type(values) is not np.ndarray:  # a masked array would pass its hidden cells on without noise
        raise TypeError(f"expected an array of integers, got {type(values).__name__}")
    if values.dtype.kind not in "iu" or values.dtype == np.uint64:
        raise TypeError(f"expected an array of integers of at most 64 bits, got {values.dtype}: no float is noised")
    return values.astype(np.int64, copy=False)


def add_saturating(first: Integers, second: Integers) -> Integers:
    """first + second, held at plus or minus LARGEST. Every cell takes the same path, whatever its value."""
    total = first + second
    wrapped = (first ^ total) & (second ^ total)
    limit = (first >> 63) ^ LARGEST
    return np.maximum(np.where(wrapped < 0, limit, total), -LARGEST)


def saturated(values: NDArray[Any]) -> Integers:
    """Integers of any size, held at plus or minus LARGEST."""
    return np.asarray(np.minimum(np.maximum(values, -LARGEST), LARGEST), np.int64)
