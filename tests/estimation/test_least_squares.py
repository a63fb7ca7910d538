"""Least squares over a tree against generalised least squares written out in full."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

from estimation import least_squares
from estimation.errors import EstimationError
from estimation.observations import Margin, Observation
from estimation.tree import Level, Tree
from estimation.variances import cell_covariances, cell_variances, covariance
from tests.estimation.dense import Solution
from tests.estimation.small_trees import WHOLE, Small, best_estimates, random_small

Floats = npt.NDArray[np.float64]
CLOSE = 1e-8
ONE_BRANCH, TWO_BRANCHES = range(40), range(100, 125)
EVERY_PROBLEM = pytest.mark.parametrize("seed", [*ONE_BRANCH, *TWO_BRANCHES])
TOTAL = Margin("total", (), np.ones((1, 1)))


@cache
def problem(seed: int) -> Small:
    """The problem of a seed; from 100 on its tree has two branches."""
    return random_small(np.random.default_rng(seed), branches=2 if seed in TWO_BRANCHES else 1)


def totals(tree: Tree, seen: dict[str, tuple[list[float], float | Floats]]) -> Small:
    """A problem of one number for each area: for each level the numbers seen and their variance."""
    observations = [
        Observation(TOTAL, level, np.reshape(numbers, (-1, 1, 1)).astype(float), variance)
        for level, (numbers, variance) in seen.items()
    ]
    return Small(tree, (), 1, [TOTAL], observations)


def largest_gap(small: Small, solution: Solution) -> float:
    """How far any estimate of a held margin is from a solution."""
    gaps = [
        np.abs(small.fit.read(margin, small.best[level]).ravel() - small.rows(level, margin) @ solution.cells).max()
        for level, margin in small.held()
    ]
    return float(max(gaps, default=0))


def variance_gap(small: Small, solution: Solution) -> float:
    """How far any variance of a held margin is from that of a solution."""
    worst = 0.0
    for level, margin in small.held():
        rows = small.rows(level, margin)
        wanted = np.einsum("ij,jk,ik->i", rows, solution.covariance, rows)
        found = cell_variances(small.coordinates, margin, small.places[level]).ravel()
        worst = max(worst, float(np.abs(np.repeat(found, len(wanted) // len(found)) - wanted).max()))
    return worst


@EVERY_PROBLEM
def test_estimates_are_those_of_generalised_least_squares(seed: int) -> None:
    assert largest_gap(problem(seed), problem(seed).solution) < CLOSE


@EVERY_PROBLEM
def test_variances_are_those_of_generalised_least_squares(seed: int) -> None:
    assert variance_gap(problem(seed), problem(seed).solution) < CLOSE


@EVERY_PROBLEM
def test_covariances_between_any_two_numbers_are_those_of_generalised_least_squares(seed: int) -> None:
    small, rng = problem(seed), np.random.default_rng(seed)
    chosen = []
    for level, margin in small.held():
        rows = small.rows(level, margin)
        numbers = rng.choice(len(rows), min(3, len(rows)), replace=False)
        chosen += [(small.cell(level, margin, number), rows[number]) for number in numbers]
    for one, row in chosen:
        for other, column in chosen:
            found = covariance(small.coordinates, small.places, one, other)
            assert found == pytest.approx(row @ small.solution.covariance @ column, abs=CLOSE)


def test_the_problems_cover_what_they_should() -> None:
    problems = [problem(seed) for seed in (*ONE_BRANCH, *TWO_BRANCHES)]
    observations = [one for small in problems for one in small.observations]
    assert any(one.is_exact for one in observations)
    assert any(np.ndim(one.variance) and len(np.unique(one.variance)) > 1 for one in observations)
    assert any((one.margin.cells.sum(axis=0) == 0).any() for one in observations), "a universe"
    assert any(len(np.unique(one.margin.cells.sum(axis=1))) > 1 for one in observations), "unequal recodes"
    assert any(not small.tree.branches for small in problems), "a single area"
    assert any((level.fan_out == 1).any() for small in problems for branch in small.tree.branches for level in branch)
    assert sum(len(small.tree.branches) == 2 for small in problems) == len(TWO_BRANCHES)
    assert sum(len(small.held()) for small in problems) > 200


def test_a_wrong_variance_of_one_measurement_would_be_noticed() -> None:
    noticed = 0
    for seed in ONE_BRANCH:
        small = problem(seed)
        wrong = [replace(small.observations[0], variance=np.asarray(small.observations[0].variance) * 1.1)]
        other = replace(small, observations=[*wrong, *small.observations[1:]])
        noticed += variance_gap(other, small.solution) > 1e-3 and largest_gap(other, small.solution) > 1e-3
    assert noticed > len(ONE_BRANCH) / 3


def test_one_budget_for_all_areas_is_told_apart_from_one_for_each() -> None:
    tree = Tree(WHOLE, ((Level("town", np.array([0, 0]), 1),),))
    unequal = totals(tree, {WHOLE: ([10], 1.0), "town": ([3, 5], np.array([1.0, 9.0]))})
    equal = totals(tree, {WHOLE: ([10], 1.0), "town": ([3, 5], 5.0)})
    assert largest_gap(unequal, unequal.solution) < CLOSE
    assert largest_gap(equal, unequal.solution) > 0.1


@pytest.mark.parametrize("seed", range(200, 220))
def test_a_margin_is_held_exactly_where_the_measurements_determine_it(seed: int) -> None:
    small = random_small(np.random.default_rng(seed), branches=1 + seed % 2, least_children=2)
    wanted = [(level, margin) for level in small.tree.levels for margin in small.margins]
    assert set(small.held()) == {one for one in wanted if small.is_determined(*one)}


@EVERY_PROBLEM
def test_the_estimate_is_unbiased(seed: int) -> None:
    """It is linear in the measurements, and numbers without noise come out as they are."""
    small, rng = problem(seed), np.random.default_rng(seed)
    truth = rng.poisson(50, small.dense.cells).astype(float)
    shapes = [one.numbers.shape for one in small.observations]
    exact = [(small.rows(one.level, one.margin) @ truth).reshape(one.numbers.shape) for one in small.observations]
    still = [one.is_exact for one in small.observations]
    noise = [rng.normal(size=shape) * (not fixed) for shape, fixed in zip(shapes, still, strict=True)]
    plain, noisy = small.seeing(exact), small.seeing([a + b for a, b in zip(exact, noise, strict=True)])
    opposite = small.seeing([a - b for a, b in zip(exact, noise, strict=True)])
    for level, margin in small.held():
        read = [one.fit.read(margin, one.best[level]).ravel() for one in (plain, noisy, opposite)]
        assert read[0] == pytest.approx(small.rows(level, margin) @ truth, abs=1e-7)
        assert read[1] + read[2] == pytest.approx(2 * read[0], abs=1e-7)


def test_errors_spread_as_the_variances_say() -> None:
    """Four thousand codes of a free attribute, measured in full, are as many trees of their own."""
    draws, rng = 4000, np.random.default_rng(7)
    margin = Margin("by code", (0,), np.ones((1, 1)))
    tree = Tree(WHOLE, ((Level("town", np.array([0, 0, 0]), 1),),))
    noisy = [("whole", 1, 1.0), ("town", 3, 4.0)]
    seen = [Observation(margin, level, rng.normal(0, spread**0.5, (n, 1, draws)), spread) for level, n, spread in noisy]
    small = Small(tree, (draws,), 1, [margin], seen)
    claimed = cell_variances(small.coordinates, margin, small.places["town"]).ravel()
    found = small.fit.read(margin, small.best["town"]).var(axis=2).ravel()
    noise = claimed * np.sqrt(2 / draws)
    assert (np.abs(found - claimed) < 4 * noise).all()
    assert (np.abs(found - 4.0) > 4 * noise).all()  # and it would be noticed if the whole had been ignored


def test_two_branches_share_what_they_say_about_the_whole() -> None:
    tree = Tree(WHOLE, ((Level("town", np.array([0, 0]), 1),), (Level("school", np.array([0, 0, 0]), 1),)))
    small = totals(tree, {"town": ([4, 8], 1.0), "school": ([3, 3, 3], 2.0)})
    # the towns say 12 with variance 2, the schools 9 with variance 6
    assert small.best[WHOLE].item() == pytest.approx(12 - 3 / 4)
    assert small.best["town"].sum() == pytest.approx(12 - 3 / 4)
    assert small.best["school"].sum() == pytest.approx(12 - 3 / 4)
    assert largest_gap(small, small.solution) < CLOSE


def test_exact_totals_of_one_branch_bind_the_other() -> None:
    tree = Tree(WHOLE, ((Level("town", np.array([0, 0]), 1),), (Level("school", np.array([0, 0]), 1),)))
    small = totals(tree, {"town": ([4, 8], 0.0), "school": ([3, 5], np.array([1.0, 3.0]))})
    assert small.best["school"].ravel() == pytest.approx([3 + 4 / 4, 5 + 4 * 3 / 4])
    assert variance_gap(small, small.solution) < CLOSE


@pytest.mark.parametrize("branches", [1, 2])
def test_the_core_may_be_described_in_any_coordinates(branches: int) -> None:
    rng = np.random.default_rng(branches)
    for _ in range(10):
        small = random_small(rng, branches=branches)
        turn = rng.normal(size=(small.atoms, small.atoms)) + 2 * np.eye(small.atoms)
        margins = {id(one): replace(one, cells=np.ascontiguousarray(one.cells @ turn)) for one in small.margins}
        seen = [replace(one, margin=margins[id(one.margin)]) for one in small.observations]
        turned = replace(small, margins=list(margins.values()), observations=seen)
        for level, margin in small.held():
            other = margins[id(margin)]
            found = turned.fit.read(other, turned.best[level])
            assert found == pytest.approx(small.fit.read(margin, small.best[level]), abs=1e-6)
            variances = cell_variances(small.coordinates, other, turned.places[level])
            assert variances == pytest.approx(cell_variances(small.coordinates, margin, small.places[level]), abs=1e-6)


def test_a_single_area_with_one_cell_is_the_weighted_mean_of_what_was_seen() -> None:
    small = totals(Tree(WHOLE), {WHOLE: ([10], 1.0)})
    twice = replace(small, observations=[*small.observations, replace(small.observations[0], variance=3.0)])
    assert small.best[WHOLE].item() == 10
    assert cell_variances(twice.coordinates, TOTAL, twice.places[WHOLE]).item() == pytest.approx(3 / 4)


def test_an_only_child_is_estimated_as_its_parent() -> None:
    tree = Tree(WHOLE, ((Level("region", np.array([0]), 1), Level("town", np.array([0]), 1)),))
    small = totals(tree, {WHOLE: ([10], 1.0), "region": ([13], 1.0), "town": ([4], 1.0)})
    for level in tree.levels:
        assert small.best[level].item() == pytest.approx(9)
        assert small.places[level].best.item() == pytest.approx(1 / 3)


def test_the_covariance_of_two_margins_in_the_same_cell_is_that_of_least_squares() -> None:
    men, all_people = Margin("men", (), np.array([[1.0, 0.0]])), Margin("all", (), np.ones((1, 2)))
    tree = Tree(WHOLE, ((Level("town", np.array([0, 0]), 1),),))
    seen = [
        Observation(men, "town", np.full((2, 1, 1), 3.0), 1.0),
        Observation(all_people, WHOLE, np.full((1, 1, 1), 9.0), 2.0),
    ]
    seen += [Observation(all_people, "town", np.full((2, 1, 1), 5.0), np.array([1.0, 4.0]))]
    small = Small(tree, (), 2, [men, all_people], seen)
    one, other = (small.rows("town", margin) for margin in (men, all_people))
    wanted = np.einsum("ij,jk,ik->i", one, small.solution.covariance, other)
    assert cell_covariances(small.coordinates, men, all_people, small.places["town"]).ravel() == pytest.approx(wanted)
    shares = Margin("by sex", (), np.eye(2))
    with pytest.raises(ValueError, match="different cells"):
        cell_covariances(small.coordinates, men, shares, small.places["town"])


@pytest.mark.parametrize("seed", [3, 5, 8, 101, 104])
def test_working_on_a_few_families_at_a_time_gives_the_same_bytes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    small = problem(seed)
    at_once = {level: best.tobytes() for level, best in best_estimates(small.fit).items()}
    for most in (1, 7, 50):
        monkeypatch.setattr(least_squares, "FAMILY_CELLS", most)
        again = replace(small).fit
        few = best_estimates(again, families=1)
        assert {level: best.tobytes() for level, best in few.items()} == at_once
        assert {level: told.tobytes() for level, told in again.told.items()} == {
            level: told.tobytes() for level, told in small.fit.told.items()
        }


def test_an_area_left_unmeasured_is_estimated_from_the_areas_in_it() -> None:
    levels = (Level("region", np.array([0, 0]), 1), Level("town", np.array([0, 0, 1]), 2))
    budgets = np.array([1.0, np.inf])
    small = totals(Tree(WHOLE, (levels,)), {"region": ([3, 999], budgets), "town": ([1, 2, 4], 1.0)})
    assert small.best["region"].ravel() == pytest.approx([3, 4])


def test_a_level_of_which_some_areas_are_not_measured_at_all_is_refused() -> None:
    tree = Tree(WHOLE, ((Level("town", np.array([0, 0]), 1),),))
    with pytest.raises(EstimationError, match="lack a measurement"):
        totals(tree, {WHOLE: ([10], 1.0), "town": ([3, 999], np.array([1.0, np.inf]))}).best.keys()
