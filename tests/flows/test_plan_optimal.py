"""The optimal division: the estimates of all published tables together err least, and nothing else errs less."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from estimation.allotment import Market, Offer, Share
from estimation.arrays import Floats
from estimation.foresight import Outlook, TallyAt, blank_measurement, deviations, foresee, outlooks
from estimation.problem import problem
from estimation.release import Estimated
from estimation.worth import Worth
from flows.foreseeing import as_lines, foresee_tables
from flows.plan import Plan
from flows.planning.market import exactly, rounded_down
from flows.planning.shares import Line, Wish
from release_specs.measured import draft_of
from tests.flows.plans import EXAMPLES, planned, small

TWO_BY_TWO = "  both: {count: persons, by: [a, b], at: all}\npublish:"


def foreseen(plan: Plan, folder: Path) -> Estimated:
    """The errors of a plan's estimates, by the code that makes tables."""
    found = problem(plan.spec, plan.domain, list(plan.tallies), folder=folder)
    measurements = [blank_measurement(one.tally, one.level, one.noise) for one in plan.queries]
    return foresee(found, measurements, plan.exact)


def total_variance(plan: Plan, folder: Path) -> float:
    """The variance of all published counts together."""
    known = foreseen(plan, folder)
    return sum(
        float((known.deviation(tally, level) ** 2).sum())
        for tally in plan.tallies
        if tally.adds is None
        for level in tally.levels
    )


def worst_variance(plan: Plan, folder: Path) -> float:
    """The largest variance of a published count."""
    known = foreseen(plan, folder)
    counts = [tally for tally in plan.tallies if tally.adds is None]
    return max(float(deviations(known, tally, level).max()) ** 2 for tally in counts for level in tally.levels)


def outlooks_of(plan: Plan, folder: Path) -> list[tuple[Outlook, list[TallyAt]]]:
    """What the queries of a plan are worth for everything it publishes."""
    goals = [(tally, level) for tally in plan.tallies for level in tally.levels or (None,)]
    measured = [(one.tally, one.level) for one in plan.queries]
    draft = draft_of(plan.spec, plan.domain, folder=folder, edition=plan.edition)
    return outlooks(draft, plan.tallies, measured=measured, goals=goals)


@pytest.mark.parametrize("name", ["households", "redistricting_2020", "schools", "detailed_race"])
def test_variances_are_those_of_the_estimates_that_are_published(name: str) -> None:
    plan = planned(name)
    known = foreseen(plan, EXAMPLES)
    for outlook, goals in outlooks_of(plan, EXAMPLES):
        bought = {
            outlook.seen(one.tally, one.level): 1 / one.noise.variance
            for one in plan.queries
            if one.tally.name in outlook.tallies
        }
        for goal, (tally, level), found in zip(
            outlook.worth.goals, goals, outlook.worth.variances(bought), strict=True
        ):
            expected = deviations(known, tally, level) ** 2
            areas = outlook.worth.areas(goal)
            assert areas.sum() == len(expected)
            assert (found * areas[:, None]).sum() == pytest.approx(expected.sum(), rel=1e-6, abs=1e-6)
            assert found.max() == pytest.approx(expected.max(), rel=1e-6, abs=1e-6)


def test_slopes_are_those_of_the_variances(tmp_path: Path) -> None:
    plan = small(tmp_path, tables=TWO_BY_TWO)
    for outlook, _ in outlooks_of(plan, tmp_path):
        worth = outlook.worth
        mine = [one for one in plan.queries if one.tally.name in outlook.tallies]
        bought = {outlook.seen(one.tally, one.level): 1 / one.noise.variance for one in mine}
        weights = [np.ones_like(one) * (1 + number) for number, one in enumerate(worth.variances(bought))]

        def error(
            precisions: dict[tuple[str, str], float], worth: Worth = worth, weights: list[Floats] = weights
        ) -> float:
            return sum(
                float((one * weight).sum()) for one, weight in zip(worth.variances(precisions), weights, strict=True)
            )

        total, falls = worth.slopes(bought, lambda _, weights=weights: weights)
        assert total == pytest.approx(error(bought))
        for name, held in bought.items():
            step = 1e-4 * held
            slope = (error(bought | {name: held - step}) - error(bought | {name: held + step})) / (2 * step)
            assert falls[name] == pytest.approx(slope, rel=1e-5, abs=1e-9 * total / held)


def test_the_division_is_the_best_that_another_solver_finds(tmp_path: Path) -> None:
    plan = small(tmp_path, tables=TWO_BY_TWO)
    outlook, goals = next(found for found in outlooks_of(plan, tmp_path) if "by_a.count@land" in found[0].tallies)
    mine = [one for one in plan.queries if one.tally.name in outlook.tallies]
    offers = tuple(Offer(0, outlook.seen(one.tally, one.level), 2.0) for one in mine)
    market = Market((outlook.worth,), offers, ((1.0,) * len(goals),))

    def error(logs: Sequence[float]) -> float:
        amounts = np.exp(logs) / np.exp(logs).sum()
        return market.slopes(amounts)[0]

    found = market.divide([Share(1.0, tuple(range(len(offers))))], [0.0] * len(offers))
    other = minimize(error, np.zeros(len(offers)), method="BFGS", options={"maxiter": 300})
    assert found.sum() == pytest.approx(1)
    assert market.slopes(found)[0] <= 1.01 * other.fun


