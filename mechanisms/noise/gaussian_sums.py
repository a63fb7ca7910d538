"""Sums of exp(-y^2 / (2 variance)) over the integers from x on, between integers that enclose them.

Up to a standard deviation of 4096 the terms are added one by one. Above it the Euler-Maclaurin formula replaces the
sum by an integral and a few derivatives, with a remainder that has a proved bound; where even that does not decide,
the terms are added after all.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt

from mechanisms.noise.exponentials import Enclosure, divided_up, exp_neg, product, shifted_up

WIDE = 4096
"""From this standard deviation on, sums are taken by the Euler-Maclaurin formula."""
FINEST = 320
"""The precision up to which it is asked; beyond, its remainder would be too coarse."""


def sum_from(x: int, variance: Fraction, precision: int) -> Enclosure:
    """Encloses the sum over all y >= x, for x >= 1."""
    if variance >= WIDE**2 and precision <= FINEST:
        return _integrated(x, variance, precision)
    sums = _suffix_sums(variance, precision)
    return sums[x] if x < len(sums) else Enclosure(0, sums[-1].high)


def sum_of_squares(variance: Fraction, precision: int) -> Enclosure:
    """Encloses the sum of y^2 exp(-y^2 / (2 variance)) over all integers y.

    From a variance of 100 on it is the variance times the sum of all weights, up to a factor 1 - 8 pi^2 variance
    exp(-2 pi^2 variance) (Poisson summation), of which the second part is below 2^-2600.
    """
    if variance >= 100:
        half = sum_from(1, variance, precision)
        total = Enclosure((1 << precision) + 2 * half.low, (1 << precision) + 2 * half.high)
        above, below = variance.numerator, variance.denominator
        return Enclosure(total.low * above // below - 1, divided_up(total.high * above, below))
    weights = _weights(variance, precision)
    low = sum(y * y * weight.low for y, weight in enumerate(weights))
    high = sum(y * y * weight.high for y, weight in enumerate(weights))
    return Enclosure(2 * low, 2 * high + len(weights) ** 2)


def _weights(variance: Fraction, precision: int) -> list[Enclosure]:
    """exp(-y^2 / (2 variance)) from y = 0 until less than a unit is left in all later terms together."""
    last = isqrt(int(Fraction(6932, 5000) * (precision + 64) * variance)) + 2
    ratio = exp_neg(1 / (2 * variance), precision + 64)
    change = exp_neg(1 / variance, precision + 64)
    weight = Enclosure(1 << (precision + 64), 1 << (precision + 64))
    weights = []
    for _ in range(last + 1):
        weights.append(Enclosure(weight.low >> 64, shifted_up(weight.high, 64)))
        weight = product(weight, ratio, precision + 64)
        ratio = product(ratio, change, precision + 64)
    return weights


@lru_cache(maxsize=16)
def _suffix_sums(variance: Fraction, precision: int) -> list[Enclosure]:
    """The sum from y on, for every y whose weight is not negligible; the rest adds at most a unit."""
    low, high = 0, 1
    sums = []
    for weight in reversed(_weights(variance, precision)):
        low, high = low + weight.low, high + weight.high
        sums.append(Enclosure(low, high))
    return sums[::-1]


def _integrated(x: int, variance: Fraction, precision: int) -> Enclosure:
    """The Euler-Maclaurin formula with four derivatives.

    The remainder is at most 2 zeta(8) / (2 pi)^8 times the integral of the eighth derivative's size, which by
    Cauchy-Schwarz is at most sqrt(2 pi 8!) / sd^7: together below 1 / (2000 sd^7).
    """
    z, v = Fraction(x), variance
    derivatives = (
        z / v,
        z**3 / v**3 - 3 * z / v**2,
        z**5 / v**5 - 10 * z**3 / v**4 + 15 * z / v**3,
        z**7 / v**7 - 21 * z**5 / v**6 + 105 * z**3 / v**5 - 105 * z / v**4,
    )
    factors = (Fraction(1, 12), Fraction(-1, 720), Fraction(1, 30240), Fraction(-1, 1209600))
    correction = Fraction(1, 2) + sum(f * d for f, d in zip(factors, derivatives, strict=True))
    weight = exp_neg(z * z / (2 * v), precision)
    integral = _integral_from(x, variance, precision)
    remainder = divided_up(1 << precision, 2000 * isqrt(int(variance)) ** 7)
    ends = (correction * weight.low, correction * weight.high)
    return Enclosure(
        max(0, integral.low + int(min(ends)) - 1 - remainder), integral.high + int(max(ends)) + 1 + remainder
    )


def _integral_from(x: int, variance: Fraction, precision: int) -> Enclosure:
    """The integral of exp(-t^2 / (2 variance)) from x to infinity: half the whole, less the power series up to x.

    Terms grow to exp(x^2 / (2 variance)) before they fall, so that many more bits are carried.
    """
    exponent = x * x / (2 * variance)
    working = precision + 2 * int(exponent) + 64
    term, total, n = x << working, 0, 0
    above, below = exponent.numerator, exponent.denominator
    while term:
        total += (-1) ** n * (term // (2 * n + 1))
        n += 1
        term = term * above // (below * n)
    error = 4 * n * (int(exponent) + 2) << (2 * int(exponent))  # far above what n roundings can grow to
    whole = _root_of_two_pi_times(variance, working)
    low, high = whole.low // 2 - total - error, divided_up(whole.high, 2) - total + error
    return Enclosure(max(0, low) >> (working - precision), shifted_up(high, working - precision))


def _root_of_two_pi_times(variance: Fraction, precision: int) -> Enclosure:
    """Encloses sqrt(2 pi variance)."""
    pi = _pi(2 * precision + 64)
    scaled = 2 * variance.numerator * pi.low // (variance.denominator << 64)
    return Enclosure(isqrt(scaled) - 1, isqrt(scaled) + 2)


@lru_cache(maxsize=64)
def _pi(precision: int) -> Enclosure:
    """pi = 16 arctan(1/5) - 4 arctan(1/239) (Machin)."""
    working = precision + 32

    def arctan_of_inverse(n: int) -> int:
        term, total, k = (1 << working) // n, 0, 0
        while term:
            total += (-1) ** k * (term // (2 * k + 1))
            term //= n * n
            k += 1
        return total

    value = 16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)
    return Enclosure((value >> 32) - 1, (value >> 32) + 2)
