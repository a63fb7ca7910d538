"""Conversions between currencies: never below their formulas, equal to published figures, and back again."""

from __future__ import annotations

from fractions import Fraction
from math import exp, inf, log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import diff, findroot, mp, mpf
from mpmath import log as exact_log
from mpmath import sqrt as exact_sqrt

from mechanisms.accounting.conversion import (
    advanced_composition,
    epsilon_simple,
    epsilon_tight,
    group_approximate,
    group_concentrated,
    group_pure,
    largest_rho,
    log_inverse,
    rho_simple,
    rho_tight,
)
from mechanisms.prices import GRAIN

TEN = Fraction(1, 10**10)
DELTAS = [Fraction(1, 2), Fraction(999, 1000), Fraction(1, 10**6), TEN, Fraction(1, 10**30), Fraction(1, 10**400)]
RHOS = [Fraction(1, 10**9), Fraction(1, 800), Fraction(1, 3), Fraction(256, 100), Fraction(1000)]

rhos = st.fractions(min_value=Fraction(1, 10**9), max_value=1000, max_denominator=10**12)
exponents = st.integers(1, 60)


def exactly(value: Fraction) -> mpf:
    return mpf(value.numerator) / value.denominator


def true_simple(rho: Fraction, delta: Fraction) -> mpf:
    mp.dps = 50
    return exactly(rho) + 2 * exact_sqrt(exactly(rho) * -exact_log(exactly(delta)))


def true_tight(rho: Fraction, delta: Fraction) -> mpf:
    """The floor of the valley over all orders, where its slope is 0."""
    mp.dps = 50

    def epsilon(log_excess: mpf) -> mpf:
        order = 1 + mp.exp(log_excess)
        return order * exactly(rho) - exact_log(order * exactly(delta)) / (order - 1) + exact_log(1 - 1 / order)

    start = exact_log(-exact_log(exactly(delta)) / exactly(rho)) / 2
    lowest = min((start + mpf(step) / 8 for step in range(-160, 161)), key=epsilon)
    return max(mpf(0), epsilon(findroot(lambda x: diff(epsilon, x), lowest)))


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", RHOS)
def test_an_epsilon_is_never_below_its_formula_and_hardly_above(rho: Fraction, delta: Fraction) -> None:
    for ours, truth in (
        (epsilon_simple(rho, delta), true_simple(rho, delta)),
        (epsilon_tight(rho, delta), true_tight(rho, delta)),
    ):
        assert mpf(ours) >= truth
        assert mpf(ours) <= truth + mpf("1e-11") * (1 + truth)


@pytest.mark.parametrize(
    ("rho", "simple", "tight"),
    [
        ("2.56", 17.915, 17.158),
        ("0.07", 2.609, 2.387),
        ("2.63", 18.194, 17.431),
        ("4.96", 26.334, 25.412),
        ("7.70", 34.331, 33.287),
    ],
)
def test_the_budgets_of_the_2020_census_convert_to_the_figures_that_were_checked(
    rho: str, simple: float, tight: float
) -> None:
    assert epsilon_simple(Fraction(rho), TEN) == pytest.approx(simple, abs=5e-4)
    assert epsilon_tight(Fraction(rho), TEN) == pytest.approx(tight, abs=5e-4)


def test_the_published_persons_budget_is_a_rounded_rho_of_the_tight_conversion() -> None:
    assert epsilon_tight(Fraction("2.5553"), TEN) == pytest.approx(17.14, abs=0.005)


def test_the_published_demographic_files_used_the_simple_conversion_rounded_up() -> None:
    assert 26.33 < epsilon_simple(Fraction("4.96"), TEN) <= 26.34
    assert 34.33 < epsilon_simple(Fraction("7.70"), TEN) <= 34.34


@given(rho=rhos, exponent=exponents)
def test_the_tight_conversion_is_never_above_the_simple_one(rho: Fraction, exponent: int) -> None:
    delta = Fraction(1, 10**exponent)
    assert epsilon_tight(rho, delta) <= epsilon_simple(rho, delta)


@given(rho=rhos, more=rhos, exponent=exponents)
def test_prices_grow_with_rho_and_fall_with_delta(rho: Fraction, more: Fraction, exponent: int) -> None:
    delta = Fraction(1, 10**exponent)
    for convert in (epsilon_simple, epsilon_tight):
        assert convert(rho, delta) <= convert(rho + more, delta)
        assert convert(rho, delta) <= convert(rho, delta / 10)


@given(rho=rhos, exponent=exponents)
def test_a_rho_comes_back_from_its_epsilon_less_a_trifle(rho: Fraction, exponent: int) -> None:
    delta = Fraction(1, 10**exponent)
    for convert, back in ((epsilon_simple, rho_simple), (epsilon_tight, rho_tight)):
        epsilon = convert(rho, delta)
        if epsilon > 0:
            found = back(epsilon, delta)
            assert rho - 3 * GRAIN - rho / 10**10 <= found
            assert found.denominator <= 10**12
            assert convert(found, delta) <= epsilon


@given(epsilon=st.fractions(min_value=Fraction(1, 1000), max_value=100), exponent=exponents)
def test_a_rho_never_costs_more_than_the_epsilon_it_was_bought_for(epsilon: Fraction, exponent: int) -> None:
    delta = Fraction(1, 10**exponent)
    for convert, back in ((epsilon_simple, rho_simple), (epsilon_tight, rho_tight)):
        found = back(epsilon, delta)
        assert convert(found, delta) <= epsilon < convert(found + 2 * GRAIN, delta)


