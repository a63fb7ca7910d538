"""The two laws of noise and what error reports ask of them: probability, tail, quantile and variance.

Everything is computed between integers that enclose it. A probability is returned as a float that is right to the last
digits; a quantile is an exact integer: precision grows until the comparison is certain. Nothing here draws.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from mechanisms.noise.exponentials import Enclosure, divided_up, exp_neg
from mechanisms.noise.gaussian_sums import sum_from, sum_of_squares

PRECISION = 160
"""Bits with which a number is enclosed at first."""
ENOUGH = 2560
"""A probability below 2^-2500 is reported as zero."""

WIDE = 8
"""From this variance on a discrete Gaussian has the moments of the continuous one, to far more digits than a float."""


class Law(ABC):
    """The integers x with probability proportional to exp(-exponent(|x|))."""

    @abstractmethod
    def exponent(self, x: int) -> Fraction:
        """The exponent at a distance of x >= 0 from zero: a quadratic in x."""

    @abstractmethod
    def slope(self, x: int) -> Fraction:
        """How much the exponent grows at least with every step beyond x."""

    @abstractmethod
    def box_bits(self, cells: int) -> int:
        """k, where boxes of 2^k make `cells` to twice `cells` of them a scale wide; 0 where single integers do."""

    @abstractmethod
    def reach(self, tail_bits: int) -> int:
        """A distance beyond which about 2^-tail_bits of the probability lies."""

    @abstractmethod
    def upper_tail(self, x: int, precision: int) -> Enclosure:
        """Encloses the probability of a draw of at least x, for x >= 1."""

    @abstractmethod
    def mass(self, x: int, precision: int) -> Enclosure:
        """Encloses the probability of x."""

    @abstractmethod
    def spread(self, precision: int) -> Enclosure:
        """Encloses the variance."""

    def pmf(self, x: int) -> float:
        """The probability of x."""
        return _nearest(lambda precision: self.mass(abs(x), precision))

    def tail(self, x: int) -> float:
        """The probability of a draw of at least x."""
        if x >= 1:
            return _nearest(lambda precision: self.upper_tail(x, precision))
        return 1 - _nearest(lambda precision: self.upper_tail(1 - x, precision))

    def variance_of_draw(self) -> float:
        """The exact variance of one draw; for a discrete Gaussian it is a little below its parameter."""
        return _nearest(self.spread)

    def margin(self, confidence: Fraction) -> int:
        """The smallest q with P(|draw| <= q) >= confidence: the margin of error of one measurement."""
        _require_between(confidence)
        return self._first_below((1 - confidence) / 2) - 1

    def quantile(self, probability: Fraction) -> int:
        """The smallest q with P(draw <= q) >= probability. No tail equals a rational number, so ties do not occur."""
        _require_between(probability)
        if probability >= Fraction(1, 2):
            return self._first_below(1 - probability) - 1
        return 1 - self._first_below(probability)

    def _first_below(self, probability: Fraction) -> int:
        """The smallest x >= 1 with P(draw >= x) <= probability."""
        low, high = 0, 1
        while not self._tail_is_at_most(high, probability):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            if self._tail_is_at_most(middle, probability):
                high = middle
            else:
                low = middle
        return high

    def _tail_is_at_most(self, x: int, probability: Fraction) -> bool:
        precision = PRECISION
        while True:
            tail = self.upper_tail(x, precision)
            if tail.high * probability.denominator <= probability.numerator << precision:
                return True
            if tail.low * probability.denominator > probability.numerator << precision:
                return False
            precision *= 2


@dataclass(frozen=True, slots=True)
class LaplaceLaw(Law):
    """Probability proportional to exp(-|x| / scale)."""

    scale: Fraction

    def __post_init__(self) -> None:
        require_positive(self.scale, "scale")

    def exponent(self, x: int) -> Fraction:
        """x / scale."""
        return x / self.scale

    def slope(self, x: int) -> Fraction:
        """The same everywhere."""
        del x
        return 1 / self.scale

    def box_bits(self, cells: int) -> int:
        """The largest k with cells * 2^k <= scale, from a scale of 2 * cells on."""
        return max(0, (int(self.scale) // cells).bit_length() - 1)

    def reach(self, tail_bits: int) -> int:
        """tail_bits * ln 2 scales; 0.6932 is just above ln 2."""
        return int(tail_bits * self.scale * Fraction(6932, 10000)) + 1

    def upper_tail(self, x: int, precision: int) -> Enclosure:
        """a^x / (1 + a) with a = exp(-1 / scale)."""
        return _ratio(self._power(x, precision), self._one_plus(self._power(1, precision), precision), precision)

    def mass(self, x: int, precision: int) -> Enclosure:
        """a^x (1 - a) / (1 + a)."""
        ratio = self._power(1, precision)
        below, above = self._power(x, precision), self._one_plus(ratio, precision)
        one = 1 << precision
        falls = Enclosure(below.low * (one - ratio.high), below.high * (one - ratio.low))
        return Enclosure(falls.low // above.high, divided_up(falls.high, above.low))

    def spread(self, precision: int) -> Enclosure:
        """2 a / (1 - a)^2."""
        working = precision + 4 * int(self.scale).bit_length() + 16
        ratio, one = self._power(1, working), 1 << working
        low = (2 * ratio.low << working) // (one - ratio.low) * one // (one - ratio.low)
        high = divided_up(divided_up(2 * ratio.high << working, one - ratio.high) * one, one - ratio.high)
        return Enclosure(low >> (working - precision), -(-high >> (working - precision)))

    def _power(self, x: int, precision: int) -> Enclosure:
        return exp_neg(x / self.scale, precision)

    @staticmethod
    def _one_plus(ratio: Enclosure, precision: int) -> Enclosure:
        return Enclosure((1 << precision) + ratio.low, (1 << precision) + ratio.high)


@dataclass(frozen=True, slots=True)
class GaussianLaw(Law):
    """Probability proportional to exp(-x^2 / (2 variance))."""

    variance: Fraction

    def __post_init__(self) -> None:
        require_positive(self.variance, "variance")

    def exponent(self, x: int) -> Fraction:
        """x^2 / (2 variance)."""
        return x * x / (2 * self.variance)

    def slope(self, x: int) -> Fraction:
        """The derivative at x, which only grows."""
        return x / self.variance

    def box_bits(self, cells: int) -> int:
        """The largest k with cells * 2^k <= the root of the variance, from 2 * cells on."""
        return max(0, (isqrt(int(self.variance)) // cells).bit_length() - 1)

    def reach(self, tail_bits: int) -> int:
        """The root of 2 * tail_bits * ln 2 variances."""
        return isqrt(int(2 * tail_bits * self.variance * Fraction(6932, 10000))) + 1

    def upper_tail(self, x: int, precision: int) -> Enclosure:
        """The sum of the weights from x on, over the sum of all."""
        return _ratio(sum_from(x, self.variance, precision), self._total(precision), precision)

    def mass(self, x: int, precision: int) -> Enclosure:
        """The weight of x over the sum of all."""
        return _ratio(exp_neg(self.exponent(x), precision), self._total(precision), precision)

    def variance_of_draw(self) -> float:
        """The exact variance of one draw, as the nearest float.

        It is the parameter times 1 - 8 pi^2 v exp(-2 pi^2 v) to first order: from 8 on less than 2^-200 below it.
        """
        return float(self.variance) if self.variance >= WIDE else _nearest(self.spread)

    def spread(self, precision: int) -> Enclosure:
        """The mean of x^2."""
        return _ratio(sum_of_squares(self.variance, precision), self._total(precision), precision)

    def _total(self, precision: int) -> Enclosure:
        half = sum_from(1, self.variance, precision)
        return Enclosure((1 << precision) + 2 * half.low, (1 << precision) + 2 * half.high)


def require_positive(value: Fraction, what: str) -> None:
    """A scale is an exact positive number: a float is refused, however round."""
    if not isinstance(value, Fraction):
        raise TypeError(f"the {what} is a Fraction, got {type(value).__name__}: floats are not exact")
    if value <= 0:
        raise ValueError(f"the {what} must be positive, got {value}")


def _require_between(probability: Fraction) -> None:
    if not isinstance(probability, Fraction):
        raise TypeError(f"a probability is a Fraction, got {type(probability).__name__}: floats are not exact")
    if not 0 < probability < 1:
        raise ValueError(f"a probability lies strictly between 0 and 1, got {probability}")


def _ratio(above: Enclosure, below: Enclosure, precision: int) -> Enclosure:
    return Enclosure((above.low << precision) // below.high, divided_up(above.high << precision, below.low))


def _nearest(enclosed: Callable[[int], Enclosure]) -> float:
    """The float in the middle of an enclosure that is narrow enough for it."""
    precision = PRECISION
    while True:
        low, high = enclosed(precision)
        if (high - low) << 56 <= low or precision > ENOUGH:
            return float(Fraction(low + high, 2 << precision))
        precision *= 2
