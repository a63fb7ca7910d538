"""Scores of candidates as the selection mechanisms need them: how far each lies below the best, exactly.

Scores are 64-bit integers, so two of them may be up to 2^64 apart: beyond 2^62 distances are Python's own integers. A
selection depends on these distances alone, and nothing is rounded or cut, so its law is exact at every distance.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.noise.bernoulli import Truths, coins_exp_of_ratios
from mechanisms.noise.integers import Integers, as_integers
from mechanisms.randomness import Bits

Gaps = NDArray[Any]
"""Non-negative whole numbers, one of them 0: 64-bit integers up to `NARROW`, Python's beyond."""

NARROW = 2**62


def as_candidates(values: NDArray[Any]) -> Integers:
    """One integer for each candidate, in their declared order; at least one candidate."""
    held = as_integers(values)
    if held.ndim != 1 or not held.size:
        raise ValueError(f"a selection needs one integer for each candidate, got an array of shape {held.shape}")
    return held


def gaps_below_best(scores: NDArray[Any]) -> Gaps:
    """How far each score lies below the largest."""
    held = as_candidates(scores)
    best, least = int(held.max()), int(held.min())
    return best - (held if best - least <= NARROW else held.astype(object))


def coins_for_gaps(gaps: Gaps, scale: Fraction, bits: Bits) -> Truths:
    """One coin for each gap, true with probability exp(-gap / scale)."""
    largest = int(gaps.max()) * scale.denominator
    wide = gaps.astype(np.int64 if largest <= NARROW else object)
    return coins_exp_of_ratios(wide * scale.denominator, scale.numerator, bits)
