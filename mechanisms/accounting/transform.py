"""The convolution of many laws at once, tilted, with a bound on what it may be wrong by.

To keep relative accuracy at any delta the laws are first tilted: masses times exp(theta * step), scaled to add up to 1.
Short sums are convolved as they stand: all terms are positive, so an output of n terms is off by a relative n u at
most, with u = 2^-53. Long ones go through Fourier transforms. With N points and c_i copies of law x_i their errors are:

* Transforms: |computed - true|_2 <= 16 u log2(N) |true|_2 each. (Higham 2002, Theorem 24.2: 6.7 u log2(N) for radix 2;
  the rest is room for the radices that numpy takes.) No transform of a tilted law is larger than 1, so the error of
  law i enters the product once for each copy. In the result: 16 u log2(N) (sum of c_i |x_i|_2, and 1 for the way back).
* Products of complex numbers: sqrt(5) u each (Brent, Percival and Zimmermann 2007), one for each copy.
* The second order of both: what a computed transform may exceed 1 by, to the power of the copies.
* Masses: law i is off by a relative e_i. All masses are positive, so the result is off by exp(sum of c_i e_i).
* Wrap-around: a point of the window also receives what lies N points away. That only adds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, fsum, log, log2, sqrt
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.grids import Placed
from mechanisms.accounting.losses import UNIT_ROUNDOFF, Floats, Integers

Complexes = NDArray[np.complex128]

TRANSFORM_ERROR = 16 * UNIT_ROUNDOFF
SHORT = 1 << 10
"""Sums of fewer points are convolved without transforms."""
LAST_DIGITS = 1e-12
"""Room for the roundings of a final sum: pairwise additions, and exponentials of at most 745 in size."""


@dataclass(frozen=True)
class Tilted:
    """A composed law, tilted: the probability of a step is mass * exp(log_scale - theta * step)."""

    theta: float
    steps: Floats
    masses: Floats
    log_scale: float
    noise: float
    """A bound on the error of all masses together, in L2."""
    error: float
    """A bound on their relative error beside that."""
    whole: bool
    """Whether these are all steps that the law can reach, and nothing was wrapped around."""

    def from_step(self, step: float) -> Tilted:
        """The part of the law from one step before this one on."""
        return self.from_index(int(np.searchsorted(self.steps, step - 1)))

    def from_index(self, cut: int) -> Tilted:
        """The law without its first steps."""
        return replace(self, steps=self.steps[cut:], masses=self.masses[cut:])

    def up_to_step(self, step: int) -> Tilted:
        """The part of the law up to this step."""
        cut = int(np.searchsorted(self.steps, float(step), side="right"))
        return replace(self, steps=self.steps[:cut], masses=self.masses[:cut])

    @property
    def log_first(self) -> float:
        """What takes the tilt off at the first step: ln of probability over mass."""
        return self.log_scale - self.theta * float(self.steps[0])

    @property
    def log_error(self) -> float:
        """The relative error of a probability that is computed from masses and `log_first`."""
        return self.error + 8 * UNIT_ROUNDOFF * (abs(self.log_scale) + abs(self.theta * float(self.steps[0])))


Items = Sequence[tuple[Placed, int]]
"""Laws on one ladder, each with its number of copies."""


def tilted(items: Items, theta: float, span: Callable[[], tuple[int, int]]) -> Tilted:
    """The convolution of all laws; `span` has the first step and the number of points of a window, a power of 2."""
    scales = [_log_sum(placed.logs + theta * placed.steps) for placed, _ in items]
    log_scale = fsum(count * scale for (_, count), scale in zip(items, scales, strict=True))
    error = LAST_DIGITS + fsum(
        count * (placed.error + 8 * UNIT_ROUNDOFF * (_size(placed, theta) + 2 * abs(scale) + 10))
        for (placed, count), scale in zip(items, scales, strict=True)
    )
    laws = [
        (placed.steps, np.exp(placed.logs + theta * placed.steps - scale), count)
        for (placed, count), scale in zip(items, scales, strict=True)
    ]
    copies = sum(count for _, count in items)
    if copies == 1:
        return Tilted(theta, laws[0][0].astype(np.float64), laws[0][1], log_scale, 0.0, error, whole=True)
    first, last = (sum(count * int(steps[end]) for steps, _, count in laws) for end in (0, -1))
    if last - first < SHORT:
        steps, masses = np.arange(first, last + 1, dtype=np.float64), _multiplied(laws)
        roundings = 2 * UNIT_ROUNDOFF * copies * (last - first + 1)
        return Tilted(theta, steps, masses, log_scale, 0.0, error + roundings, whole=True)
    first, points = span()
    masses, noise = _transformed(laws, points)
    noise *= exp(error + copies * TRANSFORM_ERROR * log2(points) * sqrt(points))
    steps = np.arange(first, first + points, dtype=np.float64)
    return Tilted(theta, steps, np.roll(masses, -(first % points)), log_scale, noise, error, whole=False)


Laws = Sequence[tuple[Integers, Floats, int]]


def _multiplied(laws: Laws) -> Floats:
    """The masses of all steps from the lowest to the highest sum, one product after another."""
    result = np.ones(1)
    for steps, masses, count in laws:
        dense = np.zeros(int(steps[-1] - steps[0]) + 1)
        dense[steps - steps[0]] = masses
        result = np.convolve(result, _power(dense, count, np.convolve))
    return result


def _transformed(laws: Laws, points: int) -> tuple[Floats, float]:
    """The masses of step 0, 1, ... modulo `points`, and the first order of the bound on their error."""
    transform: Complexes = np.ones(points // 2 + 1, dtype=np.complex128)
    copies, lengths = 0, 0.0
    for steps, masses, count in laws:
        wrapped = np.bincount(np.mod(steps, points), weights=masses, minlength=points)
        transform *= _power(np.fft.rfft(wrapped), count, np.multiply)
        copies += count
        lengths += count * sqrt(float(wrapped @ wrapped))
    each = TRANSFORM_ERROR * log2(points)
    return np.fft.irfft(transform, points), each * (lengths + 1) + sqrt(5) * UNIT_ROUNDOFF * copies


def _size(placed: Placed, theta: float) -> float:
    return float(np.abs(placed.logs).max() + np.abs(theta * placed.steps).max())


def _log_sum(logs: Floats) -> float:
    top = float(logs.max())
    return top + log(float(np.exp(logs - top).sum()))


Array = TypeVar("Array", Floats, Complexes)


def _power(base: Array, exponent: int, product: Callable[[Array, Array], Array]) -> Array:
    """Repeated squaring, so that the number of roundings is known."""
    if exponent == 1:
        return base
    root = _power(base, exponent // 2, product)
    square = product(root, root)
    return product(square, base) if exponent % 2 else square
