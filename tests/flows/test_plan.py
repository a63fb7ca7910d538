"""The plan of a release: every example, its price, its digest, its editions, and that it suffices to estimate."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from estimation.measurement import Measurement
from estimation.problem import problem
from estimation.release import estimate_release
from flows.plan import Plan, PlannedQuery, plan_release
from flows.terminal import UserError
from mechanisms.accounting.conversion import rho_tight
from mechanisms.catalogue import read_charge
from release_specs.tallies import tallies_of
from tests.estimation import releases
from tests.estimation.promises import exact_numbers_of
from tests.flows.plans import EDITIONS, EXAMPLES, SMALL, example, planned, small, small_spec, written

SLOW_ACS = [name if name != "acs" else pytest.param(name, marks=pytest.mark.slow) for name in EDITIONS]


def rho_of(plan: Plan, name: str) -> Fraction:
    return next(query.charge.rho for query in plan.queries if query.name == name)


@pytest.mark.parametrize("name", EDITIONS)
def test_every_example_is_planned_within_its_budget_and_almost_all_of_it_is_spent(name: str) -> None:
    plan = planned(name)
    assert plan.budget * Fraction(9999, 10000) < plan.price <= plan.budget
    costs = [query.charge.rho if plan.currency == "rho" else query.charge.epsilon for query in plan.queries]
    assert plan.price == sum(costs)
    assert plan.warnings == ()


@pytest.mark.parametrize("name", EDITIONS)
def test_charges_of_a_plan_are_read_back_as_they_were_written(name: str) -> None:
    plan = planned(name)
    data = json.loads(json.dumps(plan.as_data()))
    assert data == plan.as_data()
    assert tuple(read_charge(query["charge"]) for query in data["queries"]) == plan.charges


@pytest.mark.parametrize("name", EDITIONS)
def test_a_plan_made_again_has_the_same_digest(name: str) -> None:
    again = plan_release(example(name), folder=EXAMPLES, edition=EDITIONS[name])
    assert again.digest == planned(name).digest
    assert len(again.digest) == 64


def test_another_charge_is_another_digest() -> None:
    plan = planned("births")
    first = plan.queries[0]
    other = replace(plan, queries=(PlannedQuery(first.tally, first.level, plan.queries[1].charge), *plan.queries[2:]))
    assert other.digest != plan.digest


@pytest.mark.parametrize("name", EDITIONS)
def test_queries_stand_in_the_order_of_the_spec_under_names_of_their_own(name: str) -> None:
    plan = planned(name)
    order = [(tally.name, level) for tally in tallies_of(plan.spec, plan.domain) for level in tally.levels or (None,)]
    found = [(query.tally.name, query.level) for query in plan.queries]
    assert found == [one for one in order if one in set(found)]
    assert len({query.name for query in plan.queries}) == len(plan.queries)


def test_the_north_star_is_shared_as_stated() -> None:
    plan = planned("households")
    assert (plan.currency, plan.budget, plan.delta) == ("rho", Fraction(1), Fraction(1, 10**10))
    shares = {"county": Fraction(1, 20), "district": Fraction(1, 20), "taz": Fraction(2, 5), "maz": Fraction(1, 2)}
    for level, share in shares.items():
        assert rho_of(plan, f"population.count@zones:{level}") == plan.budget / 5 * share
    income = sum(query.charge.rho for query in plan.queries if query.tally.table == "income")
    assert plan.budget / 10 * Fraction(9999, 10000) < income <= plan.budget / 10


def test_the_census_division_is_kept_to_the_last_fraction() -> None:
    plan = planned("redistricting_2020")
    assert plan.price == plan.budget == Fraction(293764, 114921)
    block = Fraction(165, 4099) * Fraction(3945, 4097)
    assert rho_of(plan, "detailed.count@blocks:block") == plan.budget * block
    assert "total.count@blocks:us" not in {query.name for query in plan.queries}
    assert [tally.name for tally in plan.exact] == ["exact.total1@blocks"]
    assert "total.count@blocks" in {tally.name for tally in plan.tallies}


def test_detailed_groups_cost_what_the_census_bureau_reckoned() -> None:
    plan = planned("detailed_race")
    assert rho_of(plan, "detailed.count@places:nation") == Fraction("1.9208")
    assert rho_of(plan, "detailed.count@places:county") == Fraction("0.14287")
    assert all(query.noise.variance**0.5 * 1.96 <= 50 for query in plan.queries)


def test_a_plan_knows_what_has_to_be_counted() -> None:
    plan = planned("redistricting_2020")
    assert {tally.name for tally in plan.counted} == {tally.name for tally in plan.tallies}
    assert len(plan.counted) == 12


@pytest.mark.parametrize("name", SLOW_ACS)
def test_what_is_planned_suffices_to_estimate_everything_that_is_published(name: str) -> None:
    plan = planned(name)
    truth = releases.truth_of(name, seed=1)
    found = problem(plan.spec, plan.domain, plan.tallies, folder=EXAMPLES)
    rng = np.random.default_rng(1)
    measurements = []
    for query in plan.queries:
        numbers = truth[query.tally.name, query.level]
        drawn = query.noise.draw(numbers.size, rng).reshape(numbers.shape)
        measurements.append(Measurement(query.tally, query.level, numbers + drawn, query.noise))
    estimated = estimate_release(found, measurements, exact_numbers_of(plan.tallies, truth), workers=1)
    for tally in plan.tallies:
        for level in tally.levels or (None,):
            assert estimated.is_known(tally, level), (tally.name, level)


def test_an_edition_has_its_share_of_the_account() -> None:
    shares = {"2025": Fraction(1), "2026": Fraction(1, 2), "2027": Fraction(1, 2)}
    for edition, budget in shares.items():
        assert plan_release(example("households"), folder=EXAMPLES, edition=edition).budget == budget
    assert planned("births").budget == 2  # epsilon 24 a year, month by month
    assert planned("schools").budget == 1  # rho 3 a year, term by term


@pytest.mark.parametrize(
    ("name", "edition", "words"),
    [
        ("households", None, "no edition is named.*2025, 2026, 2027"),
        ("households", "2030", "'2030' is no edition of account 'washtenaw'"),
        ("births", None, "no edition is named.*the month it is for"),
    ],
)
def test_an_account_that_pays_by_edition_asks_for_one(name: str, edition: str | None, words: str) -> None:
    with pytest.raises(UserError, match=words):
        plan_release(example(name), folder=EXAMPLES, edition=edition)


def test_rows_of_an_edition_need_one(tmp_path: Path) -> None:
    text = SMALL.replace("BUDGET", "{epsilon: 1}").replace("NEIGHBOURS", "add-remove")
    text = text.replace("key: id", "key: id\n    only: {a: edition}")
    with pytest.raises(UserError, match="no edition is named"):
        written(text, tmp_path)
    assert written(text, tmp_path, "1").edition == "1"


def test_a_pure_budget_has_laplace_noise_only(tmp_path: Path) -> None:
    plan = small(tmp_path, budget="{epsilon: 1}")
    assert (plan.currency, plan.budget, plan.delta) == ("epsilon", 1, None)
    assert {query.charge.mechanism.name for query in plan.queries} == {"discrete_laplace"}
    assert plan.price == sum(query.charge.epsilon or 0 for query in plan.queries) <= 1


def test_epsilon_at_a_delta_is_spent_as_rho_where_that_errs_less_and_else_as_epsilon(tmp_path: Path) -> None:
    few = small(tmp_path, budget="{epsilon: 1, delta: 1e-12}")
    assert (few.currency, few.budget) == ("epsilon", 1)
    many = planned("acs")
    assert (many.currency, many.budget) == ("rho", rho_tight(Fraction(4), Fraction(1, 10**9)))


def test_an_account_turns_epsilon_at_a_delta_into_rho(tmp_path: Path) -> None:
    text = SMALL.replace("BUDGET", "{epsilon: 1, delta: 1e-12}, account: {name: x, editions: {e: 1/2, f: 1/2}}")
    plan = written(text.replace("NEIGHBOURS", "add-remove"), tmp_path, "e")
    assert (plan.currency, plan.budget) == ("rho", rho_tight(Fraction(1), Fraction(1, 10**12)) / 2)


def test_a_table_may_name_its_mechanism(tmp_path: Path) -> None:
    loaded = small_spec(tmp_path, budget="{epsilon: 1, delta: 1e-12}")
    tables = dict(loaded.spec.tables)
    tables["by_a"] = tables["by_a"].model_copy(update={"mechanism": "gaussian"})
    tables["by_b"] = tables["by_b"].model_copy(update={"mechanism": "laplace"})
    plan = plan_release(replace(loaded, spec=loaded.spec.model_copy(update={"tables": tables})), folder=tmp_path)
    names = {query.tally.table: query.charge.mechanism.name for query in plan.queries}
    assert plan.currency == "rho"
    assert (names["by_a"], names["by_b"]) == ("discrete_gaussian", "discrete_laplace")
    assert plan.price <= plan.budget


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("codes: {most_common: a, of: persons, at: all}", "the most common code cannot be released yet"),
        (
            "coins: {count: persons, by: [a], at: land, mechanism: randomised_response}",
            "randomised response cannot be released yet",
        ),
    ],
)
def test_a_kind_of_table_that_cannot_be_released_yet_is_refused_by_name(table: str, words: str, tmp_path: Path) -> None:
    text = SMALL.replace("BUDGET", "{epsilon: 1}").replace("NEIGHBOURS", "replace")
    text = text.replace(
        "publish:", f"  {table}\nexact: [{{count: persons, at: land, from: 900, because: x}}]\npublish:"
    )
    with pytest.raises(UserError, match=f"tables.{table.partition(':')[0]}: {words}"):
        written(text, tmp_path)


@pytest.mark.parametrize("budget", ["{rho: 301, delta: 1e-9}", "{epsilon: 601}", "{epsilon: 1000000, delta: 1e-9}"])
def test_a_budget_that_protects_nobody_is_refused(budget: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="protects nobody"):
        small(tmp_path, budget=budget)


def test_an_epsilon_that_buys_no_rho_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="buys no rho"):
        small(tmp_path, budget="{epsilon: 1e-6, delta: 1e-9}")


@pytest.mark.parametrize("budget", ["{rho: 300, delta: 1e-9}", "{epsilon: 600}", "{epsilon: 1e-3, delta: 1e-9}"])
def test_the_largest_and_the_smallest_budgets_are_planned(budget: str, tmp_path: Path) -> None:
    plan = small(tmp_path, budget=budget)
    assert plan.price <= plan.budget
    assert all(query.noise.variance > 0 for query in plan.queries)


def test_a_plan_that_costs_more_than_its_budget_cannot_be_made() -> None:
    plan = planned("births")
    with pytest.raises(ValueError, match="over the budget"):
        replace(plan, budget=plan.price - Fraction(1, 10**12))
    with pytest.raises(ValueError, match="no two have the same name"):
        replace(plan, queries=(*plan.queries, plan.queries[0]))