def test_an_epsilon_of_zero_is_enough_where_delta_is_large_beside_rho() -> None:
    assert epsilon_tight(Fraction(1, 10**6), Fraction(1, 2)) == 0.0


def test_logarithms_of_deltas_that_no_float_holds_are_right() -> None:
    assert log_inverse(Fraction(1, 10**400)) == pytest.approx(400 * log(10), rel=1e-15)
    assert log_inverse(Fraction(10**400 - 1, 10**400)) == 0.0
    assert log_inverse(1 - Fraction(1, 10**12)) == pytest.approx(1e-12, rel=1e-11)


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(-1), Fraction(3, 2)])
def test_a_delta_outside_its_range_is_refused(delta: Fraction) -> None:
    for convert in (epsilon_simple, epsilon_tight, rho_simple, rho_tight):
        with pytest.raises(ValueError, match="delta must lie between 0 and 1"):
            convert(Fraction(1), delta)


@pytest.mark.parametrize("rho", [Fraction(0), Fraction(-1), Fraction(10**10)])
def test_a_rho_that_is_not_positive_or_absurd_is_refused(rho: Fraction) -> None:
    for convert in (epsilon_simple, epsilon_tight):
        with pytest.raises(ValueError, match="rho must be positive"):
            convert(rho, TEN)


@pytest.mark.parametrize("epsilon", [Fraction(0), -1.0, inf])
def test_an_epsilon_that_buys_nothing_is_refused(epsilon: Fraction | float) -> None:
    with pytest.raises(ValueError, match="epsilon must be positive and finite"):
        rho_tight(epsilon, TEN)


def test_an_epsilon_below_every_price_says_what_to_raise() -> None:
    with pytest.raises(ValueError, match="raise epsilon or delta"):
        rho_tight(Fraction(1, 10**9), TEN)


def test_the_largest_rho_is_found_to_its_last_digit() -> None:
    limit = Fraction(123456789, 10**9)
    assert largest_rho(lambda rho: rho <= limit) == limit
    assert largest_rho(lambda rho: rho <= limit, start=Fraction(1, 10)) == limit


# Textbook formulas.


@pytest.mark.parametrize(
    ("k", "delta", "epsilon"),
    [(10, TEN, 2.251), (100, TEN, 7.838), (1000, TEN, 31.977), (100, 1e-6, 6.308), (1000, 1e-6, 27.140)],
)
def test_advanced_composition_is_the_textbooks(k: int, delta: Fraction | float, epsilon: float) -> None:
    assert advanced_composition([Fraction(1, 10)] * k, Fraction(delta)) == pytest.approx(epsilon, abs=5e-4)


def test_advanced_composition_takes_different_epsilons() -> None:
    expected = sqrt(2 * 10 * log(10) * (0.25 + 1)) + 0.5 * (exp(0.5) - 1) + 1 * (exp(1) - 1)
    assert advanced_composition([0.5, 1.0], TEN) == pytest.approx(expected, rel=1e-12)
    assert advanced_composition([Fraction(1000)], TEN) == inf


@pytest.mark.parametrize("epsilons", [[], [Fraction(0)], [1.0, -1.0]])
def test_advanced_composition_of_nothing_is_refused(epsilons: list[Fraction]) -> None:
    with pytest.raises(ValueError, match="positive epsilons"):
        advanced_composition(epsilons, TEN)


def test_a_group_multiplies_a_pure_price_by_its_size_and_rho_by_its_square() -> None:
    assert group_pure(Fraction(1, 10), 5) == Fraction(1, 2)
    assert group_concentrated(Fraction(1, 50), 5) == Fraction(1, 2)


def test_a_group_grows_epsilon_and_delta_as_the_textbook_says() -> None:
    epsilon, delta = group_approximate(0.5, TEN, size=3)
    assert epsilon == pytest.approx(1.5, rel=1e-12)
    assert float(delta) == pytest.approx(3 * exp(1.0) * 1e-10, rel=1e-12)
    assert (epsilon, delta) >= (1.5, Fraction(3 * exp(1.0)) * TEN)
    assert group_approximate(0.5, TEN, size=1)[1] == pytest.approx(TEN, rel=1e-12)


def test_a_delta_above_one_promises_nothing() -> None:
    assert group_approximate(20.0, TEN, size=3)[1] == 1
    assert group_approximate(1000.0, TEN, size=3)[1] == 1


def test_a_group_without_units_is_refused() -> None:
    for price in (group_pure, group_concentrated):
        with pytest.raises(ValueError, match="at least one unit"):
            price(Fraction(1), 0)
    with pytest.raises(ValueError, match="must not be negative"):
        group_approximate(-1.0, TEN, size=2)


@pytest.mark.parametrize(("size", "tight", "lemma"), [(5, 6.839, 7.292), (10, 14.871, 17.175)])
def test_groups_are_converted_last_because_the_lemma_for_epsilon_and_delta_is_looser(
    size: int, tight: float, lemma: float
) -> None:
    rho = Fraction(1, 50)
    assert epsilon_tight(group_concentrated(rho, size), TEN) == pytest.approx(tight, abs=5e-4)
    by_lemma = min(
        grown
        for grown, delta in (
            group_approximate(epsilon_tight(rho, start), start, size=size)
            for start in (TEN / Fraction(exp(step / 50)) for step in range(1, 2000))
        )
        if delta <= TEN
    )
    assert by_lemma == pytest.approx(lemma, rel=2e-3)
