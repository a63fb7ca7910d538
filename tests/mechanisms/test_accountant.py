"""The accountant: charges together, every price of a release, the 2020 certificate, and what must never be claimed."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import sqrt, tanh

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.accountant import (
    DifferentIdentity,
    Parallel,
    Price,
    Sequential,
    Statement,
    across_releases,
    below_levels,
    by_attribute,
    convert,
    for_groups,
    gaussian_epsilon,
    onto_lattice,
    rho_for,
    rounded_up,
    state,
)
from mechanisms.accounting.conversion import epsilon_simple, epsilon_tight
from mechanisms.accounting.losses import GaussianLoss, common_spacing
from mechanisms.charge import Charge, Mechanism
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
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
    Shape,
    Sums,
    Unit,
)

TEN, SIX = Fraction(1, 10**10), Fraction(1, 10**6)
ADD_REMOVE, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE
TABLE, ONE_CELL = Counts(), Counts(one_cell=True)


def charge(
    mechanism: Mechanism, shape: Shape = TABLE, unit: Unit = RECORD, relation: Relation = ADD_REMOVE, **more: object
) -> Charge:
    return Charge("query", mechanism, shape, unit, relation, **more)


def laplace(scale: int | Fraction, *where: object, **more: object) -> Charge:
    return charge(DiscreteLaplace(Fraction(scale)), *where, **more)


def gaussian(variance: int | Fraction, *where: object, **more: object) -> Charge:
    return charge(DiscreteGaussian(Fraction(variance)), *where, **more)


def epsilon_of(statement: Statement, name: str) -> float:
    epsilon = statement.price(name).epsilon
    assert epsilon is not None, statement.price(name).note
    return float(epsilon)


# One after another, side by side.


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


# The prices of a release.


def test_a_pure_budget_has_the_basic_price_only() -> None:
    statement = state([laplace(10), laplace(5)], None)
    assert statement.published == Price("basic", Fraction(3, 10))
    assert statement.published.rounded == Decimal("0.30")
    assert [price.name for price in statement.prices if price.epsilon is not None] == ["basic"]
    assert all("without delta" in price.note for price in statement.prices[1:])


def test_gaussian_noise_has_no_price_without_a_delta() -> None:
    with pytest.raises(ValueError, match="no price without a delta"):
        _ = state([gaussian(10)], None).published


PURE_ROWS = {
    (10, TEN): (1.0, 2.251, 1.000, 2.196, 2.000),
    (100, TEN): (10.0, 7.838, 6.295, 7.286, 6.839),
    (1000, TEN): (100.0, 31.977, 24.407, 26.460, 25.536),
    (100, SIX): (10.0, 6.308, 4.775, 5.757, 5.222),
    (1000, SIX): (100.0, 27.140, 19.345, 21.623, 20.552),
}
"""Laplace noise of epsilon 1/10: basic, advanced, optimal pure, and zCDP simple and tight at epsilon^2 / 2 each."""


@pytest.mark.parametrize("row", PURE_ROWS)
def test_the_table_of_pure_compositions(row: tuple[int, Fraction]) -> None:
    basic, advanced, optimal, simple, tight = PURE_ROWS[row]
    statement = state([laplace(10)] * row[0], row[1])
    assert epsilon_of(statement, "basic") == basic
    assert epsilon_of(statement, "advanced") == pytest.approx(advanced, abs=5e-4)
    assert epsilon_of(statement, "optimal pure") == pytest.approx(optimal, abs=5e-4)
    assert epsilon_of(statement, "exact") == pytest.approx(optimal, abs=5e-4)  # a cell moved by 1 is binary response
    assert simple - 0.03 < epsilon_of(statement, "zCDP simple") <= simple + 5e-4
    assert tight - 0.03 < epsilon_of(statement, "zCDP tight") <= tight + 5e-4
    assert statement.published.name == ("basic" if row[0] == 10 else "optimal pure")


GAUSSIAN_ROWS = {
    (400, 1, SIX): (0.2641, 0.2059, 0.1892),
    (400, 100, TEN): (3.518, 3.244, 3.099),
    (400, 1000, TEN): (11.980, 11.375, 10.908),
    (400, 1000, SIX): (9.561, 8.846, 8.306),
    (1, 10, TEN): (26.460, 25.536, 24.678),
}
"""Variance and number of measurements: zCDP simple and tight, and exact."""


@pytest.mark.parametrize("row", GAUSSIAN_ROWS)
def test_the_table_of_gaussian_compositions(row: tuple[int, int, Fraction]) -> None:
    variance, count, delta = row
    statement = state([gaussian(variance)] * count, delta)
    names = ("zCDP simple", "zCDP tight", "exact")
    assert [epsilon_of(statement, name) for name in names] == pytest.approx(list(GAUSSIAN_ROWS[row]), abs=5e-4)
    assert statement.published.name == "exact"
    assert [statement.price(name).epsilon for name in ("basic", "advanced", "optimal pure")] == [None] * 3
    assert statement.price("exact").note == "losses on one lattice"


@pytest.mark.parametrize(("delta", "tight", "printed"), [(TEN, 3.720, 3.613), (SIX, 2.786, 2.698)])
def test_the_table_of_the_mixture(delta: Fraction, tight: float, printed: float) -> None:
    answers = RandomisedResponse.costing(2, Responses().sensitivity(RECORD, REPLACE), epsilon=Fraction(1, 10))
    plan = [laplace(20, ONE_CELL, RECORD, REPLACE)] * 40 + [gaussian(900, ONE_CELL, RECORD, REPLACE)] * 100
    plan += [charge(ExponentialMechanism(Fraction(20)), Scores(), RECORD, REPLACE)] * 5
    plan += [charge(answers, Responses(), RECORD, REPLACE)] * 10
    statement = state(plan, delta)
    assert epsilon_of(statement, "zCDP tight") == pytest.approx(tight, abs=1e-3)
    assert printed - 0.006 < epsilon_of(statement, "exact") < printed + 1e-6  # the exponential mechanism as pure


def test_a_census_of_eighty_queries_costs_less_by_its_exact_law() -> None:
    """Eight levels of ten queries, replace, rho 2.557, shares of a 4000th: as in the notes, with other shares."""
    shares = [1 + (7 * place * place + 3 * place) % 97 for place in range(80)]
    quantum = Fraction("2.557") / sum(shares)
    plan = [gaussian(1 / (share * quantum), TABLE, RECORD, REPLACE) for share in shares]
    statement = state(plan, TEN)
    assert statement.rho == Fraction("2.557")
    assert epsilon_of(statement, "zCDP simple") == pytest.approx(17.904, abs=2e-3)
    assert epsilon_of(statement, "zCDP tight") == pytest.approx(17.147, abs=2e-3)
    assert epsilon_of(statement, "exact") == pytest.approx(16.469, abs=2e-3)
    assert statement.price("exact").note == "losses on one lattice"


def test_an_epsilon_is_rounded_up_to_two_decimals_and_exact_ones_stay() -> None:
    assert rounded_up(Fraction(3, 10)) == Decimal("0.30")
    assert rounded_up(0.3 + 1e-9) == Decimal("0.31")
    assert rounded_up(0.0) == 0
    assert Price("none", None).rounded is None


def test_the_published_price_is_the_smallest_and_never_advanced_composition() -> None:
    for count in (1, 2, 5, 30, 300):
        statement = state([laplace(10)] * count, TEN)
        valid = [price.epsilon for price in statement.prices if price.epsilon is not None and price.name != "advanced"]
        assert statement.published.rounded == rounded_up(min(valid))
        assert statement.published.name == ("basic" if count < 30 else "optimal pure")
        assert not statement.price("advanced").publishable
    few = state([laplace(10)], Fraction(1, 2))
    assert few.published.epsilon == 0


def test_where_prices_print_the_same_the_one_that_holds_without_delta_is_named() -> None:
    statement = state([laplace(10)] * 5, TEN)
    assert epsilon_of(statement, "exact") < 0.5
    assert statement.published == Price("basic", Fraction(1, 2))


def test_fixed_variances_without_a_lattice_are_composed_on_a_grid_and_the_excess_is_printed() -> None:
    statement = state([gaussian(Fraction(10**6 + 7, 10**4 + 1)), gaussian(Fraction(10**6 + 9, 10**4 + 3))], TEN)
    found = statement.price("exact")
    assert found.exact
    assert found.exact.kind == "grid"
    assert found.exact.excess < 1e-6
    assert "losses on a grid, at most" in found.note


def test_what_is_too_long_for_an_exact_sum_keeps_the_tight_price() -> None:
    statement = state([gaussian(10**17)], TEN)
    assert statement.published.name == "zCDP tight"
    assert "too many" in statement.price("exact").note


@settings(max_examples=20, deadline=None)
@given(count=st.integers(1, 40), precision=st.integers(1, 40), exponent=st.integers(3, 20))
def test_prices_grow_with_charges_and_fall_with_delta(count: int, precision: int, exponent: int) -> None:
    delta = Fraction(1, 10**exponent)
    plan = [gaussian(Fraction(40, precision))] * count
    here, more, smaller = state(plan, delta), state([*plan, gaussian(40)], delta), state(plan, delta / 10)
    for name in ("zCDP simple", "zCDP tight", "exact"):
        assert epsilon_of(here, name) <= epsilon_of(more, name) + 1e-9
        assert epsilon_of(here, name) <= epsilon_of(smaller, name) + 1e-9
    assert epsilon_of(here, "exact") <= epsilon_of(here, "zCDP tight") <= epsilon_of(here, "zCDP simple")


# Worst changes of groups, caps and sums, by exact composition.


def test_a_household_in_one_cell_costs_what_one_cell_moved_by_all_of_it_costs() -> None:
    exact = epsilon_of(state([gaussian(25, TABLE, Unit(5))], TEN), "exact")
    assert exact == pytest.approx(6.543, abs=5e-4)
    assert exact == pytest.approx(gaussian_epsilon(Fraction(1, 50), TEN, shift=5).epsilon, rel=1e-9)


def test_the_root_of_the_size_understates_what_a_household_costs() -> None:
    for size, understated in ((2, 0.27), (5, 0.56), (10, 0.71)):
        exact = epsilon_of(state([gaussian(25, TABLE, Unit(size))], TEN), "exact")
        by_root = epsilon_tight(size * Fraction(1, 50), TEN)
        assert 1 - by_root / exact == pytest.approx(understated, abs=0.01)


def test_an_exchanged_household_moves_two_cells_by_all_of_it() -> None:
    out, exchanged = (epsilon_of(state([gaussian(4, TABLE, Unit(5), r)], TEN), "exact") for r in (ADD_REMOVE, REPLACE))
    assert out == pytest.approx(18.1, abs=0.05)
    assert exchanged == pytest.approx(28.3, abs=0.05)


def test_one_record_beside_a_cap_is_priced_by_its_worst_change_of_all() -> None:
    exact = epsilon_of(state([gaussian(50, Counts(cap=3), RECORD, REPLACE)], TEN), "exact")
    assert exact == pytest.approx(epsilon_of(state([gaussian(50, TABLE, Unit(2), REPLACE)], TEN), "exact"), rel=1e-9)


def test_sums_of_both_signs_over_a_group_have_no_exact_price_and_say_so() -> None:
    statement = state([gaussian(10**4, Sums(-5, 5), Unit(3), REPLACE)], TEN)
    assert statement.published.name == "zCDP tight"
    assert "both signs" in statement.price("exact").note


def test_large_groups_have_no_exact_price_and_say_so() -> None:
    statement = state([gaussian(10**4, TABLE, Unit(40))], TEN)
    assert statement.published.name == "zCDP tight"
    assert "too many ways" in statement.price("exact").note


def test_sums_that_cross_zero_are_priced_by_the_worse_of_two_changes() -> None:
    crossing = epsilon_of(state([gaussian(10**4, Sums(-50, 70), RECORD, REPLACE)], TEN), "exact")
    one_sided = epsilon_of(state([gaussian(10**4, Sums(0, 70), RECORD, REPLACE)], TEN), "exact")
    one_cell = epsilon_of(state([gaussian(10**4, Sums(-50, 70, one_cell=True), RECORD, REPLACE)], TEN), "exact")
    assert crossing == one_cell > one_sided


def test_parts_side_by_side_are_priced_by_the_worst_way_in_or_out() -> None:
    parts = Parallel(tuple(gaussian(variance, ONE_CELL, RECORD, REPLACE) for variance in (20, 20, 40)))
    both = epsilon_of(state([gaussian(20, ONE_CELL, RECORD, REPLACE)] * 2, TEN), "exact")
    assert epsilon_of(state([parts], TEN), "exact") == both
    apart = Parallel(tuple(gaussian(variance) for variance in (20, 40)))
    assert epsilon_of(state([apart], TEN), "exact") == epsilon_of(state([gaussian(20)], TEN), "exact")


def test_parts_over_which_a_group_may_be_spread_have_no_exact_price() -> None:
    statement = state([Parallel(tuple(gaussian(v, TABLE, Unit(3)) for v in (20, 40)))], TEN)
    assert "spread over the parts" in statement.price("exact").note
    assert statement.published.name == "zCDP tight"


def test_too_many_different_parts_have_no_exact_price() -> None:
    statement = state([Parallel(tuple(gaussian(20 + place) for place in range(80)))], TEN)
    assert "too many parts" in statement.price("exact").note


def test_answers_of_a_group_are_as_many_randomised_responses() -> None:
    answers = RandomisedResponse(4, Fraction(1, 2))
    one = epsilon_of(state([charge(answers, Responses(), RECORD, REPLACE)] * 30, TEN), "exact")
    groups = epsilon_of(state([charge(answers, Responses(), Unit(3), REPLACE)] * 10, TEN), "exact")
    pure = epsilon_of(state([charge(answers, Responses(), RECORD, REPLACE)] * 30, TEN), "optimal pure")
    assert one == groups < pure


# What must never be claimed.


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


# Groups of units, single Gaussians, and the way back.


@pytest.mark.parametrize(("size", "tight", "exact"), [(5, 6.839, 6.543), (10, 14.871, 14.295)])
def test_groups_of_units_pay_the_square_of_their_size_and_convert_last(size: int, tight: float, exact: float) -> None:
    found, plan = convert(Fraction(1, 50), TEN, size=size), for_groups([gaussian(25)], TEN, size=size)
    assert found.rho == plan.rho == size**2 * Fraction(1, 50)
    assert found.tight == plan.tight == pytest.approx(tight, abs=5e-4)
    assert found.gaussian.exact
    assert found.gaussian.epsilon == pytest.approx(exact, abs=5e-4)
    assert found.simple == epsilon_simple(found.rho, TEN)
    assert plan.epsilon is None


def test_groups_of_units_pay_their_size_in_pure_prices() -> None:
    found = for_groups([laplace(10), laplace(10)], None, size=5)
    assert (found.epsilon, found.tight) == (Fraction(1), None)
    assert found.rho == 25 * 2 * laplace(10).rho


@pytest.mark.parametrize("rho", [Fraction(1, 10**9), Fraction(1, 10**4), Fraction(1, 7), Fraction(9), Fraction(1000)])
def test_one_gaussian_is_exact_for_every_rho_that_is_ever_asked_for(rho: Fraction) -> None:
    found = gaussian_epsilon(rho, TEN)
    assert found.exact
    assert found.epsilon < epsilon_tight(rho, TEN) < epsilon_simple(rho, TEN)
    for size in (2, 5):
        assert gaussian_epsilon(rho, TEN, shift=size).epsilon < epsilon_tight(size**2 * rho, TEN)


def test_a_rho_too_small_to_sum_gets_the_tight_figure_and_says_so() -> None:
    found = gaussian_epsilon(Fraction(1, 10**15), TEN)
    assert not found.exact
    assert found.epsilon == epsilon_tight(Fraction(1, 10**15), TEN)


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction("17.14"), 50.0])
def test_each_rho_that_is_bought_costs_no_more_than_was_asked(epsilon: Fraction | float) -> None:
    found = rho_for(epsilon, TEN)
    assert found.simple < found.tight < found.gaussian
    assert epsilon_simple(found.simple, TEN) <= epsilon
    assert epsilon_tight(found.tight, TEN) <= epsilon
    assert gaussian_epsilon(found.gaussian, TEN).epsilon <= epsilon
    assert found.gaussian.denominator <= 10**12


def test_below_what_can_be_summed_the_tight_rho_stands_for_the_gaussian_one() -> None:
    found = rho_for(Fraction(1, 10**4), TEN)
    assert found.gaussian == found.tight


def test_the_exact_epsilon_of_one_narrow_gaussian_does_not_always_grow_with_rho() -> None:
    """Where noise is narrower than a count, losses come in odd multiples of rho, and fewer of them reach delta."""
    less, more = (gaussian_epsilon(Fraction(rho), TEN).epsilon for rho in ("2.4", "2.7"))
    assert less > more


# Planning and the ledger.


def test_variances_go_up_onto_the_lattice_and_no_further_than_needed() -> None:
    quantum = Fraction(1, 1000)
    variance = onto_lattice(Fraction(7), quantum)
    assert variance == Fraction(1000, 142) >= 7
    assert onto_lattice(variance, quantum) == variance
    assert onto_lattice(Fraction(1000), quantum) == 1000


@given(variances=st.lists(st.fractions(min_value=Fraction(1, 10), max_value=50), min_size=1, max_size=5))
def test_variances_on_the_lattice_have_losses_on_one_lattice(variances: list[Fraction]) -> None:
    quantum = Fraction(1, 200)
    moved = [onto_lattice(variance, quantum) for variance in variances]
    assert all(old <= new <= old / (1 - old * quantum) for old, new in zip(variances, moved, strict=True))
    assert (common_spacing([GaussianLoss(variance, 1) for variance in moved]) / quantum).denominator == 1


def test_a_lattice_coarser_than_the_precision_is_refused() -> None:
    with pytest.raises(ValueError, match="too coarse"):
        onto_lattice(Fraction(1001), Fraction(1, 1000))
    with pytest.raises(ValueError, match="must be positive"):
        onto_lattice(Fraction(0), Fraction(1))


def test_releases_chosen_one_after_another_add_their_rho_and_convert_once() -> None:
    total = across_releases([Fraction(1, 2), Fraction(3, 2)], TEN)
    assert total == epsilon_tight(Fraction(2), TEN)
    assert total < epsilon_tight(Fraction(1, 2), TEN) + epsilon_tight(Fraction(3, 2), TEN)


# The certificate of the 2020 redistricting data.

LEVELS = ("US", "State", "County", "Tract", "Block Group", "Block")
LEVEL_SHARES = dict(zip(LEVELS, (104, 1440, 447, 687, 1256, 165), strict=True))
PERSONS = Fraction(293764, 114921)
ALL = {"hhgq", "votingage", "hispanic", "cenrace"}
SHARES: dict[str, tuple[set[str], tuple[str, str, str, str, str, str]]] = {
    "total": (set(), ("0", "3773/4097", "3126/4097", "1567/4102", "1705/4099", "5/4097")),
    "cenrace": ({"cenrace"}, ("52/4097", "6/4097", "10/4097", "4/2051", "3/4099", "9/4097")),
    "hispanic": ({"hispanic"}, ("26/4097", "6/4097", "10/4097", "5/4102", "3/4099", "5/4097")),
    "votingage": ({"votingage"}, ("26/4097", "6/4097", "10/4097", "5/4102", "3/4099", "5/4097")),
    "hhinstlevels": ({"hhgq"}, ("26/4097", "6/4097", "10/4097", "5/4102", "3/4099", "5/4097")),
    "hhgq": ({"hhgq"}, ("26/4097", "6/4097", "10/4097", "5/4102", "3/4099", "5/4097")),
    "hispanic*cenrace": (
        {"hispanic", "cenrace"},
        ("130/4097", "12/4097", "28/4097", "1933/4102", "1055/4099", "21/4097"),
    ),
    "votingage*cenrace": (
        {"votingage", "cenrace"},
        ("130/4097", "12/4097", "28/4097", "10/2051", "9/4099", "21/4097"),
    ),
    "votingage*hispanic": (
        {"votingage", "hispanic"},
        ("26/4097", "6/4097", "10/4097", "5/4102", "3/4099", "5/4097"),
    ),
    "votingage*hispanic*cenrace": (
        {"votingage", "hispanic", "cenrace"},
        ("26/241", "2/241", "101/4097", "67/4102", "24/4099", "71/4097"),
    ),
    "detailed": (ALL, ("189/241", "230/4097", "754/4097", "241/2051", "1288/4099", "3945/4097")),
}


def certificate() -> Sequential:
    """The persons' plan as it was signed: one discrete Gaussian for each query at each level, replace."""
    charges = []
    for query, (attributes, shares) in SHARES.items():
        for level, share in zip(LEVELS, shares, strict=True):
            rho = PERSONS * Fraction(LEVEL_SHARES[level], 4099) * Fraction(share)
            if rho:
                noise = DiscreteGaussian.costing(Counts().sensitivity(RECORD, REPLACE), rho=rho)
                charges.append(Charge(query, noise, TABLE, RECORD, REPLACE, level, frozenset(attributes)))
    return Sequential(tuple(charges))


