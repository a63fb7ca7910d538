"""Generalised least squares the plain way: one column for every smallest cell, one row for every number seen.

Shares nothing with the product but the shapes of its input. Exact numbers are constraints. Where branches share the
whole, a smallest cell lies in one smallest area of each branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
import numpy.typing as npt

from estimation.tree import Tree

Floats = npt.NDArray[np.float64]
Leaf = tuple[int, ...]
"""One smallest area of each branch."""


@dataclass(frozen=True)
class Dense:
    """The smallest cells: (leaf, atom of the core, combination of free codes)."""

    tree: Tree
    sizes: tuple[int, ...]
    """How many codes each free attribute has."""
    atoms: int

    @property
    def leaves(self) -> list[Leaf]:
        """Every combination of smallest areas of the branches."""
        return list(product(*(range(levels[-1].areas) for levels in self.tree.branches)))

    @property
    def cells(self) -> int:
        """How many smallest cells there are."""
        return len(self.leaves) * self.atoms * prod(self.sizes)

    def above(self, level: str, leaf: Leaf) -> int:
        """The area of a level that a leaf lies in."""
        for levels, area in zip(self.tree.branches, leaf, strict=True):
            names = [one.name for one in levels]
            if level in names:
                found = area
                for one in levels[: names.index(level) : -1]:
                    found = int(one.parents[found])
                return found
        return 0

    def rows(self, level: str, free: Sequence[int], counted: Floats) -> Floats:
        """The matrix from smallest cells to the numbers of a margin: (area, core cell, free combination).

        `counted` says for each core cell and atom whether the atom counts in it.
        """
        lies = np.zeros((self.tree.levels[level], len(self.leaves)))
        for number, leaf in enumerate(self.leaves):
            lies[self.above(level, leaf), number] = 1
        return np.kron(lies, np.kron(counted, self._kept(free)))

    def _kept(self, free: Sequence[int]) -> Floats:
        """From all combinations of free codes to those of some attributes."""
        matrix = np.ones((1, 1))
        for axis, size in enumerate(self.sizes):
            matrix = np.kron(matrix, np.eye(size) if axis in free else np.ones((1, size)))
        return matrix


@dataclass(frozen=True)
class Solution:
    """The estimate of the smallest cells (of least norm) and its covariance on what is estimable."""

    cells: Floats
    covariance: Floats


def solve(matrix: Floats, numbers: Floats, variances: Floats) -> Solution:
    """Generalised least squares of numbers with independent noise; where the variance is zero they must hold."""
    exact = variances == 0
    free, start = np.eye(matrix.shape[1]), np.zeros(matrix.shape[1])
    if exact.any():
        _, values, vectors = np.linalg.svd(matrix[exact], full_matrices=True)
        free = vectors[int((values > 1e-9).sum()) :].T
        start = np.linalg.pinv(matrix[exact]) @ numbers[exact]
    inside = matrix[~exact] @ free
    inside[np.abs(inside) < 1e-9] = 0.0  # else rounding would pass for a measurement
    deviation = np.sqrt(variances[~exact])
    inverse = np.linalg.pinv(inside / deviation[:, None], rcond=1e-10)
    rest = (numbers[~exact] - matrix[~exact] @ start) / deviation
    return Solution(start + free @ inverse @ rest, free @ (inverse @ inverse.T) @ free.T)


def determined_by(matrix: Floats) -> Floats:
    """The projection onto what the numbers seen determine: it leaves a row as it is if they determine it."""
    _, values, vectors = np.linalg.svd(matrix, full_matrices=False)
    known = vectors[values > 1e-9]
    return known.T @ known
