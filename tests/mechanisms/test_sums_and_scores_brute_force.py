"""The lines of the law's table for sums, and the scores and answers beside it, against all neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

import pytest

from mechanisms.sensitivity import RECORD, Decides, NoProvedBound, Responses, Rows, Scores, Sums, Unit
from tests.mechanisms.neighbours import (
    ADD_REMOVE,
    BOTH,
    REPLACE,
    Domain,
    Number,
    Query,
    Record,
    Said,
    Town,
    Vector,
    arrivals_of,
    declared,
    furthest,
    groups_arrive,
    houses,
    is_attained,
    one_score,
    records_arrive,
)
from tests.mechanisms.small_tables import group_rows, kept, over_orders, own, records_by, row, tally

CLIPS = [(0, 3), (-3, 3), (-2, 3), (-3, 1), (2, 5), (-5, -2), (-1, 0), (4, 4)]
"""From zero, centred, uneven, away from zero on both sides, and of no width."""


def clipped(value: int | None, low: int, high: int) -> int:
    """A missing value adds nothing, also where 0 is outside the clip."""
    return 0 if value is None else max(low, min(high, value))


def values_around(low: int, high: int) -> tuple[Said, ...]:
    """Each value in or just beyond the clip, or none, in one of two cells or in no table."""
    return tuple((cell, value) for cell in ("a", "b", None) for value in (None, *range(low - 1, high + 2)))


def extremes(low: int, high: int) -> tuple[Said, ...]:
    return tuple((cell, value) for cell in ("a", "b") for value in (None, low - 1, high + 1))


def summed(low: int, high: int, cells: str = "ab", **counted: Callable[[Town], Iterable[Record]]) -> Query:
    """Clipped values of those counted, added up by cell."""
    return records_by(
        lambda record, _: record.own[0], cells, amount=lambda record: clipped(record.own[1], low, high), **counted
    )


@pytest.mark.parametrize(("low", "high"), CLIPS)
def test_one_record_moves_a_sum_by_its_furthest_value_and_an_exchange_across_the_clip(low: int, high: int) -> None:
    domain = Domain(own=values_around(low, high), places=((None, 2),))
    assert is_attained(Sums(low, high), RECORD, summed(low, high), domain)
    assert is_attained(Sums(low, high, one_cell=True), RECORD, summed(low, high, "a"), domain)


@pytest.mark.parametrize(("low", "high"), CLIPS)
def test_a_group_moves_a_sum_by_all_its_counted_records(low: int, high: int) -> None:
    domain = houses(3, own=extremes(low, high))
    for shape, cells in ((Sums(low, high), "ab"), (Sums(low, high, one_cell=True), "a")):
        for relation in BOTH:
            found = over_orders(
                lambda order, cells=cells: summed(low, high, cells, counted=kept(2, order)), domain, Unit(2), relation
            )
            assert found == declared(shape, Unit(2), relation)


@pytest.mark.parametrize(("low", "high"), CLIPS)
def test_a_group_moves_a_sum_of_groups_by_one_value(low: int, high: int) -> None:
    domain = houses(1, 1, own=("a",), rows=extremes(low, high))

    def query(cells: str) -> Query:
        return lambda town: tally(cells, ((said[0], clipped(said[1], low, high)) for _, said in town.rows))

    assert is_attained(Sums(low, high, of=Rows.GROUPS), Unit(3), query("ab"), domain)
    assert is_attained(Sums(low, high, of=Rows.GROUPS, one_cell=True), Unit(3), query("a"), domain)


def test_the_width_of_the_clip_is_not_what_a_newcomer_adds() -> None:
    domain = Domain(own=values_around(10, 12), places=((None, 2),))
    assert furthest(summed(10, 12), domain, records_arrive, ADD_REMOVE) == (12, 144)
    assert Sums(10, 12).sensitivity(RECORD, ADD_REMOVE).l1 > 12 - 10


def test_a_centred_sum_by_two_cells_moves_by_36_squared_under_replace_not_by_18() -> None:
    domain = Domain(own=values_around(-3, 3), places=((None, 2),))
    assert furthest(summed(-3, 3), domain, records_arrive, REPLACE) == (6, 36)
    assert declared(Sums(-3, 3), RECORD, REPLACE) == (6, 36)


def test_a_sum_of_distances_from_an_odd_midpoint_is_a_sum_in_half_ticks() -> None:
    domain = Domain(own=values_around(2, 5), places=((None, 2),))

    def query(town: Town) -> Vector:
        usable = [r.own for r in town.records if r.own[1] is not None]
        return tally("ab", ((cell, 2 * clipped(value, 2, 5) - 7) for cell, value in usable))

    assert is_attained(Sums(-3, 3), RECORD, query, domain)


def test_a_limit_on_each_total_moves_no_further() -> None:
    domain = Domain(own=extremes(-2, 3), places=((None, 3),))

    def limited(town: Town) -> Vector:
        return tuple(max(-4, min(4, total)) for total in summed(-2, 3)(town))

    assert is_attained(Sums(-2, 3), RECORD, limited, domain)


def test_sums_beside_a_cap_may_move_across_the_clip_under_add_remove_and_are_refused() -> None:
    query = summed(-3, 3, "a", counted=kept(1))
    domain = houses(2, own=extremes(-3, 3))
    assert furthest(query, domain, records_arrive, ADD_REMOVE) == (6, 36)
    with pytest.raises(NoProvedBound):
        Sums(-3, 3, cap=1, one_cell=True).sensitivity(RECORD, ADD_REMOVE)


# Scores.


@pytest.mark.parametrize(("unit", "places"), [(RECORD, ((None, 3),)), (Unit(2), (("h", 2), ("k", 2)))])
def test_a_count_that_is_a_score_moves_by_one_record_or_by_a_groups_records(
    unit: Unit, places: tuple[tuple[str | None, int], ...]
) -> None:
    domain = Domain(own=("a", "b", "c", None), places=places)
    for relation in BOTH:
        (found,) = furthest(records_by(own, "abc"), domain, arrivals_of(unit), relation, [one_score])
        assert found == Scores().sensitivity(unit, relation).l1 == unit.size


def test_a_count_of_groups_that_is_a_score_moves_by_one() -> None:
    domain, query = houses(2, 2, own=("a",), rows=("x", "y")), group_rows(row, "xy")
    for unit in (RECORD, Unit(2)):
        for relation in BOTH:
            (found,) = furthest(query, domain, arrivals_of(unit), relation, [one_score])
            assert found == Scores(of=Rows.GROUPS).sensitivity(unit, relation).l1 == 1


RANKS: dict[str, Callable[[int, int, Fraction], Number]] = {
    "those below": lambda below, up_to, wanted: below,
    "those up to it": lambda below, up_to, wanted: up_to,
    "the nearest between": lambda below, up_to, wanted: max(below, min(up_to, wanted)),
}
"""What the rank of a grid point may mean where records sit on it."""


def ranked(quantile: Fraction, rank: Callable[[int, int, Fraction], Number]) -> Query:
    """Minus the distance of each grid point's rank from the wanted one."""

    def query(town: Town) -> Vector:
        values = [record.own for record in town.records if record.own is not None]
        wanted = quantile * len(values)
        sides = [(sum(v < point for v in values), sum(v <= point for v in values)) for point in range(3)]
        return tuple(-abs(rank(below, up_to, wanted) - wanted) for below, up_to in sides)

    return query


