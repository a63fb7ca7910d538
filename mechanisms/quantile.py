"""A quantile on a declared grid, selected by the exponential mechanism from exact counts on the grid's points.

The score of a grid point is minus the distance between its rank and q * n. A point on which records sit has every rank
from the number of records below it to that number with its own, and the rank nearest to q * n counts: where half of
all records share one value, that value is their median.

Guarantee: that of `ExponentialMechanism` with D = max(q, 1 - q) for a record that comes or goes and 1 for an exchange,
times the records of a group: `Scores(quantile=q)`. Proof: the distance is the largest of 0, below - q n and
q n - up_to. One record more moves `below` and `up_to` by 0 or 1 and q n by q, so each of the three by at most
max(q, 1 - q), and their largest by no more; an exchanged record moves each from one of -q, 0, 1 - q to another.
Needs: exact counts of the clipped values on the grid, in its order; a scale in ranks. No records at all are allowed:
every point is then equally probable.

All is counted in units of 1/(denominator of q), in which scores and D are whole; the scale is multiplied alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.exponential_mechanism import ExponentialMechanism
from mechanisms.randomness import Bits, Randomness, release_bits
from mechanisms.scores import NARROW, Gaps, as_candidates
from mechanisms.sensitivity import Scores


@dataclass(frozen=True, slots=True)
class Quantile:
    """Selects the grid point nearest to a quantile; the mechanism's scale is in ranks and is what is charged."""

    quantile: Fraction
    mechanism: ExponentialMechanism

    def __post_init__(self) -> None:
        Scores(quantile=self.quantile)  # refuses what is no Fraction between 0 and 1

    def measure(self, counts: NDArray[Any], randomness: Randomness) -> int:
        """The place of the selected grid point, from the number of records on each."""
        return self.answer(counts, release_bits(randomness))

    def answer(self, counts: NDArray[Any], bits: Bits) -> int:
        """What `measure` returns, from any bits: for simulation; a release goes through `measure`."""
        distances = self.distances(counts)
        scaled = replace(self.mechanism, scale=self.mechanism.scale * self.quantile.denominator)
        return scaled.choose(distances - distances.min(), bits)

    def distances(self, counts: NDArray[Any]) -> Gaps:
        """How far each point's rank is from q * n, in units of 1/(denominator of q)."""
        held = as_candidates(counts)
        if (held < 0).any():
            raise ValueError("counts on a grid are not negative: pass exact counts, not noisy ones")
        unit, total = self.quantile.denominator, sum(held.tolist())
        wanted = self.quantile.numerator * total
        own = held.astype(np.int64 if unit * total <= NARROW else object) * unit
        up_to = np.cumsum(own)
        distances: Gaps = np.maximum(np.maximum(up_to - own - wanted, wanted - up_to), 0)
        return distances
