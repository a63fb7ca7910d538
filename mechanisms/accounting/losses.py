"""The law of the privacy loss of one mechanism under one change: which losses occur, and how probable each is.

For two neighbouring inputs with output probabilities P and Q the loss of an output is ln(P/Q), drawn under P. A change
moves one cell by a whole number, its shift. Every law here lies on evenly spaced losses `offset + spacing * step` with
rational offset and spacing, and is the same in both directions (the noise is symmetric), so one direction is enough.

A larger shift at the same scale dominates a smaller one. Both noises are log-concave, so the best test between x and
x + s is a threshold: delta(epsilon) is the largest over m of F(m) - e^epsilon F(m - s), which grows with s.

Probabilities are kept as logarithms, each right to a relative error of `UNIT_ROUNDOFF * 8 * (|logarithm| + 10)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, exp, expm1, gcd, inf, log, log1p, pi, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

UNIT_ROUNDOFF = 2.0**-53
MOST_STEPS = 1 << 26
"""The most losses of one law that are summed one by one."""
BLOCK = 1 << 20
"""How many of them are held at once."""
FEW = 4096
"""Up to as many losses cumulants are summed exactly; beyond, over as many bins."""


class TooManyPoints(ValueError):  # noqa: N818 - a refusal, not a mistake of the caller
    """An exact sum would be too long; the zCDP figure, which needs no sum, stands in its place."""


def _check_size(scale: Fraction) -> None:
    if not Fraction(1, 10**200) < scale < 10**200:
        raise TooManyPoints("the noise of a mechanism is too narrow or too wide for an exact sum")


@dataclass(frozen=True, slots=True)
class Cumulants:
    """A bound on ln E exp(t loss) at one t, with about the mean and the variance of the loss tilted by exp(t loss)."""

    bound: float
    mean: float
    variance: float


class Loss(ABC):
    """A law of privacy loss on the losses offset + spacing * step, for whole steps in a range."""

    @property
    @abstractmethod
    def offset(self) -> Fraction:
        """The loss at step 0."""

    @property
    @abstractmethod
    def spacing(self) -> Fraction:
        """The difference of two neighbouring losses."""

    @property
    @abstractmethod
    def bounded(self) -> bool:
        """Whether there is a largest loss."""

    @abstractmethod
    def steps(self, log_negligible: float) -> tuple[int, int]:
        """First and last step, so that what lies outside has at most the negligible probability."""

    @abstractmethod
    def log_masses(self, steps: Floats) -> Floats:
        """The logarithms of the probabilities of these steps, never below the truth beyond the stated error."""

    def check(self, log_negligible: float) -> None:
        """Refuse what is too long to sum."""
        first, last = self.steps(log_negligible)
        if last - first >= MOST_STEPS:
            raise TooManyPoints(f"{last - first + 1} losses of one mechanism are too many for an exact sum")

    def blocks(self, log_negligible: float) -> Iterator[tuple[Floats, Floats]]:
        """All steps in ascending order with their log masses, in blocks."""
        self.check(log_negligible)
        first, last = self.steps(log_negligible)
        for start in range(first, last + 1, BLOCK):
            steps = np.arange(start, min(start + BLOCK, last + 1), dtype=np.float64)
            yield steps, self.log_masses(steps)

    def cumulants(self, tilt: float) -> Cumulants:
        """A bound on ln E exp(tilt * loss), for any sign of the tilt."""
        low, high, logs = _outline(self)
        return Cumulants(*_tilted_moments(high if tilt > 0 else low, logs, tilt))


def _tilted_moments(losses: Floats, logs: Floats, tilt: float) -> tuple[float, float, float]:
    """ln E exp(tilt * loss), and mean and variance of the tilted loss."""
    exponents = logs + tilt * losses
    top = float(exponents.max())
    weights = np.exp(exponents - top)
    total = float(weights.sum())
    mean = float(weights @ losses) / total
    return top + log(total), mean, float(weights @ (losses - mean) ** 2) / total


@lru_cache(maxsize=256)
def _outline(loss: Loss) -> tuple[Floats, Floats, Floats]:
    """At most a few thousand bins of losses: their lower ends, upper ends and log masses."""
    first, last = loss.steps(-inf)
    width = -(-(last - first + 1) // FEW)
    lows, highs, logs = [], [], []
    for steps, masses in loss.blocks(-inf):
        starts, sums = collected(np.floor_divide(steps - first, width), masses)
        lows.append(float(loss.offset) + float(loss.spacing) * (first + starts * width))
        highs.append(float(loss.offset) + float(loss.spacing) * np.minimum(first + starts * width + width - 1, last))
        logs.append(sums)
    return np.concatenate(lows), np.concatenate(highs), np.concatenate(logs)


def collected(places: Floats, logs: Floats) -> tuple[Floats, Floats]:
    """Each place once, with the logarithm of the sum of its masses; the places come in ascending order."""
    starts = np.flatnonzero(np.diff(places, prepend=-np.inf) > 0)
    top = np.maximum.reduceat(logs, starts)
    top[np.isneginf(top)] = 0.0
    sizes = np.diff(starts, append=places.size)
    with np.errstate(divide="ignore"):
        sums = top + np.log(np.add.reduceat(np.exp(logs - np.repeat(top, sizes)), starts))
    kept = ~np.isneginf(sums)
    return places[starts][kept], sums[kept]


@dataclass(frozen=True)
class GaussianLoss(Loss):
    """One cell moved by `shift` under discrete Gaussian noise x: loss (shift^2 - 2 shift x) / (2 variance)."""

    variance: Fraction
    shift: int

    def __post_init__(self) -> None:
        if self.variance <= 0 or self.shift < 1:
            raise ValueError(f"variance and shift must be positive, got {self.variance} and {self.shift}")
        _check_size(self.variance)

    @cached_property
    def offset(self) -> Fraction:
        """The loss where no noise is drawn."""
        return self.shift**2 / (2 * self.variance)

    @cached_property
    def spacing(self) -> Fraction:
        """What one more unit of noise against the shift adds to the loss."""
        return self.shift / self.variance

    @property
    def bounded(self) -> bool:
        """There is no largest loss."""
        return False

    def steps(self, log_negligible: float) -> tuple[int, int]:
        """Noise up to a reach T >= sqrt(2 v y) on both sides, y >= 1: at most 3 exp(-y) lies outside.

        That is 2 sum over x > T of exp(-x^2/2v) / Z with Z >= max(1, sqrt(2 pi v)). The terms fall by at least
        exp(-(T+1)/v) each, so the sum is below (1 + v/T) exp(-y), and 2 (1 + sqrt(v/2)) / Z < 3.
        """
        variance = float(self.variance)
        surprise = max(1.0, log(3) - log_negligible)
        reach = ceil(sqrt(2 * variance * surprise) * (1 + 1e-12))
        return -reach, reach

    def log_masses(self, steps: Floats) -> Floats:
        """-x^2/2v - ln Z, where ln Z >= ln(2 pi v)/2, and equal to it within 2e-17 from v = 2 on."""
        variance = float(self.variance)
        if self.variance >= 2:
            normaliser = log(2 * pi * variance) / 2
        else:
            normaliser = log1p(2 * sum(exp(-(x * x) / (2 * variance)) for x in range(1, 60)))
        result: Floats = -(steps * steps) / (2 * variance) - normaliser
        return result

    @cached_property
    def _rho(self) -> float:
        return float(self.offset) * (1 + 1e-14)

    def cumulants(self, tilt: float) -> Cumulants:
        """E exp(s x) <= exp(s^2 v / 2) for discrete Gaussian x and every s: the cumulants of a Gaussian loss.

        Below a variance of 2 the truth is a staircase under that curve, and is summed where its terms are.
        """
        smooth = Cumulants(tilt * (tilt + 1) * self._rho, (2 * tilt + 1) * self._rho, 2 * self._rho)
        if self.variance >= 2:
            return smooth
        steps = np.arange(-60.0, 61.0) + round(tilt * self.shift)
        losses = float(self.offset) + float(self.spacing) * steps
        bound, mean, _ = _tilted_moments(losses, self.log_masses(steps), tilt)
        return Cumulants(bound, mean, smooth.variance)


@dataclass(frozen=True)
class LaplaceLoss(Loss):
    """One cell moved by `shift` under discrete Laplace noise x: loss (|x - shift| - |x|) / scale, finitely many values.

    With shift 1 it is binary randomised response at 1/scale, which dominates every pure mechanism of that epsilon.
    """

    scale: Fraction
    shift: int = 1

    def __post_init__(self) -> None:
        if self.scale <= 0 or self.shift < 1:
            raise ValueError(f"scale and shift must be positive, got {self.scale} and {self.shift}")
        _check_size(self.scale)

    @cached_property
    def offset(self) -> Fraction:
        """The largest loss, at step 0; step -x is the loss of noise x between 0 and the shift."""
        return self.shift / self.scale

    @cached_property
    def spacing(self) -> Fraction:
        """What one more unit of noise towards the shift takes away."""
        return 2 / self.scale

    @property
    def bounded(self) -> bool:
        """The offset is the largest loss."""
        return True

    def steps(self, log_negligible: float) -> tuple[int, int]:  # noqa: ARG002 - nothing is left out
        """All of them."""
        return -self.shift, 0

    def log_masses(self, steps: Floats) -> Floats:
        """1/(1+q), (1-q) q^x/(1+q) for 0 < x < shift, and q^shift/(1+q), with q = exp(-1/scale)."""
        step = float(1 / self.scale)
        between = log(-expm1(-step)) * ((steps > -self.shift) & (steps < 0))
        result: Floats = between + step * steps - log1p(exp(-step))
        return result


def pure(epsilon: Fraction) -> LaplaceLoss:
    """The loss of any epsilon-DP mechanism, at its worst: randomised response between two answers."""
    return LaplaceLoss(1 / epsilon)


@dataclass(frozen=True)
class ResponseLoss(Loss):
    """One answer changed under randomised response among three or more choices, at a pure price of epsilon.

    A larger epsilon dominates (the truer answer can be randomised further), so an epsilon rounded up is valid.
    """

    epsilon: Fraction
    choices: int

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.choices < 3:
            raise ValueError(f"epsilon must be positive and choices at least 3, got {self.epsilon}, {self.choices}")

    @cached_property
    def offset(self) -> Fraction:
        """The loss of an answer that is neither the old nor the new truth."""
        return Fraction(0)

    @cached_property
    def spacing(self) -> Fraction:
        """The loss of the old truth, and minus that of the new."""
        return self.epsilon

    @property
    def bounded(self) -> bool:
        """Epsilon is the largest loss."""
        return True

    def steps(self, log_negligible: float) -> tuple[int, int]:  # noqa: ARG002 - nothing is left out
        """New truth, another choice, old truth."""
        return -1, 1

    def log_masses(self, steps: Floats) -> Floats:
        """In proportion to 1, choices - 2 and exp(epsilon)."""
        epsilon = float(self.epsilon)
        others = log(self.choices - 2) * (steps == 0)
        result: Floats = others - epsilon * (steps < 1) - log1p((self.choices - 1) * exp(-epsilon))
        return result


def common_spacing(losses: list[Loss]) -> Fraction:
    """The widest spacing of which every law's spacing is a whole multiple."""
    spacing = losses[0].spacing
    for loss in losses[1:]:
        over = spacing.denominator * loss.spacing.denominator
        here, there = spacing.numerator * loss.spacing.denominator, loss.spacing.numerator * spacing.denominator
        spacing = Fraction(gcd(here, there), over)
    return spacing
