"""Whether moving one cell by a + b is worse than moving two cells by a and b, at a given scale: checked, not assumed.

One pair of neighbours dominates another if its delta(epsilon) is nowhere smaller; then it may stand in its place in
every composition. Both curves are convex and piecewise linear in e^epsilon. The upper one bends at its own losses only,
so it is enough to compare at these: between two of them it is a straight line, and a convex curve below both ends of a
line is below the line. The pairs are symmetric, so epsilon >= 0 is enough.

A check may leave a slack: delta_below <= delta_above + slack. In a composition that adds the slack to delta once.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, floor, inf, log2

import numpy as np

from mechanisms.accounting.grids import merged, spread
from mechanisms.accounting.losses import Floats, Loss

FEW = 256
"""Up to as many losses a law is used as it is; beyond, on a grid with half to all as many rungs."""
MOST_STEPS = 1 << 22
"""A law with more losses is not compared: it would take longer than the answer is worth."""
LARGEST_EPSILON = 300.0
LEAST_LOG_SLACK = -380.0
"""Beyond these e^epsilon times a sum that is too small for a float could be more than the slack."""
ROUNDING = 1e-11
"""Relative to the two sums of which a delta is the difference: far more than they can be wrong by."""


@dataclass(frozen=True)
class _Atoms:
    """Losses in ascending order, with the sums of P and of Q over each loss and all above it."""

    losses: Floats
    masses: Floats
    under_p: Floats
    under_q: Floats

    def delta(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """delta(epsilon), and a bound on what rounding can have done to it."""
        start = np.searchsorted(self.losses, epsilons, side="right")
        above, against = self.under_p[start], np.exp(np.minimum(epsilons, 2 * LARGEST_EPSILON)) * self.under_q[start]
        return above - against, ROUNDING * (above + against)


def _sums(terms: Floats) -> Floats:
    return np.append(np.cumsum(terms[::-1])[::-1], 0.0)


def _atoms(losses: Floats, logs_p: Floats, logs_q: Floats) -> _Atoms:
    return _Atoms(losses, np.exp(logs_p), _sums(np.exp(logs_p)), _sums(np.exp(logs_q)))


def _as_it_is(loss: Loss, log_negligible: float) -> _Atoms | None:
    """The law itself, if it has few losses."""
    first, last = loss.steps(log_negligible)
    if last - first >= FEW:
        return None
    steps = np.arange(first, last + 1, dtype=np.float64)
    losses, logs = float(loss.offset) + float(loss.spacing) * steps, loss.log_masses(steps)
    return _atoms(losses, logs, logs - losses)


def _bits(loss: Loss, log_negligible: float) -> int:
    first, last = loss.steps(log_negligible)
    return floor(log2(FEW / (float(loss.spacing) * (last - first))))


@lru_cache(maxsize=256)
def _from_below(loss: Loss, log_negligible: float) -> _Atoms:
    """A law of few losses that this one dominates."""
    found = _as_it_is(loss, log_negligible)
    if found is not None:
        return found
    bits = _bits(loss, log_negligible)
    under_p, under_q = merged(loss, bits, log_negligible=log_negligible)
    logs_q = under_q.logs - np.ldexp(under_q.steps.astype(np.float64), -bits) - float(loss.offset)
    return _atoms(under_p.logs - logs_q, under_p.logs, logs_q)


@lru_cache(maxsize=256)
def _from_above(loss: Loss, log_negligible: float) -> _Atoms:
    """A law of few losses that dominates this one."""
    found = _as_it_is(loss, log_negligible)
    if found is not None:
        return found
    bits = _bits(loss, log_negligible)
    placed = spread(loss, bits, log_negligible=log_negligible)
    losses: Floats = np.ldexp(placed.steps.astype(np.float64), -bits) + float(loss.offset)
    return _atoms(losses, placed.logs, placed.logs - losses)


@lru_cache(maxsize=4096)
def dominates(one: Loss, two: tuple[Loss, Loss], *, log_slack: float) -> bool:
    """Whether one law certainly dominates the composition of two, but for the slack."""
    negligible = log_slack - 3
    if max(last - first for first, last in (loss.steps(negligible) for loss in (one, *two))) > MOST_STEPS:
        return False
    upper = _from_below(one, negligible)
    first, second = (_from_above(loss, negligible) for loss in two)
    at = np.append(0.0, upper.losses[upper.losses > 0])
    if one.bounded:
        if not all(loss.bounded for loss in two) or _largest(one) < sum(_largest(loss) for loss in two):
            return False
        at = at[:-1]  # no loss of either is larger, so both deltas are exactly 0 there
    if at[-1] > LARGEST_EPSILON or log_slack < LEAST_LOG_SLACK:
        return False
    reached, reached_error = upper.delta(at)
    needed, needed_error = np.zeros_like(at), np.zeros_like(at)
    for loss, mass in zip(first.losses, first.masses, strict=True):
        part, error = second.delta(at - loss)
        needed += mass * part
        needed_error += mass * error
    return bool(np.all(needed + needed_error <= reached - reached_error + exp(log_slack) / 2))


def _largest(loss: Loss) -> Fraction:
    return loss.offset + loss.spacing * loss.steps(-inf)[1]
