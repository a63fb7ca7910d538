"""Small made-up problems of least squares: a tree of areas, margins of a few attributes, and what was seen of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from estimation.coordinates import Coordinates
from estimation.kernels.blocks import added_up
from estimation.least_squares import Fit, fit
from estimation.observations import Margin, Observation
from estimation.stages import Stage
from estimation.tree import Level, Tree
from estimation.variances import Cell, Place, places
from tests.estimation.dense import Dense, Solution, determined_by, solve

Floats = npt.NDArray[np.float64]
WHOLE = "whole"


@dataclass(frozen=True)
class Small:
    """A problem in the product's terms, and written out. Its core coordinates are the core's atoms."""

    tree: Tree
    sizes: tuple[int, ...]
    atoms: int
    margins: Sequence[Margin]
    observations: Sequence[Observation]

    @property
    def dense(self) -> Dense:
        """Its smallest cells."""
        return Dense(self.tree, self.sizes, self.atoms)

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates that its margins see."""
        return Coordinates.seen_by(self.sizes, [margin.free for margin in self.margins])

    @cached_property
    def fit(self) -> Fit:
        """What the product makes of it."""
        return fit(self.tree, self.observations, coordinates=self.coordinates, core=self.atoms)

    @cached_property
    def places(self) -> dict[str, Place]:
        """Every level with its covariances."""
        return places(self.fit.whole)

    @cached_property
    def best(self) -> dict[str, Floats]:
        """The product's best estimates at every level."""
        return best_estimates(self.fit)

    @cached_property
    def solution(self) -> Solution:
        """What generalised least squares makes of it."""
        numbers = np.concatenate([one.numbers.ravel() for one in self.observations])
        return solve(self._seen, numbers.astype(float), np.concatenate([_by_cell(one) for one in self.observations]))

    @cached_property
    def _seen(self) -> Floats:
        return np.concatenate([self.rows(one.level, one.margin) for one in self.observations])

    def rows(self, level: str, margin: Margin) -> Floats:
        """From smallest cells to the numbers of a margin at a level."""
        return self.dense.rows(level, margin.free, margin.cells)

    @cached_property
    def _determined(self) -> Floats:
        return determined_by(self._seen)

    def is_determined(self, level: str, margin: Margin) -> bool:
        """Whether what was seen determines a margin at a level."""
        rows = self.rows(level, margin)
        return bool(np.abs(rows - rows @ self._determined).max() < 1e-8)

    def held(self) -> list[tuple[str, Margin]]:
        """The margins whose every cell the product says it knows, with their levels."""
        return [
            (level, margin)
            for level, place in self.places.items()
            for margin in self.margins
            if place.stage.spaces.hold(self.coordinates, margin)
        ]

    def cell(self, level: str, margin: Margin, number: int) -> Cell:
        """One of the numbers of a margin at a level, by its place among them all."""
        sizes = [self.sizes[axis] for axis in margin.free]
        shape = (self.tree.levels[level], len(margin.cells), *sizes)
        area, core_cell, *codes = (int(place) for place in np.unravel_index(number, shape))
        return Cell(margin, level, area, core_cell, tuple(codes))

    def seeing(self, numbers: Sequence[Floats]) -> Small:
        """The same problem with other numbers."""
        pairs = zip(self.observations, numbers, strict=True)
        return replace(self, observations=[replace(one, numbers=found) for one, found in pairs])


def _by_cell(one: Observation) -> Floats:
    """The variance of every number seen."""
    return np.broadcast_to(np.reshape(one.variance, (-1, 1, 1)), one.numbers.shape).astype(float).ravel()


def best_estimates(found: Fit, *, families: int | None = None) -> dict[str, Floats]:
    """The best estimates of every level, all families at once or a few at a time."""
    best = {found.whole.name: found.best_of_whole()}

    def descend(above: Stage) -> None:
        few = families or above.areas
        ranges = [(first, min(first + few, above.areas)) for first in range(0, above.areas, few)]
        for branch, (_, lower) in enumerate(above.below):
            parts = [_children(found, above, branch, parents, best[above.name]) for parents in ranges]
            best[lower.name] = np.concatenate(parts)
            descend(lower)

    descend(found.whole)
    return best


