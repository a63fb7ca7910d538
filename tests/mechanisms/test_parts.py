"""Charges one after another and side by side, and what must never be claimed."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import tanh

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.accountant import (
    DifferentIdentity,
    Parallel,
    Sequential,
    state,
)
from mechanisms.charge import Charge
from mechanisms.exponential_mechanism import ExponentialMechanism
from mechanisms.noisy_max import NoisyMax
from mechanisms.permute_and_flip import PermuteAndFlip
from mechanisms.randomised_response import RandomisedResponse
from mechanisms.sensitivity import (
    RECORD,
    Counts,
    Decides,
    NoProvedBound,
    Relation,
    Responses,
    Rows,
    Scores,
    Sums,
    Unit,
)
from tests.mechanisms.charges import (
    ADD_REMOVE,
    ONE_CELL,
    REPLACE,
    TABLE,
    TEN,
    charge,
    epsilon_of,
    gaussian,
    laplace,
)


def test_charges_one_after_another_add_up() -> None:
    plan = Sequential((laplace(10), laplace(20)))
    assert plan.epsilon == Fraction(3, 20)
    assert plan.rho == laplace(10).rho + laplace(20).rho
    assert Sequential((laplace(10), gaussian(100))).epsilon is None


def test_two_overlapping_tables_cost_four_under_replace_and_two_single_counts_cost_two() -> None:
    table, count = laplace(1, TABLE, RECORD, REPLACE), laplace(1, ONE_CELL, RECORD, REPLACE)
    assert Sequential((table, table)).epsilon == 4
    assert Sequential((count, count)).epsilon == 2


def test_a_table_by_sex_and_hair_colour_costs_epsilon_not_twelve_epsilon() -> None:
    cells = tuple(laplace(10, ONE_CELL) for _ in range(12))
    assert laplace(10).epsilon == Parallel(cells).epsilon == Fraction(1, 10)
    assert Sequential(cells).epsilon == Fraction(12, 10)


def test_side_by_side_the_largest_is_paid_under_add_remove() -> None:
    parts = Parallel((gaussian(10), (gaussian(4), gaussian(4)), gaussian(100)))
    assert parts.rho == 2 * gaussian(4).rho


def test_side_by_side_twice_the_largest_is_paid_under_replace() -> None:
    parts = Parallel((laplace(10, TABLE, RECORD, REPLACE), laplace(20, TABLE, RECORD, REPLACE)))
    assert parts.epsilon == Fraction(2, 10)


def test_single_cells_side_by_side_cost_the_two_largest_under_replace_not_the_sum_and_not_the_largest() -> None:
    parts = Parallel(tuple(laplace(scale, ONE_CELL, RECORD, REPLACE) for scale in (10, 20, 40)))
    assert parts.epsilon == Fraction(1, 10) + Fraction(1, 20)
    pair = Parallel(tuple(gaussian(variance, ONE_CELL, RECORD, REPLACE) for variance in (2, 3, 9)))
    assert pair.rho == Fraction(1, 4) + Fraction(1, 6)


def test_a_part_of_several_cells_brings_twice_the_largest_back() -> None:
    single, table = laplace(10, ONE_CELL, RECORD, REPLACE), laplace(12, TABLE, RECORD, REPLACE)
    assert Parallel((single, table, table)).epsilon == Fraction(2, 10)


def test_side_by_side_never_costs_more_than_one_after_another() -> None:
    single, pair = laplace(10, ONE_CELL, RECORD, REPLACE), (laplace(40, ONE_CELL, RECORD, REPLACE),) * 2
    assert Parallel((single, pair)).epsilon == Fraction(1, 10) + Fraction(2, 40)


def test_sums_that_cross_zero_within_a_part_cost_four_times_the_largest_rho_under_replace() -> None:
    whole, alone = Sums(-3, 3), Sums(-3, 3, one_cell=True)
    several = Parallel(tuple(gaussian(9, whole, RECORD, REPLACE) for _ in range(3)))
    assert several.rho == 4 * gaussian(9, whole).rho
    assert Parallel(tuple(gaussian(9, alone, RECORD, REPLACE) for _ in range(3))).rho == 4 * gaussian(9, alone).rho


def test_groups_over_a_partition_of_records_cost_their_size_or_its_square_twice_under_replace() -> None:
    for relation, factor in ((ADD_REMOVE, 1), (REPLACE, 2)):
        pure = Parallel(tuple(laplace(scale, TABLE, Unit(3), relation) for scale in (5, 10)))
        assert pure.epsilon == factor * 3 * Fraction(1, 5)
        squared = Parallel(tuple(gaussian(variance, TABLE, Unit(3), relation) for variance in (5, 10)))
        assert squared.rho == factor * 9 * Fraction(1, 10)


def test_single_cells_that_count_groups_cost_the_two_largest_and_those_of_records_twice_the_largest() -> None:
    groups, records = Counts(of=Rows.GROUPS, one_cell=True), ONE_CELL
    assert Parallel(tuple(laplace(s, groups, Unit(3), REPLACE) for s in (5, 10))).epsilon == Fraction(3, 10)
    assert Parallel(tuple(laplace(s, records, Unit(3), REPLACE) for s in (5, 5, 10))).epsilon == 2 * Fraction(3, 5)


@pytest.mark.parametrize("shape", [Counts(cap=2), Counts(by=Decides.GROUP, cap=2)])
def test_a_part_that_other_records_decide_is_no_part(shape: Counts) -> None:
    with pytest.raises(NoProvedBound, match="other records move"):
        Parallel((laplace(1, shape), laplace(1, shape)))
    assert Parallel((laplace(1, shape, Unit(4)), laplace(1, shape, Unit(4)))).epsilon


def test_randomised_response_in_parts_has_no_proved_bound() -> None:
    answers = charge(RandomisedResponse(2, Fraction(3, 4)), Responses(), RECORD, REPLACE)
    with pytest.raises(NoProvedBound):
        Parallel((answers, answers))


@pytest.mark.parametrize("other", [laplace(1, TABLE, RECORD, REPLACE), laplace(1, TABLE, Unit(3))])
def test_prices_for_different_units_or_relations_are_never_added(other: Charge) -> None:
    for together in (Sequential, Parallel):
        with pytest.raises(DifferentIdentity, match="never added"):
            together((laplace(1), other))


def test_nothing_has_no_price() -> None:
    for nothing in (Sequential, Parallel):
        with pytest.raises(ValueError, match="nothing to price"):
            nothing(())
    with pytest.raises(ValueError, match="without a charge"):
        Parallel((laplace(1), ()))


scales = st.lists(st.integers(1, 60), min_size=1, max_size=5)


@given(
    scales=scales,
    relation=st.sampled_from([ADD_REMOVE, REPLACE]),
    one_cell=st.booleans(),
    members=st.none() | st.just(3),
)
def test_side_by_side_costs_at_least_the_dearest_part_and_at_most_all_of_them(
    scales: list[int], relation: Relation, one_cell: bool, members: int | None
) -> None:
    shape, unit = Counts(one_cell=one_cell), Unit(members)
    charges = tuple(laplace(scale, shape, unit, relation) for scale in scales)
    parallel, sequential = Parallel(charges), Sequential(charges)
    assert max(each.epsilon or 0 for each in charges) <= (parallel.epsilon or 0) <= (sequential.epsilon or 0)
    assert max(each.rho for each in charges) <= parallel.rho <= sequential.rho


def test_a_hierarchy_of_levels_costs_each_level_not_one() -> None:
    """The squared L2 sensitivity of a tree of h levels is h, not 1: every level counts the unit once more."""
    levels = [gaussian(100, level=name) for name in ("country", "county", "district", "block")]
    assert Sequential(tuple(levels)).rho == 4 * gaussian(100).rho
    assert epsilon_of(state(levels, TEN), "exact") > 1.9 * epsilon_of(state(levels[:1], TEN), "exact")


@pytest.mark.parametrize("mechanism", [NoisyMax, PermuteAndFlip])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_noisy_max_and_permute_and_flip_cost_what_any_pure_mechanism_costs_in_zcdp(
    mechanism: type[NoisyMax | PermuteAndFlip], epsilon: Fraction
) -> None:
    selection = charge(mechanism.costing(Scores().sensitivity(RECORD, ADD_REMOVE), epsilon=epsilon), Scores())
    assert selection.epsilon == epsilon
    assert float(selection.rho) == pytest.approx(float(epsilon) * tanh(float(epsilon) / 2), abs=1e-11)
    assert selection.rho > epsilon**2 / 8


def test_the_exponential_mechanism_costs_an_eighth_of_the_square() -> None:
    selection = charge(ExponentialMechanism(Fraction(20)), Scores())
    assert (selection.epsilon, selection.rho) == (Fraction(1, 10), Fraction(1, 800))
    few, many = (state([charge(ExponentialMechanism(Fraction(s)), Scores())] * k, TEN) for s, k in ((4, 10), (20, 100)))
    assert few.published.rounded == Decimal("5.00")
    assert epsilon_of(few, "zCDP tight") == pytest.approx(5.297, abs=5e-4)
    assert many.published.name == "zCDP tight"
    assert epsilon_of(many, "zCDP tight") == pytest.approx(3.244, abs=5e-4)
    assert epsilon_of(many, "optimal pure") == pytest.approx(6.295, abs=5e-4)
