"""How a budget is divided: stated shares as stated, the rest equally or optimally, never more than there is."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flows.plan import Plan
from flows.planning.optimal import PARTS, Aim, divide_optimally, root
from flows.terminal import UserError
from mechanisms.choose import Currency
from release_specs.diagnostics import SpecError
from release_specs.language.tables import Optimal
from tests.flows.plans import small

TABLES = ("total", "by_a", "by_b", "sums")
amounts = st.fractions(min_value="1/1000000", max_value=100)
shares = st.fractions(min_value="1/1000", max_value="1/4", max_denominator=1000)


def spent(plan: Plan, table: str, level: str | None = None) -> Fraction:
    """What a table gets, at a level or everywhere."""
    found = [query for query in plan.queries if query.tally.table == table and level in (None, query.level)]
    return sum((query.charge.rho for query in found), Fraction(0))


@given(total=amounts, weights=st.lists(amounts, min_size=1, max_size=30), part=st.fractions(0, 1))
def test_an_optimal_division_keeps_every_floor_and_never_exceeds_the_line(
    total: Fraction, weights: list[Fraction], part: Fraction
) -> None:
    floors = [total * part / len(weights) if place % 3 == 0 else Fraction(0) for place in range(len(weights))]
    found = divide_optimally(total, weights, floors)
    assert sum(found) <= total
    assert all(amount > 0 and amount >= floor for amount, floor in zip(found, floors, strict=True))


@given(total=amounts, weights=st.lists(st.integers(1, 100), min_size=2, max_size=9))
def test_without_floors_amounts_are_in_proportion_to_weights(total: Fraction, weights: list[int]) -> None:
    found = divide_optimally(total, [Fraction(weight) for weight in weights], [Fraction(0)] * len(weights))
    for amount, weight in zip(found, weights, strict=True):
        assert abs(amount / total - Fraction(weight, sum(weights))) <= Fraction(len(weights) + 1, PARTS)


def test_floors_that_do_not_fit_are_ignored_together() -> None:
    found = divide_optimally(Fraction(1), [Fraction(1)] * 2, [Fraction(3, 4), Fraction(1, 2)])
    assert found[0] == found[1]


@given(number=st.fractions(min_value=0, max_value=10**12, max_denominator=10**6), degree=st.sampled_from([2, 3]))
def test_roots_are_rounded_down_to_a_millionth(number: Fraction, degree: int) -> None:
    found = root(number, degree)
    assert found**degree <= number < (found + Fraction(1, 10**6)) ** degree


def test_an_optimal_division_beats_its_neighbours() -> None:
    cells = [1, 12, 500]
    for currency, price in ((Currency.RHO, 1), (Currency.EPSILON, 2)):
        aim = Aim(Optimal(), currency)
        weights = [aim.weight("t", "land", cells=one) for one in cells]
        best = divide_optimally(Fraction(1), weights, [Fraction(0)] * 3)

        def error(given_amounts: list[Fraction], price: int = price) -> Fraction:
            return sum((one / amount**price for one, amount in zip(cells, given_amounts, strict=True)), Fraction(0))

        step = Fraction(1, 100)
        for one, other in pairwise((0, 1, 2, 0)):
            moved = [amount + step * ((place == one) - (place == other)) for place, amount in enumerate(best)]
            assert error(best) < error(moved)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(named=st.dictionaries(st.sampled_from(TABLES), shares, max_size=3), data=st.data())
def test_random_shares_of_tables_are_spent_as_stated_and_never_exceed_the_budget(
    named: dict[str, Fraction], data: st.DataObject, tmp_path: Path
) -> None:
    rest = data.draw(st.sampled_from(["optimal", "equal"]))
    budget = data.draw(st.sampled_from(["{rho: 1/7, delta: 1e-9}", "{rho: 3, delta: 1e-9}"]))
    lines = ", ".join(f"{table}: {share}" for table, share in named.items())
    plan = small(tmp_path, f"spend: {{by_table: {{{lines + ', ' if lines else ''}rest: {rest}}}}}\n", budget=budget)
    assert plan.price <= plan.budget
    for table, share in named.items():
        assert plan.budget * share * Fraction(9999, 10000) < spent(plan, table) <= plan.budget * share
    left = [table for table in TABLES if table not in named]
    if rest == "equal":
        part = plan.budget * (1 - sum(named.values())) / len(left)
        assert all(part * Fraction(9999, 10000) < spent(plan, table) <= part for table in left)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(land=shares, table=shares, epsilon=st.sampled_from(["{epsilon: 1}", "{epsilon: 1/3, delta: 1e-9}"]))
def test_random_shares_of_levels_never_exceed_the_budget_in_any_currency(
    land: Fraction, table: Fraction, epsilon: str, tmp_path: Path
) -> None:
    spend = f"by_level: {{land: {{share: {land}, tables: {{total: {table}, rest: equal}}}}, part: rest}}"
    plan = small(tmp_path, f"spend: {{{spend}}}\n", budget=epsilon)
    assert plan.price <= plan.budget
    pure = plan.currency == "epsilon"
    charge = next(one for one in plan.charges if one.query == "total.count@land:land")
    cost = charge.epsilon if pure else charge.rho
    stated = plan.budget * land * table
    assert cost is not None
    assert stated * Fraction(9999, 10000) < cost <= stated


def test_tables_of_one_line_share_it(tmp_path: Path) -> None:
    spend = "by_table: {total + by_a: {share: 1/2, at: {land: 1/5, part: rest}}, rest: optimal}"
    plan = small(tmp_path, f"spend: {{{spend}}}\n")
    together = {level: spent(plan, "total", level) + spent(plan, "by_a", level) for level in ("land", "part")}
    assert float(together["land"]) == pytest.approx(1 / 10, rel=1e-4)
    assert float(together["part"]) == pytest.approx(4 / 10, rel=1e-4)


def test_a_table_without_a_share_is_published_and_not_measured(tmp_path: Path) -> None:
    plan = small(
        tmp_path, "spend: {by_table: {total: none, by_b: {share: 1/4, at: {land: none, part: 1}}, rest: equal}}\n"
    )
    assert {query.tally.table for query in plan.queries} == {"by_a", "by_b", "sums"}
    assert [query.level for query in plan.queries if query.tally.table == "by_b"] == ["part"]
    assert {tally.table: tally.levels for tally in plan.tallies} == dict.fromkeys(TABLES, ("land", "part"))
    assert "total.count@land" not in {tally.name for tally in plan.counted}


def test_a_table_is_measured_where_spend_says_although_it_is_not_published_there(tmp_path: Path) -> None:
    tables = "  few: {count: persons, by: [a, b], at: land}\npublish:"
    more = "spend: {by_table: {few: {share: 1/2, at: {land: 1/4, part: rest}}, rest: optimal}}\n"
    plan = small(tmp_path, more, tables=tables)
    assert (spent(plan, "few", "land"), spent(plan, "few", "part")) == (Fraction(1, 8), Fraction(3, 8))
    assert next(tally.levels for tally in plan.tallies if tally.table == "few") == ("land", "part")


def test_a_share_that_is_too_small_for_laplace_noise_says_so(tmp_path: Path) -> None:
    tables = "  few: {count: persons, by: [a, b], at: land, mechanism: laplace}\npublish:"
    more = "spend: {by_table: {few: 1e-10, rest: optimal}}\n"
    with pytest.raises(UserError, match=r"'few.count@land:land' has too small a share"):
        small(tmp_path, more, tables=tables, budget="{rho: 1/1000, delta: 1e-9}")


def test_shares_of_more_than_the_whole_never_reach_the_plan(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="over by"):
        small(tmp_path, "spend: {by_table: {total: 3/4, by_a: 1/2, rest: optimal}}\n")


def test_a_line_of_nothing_is_refused(tmp_path: Path) -> None:
    more = "spend: {by_table: {total: 1/2, by_a: 1/4, sums: 1/4}}\n"
    with pytest.raises(UserError, match="spend: nothing is left for by_b"):
        small(tmp_path, more, promise="by_b")
