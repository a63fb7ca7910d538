"""What a plan guarantees: the published epsilon, the others beside it, and what it is worth for one person."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from flows.plan import Plan, guarantee
from flows.planning.guarantee import relation_in_words, unit_in_words
from mechanisms.accountant import rounded_up
from mechanisms.accounting.conversion import epsilon_tight
from tests.flows.plans import AREAS, EDITIONS, planned, small, written

HOMES = """
margrave: 1
release: {name: homes, title: Homes}
microdata:
  homes:
    key: home
    columns:
      part: {area: land, outside: {count_as: a}, missing: {count_as: a}}
      kind: {codes: [1, 2], outside: {count_as: 1}, missing: {count_as: 1}}
      rent: {integer: 0..9, clip: 0..9, outside: nearest, missing: leave_out}
  people:
    key: id
    in: {homes: home}
    columns:
      part: {area: land, outside: {count_as: a}, missing: {count_as: a}}
      sex: {codes: [1, 2], outside: {count_as: 1}, missing: {count_as: 1}}
geography: {land: {levels: [land, part], areas: areas.csv}}
derive: {homes: {size: {number_of: people, into: {Few: ..2, Many: 3..}}}}
privacy: {protect: homes, at_most: {people: 4}, neighbours: NEIGHBOURS, budget: {rho: 1, delta: 1e-9}}
tables:
  folk:  {count: people, by: [sex], at: part}
  with:  {count: people, by: [sex, kind], at: part}
  kinds: {count: homes, by: [kind], at: part}
  sizes: {count: homes, by: [size], at: part}
  rents: {sum: rent, of: homes, at: part}
spend: {by_table: {rest: equal}}
"""


Told = tuple[Plan, dict[str, Any]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """A small plan and its guarantee, which takes a while to compose exactly."""
    plan = small(tmp_path_factory.mktemp("small"))
    return plan, guarantee(plan)


@pytest.mark.parametrize("name", [name for name in EDITIONS if name not in ("acs", "detailed_race")])
def test_the_guarantee_of_an_example_is_plain_data_and_never_below_its_price(name: str) -> None:
    plan = planned(name)
    found = guarantee(plan)
    assert json.loads(json.dumps(found)) == found
    assert Fraction(found["rho"]) == sum(charge.rho for charge in plan.charges)
    prices = {price["name"]: price["epsilon"] for price in found["prices"]}
    assert found["epsilon"] == prices[found["conversion"]]
    if plan.delta is None:
        assert Decimal(found["epsilon"]) >= float(plan.price)
        assert (found["attributes"], found["levels"]) == ({}, {})
    else:
        assert prices["zCDP tight"] == str(rounded_up(epsilon_tight(plan.price, plan.delta)))
        assert Decimal(found["epsilon"]) <= Decimal(prices["zCDP tight"])


def test_the_unit_and_its_neighbours_are_said_in_words(told: Told) -> None:
    assert unit_in_words(planned("households").spec) == (
        "one of households with all its rows, of which at most 6 persons are counted or one single record"
    )
    assert "exchanged for any other" in relation_in_words(planned("redistricting_2020").spec)
    stated = told[1]
    assert stated["protects"] == "one record of persons"
    assert stated["neighbours_in_words"] == "two datasets of which one has one unit more"
    assert (stated["neighbours"], stated["record_view"]) == ("add-remove", None)


def test_groups_of_units_pay_their_number_squared_in_rho(told: Told) -> None:
    plan, stated = told
    found = {group["size"]: Fraction(group["rho"]) for group in stated["groups"]}
    assert found == {size: plan.price * size**2 for size in (2, 4, 8)}


def test_what_is_told_of_a_level_is_what_its_smaller_areas_were_measured_with(told: Told) -> None:
    plan, stated = told
    (below,) = [levels["land"] for levels in stated["levels"].values()]
    parts = [query.charge for query in plan.queries if query.level == "part"]
    replaced = sum((2 * charge.rho for charge in parts), Fraction(0))
    assert below == str(rounded_up(epsilon_tight(replaced, plan.delta or Fraction(1))))


def test_what_is_told_of_an_attribute_counts_every_query_it_has_a_say_in(told: Told) -> None:
    found = told[1]["attributes"]
    assert set(found) == {"persons.a", "persons.b", "persons.n"}
    assert Decimal(found["persons.a"]) > Decimal(found["persons.b"])


def record_prices(neighbours: str, folder: Path) -> tuple[dict[str, Fraction], dict[str, object]]:
    """The rho of every table in a guarantee for homes, and the view of one of their people."""
    (folder / "areas.csv").write_text(AREAS)
    plan = written(HOMES.replace("NEIGHBOURS", neighbours), folder)
    view = guarantee(plan)["record_view"]
    return {query.tally.table: query.charge.rho for query in plan.queries}, view


def test_one_person_of_a_household_is_priced_by_the_law_s_own_lines(tmp_path: Path) -> None:
    rho, view = record_prices("add-remove", tmp_path)
    lines = {
        "folk": Fraction(2, 16),  # a newcomer displaces one under the cap: 2 instead of 4 squared
        "with": Fraction(2 * 16, 16),  # all four of the home change their cell
        "kinds": Fraction(1),
        "sizes": Fraction(2),
        "rents": Fraction(2),  # no line: one home is exchanged
    }
    assert Fraction(str(view["rho"])) == sum(rho[table] * times for table, times in lines.items())
    assert view["without_a_line"] == ["rents.sum(rent)@land:part"]
    assert view["note"] == "one record's data changes one of homes: the replace-homes price"
    assert view["protects"] == "one record of people"


def test_an_exchanged_person_leaves_one_household_and_enters_another(tmp_path: Path) -> None:
    rho, view = record_prices("replace", tmp_path)
    lines = {"folk": Fraction(8, 32), "with": Fraction(8 * 16, 32), "kinds": 1, "sizes": 4, "rents": 4}
    assert Fraction(str(view["rho"])) == sum(rho[table] * times for table, times in lines.items())
    assert view["note"] == "an exchanged record's data changes two of homes: twice the replace-homes step"


def test_a_pure_guarantee_is_its_basic_sum() -> None:
    found = guarantee(planned("births"))
    assert (found["epsilon"], found["conversion"], found["delta"]) == ("2.00", "basic", None)
    assert found["groups"][0]["epsilon_pure"] == "4.00"
    assert found["record_view"]["epsilon_pure"] is not None
    assert found["record_view"]["epsilon_tight"] is None
