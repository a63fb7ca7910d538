"""Sums of clipped values, exact before the noise: whole ticks, accumulated in two 64-bit halves.

Guarantee: a noisy sum costs what its mechanism charges for `Sums(low, high).sensitivity(...)`, because every value is
clipped to the very bounds that are priced, nothing wraps, and the limit to plus or minus 2^62 moves no two totals
apart (slope 1). Integers add up alike in every order; floats would not, and their sums have a larger sensitivity than
the textbook says (Casacuberta, Shoemate, Vadhan and Wagaman 2022).
Needs: values as whole ticks, rounded to the step before; records of a unit capped before; rows without a value left
out before: they add 0, also where 0 is outside the clip.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.noise.integers import Integers, as_integers
from mechanisms.noise.laws import require_positive
from mechanisms.noisy_counts import LIMIT
from mechanisms.randomness import Bits, Randomness, release_bits
from mechanisms.sensitivity import Sums

HALF = 32
ROWS = 1 << 24
"""Values added at a time: halves below 2^32 then add up to less than 2^56."""


@dataclass(frozen=True, slots=True)
class BoundedSum:
    """Sums by cell of values that are clipped to the bounds of `shape`, which also prices them; `step` is one tick."""

    shape: Sums
    step: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        require_positive(self.step, "step")
        if self.shape.furthest > LIMIT:
            raise ValueError("clips lie within plus or minus 2^62 ticks; choose a wider step")

    def measure(
        self,
        ticks: NDArray[Any],
        cells: NDArray[Any],
        *,
        size: int,
        noise: DiscreteLaplace | DiscreteGaussian,
        randomness: Randomness,
    ) -> Integers:
        """Noisy sums in ticks, one for each of `size` cells, the empty ones included."""
        return self.answer(ticks, cells, size=size, noise=noise, bits=release_bits(randomness))

    def answer(
        self,
        ticks: NDArray[Any],
        cells: NDArray[Any],
        *,
        size: int,
        noise: DiscreteLaplace | DiscreteGaussian,
        bits: Bits,
    ) -> Integers:
        """What `measure` returns, from any bits: for simulation; a release goes through `measure`."""
        return noise.answer(self.totals(ticks, cells, size=size), bits)

    def totals(self, ticks: NDArray[Any], cells: NDArray[Any], *, size: int) -> Integers:
        """The exact sums of clipped values, limited to 2^62 in size. Confidential: no noise has been added."""
        values, places = as_integers(ticks), as_integers(cells)
        if values.ndim != 1 or values.shape != places.shape:
            raise ValueError("every value has one cell: two rows of integers of one length")
        if size < 1 or (self.shape.one_cell and size != 1):
            raise ValueError(f"a sum has as many cells as it was priced for, got {size}")
        if ((places < 0) | (places >= size)).any():
            raise ValueError(f"cells must be whole numbers from 0 to {size - 1}: every value has a declared cell")
        clipped = np.clip(values, self.shape.low, self.shape.high)
        whole = np.zeros(size, object)
        for start in range(0, len(clipped), ROWS):
            whole += _sums(clipped[start : start + ROWS], places[start : start + ROWS], size)
        return limited(whole.tolist())

    def in_units(self, total: int) -> Fraction:
        """A total of ticks in the units of the values."""
        return int(total) * self.step


def _sums(values: Integers, places: Integers, size: int) -> NDArray[Any]:
    """Sums by cell as Python integers, from the sums of the upper and of the lower halves of the values."""
    upper, lower = np.zeros(size, np.int64), np.zeros(size, np.int64)
    np.add.at(upper, places, values >> HALF)
    np.add.at(lower, places, values & (2**HALF - 1))
    return (upper.astype(object) << HALF) + lower


def limited(totals: Sequence[int]) -> Integers:
    """Totals of any size, as an engine of 128 bits returns them, held at plus or minus 2^62."""
    if any(type(total) is not int for total in totals):
        raise TypeError("totals are Python integers: no float is noised")
    return np.array([min(max(total, -LIMIT), LIMIT) for total in totals], np.int64)
