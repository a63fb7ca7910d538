"""Sweeps and their fallback against an independent solver, and what they say of problems without a solution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from estimation.kernels.sweep import Families, Result, settle
from estimation.newton import settle_one
from tests.estimation.families import NONE, by_osqp, random_families, signed, solved, the_whole, written

Floats = npt.NDArray[np.float64]
Made = Callable[[np.random.Generator], Families]

TOLERANCE = 1e-4
SWEEPS = 5_000
ANY: dict[str, Made] = {
    "two kinds of soft sums": random_families,
    "no soft sums": lambda rng: random_families(rng, kinds=0),
    "skewed weights": lambda rng: random_families(rng, skew=2.0),
    "eight overlapping kinds": lambda rng: random_families(rng, kinds=8),
    "bounds": lambda rng: random_families(rng, bounded=True),
    "bounds and eight kinds": lambda rng: random_families(rng, kinds=8, bounded=True),
    "signed": lambda rng: signed(random_families(rng, kinds=3)),
    "the whole": lambda rng: the_whole(random_families(rng, kinds=3)),
    "no groups": lambda rng: without_groups(random_families(rng)),
}
EVERY_KIND = pytest.mark.parametrize("kind", ANY)


def without_groups(families: Families) -> Families:
    """The same with nothing settled but the parent's numbers."""
    return families._replace(groups=np.zeros((len(families.targets), 0)))


def off_by(found: float, best: float) -> float:
    """How much an objective is above or below another, relative to it."""
    return abs(found - best) / max(best, 1)


@EVERY_KIND
def test_sweeps_and_their_fallback_find_what_osqp_finds(kind: str) -> None:
    alone = []
    for seed in range(8):
        families = ANY[kind](np.random.default_rng(seed))
        problem = written(families)
        best = problem.objective(by_osqp(problem))
        swept = solved(families, tolerance=TOLERANCE, most_sweeps=SWEEPS)
        stepped, off = settle_one(families, 0)
        start, end = families.starts[:2]
        alone.append(swept.off[0] < TOLERANCE)
        if alone[-1]:
            assert off_by(problem.objective(swept.numbers[start:end]), best) < 1e-4
        assert off < 1e-5
        assert off_by(problem.objective(stepped), best) < 1e-5
    assert sum(alone) >= 6


@EVERY_KIND
def test_sweeps_alone_solve_nearly_every_family(kind: str) -> None:
    results = [solved(ANY[kind](np.random.default_rng(seed)), tolerance=0.005, most_sweeps=2000) for seed in range(40)]
    assert np.mean([result.off[0] < 0.005 for result in results]) >= 0.9


@EVERY_KIND
def test_a_solution_is_unique_so_both_solvers_find_the_same_numbers(kind: str) -> None:
    for seed in range(20, 26):
        families = ANY[kind](np.random.default_rng(seed))
        swept = solved(families, tolerance=1e-6, most_sweeps=SWEEPS)
        if swept.off[0] < 1e-6:
            assert settle_one(families, 0)[0] == pytest.approx(swept.numbers[: families.starts[1]], abs=0.01)


def test_a_wrong_weight_would_be_noticed() -> None:
    """The optimum for equal weights is measurably worse where weights are unequal."""
    worse = []
    for seed in range(20):
        families = random_families(np.random.default_rng(seed), skew=2.0)
        problem = written(families)
        plain = solved(families._replace(ease=np.ones_like(families.ease), pull=np.ones_like(families.pull)))
        best = problem.objective(settle_one(families, 0)[0])
        worse.append(off_by(problem.objective(plain.numbers), best) > 1e-3)
    assert np.mean(worse) > 0.8


@EVERY_KIND
def test_every_result_has_an_honest_certificate(kind: str) -> None:
    """Whatever the number of sweeps, sums are hardly further off than it says."""
    for most_sweeps in (1, 3, 30, 3000):
        families = ANY[kind](np.random.default_rng(most_sweeps))
        result = solved(families, tolerance=0.005, most_sweeps=most_sweeps)
        for parent, (start, end) in enumerate(zip(families.starts[:-1], families.starts[1:], strict=True)):
            actual = written(families, parent).off(result.numbers[start:end])
            assert 1 <= result.sweeps[parent] <= most_sweeps
            assert result.off[parent] < 0.005 or result.sweeps[parent] == most_sweeps
            assert actual <= 2 * max(result.off[parent], 0.005)


def test_a_family_stopped_too_early_says_so() -> None:
    families = random_families(np.random.default_rng(3), kinds=8)
    early, late = (solved(families, tolerance=0.005, most_sweeps=most) for most in (1, 5000))
    assert early.off[0] > 0.5
    assert late.off[0] < 0.005