def test_the_certificates_shares_add_up_to_its_rho() -> None:
    plan = certificate()
    assert plan.rho == PERSONS
    assert sum(1 for _ in plan.charges) == 65


def test_the_certificates_global_epsilons_come_out() -> None:
    assert epsilon_tight(certificate().rho, TEN) == pytest.approx(17.14, abs=0.005)
    units = [
        gaussian(1 / (Fraction(11417641, 152349649) * Fraction(share)), TABLE, RECORD, REPLACE)
        for share in ("1/205", "1/205", "7/82", "364/1025", "1759/4100", "99/820")
    ]
    assert epsilon_tight(Sequential(tuple(units)).rho, TEN) == pytest.approx(2.47, abs=0.005)


def test_the_certificates_epsilons_of_attributes_come_out() -> None:
    expected = {"hhgq": 7.24, "votingage": 7.57, "hispanic": 10.04, "cenrace": 10.08}
    assert by_attribute(certificate(), TEN) == pytest.approx(expected, abs=0.005)


def test_the_certificates_epsilons_of_geography_come_out() -> None:
    expected = {"Block Group": 2.93, "Tract": 9.38, "County": 11.70, "State": 13.05, "US": 16.89}
    assert below_levels(certificate(), TEN, levels=LEVELS) == pytest.approx(expected, abs=0.005)


def test_a_level_that_is_not_listed_is_a_mistake_and_one_without_charges_below_costs_nothing() -> None:
    with pytest.raises(ValueError, match="Block"):
        below_levels(certificate(), TEN, levels=LEVELS[:-1])
    assert below_levels(Sequential((gaussian(1, level="US"),)), TEN, levels=("US", "State")) == {"US": 0.0}


def test_parts_that_do_not_resolve_an_attribute_are_left_out_of_its_price() -> None:
    by_sex, by_age = (gaussian(10, attributes=frozenset({name})) for name in ("sex", "age"))
    plan = Sequential((Parallel((by_sex, (by_age, by_sex))), by_age))
    found = by_attribute(plan, TEN)
    assert found["age"] == epsilon_tight(2 * by_age.rho, TEN)
    assert found["sex"] == epsilon_tight(by_sex.rho, TEN)


def test_the_certificates_plan_would_have_cost_less_by_its_exact_law() -> None:
    statement = state(certificate(), TEN)
    assert statement.published.name == "exact"
    assert 16.4 < epsilon_of(statement, "exact") < 16.5
    assert sqrt(2) * epsilon_of(statement, "exact") > epsilon_of(statement, "zCDP tight")
