"""The sum of the privacy losses of a release: what is known of it before any convolution.

Losses of one release add up independently, because its plan is fixed before any noise is drawn. From the cumulants of
the laws follow the tilt at which the sum is centred on a given epsilon, and the window outside which it hardly goes.
Both steer the exact computation. Only Chernoff's inequality, P(S >= a) <= E exp(t S) / exp(t a), enters its bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import fsum, inf, isfinite, log, pi, sqrt

from mechanisms.accounting.losses import Cumulants, Loss, TooManyPoints

Counted = Mapping[Loss, int]
"""How many times each law of loss occurs in a release."""

MOST_COPIES = 10**6
BEYOND = 40.0
"""What lies outside a window, and what laws leave out, is exp(-40) of the delta that is sought."""

NEARLY_A_POINT = 1e-12
"""No variance is taken for smaller than this beside the squared mean."""


@dataclass(frozen=True)
class Window:
    """Between which losses the tilted sum lies, but for a negligible part."""

    low: float
    high: float
    tilt_below: float
    """The tilt at which Chernoff's inequality is sharpest below the window; `tilt_above` likewise."""
    tilt_above: float


@dataclass(frozen=True)
class Sum:
    """The sum of the losses of a release."""

    losses: Counted

    def __post_init__(self) -> None:
        if not self.losses or min(self.losses.values()) < 1:
            raise ValueError("a composition needs at least one mechanism, each at least once")
        if self.copies > MOST_COPIES:
            raise TooManyPoints(f"{self.copies} mechanisms are too many for an exact composition")

    @cached_property
    def copies(self) -> int:
        """How many mechanisms there are."""
        return sum(self.losses.values())

    @cached_property
    def offset(self) -> Fraction:
        """The sum of the offsets of all laws."""
        return sum((count * loss.offset for loss, count in self.losses.items()), Fraction(0))

    @cached_property
    def largest(self) -> float:
        """The largest loss of all, or infinity."""
        if not all(loss.bounded for loss in self.losses):
            return inf
        ends = (count * (loss.offset + loss.spacing * loss.steps(-inf)[1]) for loss, count in self.losses.items())
        return float(sum(ends, Fraction(0)))

    def cumulants(self, tilt: float) -> Cumulants:
        """A bound on ln E exp(tilt * sum), and mean and variance of the tilted sum."""
        parts = [(loss.cumulants(tilt), count) for loss, count in self.losses.items()]
        return Cumulants(
            fsum(count * part.bound for part, count in parts),
            fsum(count * part.mean for part, count in parts),
            fsum(count * part.variance for part, count in parts),
        )

    def log_above(self, loss: float, tilt: float) -> float:
        """Chernoff's bound on ln P(sum >= loss), for a tilt above 0, a little raised."""
        bound = self.cumulants(tilt).bound
        return bound - tilt * loss + 1e-9 * (abs(bound) + abs(tilt * loss) + 1)

    def tilt_for_mean(self, epsilon: float) -> float:
        """The tilt, not negative, at which the mean of the sum is about epsilon."""
        return self._crossing(lambda _, at: at.mean - epsilon)

    def tilt_for_delta(self, log_delta: float) -> float:
        """The tilt at which the mean of the sum is about the epsilon of this delta."""
        return self._crossing(lambda tilt, at: log_delta - saddle_point(tilt, at))

    def _crossing(self, rising: Callable[[float, Cumulants], float]) -> float:
        """About the tilt at which a rising function becomes positive, or at which only the largest loss is left."""
        start = self.cumulants(0.0)
        room = 1e-3 * (self.largest - start.mean) if isfinite(self.largest) else 0.0

        def reached(tilt: float) -> bool:
            at = self.cumulants(tilt)
            return self.largest - at.mean <= room or rising(tilt, at) >= 0

        low, high = 0.0, 1 / sqrt(_spread(start))
        least = 1e-6 * high
        while not reached(high):
            low, high = high, 2 * high
        while low == 0.0 and high > least:
            low, high = (0.0, high / 2) if reached(high / 2) else (high / 2, high)
        if low == 0.0:
            return 0.0
        for _ in range(6):
            middle = (low + high) / 2
            low, high = (low, middle) if reached(middle) else (middle, high)
        return high

    def window(self, tilt: float, log_delta: float) -> Window:
        """The window for a tilt, where a delta of this size is sought."""
        at = self.cumulants(tilt)
        steps = [factor * sqrt(2 * BEYOND / _spread(at)) for factor in (0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0)]
        above = [(self.cumulants(tilt + step).bound - log_delta + BEYOND) / (tilt + step) for step in steps]
        below = [-(self.cumulants(tilt - step).bound - at.bound + BEYOND) / step for step in steps]
        high, low = min(above), max(below)
        return Window(
            low=min(low, at.mean),
            high=min(max(high, at.mean), self.largest),
            tilt_below=tilt - steps[below.index(low)],
            tilt_above=tilt + steps[above.index(high)],
        )


def _spread(at: Cumulants) -> float:
    return max(at.variance, NEARLY_A_POINT * at.mean**2)


def saddle_point(tilt: float, at: Cumulants) -> float:
    """An estimate of ln delta at the epsilon that is the mean of the tilted sum."""
    return at.bound - tilt * at.mean - log(tilt * (tilt + 1)) - log(2 * pi * _spread(at)) / 2
