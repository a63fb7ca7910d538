"""Permute-and-flip: candidates in random order, each tossing a coin that falls heads the surer the better its score.

Guarantee: where no unit moves any score by more than D, one call to `measure` is epsilon-DP with epsilon = 2 D / scale
(McKenna and Sheldon 2020). In zCDP it costs epsilon tanh(epsilon / 2) like any pure mechanism: its privacy
loss is not bounded in range, so the exponential mechanism's epsilon^2 / 8 does not hold for it.
Needs: integer scores, declared candidates, `sensitivity.l1` = D, exact coins and a uniform order.

Its expected loss of score is never above that of the exponential mechanism at the same epsilon (the same paper). The
best candidate always tosses heads. All coins are tossed whatever the scores, so the work does not depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from numpy.typing import NDArray

from mechanisms.noise.bernoulli import permutation
from mechanisms.noise.laws import require_positive
from mechanisms.prices import affordable_epsilon, pure_to_rho
from mechanisms.randomness import Bits, Randomness, release_bits
from mechanisms.scores import coins_for_gaps, gaps_below_best
from mechanisms.sensitivity import Sensitivity


@dataclass(frozen=True, slots=True)
class PermuteAndFlip:
    """Selects the first candidate of a random order whose coin, heads with exp((score - best) / scale), is heads."""

    scale: Fraction

    def __post_init__(self) -> None:
        require_positive(self.scale, "scale")

    @property
    def name(self) -> str:
        """The name under which the ledger knows it."""
        return "permute_and_flip"

    @property
    def parameters(self) -> dict[str, Fraction]:
        """Everything that decides its law."""
        return {"scale": self.scale}

    @classmethod
    def costing(cls, sensitivity: Sensitivity, *, epsilon: Fraction | None = None, rho: Fraction | None = None) -> Self:
        """The sharpest one that costs no more: exactly `epsilon`, or the largest epsilon of 12 decimals in `rho`."""
        return cls(2 * sensitivity.l1 / affordable_epsilon(pure_to_rho, epsilon=epsilon, rho=rho))

    def epsilon(self, sensitivity: Sensitivity) -> Fraction:
        """The pure price: twice the furthest that a unit moves one score, over the scale."""
        return 2 * sensitivity.l1 / self.scale

    def rho(self, sensitivity: Sensitivity) -> Fraction:
        """The price in zCDP: that of any pure mechanism."""
        return pure_to_rho(self.epsilon(sensitivity))

    def measure(self, scores: NDArray[Any], randomness: Randomness) -> int:
        """The place of the selected candidate."""
        return self.answer(scores, release_bits(randomness))

    def answer(self, scores: NDArray[Any], bits: Bits) -> int:
        """What `measure` returns, from any bits: for simulation; a release goes through `measure`."""
        gaps = gaps_below_best(scores)
        heads = coins_for_gaps(gaps, self.scale, bits)
        order = permutation(len(gaps), bits)
        return int(order[heads[order].argmax()])
