"""Prices that are not rational: logarithms and hyperbolic tangents, rounded to multiples of 10^-12 the safe way.

Every rounding is decided by integers that enclose the true number: where both ends do not round alike, precision is
doubled. That ends, because exp(x) is irrational for every rational x but 0. A price is rounded up, what a budget buys
is rounded down, and no float is on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

from mechanisms.noise.exponentials import Enclosure, exp_neg
from mechanisms.noise.laws import require_positive

GRAIN = Fraction(1, 10**12)
"""Irrational prices are multiples of this."""
FIRST_PRECISION = 128
KEPT = 4096
"""Prices remembered; a plan asks for the same ones again and again."""


@lru_cache(maxsize=KEPT, typed=True)
def ln_up(odds: Fraction) -> Fraction:
    """The natural logarithm of odds of at least 1, rounded up."""
    if odds < 1:
        raise ValueError(f"odds of a true answer are at least 1, got {odds}")
    low, high = -1, ceil(odds).bit_length() * 7 * 10**11  # ln 2 is below 0.7
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _exp_reaches(odds, middle * GRAIN) else (middle, high)
    return high * GRAIN


def _exp_reaches(odds: Fraction, x: Fraction) -> bool:
    """Whether exp(x) is at least these odds, for x >= 0."""
    if x == 0:
        return odds == 1
    precision = FIRST_PRECISION + ceil(odds).bit_length()
    while True:
        inverse, one = exp_neg(x, precision), odds.denominator << precision
        if inverse.high * odds.numerator <= one:
            return True
        if inverse.low * odds.numerator > one:
            return False
        precision *= 2


@lru_cache(maxsize=KEPT, typed=True)
def exp_down(x: Fraction) -> Fraction:
    """exp(x) for x >= 0, rounded down: the largest odds that a pure price of x buys."""

    def bounds(inverse: Enclosure, one: int) -> tuple[Fraction, Fraction]:
        return Fraction(one, inverse.high), Fraction(one, inverse.low)  # 2 ceil(x) bits keep exp(-x) above 0

    return _rounded(floor, bounds, x, FIRST_PRECISION + 2 * ceil(x))


@lru_cache(maxsize=KEPT, typed=True)
def pure_to_rho(epsilon: Fraction, times: Fraction = Fraction(1)) -> Fraction:
    """times * epsilon * tanh(epsilon / 2), rounded up once: what pure mechanisms cost in zCDP.

    Guarantee: every epsilon-DP mechanism is epsilon * tanh(epsilon / 2)-zCDP. Its worst pair of outputs is that of
    randomised response (Kairouz, Oh and Viswanath 2015), and of all orders a of Renyi divergence that pair's
    divergence over a is largest as a falls to 1 (Harrison and Manurangsi 2025; the epsilon^2 / 2 of Bun and Steinke
    2016 is looser). `tests/mechanisms/test_prices.py` compares it with 400 orders.
    """
    require_positive(epsilon, "epsilon")

    def bounds(inverse: Enclosure, one: int) -> tuple[Fraction, Fraction]:
        return (
            times * epsilon * Fraction(one - inverse.high, one + inverse.high),
            times * epsilon * Fraction(one - inverse.low, one + inverse.low),
        )

    return _rounded(ceil, bounds, epsilon, FIRST_PRECISION)


def _rounded(
    to_whole: Callable[[Fraction], int],
    bounds: Callable[[Enclosure, int], tuple[Fraction, Fraction]],
    x: Fraction,
    precision: int,
) -> Fraction:
    """A number between the bounds that follow from an enclosure of exp(-x), as whole grains."""
    while True:
        low, high = (to_whole(end / GRAIN) for end in bounds(exp_neg(x, precision), 1 << precision))
        if low == high:
            return low * GRAIN
        precision *= 2


def affordable_epsilon(
    price: Callable[[Fraction], Fraction], *, epsilon: Fraction | None = None, rho: Fraction | None = None
) -> Fraction:
    """The largest pure epsilon that a budget buys, stated in one of the two currencies.

    `price` is the rho of a pure epsilon and grows with it. A budget in rho buys a multiple of 10^-12.
    """
    if epsilon is not None and rho is None:
        require_positive(epsilon, "epsilon")
        return epsilon
    if rho is not None and epsilon is None:
        require_positive(rho, "rho")
        return _largest_within(price, rho)
    raise ValueError("a budget is stated in one currency: give epsilon or rho")


def _largest_within(price: Callable[[Fraction], Fraction], rho: Fraction) -> Fraction:
    """By doubling and halving; what is returned was itself priced."""
    if price(GRAIN) > rho:
        raise ValueError(f"rho {rho} is less than the smallest price of this mechanism, {price(GRAIN)}; raise it")
    low, high = 1, 2
    while price(high * GRAIN) <= rho:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if price(middle * GRAIN) <= rho else (low, middle)
    return low * GRAIN
