"""Made-up releases for `estimate.py`: areas, a spec, a population with its exact counts, and exact noise with a seed.

Areas nest as evenly as their numbers allow. Noise is drawn by our own exact samplers from seeded bits, so that a bed
and a seed always give the same measurements.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from estimation.measurement import Measurement
from estimation.problem import Problem, problem
from flows.planning.noise import CellNoise
from mechanisms.noise.laws import GaussianLaw, LaplaceLaw
from release_specs.load import load_spec
from release_specs.tallies import Tally, tallies_of

Integers = npt.NDArray[np.int64]
Counts = dict[tuple[str, str], Integers]
"""For each table and level its numbers: (area, cell)."""

RHO = Fraction(1)
SMALL, STATE, TINY = (12, 150, 4_000, 350_000), (60, 1_500, 60_000, 5_000_000), (2, 4, 12, 1_000)
"""Counties, tracts, blocks, persons."""
CENSUS_CODES = {"sex": 2, "hispanic": 2, "race": 7, "age": 23}
CENSUS_TABLES = {
    "total": (),
    "hispanic_race": ("hispanic", "race"),
    "sex_age": ("sex", "age"),
    "detail": ("sex", "hispanic", "race", "age"),
}
TABLE_SHARES = {
    "total": Fraction(2, 10),
    "hispanic_race": Fraction(3, 10),
    "sex_age": Fraction(2, 10),
    "detail": Fraction(3, 10),
}
RACES = np.array([6.0, 1.5, 0.3, 0.8, 0.1, 0.6, 0.7])
"""How unequal races are: the parameters of the law from which every area's mix is drawn."""


Noises = Mapping[tuple[str, str], CellNoise]