def _children(found: Fit, above: Stage, branch: int, parents: tuple[int, int], best: Floats) -> Floats:
    """The best estimates of the children of some parents."""
    level, lower = above.below[branch]
    starts = level.starts[parents[0] : parents[1] + 1]
    subtree = found.subtree(lower, int(starts[0]), int(starts[-1]))
    total = added_up(subtree, starts)
    added, which = found.corrections(above, branch, parents=parents, best=best[slice(*parents)], total=total)
    return subtree + added[which]


def random_small(rng: np.random.Generator, *, branches: int = 1, least_children: int = 1) -> Small:
    """Random areas, attributes, margins, budgets and exact totals, with a truth behind them."""
    tree = random_tree(rng, branches=branches, least_children=least_children)
    sizes = tuple(int(size) for size in rng.integers(1, 4, rng.integers(0, 3)))
    core = random_core(rng)
    margins = [random_margin(rng, f"margin {number}", sizes, core) for number in range(rng.integers(1, 5))]
    small = Small(tree, sizes, len(core), margins, [])
    truth = rng.poisson(5, small.dense.cells).astype(float)
    observations = [
        _observation(rng, margin, level, (small.rows(level, margin) @ truth).reshape(areas, len(margin.cells), -1))
        for level, areas in tree.levels.items()
        for margin in margins
        if rng.random() < 0.75
    ]
    if not observations:
        return random_small(rng, branches=branches, least_children=least_children)
    return replace(small, observations=observations)


def random_tree(rng: np.random.Generator, *, branches: int, least_children: int) -> Tree:
    """Spines of up to two levels below the whole; some areas have one child."""
    found = []
    for branch in range(branches):
        levels, above = [], 1
        for depth in range(rng.integers(0 if branches == 1 else 1, 3)):
            extra = rng.integers(0, above, rng.integers(0, 4 if branches == 1 else 2))
            parents = np.sort(np.concatenate([np.repeat(np.arange(above), least_children), extra]))
            levels.append(Level(f"level {depth} of branch {branch}", parents, above))
            above = len(parents)
        found.append(tuple(levels))
    return Tree(WHOLE, tuple(levels for levels in found if levels))


def random_core(rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """The possible combinations of codes of two attributes, one row for each."""
    shape = tuple(rng.integers(1, 4, 2))
    combinations = np.array(list(np.ndindex(*shape)))
    possible = rng.random(len(combinations)) < 0.8
    possible[rng.integers(len(combinations))] = True
    return combinations[possible]


def random_margin(rng: np.random.Generator, name: str, sizes: tuple[int, ...], core: npt.NDArray[np.int64]) -> Margin:
    """Some free attributes in full; each core attribute recoded, with some codes outside, in full or left out."""
    free = tuple(axis for axis in range(len(sizes)) if rng.random() < 0.5)
    cells = np.ones((1, len(core)))
    for codes in core.T:
        groups = rng.integers(1, 4)
        recode = rng.integers(-1 if rng.random() < 0.3 else 0, groups, codes.max() + 1)
        kept = (np.arange(groups)[:, None] == recode[codes]).astype(float)
        cells = (cells[:, None] * kept[None]).reshape(-1, len(core))
    return Margin(name, free, np.ascontiguousarray(cells))


def _observation(rng: np.random.Generator, margin: Margin, level: str, exact: Floats) -> Observation:
    """Exact, or with noise of one variance for all areas, or of one for each."""
    kind = rng.choice(["exact", "by level", "by area"], p=[0.15, 0.45, 0.4])
    if kind == "exact":
        return Observation(margin, level, exact, 0.0)
    variance = rng.choice([0.7, 1.0, 3.0], len(exact)) if kind == "by area" else rng.uniform(0.5, 5)
    noise = np.sqrt(np.reshape(variance, (-1, 1, 1))) * rng.normal(size=exact.shape)
    return Observation(margin, level, exact + noise, variance)
