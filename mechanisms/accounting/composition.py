"""Exact composition: epsilon and delta of many mechanisms together, between proved bounds.

delta(epsilon) is the sum over losses L > epsilon of P(L) (1 - e^(epsilon - L)), P the law of the sum of all losses.
The laws are placed on their common lattice, or on a grid between laws above and below them; they are tilted and
convolved; the weights of the final sum take the tilt off again. An error of the masses of at most r in L2 changes the
final sum by at most r |weights|_2. That, what lies above the window (Chernoff) and noise beyond the reach of a law
(as if its loss were infinite) are added to delta: no delta or epsilon from here is below the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, exp, floor, inf, isfinite, log, log2, nextafter, sqrt

import numpy as np

from mechanisms.accounting.conversion import log_inverse
from mechanisms.accounting.grids import Placed, merged, on_lattice, spread
from mechanisms.accounting.losses import UNIT_ROUNDOFF, Floats, Loss, TooManyPoints, common_spacing
from mechanisms.accounting.sums import BEYOND, Counted, Sum, Window, saddle_point
from mechanisms.accounting.transform import Tilted, tilted

LATTICE_POINTS = 1 << 22
GRID_POINTS = 1 << 19
"""Twice as many where few different laws make that quick."""
FEWEST_POINTS = 1 << 12
MOST_POINTS = 1 << 23
VANISHED = 1e-300
"""More than all masses and weights that are too small for a float can add up to."""
LOG_SMALLEST = -800.0
"""Below the logarithm of every float: what laws leave out where no delta is given."""


@dataclass(frozen=True)
class Exact:
    """An epsilon that is not below the truth, by how much it may be above, and how the losses were placed."""

    epsilon: float
    excess: float
    kind: str


@dataclass(frozen=True)
class Ladder:
    """All laws of a sum on one ladder: their common lattice, or a grid of width 2^-bits."""

    total: Sum
    spacing: Fraction
    bits: int | None
    log_negligible: float

    @property
    def blur(self) -> float:
        """How far the grid may have moved the sum."""
        return 0.0 if self.bits is None else self.total.copies * float(self.spacing)

    @property
    def log_dropped(self) -> float:
        """A bound on ln of the probability that some noise is beyond the reach of its law."""
        return -inf if isfinite(self.total.largest) else self.log_negligible + log(self.total.copies)

    @cached_property
    def over(self) -> list[tuple[Placed, int]]:
        """The laws for upper bounds."""
        return [(self._over(loss), count) for loss, count in self.total.losses.items()]

    def _over(self, loss: Loss) -> Placed:
        if self.bits is None:
            return on_lattice(loss, int(loss.spacing / self.spacing), log_negligible=self.log_negligible)
        return spread(loss, self.bits, log_negligible=self.log_negligible)

    @cached_property
    def last(self) -> int:
        """The last step that the sum of these laws can reach."""
        return sum(count * int(placed.steps[-1]) for placed, count in self.over)

    @cached_property
    def under(self) -> list[tuple[Placed, Placed, int]]:
        """The measures P and Q of each law for lower bounds, on a grid; a lattice is its own lower bound."""
        bits, negligible = self.bits or 0, self.log_negligible
        return [(*merged(loss, bits, log_negligible=negligible), count) for loss, count in self.total.losses.items()]


def _ladder(total: Sum, window: Window, log_negligible: float) -> Ladder:
    """The lattice where it has a bearable number of points, else a grid."""
    for loss in total.losses:
        loss.check(log_negligible)
    width = window.high - window.low
    spacing = common_spacing(list(total.losses))
    atoms = sum(last - first for first, last in (loss.steps(log_negligible) for loss in total.losses))
    if atoms <= LATTICE_POINTS and (total.copies == 1 or width <= LATTICE_POINTS * spacing):
        return Ladder(total, spacing, None, log_negligible)
    bits = floor(log2((2 if len(total.losses) <= 16 else 1) * GRID_POINTS / width))
    return Ladder(total, Fraction(2) ** -bits, bits, log_negligible)


@dataclass(frozen=True)
class Curve:
    """Bounds on ln delta at every epsilon, sharpest near the epsilon that it is tilted to."""

    ladder: Ladder
    tilt: float
    window: Window

    @cached_property
    def theta(self) -> float:
        """The tilt for each step."""
        return self.tilt * float(self.ladder.spacing)

    @cached_property
    def span(self) -> tuple[int, int]:
        """The first step of the window, and its number of points, a power of 2."""
        spacing, offset = float(self.ladder.spacing), float(self.ladder.total.offset)
        first = floor((self.window.low - self.ladder.blur - offset) / spacing) - 1
        last = ceil((self.window.high + self.ladder.blur - offset) / spacing) + 1
        points = max(FEWEST_POINTS, 1 << (last - first).bit_length())
        if points > MOST_POINTS:
            raise TooManyPoints(f"{points} points are too many for an exact composition")
        return first - (points - (last - first)) // 2, points

    @cached_property
    def over(self) -> Tilted:
        """The composed law for upper bounds; above the last step of its laws there is nothing."""
        return tilted(self.ladder.over, self.theta, lambda: self.span).up_to_step(self.ladder.last)

    @cached_property
    def under(self) -> tuple[Tilted, Tilted]:
        """The composed measures P and Q for lower bounds."""
        if self.ladder.bits is None:
            return self.over, self.over
        items = self.ladder.under
        under_p, under_q = [(p, n) for p, _, n in items], [(q, n) for _, q, n in items]
        return tilted(under_p, self.theta, lambda: self.span), tilted(under_q, self.theta, lambda: self.span)

    def _losses(self, steps: Floats, sign: int) -> Floats:
        """The losses of these steps, rounded up or down."""
        offset, heights = float(self.ladder.total.offset), float(self.ladder.spacing) * steps
        result: Floats = offset + heights + sign * 4 * UNIT_ROUNDOFF * (abs(offset) + np.abs(heights))
        return result

    def _step_of(self, epsilon: float) -> float:
        return (epsilon - float(self.ladder.total.offset)) / float(self.ladder.spacing)

    @cached_property
    def log_above(self) -> float:
        """A bound on ln of the probability above the window."""
        if self.over.whole or sum(self.span) > self.ladder.last:
            return -inf
        top = float(self._losses(np.array([float(sum(self.span))]), -1)[0]) - self.ladder.blur
        return self.ladder.total.log_above(top, self.window.tilt_above)

    def _wrapped(self, law: Tilted) -> float:
        """A bound on the tilted mass that wraps around to the steps of a law that was cut off below.

        It comes from below the window, or from as many points above these steps as the window has.
        """
        if law.whole:
            return 0.0
        total, (first, points) = self.ladder.total, self.span
        log_scale = law.log_scale + self.tilt * float(total.offset) - law.log_error
        mass = 0.0
        for step, tilt in ((first, self.window.tilt_below), (law.steps[0] + points, self.window.tilt_above)):
            end = float(total.offset) + float(self.ladder.spacing) * float(step)
            bound = total.cumulants(tilt).bound + abs(tilt) * self.ladder.blur
            roundings = 1e-9 * (abs(bound) + abs(tilt * end) + 1)
            mass += exp(min(0.0, bound - log_scale + (self.tilt - tilt) * end + roundings))
        return mass

    def _above(self, epsilon: float) -> Tilted:
        """The part of the law whose losses, rounded up, exceed epsilon."""
        law = self.over.from_step(self._step_of(epsilon))
        return law.from_index(int(np.searchsorted(self._losses(law.steps, 1), epsilon, side="right")))

    def _weights(self, law: Tilted, gaps: Floats) -> Floats:
        """1 - e^-gap for losses above epsilon by a gap, times what takes the tilt off from the first step on."""
        result: Floats = np.exp(-self.theta * (law.steps - law.steps[0])) * -np.expm1(-np.maximum(gaps, 0.0))
        return result

    def upper(self, epsilon: float) -> float:
        """ln delta at most. Below the window nothing is known but that delta is at most 1."""
        if not self.over.whole and self._step_of(epsilon) < self.span[0]:
            return 0.0
        outside = np.logaddexp(self.log_above, self.ladder.log_dropped)
        law = self._above(epsilon)
        if not law.steps.size:
            return float(outside)
        weights = self._weights(law, self._losses(law.steps, 1) - epsilon)
        inside = float((law.masses * weights).sum()) + law.noise * sqrt(float(weights @ weights)) + VANISHED
        return min(0.0, float(np.logaddexp(law.log_first + log(inside) + law.log_error, outside)))

    def lower(self, epsilon: float) -> float:
        """ln delta at least."""
        if self.ladder.bits is None:
            return self._lower_on_lattice(epsilon)
        return self._lower_on_grid(epsilon)

    def _lower_on_lattice(self, epsilon: float) -> float:
        law = self._above(epsilon)
        if not law.steps.size:
            return -inf
        weights = self._weights(law, self._losses(law.steps, -1) - epsilon)
        inside = float((law.masses * weights).sum()) - law.noise * sqrt(float(weights @ weights)) - self._wrapped(law)
        return law.log_first + log(inside) - law.log_error if inside > 0 else -inf

    def _lower_on_grid(self, epsilon: float) -> float:
        start = self._step_of(epsilon) - self.ladder.total.copies
        law, other = (each.from_step(start) for each in self.under)
        if not law.steps.size:
            return -inf
        weights = np.exp(-self.theta * (law.steps - law.steps[0]))
        error = law.log_error + other.log_error
        exponents = epsilon - self._losses(law.steps, -1) + (other.log_scale - law.log_scale) + error
        against = weights * np.exp(np.minimum(exponents, 300.0))
        gains = law.masses * weights - other.masses * against
        chosen = (gains > 0) & (exponents < 300.0)
        noise = law.noise * sqrt(float(weights[chosen] @ weights[chosen]))
        noise += other.noise * sqrt(float(against[chosen] @ against[chosen]))
        rounding = 8 * UNIT_ROUNDOFF * float((np.abs(law.masses) * weights)[chosen].sum())
        inside = float(gains[chosen].sum()) - noise - rounding - self._wrapped(law)
        return law.log_first + log(inside) - error if inside > 0 else -inf


def _root(falling: Callable[[float], float], target: float, *, start: float, ceiling: float) -> float:
    """The smallest epsilon found at which a falling function is at most the target: it was evaluated there."""
    if falling(0.0) <= target:
        return 0.0
    low, high = 0.0, min(max(start, 1e-300), ceiling)
    while falling(high) > target:
        if high >= ceiling:
            raise TooManyPoints("no epsilon has a delta as small as this within floating point")
        low, high = high, min(high * 1.25, ceiling)
    return _narrowed(falling, target, low, high)


def _narrowed(falling: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Regula falsi (Illinois) between low and high, with halving where it is not sure."""
    above, below = falling(low) - target, falling(high) - target
    for turn in range(200):
        if high - low <= 1e-12 * high:
            break
        guess = (low + high) / 2
        if isfinite(below) and isfinite(above) and turn % 4 < 3:
            guess = min(max(low + (high - low) * above / (above - below), low + 1e-13 * high), high - 1e-13 * high)
        height = falling(guess) - target
        if height > 0:
            low, above, below = guess, height, below / 2
        else:
            high, below, above = guess, height, above / 2
    return high


