"""All neighbours on small domains, through the product itself: no unit moves a count further than the law declares."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mechanisms.sensitivity import Unit
from tests.tabulation import small_towns
from tests.tabulation.many_towns import Found, Towns, counted, furthest
from tests.tabulation.neighbours import ADD_REMOVE

Made = Callable[[], Towns]

USUAL: dict[str, tuple[Made, set[str]]] = {
    "records without groups": (
        small_towns.alone,
        {"every.count", "by_y.count", "by_mm.count", "high_m.count", "sum.sum(n)", "mean.centred(n)", "share.part"},
    ),
    "records in groups of which one counts": (
        lambda: small_towns.shared("at_most: {people: 1}"),
        {"by_x.count", "by_kind.count", "by_size.count", "homes_by_kind.count", "homes_by_size.count"},
    ),
    "records in groups of which two count, some first": (
        lambda: small_towns.shared("at_most: {people: 2, keep_first: {x: b}}"),
        {"by_x.count", "by_kind.count", "by_size.count", "homes_by_size.count"},
    ),
    "records in groups, without ids and twice": (
        lambda: small_towns.shared("at_most: {people: 2}", nameless=True),
        {"by_x.count", "by_kind.count", "by_size.count"},
    ),
    "groups of which two count, some first": (
        lambda: small_towns.homes("at_most: {people: 2, keep_first: {x: b, kind: F}}"),
        {"by_x.count", "by_m.count", "one_of_each.count", "sum_by_x.sum(n)", "mean.centred(n)", "rooms.sum(rooms)"},
    ),
    "groups beside singles": (
        lambda: small_towns.homes_with_singles("at_most: {people: 2}"),
        {"by_x.count", "sum.sum(n)", "homes_by_size.count"},
    ),
    "groups of members without ids": (
        lambda: small_towns.homes_without_ids("at_most: {people: 2}"),
        {"by_x.count", "by_size.count", "homes_by_b.count"},
    ),
    "groups that are built from rows": (
        lambda: small_towns.mothers(2),
        {"mothers.count", "mothers_by_age.count", "births.count", "births_by_age.count", "ages.sum(age)"},
    ),
    "records of which groups are built": (
        lambda: small_towns.births(2),
        {"mothers_by_age.count", "mothers_by_born.count", "births.count", "births_by_born.count"},
    ),
}
LARGER: dict[str, Made] = {
    "records in groups of which two count": lambda: small_towns.shared("at_most: {people: 2}", places_in_k=3),
    "records in groups of which three count": lambda: small_towns.shared("at_most: {people: 3}", places_in_k=3),
    "groups of which one counts": lambda: small_towns.homes("at_most: {people: 1}", larger=True),
    "groups of which two count": lambda: small_towns.homes("at_most: {people: 2}", larger=True),
    "groups beside singles, of which one counts": lambda: small_towns.homes_with_singles(
        "at_most: {people: 1, keep_first: {x: b}}"
    ),
    "groups that are built from rows, of which one counts": lambda: small_towns.mothers(1),
    "records of which groups are built, and one counts": lambda: small_towns.births(1),
}


def too_far(found: list[Found]) -> list[Found]:
    return [one for one in found if one.is_too_far]


@pytest.mark.parametrize("name", USUAL)
def test_no_unit_moves_a_count_further_than_the_law_says_and_some_move_it_that_far(name: str, tmp_path: Path) -> None:
    make, attained = USUAL[name]
    towns = make()
    found = list(furthest(towns, *counted(towns, tmp_path)))
    assert too_far(found) == []
    reached = {one.tally for one in found if one.is_attained and one.relation is ADD_REMOVE and one.level == "part"}
    assert {f"{tally}@towns" for tally in attained} <= reached


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGER)
def test_no_unit_moves_a_count_further_than_the_law_says_in_larger_towns(name: str, tmp_path: Path) -> None:
    towns = LARGER[name]()
    assert too_far(list(furthest(towns, *counted(towns, tmp_path)))) == []


def test_one_more_row_than_the_cap_would_be_noticed(tmp_path: Path) -> None:
    towns = small_towns.mothers(1)
    found = too_far(list(furthest(towns, *counted(towns, tmp_path, more_than_the_cap=1))))
    assert {one.tally for one in found} == {
        "births.count@towns",
        "births_by_age.count@towns",
        "births_by_born.count@towns",
    }


def test_a_sensitivity_that_is_too_small_would_be_noticed(tmp_path: Path) -> None:
    towns = small_towns.homes_without_ids("at_most: {people: 2}")
    found = too_far(list(furthest(towns, *counted(towns, tmp_path), unit=Unit(members=1))))
    assert {"by_x.count@towns", "sum.sum(n)@towns", "by_size.count@towns"} <= {one.tally for one in found}
    assert "homes.count@towns" not in {one.tally for one in found}


def test_rows_kept_by_anything_but_their_own_group_would_be_noticed(tmp_path: Path) -> None:
    towns = replace(small_towns.births(1), ordered=())  # who is kept of a mother now differs from town to town
    assert {"births.count@towns"} <= {one.tally for one in too_far(list(furthest(towns, *counted(towns, tmp_path))))}