@dataclass(frozen=True)
class Shape:
    """What the spec of a bed says: how many areas a level has, how many codes a column, and which tables there are."""

    levels: Mapping[str, int]
    codes: Mapping[str, int]
    tables: Mapping[str, tuple[str, ...]]
    only_lowest: frozenset[str] = frozenset()
    """Tables that are made for the lowest level alone."""

    @property
    def lowest(self) -> str:
        """The level of the smallest areas."""
        return list(self.levels)[-1]

    @property
    def cells(self) -> int:
        """How many combinations of codes there are."""
        return int(np.prod(list(self.codes.values())))

    def measured(self) -> Iterator[tuple[str, str]]:
        """Every table at every level that it is made for."""
        for table in self.tables:
            for level in [self.lowest] if table in self.only_lowest else self.levels:
                yield table, level

    def places(self) -> dict[str, Integers]:
        """For each level and each of the smallest areas the area that it lies in."""
        sizes = list(self.levels.values())
        columns = [np.arange(sizes[-1])]
        for above, below in zip(sizes[-2::-1], sizes[:0:-1], strict=True):
            columns.insert(0, columns[0] * above // below)
        return dict(zip(self.levels, columns, strict=True))

    def added_up(self, leaves: npt.NDArray[np.generic], level: str) -> Integers:
        """Numbers of the smallest areas, (area, ...), added up to a level."""
        starts = np.searchsorted(self.places()[level], np.arange(self.levels[level]))
        return np.add.reduceat(leaves, starts, axis=0, dtype=np.int64)

    def margin(self, numbers: Integers, table: str) -> Integers:
        """Counts of all combinations, (area, cell), added up to a table's cells."""
        full = numbers.reshape(-1, *self.codes.values())
        away = tuple(axis for axis, name in enumerate(self.codes, start=1) if name not in self.tables[table])
        return full.sum(axis=away).reshape(len(full), -1) if away else full.reshape(len(full), -1)


@dataclass(frozen=True, eq=False)
class Bed:
    """A release ready to be estimated, and the truth behind it where that is known."""

    shape: Shape
    problem: Problem
    tallies: Mapping[str, Tally]
    truth: Counts = field(repr=False)

    def measure(self, noises: Noises, seed: int) -> list[Measurement]:
        """Every table at every level with fresh noise."""
        rng = np.random.default_rng(seed)
        found = []
        for (table, level), numbers in self.truth.items():
            noise = noises[table, level]
            noisy = numbers + noise.draw(numbers.size, rng).reshape(numbers.shape)
            found.append(Measurement(self.tallies[table], level, noisy, noise))
        return found


def bed(shape: Shape, leaves: npt.NDArray[np.generic] | None = None) -> Bed:
    """The bed of a shape, with the counts that follow from those of the smallest areas."""
    with TemporaryDirectory() as folder:
        loaded = load_spec(_written(shape, Path(folder)))
        tallies = tallies_of(loaded.spec, loaded.domain)
        found = problem(loaded.spec, loaded.domain, tallies)
    truth = {}
    if leaves is not None:
        by_level = {level: shape.added_up(leaves, level) for level in shape.levels}
        truth = {(table, level): shape.margin(by_level[level], table) for table, level in shape.measured()}
    return Bed(shape, found, {tally.table: tally for tally in tallies}, truth)


SPEC = """
margrave: 1
release: {{name: bed, title: A bed}}
microdata:
  persons:
    key: id
    columns:
      place: {{area: places, outside: {{count_as: {first}}}, missing: {{count_as: {first}}}}}
      {columns}
geography: {{places: {{levels: [{levels}], areas: areas.csv}}}}
privacy: {{protect: persons, neighbours: add-remove, budget: {{rho: 1, delta: 1e-10}}}}
tables:
  {tables}
spend: {{by_table: {{{shares}}}}}
"""


def _written(shape: Shape, folder: Path) -> Path:
    """The spec of a bed as a file, with its areas beside it."""
    inner = list(shape.levels)[1:]
    codes = [[f"{name}{number:06d}" for number in shape.places()[name]] for name in inner]
    rows = [",".join(row) for row in zip(*codes, strict=True)]
    (folder / "areas.csv").write_text("\n".join([",".join(inner), *rows]) + "\n")
    columns = [
        f"{name}: {{codes: {list(range(1, size + 1))}, outside: {{count_as: 1}}, missing: {{count_as: 1}}}}"
        for name, size in shape.codes.items()
    ]
    tables = [
        f"{name}: {{count: persons, by: [{', '.join(by)}], at: {shape.lowest if name in shape.only_lowest else 'all'}}}"
        for name, by in shape.tables.items()
    ]
    text = SPEC.format(
        first=codes[-1][0],
        columns="\n      ".join(columns),
        levels=", ".join(shape.levels),
        tables="\n  ".join(tables),
        shares=", ".join(f"{name}: 1/{len(tables)}" for name in shape.tables),
    )
    (folder / "spec.yaml").write_text(text)
    return folder / "spec.yaml"


def census_shape(counties: int, tracts: int, areas: int) -> Shape:
    """A state with four tables at four levels."""
    levels = {"state": 1, "county": counties, "tract": tracts, "block": areas}
    return Shape(levels, CENSUS_CODES, CENSUS_TABLES)


def census_population(areas: int, persons: int, seed: int) -> npt.NDArray[np.int32]:
    """Counts (area, cell): sizes and races vary, a good quarter of areas are empty, one in a hundred an institution."""
    rng = np.random.default_rng(seed)
    size = rng.lognormal(0, 1.1, areas)
    size[rng.random(areas) < 0.28] = 0
    institution = rng.random(areas) < 0.01
    size[institution] = 5 * np.exp(rng.normal(0, 0.5, int(institution.sum())))
    home = np.repeat(np.arange(areas), rng.poisson(persons * size / size.sum()))
    mixes, hispanic = rng.dirichlet(RACES, areas).cumsum(axis=1), rng.beta(1, 6, areas)
    ages = rng.dirichlet(np.linspace(3, 1, CENSUS_CODES["age"]) * 2)
    count = len(home)
    race = _chosen(rng, mixes, home)
    age = np.where(institution[home], rng.integers(5, 9, count), rng.choice(len(ages), count, p=ages))
    sex = np.where(institution[home], home % 2, rng.integers(0, 2, count))
    cell = ((sex * 2 + (rng.random(count) < hispanic[home])) * 7 + race) * 23 + age
    return np.bincount(home * 644 + cell, minlength=areas * 644).reshape(areas, 644).astype(np.int32)


def _chosen(rng: np.random.Generator, mixes: npt.NDArray[np.float64], home: Integers) -> Integers:
    """For each person a code by the mix of the area, given as running sums."""
    drawn, found = rng.random(len(home)), np.zeros(len(home), np.int64)
    for code in range(mixes.shape[1] - 1):
        found += drawn > mixes[home, code]
    return found


def gaussian_noises(
    shape: Shape, level_shares: Mapping[str, Fraction], rho: Fraction
) -> dict[tuple[str, str], CellNoise]:
    """Discrete Gaussian noise of a budget in rho, by shares of levels and of tables."""
    return {
        (table, level): CellNoise(GaussianLaw(1 / (2 * rho * level_shares[level] * TABLE_SHARES[table])))
        for table, level in shape.measured()
    }


def peers_shape(tracts: int) -> Shape:
    """The job that open libraries were given: 168 cells for every tract, and totals above."""
    levels = {"nation": 1, "state": tracts // 200, "county": tracts // 20, "tract": tracts}
    codes = {"sex": 2, "band": 12, "race": 7}
    return Shape(levels, codes, {"total": (), "cells": ("sex", "band", "race")}, frozenset({"cells"}))


def peers_population(tracts: int, persons: int, seed: int) -> npt.NDArray[np.int32]:
    """Counts (tract, cell): skewed sizes and mixes of race, ages in ten-year bands."""
    rng = np.random.default_rng(seed)
    weights = rng.lognormal(0, 0.6, tracts)
    home = rng.choice(tracts, persons, p=weights / weights.sum())
    mixes = rng.dirichlet(RACES, tracts)
    mixes = (0.9 * mixes + 0.1 / len(RACES)).cumsum(axis=1)
    band = np.minimum(rng.gamma(2.6, 15, persons), 115).astype(np.int64) // 10
    cell = (rng.integers(0, 2, persons) * 12 + band) * 7 + _chosen(rng, mixes, home)
    return np.bincount(home * 168 + cell, minlength=tracts * 168).reshape(tracts, 168).astype(np.int32)


def peers_noises(epsilon: Fraction) -> dict[tuple[str, str], CellNoise]:
    """Discrete Laplace noise: 35 % of epsilon for cells; 5, 5, 3 and 2 for totals of tract, county, state, nation."""
    percent = {"tract": 5, "county": 5, "state": 3, "nation": 2}
    found = {("total", level): CellNoise(LaplaceLaw(100 / (epsilon * share))) for level, share in percent.items()}
    return {**found, ("cells", "tract"): CellNoise(LaplaceLaw(100 / (epsilon * 35)))}


def census_bed(counties: int, tracts: int, areas: int, persons: int) -> Bed:
    """A state with a made-up population."""
    return bed(census_shape(counties, tracts, areas), census_population(areas, persons, seed=1))


def equal(made: Bed) -> dict[str, Fraction]:
    """The same share for every level."""
    return dict.fromkeys(made.shape.levels, Fraction(1, len(made.shape.levels)))