@pytest.mark.parametrize("rank", RANKS.values(), ids=RANKS)
@pytest.mark.parametrize("quantile", [Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(2, 3), Fraction(1)])
def test_a_rank_score_moves_by_the_larger_side_of_its_quantile_and_by_one_under_replace(
    quantile: Fraction, rank: Callable[[int, int, Fraction], Number]
) -> None:
    shape, query = Scores(quantile=quantile), ranked(quantile, rank)
    people = Domain(own=(0, 1, 2, None), places=((None, 4),))
    families = houses(2, 2, own=(0, 1, 2, None))
    for relation in BOTH:
        (found,) = furthest(query, people, records_arrive, relation, [one_score])
        assert found == shape.sensitivity(RECORD, relation).l1
        (found,) = furthest(query, families, groups_arrive, relation, [one_score])
        assert found == shape.sensitivity(Unit(2), relation).l1


def test_scores_beside_a_cap_or_by_members_move_by_two_under_replace_and_are_refused() -> None:
    query = records_by(own, "ab", counted=kept(1))
    assert furthest(query, houses(2, 2), records_arrive, REPLACE, [one_score]) == (2,)
    for shape in (Scores(cap=1), Scores(of=Rows.GROUPS, by=Decides.MEMBERS), Scores(by=Decides.GROUP, cap=2)):
        with pytest.raises(NoProvedBound):
            shape.sensitivity(RECORD, REPLACE)


# Randomised response.


def exchanged_answers(change: Vector) -> Number:
    """How many records answer differently; neighbours agree on the number of answers, which is an exact total."""
    return 0 if sum(change) else Fraction(sum(abs(number) for number in change), 2)


@pytest.mark.parametrize(("unit", "places"), [(RECORD, ((None, 3),)), (Unit(2), (("h", 2), ("k", 2)))])
def test_as_many_answers_differ_as_one_unit_has_records(unit: Unit, places: tuple[tuple[str | None, int], ...]) -> None:
    domain = Domain(own=("a", "b", "missing"), places=places)
    every_record_answers = records_by(own, domain.own)
    (found,) = furthest(every_record_answers, domain, arrivals_of(unit), REPLACE, [exchanged_answers])
    assert found == Responses().sensitivity(unit, REPLACE).l1 == unit.size


def test_beside_a_cap_an_exchanged_record_changes_two_answers_or_their_number() -> None:
    query = records_by(own, "ab", counted=kept(1))
    answers, number = furthest(query, houses(2, 2), records_arrive, REPLACE, [exchanged_answers, lambda d: abs(sum(d))])
    assert (answers, number) == (2, 1)
    with pytest.raises(NoProvedBound):
        Responses(cap=1).sensitivity(RECORD, REPLACE)
