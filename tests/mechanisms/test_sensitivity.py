"""The privacy law's table, line by line as it is printed, and what has no line."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.sensitivity import (
    RECORD,
    Counts,
    Decides,
    NoProvedBound,
    Relation,
    Responses,
    Rows,
    Scores,
    Sensitivity,
    Shape,
    Sums,
    Unit,
)

ADD_REMOVE, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE
HOUSEHOLD = Unit(4)

LINES: list[tuple[str, Shape, Unit, tuple[int, int], tuple[int, int]]] = [
    ("records", Counts(), RECORD, (1, 1), (2, 2)),
    ("records in one cell", Counts(one_cell=True), RECORD, (1, 1), (1, 1)),
    ("records after a cap on their group", Counts(cap=6), RECORD, (2, 2), (4, 8)),
    ("groups by their own attribute", Counts(of=Rows.GROUPS), RECORD, (1, 1), (2, 2)),
    ("groups in one cell", Counts(of=Rows.GROUPS, one_cell=True), RECORD, (1, 1), (1, 1)),
    ("groups by size", Counts(of=Rows.GROUPS, by=Decides.MEMBERS), RECORD, (2, 2), (4, 8)),
    ("records by their group, 3 counted", Counts(by=Decides.GROUP, cap=3), RECORD, (6, 18), (12, 72)),
    ("group: records", Counts(), HOUSEHOLD, (4, 16), (8, 32)),
    ("group: records in one cell", Counts(one_cell=True), HOUSEHOLD, (4, 16), (4, 16)),
    ("group: records by their group", Counts(by=Decides.GROUP), HOUSEHOLD, (4, 16), (8, 32)),
    ("group: records with a lower cap", Counts(cap=3), HOUSEHOLD, (3, 9), (6, 18)),
    ("group: groups", Counts(of=Rows.GROUPS), HOUSEHOLD, (1, 1), (2, 2)),
    ("group: groups by size", Counts(of=Rows.GROUPS, by=Decides.MEMBERS), HOUSEHOLD, (1, 1), (2, 2)),
    ("group: groups in one cell", Counts(of=Rows.GROUPS, one_cell=True), HOUSEHOLD, (1, 1), (1, 1)),
    ("several answers", Counts(answers=3), RECORD, (3, 3), (6, 6)),
    ("group: several answers", Counts(answers=3), HOUSEHOLD, (12, 48), (24, 96)),
    ("sum from zero", Sums(0, 5), RECORD, (5, 25), (10, 50)),
    ("sum, centred", Sums(-3, 3), RECORD, (3, 9), (6, 36)),
    ("sum away from zero", Sums(-7, -4), RECORD, (7, 49), (14, 98)),
    ("sum in one cell, from zero", Sums(0, 5, one_cell=True), RECORD, (5, 25), (5, 25)),
    ("sum in one cell, centred", Sums(-3, 3, one_cell=True), RECORD, (3, 9), (6, 36)),
    ("sum in one cell, away from zero", Sums(4, 7, one_cell=True), RECORD, (7, 49), (7, 49)),
    ("group: sum", Sums(-3, 3), HOUSEHOLD, (12, 144), (24, 576)),
    ("group: sum with a lower cap", Sums(0, 5, cap=2), HOUSEHOLD, (10, 100), (20, 200)),
    ("group: sum of groups", Sums(-3, 3, of=Rows.GROUPS), HOUSEHOLD, (3, 9), (6, 36)),
    ("most common", Scores(), RECORD, (1, 1), (1, 1)),
    ("group: most common", Scores(), HOUSEHOLD, (4, 16), (4, 16)),
    ("group: most common of groups", Scores(of=Rows.GROUPS), HOUSEHOLD, (1, 1), (1, 1)),
    ("minimum", Scores(quantile=Fraction(0)), RECORD, (1, 1), (1, 1)),
]


@pytest.mark.parametrize(
    ("shape", "unit", "added", "replaced"), [line[1:] for line in LINES], ids=[x[0] for x in LINES]
)
def test_a_line_of_the_law_has_the_numbers_it_is_printed_with(
    shape: Shape, unit: Unit, added: tuple[int, int], replaced: tuple[int, int]
) -> None:
    assert shape.sensitivity(unit, ADD_REMOVE) == Sensitivity(*map(Fraction, added))
    assert shape.sensitivity(unit, REPLACE) == Sensitivity(*map(Fraction, replaced))


def test_the_root_of_its_size_is_not_a_households_sensitivity() -> None:
    assert Counts().sensitivity(Unit(9), ADD_REMOVE).l2_squared == 9**2


def test_a_rank_moves_by_the_larger_side_of_its_quantile() -> None:
    shape = Scores(quantile=Fraction(1, 3))
    assert shape.sensitivity(RECORD, ADD_REMOVE) == Sensitivity(Fraction(2, 3), Fraction(4, 9))
    assert shape.sensitivity(RECORD, REPLACE) == Sensitivity(Fraction(1), Fraction(1))
    assert shape.sensitivity(Unit(3), ADD_REMOVE) == Sensitivity(Fraction(2), Fraction(4))
    assert shape.sensitivity(Unit(3), REPLACE) == Sensitivity(Fraction(3), Fraction(9))


def test_a_unit_gives_as_many_answers_as_it_has_records() -> None:
    assert Responses().sensitivity(RECORD, REPLACE).l1 == 1
    assert Responses().sensitivity(Unit(5), REPLACE) == Sensitivity(Fraction(5), Fraction(5))
    assert Responses(cap=2).sensitivity(Unit(5), REPLACE).l1 == 2


# What has no line.

REFUSED: list[tuple[str, Shape, Unit]] = [
    ("records by their group without a cap", Counts(by=Decides.GROUP), RECORD),
    ("one cell by their group without a cap", Counts(by=Decides.GROUP, one_cell=True), RECORD),
    ("several answers beside a cap", Counts(answers=2, cap=3), RECORD),
    ("several answers by their group", Counts(answers=2, by=Decides.GROUP, cap=3), RECORD),
    ("groups by several answers, records protected", Counts(of=Rows.GROUPS, answers=2), RECORD),
    ("groups by several answers of members", Counts(of=Rows.GROUPS, by=Decides.MEMBERS, answers=2), RECORD),
    ("groups by several answers, groups protected", Counts(of=Rows.GROUPS, answers=2), HOUSEHOLD),
    ("sums of groups", Sums(0, 5, of=Rows.GROUPS), RECORD),
    ("sums of groups by members", Sums(0, 5, of=Rows.GROUPS, by=Decides.MEMBERS), RECORD),
    ("sums by their group", Sums(0, 5, by=Decides.GROUP), RECORD),
    ("sums by their group beside a cap", Sums(0, 5, by=Decides.GROUP, cap=3), RECORD),
    ("sums beside a cap", Sums(0, 5, cap=3), RECORD),
    ("scores beside a cap", Scores(cap=3), RECORD),
    ("scores by their group", Scores(by=Decides.GROUP, cap=3), RECORD),
    ("scores of groups by members", Scores(of=Rows.GROUPS, by=Decides.MEMBERS), RECORD),
    ("ranks beside a cap", Scores(quantile=Fraction(1, 2), cap=3), RECORD),
    ("answers beside a cap", Responses(cap=3), RECORD),
]


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(("shape", "unit"), [line[1:] for line in REFUSED], ids=[x[0] for x in REFUSED])
def test_a_shape_without_a_line_is_refused(shape: Shape, unit: Unit, relation: Relation) -> None:
    with pytest.raises(NoProvedBound):
        shape.sensitivity(unit, relation)


@pytest.mark.parametrize("unit", [RECORD, HOUSEHOLD])
def test_randomised_response_needs_replaced_neighbours(unit: Unit) -> None:
    with pytest.raises(NoProvedBound, match="neighbours: replace"):
        Responses().sensitivity(unit, ADD_REMOVE)


def test_sums_by_several_answers_cannot_be_written_down() -> None:
    with pytest.raises(TypeError):
        Sums(0, 5, answers=2)  # type: ignore[call-arg]


def test_a_refusal_is_a_value_error_so_that_nobody_has_to_know_it_by_name() -> None:
    assert issubclass(NoProvedBound, ValueError)


# Exactness.


def test_clips_at_the_edge_of_64_bits_stay_exact() -> None:
    edge = 2**62
    found = Sums(-edge, edge).sensitivity(Unit(7), REPLACE)
    assert found == Sensitivity(Fraction(7 * 2**63), Fraction(49 * 2**126))
    assert Sums(-edge, edge - 1, one_cell=True).sensitivity(RECORD, REPLACE).l1 == 2**63 - 1


@pytest.mark.parametrize("number", [np.int64(2**40), 3.0, True])
def test_numbers_that_could_overflow_or_round_are_refused(number: object) -> None:
    for build in (
        lambda: Unit(number),
        lambda: Counts(answers=number),
        lambda: Counts(cap=number),
        lambda: Sums(0, number),
        lambda: Sums(number, 2**50),
    ):
        with pytest.raises(ValueError, match="Python integer"):
            build()


@pytest.mark.parametrize("number", [1, 1.0, 0.5, np.float64(2)])
def test_a_sensitivity_is_made_of_fractions(number: object) -> None:
    with pytest.raises(ValueError, match="Fraction"):
        Sensitivity(number, Fraction(1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Fraction"):
        Sensitivity(Fraction(1), number)  # type: ignore[arg-type]


shapes = st.one_of(
    st.builds(Counts, one_cell=st.booleans()),
    st.builds(Counts, answers=st.integers(1, 9)),
    st.builds(Sums, st.integers(-(2**62), -1), st.integers(1, 2**62), one_cell=st.booleans()),
    st.builds(Scores, st.none() | st.fractions(0, 1)),
)


@given(shape=shapes, members=st.integers(1, 50))
def test_larger_groups_and_exchanges_never_move_less(shape: Shape, members: int) -> None:
    for relation in Relation:
        smaller, larger = (shape.sensitivity(Unit(size), relation) for size in (members, members + 1))
        assert smaller.l1 < larger.l1
        assert smaller.l2_squared < larger.l2_squared
    added, replaced = (shape.sensitivity(Unit(members), relation) for relation in Relation)
    assert added.l1 <= replaced.l1 <= 2 * added.l1
    assert added.l2_squared <= replaced.l2_squared <= 4 * added.l2_squared


@given(shape=shapes)
def test_a_group_of_one_is_a_record(shape: Shape) -> None:
    for relation in Relation:
        assert shape.sensitivity(Unit(1), relation) == shape.sensitivity(RECORD, relation)


# Values that cannot be built wrong.


def test_no_query_has_sensitivity_zero() -> None:
    for l1, l2_squared in ((0, 1), (1, 0), (-1, 1)):
        with pytest.raises(ValueError, match="exact total"):
            Sensitivity(Fraction(l1), Fraction(l2_squared))


def test_no_vector_is_longer_in_l2_than_in_l1() -> None:
    with pytest.raises(ValueError, match="longer in L2"):
        Sensitivity(Fraction(2), Fraction(5))


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: Unit(0), "members must be at least 1"),
        (lambda: Counts(answers=0), "answers must be at least 1"),
        (lambda: Counts(cap=0), "cap must be at least 1"),
        (lambda: Counts(one_cell=True, answers=2), "at most once"),
        (lambda: Counts(by=Decides.MEMBERS), "records are not counted by 'members'"),
        (lambda: Counts(of=Rows.GROUPS, by=Decides.GROUP), "groups are not counted by 'group'"),
        (lambda: Counts(of=Rows.GROUPS, cap=2), "groups are counted once each"),
        (lambda: Sums(3, 2), "above the upper"),
        (lambda: Sums(0, 0), "sum of zeros"),
        (lambda: Sums(0, 1, cap=0), "cap must be at least 1"),
        (lambda: Sums(0, 1, by=Decides.MEMBERS), "records are not counted by"),
        (lambda: Scores(quantile=Fraction(3, 2)), "between 0 and 1"),
        (lambda: Scores(quantile=0.5), "Fraction between 0 and 1"),
        (lambda: Scores(of=Rows.GROUPS, by=Decides.GROUP), "groups are not counted by"),
        (lambda: Responses(cap=0), "cap must be at least 1"),
    ],
)
def test_a_shape_that_makes_no_sense_cannot_be_built(build: type, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        build()


def test_only_rows_that_nobody_else_moves_depend_on_themselves_alone() -> None:
    alone = (Counts(), Counts(of=Rows.GROUPS), Counts(answers=2), Sums(0, 1), Scores(), Responses())
    moved = (
        Counts(cap=1),
        Counts(by=Decides.GROUP, cap=1),
        Counts(of=Rows.GROUPS, by=Decides.MEMBERS),
        Sums(0, 1, cap=1),
        Sums(0, 1, by=Decides.GROUP),
        Scores(cap=1),
        Responses(cap=1),
    )
    assert all(shape.depends_on_the_row_alone for shape in alone)
    assert not any(shape.depends_on_the_row_alone for shape in moved)


def test_only_counts_and_sums_can_be_of_one_cell() -> None:
    assert Counts(one_cell=True).one_cell
    assert Sums(0, 1, one_cell=True).one_cell
    assert not Scores().one_cell
    assert not Responses().one_cell