@EVERY_KIND
def test_numbers_that_agree_already_are_left_as_they_are(kind: str) -> None:
    families = ANY[kind](np.random.default_rng(11))
    truth = settle_one(families, 0)[0]
    parents = slice(0, 1 if len(families.columns) else 0)
    first = families._replace(targets=families.targets[: len(truth)], starts=families.starts[:2])
    agreed = first._replace(
        targets=truth,
        columns=truth.sum(axis=0)[None][parents] if len(families.columns) else NONE,
        soft=np.stack(
            [truth[:, (families.soft_of == i).any(axis=0)].sum(axis=1) for i in range(families.soft.shape[1])], 1
        )
        if families.soft.shape[1]
        else np.zeros((len(truth), 0)),
    )
    result = solved(agreed)
    assert result.sweeps[0] <= 3
    assert result.numbers == pytest.approx(truth, abs=1e-3)


def test_what_is_zero_in_the_parent_is_zero_in_every_child() -> None:
    families = random_families(np.random.default_rng(5), parents=6)
    result = solved(families)
    empty = families.columns == 0
    assert empty.any()
    for parent, (start, end) in enumerate(zip(families.starts[:-1], families.starts[1:], strict=True)):
        assert (result.numbers[start:end, empty[parent]] == 0).all()


@pytest.mark.parametrize("bounded", [False, True])
def test_a_family_is_solved_alike_alone_and_among_others(bounded: bool) -> None:
    families = random_families(np.random.default_rng(9), parents=5, bounded=bounded)
    together = solved(families)
    apart = Result(np.zeros_like(families.targets), np.zeros(5, np.int64), np.zeros(5))
    for parent in (4, 1, 3, 0, 2):
        settle(families, apart, parent, parent + 1, 1e-3, 20_000)
    assert all(one.tobytes() == other.tobytes() for one, other in zip(together, apart, strict=True))


def test_families_may_be_a_stretch_of_a_longer_level() -> None:
    families = random_families(np.random.default_rng(9), parents=5)
    shifted = families._replace(starts=families.starts + 1000)
    assert solved(families).numbers.tobytes() == solved(shifted).numbers.tobytes()
    assert settle_one(families, 2)[0].tobytes() == settle_one(shifted, 2)[0].tobytes()


def two_by_two(**changes: Floats) -> Families:
    """Two children, two cells, each child's cells settled to ten in all."""
    plain = Families(
        targets=np.full((2, 2), 5.0), ease=np.ones(2), cell_ease=np.ones(2), starts=np.array([0, 2]),
        columns=np.array([[10.0, 10.0]]), group_of=np.zeros(2, np.int32), groups=np.array([[10.0], [10.0]]),
        soft_of=np.zeros((0, 2), np.int32), soft=np.zeros((2, 0)), pull=np.zeros((2, 0)),
        soft_starts=np.zeros(1, np.int64), low=NONE, high=NONE,
    )  # fmt: skip
    return plain._replace(**changes)


INFEASIBLE = {
    "groups that do not add up to the parent": two_by_two(groups=np.array([[10.0], [11.0]])),
    "a column of more than its bounds allow": two_by_two(low=np.zeros((2, 2)), high=np.array([[4.0, 9], [5, 9]])),
    "a group of less than its bounds allow": two_by_two(low=np.array([[6.0, 5], [0, 0]]), high=np.full((2, 2), 20.0)),
    "bounds that meet every sum but not all": two_by_two(
        columns=np.array([[14.0, 6.0]]),
        low=np.zeros((2, 2)),
        high=np.array([[5.0, 9], [20, 9]]),
        groups=np.array([[12.0], [8.0]]),
    ),
    "a group whose cells are all zero in the parent": two_by_two(
        columns=np.array([[20.0, 0.0]]), group_of=np.array([0, 1], np.int32), groups=np.array([[9.0, 1], [10, 0]])
    ),
    "a negative column": two_by_two(columns=np.array([[25.0, -5.0]])),
}


@pytest.mark.parametrize("reason", INFEASIBLE)
def test_what_cannot_be_had_is_never_reported_as_solved(reason: str) -> None:
    result = solved(INFEASIBLE[reason], tolerance=0.005, most_sweeps=5000)
    assert result.off[0] > 0.1
    assert result.sweeps[0] == 5000
    assert settle_one(INFEASIBLE[reason], 0)[1] > 0.1


def test_what_can_just_be_had_is_solved() -> None:
    tight = two_by_two(
        columns=np.array([[14.0, 6.0]]), low=np.zeros((2, 2)), high=np.array([[6.0, 6], [8, 0]]),
        groups=np.array([[12.0], [8.0]]),
    )  # fmt: skip
    assert solved(tight, tolerance=0.005, most_sweeps=5000).numbers == pytest.approx(tight.high, abs=0.01)
    assert settle_one(tight, 0)[0] == pytest.approx(tight.high, abs=1e-5)
