"""Releases to be estimated: the examples and small specs, with made-up numbers and noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from estimation.atoms import Atoms, _mended
from estimation.measurement import ExactNumbers, Measurement
from estimation.problem import Planned, Problem, problem
from estimation.release import Estimated, estimate_release
from release_specs.load import Loaded, load_spec, load_text
from release_specs.tallies import EXACT, Tally, tallies_of
from tests.estimation.made_up import Laplace, Normal, Truth, _places, exact_numbers, measured
from tests.estimation.promises import broken, exact_numbers_of
from tests.estimation.small_specs import AREAS, SECTIONS, spec

EXAMPLES = Path(__file__).resolve().parents[2] / "release_specs" / "examples"
NAMES = (
    "births",
    "detailed_race",
    "households",
    "redistricting_2020",
    "schools",
    pytest.param("acs", marks=pytest.mark.slow),  # takes as long as all the others
)
"""The examples, as parameters of tests."""
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Release:
    """A spec as a problem of estimation."""

    loaded: Loaded
    problem: Problem

    @cached_property
    def tallies(self) -> list[Tally]:
        """Everything that is counted, exact totals of the microdata included."""
        return list(tallies_of(self.loaded.spec, self.loaded.domain))

    @property
    def measured(self) -> list[Tally]:
        """Everything that gets noise."""
        return [tally for tally in self.tallies if tally.table != EXACT]

    def tally(self, name: str) -> Tally:
        """The tally with this name, with or without its geography."""
        return next(one for one in self.problem.tallies if name in (one.name, one.name.partition("@")[0], one.table))

    def truth(self, seed: int, *, rows: int = 3000) -> Truth:
        """Made-up exact numbers."""
        return exact_numbers(self.problem, np.random.default_rng(seed), rows=rows)

    def exact(self, truth: Truth) -> list[ExactNumbers]:
        """The exact totals that come from the microdata."""
        return exact_numbers_of(self.tallies, truth)

    def estimate(self, truth: Truth, noise: Normal | Laplace, seed: int | None, *, workers: int = 2) -> Estimated:
        """Tables from everything measured, without noise where there is no seed."""
        rng = None if seed is None else np.random.default_rng(seed)
        return self.from_measurements(measured(truth, self.measured, noise, rng), truth, workers=workers)

    def from_measurements(self, given: Sequence[Measurement], truth: Truth, *, workers: int = 2) -> Estimated:
        """Tables from some measurements."""
        return estimate_release(self.problem, given, self.exact(truth), workers=workers)


@cache
def example(name: str) -> Release:
    """An example spec."""
    loaded = load_spec(EXAMPLES / f"{name}.yaml")
    tallies = list(tallies_of(loaded.spec, loaded.domain))
    return Release(loaded, problem(loaded.spec, loaded.domain, tallies, folder=EXAMPLES))


@cache
def backwards(name: str) -> Release:
    """An example whose tables are taken from the last to the first."""
    loaded = example(name).loaded
    tallies = list(tallies_of(loaded.spec, loaded.domain))[::-1]
    return Release(loaded, problem(loaded.spec, loaded.domain, tallies, folder=EXAMPLES))


def small(text: str, folder: Path, **files: str) -> Release:
    """A spec written in a test, with its public files."""
    for name, content in files.items():
        (folder / f"{name}.csv").write_text(content)
    loaded = load_text(text, file="small.yaml", folder=folder)
    tallies = list(tallies_of(loaded.spec, loaded.domain))
    return Release(loaded, problem(loaded.spec, loaded.domain, tallies, folder=folder))


def made(tables: dict[str, str], folder: Path, *, areas: str = AREAS, **more: Any) -> Release:
    """A small spec with these tables."""
    return small(spec(tables, **more), folder, areas=areas, sections=SECTIONS)


def noisy(release: Release, seed: int = 1, *, rows: int = 60) -> Estimated:
    """A small release with more noise than numbers."""
    truth = release.truth(seed, rows=rows)
    found = release.estimate(truth, Normal(9.0), seed)
    assert broken(found, release.exact(truth)) == []
    return found


def places_of(found: Estimated) -> list[tuple[Tally, str | None]]:
    """Every tally at every level."""
    return [(tally, level) for tally in found.problem.tallies for level in tally.levels or (None,)]


def truth_of(name: str, seed: int) -> Truth:
    """Made-up exact numbers of an example, those that keep its rules where it has any."""
    return housed(example(name), seed, others=2000) if name == "households" else example(name).truth(seed)


def housed(release: Release, seed: int, *, others: int) -> Truth:
    """Numbers of the households example that keep its rules: every housing unit has one head, in its own zone.

    So many `others` live with them, heads of nothing.
    """
    truth = release.truth(seed, rows=1000)
    rng = np.random.default_rng(seed)
    ((_, units),) = [(one, int(one.numbers.sum())) for one in release.problem.public]
    homes, persons = (_population(release, name) for name in ("households", "persons"))
    rows = _rows(homes, units, rng, fixed=("type", 0))
    spine = release.tally("population").spine
    assert spine is not None
    maz = rng.choice(
        len(spine.areas[spine.smallest]), units, p=rng.dirichlet(np.ones(len(spine.areas[spine.smallest])))
    )
    truth |= _counted(homes, rows, maz)
    people = _rows(persons, units + others, rng)
    relate = next(node for node in people.index if node[1] == "relate")
    theirs = rng.integers(1, len(persons.population.columns[relate]), others)
    people.index[relate] = np.concatenate([np.zeros(units, np.int64), theirs])
    return truth | _counted(persons, people, np.concatenate([maz, rng.choice(maz, others)]))


def _population(release: Release, name: str) -> Planned:
    return next(one for one in release.problem.populations if one.population.name == name)


def _rows(planned: Planned, count: int, rng: np.random.Generator, fixed: tuple[str, int] | None = None) -> Atoms:
    """So many possible rows, drawn again until none is impossible."""
    population = planned.population
    index = {node: rng.integers(0, len(column), count) for node, column in population.columns.items()}
    index |= {node: np.full(count, fixed[1]) for node in index if fixed is not None and node[1] == fixed[0]}
    found = _mended(Atoms(planned.design.populations, population, index, count))
    kept = found.possible()
    again = np.concatenate([np.arange(kept.size), rng.integers(0, kept.size, count - kept.size)])
    return kept.at(again)


def _counted(planned: Planned, rows: Atoms, leaves: Integers) -> Truth:
    truth: Truth = {}
    for tally in planned.population.tallies:
        cells = rows.cell(tally, tally.attributes).astype(np.int64)
        for level in tally.levels or (None,):
            places = _places(tally.spine, level, {tally.spine.name: leaves} if tally.spine is not None else {})
            where = np.zeros(len(cells), np.int64) if places is None else places
            size = tally.areas(level) * tally.cells
            numbers = np.bincount((where * tally.cells + cells)[cells >= 0], minlength=size)
            truth[tally.name, level] = numbers.reshape(-1, tally.cells)
    return truth


def gives_back(release: Release, truth: Truth) -> None:
    """Asserts that measurements without noise give back the truth."""
    exact = release.estimate(truth, Normal(9.0), None)
    for tally, level in places_of(exact):
        assert np.array_equal(exact.value(tally, level), truth[tally.name, level]), (tally.name, level)
