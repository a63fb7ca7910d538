"""The convolution of many laws at once, by Fourier transform, with a bound on what it may be wrong by.

To keep relative accuracy at any delta the laws are first tilted: masses times exp(theta * step), scaled to add up to 1.
What the result may be wrong by, with u = 2^-53, N points and c_i copies of law x_i:

* Transforms: |computed - true|_2 <= 16 u log2(N) |true|_2 each. (Higham 2002, Theorem 24.2: 6.7 u log2(N) for radix 2;
  the rest is room for the radices that numpy takes.) No transform of a tilted law is larger than 1, so the error of
  law i enters the product once for each copy. In the result: 16 u log2(N) (sum of c_i |x_i|_2, and 1 for the way back).
* Products of complex numbers: sqrt(5) u each (Brent, Percival and Zimmermann 2007), one for each copy.
* `growth` is the second order of both: what computed transforms may exceed 1 by, to the power of the copies.
* Masses: law i is off by a relative e_i. All masses are positive, so the result is off by exp(sum of c_i e_i).
* Wrap-around: a point of the window also receives what lies N points away. That only adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, fsum, log, log2, sqrt

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.grids import Placed
from mechanisms.accounting.losses import UNIT_ROUNDOFF, Floats

Complexes = NDArray[np.complex128]

TRANSFORM_ERROR = 16 * UNIT_ROUNDOFF
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

    def from_step(self, step: float) -> Tilted:
        """The part of the law from one step before this one on."""
        cut = int(np.searchsorted(self.steps, step - 1))
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


def tilted(items: Sequence[tuple[Placed, int]], theta: float, *, first: int, points: int) -> Tilted:
    """The convolution of all laws, each in so many copies, on `points` steps (a power of 2) from `first` on."""
    scales = [_log_sum(placed.logs + theta * placed.steps) for placed, _ in items]
    log_scale = fsum(count * scale for (_, count), scale in zip(items, scales, strict=True))
    error = fsum(
        count * (placed.error + 8 * UNIT_ROUNDOFF * (_size(placed, theta) + 2 * abs(scale) + 10))
        for (placed, count), scale in zip(items, scales, strict=True)
    )
    if sum(count for _, count in items) == 1:
        placed = items[0][0]
        masses = np.exp(placed.logs + theta * placed.steps - scales[0])
        return Tilted(theta, placed.steps.astype(np.float64), masses, log_scale, 0.0, error + LAST_DIGITS)
    masses, noise = _convolved(items, theta, scales, points)
    steps = np.arange(first, first + points, dtype=np.float64)
    return Tilted(theta, steps, np.roll(masses, -(first % points)), log_scale, noise, error + LAST_DIGITS)


def _convolved(
    items: Sequence[tuple[Placed, int]], theta: float, scales: Sequence[float], points: int
) -> tuple[Floats, float]:
    """The masses of step 0, 1, ... modulo `points`, and the bound on their error."""
    transform = np.ones(points // 2 + 1, dtype=np.complex128)
    copies, lengths = 0, 0.0
    for (placed, count), scale in zip(items, scales, strict=True):
        masses = np.exp(placed.logs + theta * placed.steps - scale)
        wrapped = np.bincount(np.mod(placed.steps, points), weights=masses, minlength=points)
        transform *= _power(np.fft.rfft(wrapped), count)
        copies += count
        lengths += count * sqrt(float(wrapped @ wrapped))
    each = TRANSFORM_ERROR * log2(points)
    growth = exp(copies * (each * sqrt(points) + LAST_DIGITS))
    noise = growth * (each * (lengths + 1) + sqrt(5) * UNIT_ROUNDOFF * copies)
    return np.fft.irfft(transform, points), noise


def _size(placed: Placed, theta: float) -> float:
    return float(np.abs(placed.logs).max() + np.abs(theta * placed.steps).max())


def _log_sum(logs: Floats) -> float:
    top = float(logs.max())
    return top + log(float(np.exp(logs - top).sum()))


def _power(base: Complexes, exponent: int) -> Complexes:
    """Repeated squaring, so that the number of roundings is known."""
    if exponent == 1:
        return base
    root = _power(base, exponent // 2)
    return root * root * base if exponent % 2 else root * root
