"""What least squares is told: margins, and what was seen of them at which level."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from estimation.arrays import Floats, Numbers
from estimation.coordinates import Axes


@dataclass(frozen=True, eq=False)
class Margin:
    """A table's cells in coordinates: its free attributes in full, and each of its core cells as a row."""

    name: str
    free: Axes
    cells: Floats = field(repr=False)
    """(core cells, core coordinates)."""


@dataclass(frozen=True, eq=False)
class Observation:
    """Numbers of a margin for every area of a level: (areas, core cells, combinations of free codes).

    `variance` is that of the noise in one cell, for all areas or each; zero means that the numbers are exact.
    """

    margin: Margin
    level: str
    numbers: Numbers = field(repr=False)
    variance: Floats | float

    def __post_init__(self) -> None:
        spread = np.asarray(self.variance)
        if np.any(spread < 0) or (np.any(spread == 0) and not np.all(spread == 0)):
            raise ValueError(f"'{self.margin.name}': areas are all exact, or all measured with a positive variance")

    @cached_property
    def is_exact(self) -> bool:
        """Whether nothing was added to the numbers."""
        return bool(np.all(np.asarray(self.variance) == 0))

    @cached_property
    def precision(self) -> Floats:
        """One over the variance, for every area; zero where an area was not measured."""
        found: Floats = np.broadcast_to(np.asarray(self.variance, float), (len(self.numbers),))
        return np.where(np.isinf(found), 0.0, 1.0 / np.where(found == 0, 1.0, found))
