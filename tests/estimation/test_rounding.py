"""Whole numbers that keep every sum: laws, bounds, order, and what has no solution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from estimation.kernels.rounding import Fractions, round_off
from tests.estimation.tables_to_round import (
    NONE,
    fractions,
    random_table,
    rounded,
    turned,
    with_bounds,
    with_soft_sums,
)

Floats = npt.NDArray[np.float64]
Made = Callable[[np.random.Generator], Fractions]

KINDS: dict[str, Made] = {
    "plain": random_table,
    "many groups": lambda rng: random_table(rng, groups=4),
    "bounds": lambda rng: with_bounds(rng, random_table(rng)),
    "tight bounds": lambda rng: tight(random_table(rng)),
    "soft sums": lambda rng: with_soft_sums(rng, random_table(rng)),
    "soft sums and bounds": lambda rng: with_soft_sums(rng, with_bounds(rng, random_table(rng))),
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
seeds = st.integers(0, 2**32 - 1)
quick = settings(max_examples=40, deadline=None)

CIRCLE = np.array([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]])
"""Two units given across the diagonal leave one that has nowhere to go."""
KNOT = np.array([[0.2, 0, 0.4, 0.4], [0, 0.4, 0.4, 0.2], [0.4, 0.6, 0, 0], [0.4, 0, 0.2, 0.4]])


def tight(table: Fractions) -> Fractions:
    """The same where every number may go to a neighbouring whole number only."""
    return table._replace(low=np.floor(table.numbers + 1e-9), high=np.ceil(table.numbers - 1e-9))


def keeps_its_sums(table: Fractions, whole: Floats) -> bool:
    """Whether groups and columns are those that were asked for."""
    groups = [whole[:, table.group_of == group].sum(axis=1) for group in range(table.groups.shape[1])]
    rows = all((found == wanted).all() for found, wanted in zip(groups, table.groups.T, strict=True))
    return rows and bool((np.add.reduceat(whole, table.starts[:-1], axis=0) == table.columns).all())


def is_within(table: Fractions, whole: Floats) -> bool:
    """Whether all numbers are whole and within their bounds."""
    low, high = (table.low, table.high) if len(table.low) else (0.0, np.inf)
    return bool((whole == np.rint(whole)).all() and (whole >= low).all() and (whole <= high).all())


def with_keys(table: Fractions, seed: int) -> Fractions:
    """The same with other keys."""
    rng = np.random.default_rng(seed)
    areas, cells = (rng.integers(0, 2**63, size, np.uint64) for size in table.numbers.shape)
    return table._replace(area_keys=areas, cell_keys=cells)


@EVERY_KIND
@given(seed=seeds)
@quick
def test_every_group_and_column_is_kept_within_all_bounds(kind: str, seed: int) -> None:
    table = KINDS[kind](np.random.default_rng(seed))
    found = rounded(table)
    assert found.moved[0] >= 0
    assert keeps_its_sums(table, found.whole)
    assert is_within(table, found.whole)


def test_rounding_each_number_by_itself_would_be_noticed() -> None:
    tables = [random_table(np.random.default_rng(seed), children=5, cells=8) for seed in range(50)]
    broken = [not keeps_its_sums(table, np.rint(table.numbers)) for table in tables]
    assert np.mean(broken) > 0.8


@EVERY_KIND
@given(seed=seeds)
@quick
def test_whole_numbers_are_left_as_they_are(kind: str, seed: int) -> None:
    table = KINDS[kind](np.random.default_rng(seed))
    whole = rounded(table).whole
    again = rounded(table._replace(numbers=whole))
    assert (again.whole == whole).all()
    assert again.moved[0] == 0


@pytest.mark.parametrize("noise", [1e-7, -1e-7])
def test_whole_numbers_with_a_trace_of_arithmetic_are_left_as_they_are(noise: float) -> None:
    whole = np.array([[3.0, 0, 2], [1, 4, 0]])
    assert (rounded(fractions(whole + noise)).whole == whole).all()


@EVERY_KIND
def test_nearly_every_number_goes_to_a_neighbouring_whole_number(kind: str) -> None:
    gaps = []
    for seed in range(150):
        table = KINDS[kind](np.random.default_rng(seed))
        gaps.append(np.abs(rounded(table).whole - table.numbers).ravel())
    share = np.mean(np.concatenate(gaps) < 1 + 1e-6)
    assert share > 0.995
    assert share == 1 or kind != "tight bounds"


@EVERY_KIND
@given(seed=seeds)
@quick
def test_the_order_of_areas_and_cells_does_not_matter_where_no_exchange_was_needed(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = KINDS[kind](rng)
    found = rounded(table)
    assume(found.moved[0] == 0)
    areas, cells = (rng.permutation(size) for size in table.numbers.shape)
    assert (rounded(turned(table, areas, cells)).whole == found.whole[areas][:, cells]).all()


def test_the_order_of_areas_and_cells_does_not_matter_where_exchanges_were_needed() -> None:
    different = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        table = tight(random_table(rng, children=5, cells=8, groups=1))
        found = rounded(table)
        areas, cells = (rng.permutation(size) for size in table.numbers.shape)
        different += (rounded(turned(table, areas, cells)).whole != found.whole[areas][:, cells]).any()
    assert different == 0


def test_the_numbers_of_groups_do_not_matter() -> None:
    different = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        table = with_soft_sums(rng, random_table(rng, groups=3))
        renumbered = table._replace(group_of=2 - table.group_of, groups=np.ascontiguousarray(table.groups[:, ::-1]))
        different += (rounded(renumbered).whole != rounded(table).whole).any()
    assert different == 0


def test_keys_and_nothing_else_decide_between_ties() -> None:
    table = fractions(np.full((4, 4), 0.25))
    found = [rounded(with_keys(table, seed)).whole for seed in range(40)]
    assert len({one.tobytes() for one in found}) > 10
    assert rounded(with_keys(table, 3)).whole.tobytes() == found[3].tobytes()


def test_ties_favour_no_cell_and_no_area() -> None:
    table = fractions(np.full((3, 3), 1 / 3))
    draws = 900
    total = sum(rounded(with_keys(table, seed)).whole for seed in range(draws))
    spread = (draws * 2 / 9) ** 0.5
    assert (np.abs(total - draws / 3) < 4.5 * spread).all()


def test_the_larger_fraction_gets_the_unit() -> None:
    table = fractions(np.array([[0.7, 0.3], [0.3, 0.7]]))
    assert all((rounded(with_keys(table, seed)).whole == np.eye(2)).all() for seed in range(20))


@pytest.mark.parametrize("stuck", [CIRCLE, KNOT], ids=["circle", "knot"])
def test_where_giving_in_order_gets_stuck_a_path_of_exchanges_is_found(stuck: Floats) -> None:
    table = tight(fractions(stuck))
    found = [rounded(with_keys(table, seed)) for seed in range(60)]
    assert all(keeps_its_sums(table, one.whole) and is_within(table, one.whole) for one in found)
    assert {int(one.moved[0]) for one in found} == {0, 1}


def test_a_path_may_lead_through_many_rows() -> None:
    """Each row may hold its unit in one of two cells, and all but the first have theirs where the next one needs it."""
    size = 12
    allowed = np.eye(size) + np.eye(size, k=1)
    numbers = np.eye(size, k=1) * 0.9 + np.eye(size) * 0.1
    numbers[-1, -1] = 1.0
    table = fractions(
        numbers, groups=np.ones((size, 1)), columns=np.ones((1, size)), bounds=(np.zeros_like(numbers), allowed)
    )
    found = rounded(table)
    assert (found.whole == np.eye(size)).all()
    assert found.moved[0] > 0


@pytest.mark.parametrize(
    "table",
    [
        fractions(CIRCLE, bounds=(np.zeros((3, 3)), np.diag([1.0, 0, 0]))),
        fractions(CIRCLE, bounds=(np.eye(3) * 2, np.full((3, 3), 5.0))),
        fractions(CIRCLE, bounds=(np.zeros((3, 3)), np.array([[0.0, 1, 0], [0, 1, 0], [1, 0, 1]]))),
        fractions(np.array([[1.0, 2], [3, 4]]), columns=np.array([[4.0, 5]])),
        fractions(np.array([[1.5], [1.5]]), groups=np.zeros((2, 0)), bounds=(np.zeros((2, 1)), np.ones((2, 1)))),
        fractions(np.array([[2.0, 2]]), columns=NONE, bounds=(np.zeros((1, 2)), np.ones((1, 2)))),
    ],
    ids=["no room", "too much required", "room that does not match", "a column too small", "no groups", "no columns"],
)
def test_what_has_no_solution_says_so(table: Fractions) -> None:
    assert rounded(table).moved[0] == -1


def test_a_column_that_rows_cannot_fill_has_no_solution() -> None:
    table = fractions(np.array([[1.0, 2], [3, 4]]), columns=np.array([[4.0, 7]]))
    assert rounded(table).moved[0] == -1


def test_what_is_not_a_number_is_not_rounded() -> None:
    table = fractions(np.array([[np.nan, 0.5], [0.5, 0.5]]), groups=np.ones((2, 1)), columns=np.ones((1, 2)))
    assert rounded(table).moved[0] == -1


def test_a_whole_without_parent_and_groups_is_rounded_half_up_within_bounds() -> None:
    numbers = np.array([[0.4, 0.5, 2.6, 7.0]])
    free = fractions(numbers, columns=NONE, groups=np.zeros((1, 0)))
    assert rounded(free).whole.tolist() == [[0, 1, 3, 7]]
    bounded = free._replace(low=np.array([[1.0, 0, 0, 0]]), high=np.array([[9.0, 0, 9, 9]]))
    assert rounded(bounded).whole.tolist() == [[1, 0, 3, 7]]


@given(seed=seeds)
@quick
def test_without_groups_columns_are_kept_and_without_a_parent_groups_are(seed: int) -> None:
    table = random_table(np.random.default_rng(seed))
    by_column = rounded(table._replace(groups=np.zeros((len(table.numbers), 0)), group_of=table.group_of * 0))
    assert (by_column.whole.sum(axis=0) == table.columns[0]).all()
    by_group = rounded(table._replace(columns=NONE))
    for group, wanted in enumerate(table.groups.T):
        assert (by_group.whole[:, table.group_of == group].sum(axis=1) == wanted).all()


def test_families_are_rounded_alike_alone_and_among_others() -> None:
    rng = np.random.default_rng(4)
    tables = [random_table(rng, children=4, cells=6) for _ in range(3)]
    label = tables[0].group_of
    many = fractions(
        np.concatenate([one.numbers for one in tables]), group_of=label, starts=[100, 104, 108, 112],
        columns=np.concatenate([one.numbers.sum(axis=0)[None] for one in tables]).round(),
    )  # fmt: skip
    many = many._replace(groups=np.zeros((12, 0)), group_of=label * 0)
    together = rounded(many).whole
    apart, moved = np.full_like(together, -1), np.zeros(3, np.int64)
    round_off(many, apart, moved, 1, 2)
    assert (apart[4:8] == together[4:8]).all()
    assert (apart[:4] == -1).all()
    assert (apart[8:] == -1).all()


def test_sums_that_were_measured_stay_nearer_when_they_are_named() -> None:
    named, unnamed = [], []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        table = with_soft_sums(rng, random_table(rng, children=6, cells=12, groups=1))
        plain = table._replace(soft_of=np.zeros((0, 12), np.int32), soft_count=0)
        named.append(soft_gap(table, rounded(table).whole))
        unnamed.append(soft_gap(table, rounded(plain).whole))
    assert np.mean(named) < 0.9 * np.mean(unnamed)


def soft_gap(table: Fractions, whole: Floats) -> float:
    """How far soft sums are from what they were, on average."""
    inside = np.stack([(table.soft_of == one).any(axis=0) for one in range(table.soft_count)]).astype(float)
    return float(np.abs((whole - table.numbers) @ inside.T).mean())
