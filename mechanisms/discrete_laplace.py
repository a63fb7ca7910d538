"""The discrete Laplace mechanism: integer counts in, integer counts out.

Guarantee: one call to `measure` is epsilon-DP with epsilon = L1 sensitivity / scale (Ghosh, Roughgarden and
Sundararajan 2012), and rho-zCDP with the smaller of two prices:
    epsilon tanh(epsilon / 2), because it is epsilon-DP;
    squared L2 sensitivity * (1/scale) tanh(1/(2 scale)), because a cell moved by the whole number d is (d/scale)-DP, so
    costs (d/scale) tanh(d/(2 scale)); tanh is concave, hence tanh(d x) <= d tanh(x) and d tanh(d x) <= d^2 tanh(x); and
    the cells add up, because their noise is independent.
Needs: integer counts, an exact sampler, a sensitivity that holds for every privacy unit.

The textbook's Laplace noise of scale b is offered in this form only: numbers are whole steps h, and scale is b/h steps.
With b = 10 and h = 1/1000 a draw exceeds 10 in size with probability 0.3679, as the continuous one does (1/e); floats
drawn from the continuous law are not private at all (Mironov 2012).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from numpy.typing import NDArray

from mechanisms.noise.integers import Integers
from mechanisms.noise.laws import LaplaceLaw
from mechanisms.noisy_counts import add_noise
from mechanisms.prices import affordable_epsilon, pure_to_rho
from mechanisms.randomness import Bits, Randomness, release_bits
from mechanisms.sensitivity import Sensitivity


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """Adds to every cell an independent integer x with probability proportional to exp(-|x| / scale)."""

    scale: Fraction

    def __post_init__(self) -> None:
        LaplaceLaw(self.scale)  # refuses what is no positive Fraction

    @property
    def name(self) -> str:
        """The name under which the ledger knows it."""
        return "discrete_laplace"

    @property
    def parameters(self) -> dict[str, Fraction]:
        """Everything that decides its law."""
        return {"scale": self.scale}

    @property
    def law(self) -> LaplaceLaw:
        """The law of the noise in one cell."""
        return LaplaceLaw(self.scale)

    @classmethod
    def costing(cls, sensitivity: Sensitivity, *, epsilon: Fraction | None = None, rho: Fraction | None = None) -> Self:
        """The least noisy one that costs no more: exactly `epsilon`, or the largest epsilon of 12 decimals in `rho`."""
        l1 = sensitivity.l1
        return cls(l1 / affordable_epsilon(lambda bought: cls(l1 / bought).rho(sensitivity), epsilon=epsilon, rho=rho))

    def epsilon(self, sensitivity: Sensitivity) -> Fraction:
        """The pure price: L1 sensitivity / scale."""
        return sensitivity.l1 / self.scale

    def rho(self, sensitivity: Sensitivity) -> Fraction:
        """The price in zCDP, rounded up to a multiple of 10^-12; the derivation is at the top of this file."""
        return min(pure_to_rho(self.epsilon(sensitivity)), pure_to_rho(1 / self.scale, times=sensitivity.l2_squared))

    def measure(self, counts: NDArray[Any], randomness: Randomness) -> Integers:
        """A noisy copy of `counts`: may be negative, is never rounded, and held only near the limits of 64 bits."""
        return self.answer(counts, release_bits(randomness))

    def measure_blocks(self, blocks: Iterable[NDArray[Any]], randomness: Randomness) -> Iterator[Integers]:
        """Blocks of one large table, measured one at a time as they are asked for, each with fresh bits."""
        return (self.measure(block, randomness) for block in blocks)

    def answer(self, counts: NDArray[Any], bits: Bits) -> Integers:
        """What `measure` returns, from any bits: for simulation; a release goes through `measure`."""
        return add_noise(counts, self.law, bits)
