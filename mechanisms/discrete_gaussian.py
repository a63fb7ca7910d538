"""The discrete Gaussian mechanism: integer counts in, integer counts out.

Guarantee: one call to `measure` is rho-zCDP with rho = squared L2 sensitivity / (2 variance), exactly (Canonne, Kamath
and Steinke 2020, multivariate case). It has no pure price.
Needs: integer counts, an exact sampler, a sensitivity that holds for every privacy unit.

The textbook's Gaussian noise is offered in this form only: numbers are whole steps h, and the variance of the
continuous noise is divided by h^2. The variance of a draw is never above the parameter, and equal to it in twelve
digits from a variance of 2 on. Formulas for the continuous noise are not valid for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from numpy.typing import NDArray

from mechanisms.noise.integers import Integers
from mechanisms.noise.laws import GaussianLaw, require_positive
from mechanisms.noisy_counts import add_noise
from mechanisms.randomness import Bits, Randomness, release_bits
from mechanisms.sensitivity import Sensitivity


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Adds to every cell an independent integer x with probability proportional to exp(-x^2 / (2 variance))."""

    variance: Fraction

    def __post_init__(self) -> None:
        GaussianLaw(self.variance)  # refuses what is no positive Fraction

    @property
    def name(self) -> str:
        """The name under which the ledger knows it."""
        return "discrete_gaussian"

    @property
    def parameters(self) -> dict[str, Fraction]:
        """Everything that decides its law."""
        return {"variance": self.variance}

    @property
    def law(self) -> GaussianLaw:
        """The law of the noise in one cell."""
        return GaussianLaw(self.variance)

    @classmethod
    def costing(cls, sensitivity: Sensitivity, *, rho: Fraction) -> Self:
        """The least noisy one that costs no more than `rho`: it costs exactly that."""
        require_positive(rho, "rho")
        return cls(sensitivity.l2_squared / (2 * rho))

    def epsilon(self, sensitivity: Sensitivity) -> Fraction | None:  # noqa: ARG002 - whatever the sensitivity
        """No pure price: whatever epsilon is, some outputs are more than e^epsilon times likelier."""
        return None

    def rho(self, sensitivity: Sensitivity) -> Fraction:
        """The price in zCDP: squared L2 sensitivity / (2 variance)."""
        return sensitivity.l2_squared / (2 * self.variance)

    def measure(self, counts: NDArray[Any], randomness: Randomness) -> Integers:
        """A noisy copy of `counts`: may be negative, is never rounded, and held only near the limits of 64 bits."""
        return self.answer(counts, release_bits(randomness))

    def measure_blocks(self, blocks: Iterable[NDArray[Any]], randomness: Randomness) -> Iterator[Integers]:
        """Blocks of one large table, measured one at a time as they are asked for, each with fresh bits."""
        return (self.measure(block, randomness) for block in blocks)

    def answer(self, counts: NDArray[Any], bits: Bits) -> Integers:
        """What `measure` returns, from any bits: for simulation; a release goes through `measure`."""
        return add_noise(counts, self.law, bits)
