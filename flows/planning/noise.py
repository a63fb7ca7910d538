"""The noise of a query as estimation knows it: a law of the mechanisms' room, with what error reports ask of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import log, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from estimation.intervals import normal_quantile
from mechanisms.catalogue import rebuild
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.noise.laws import WIDE, GaussianLaw, LaplaceLaw
from mechanisms.noise.sampling import draw
from mechanisms.noise.seeded import SeededBits

SEEDS = 2**62
"""Seeds of simulated draws lie below this."""


@dataclass(frozen=True)
class CellNoise:
    """The law of the noise in one cell, with its exact variance."""

    law: GaussianLaw | LaplaceLaw

    @cached_property
    def variance(self) -> float:
        """The variance of a draw."""
        return self.law.variance_of_draw()

    @property
    def is_gaussian(self) -> bool:
        """Whether sums of it are as good as normal."""
        return isinstance(self.law, GaussianLaw)

    def margin(self, confidence: Fraction) -> float:
        """The least distance from zero that a draw keeps with this confidence."""
        return float(self.law.margin(confidence))

    def rough_margin(self, confidence: Fraction) -> float | None:
        """That of continuous noise: within 1 of the exact one, and known at once; None for narrow noise."""
        if self.variance < WIDE:
            return None
        if self.is_gaussian:
            return normal_quantile(confidence) * sqrt(self.variance)
        return -sqrt(self.variance / 2) * log(1 - confidence)

    def draw(self, size: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """So many seeded draws, for simulations around published tables; a release draws through its mechanism."""
        return draw(self.law, size, SeededBits(int(rng.integers(SEEDS))))


def noise_of(described: Mapping[str, Any]) -> CellNoise:
    """The noise of a measurement in a release, from its `mechanism` and `parameters`. Raises `ValueError`."""
    parameters = {str(name): Fraction(str(value)) for name, value in described["parameters"].items()}
    mechanism = rebuild(str(described["mechanism"]), parameters)
    if not isinstance(mechanism, DiscreteLaplace | DiscreteGaussian):
        raise ValueError(f"{mechanism.name} does not add noise to every cell")  # noqa: TRY004 - told like any other wrong value
    return CellNoise(mechanism.law)
