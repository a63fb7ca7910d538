"""Generalised least squares the plain way: one column for every smallest cell, one row for every number seen.

Shares nothing with the product but the shapes of its input. Exact numbers are constraints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from estimation.observations import Margin, Observation
from estimation.tree import Tree

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Dense:
    """The problem written out: `atoms` has for each core atom its row of core coordinates."""

    tree: Tree
    sizes: tuple[int, ...]
    atoms: Floats
    observations: Sequence[Observation]

    def leaves(self) -> list[tuple[int, int]]:
        """Branch 0's smallest areas; other branches cannot be written out this way."""
        levels = self.tree.branches[0] if self.tree.branches else ()
        return [(0, leaf) for leaf in range(levels[-1].areas if levels else 1)]

    def above(self, level: str, leaf: int) -> int:
        """The area of a level that a smallest area lies in."""
        if level == self.tree.whole:
            return 0
        levels = self.tree.branches[0]
        depth = [one.name for one in levels].index(level)
        for one in levels[:depth:-1]:
            leaf = int(one.parents[leaf])
        return leaf

    def rows(self, margin: Margin, level: str, *, seen: Floats) -> Floats:
        """The matrix from smallest cells (leaf, atom, free) to (area, core cell, free combination).

        `seen` says for each core cell and atom whether the atom counts in it.
        """
        leaves = len(self.leaves())
        free = np.array(list(np.ndindex(*self.sizes))) if self.sizes else np.zeros((1, 0), int)
        kept = [tuple(codes[list(margin.free)]) for codes in free]
        combinations = sorted(set(kept))
        folded = np.zeros((len(combinations), len(free)))
        for column, codes in enumerate(kept):
            folded[combinations.index(codes), column] = 1
        areas = self.tree.levels[level]
        lies = np.zeros((areas, leaves))
        for leaf in range(leaves):
            lies[self.above(level, leaf), leaf] = 1
        return np.kron(lies, np.kron(seen, folded))


def solve(rows: list[Floats], numbers: list[Floats], variances: list[Floats]) -> tuple[Floats, Floats]:
    """The estimate of the cells (of least norm) and its covariance on what is estimable."""
    matrix, seen, noise = np.concatenate(rows), np.concatenate(numbers), np.concatenate(variances)
    exact = noise == 0
    fixed, target = matrix[exact], seen[exact]
    if len(fixed):
        _, values, vectors = np.linalg.svd(fixed, full_matrices=True)
        rank = int((values > 1e-9).sum())
        free, start = vectors[rank:].T, np.linalg.pinv(fixed) @ target
    else:
        free, start = np.eye(matrix.shape[1]), np.zeros(matrix.shape[1])
    inside = matrix[~exact] @ free
    inside[np.abs(inside) < 1e-9] = 0.0  # else rounding would pass for a measurement
    weighted = inside / np.sqrt(noise[~exact])[:, None]
    rest = (seen[~exact] - matrix[~exact] @ start) / np.sqrt(noise[~exact])
    inverse = np.linalg.pinv(weighted, rcond=1e-10)
    return start + free @ inverse @ rest, free @ (inverse @ inverse.T) @ free.T
