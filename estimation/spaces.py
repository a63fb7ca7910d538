"""What is known in each part at each level: exactly, from measurements, or not at all.

A direction is known exactly at a level if an exact total of that level or of one below tells it, and measured if a
measurement does. Every area of a level has the same measurements, though perhaps not of the same precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from estimation.arrays import Floats
from estimation.coordinates import Coordinates
from estimation.kernels.blocks import orthonormal
from estimation.observations import Margin, Observation


@dataclass(frozen=True, eq=False)
class Spaces:
    """For each part an orthonormal basis of what is exact, and one of what is measured besides."""

    exact: tuple[Floats, ...]
    measured: tuple[Floats, ...]

    @classmethod
    def spanned_by(cls, coordinates: Coordinates, core: int, observations: Sequence[Observation]) -> Spaces:
        """What these observations tell."""
        exact, measured = [], []
        known: dict[tuple[int, ...], tuple[Floats, Floats]] = {}
        for part in coordinates.parts:
            seen = [one for one in observations if set(part) <= set(one.margin.free)]
            key = tuple(id(one) for one in seen)
            if key not in known:
                rows = [_rows([one for one in seen if one.is_exact is wanted], core) for wanted in (True, False)]
                sure = orthonormal(rows[0], np.zeros((0, core)))
                known[key] = sure, orthonormal(rows[1], sure)
            exact.append(known[key][0])
            measured.append(known[key][1])
        return cls(tuple(exact), tuple(measured))

    def hold(self, coordinates: Coordinates, margin: Margin) -> bool:
        """Whether every cell of a margin is known."""
        for number, part in enumerate(coordinates.parts):
            if set(part) <= set(margin.free):
                core = margin.cells.shape[1]
                basis = np.concatenate([self.exact[number], self.measured[number]]).reshape(-1, core)
                left = margin.cells - margin.cells @ basis.T @ basis
                if np.abs(left).max(initial=0) > 1e-8:
                    return False
        wanted = {part for part in coordinates.parts if set(part) <= set(margin.free)}
        return bool(len(wanted) == 2 ** len(margin.free))


def _rows(observations: Sequence[Observation], core: int) -> Floats:
    margins = {id(one.margin): one.margin.cells for one in observations}
    return np.ascontiguousarray(np.concatenate([np.zeros((0, core)), *margins.values()]))
