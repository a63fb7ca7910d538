"""exp(-x) in integers, rounded both ways.

Every number of the samplers that is not rational is held as an `Enclosure`: two integers between which the true value
times 2^precision lies. Precision is asked for, never assumed: who cannot decide asks again with more of it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

GUARD = 40
"""Extra bits of the working precision; rounding costs fewer than 32 of them."""


class Enclosure(NamedTuple):
    """low <= value * 2^precision <= high, for the precision that was asked for."""

    low: int
    high: int


def shifted_up(value: int, by: int) -> int:
    """value / 2^by, rounded up; `>>` rounds down."""
    return -(-value >> by)


def divided_up(value: int, by: int) -> int:
    """value / by, rounded up; `//` rounds down."""
    return -(-value // by)


def product(first: Enclosure, second: Enclosure, precision: int) -> Enclosure:
    """The product of two non-negative enclosures."""
    return Enclosure((first.low * second.low) >> precision, shifted_up(first.high * second.high, precision))


def exp_neg(x: Fraction, precision: int) -> Enclosure:
    """Encloses exp(-x), x >= 0, within a few units of the last place.

    The argument is halved until it is below 2^-8, the alternating series is summed, and the sum is squared back.
    In units of the working precision: the rounded argument costs at most 1, each of the n terms at most 2, the rest
    of the series 1, so 2n + 2; a squaring of a number below 1 turns an error e into at most 2e + 2.
    """
    if x < 0:
        raise ValueError(f"exp_neg takes x >= 0, got {x}")
    if x == 0:
        return Enclosure(1 << precision, 1 << precision)
    whole = x.numerator // x.denominator
    if whole > precision:  # exp(-whole) < 2^-whole
        return Enclosure(0, 1)
    halvings = whole.bit_length() + 8
    working = precision + GUARD + halvings
    argument = (x.numerator << (working - halvings)) // x.denominator
    term = total = 1 << working
    terms = 0
    while term:
        terms += 1
        term = (term * argument) // (terms << working)
        total += -term if terms % 2 else term
    error = 2 * terms + 2
    for _ in range(halvings):
        total = (total * total) >> working
        error = 2 * error + 2
    return Enclosure(max(0, total - error) >> (working - precision), shifted_up(total + error, working - precision))
