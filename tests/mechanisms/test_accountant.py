"""The accountant: every price of a release, worst changes, groups, and the way back."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.accountant import (
    Parallel,
    Price,
    across_releases,
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
from mechanisms.randomised_response import RandomisedResponse
from mechanisms.sensitivity import (
    RECORD,
    Counts,
    Responses,
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


def test_a_pure_budget_has_the_basic_price_only() -> None:
    statement = state([laplace(10), laplace(5)], None)
    assert statement.published == Price("basic", Fraction(3, 10))
    assert statement.published.rounded == Decimal("0.30")
    assert [price.name for price in statement.prices if price.epsilon is not None] == ["basic"]
    assert all("without delta" in price.note for price in statement.prices[1:])


def test_gaussian_noise_has_no_price_without_a_delta() -> None:
    with pytest.raises(ValueError, match="no price without a delta"):
        _ = state([gaussian(10)], None).published


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
