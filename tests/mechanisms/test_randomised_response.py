"""Randomised response: what is answered, what it costs, and what can be learned from the answers."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import log, prod, sqrt, tanh

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms import randomised_response
from mechanisms.noise.seeded import SeededBits
from mechanisms.prices import GRAIN, ln_up, pure_to_rho
from mechanisms.randomised_response import RandomisedResponse
from mechanisms.randomness import Randomness
from mechanisms.sensitivity import RECORD, Relation, Responses, Sensitivity, Unit
from tests.mechanisms.fit import IMPLAUSIBLE, fit, renyi_over_order

ANSWER = Responses().sensitivity(RECORD, Relation.REPLACE)
COIN = RandomisedResponse(2, Fraction(3, 4))
FIVE = RandomisedResponse(5, Fraction(1, 2))

truths = st.integers(2, 9).flatmap(
    lambda choices: st.builds(
        RandomisedResponse,
        st.just(choices),
        st.integers(1, 99).map(
            lambda part: Fraction(1, choices) + Fraction(choices - 1, choices) * Fraction(part, 100)
        ),
    )
)


def law(mechanism: RandomisedResponse, code: int) -> list[Fraction]:
    """The probability of each answer of someone with this code."""
    return [mechanism.truth if answer == code else mechanism.lie for answer in range(mechanism.choices)]


# The law.


@pytest.mark.parametrize("mechanism", [COIN, FIVE, RandomisedResponse(3, Fraction(2, 3))])
def test_answers_have_exactly_the_stated_probabilities(mechanism: RandomisedResponse) -> None:
    for code in range(mechanism.choices):
        answers = mechanism.answer(np.full(30_000, code), SeededBits(f"code {code}"))
        assert fit(answers, [float(p) for p in law(mechanism, code)]) > IMPLAUSIBLE
        for factor in (Fraction(9, 10), Fraction(11, 10)):
            wrong = RandomisedResponse(mechanism.choices, mechanism.truth * factor)
            assert fit(answers, [float(p) for p in law(wrong, code)]) < IMPLAUSIBLE


@given(truths)
def test_the_probabilities_add_up_to_one(mechanism: RandomisedResponse) -> None:
    assert sum(law(mechanism, 0)) == 1
    assert mechanism.lie < mechanism.truth


def test_every_record_answers_for_itself() -> None:
    codes = np.arange(20_000) % 5
    answers = FIVE.answer(codes, SeededBits(3))
    kept = answers == codes
    assert fit(kept, [0.5, 0.5]) > IMPLAUSIBLE
    assert abs(np.corrcoef(kept[1:], kept[:-1])[0, 1]) < 5 / sqrt(len(codes))


def test_there_are_as_many_answers_as_records_and_none_of_none() -> None:
    for size in (0, 1, 7):
        answers = FIVE.measure(np.zeros(size, np.int64), Randomness())
        assert (answers.dtype, answers.shape) == (np.int64, (size,))


def test_a_coin_is_tossed_and_another_code_drawn_for_every_record(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, int]] = []

    def spied(name: str, stand_in: np.ndarray) -> None:
        def drawing(of: object, count: int, bits: object) -> np.ndarray:
            asked.append((of, count))
            return stand_in

        monkeypatch.setattr(randomised_response, name, drawing)

    spied("coins", np.array([True, False, False, False]))
    spied("uniform_below", np.array([3, 0, 2, 3]))
    mechanism = RandomisedResponse(5, Fraction(3, 7))
    assert mechanism.measure(np.array([0, 0, 2, 4]), Randomness()).tolist() == [0, 1, 3, 3]
    assert asked == [(Fraction(3, 7), 4), (4, 4)]


def test_as_many_codes_as_64_bits_hold_are_answered_without_a_wrap() -> None:
    largest = 2**63 - 1
    answers = RandomisedResponse(largest, Fraction(1, 2)).answer(np.array([0, largest - 1] * 500), SeededBits(4))
    assert answers.min() >= 0
    assert answers.max() < largest


@pytest.mark.parametrize("codes", [[0, 1, 71], [-71, 0, 1]])
def test_a_code_that_was_not_declared_is_refused_and_not_quoted(codes: list[int]) -> None:
    with pytest.raises(ValueError, match="from 0 to 4: every record has a declared code") as refusal:
        FIVE.measure(np.array(codes), Randomness())
    assert "71" not in str(refusal.value)


@pytest.mark.parametrize(("choices", "truth"), [(2, "1/2"), (2, "1"), (4, "1/4"), (4, "1/5"), (3, "2")])
def test_a_truth_that_tells_nothing_or_everything_is_refused(choices: int, truth: str) -> None:
    with pytest.raises(ValueError, match="must lie above"):
        RandomisedResponse(choices, Fraction(truth))


@pytest.mark.parametrize("choices", [1, 0, -2, 2.0, True, Fraction(2), 2**63])
def test_choices_are_at_least_two_as_a_python_integer(choices: int) -> None:
    with pytest.raises(ValueError, match="at least 2 choices"):
        RandomisedResponse(choices, Fraction(3, 4))


# The price.


def test_the_coin_of_a_half_and_two_quarters_costs_exactly_ln_3() -> None:
    assert COIN.odds == 3
    assert ln_up(Fraction(3)) - GRAIN < Fraction("1.09861228866810969139") <= COIN.epsilon(ANSWER) == ln_up(Fraction(3))


@given(truths)
def test_no_answer_is_more_than_the_odds_times_likelier_and_one_is(mechanism: RandomisedResponse) -> None:
    laws = [law(mechanism, code) for code in range(mechanism.choices)]
    assert max(p / q for one in laws for other in laws for p, q in zip(one, other, strict=True)) == mechanism.odds
    assert 0 <= float(mechanism.epsilon(ANSWER)) - log(mechanism.odds) < 2e-12


@pytest.mark.parametrize("mechanism", [COIN, FIVE, RandomisedResponse(8, Fraction(9, 10))])
def test_the_price_in_zcdp_covers_every_order(mechanism: RandomisedResponse) -> None:
    found = renyi_over_order(*([float(p) for p in law(mechanism, code)] for code in (0, 1)))
    assert found <= float(mechanism.rho(ANSWER))
    if mechanism.choices == 2:
        assert found == pytest.approx(float(mechanism.rho(ANSWER)), rel=1e-3)


def test_a_unit_of_several_answers_pays_for_each() -> None:
    household = Responses().sensitivity(Unit(4), Relation.REPLACE)
    assert COIN.epsilon(household) == 4 * COIN.epsilon(ANSWER)
    assert COIN.rho(household) == 4 * COIN.rho(ANSWER) == 4 * pure_to_rho(ln_up(Fraction(3)))
    assert float(COIN.rho(ANSWER)) == pytest.approx(log(3) * tanh(log(3) / 2))


@given(st.integers(2, 50), st.integers(1, 20), st.fractions(Fraction(1, 1000), 30, max_denominator=1000))
def test_what_a_budget_buys_is_within_twelve_decimals_of_it(choices: int, answers: int, epsilon: Fraction) -> None:
    unit = Sensitivity(Fraction(answers), Fraction(answers))
    mechanism = RandomisedResponse.costing(choices, unit, epsilon=epsilon)
    assert epsilon - 2 * answers * GRAIN < mechanism.epsilon(unit) <= epsilon


def test_a_budget_that_buys_no_truth_is_refused() -> None:
    with pytest.raises(ValueError, match="buys nothing"):
        RandomisedResponse.costing(2, ANSWER, epsilon=GRAIN / 2)


# What is learned.


def every_outcome(mechanism: RandomisedResponse, codes: list[int]) -> list[tuple[Fraction, list[int]]]:
    """All answers that people with these codes may give together: their probability and how often each code is said."""
    outcomes = []
    for answers in product(range(mechanism.choices), repeat=len(codes)):
        chance = prod(
            (law(mechanism, code)[said] for code, said in zip(codes, answers, strict=True)), start=Fraction(1)
        )
        outcomes.append((chance, [answers.count(code) for code in range(mechanism.choices)]))
    return outcomes


@pytest.mark.parametrize(
    ("mechanism", "codes"),
    [(COIN, [0, 0, 1]), (COIN, [1]), (RandomisedResponse(3, Fraction(3, 5)), [0, 2, 2, 2]), (FIVE, [4, 4])],
)
def test_the_estimate_is_unbiased_with_exactly_the_stated_variance(
    mechanism: RandomisedResponse, codes: list[int]
) -> None:
    outcomes = [(chance, mechanism.estimate(counts)) for chance, counts in every_outcome(mechanism, codes)]
    for code in range(mechanism.choices):
        mean = sum(chance * estimate[code] for chance, estimate in outcomes)
        variance = sum(chance * (estimate[code] - mean) ** 2 for chance, estimate in outcomes)
        assert mean == codes.count(code)
        assert variance == mechanism.variance(codes.count(code), respondents=len(codes))
        assert variance <= mechanism.largest_variance(respondents=len(codes))


@given(truths, st.lists(st.integers(0, 10**6), min_size=9, max_size=9))
def test_estimates_add_up_to_the_number_of_respondents(mechanism: RandomisedResponse, answers: list[int]) -> None:
    counts = answers[: mechanism.choices]
    assert sum(mechanism.estimate(counts)) == sum(counts)
    assert all(type(estimate) is Fraction for estimate in mechanism.estimate(np.array(counts)))


def test_the_worst_variance_is_attained_by_all_or_by_none() -> None:
    mostly_lies = RandomisedResponse(5, Fraction(1, 4))
    assert mostly_lies.largest_variance(respondents=10) == mostly_lies.variance(10, respondents=10)
    assert FIVE.largest_variance(respondents=10) == FIVE.variance(10, respondents=10)
    assert COIN.variance(0, respondents=10) == COIN.variance(10, respondents=10) == Fraction(10 * 3, 4)


def test_an_estimate_beyond_what_is_possible_is_put_in_as_the_nearest_that_is() -> None:
    assert FIVE.variance(Fraction(-7, 2), respondents=10) == FIVE.variance(0, respondents=10)
    assert FIVE.variance(Fraction(21, 2), respondents=10) == FIVE.variance(10, respondents=10)


def test_nobody_answers_nothing_is_learned_and_nothing_is_uncertain() -> None:
    assert FIVE.estimate([0] * 5) == (0,) * 5
    assert FIVE.largest_variance(respondents=0) == 0


def test_a_number_of_answers_is_needed_for_every_code() -> None:
    with pytest.raises(ValueError, match="expected 5 numbers of answers"):
        FIVE.estimate([1, 2, 3])
    with pytest.raises(TypeError):
        COIN.estimate([1.5, 2.5])  # type: ignore[list-item]
