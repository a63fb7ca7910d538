"""Report noisy max: discrete Laplace noise on every score, and the place of the largest is told; ties go to the first.

Guarantee: where no unit moves any score by more than D, one call to `measure` is epsilon-DP with
epsilon = ceil(2 D) / scale, that is 2 D / scale where 2 D is whole, whatever the number of candidates (Dwork and Roth
2014, section 3.3, for continuous noise). In zCDP it costs epsilon tanh(epsilon / 2) like any pure mechanism.

Proof for integers and ties. Fix a candidate i and the noise of all others. Candidate i is told exactly if its own noise
is at least r, the largest over j of score_j + noise_j + [j before i], less score_i: a whole number, since a tie goes
to the earlier. For a neighbour that largest and score_i move by at most D each, so r grows by a whole number k <= 2 D.
Noise x + 1 is at least e^(-1/scale) times as probable as noise x, for every x, so the probability of noise of at
least r + k is at least e^(-k/scale) times that of at least r. Averaging over the noise of the others ends the proof.
Nothing in it allows noise with an end, so a draw that 64 bits hold at their limit is drawn on beyond it.
Needs: integer scores, declared candidates, `sensitivity.l1` = D, an exact sampler.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mechanisms.noise.integers import LARGEST
from mechanisms.noise.laws import LaplaceLaw
from mechanisms.noise.sampling import draw
from mechanisms.prices import affordable_epsilon, pure_to_rho
from mechanisms.randomness import Bits, Randomness, release_bits
from mechanisms.scores import NARROW, gaps_below_best
from mechanisms.sensitivity import Sensitivity


@dataclass(frozen=True, slots=True)
class NoisyMax:
    """Selects the candidate whose score is largest after discrete Laplace noise of this scale on every score."""

    scale: Fraction

    def __post_init__(self) -> None:
        LaplaceLaw(self.scale)  # refuses what is no positive Fraction

    @property
    def name(self) -> str:
        """The name under which the ledger knows it."""
        return "noisy_max"

    @property
    def parameters(self) -> dict[str, Fraction]:
        """Everything that decides its law."""
        return {"scale": self.scale}

    @classmethod
    def costing(cls, sensitivity: Sensitivity, *, epsilon: Fraction | None = None, rho: Fraction | None = None) -> Self:
        """The least noisy one that costs no more: exactly `epsilon`, or the largest epsilon of 12 decimals in `rho`."""
        return cls(ceil(2 * sensitivity.l1) / affordable_epsilon(pure_to_rho, epsilon=epsilon, rho=rho))

    def epsilon(self, sensitivity: Sensitivity) -> Fraction:
        """The pure price: twice the furthest that a unit moves one score, rounded up to whole, over the scale."""
        return ceil(2 * sensitivity.l1) / self.scale

    def rho(self, sensitivity: Sensitivity) -> Fraction:
        """The price in zCDP: that of any pure mechanism."""
        return pure_to_rho(self.epsilon(sensitivity))

    def measure(self, scores: NDArray[Any], randomness: Randomness) -> int:
        """The place of the selected candidate."""
        return self.answer(scores, release_bits(randomness))

    def answer(self, scores: NDArray[Any], bits: Bits) -> int:
        """What `measure` returns, from any bits: for simulation; a release goes through `measure`."""
        gaps = gaps_below_best(scores)
        return int(np.argmax(self._noise(len(gaps), bits) - gaps))

    def _noise(self, count: int, bits: Bits) -> NDArray[Any]:
        """Unbounded noise: 64-bit integers where a gap can be taken off without overflow, else Python's."""
        noise = draw(LaplaceLaw(self.scale), count, bits)
        if int(np.abs(noise).max()) < NARROW:
            return noise
        wide = noise.astype(object)
        for lane in np.flatnonzero(np.abs(noise) == LARGEST):
            wide[lane] += self._beyond(bits) * (1 if noise[lane] > 0 else -1)
        return wide

    def _beyond(self, bits: Bits) -> int:
        """How far a draw of at least LARGEST lies beyond it: a law without memory starts anew from any point."""
        beyond = 0
        while (step := int(draw(LaplaceLaw(self.scale), 1, bits)[0])) < 0 or step == LARGEST:
            beyond += max(0, step)
        return beyond + step
