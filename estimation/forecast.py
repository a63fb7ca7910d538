"""The error of the unbiased estimates in an average area, before any data: from margins, variances and fan-outs alone.

A spine is described by how many children an area of each level has on average, whole or not. Where the areas themselves
are known, `variances.places` gives the error of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from estimation.arrays import Floats
from estimation.coordinates import Coordinates
from estimation.observations import Margin, Observation
from estimation.spaces import Spaces
from estimation.stages import own_information, within


@dataclass(frozen=True, eq=False)
class AverageLevel:
    """A level: the variance of the noise in one cell of each margin measured there (0: exact), and its fan-out."""

    name: str
    variances: Mapping[str, float]
    children: float = 0.0
    """How many areas of the next level lie in one of this, on average; 0 for the smallest."""


@dataclass(frozen=True, eq=False)
class Forecast:
    """Covariances of the best estimates in an average area of each level: (part, core, core)."""

    coordinates: Coordinates
    best: dict[str, Floats] = field(repr=False)

    def deviation(self, margin: Margin, level: str) -> Floats:
        """The standard deviation of each core cell of a margin, the same for all combinations of free codes."""
        spread = self.coordinates.spread(margin.free, margin.free, alike=margin.free)
        variances = np.einsum("p,ci,pij,cj->c", spread, margin.cells, self.best[level], margin.cells)
        found: Floats = np.sqrt(np.maximum(variances, 0.0))
        return found


def forecast(
    coordinates: Coordinates, core: int, *, margins: Sequence[Margin], levels: Sequence[AverageLevel]
) -> Forecast:
    """What least squares will make of measurements with these variances, level by level from the whole down."""
    by_name = {margin.name: margin for margin in margins}
    seen = [_observations(level, by_name, coordinates) for level in levels]
    covariance, upwards = [np.zeros(0)] * len(levels), [np.zeros(0)] * len(levels)
    for depth in range(len(levels) - 1, -1, -1):
        below = [one for later in seen[depth:] for one in later]
        spaces = Spaces.spanned_by(coordinates, core, below)
        _, information = own_information(seen[depth], coordinates, core=core, areas=1)
        if depth + 1 < len(levels):
            lower = Spaces.spanned_by(coordinates, core, [one for later in seen[depth + 1 :] for one in later])
            upwards[depth] = within(levels[depth].children * covariance[depth + 1], lower.measured)
            information = information + upwards[depth]
        covariance[depth] = within(information, spaces.measured)
    best = {levels[0].name: covariance[0][0]}
    for depth in range(1, len(levels)):
        mine, above, passed = covariance[depth][0], best[levels[depth - 1].name], upwards[depth - 1][0]
        best[levels[depth].name] = mine - mine @ (passed - passed @ above @ passed) @ mine
    return Forecast(coordinates, best)


def _observations(level: AverageLevel, margins: Mapping[str, Margin], coordinates: Coordinates) -> list[Observation]:
    found = []
    for name, variance in level.variances.items():
        margin = margins[name]
        shape = (1, len(margin.cells), coordinates.cells(margin.free))
        found.append(Observation(margin, level.name, np.zeros(shape), float(variance)))
    return found