def test_an_optimal_division_errs_less_than_equal_shares(tmp_path: Path) -> None:
    equal = small(tmp_path, "spend: {by_table: {rest: equal}}\n", tables=TWO_BY_TWO)
    assert total_variance(small(tmp_path, tables=TWO_BY_TWO), tmp_path) < total_variance(equal, tmp_path)


def test_what_is_minimised_is_least_of_all(tmp_path: Path) -> None:
    found = {}
    for aim in ("total variance", "worst variance"):
        found[aim] = small(tmp_path, f"spend: {{optimal: {{minimise: {aim}}}}}\n", tables=TWO_BY_TWO)
    totals = {aim: total_variance(plan, tmp_path) for aim, plan in found.items()}
    worsts = {aim: worst_variance(plan, tmp_path) for aim, plan in found.items()}
    assert totals["total variance"] < totals["worst variance"]
    assert worsts["worst variance"] < worsts["total variance"]


def test_what_is_important_errs_less(tmp_path: Path) -> None:
    plain = foreseen(small(tmp_path), tmp_path)
    weighed = foreseen(small(tmp_path, "spend: {optimal: {importance: {by_a: 9}}}\n"), tmp_path)
    spread = [
        {tally.table: deviations(known, tally, "part").max() for tally in known.problem.tallies if tally.adds is None}
        for known in (plain, weighed)
    ]
    assert spread[1]["by_a"] < spread[0]["by_a"]
    assert spread[1]["by_b"] > spread[0]["by_b"]


def test_pure_budgets_are_divided_as_well(tmp_path: Path) -> None:
    best = small(tmp_path, budget="{epsilon: 1}", tables=TWO_BY_TWO)
    equal = small(tmp_path, "spend: {by_table: {rest: equal}}\n", budget="{epsilon: 1}", tables=TWO_BY_TWO)
    assert best.currency == "epsilon"
    assert total_variance(best, tmp_path) < total_variance(equal, tmp_path)


def test_the_same_spec_is_always_divided_alike(tmp_path: Path) -> None:
    assert small(tmp_path, tables=TWO_BY_TWO).digest == small(tmp_path, tables=TWO_BY_TWO).digest


def wishes_of(plan: Plan) -> tuple[Wish, ...]:
    """Some queries to divide a line among."""
    return tuple(Wish(one.tally, one.level, one.charge.shape, one.charge.sensitivity, "auto") for one in plan.queries)


def test_exact_amounts_keep_floors_and_never_exceed_the_line(tmp_path: Path) -> None:
    wishes = wishes_of(small(tmp_path))[:4]
    line = Line(Fraction(1, 7), wishes)
    parts = dict(zip(wishes, map(Fraction, ("0.5", "0.3", "0.15", "0.05")), strict=True))
    floors = {wishes[3]: Fraction(1, 70)}
    found = exactly(line, parts, floors)
    assert sum(found.values()) <= line.amount
    assert found[wishes[3]] == floors[wishes[3]]
    assert all(amount > 0 for amount in found.values())
    too_much = exactly(line, parts, dict.fromkeys(wishes, Fraction(1, 8)))
    assert sum(too_much.values()) <= line.amount


def test_parts_keep_their_first_digits() -> None:
    assert rounded_down(Fraction("0.123456789")) == Fraction("0.12345")
    assert rounded_down(Fraction("0.00000123456")) == Fraction("0.0000012345")


def test_what_is_foreseen_is_what_a_release_will_state() -> None:
    plan = planned("households")
    rows = {(row.table, row.level, row.statistic): row for row in foresee_tables(plan, EXAMPLES)}
    known = foreseen(plan, EXAMPLES)
    for tally in plan.tallies:
        for level in tally.levels:
            row = rows[tally.table, level, tally.statistic]
            tick = float(tally.adds.step / tally.adds.factor) if tally.adds is not None else 1.0
            assert row.sd_estimate == pytest.approx(tick * known.deviation(tally, level).max())
            assert row.sd_measured is None or row.sd_estimate <= row.sd_measured * (1 + 1e-9)
    spent = sum((Fraction(row.charge) for row in rows.values() if row.charge is not None), Fraction(0))
    assert spent == plan.price
    lines = as_lines(list(rows.values()))
    assert lines[0].split() == ["table", "level", "share", "noise", "sd", "estimate", "sd", "moe"]
    assert len(lines) == len(rows) + 1
