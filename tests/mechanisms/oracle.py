"""A second opinion on composition that shares no code with the accountant: polynomial products of balls in 330 bits.

Every law of loss is written down anew from its definition, as a polynomial whose coefficients are the probabilities of
evenly spaced losses. Products of polynomials compose. All arithmetic is in balls (python-flint), so every result comes
with its own error bound. Gaussian noise is cut where less than 10^-50 lies beyond.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt, lcm

from flint import arb, arb_poly, ctx, fmpq

BITS = 330
CUT = 120
"""Noise is cut where its density is exp(-120), below 10^-52, of the highest; for deltas below 10^-30 cut it later."""


def ball(value: Fraction | float) -> arb:
    """An exact number as a ball."""
    exact = Fraction(value)
    return arb(fmpq(exact.numerator, exact.denominator))


@dataclass(frozen=True)
class Law:
    """Losses with their probabilities, written out."""

    losses: tuple[Fraction, ...]
    masses: tuple[arb, ...]


def gaussian(variance: Fraction, shift: int, *, cut: int = CUT) -> Law:
    """The loss of discrete Gaussian noise x on a cell moved by shift: ln of density at x over density at x - shift."""
    ctx.prec = BITS
    reach = isqrt(ceil(2 * variance * cut)) + 1
    weights = [(-ball(Fraction(x * x) / (2 * variance))).exp() for x in range(-reach, reach + 1)]
    total = sum(weights, arb(0))
    losses = tuple(Fraction((x - shift) ** 2 - x**2) / (2 * variance) for x in range(-reach, reach + 1))
    return Law(losses, tuple(weight / total for weight in weights))


def laplace(scale: Fraction, shift: int) -> Law:
    """The loss of discrete Laplace noise: everything at or below 0, one by one, everything at or above the shift."""
    ctx.prec = BITS
    q = (-ball(1 / scale)).exp()
    end = 1 / (1 + q)
    between = [(1 - q) / (1 + q) * q**x for x in range(1, shift)]
    losses = tuple(Fraction(shift - 2 * x) / scale for x in range(shift + 1))
    return Law(losses, (end, *between, end * q**shift))


def response(epsilon: Fraction, choices: int) -> Law:
    """The loss of one answer among so many choices that is e^epsilon times likelier if it is true."""
    ctx.prec = BITS
    odds = ball(epsilon).exp()
    total = odds + choices - 1
    return Law((epsilon, Fraction(0), -epsilon), (odds / total, arb(choices - 2) / total, 1 / total))


class Composed:
    """The law of the sum of all losses."""

    def __init__(self, laws: list[tuple[Law, int]]) -> None:
        ctx.prec = BITS
        steps = [loss - law.losses[0] for law, _ in laws for loss in law.losses]
        below = lcm(*(step.denominator for step in steps))
        whole = [int(step * below) for step in steps]
        self.spacing = Fraction(_gcd(whole), below)
        product, self.lowest = arb_poly([1]), Fraction(0)
        for law, count in laws:
            low = min(law.losses)
            coefficients = [arb(0)] * (int((max(law.losses) - low) / self.spacing) + 1)
            for loss, mass in zip(law.losses, law.masses, strict=True):
                coefficients[int((loss - low) / self.spacing)] += mass
            product *= arb_poly(coefficients) ** count
            self.lowest += count * low
        self.masses = product.coeffs()

    def delta(self, epsilon: float) -> arb:
        """Sum over losses above epsilon of P(loss) (1 - e^(epsilon - loss))."""
        ctx.prec = BITS
        first = max(0, (Fraction(epsilon) - self.lowest) // self.spacing + 1)
        if first >= len(self.masses):
            return arb(0)
        above, ratio = arb_poly(self.masses[first:]), (-ball(self.spacing)).exp()
        return above(arb(1)) - ball(Fraction(epsilon) - self.lowest - first * self.spacing).exp() * above(ratio)


def _gcd(numbers: list[int]) -> int:
    result = 0
    for number in numbers:
        while number:
            result, number = number, result % number  # noqa: PLW2901 - Euclid's algorithm
    return abs(result)
