"""Every line of the law's table for protected records that counts, against all neighbours on small domains.

`is_attained` means that the declared numbers are the true maxima, L1 and squared L2 alike, under both relations. Where
a line is only an upper bound on the domain, the test names what is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from mechanisms.sensitivity import RECORD, Counts, Decides, NoProvedBound, Relation, Rows
from tests.mechanisms.neighbours import (
    ADD_REMOVE,
    BOTH,
    REPLACE,
    Domain,
    Query,
    Record,
    Said,
    Town,
    declared,
    furthest,
    houses,
    is_attained,
    records_arrive,
    stacked,
)
from tests.mechanisms.small_tables import (
    Attribute,
    built_groups,
    group_rows,
    has_one_a,
    is_even,
    kept,
    of_group,
    orders_by_content,
    over_orders,
    own,
    records_by,
    row,
    row_and_parity,
    size,
    those_who_say_a,
)

LONERS = Domain(own=("a", "b", None), places=((None, 3),))
"""Records without groups; one that says None is counted by no table."""
YES_NO = (True, False)


# Records.


def test_one_record_moves_a_table_of_records_by_one_and_an_exchange_by_two() -> None:
    assert is_attained(Counts(), RECORD, records_by(own, "ab"), LONERS)


def test_a_recode_that_merges_codes_moves_no_further() -> None:
    domain = Domain(own=("a", "b", "c", None), places=((None, 2),))
    recode = {"a": "ab", "b": "ab", "c": "c"}
    query = records_by(lambda record, _: recode.get(record.own), ("ab", "c"))
    assert is_attained(Counts(), RECORD, query, domain)


def test_one_cell_moves_by_one_under_replace_because_a_record_may_be_exchanged_for_one_nobody_counts() -> None:
    query = records_by(own, "a")
    assert is_attained(Counts(one_cell=True), RECORD, query, LONERS)
    everybody_says_a = Domain(own=("a",), places=((None, 3),))
    assert furthest(query, everybody_says_a, records_arrive, REPLACE) == (1, 1)


def test_levels_of_a_hierarchy_measured_together_move_by_the_root_of_their_number_not_by_one() -> None:
    domain = Domain(own=("a1", "a2", "b1", "b2"), places=((None, 2),))
    levels = [
        records_by(lambda record, _: "all", ["all"]),
        records_by(lambda record, _: record.own[0], "ab"),
        records_by(own, domain.own),
    ]
    assert furthest(stacked(levels), domain, records_arrive, ADD_REMOVE) == (3, 3)
    assert all(furthest(level, domain, records_arrive, ADD_REMOVE) == (1, 1) for level in levels)


# Records after a cap on their group.


@pytest.mark.parametrize("cap", [1, 2])
@pytest.mark.parametrize("relation", BOTH)
def test_a_newcomer_displaces_one_under_a_cap_whatever_the_order(cap: int, relation: Relation) -> None:
    domain = houses(cap + 1, cap + 1)
    found = over_orders(lambda order: records_by(own, "ab", counted=kept(cap, order)), domain, RECORD, relation)
    assert found == declared(Counts(cap=cap), RECORD, relation)


@pytest.mark.parametrize("relation", BOTH)
def test_records_without_an_id_are_ordered_by_what_they_say_and_the_cap_line_holds(relation: Relation) -> None:
    domain, orders = houses(2, 2), orders_by_content(houses(2, 2))
    found = over_orders(lambda order: records_by(own, "ab", counted=kept(1, order)), domain, RECORD, relation, orders)
    assert found == declared(Counts(cap=1), RECORD, relation)


def test_keep_first_by_a_records_own_column_displaces_no_more_than_one() -> None:
    def is_head(record: Record, town: Town) -> bool:
        return record.own[0] == "head"

    domain = houses(2, 2, own=tuple((role, cell) for role in ("head", "other") for cell in "ab"))
    for relation in BOTH:
        found = over_orders(
            lambda order: records_by(lambda record, _: record.own[1], "ab", counted=kept(1, order, is_head)),
            domain,
            RECORD,
            relation,
        )
        assert found == declared(Counts(cap=1), RECORD, relation)


@pytest.mark.parametrize(("relation", "reached"), [(ADD_REMOVE, (2, 2)), (REPLACE, (3, 5))])
def test_keep_first_by_the_counted_column_stays_below_the_line(relation: Relation, reached: tuple[int, int]) -> None:
    found = over_orders(
        lambda order: records_by(own, "ab", counted=kept(1, order, those_who_say_a)), houses(2, 2), RECORD, relation
    )
    assert found == reached


def test_keep_first_by_something_of_the_group_breaks_the_cap_line_and_is_priced_as_counted_by_the_group() -> None:
    def is_a_among_four(record: Record, town: Town) -> bool:
        return record.own == "a" and size(record.group, town) == 4

    query = records_by(own, "ab", counted=kept(2, first=is_a_among_four))
    assert furthest(query, houses(5), records_arrive, ADD_REMOVE) == (4, 8)
    assert declared(Counts(cap=2), RECORD, ADD_REMOVE) == (2, 2)
    assert declared(Counts(by=Decides.GROUP, cap=2), RECORD, ADD_REMOVE) == (4, 8)


def test_one_cell_beside_a_cap_moves_by_two_under_replace_so_it_keeps_the_caps_line() -> None:
    query = records_by(own, "a", counted=kept(1))
    assert furthest(query, houses(2, 2), records_arrive, ADD_REMOVE) == (1, 1)
    assert furthest(query, houses(2, 2), records_arrive, REPLACE) == (2, 4)
    assert [declared(Counts(cap=1, one_cell=True), RECORD, relation) for relation in BOTH] == [(2, 2), (4, 8)]


# Groups by their own column.


def test_groups_by_their_own_column_come_and_go_with_a_record() -> None:
    domain = houses(2, 2, own=("a",), rows=("x", "y"))
    assert is_attained(Counts(of=Rows.GROUPS), RECORD, group_rows(row, "xy"), domain)
    assert is_attained(Counts(of=Rows.GROUPS, one_cell=True), RECORD, group_rows(row, "x"), domain)


def test_were_a_row_to_change_with_an_arriving_record_the_line_for_the_groups_own_column_would_be_too_small() -> None:
    def records_change_rows(domain: Domain, town: Town) -> Iterator[Town]:
        for grown in records_arrive(domain, town):
            yield grown
            touched = [group for group, _ in grown.rows if size(group, grown) > size(group, town)]
            for group in touched:
                others = Town(grown.records, frozenset(held for held in grown.rows if held[0] != group))
                yield from (others.with_row(group, said) for said in domain.rows)

    domain, query = houses(2, 2, own=("a",), rows=("x", "y")), group_rows(row, "xy")
    assert furthest(query, domain, records_change_rows, ADD_REMOVE) == (2, 2)
    assert furthest(query, domain, records_change_rows, REPLACE) == (4, 8)


# Groups by an attribute derived from their members.

DERIVED: dict[str, tuple[Attribute, tuple[Said, ...], tuple[int, int]]] = {
    "size": (size, (0, 1, 2, 3), (4, 6)),
    "even size": (is_even, YES_NO, (4, 8)),
    "exactly one a": (has_one_a, YES_NO, (4, 8)),
}


@pytest.mark.parametrize("name", DERIVED)
@pytest.mark.parametrize(("table", "rows"), [(group_rows, ("x",)), (built_groups, ())])
def test_groups_by_a_derived_attribute_change_cells(
    name: str, table: Callable[..., Query], rows: tuple[Said, ...]
) -> None:
    attribute, cells, exchanged = DERIVED[name]
    domain = houses(3, 3, own=("a", "b") if attribute is has_one_a else ("a",), rows=rows)
    query, shape = table(attribute, cells), Counts(of=Rows.GROUPS, by=Decides.MEMBERS)
    assert furthest(query, domain, records_arrive, ADD_REMOVE) == declared(shape, RECORD, ADD_REMOVE) == (2, 2)
    assert furthest(query, domain, records_arrive, REPLACE) == exchanged
    assert declared(shape, RECORD, REPLACE) == (4, 8)


def test_groups_by_parity_of_size_and_their_own_column_change_cells_no_further() -> None:
    query = group_rows(row_and_parity, [(said, even) for said in "xy" for even in YES_NO])
    domain = houses(3, 3, own=("a",), rows=("x", "y"))
    assert is_attained(Counts(of=Rows.GROUPS, by=Decides.MEMBERS), RECORD, query, domain)


def test_one_cell_of_groups_by_size_moves_by_two_under_replace_so_it_keeps_the_line_of_derived_attributes() -> None:
    query, domain = built_groups(is_even, [True]), houses(3, 3, own=("a",))
    assert furthest(query, domain, records_arrive, ADD_REMOVE) == (1, 1)
    assert furthest(query, domain, records_arrive, REPLACE) == (2, 4)
    assert declared(Counts(of=Rows.GROUPS, by=Decides.MEMBERS, one_cell=True), RECORD, REPLACE) == (4, 8)


# Records by something of their group, at most m counted.


@pytest.mark.parametrize("cap", [1, 2])
@pytest.mark.parametrize("relation", BOTH)
def test_one_record_moves_all_counted_records_of_its_group_by_a_derived_attribute(cap: int, relation: Relation) -> None:
    domain = houses(cap + 1, cap + 1)
    found = over_orders(
        lambda order: records_by(of_group(has_one_a), YES_NO, counted=kept(cap, order)), domain, RECORD, relation
    )
    assert found == declared(Counts(by=Decides.GROUP, cap=cap), RECORD, relation)


def test_records_by_their_own_and_a_derived_attribute_move_no_further() -> None:
    cells = [(said, one) for said in "ab" for one in YES_NO]
    query = records_by(lambda record, town: (record.own, has_one_a(record.group, town)), cells, counted=kept(2))
    assert furthest(query, houses(3, 3), records_arrive, ADD_REMOVE) == (4, 8)
    assert furthest(query, houses(3, 3), records_arrive, REPLACE) == (8, 20)


def test_a_record_that_takes_its_groups_row_away_moves_all_counted_records_of_the_group() -> None:
    query = records_by(of_group(row), ("x", "y", None), counted=kept(2))
    domain, shape = houses(3, 3, own=("a",), rows=("x", "y")), Counts(by=Decides.GROUP, cap=2)
    assert furthest(query, domain, records_arrive, ADD_REMOVE) == (4, 8) == declared(shape, RECORD, ADD_REMOVE)
    assert furthest(query, domain, records_arrive, REPLACE) == (5, 13)
    assert declared(shape, RECORD, REPLACE) == (8, 32)


def test_one_cell_by_something_of_the_group_moves_by_twice_the_cap_under_replace() -> None:
    query = records_by(of_group(has_one_a), [True], counted=kept(2))
    assert furthest(query, houses(3, 3), records_arrive, ADD_REMOVE) == (2, 4)
    assert furthest(query, houses(3, 3), records_arrive, REPLACE) == (4, 16)
    assert declared(Counts(by=Decides.GROUP, cap=2, one_cell=True), RECORD, REPLACE) == (8, 32)


def test_records_by_their_group_without_a_cap_move_as_far_as_groups_are_large_and_are_refused() -> None:
    query = records_by(of_group(is_even), YES_NO)
    reached = [furthest(query, houses(most, own=("a",)), records_arrive, ADD_REMOVE) for most in (2, 3, 4)]
    assert reached == [(3, 5), (5, 13), (7, 25)]
    with pytest.raises(NoProvedBound):
        Counts(by=Decides.GROUP).sensitivity(RECORD, ADD_REMOVE)
