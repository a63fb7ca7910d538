"""The exact law of every mechanism.

Where a mechanism reads few words, all strings of bits are followed. Selections read many, so all outcomes of their
coins, uniform draws, orders and noise are followed instead, each with its exact probability; that these are exact bit
by bit is shown in `test_enumeration`.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms import exponential_mechanism, noisy_max, permute_and_flip
from mechanisms.bounded_sum import BoundedSum
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.exponential_mechanism import ExponentialMechanism
from mechanisms.noise.laws import LaplaceLaw
from mechanisms.noisy_max import NoisyMax
from mechanisms.permute_and_flip import PermuteAndFlip
from mechanisms.quantile import Quantile
from mechanisms.randomised_response import RandomisedResponse
from mechanisms.randomness import Bits
from mechanisms.sensitivity import Sums
from tests.mechanisms.enumeration import law_of
from tests.mechanisms.fit import exponential_law, noisy_max_law, permute_and_flip_law
from tests.mechanisms.test_enumeration import DEPTH, LEAST, TOLERANCE, power

SCALE = Fraction(7, 5)
SCORES = [(3, 3), (5, 4), (2, 0, 1), (7, 7, 7, 1)]


@pytest.mark.parametrize(("choices", "truth"), [(2, Fraction(3, 4)), (3, Fraction(2, 3)), (5, Fraction(5, 7))])
def test_randomised_response_answers_with_exactly_its_rational_probabilities(choices: int, truth: Fraction) -> None:
    mechanism = RandomisedResponse(choices, truth)
    for code in range(choices):
        codes = np.array([code])
        found = law_of(lambda bits, codes=codes: int(mechanism.answer(codes, bits)[0]), least=Fraction(1, 2**60))
        for answer in range(choices):
            expected = truth if answer == code else (1 - truth) / (choices - 1)
            assert abs(found.probabilities[answer] - expected) < Fraction(1, 2**50)


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(Fraction(1)), DiscreteGaussian(Fraction(4, 3))])
def test_a_noisy_count_has_exactly_the_law_around_the_count(mechanism: DiscreteLaplace | DiscreteGaussian) -> None:
    found = law_of(lambda bits: int(mechanism.answer(np.array([7]), bits)[0]), least=LEAST * 2**6)
    for noisy in range(-1, 15):
        expected = mechanism.law.pmf(noisy - 7)
        assert abs(float(found.probabilities[noisy]) - expected) < found.remainder + TOLERANCE
    assert found.remainder < Fraction(1, 2**18)


def test_a_bounded_sum_has_exactly_the_law_around_the_clipped_sum() -> None:
    mechanism, noise = BoundedSum(Sums(-3, 3)), DiscreteGaussian(Fraction(1))
    ticks, cells = np.array([9, -2, -9]), np.zeros(3, np.int64)
    found = law_of(
        lambda bits: int(mechanism.answer(ticks, cells, size=1, noise=noise, bits=bits)[0]), least=LEAST * 2**6
    )
    for noisy in range(-7, 3):
        assert abs(float(found.probabilities[noisy]) - noise.law.pmf(noisy + 2)) < found.remainder + TOLERANCE


class OpenError(Exception):
    """A decision that the script does not make: the options, each with its probability."""


class AgainError(Exception):
    """All proposals were rejected and the selection starts again, as if nothing had happened."""


AGAIN = -1


class Decisions(Bits):
    """Random decisions made by a script."""

    def __init__(self, script: tuple[int, ...]) -> None:
        self._script = list(script)[::-1]
        self.has_proposed = False

    def among(self, options: Sequence[tuple[Any, Fraction]]) -> Any:
        """The value of the option that the script names next."""
        if not self._script:
            raise OpenError(options)
        return options[self._script.pop()][0]

    def read(self, size: int) -> bytes:
        raise AssertionError("all decisions are scripted")


def law_by_decisions(run: Callable[[Bits], int], *, least: Fraction = LEAST) -> dict[int, Fraction]:
    """The probability of each result over all decisions that are not too unlikely."""
    found: dict[int, Fraction] = defaultdict(Fraction)
    waiting: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while waiting:
        script, weight = waiting.pop()
        try:
            result = run(Decisions(script))
        except AgainError:
            found[AGAIN] += weight
        except OpenError as decision:
            for number, (_, chance) in enumerate(decision.args[0]):
                share = Fraction(round(weight * chance * 2**80), 2**80)
                if share > least:
                    waiting.append(((*script, number), share))
        else:
            found[result] += weight
    return found


def coins_by_decisions(gaps: Iterable[int], scale: Fraction, bits: Decisions) -> np.ndarray[Any, Any]:
    chances = [power(Fraction(int(gap)) / scale) for gap in gaps]
    return np.array([bits.among([(True, chance), (False, 1 - chance)]) for chance in chances])


def uniform_by_decisions(limit: int, count: int, bits: Decisions) -> np.ndarray[Any, Any]:
    if bits.has_proposed:
        raise AgainError
    bits.has_proposed = True
    return np.array([bits.among([(value, Fraction(1, limit)) for value in range(limit)]) for _ in range(count)])


def order_by_decisions(count: int, bits: Decisions) -> np.ndarray[Any, Any]:
    orders = [np.array(order) for order in itertools.permutations(range(count))]
    return bits.among([(order, Fraction(1, len(orders))) for order in orders])


def noise_by_decisions(law: LaplaceLaw, count: int, bits: Decisions) -> np.ndarray[Any, Any]:
    reach = range(-law.reach(DEPTH + 4), law.reach(DEPTH + 4) + 1)
    options = [(x, Fraction(law.pmf(x))) for x in reach]
    return np.array([bits.among(options) for _ in range(count)])


@pytest.fixture(autouse=True)
def decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Selections make scripted decisions; the tests by words keep the real draws."""
    monkeypatch.setattr(exponential_mechanism, "uniform_below", uniform_by_decisions)
    monkeypatch.setattr(exponential_mechanism, "coins_for_gaps", coins_by_decisions)
    monkeypatch.setattr(permute_and_flip, "coins_for_gaps", coins_by_decisions)
    monkeypatch.setattr(permute_and_flip, "permutation", order_by_decisions)
    monkeypatch.setattr(noisy_max, "draw", noise_by_decisions)


