"""Made-up rows for a release: exact numbers of every tally, and noisy measurements of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from estimation.atoms import Atoms, _mended
from estimation.measurement import Measurement
from estimation.problem import Planned, Problem
from release_specs.domain import Hierarchy
from release_specs.tallies import Tally

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Normal:
    """Rounded normal noise; nothing for tests with."""

    variance: float
    is_gaussian: bool = True

    def margin(self, confidence: Fraction) -> float:
        """The margin of one draw."""
        return float(np.floor(norm.ppf((1 + float(confidence)) / 2) * self.variance**0.5))

    def draw(self, size: int, rng: np.random.Generator) -> Integers:
        """So many draws."""
        return np.rint(rng.normal(0, self.variance**0.5, size)).astype(np.int64)


@dataclass(frozen=True)
class Laplace:
    """The two-sided geometric law of a given scale."""

    scale: float
    is_gaussian: bool = False

    def margin(self, confidence: Fraction) -> float:
        """The margin of one draw."""
        q = np.exp(-1 / self.scale)
        return float(max(0, np.ceil(np.log((1 - float(confidence)) * (1 + q) / 2) / np.log(q)) - 1))

    @property
    def variance(self) -> float:
        """Its variance."""
        q = np.exp(-1 / self.scale)
        return float(2 * q / (1 - q) ** 2)

    def draw(self, size: int, rng: np.random.Generator) -> Integers:
        """So many draws."""
        p = 1 - np.exp(-1 / self.scale)
        return rng.geometric(p, size) - rng.geometric(p, size)


Truth = dict[tuple[str, str | None], Integers]
"""For each tally by name, and level, its exact numbers (area, cell) as published."""


def exact_numbers(problem: Problem, rng: np.random.Generator, *, rows: int) -> Truth:
    """Rows drawn unevenly over areas and codes, counted for every tally."""
    truth: Truth = {}
    for planned in problem.populations:
        truth |= _of_population(planned, rng, rows)
    return truth


def _of_population(planned: Planned, rng: np.random.Generator, rows: int) -> Truth:
    population = planned.population
    populations = planned.design.populations
    index = {
        node: rng.choice(len(column), rows, p=rng.dirichlet(np.full(len(column), 0.7)))
        for node, column in population.columns.items()
    }
    atoms = _mended(Atoms(populations, population, index, rows)).possible() if index else None
    if population.key.alone:
        atoms = None
    count = atoms.size if atoms is not None else rows
    spines = {tally.spine.name: tally.spine for tally in population.tallies if tally.spine is not None}
    leaves = {}
    for name, spine in spines.items():
        areas = len(spine.areas[spine.smallest])
        leaves[name] = rng.choice(areas, count, p=rng.dirichlet(np.full(areas, 0.5)))
    amount = rng.integers(0, 7, count)
    truth: Truth = {}
    for tally in population.tallies:
        if population.key.alone:
            cells = rng.integers(0, tally.cells, count)
        else:
            assert atoms is not None or not population.columns
            cells = atoms.cell(tally, tally.attributes).astype(np.int64) if atoms is not None else np.zeros(count, int)
        inside = cells >= 0
        for level in tally.levels or (None,):
            places = _places(tally.spine, level, leaves)
            where = places[inside] if places is not None else np.zeros(int(inside.sum()), np.int64)
            size = tally.areas(level) * tally.cells
            weights = (amount - (3 if tally.adds.bounds[0] < 0 else 0))[inside] if tally.adds is not None else None
            numbers = np.bincount(where * tally.cells + cells[inside], weights, minlength=size)
            truth[tally.name, level] = np.rint(numbers).astype(np.int64).reshape(-1, tally.cells)
    return truth


def _places(spine: Hierarchy | None, level: str | None, leaves: dict[str, Integers]) -> Integers | None:
    if spine is None or level is None:
        return None
    found = leaves[spine.name]
    for depth in range(len(spine.levels) - 1, spine.levels.index(level), -1):
        numbers = {area.code: n for n, area in enumerate(spine.areas[spine.levels[depth - 1]])}
        found = np.array([numbers[area.parent or ""] for area in spine.areas[spine.levels[depth]]])[found]
    return found


def measured(
    truth: Truth, tallies: list[Tally], noise: Normal | Laplace, rng: np.random.Generator | None
) -> list[Measurement]:
    """Every tally at every level with noise; without where there is no generator."""
    found = []
    for tally in tallies:
        for level in tally.levels or (None,):
            numbers = truth[tally.name, level]
            drawn = noise.draw(numbers.size, rng).reshape(numbers.shape) if rng is not None else 0
            found.append(Measurement(tally, level, numbers + drawn, noise))
    return found
