"""Draws with a scale of its own for every cell, exactly.

Where few scales are distinct, each is drawn in one call. Where most are, a cell is drawn from the next wider scale of
a fixed ladder and kept with probability exp(-(exponent at its own scale - exponent at the wider)): rejection turns the
wider law into the cell's own. The exponents are integers in fixed point with a bound on what rounding may cost, and the
lanes that these cannot decide are settled with Fractions.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from mechanisms.noise.bernoulli import Truths, coins_exp
from mechanisms.noise.integers import Integers, as_integers
from mechanisms.noise.laws import GaussianLaw, LaplaceLaw, Law
from mechanisms.noise.sampling import draw
from mechanisms.randomness import Bits

FEW = 64
"""Up to this many distinct scales each gets its own tables."""
TICK = 20
"""Scales of the ladder are multiples of 2^-TICK."""
RATE = 60
"""Rates, one over a scale, are multiples of 2^-RATE."""
LONGEST = 58
"""Numerators and denominators of the ladder have at most this many bits."""
FAR = 32
"""Draws beyond FAR times the wider scale (for the Gaussian: their squares) are settled with Fractions."""

Rungs = NDArray[np.int16]
"""Numbers of rungs; short, so that sorting them is quick."""
LawOfScale = type[LaplaceLaw] | type[GaussianLaw]


def draw_each(law: LawOfScale, numerators: Integers, denominators: Integers, bits: Bits) -> Integers:
    """One draw for each cell; the cell's scale (for the Gaussian: variance) is its numerator over its denominator."""
    above, below = as_integers(numerators), as_integers(denominators)
    if above.shape != below.shape or above.ndim != 1:
        raise ValueError(f"expected two rows of integers of one length, got {above.shape} and {below.shape}")
    if (above <= 0).any() or (below <= 0).any():
        raise ValueError("every scale is positive: its numerator and its denominator are at least 1")
    drawn = np.empty(len(above), np.int64)
    on_ladder = (above < 2**LONGEST) & (below < 2**LONGEST) & (below <= 2 * above) & (above // below < 2**40)
    if _are_few(above, below):
        on_ladder[:] = False
    rest = np.flatnonzero(~on_ladder)
    for mine in _alike(above[rest], below[rest]):
        cells = rest[mine]
        scale = Fraction(int(above[cells[0]]), int(below[cells[0]]))
        drawn[cells] = draw(law(scale), len(cells), bits)
    _draw_by_thinning(drawn, np.flatnonzero(on_ladder), _Ladder(law, above, below), bits)
    return drawn


def _are_few(above: Integers, below: Integers) -> bool:
    """Whether the scales are few; a look at the first cells tells most cases."""
    return all(len(_alike(above[:end], below[:end])) <= FEW for end in (4096, len(above)))


def _alike(above: Integers, below: Integers) -> list[Integers]:
    """The cells of each scale, scale by scale."""
    if not len(above):
        return []
    order = np.lexsort((below, above))
    up, down = above[order], below[order]
    starts = np.flatnonzero((up[1:] != up[:-1]) | (down[1:] != down[:-1])) + 1
    return np.split(order, starts)


def _divided(above: Integers, below: Integers, places: int) -> tuple[Integers, Integers]:
    """above / below in multiples of 2^-places, rounded down, and what is left over: long division in binary."""
    step = 62 - max(int(below.max()).bit_length(), 40)
    quotient, rest = np.divmod(above, below)
    for done in range(0, places, step):
        shift = min(step, places - done)
        whole, rest = np.divmod(rest << shift, below)
        quotient = (quotient << shift) + whole
    return quotient, rest


class _Ladder:
    """For every cell its rung, the next wider scale of the ladder, and the difference of the two rates."""

    def __init__(self, law: LawOfScale, above: Integers, below: Integers) -> None:
        self._law, self._above, self._below = law, above, below

    def rungs(self, cells: Integers) -> Rungs:
        """The first rung that is at least as wide as the cell's scale: an integer comparison."""
        ticks, rest = _divided(self._above[cells], self._below[cells], TICK)
        return np.searchsorted(_rungs(), ticks + (rest > 0)).astype(np.int16)

    def rate_gaps(self, cells: Integers, rungs: Rungs) -> Integers:
        """One over the cell's scale less one over its rung's, at most 2 too small and never negative."""
        rates, _ = _divided(self._below[cells], self._above[cells], RATE)
        return np.asarray(np.maximum(rates - _rung_rates()[rungs], 0), np.int64)

    def exact_gap(self, cell: int, rung: int) -> Fraction:
        """The same as a Fraction."""
        return Fraction(int(self._below[cell]), int(self._above[cell])) - 1 / rung_scale(rung)

    def law(self, rung: int) -> Law:
        """The law of a rung."""
        return self._law(rung_scale(rung))

    def weights(self, drawn: Integers) -> tuple[Integers, int]:
        """What is multiplied by a rate to give an exponent: |x|, or x^2 to be halved (by a shift of 1)."""
        if self._law is LaplaceLaw:
            return np.abs(drawn), 0
        return drawn * drawn, 1


def _draw_by_thinning(drawn: Integers, cells: Integers, ladder: _Ladder, bits: Bits) -> None:
    """Draws every cell from its rung and keeps the draw with the exact probability; those not kept go again."""
    while len(cells):
        rungs = ladder.rungs(cells)
        order = np.argsort(rungs, kind="stable")
        cells, rungs = cells[order], rungs[order]
        starts = np.flatnonzero(np.r_[True, rungs[1:] != rungs[:-1]])
        parts = [
            draw(ladder.law(int(rungs[start])), int(end - start), bits)
            for start, end in zip(starts, np.r_[starts[1:], len(cells)], strict=True)
        ]
        proposed = np.concatenate(parts)
        drawn[cells] = proposed
        cells = cells[~_keep(ladder, cells, rungs, proposed, bits)]


def _keep(ladder: _Ladder, cells: Integers, rungs: Rungs, proposed: Integers, bits: Bits) -> Truths:
    """Which proposals are kept. The fixed-point exponent of a draw too far out is 0, with slack for any."""
    weights, halve = ladder.weights(np.clip(proposed, -(2**31), 2**31))
    far = (weights > _rung_limits()[rungs]) | (np.abs(proposed) > 2**31 - 1)
    weights = np.where(far, 0, weights)
    gaps = ladder.rate_gaps(cells, rungs)
    shift = RATE - 32 + halve
    exponents = (weights * gaps) >> shift
    slack = np.where(far, 2**33, (weights >> (shift - 1)) + 2)

    def exact(lane: int) -> Fraction:
        x = abs(int(proposed[lane]))
        weight = Fraction(x * x, 2) if halve else Fraction(x)
        return weight * ladder.exact_gap(int(cells[lane]), int(rungs[lane]))

    return coins_exp(exponents, slack=slack, exact=exact, bits=bits)


@cache
def _rungs() -> Integers:
    """The ladder in ticks: four rungs to an octave, from one half up to 2^41, each fourth root rounded up."""
    roots = [isqrt(isqrt(1 << (4 * 40 + i))) for i in range(4)]  # 2^(i/4) in multiples of 2^-40
    rungs = range(4 * (TICK - 1), 4 * (TICK + 41))
    return np.array([((roots[g % 4] + 1) << (g // 4)) // 2**40 + 1 for g in rungs], np.int64)


def rung_scale(rung: int) -> Fraction:
    """The scale of a rung."""
    return Fraction(int(_rungs()[rung]), 1 << TICK)


@cache
def _rung_rates() -> Integers:
    """One over each rung's scale, rounded up."""
    return np.array([-(-(1 << (RATE + TICK)) // int(ticks)) for ticks in _rungs()], np.int64)


@cache
def _rung_limits() -> Integers:
    """FAR times each rung's scale, rounded down."""
    return np.array([FAR * int(ticks) >> TICK for ticks in _rungs()], np.int64)
