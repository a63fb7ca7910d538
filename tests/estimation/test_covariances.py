"""Sums over cells err as the cells do, one by one; nothing is approximated."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

from estimation.covariances import Sums, covariances, estimates, variances
from estimation.figures import sums_by
from estimation.measurement import Measurement
from estimation.problem import problem
from estimation.release import Done, Estimated, estimate_release
from estimation.variances import Cell, covariance
from release_specs.load import load_text
from release_specs.tallies import Tally, tallies_of
from tests.estimation.made_up import Normal
from tests.estimation.published import EXAMPLES, SMALL, example, small

Floats = npt.NDArray[np.float64]
RESPONSE = (
    SMALL.replace("neighbours: add-remove", "neighbours: replace")
    .replace("people:    {count: persons,", "people:    {count: persons, mechanism: randomised_response,")
    .replace("\npublish:", "\nexact: [{count: persons, at: all, from: microdata, because: Known.}]\npublish:")
)


@cache
def estimated(name: str) -> Estimated:
    """A release with noise of different size in different tables."""
    release = small(rows=300) if name == "small" else example(name)
    rng = np.random.default_rng(8)
    noisy = [
        Measurement(tally, level, release.truth[tally.name, level], Normal(float(rng.integers(1, 9))))
        for tally in release.tallies
        for level in tally.levels or (None,)
    ]
    return estimate_release(release.problem, noisy, release.exact)


def cell_of(done: Done, tally: Tally, level: str | None, area: int, index: tuple[int, ...]) -> Cell:
    """One cell of a tally in the terms of `variances`."""
    found, name = done.planned.design.margins[tally.name], done.planned.forest.name_of(tally.spine, level)
    split = len(found.order) - len(found.margin.free)
    core, free = found.order[:split], found.order[split:]
    number = int(np.ravel_multi_index([index[one] for one in core], [tally.shape[one] for one in core])) if core else 0
    place = int(np.flatnonzero(done.planned.forest.order[name] == area)[0])
    return Cell(found.margin, name, place, number, tuple(index[one] for one in free))


def written_out(of: Estimated, one: Tally, other: Tally, *, level: str | None, area: int) -> Floats:
    """The covariance matrix of all cells of two tallies, cell by cell."""
    done = of.of(one)
    rows = [cell_of(done, one, level, area, index) for index in np.ndindex(one.shape)]
    columns = [cell_of(done, other, level, area, index) for index in np.ndindex(other.shape)]
    coordinates = done.planned.design.coordinates
    return np.array([[covariance(coordinates, done.places, mine, yours) for yours in columns] for mine in rows])


def single(tally: Tally, index: tuple[int, ...]) -> Sums:
    """A sum of one cell."""
    return Sums(tally, tuple(np.eye(size)[[code]] for size, code in zip(tally.shape, index, strict=True)), ())


def scrambled(tally: Tally, rng: np.random.Generator, kept: dict[str, int]) -> Sums:
    """Sums with random weights, along some attributes and over the others."""
    names = [attribute.name for attribute in tally.attributes]
    codes = [
        rng.integers(-1, 3, (kept.get(name, 1), size)).astype(float)
        for name, size in zip(names, tally.shape, strict=True)
    ]
    return Sums(tally, tuple(codes), tuple(names.index(name) for name in kept))


def pairs(name: str, *, most: int) -> list[tuple[str, str, str | None]]:
    """Pairs of tallies of one population with a level that both have, and few enough cells to write out."""
    found = []
    for done in estimated(name).done:
        tallies = [one for one in done.planned.population.tallies if one.cells <= most]
        for one in tallies:
            for other in tallies:
                levels = [level for level in one.levels or (None,) if level in (other.levels or (None,))]
                found += [(one.name, other.name, level) for level in levels[-1:] if one.spine == other.spine]
    return found


def named(of: Estimated, name: str) -> Tally:
    return next(tally for tally in of.problem.tallies if tally.name == name)


@pytest.mark.parametrize("spec", ["small", "births", "schools"])
def test_sums_err_as_the_covariances_of_their_cells_say(spec: str) -> None:
    of, rng = estimated(spec), np.random.default_rng(4)
    asked = pairs(spec, most=40)
    for mine, yours, level in asked:
        one, other = named(of, mine), named(of, yours)
        area = int(rng.integers(one.areas(level)))
        shared = [attribute.name for attribute in one.attributes if attribute in other.attributes]
        kept = {name: int(rng.integers(1, 4)) for name in rng.permutation(shared)[:2].tolist()}
        left, right = scrambled(one, rng, kept), scrambled(other, rng, kept)
        matrix = written_out(of, one, other, level=level, area=area)
        rows, columns = (sums.of(np.eye(len(cells))) for sums, cells in ((left, matrix), (right, matrix.T)))
        expected = np.einsum("i...,ij,j...->...", rows, matrix, columns)
        assert covariances(of, left, right, level)[area] == pytest.approx(expected, rel=1e-7, abs=1e-7)
    assert len(asked) > 8


def test_single_cells_err_as_they_do_one_by_one() -> None:
    of = estimated("small")
    one, other = named(of, "people.count@town"), named(of, "ages.count@town")
    for area in range(3):
        matrix = written_out(of, one, other, level="block", area=area)
        for row, index in enumerate(np.ndindex(one.shape)):
            for column, second in enumerate(np.ndindex(other.shape)):
                found = covariances(of, single(one, index), single(other, second), "block")[area]
                assert found == pytest.approx(matrix[row, column], abs=1e-9)


@pytest.mark.parametrize("spec", ["small", "births"])
def test_published_cells_have_the_variances_and_covariances_of_the_release(spec: str) -> None:
    of = estimated(spec)
    for tally in of.problem.tallies:
        for level in tally.levels or (None,):
            names = [attribute.name for attribute in tally.attributes]
            shown = sums_by(tally, names)
            assert variances(of, shown, level) == pytest.approx(shown.of(of.deviation(tally, level) ** 2), abs=1e-9)
            assert estimates(of, shown, level) == pytest.approx(shown.of(of.estimate(tally, level)))
    part, whole = (next(one for one in of.problem.tallies if one.statistic == word) for word in ("part", "all"))
    sums = [sums_by(tally, [attribute.name for attribute in tally.attributes]) for tally in (part, whole)]
    expected = of.covariance(part, whole, part.levels[-1]).reshape(-1, *sums[0].shape)
    assert covariances(of, *sums, part.levels[-1]) == pytest.approx(expected, abs=1e-9)
    assert (expected > 0).all()


def test_tallies_of_different_populations_err_independently() -> None:
    of = estimated("small")
    one, other = (sums_by(named(of, f"{name}@town"), ["kind"]) for name in ("people.count", "earned.sum(income)"))
    assert covariances(of, one, other, "block").tolist() == np.zeros((3, 2)).tolist()


def test_sums_of_another_shape_are_refused() -> None:
    of = estimated("small")
    one, other = sums_by(named(of, "people.count@town"), ["kind"]), sums_by(named(of, "people.count@town"), [])
    with pytest.raises(ValueError, match="differ in their axes"):
        covariances(of, one, other, "block")
    with pytest.raises(ValueError, match="do not fit"):
        Sums(one.tally, (np.ones((2, 3)), np.ones((1, 2))), ())


def test_answers_of_randomised_response_are_summed_without_those_elsewhere() -> None:
    loaded = load_text(RESPONSE, file="response.yaml", folder=EXAMPLES)
    (tally,) = (one for one in tallies_of(loaded.spec, loaded.domain) if one.elsewhere)
    made = problem(loaded.spec, loaded.domain, [tally])
    numbers = {level: np.arange(tally.cells * tally.areas(level)).reshape(-1, tally.cells) for level in tally.levels}
    noisy = [Measurement(tally, level, numbers[level], Normal(4.0)) for level in tally.levels[-1:]]
    of, sums = estimate_release(made, noisy), sums_by(tally, ["kind"])
    assert tally.cells == 7
    assert estimates(of, sums, "block")[1].tolist() == pytest.approx([7 + 9 + 11, 8 + 10 + 12])
    assert variances(of, sums, "block") == pytest.approx(np.full((3, 2), 3 * 4.0))
