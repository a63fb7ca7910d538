"""What several measurements cost together, as the most expensive change over all neighbours on small domains.

The law states prices of disjoint parts as multiples of one record's add-remove prices; here they are counted out. A
scale or variance differs from part to part, so that the largest and the second largest price can be told apart.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from mechanisms.sensitivity import RECORD, Counts, Relation, Unit
from tests.mechanisms.neighbours import ADD_REMOVE, REPLACE, Domain, Query, Record, arrivals_of, houses, joint_price
from tests.mechanisms.small_tables import kept, own, records_by, tally

SCALES = (Fraction(1), Fraction(2), Fraction(5))
VARIANCES = (Fraction(1, 2), Fraction(3, 2), Fraction(4))
LARGEST = (Fraction(1), Fraction(1))
"""The add-remove price of one record in the part that is measured best: 1/s, and 1/(2 variance)."""
SECOND = (Fraction(1, 2), Fraction(1, 3))

PAIRS = tuple((part, cell) for part in "xyz" for cell in "ab")
"""What records say: in which part they are, and in which of its cells."""


def price(queries: list[Query], domain: Domain, unit: Unit, relation: Relation) -> tuple[Fraction, Fraction]:
    count = len(queries)
    return joint_price(queries, domain, arrivals_of(unit), relation, scales=SCALES[:count], variances=VARIANCES[:count])


def times(factor: int, one: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    return factor * one[0], factor * one[1]


def plus(one: tuple[Fraction, Fraction], other: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    return one[0] + other[0], one[1] + other[1]


def part(name: str, cells: str, amount: Callable[[Record], int] = lambda record: 1) -> Query:
    """The records of one part, by cell."""
    return lambda town: tally(cells, ((r.own[1], amount(r)) for r in town.records if r.own[0] == name))


SEVERAL_CELLS = [part(name, "ab") for name in "xyz"]
SINGLE_CELLS = [part(name, "a") for name in "xyz"]
PEOPLE = Domain(own=PAIRS, places=((None, 2),))
FAMILIES = houses(2, 1, own=PAIRS)


def test_under_add_remove_disjoint_parts_cost_the_largest() -> None:
    assert price(SEVERAL_CELLS, PEOPLE, RECORD, ADD_REMOVE) == LARGEST
    assert price(SINGLE_CELLS, PEOPLE, RECORD, ADD_REMOVE) == LARGEST


def test_under_replace_disjoint_parts_cost_twice_the_largest() -> None:
    assert price(SEVERAL_CELLS, PEOPLE, RECORD, REPLACE) == times(2, LARGEST)


def test_under_replace_parts_of_a_single_cell_cost_the_two_largest() -> None:
    assert price(SINGLE_CELLS, PEOPLE, RECORD, REPLACE) == plus(LARGEST, SECOND)


def test_one_part_of_several_cells_among_single_ones_costs_twice_the_largest() -> None:
    mixed = [part("x", "ab"), part("y", "a"), part("z", "a")]
    assert price(mixed, PEOPLE, RECORD, REPLACE) == times(2, LARGEST)


def test_groups_over_a_partition_of_their_records_cost_their_size_or_its_square_times_the_largest() -> None:
    assert price(SEVERAL_CELLS, FAMILIES, Unit(2), ADD_REMOVE) == (2 * LARGEST[0], 4 * LARGEST[1])
    assert price(SEVERAL_CELLS, FAMILIES, Unit(2), REPLACE) == (4 * LARGEST[0], 8 * LARGEST[1])


def test_groups_over_single_cells_stay_below_twice_that() -> None:
    both = plus(LARGEST, SECOND)
    assert price(SINGLE_CELLS, FAMILIES, Unit(2), REPLACE) == (2 * both[0], 4 * both[1])


# Sums: the law's factor under replace is max(2, (b - a)^2 / c^2).


def sums_of(low: int, high: int, cells: str) -> tuple[list[Query], Domain, tuple[Fraction, Fraction]]:
    """Sums over three parts, their domain, and the largest add-remove price of one record."""
    values = tuple((name, cell, value) for name in "xyz" for cell in "ab" for value in (low, high))
    queries = [part(name, cells, lambda record: record.own[2]) for name in "xyz"]
    furthest = max(abs(low), abs(high))
    return queries, Domain(own=values, places=((None, 2),)), (Fraction(furthest), Fraction(furthest**2))


def test_sums_over_disjoint_parts_cost_the_largest_under_add_remove() -> None:
    queries, domain, largest = sums_of(-3, 3, "ab")
    assert price(queries, domain, RECORD, ADD_REMOVE) == largest


def test_centred_sums_of_several_cells_cost_four_times_the_largest_rho_under_replace_and_twice_the_epsilon() -> None:
    queries, domain, largest = sums_of(-3, 3, "ab")
    assert price(queries, domain, RECORD, REPLACE) == (2 * largest[0], 4 * largest[1])


def test_sums_from_zero_cost_twice_the_largest_under_replace() -> None:
    queries, domain, largest = sums_of(0, 3, "ab")
    assert price(queries, domain, RECORD, REPLACE) == times(2, largest)


def test_centred_sums_of_single_cells_cost_more_than_the_two_largest_under_replace() -> None:
    queries, domain, largest = sums_of(-3, 3, "a")
    found = price(queries, domain, RECORD, REPLACE)
    two_largest = plus(largest, (3 * SECOND[0], 9 * SECOND[1]))
    assert found == (2 * largest[0], 4 * largest[1])
    assert found[0] > two_largest[0]
    assert found[1] > two_largest[1]


def test_groups_over_centred_sums_cost_four_times_the_square_of_their_size_under_replace_not_twice() -> None:
    queries, domain, largest = sums_of(-3, 3, "ab")
    found = price(queries, houses(2, own=domain.own), Unit(2), REPLACE)
    assert found == (4 * largest[0], 4 * 4 * largest[1])


# What is no partition.


def test_several_answers_are_in_several_parts_and_cost_their_sum() -> None:
    def those_with(answer: str) -> Query:
        return lambda town: tally(answer, ((answer, 1) for record in town.records if answer in record.own))

    domain = Domain(own=(frozenset("x"), frozenset("y"), frozenset("xy")), places=((None, 2),))
    assert price([those_with("x"), those_with("y")], domain, RECORD, ADD_REMOVE) == plus(LARGEST, SECOND)


def test_parts_beside_a_cap_are_not_told_by_the_record_alone_and_cost_more_than_the_largest() -> None:
    parts = [records_by(lambda record, _: record.own[0], name, counted=kept(1)) for name in "xy"]
    found = price(parts, houses(2, 2, own=PAIRS), RECORD, ADD_REMOVE)
    assert found == plus(LARGEST, SECOND)
    assert not Counts(cap=1).depends_on_the_row_alone


def test_levels_of_a_hierarchy_and_different_tables_cost_their_sum() -> None:
    tables = [records_by(lambda record, _: record.own[0], "xyz"), records_by(own, PAIRS)]
    assert price(tables, PEOPLE, RECORD, ADD_REMOVE) == plus(LARGEST, SECOND)
    assert price(tables, PEOPLE, RECORD, REPLACE) == times(2, plus(LARGEST, SECOND))
