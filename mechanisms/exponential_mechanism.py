"""The exponential mechanism: selects a candidate with probability proportional to exp(score / scale).

Guarantee: where no unit moves any score by more than D, one call to `measure` is epsilon-DP with epsilon = 2 D / scale
(McSherry and Talwar 2007: probability proportional to exp(epsilon * score / (2 D)); no discount for monotone scores).
Its privacy loss has a range of at most epsilon, so it is epsilon^2 / 8-zCDP (Cesar and Rogers 2021); from an epsilon
of about 8 on the price of any pure mechanism, epsilon tanh(epsilon / 2), is the smaller.
Needs: integer scores, declared candidates, `sensitivity.l1` = D, exact coins.

Utility: with R candidates a score below the best by scale * (ln R + t) or more has probability at most e^-t.

The draw is by rejection: a uniform candidate is kept with probability exp(-gap / scale). The law is exact; how many
batches of candidates it takes, and so its time, depends on the scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mechanisms.noise.bernoulli import uniform_below
from mechanisms.noise.laws import require_positive
from mechanisms.prices import affordable_epsilon, pure_to_rho
from mechanisms.randomness import Bits, Randomness, release_bits
from mechanisms.scores import Gaps, coins_for_gaps, gaps_below_best
from mechanisms.sensitivity import Sensitivity

BATCH = 1 << 12
"""The most candidates that are proposed at a time."""


@dataclass(frozen=True, slots=True)
class ExponentialMechanism:
    """Selects one candidate; `scale` is the loss of score that makes it less probable by a factor e."""

    scale: Fraction

    def __post_init__(self) -> None:
        require_positive(self.scale, "scale")

    @property
    def name(self) -> str:
        """The name under which the ledger knows it."""
        return "exponential"

    @property
    def parameters(self) -> dict[str, Fraction]:
        """Everything that decides its law."""
        return {"scale": self.scale}

    @classmethod
    def costing(cls, sensitivity: Sensitivity, *, epsilon: Fraction | None = None, rho: Fraction | None = None) -> Self:
        """The sharpest one that costs no more: exactly `epsilon`, or the largest epsilon of 12 decimals in `rho`."""
        return cls(2 * sensitivity.l1 / affordable_epsilon(_rho, epsilon=epsilon, rho=rho))

    def epsilon(self, sensitivity: Sensitivity) -> Fraction:
        """The pure price: twice the furthest that a unit moves one score, over the scale."""
        return 2 * sensitivity.l1 / self.scale

    def rho(self, sensitivity: Sensitivity) -> Fraction:
        """The price in zCDP: epsilon^2 / 8, or that of any pure mechanism where it is smaller."""
        return _rho(self.epsilon(sensitivity))

    def measure(self, scores: NDArray[Any], randomness: Randomness) -> int:
        """The place of the selected candidate."""
        return self.answer(scores, release_bits(randomness))

    def answer(self, scores: NDArray[Any], bits: Bits) -> int:
        """What `measure` returns, from any bits: for simulation; a release goes through `measure`."""
        return self.choose(gaps_below_best(scores), bits)

    def choose(self, gaps: Gaps, bits: Bits) -> int:
        """The same from the distances to the best score: the first proposed candidate that is kept."""
        while True:
            proposed = uniform_below(len(gaps), min(len(gaps), BATCH), bits)
            kept = proposed[np.flatnonzero(coins_for_gaps(gaps[proposed], self.scale, bits))]
            if len(kept):
                return int(kept[0])


def _rho(epsilon: Fraction) -> Fraction:
    return min(epsilon**2 / 8, pure_to_rho(epsilon))