def assert_law(found: dict[int, Fraction], expected: Sequence[float]) -> None:
    """Every result has its exact probability, given that the selection does not start again."""
    remainder = 1 - sum(found.values())
    assert abs(remainder) < TOLERANCE
    ends = 1 - found[AGAIN]
    for place, probability in enumerate(expected):
        assert abs(float(found[place] / ends) - probability) < 2 * TOLERANCE


@pytest.mark.parametrize("scores", SCORES)
def test_the_exponential_mechanism_selects_with_exactly_its_probabilities(
    scores: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exponential_mechanism, "BATCH", 2)
    found = law_by_decisions(lambda bits: ExponentialMechanism(SCALE).answer(np.array(scores), bits))
    assert_law(found, exponential_law(scores, float(SCALE)))


@pytest.mark.parametrize("scores", SCORES)
def test_permute_and_flip_selects_with_exactly_its_probabilities(scores: tuple[int, ...]) -> None:
    found = law_by_decisions(lambda bits: PermuteAndFlip(SCALE).answer(np.array(scores), bits))
    assert_law(found, permute_and_flip_law(scores, float(SCALE)))


@pytest.mark.parametrize("scores", SCORES[:2])
def test_noisy_max_selects_with_exactly_its_probabilities(scores: tuple[int, ...]) -> None:
    scale = Fraction(1, 2)
    found = law_by_decisions(lambda bits: NoisyMax(scale).answer(np.array(scores), bits), least=Fraction(0))
    assert_law(found, noisy_max_law(scores, float(scale)))


def test_a_quantile_is_selected_with_exactly_its_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exponential_mechanism, "BATCH", 1)
    mechanism = Quantile(Fraction(1, 4), ExponentialMechanism(SCALE))
    found = law_by_decisions(lambda bits: mechanism.answer(np.array([0, 3, 5]), bits))
    assert_law(found, exponential_law([-2, 0, -1], float(SCALE)))
