"""What this room is given: noisy numbers of tallies, and exact ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np

from estimation.arrays import Floats, Integers
from release_specs.tallies import Tally


class Noise(Protocol):
    """The law of the noise in one cell, as the mechanisms' room describes it."""

    @property
    def variance(self) -> float:
        """Its variance."""

    @property
    def is_gaussian(self) -> bool:
        """Whether sums of it are as good as normal."""

    def margin(self, confidence: Fraction) -> float:
        """The least distance from zero that a draw keeps with this confidence."""

    def draw(self, size: int, rng: np.random.Generator) -> Integers:
        """Seeded noise of this law, for simulations around published tables."""


@dataclass(frozen=True, eq=False)
class Measurement:
    """Noisy counts of a tally at one level, as measured: (area, cell), every declared cell, areas as published.

    `scales` multiplies the noise's variance area by area where budgets differ; infinite for an area left unmeasured.
    """

    tally: Tally
    level: str | None
    numbers: Integers = field(repr=False)
    noise: Noise
    scales: Floats | None = field(repr=False, default=None)

    def __post_init__(self) -> None:
        expected = (self.tally.areas(self.level), self.tally.cells)
        if self.numbers.shape != expected:
            raise ValueError(f"'{self.tally.name}' at '{self.level}' has {expected} numbers, got {self.numbers.shape}")

    @property
    def variances(self) -> Floats:
        """The variance of the noise in a cell of each area."""
        found = np.full(len(self.numbers), float(self.noise.variance))
        return found if self.scales is None else found * self.scales


@dataclass(frozen=True, eq=False)
class ExactNumbers:
    """Numbers of a tally at one level that are published without noise."""

    tally: Tally
    level: str | None
    numbers: Integers = field(repr=False)