def _curve(ladder: Ladder, tilt: float, log_delta: float) -> Curve:
    return Curve(ladder, tilt, ladder.total.window(tilt, log_delta))


def exact_epsilon(losses: Counted, delta: Fraction, *, slack: Fraction = Fraction(0)) -> Exact:
    """The smallest epsilon found for a delta; `slack` is what was already given away of the delta."""
    if slack >= delta:
        raise TooManyPoints("what bounds gave away already exceeds this delta")
    total = Sum(losses)
    target = -log_inverse(delta - slack) * (1 + 1e-14)
    tilt = total.tilt_for_delta(target)
    ladder = _ladder(total, total.window(tilt, target), target - BEYOND - log(total.copies))
    found: list[tuple[float, Curve]] = []
    for _ in range(4):
        curve, at = _curve(ladder, tilt, target), total.cumulants(tilt)
        epsilon = _root(curve.upper, target, start=at.mean, ceiling=(total.largest + ladder.blur) * (1 + 1e-12))
        found.append((epsilon, curve))
        if abs(epsilon - at.mean) <= sqrt(at.variance):
            break
        tilt = total.tilt_for_mean(epsilon)
    epsilon, curve = min(found, key=lambda pair: pair[0])
    return Exact(epsilon, _excess(epsilon, curve, delta), "lattice" if ladder.bits is None else "grid")


def _excess(epsilon: float, curve: Curve, delta: Fraction) -> float:
    """By how much the epsilon may be above the truth: below it by this much, delta is too large for certain."""
    target = -log_inverse(delta) * (1 - 1e-14)
    excess = 1e-12 * epsilon
    while excess < epsilon and curve.lower(epsilon - excess) < target:
        excess *= 2
    return min(excess, epsilon)


def exact_delta(losses: Counted, epsilon: float) -> float:
    """A delta that is not below the truth, for a given epsilon."""
    if not 0 <= epsilon < inf:
        raise ValueError(f"epsilon must not be negative, got {epsilon}")
    total = Sum(losses)
    if epsilon >= total.largest * (1 + 1e-15):
        return 0.0
    tilt = total.tilt_for_mean(epsilon)
    log_delta = min(-1.0, saddle_point(tilt, total.cumulants(tilt))) if tilt else -1.0
    ladder = _ladder(total, total.window(tilt, log_delta), LOG_SMALLEST - log(total.copies))
    log_bound = _curve(ladder, tilt, log_delta).upper(epsilon)
    return min(1.0, nextafter(exp(log_bound) * (1 + 1e-13), inf))
