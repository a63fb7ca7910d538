"""Integer noise on integer counts: what the discrete Laplace and the discrete Gaussian mechanism share.

Guarantee: what leaves `add_noise` is computed from counts + noise alone, noise of the exact and unbounded law, although
draws are held at the 64-bit limits L = 2^63 - 1. Counts are first limited to 2^62 in size, which moves no two of them
apart, and results are limited to F = L - 2^62. Where a draw was held at L, the true sum and the computed one are both
at least L - 2^62 = F, so both are published as F; likewise at -L. Prices therefore need no exception for overflow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.noise.integers import LARGEST, Integers, add_saturating, as_integers
from mechanisms.noise.laws import Law
from mechanisms.noise.sampling import draw
from mechanisms.randomness import Bits

LIMIT = 2**62
"""Counts and sums are held at plus or minus this: a limit of slope 1, so no sensitivity grows."""
CHUNK = 1 << 16
"""Cells handled at a time: what is computed on the way stays in the processor's cache."""
FURTHEST = LARGEST - LIMIT
"""Noisy counts are held at plus or minus this."""


def add_noise(counts: NDArray[Any], law: Law, bits: Bits) -> Integers:
    """Counts of any shape with one draw of the law added to every cell, zeros included."""
    cells = as_integers(counts).reshape(-1)
    noisy = draw(law, cells.size, bits)
    for start in range(0, cells.size, CHUNK):
        chunk = slice(start, start + CHUNK)
        _add(cells[chunk], noisy[chunk])
    return noisy.reshape(counts.shape)


def _add(counts: Integers, noise: Integers) -> None:
    """Turns noise into noisy counts in place. Only the noise decides whether the sum could leave 64 bits."""
    held = np.clip(counts, -LIMIT, LIMIT)
    if noise.min() > -LIMIT and noise.max() < LIMIT:
        held += noise
    else:
        held = add_saturating(held, noise)
    np.clip(held, -FURTHEST, FURTHEST, out=noise)
