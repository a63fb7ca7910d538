"""Draws of discrete Laplace and discrete Gaussian noise: one scale for all cells, or a scale for each.

The tables behind a scale are made once and kept for the scales used last, so draw all cells of one scale in one call.
"""

from __future__ import annotations

from functools import lru_cache

from mechanisms.noise.envelope import Sampler
from mechanisms.noise.integers import Integers
from mechanisms.noise.laws import Law
from mechanisms.randomness import Bits

KEPT = 256
"""Scales whose tables are kept; each takes up to a third of a megabyte."""


@lru_cache(maxsize=KEPT)
def sampler(law: Law) -> Sampler:
    """The tables for one law."""
    return Sampler(law)


def draw(law: Law, count: int, bits: Bits) -> Integers:
    """`count` independent draws from one law."""
    return sampler(law).draw(count, bits)
