"""The lines of the law's table for protected groups and for several answers, against all neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from mechanisms.sensitivity import RECORD, Counts, Decides, Relation, Rows, Unit
from tests.mechanisms.neighbours import (
    ADD_REMOVE,
    BOTH,
    REPLACE,
    Domain,
    Query,
    declared,
    furthest,
    groups_arrive,
    houses,
    is_attained,
    records_arrive,
)
from tests.mechanisms.small_tables import (
    built_groups,
    group_rows,
    has_one_a,
    is_even,
    kept,
    of_group,
    over_orders,
    own,
    records_by,
    row,
    row_and_parity,
    tally,
    those_who_say_a,
)

YES_NO = (True, False)


@pytest.mark.parametrize(("members", "places"), [(1, (2, 2)), (2, (3, 1)), (3, (4,))])
@pytest.mark.parametrize("relation", BOTH)
def test_a_group_moves_a_table_by_all_its_counted_records_in_one_cell_not_by_the_root(
    members: int, places: tuple[int, ...], relation: Relation
) -> None:
    domain, unit = houses(*places), Unit(members)
    several = over_orders(
        lambda order: records_by(own, "ab", counted=kept(members, order, those_who_say_a)), domain, unit, relation
    )
    alone = over_orders(lambda order: records_by(own, "a", counted=kept(members, order)), domain, unit, relation)
    assert several == declared(Counts(), unit, relation)
    assert alone == declared(Counts(one_cell=True), unit, relation) == (members, members**2)


def test_a_table_may_lower_the_cap_and_is_priced_for_the_lower_one() -> None:
    assert is_attained(Counts(cap=2), Unit(3), records_by(own, "ab", counted=kept(2)), houses(4))
    assert declared(Counts(cap=5), Unit(3), ADD_REMOVE) == (3, 9)


def test_records_by_something_of_their_protected_group_move_no_further() -> None:
    domain, shape = houses(3, 1, rows=("x", "y")), Counts(by=Decides.GROUP)
    assert is_attained(shape, Unit(2), records_by(of_group(has_one_a), YES_NO, counted=kept(2)), domain)
    assert is_attained(shape, Unit(2), records_by(of_group(row), ("x", "y", None), counted=kept(2)), domain)


def test_a_protected_group_is_one_group_whatever_it_is_counted_by() -> None:
    domain, cells = houses(3, 2, rows=("x", "y")), [(said, even) for said in "xy" for even in YES_NO]
    by_members = Counts(of=Rows.GROUPS, by=Decides.MEMBERS)
    assert is_attained(Counts(of=Rows.GROUPS), Unit(3), group_rows(row, "xy"), domain)
    assert is_attained(by_members, Unit(3), group_rows(row_and_parity, cells), domain)
    one_cell = Counts(of=Rows.GROUPS, by=Decides.MEMBERS, one_cell=True)
    assert is_attained(one_cell, Unit(3), built_groups(is_even, [True]), houses(3, 2))


# Singles.

SINGLES = Domain(own=("a", "b"), places=(("h", 3), ("k", 1)), singles=True)


def test_a_table_that_mixes_groups_and_singles_has_the_groups_sensitivity() -> None:
    assert is_attained(Counts(), Unit(2), records_by(own, "ab", counted=kept(2)), SINGLES)
    assert is_attained(Counts(one_cell=True), Unit(2), records_by(own, "a", counted=kept(2)), SINGLES)


def test_records_without_a_group_beside_protected_groups_move_no_further() -> None:
    domain = Domain(own=("a", "b"), places=(("h", 3), (None, 2)))
    assert is_attained(Counts(), Unit(2), records_by(own, "ab", counted=kept(2)), domain)


def test_a_table_of_singles_alone_has_the_sensitivity_of_one_record() -> None:
    query = records_by(own, "ab", counted=lambda town: [r for r in town.records if r.single])
    assert is_attained(Counts(cap=1), Unit(2), query, SINGLES)


def test_were_a_single_counted_in_its_groups_size_the_line_of_groups_would_be_too_small() -> None:
    domain = Domain(own=("a",), places=(("h", 2), ("k", 2)), rows=("x",), singles=True)
    with_singles = group_rows(lambda group, town: sum(r.group == group for r in town.records) % 2 == 0, YES_NO)
    shape = Counts(of=Rows.GROUPS, by=Decides.MEMBERS)
    assert is_attained(shape, Unit(2), group_rows(is_even, YES_NO), domain)
    assert declared(shape, Unit(2), ADD_REMOVE) == (1, 1)
    assert furthest(with_singles, domain, groups_arrive, ADD_REMOVE) == (2, 2)


# Several answers.


def answers(codes: str, most: int) -> tuple[frozenset[str], ...]:
    """All sets of at most so many codes."""
    sets: set[frozenset[str]] = {frozenset()}
    for _ in range(most):
        sets |= {found | {code} for found in sets for code in codes}
    return tuple(sorted(sets, key=sorted))


def each_answer(cells: str, recode: Callable[[frozenset[str]], Iterable[str]] = frozenset) -> Query:
    return lambda town: tally(cells, ((cell, 1) for record in town.records for cell in recode(record.own)))


@pytest.mark.parametrize("most", [1, 2])
def test_a_record_with_k_answers_moves_k_cells(most: int) -> None:
    domain = Domain(own=answers("abcd", most), places=((None, 2),))
    assert is_attained(Counts(answers=most), RECORD, each_answer("abcd"), domain)


def test_answers_are_a_set_after_recoding_and_a_list_of_them_would_move_further() -> None:
    merge = {"a": "p", "b": "p", "c": "q", "d": "r", "e": "s"}
    domain = Domain(own=answers("abcde", 2), places=((None, 2),))
    as_set = each_answer("pqrs", lambda said: {merge[code] for code in said})
    as_list = each_answer("pqrs", lambda said: [merge[code] for code in said])
    assert is_attained(Counts(answers=2), RECORD, as_set, domain)
    assert furthest(as_list, domain, records_arrive, ADD_REMOVE) == (2, 4)


def test_with_fewer_than_2k_cells_an_exchange_stays_below_the_line() -> None:
    domain = Domain(own=answers("abc", 2), places=((None, 2),))
    assert furthest(each_answer("abc"), domain, records_arrive, ADD_REMOVE) == (2, 2)
    assert furthest(each_answer("abc"), domain, records_arrive, REPLACE) == (3, 3)
    assert declared(Counts(answers=2), RECORD, REPLACE) == (4, 4)


def test_a_group_whose_records_all_give_the_same_k_answers_moves_k_cells_by_its_size() -> None:
    domain = houses(2, 1, own=answers("abcd", 2))
    assert is_attained(Counts(answers=2), Unit(2), each_answer("abcd"), domain)
