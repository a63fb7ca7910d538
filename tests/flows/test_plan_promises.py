"""Promised margins of error: bought at the least price, checked where shares are stated, refused where unkept."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest

from flows.plan import Plan
from flows.planning.noise import CellNoise
from flows.terminal import UserError
from mechanisms.noise.laws import GaussianLaw, LaplaceLaw
from tests.flows.plans import planned, small

CONFIDENCE = Fraction(95, 100)
LITTLE = "{rho: 1/4, delta: 1e-10}"
ONLY_B = "spend: {by_table: {total: 1/4, by_a: 1/4, sums: 1/4}}\n"


def at(plan: Plan, name: str) -> tuple[Fraction, float]:
    """What a query costs and the margin it has."""
    (query,) = [one for one in plan.queries if one.name == name]
    return query.charge.rho, query.noise.margin(CONFIDENCE)


def promised(folder: Path, promise: str, more: str = "", **words: str) -> Plan:
    """The plan of a small spec in which by_b promises something."""
    return small(folder, more, promise="by_b", precision=promise, **words)


def test_a_promise_without_a_share_is_bought_at_the_least_price(tmp_path: Path) -> None:
    plan = promised(tmp_path, "{part: {moe: 12}}", ONLY_B)
    cost, margin = at(plan, "by_b.count@land:part")
    assert margin == 12
    assert "by_b.count@land:land" not in {query.name for query in plan.queries}  # summed from its parts
    dearer = promised(tmp_path, "{part: {moe: 11}}", ONLY_B)
    assert at(dearer, "by_b.count@land:part")[0] > cost
    law = next(query.mechanism for query in plan.queries if query.name == "by_b.count@land:part")
    wider = type(law)(law.parameters["variance"] * Fraction(100001, 100000))
    assert wider.law.margin(CONFIDENCE) == 13  # one in a hundred thousand less would break it


def test_what_promises_leave_goes_to_the_rest(tmp_path: Path) -> None:
    plan = promised(tmp_path, "{part: {moe: 4}}", budget=LITTLE)
    assert at(plan, "by_b.count@land:part")[1] == 4
    assert plan.price > plan.budget * Fraction(9999, 10000)
    free = small(tmp_path, budget=LITTLE)
    assert at(free, "by_b.count@land:part")[1] > 4
    assert at(free, "by_a.count@land:part")[0] > at(plan, "by_a.count@land:part")[0]


def test_a_promise_that_the_rest_keeps_anyway_changes_nothing(tmp_path: Path) -> None:
    assert promised(tmp_path, "{part: {moe: 500}}").charges == small(tmp_path).charges


def test_an_unkept_promise_is_refused_with_what_it_gets_and_what_would_keep_it(tmp_path: Path) -> None:
    stated = "spend: {by_table: {by_b: {share: 1/4, at: {land: 1/2, part: 1/2}}, rest: optimal}}\n"
    with pytest.raises(UserError) as refusal:
        promised(tmp_path, "{part: {moe: 3}}", stated)
    said = str(refusal.value)
    assert said.startswith("tables.by_b.precision.part: a margin of 3 at 95% is promised, and the budget buys 4. ")
    needed = re.search(r"A budget of rho ([\d.]+) for this edition \(now 1\)", said)
    assert needed is not None
    enough = promised(tmp_path, "{part: {moe: 3}}", stated, budget=f"{{rho: {needed[1]}, delta: 1e-10}}")
    assert at(enough, "by_b.count@land:part")[1] == 3


def test_promises_that_do_not_fit_together_are_refused_with_a_budget_for_all(tmp_path: Path) -> None:
    both = "{part: {moe: 1}, land: {moe: 1}}"
    with pytest.raises(UserError, match=r"precision\.part.*\n.*precision\.land") as refusal:
        promised(tmp_path, both)
    needed = max(Fraction(found) for found in re.findall(r"A budget of rho ([\d.]+)", str(refusal.value)))
    assert promised(tmp_path, both, budget=f"{{rho: {needed}, delta: 1e-10}}").price <= needed


def test_otherwise_warn_keeps_the_plan_and_says_so(tmp_path: Path) -> None:
    plan = promised(tmp_path, "{part: {moe: 1, otherwise: warn}, land: {moe: 4}}", budget=LITTLE)
    assert [warning.partition(":")[0] for warning in plan.warnings] == ["tables.by_b.precision.part"]
    assert at(plan, "by_b.count@land:land")[1] == 4
    assert plan.as_data()["warnings"] == list(plan.warnings)


def test_where_nothing_is_left_over_promises_that_only_warn_are_bought_last(tmp_path: Path) -> None:
    plan = promised(tmp_path, "{part: {moe: 2, otherwise: warn}, land: {moe: 4}}", ONLY_B)
    assert at(plan, "by_b.count@land:land")[1] == 4
    assert at(plan, "by_b.count@land:part")[1] > 2
    assert len(plan.warnings) == 1


def test_too_many_promises_for_what_is_left_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tables\.by_b\.precision\.part.*A budget of rho"):
        promised(tmp_path, "{part: {moe: 1}}", ONLY_B)


def test_a_level_that_nobody_pays_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'by_b' at part has no share and no promise that buys it"):
        promised(tmp_path, "{land: {moe: 20}}", ONLY_B)


def test_a_promise_of_a_table_that_is_not_measured_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the table is not measured there"):
        small(
            tmp_path, "spend: {by_table: {total: none, rest: equal}}\n", promise="total", precision="{land: {moe: 9}}"
        )


def test_a_percentage_is_of_the_expected_size_of_the_smallest_area(tmp_path: Path) -> None:
    plan = promised(tmp_path, "{land: {moe: 1%}}")  # of 1000 persons
    assert at(plan, "by_b.count@land:land")[1] <= 10
    (tmp_path / "sizes.csv").write_text("part,persons\na,300\nb,200\nc,500\n")
    sizes = "{persons: 1000, areas: {file: sizes.csv, persons: persons}}"
    sized = promised(tmp_path, "{part: {moe: 2%}}", budget=LITTLE, expect=sizes)
    assert at(sized, "by_b.count@land:part")[1] == 4  # 2% of 200
    some = promised(
        tmp_path, "{part: {moe: 2%, areas: [c]}}", ONLY_B, expect="{areas: {file: sizes.csv, persons: persons}}"
    )
    assert at(some, "by_b.count@land:part")[1] == 10  # 2% of 500


def test_a_percentage_of_an_unknown_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the expected size of these areas is not declared"):
        promised(tmp_path, "{part: {moe: 2%}}")


def test_margins_of_sums_are_in_their_own_units(tmp_path: Path) -> None:
    plan = small(tmp_path, promise="sums", precision="{land: {moe: 20}}")
    assert at(plan, "sums.sum(n)@land:land")[1] <= 40  # half a unit a tick


def test_a_promise_of_a_mean_cannot_be_planned_yet(tmp_path: Path) -> None:
    table = "  means: {mean: n, of: persons, at: land, precision: {land: {moe: 1}}}\npublish:"
    with pytest.raises(UserError, match=r"tables\.means\.precision\.land: promises of mean cannot be planned yet"):
        small(tmp_path, tables=table)


def test_the_agencies_rule_is_kept_where_the_spec_asks_for_it() -> None:
    for query in planned("detailed_race").queries:
        promise = planned("detailed_race").spec.tables[query.tally.table].precision[query.level or ""]
        assert 1.96 * query.noise.variance**0.5 <= promise.moe.amount


def test_promises_of_the_examples_are_kept_by_their_own_measurements() -> None:
    births = planned("births")
    (canton,) = [query for query in births.queries if query.name == "maternities.count@cantons:canton"]
    assert canton.noise.margin(CONFIDENCE) <= 15
    households = planned("households")
    (taz,) = [query for query in households.queries if query.name == "sex_by_age.count@zones:taz"]
    assert taz.noise.margin(Fraction(9, 10)) <= 40


@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(9, 10), Fraction(99, 100), Fraction(999, 1000)])
@pytest.mark.parametrize("amount", [8, Fraction(25, 2), 101, Fraction(10007, 3)])
def test_a_rough_margin_is_within_one_of_the_exact_one(amount: Fraction, confidence: Fraction) -> None:
    for law in (GaussianLaw(Fraction(amount)), LaplaceLaw(Fraction(amount))):
        noise = CellNoise(law)
        rough = noise.rough_margin(confidence)
        assert rough is not None
        assert abs(rough - noise.margin(confidence)) <= 1


def test_narrow_noise_has_no_rough_margin() -> None:
    assert CellNoise(GaussianLaw(Fraction(7))).rough_margin(Fraction(9, 10)) is None
