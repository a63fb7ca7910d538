"""Prices that are not rational, against balls of any precision."""

from __future__ import annotations

from fractions import Fraction
from math import log, tanh

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.prices import GRAIN, affordable_epsilon, exp_down, ln_up, pure_to_rho

PER_GRAIN = 10**12


def ball(x: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(x.numerator, x.denominator))


@pytest.fixture(autouse=True)
def _fine_balls() -> None:
    flint.ctx.prec = 600


odds = st.fractions(1, 10**9, max_denominator=10**9) | st.integers(1, 10**40).map(Fraction)
epsilons = st.fractions(Fraction(1, 10**13), 60, max_denominator=10**13).filter(bool) | st.integers(1, 5000).map(
    Fraction
)


@given(odds)
def test_a_logarithm_is_rounded_up_to_the_next_grain(odds: Fraction) -> None:
    found = ln_up(odds)
    assert found % GRAIN == 0
    assert ball(found) >= ball(odds).log() or odds == 1
    assert found == 0 or ball(found - GRAIN) < ball(odds).log()


@given(epsilons)
def test_an_exponential_is_rounded_down_to_the_grain_before(x: Fraction) -> None:
    if x > 100:
        return
    found = exp_down(x)
    assert found % GRAIN == 0
    assert ball(found) < ball(x).exp() < ball(found + GRAIN)


@given(epsilons, st.fractions(Fraction(1, 10**6), 10**12, max_denominator=10**6))
def test_the_zcdp_price_of_a_pure_one_is_rounded_up_once(epsilon: Fraction, times: Fraction) -> None:
    found = pure_to_rho(epsilon, times=times)
    true = ball(times * epsilon) * (ball(epsilon) / 2).tanh()
    assert found % GRAIN == 0
    assert ball(found) > true - ball(Fraction(1, 2**500))
    assert ball(found - GRAIN) < true


def test_what_is_bought_costs_what_was_paid() -> None:
    assert ln_up(exp_down(Fraction(3, 2))) == Fraction(3, 2)
    assert exp_down(Fraction(0)) == 1
    assert ln_up(Fraction(1)) == 0


def test_prices_beyond_doubt_are_those_of_floats() -> None:
    assert float(ln_up(Fraction(3))) == pytest.approx(log(3), abs=1e-12)
    assert float(pure_to_rho(Fraction(1))) == pytest.approx(tanh(0.5), abs=1e-12)
    assert pure_to_rho(Fraction(10**6)) == 10**6


def test_odds_below_one_have_no_price() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ln_up(Fraction(1, 2))


def test_randomised_response_loses_most_over_its_order_as_the_order_falls_to_one() -> None:
    """The theorem behind `pure_to_rho`: no order of Renyi divergence costs more than its share of the price."""
    orders = 1 + np.geomspace(1e-6, 500, 400)
    for epsilon in np.geomspace(1e-3, 40, 60):
        truth, lie = -np.log1p(np.exp(-epsilon)), -epsilon - np.log1p(np.exp(-epsilon))
        terms = [orders * truth + (1 - orders) * lie, orders * lie + (1 - orders) * truth]
        divergences = np.logaddexp(*terms) / (orders - 1)
        assert (divergences <= orders * epsilon * tanh(epsilon / 2) * (1 + 1e-6) + 1e-9).all()
        assert divergences[0] == pytest.approx(epsilon * tanh(epsilon / 2), rel=1e-2)


def test_steps_of_a_tangent_cost_less_than_their_squares() -> None:
    for x in np.geomspace(1e-4, 30, 200):
        steps = np.arange(1, 200)
        assert (steps * np.tanh(steps * x) <= steps**2 * np.tanh(x) * (1 + 1e-12)).all()


@given(st.fractions(GRAIN, 50, max_denominator=PER_GRAIN).filter(lambda rho: rho >= GRAIN))
def test_a_budget_in_rho_buys_the_largest_epsilon_of_twelve_decimals(rho: Fraction) -> None:
    epsilon = affordable_epsilon(pure_to_rho, rho=rho)
    assert pure_to_rho(epsilon) <= rho < pure_to_rho(epsilon + GRAIN)


def test_a_budget_below_the_smallest_price_is_refused() -> None:
    with pytest.raises(ValueError, match="smallest price"):
        affordable_epsilon(pure_to_rho, rho=GRAIN / 2)
