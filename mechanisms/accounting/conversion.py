"""Conversions between currencies: rho of zCDP, pure epsilon, and epsilon at a delta, in both directions.

Every epsilon is a float that is never below the true value of its formula: each result is pushed up by `MARGIN` times
the sum of the absolute values of its terms, a thousand times what floating point can lose in them. Every rho is a
`Fraction`, rounded down to a multiple of 10^-12, whose own forward conversion is at most what was asked: this is
checked before it is returned.

Sources: Bun and Steinke 2016 (simple), Canonne, Kamath and Steinke 2020, Corollary 13 (tight), Dwork, Rothblum and
Vadhan 2010 (advanced composition), Dwork and Roth 2014 and Vadhan 2017 (groups).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import exp, expm1, floor, inf, log, log1p, sqrt

from mechanisms.prices import GRAIN

MARGIN = 1e-13
"""What an epsilon is pushed up by, relative to the absolute size of its terms."""
SMALLEST_RHO = Fraction(1, 10**300)
LARGEST_RHO = 10**9
"""No release is anywhere near; above it the conversions would only lose digits."""

Real = Fraction | float
"""An epsilon: exact where a spec states it, a float where a formula gives it."""


def check_delta(delta: Fraction) -> None:
    """Refuse a delta outside (0, 1)."""
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, got {delta}")


def _checked_rho(rho: Fraction) -> Fraction:
    """A rho that floats can hold; one below all of them is taken for the smallest."""
    if not 0 < rho <= LARGEST_RHO:
        raise ValueError(f"rho must be positive and at most {LARGEST_RHO}, got {rho}")
    return max(rho, SMALLEST_RHO)


def log_inverse(delta: Fraction) -> float:
    """ln(1 / delta) to a relative error of 10^-15, however small delta is."""
    check_delta(delta)
    if delta > Fraction(1, 2):
        return -log1p(-float(1 - delta))
    bits = delta.denominator.bit_length() - delta.numerator.bit_length()
    return bits * log(2) - log(float(delta * 2**bits))


def _raised(*terms: float) -> float:
    """The sum of the terms, pushed above its true value."""
    return sum(terms) + MARGIN * sum(abs(term) for term in terms)


def epsilon_simple(rho: Fraction, delta: Fraction) -> float:
    """rho + 2 sqrt(rho ln(1/delta)), rounded up."""
    amount = float(_checked_rho(rho))
    return _raised(amount, 2 * sqrt(amount * log_inverse(delta)))


def epsilon_tight(rho: Fraction, delta: Fraction) -> float:
    """The least over orders a > 1 of a rho + ln(1/(a delta))/(a - 1) + ln(1 - 1/a), rounded up; at least 0.

    Every order gives a valid epsilon, so a search that stops early costs tightness only. At a fixed epsilon the
    logarithm of delta is convex in a, so the epsilons have one valley and a golden section finds its floor.
    """
    amount, surprise = float(_checked_rho(rho)), log_inverse(delta)

    def epsilon(log_excess: float) -> float:
        excess = exp(log_excess)  # a - 1
        return _raised(amount, excess * amount, surprise / excess, -log1p(excess) / excess, -log1p(1 / excess))

    middle = log(surprise / amount) / 2  # the order of the simple conversion is one more than its exponential
    return max(0.0, _least(epsilon, middle - 20, middle + 20))


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """The least value seen by a golden section between low and high."""
    ratio = (sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    best = min(at_left, at_right)
    while high - low > 1e-8:  # the floor of a valley is flat: this leaves 10^-16 of its height
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
        best = min(best, at_left, at_right)
    return best


def rho_simple(epsilon: Real, delta: Fraction) -> Fraction:
    """The largest multiple of 10^-12 whose simple conversion is at most epsilon."""
    _check_epsilon(epsilon)
    return largest_rho(lambda rho: epsilon_simple(rho, delta) <= epsilon)


def rho_tight(epsilon: Real, delta: Fraction) -> Fraction:
    """The largest multiple of 10^-12 whose tight conversion is at most epsilon."""
    _check_epsilon(epsilon)
    return largest_rho(lambda rho: epsilon_tight(rho, delta) <= epsilon)


def _check_epsilon(epsilon: Real) -> None:
    if not 0 < epsilon < inf:
        raise ValueError(f"epsilon must be positive and finite, got {epsilon}")


def largest_rho(fits: Callable[[Fraction], bool], *, start: Fraction = GRAIN) -> Fraction:
    """The largest multiple of 10^-12 that fits, found by halving from a start that does.

    What is returned was itself tested, so it is valid even where rounding bends the condition.
    """
    if not fits(start):
        raise ValueError(f"not even rho {start} costs as little as this at this delta; raise epsilon or delta")
    low = floor(start / GRAIN)
    high = 2 * low  # in grains: low fits, high does not
    while high * GRAIN <= LARGEST_RHO and fits(high * GRAIN):
        low, high = high, 2 * high
    high = min(high, LARGEST_RHO * 10**12 + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle * GRAIN) else (low, middle)
    return low * GRAIN


def advanced_composition(epsilons: Sequence[Real], delta: Fraction) -> float:
    """The textbook's sqrt(2 ln(1/delta) sum e^2) + sum e (exp(e) - 1), rounded up: shown to teach, never published."""
    amounts = [max(float(epsilon), float(SMALLEST_RHO)) for epsilon in epsilons]
    if not amounts or min(epsilons) <= 0:
        raise ValueError("advanced composition needs positive epsilons")
    if max(amounts) > 700:
        return inf
    spread = sqrt(2 * log_inverse(delta) * sum(amount**2 for amount in amounts))
    return _raised(spread, sum(amount * expm1(amount) for amount in amounts))


def group_pure(epsilon: Fraction, size: int) -> Fraction:
    """What a pure guarantee for one unit is for a group of `size` units: size * epsilon."""
    return _checked(size) * epsilon


def group_concentrated(rho: Fraction, size: int) -> Fraction:
    """What a zCDP guarantee for one unit is for a group of `size` units: size^2 * rho. Convert last."""
    return _checked(size) ** 2 * rho


def group_approximate(epsilon: float, delta: Fraction, *, size: int) -> tuple[float, Fraction]:
    """(k epsilon, k e^((k-1) epsilon) delta) for a group of k units, both rounded up; a delta of 1 says nothing."""
    check_delta(delta)
    if not 0 <= epsilon < inf:
        raise ValueError(f"epsilon must not be negative, got {epsilon}")
    grown = (_checked(size) - 1) * epsilon
    if grown > 700:
        return _raised(size * epsilon), Fraction(1)
    factor = Fraction(exp(grown) * (1 + MARGIN * (1 + grown)))
    return _raised(size * epsilon), min(Fraction(1), size * factor * delta)


def _checked(size: int) -> int:
    if type(size) is not int or size < 1:
        raise ValueError(f"a group has at least one unit, counted in whole ones, got {size!r}")
    return size
