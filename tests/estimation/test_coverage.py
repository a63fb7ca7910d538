"""Intervals cover as often as they say, and simulated errors are those that come true."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from estimation.error import Margins
from estimation.intervals import count_interval
from estimation.problem import Problem, problem
from estimation.redraw import errors_of_estimates, simulate_published
from estimation.release import estimate_release
from release_specs.load import load_text
from release_specs.tallies import Tally, tallies_of
from tests.estimation.made_up import Laplace, Normal, Truth, measured

RELEASES = 100
CONFIDENCE = Fraction(9, 10)
SPEC = """
margrave: 1
release: {name: towns, title: Towns}
microdata:
  persons:
    key: id
    defaults: {outside: leave_out, missing: leave_out}
    columns:
      town: {area: land, outside: {count_as: t00}, missing: {count_as: t00}}
      sex:  {codes: [f, m], outside: {count_as: f}, missing: {count_as: f}}
      age:  {integer: 0..99, outside: nearest, missing: {count_as: 0}}
      work: {codes: [yes, no, sometimes]}
geography: {land: {levels: [country, region, town], areas: towns.csv, whole: {code: c}}}
recodes:
  band:  {of: age, into: {every: 10, to: 80}}
  adult: {of: age, into: {young: 0..17, grown: 18..}}
privacy: {protect: persons, neighbours: add-remove, budget: {rho: 1, delta: 1e-9}}
tables:
  total: {count: persons, at: all}
  bands: {count: persons, by: [sex, band], at: all}
  works: {count: persons, by: [adult, work], at: [country, region]}
spend: {by_table: {total: 1/3, bands: 1/3, works: 1/3}}
"""


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> tuple[Problem, list[Tally]]:
    folder = tmp_path_factory.mktemp("towns")
    lines = ["region,town", *(f"r{town // 12},t{town:02d}" for town in range(48))]
    (folder / "towns.csv").write_text("\n".join(lines))
    loaded = load_text(SPEC, file="spec.yaml", folder=Path(folder))
    tallies = list(tallies_of(loaded.spec, loaded.domain))
    return problem(loaded.spec, loaded.domain, tallies), tallies


def sparse_truth(found: Problem, rng: np.random.Generator) -> Truth:
    """Counts of which many are between 1 and 5, all from the same rows."""
    (planned,) = found.populations
    rows = 4_000
    town = rng.choice(48, rows, p=rng.dirichlet(np.full(48, 0.8)))
    sex, age, work = rng.integers(0, 2, rows), rng.integers(0, 100, rows), rng.integers(0, 4, rows)
    band, adult = np.minimum(age // 10, 8), (age >= 18).astype(int)
    cells = {"total": np.zeros(rows, int), "bands": sex * 9 + band, "works": adult * 4 + work}
    places = {"country": np.zeros(rows, int), "region": town // 12, "town": town}
    truth: Truth = {}
    for tally in planned.population.tallies:
        for level in tally.levels:
            keys = places[level] * tally.cells + cells[tally.table]
            truth[tally.name, level] = np.bincount(keys, minlength=tally.areas(level) * tally.cells).reshape(
                -1, tally.cells
            )
    return truth


@pytest.mark.parametrize("noise", [Normal(9.0), Laplace(2.0)], ids=["gaussian", "laplace"])
def test_nine_of_ten_intervals_hold_the_truth_and_so_they_do_for_small_counts(
    towns: tuple[Problem, list[Tally]], noise: Normal | Laplace
) -> None:
    found, tallies = towns
    rng = np.random.default_rng(5)
    truth = sparse_truth(found, rng)
    measurements = measured(truth, tallies, noise, rng)
    estimated = estimate_release(found, measurements)
    margins = Margins(estimated, measurements, confidence=CONFIDENCE)
    moes = {
        (tally.name, level): margins.moe(tally, level, estimated.deviation(tally, level))
        for tally in tallies
        for level in tally.levels
    }
    assert coverage(estimated, measurements, truth, moes, 1.0) == pytest.approx((0.915, 0.90), abs=0.02)
    all_cells, small = coverage(estimated, measurements, truth, moes, 0.85)  # a seventh too narrow is noticed
    assert small < 0.88
    assert all_cells < 0.90


def coverage(estimated, measurements, truth: Truth, moes, factor: float) -> tuple[float, float]:  # noqa: ANN001
    """The part of intervals that hold the truth, of all numbers and of those from 1 to 5, over many releases."""
    (done,) = estimated.done
    held, small = [], []
    for release in range(RELEASES):
        errors = errors_of_estimates(done, measurements, np.random.default_rng([7, release]))
        for (level, name), error in errors.items():
            tally = done.planned.design.margins[name].tally
            own = next(one for one in tally.levels if done.planned.forest.name_of(tally.spine, one) == level)
            estimate = truth[name, own] + done.published(tally, own, error)
            low, high = count_interval(estimate, factor * moes[name, own])
            inside = (low <= truth[name, own]) & (truth[name, own] <= high)
            held.append(inside.ravel())
            small.append(inside[(truth[name, own] >= 1) & (truth[name, own] <= 5)])
    return float(np.concatenate(held).mean()), float(np.concatenate(small).mean())


def test_the_simulated_error_of_published_numbers_is_the_one_that_comes_true(
    towns: tuple[Problem, list[Tally]],
) -> None:
    found, tallies = towns
    rng = np.random.default_rng(6)
    truth = sparse_truth(found, rng)
    realised: dict[tuple[str, str | None], list[float]] = {}
    for _ in range(12):
        measurements = measured(truth, tallies, Normal(9.0), rng)
        estimated = estimate_release(found, measurements)
        for key, numbers in truth.items():
            tally = next(one for one in tallies if one.name == key[0])
            error = np.abs(estimated.value(tally, key[1]) - numbers).mean()
            realised.setdefault(key, []).append(float(error))
    simulated = simulate_published(estimated, measurements, draws=12)
    for key in (("bands.count@land", "town"), ("bands.count@land", "region"), ("total.count@land", "town")):
        assert simulated[key].mean_absolute == pytest.approx(np.mean(realised[key]), rel=0.15)
    empty = simulated["bands.count@land", "town"]
    assert empty.phantom > 0
    assert empty.bias((0, 0)) > 0 > empty.bias((3, 9))


def test_the_same_measurements_give_the_same_simulated_error(towns: tuple[Problem, list[Tally]]) -> None:
    found, tallies = towns
    rng = np.random.default_rng(8)
    measurements = measured(sparse_truth(found, rng), tallies, Normal(9.0), rng)
    estimated = estimate_release(found, measurements)
    once, again = (simulate_published(estimated, measurements, draws=2) for _ in range(2))
    assert once == again
