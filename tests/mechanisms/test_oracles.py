"""The accountant against others: 330-bit balls, dp-accounting and opendp.

Against the balls the rule is strict: no delta or epsilon of ours is below the truth, and none is above by more than
what it says itself. Other packages round on their own; where they are right, ours are not above theirs.
"""

from __future__ import annotations

import logging
import math
import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import dp_accounting
import opendp.prelude as dp
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld import privacy_loss_distribution as pld
from flint import arb

from mechanisms.accounting import composition
from mechanisms.accounting.composition import exact_delta, exact_epsilon
from mechanisms.accounting.conversion import epsilon_tight
from mechanisms.accounting.losses import GaussianLoss, LaplaceLoss, Loss, ResponseLoss, pure
from tests.mechanisms import oracle

TEN, SIX = Fraction(1, 10**10), Fraction(1, 10**6)
DELTAS = [Fraction(1, 10**exponent) for exponent in (1, 2, 4, 6, 8, 10, 12, 15, 20, 25, 30)]

Drawn = tuple[Loss, oracle.Law, int]


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """dp-accounting warns on every truncation."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def some_mechanism(chance: random.Random, quantum: Fraction) -> Drawn:
    """One law on a lattice, as we have it and as the oracle writes it down, and how often."""
    often = chance.choice([1, 1, 1, 2, 3])
    kind = chance.choice(["gaussian", "gaussian", "gaussian", "laplace", "response"])
    if kind == "gaussian":
        variance, shift = 1 / (chance.randint(1, 6) * quantum), chance.choice([1, 1, 1, 2, 3])
        return GaussianLoss(variance, shift), oracle.gaussian(variance, shift), often
    if kind == "laplace":
        scale, shift = 1 / (chance.randint(1, 4) * quantum), chance.choice([1, 1, 2, 5])
        return LaplaceLoss(scale, shift), oracle.laplace(scale, shift), often
    epsilon, choices = chance.randint(1, 6) * quantum, chance.choice([3, 4, 10])
    return ResponseLoss(epsilon, choices), oracle.response(epsilon, choices), often


def some_release(seed: str) -> tuple[dict[Loss, int], oracle.Composed, Fraction]:
    """Up to six mechanisms, what the oracle makes of them, and a delta."""
    chance = random.Random(seed)  # noqa: S311 - examples, not noise
    quantum = Fraction(1, chance.choice([1, 2, 3, 5, 10, 20]))
    drawn = [some_mechanism(chance, quantum) for _ in range(chance.randint(1, 6))]
    losses: Counter[Loss] = Counter()
    for loss, _, often in drawn:
        losses[loss] += often
    return losses, oracle.Composed([(law, often) for _, law, often in drawn]), chance.choice(DELTAS)


def check_against_the_balls(seed: str, *, excess: float, beside: bool = False) -> None:
    """One release; `beside` asks for a second delta, away from the epsilon that was found."""
    losses, truth, delta = some_release(seed)
    found = exact_epsilon(losses, delta)
    asked = oracle.ball(delta)
    assert truth.delta(found.epsilon).upper() <= asked, f"{seed}: epsilon below the truth"
    assert found.excess <= excess, seed
    if found.excess < found.epsilon:
        assert truth.delta(found.epsilon - found.excess).lower() >= asked, f"{seed}: more excess than stated"
    for epsilon in (found.epsilon, found.epsilon / 2)[: 1 + beside]:
        ours, exact = exact_delta(losses, epsilon), truth.delta(epsilon)
        assert exact.upper() <= arb(ours), f"{seed}: delta below the truth"
        beyond = truth.delta(epsilon * (1 - 1e-14)).upper()  # near the largest loss one digit of epsilon is much delta
        assert arb(ours) <= beyond * (1 + 1e-3) + 1e-300, f"{seed}: delta far above the truth"


@pytest.mark.parametrize("hundred", range(10))
def test_no_figure_is_below_the_truth_and_none_is_above_by_more_than_a_millionth(hundred: int) -> None:
    for number in range(100):
        check_against_the_balls(f"{hundred}.{number}", excess=1e-6, beside=number % 4 == 0)


@pytest.mark.slow
def test_no_figure_of_four_thousand_is_below_the_truth() -> None:
    for number in range(4_000):
        check_against_the_balls(f"slow.{number}", excess=1e-6, beside=True)


@pytest.mark.parametrize("dozen", range(5))
def test_no_figure_from_a_grid_is_below_the_truth(dozen: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composition, "LATTICE_POINTS", 1)
    monkeypatch.setattr(composition, "GRID_POINTS", 1 << 13)
    for number in range(12):
        losses, truth, delta = some_release(f"grid {dozen}.{number}")
        found = exact_epsilon(losses, delta)
        asked = oracle.ball(delta)
        assert truth.delta(found.epsilon).upper() <= asked, f"{dozen}.{number}: epsilon below the truth"
        if found.excess < found.epsilon:
            assert truth.delta(found.epsilon - found.excess).lower() >= asked, f"{dozen}.{number}"
        ours, exact = exact_delta(losses, found.epsilon), truth.delta(found.epsilon)
        assert exact.upper() <= arb(ours), f"{dozen}.{number}: delta below the truth"


@pytest.mark.parametrize("epsilon", [3.1, 8.2, 12.7, 15.3])
def test_one_mechanism_agrees_with_a_direct_sum_down_to_the_smallest_deltas(epsilon: float) -> None:
    truth = oracle.Composed([(oracle.gaussian(Fraction(1), 1, cut=300), 1)]).delta(epsilon)
    ours = exact_delta({GaussianLoss(Fraction(1), 1): 1}, epsilon)
    assert truth.upper() <= arb(ours) <= truth.lower() * (1 + 1e-10)


@pytest.mark.parametrize("delta", [TEN, Fraction(1, 10**100), Fraction(1, 10**300)])
@pytest.mark.parametrize(("below", "shift", "often"), [(1000, 1, 1), (1000, 1, 2), (400, 3, 3), (30, 1, 4), (3, 2, 2)])
def test_noise_far_narrower_than_a_count_is_priced_right_at_any_delta(
    below: int, shift: int, often: int, delta: Fraction
) -> None:
    variance = Fraction(1, below)
    truth = oracle.Composed([(oracle.gaussian(variance, shift, cut=1500), often)])
    found = exact_epsilon({GaussianLoss(variance, shift): often}, delta)
    assert truth.delta(found.epsilon).upper() <= oracle.ball(delta)
    assert truth.delta(found.epsilon * (1 - 1e-6)).lower() > oracle.ball(delta)


# dp-accounting: its losses are rounded up to multiples of an interval, by half of one on average for each mechanism.

INTERVAL = 1e-3


def looped(parts: list[tuple[pld.PrivacyLossDistribution, int]]) -> pld.PrivacyLossDistribution:
    """Composed one by one; `self_compose` and `count` are not used."""
    total = None
    for part, count in parts:
        for _ in range(count):
            total = part if total is None else total.compose(part)
    assert total is not None
    return total


@pytest.mark.parametrize("delta", [TEN, SIX])
@pytest.mark.parametrize(("sigma", "count"), [(1, 10), (2, 7), (20, 30)])
def test_dp_accounting_agrees_on_gaussian_noise_within_its_rounding(sigma: int, count: int, delta: Fraction) -> None:
    theirs = looped([(pld.from_discrete_gaussian_mechanism(sigma, value_discretization_interval=INTERVAL), count)])
    ours = exact_epsilon({GaussianLoss(Fraction(sigma**2), 1): count}, delta).epsilon
    assert ours - 1e-6 <= theirs.get_epsilon_for_delta(float(delta)) <= ours + count * INTERVAL


@pytest.mark.parametrize("delta", [TEN, SIX])
@pytest.mark.parametrize("shift", [1, 3])
def test_dp_accounting_agrees_on_laplace_noise_within_its_rounding(shift: int, delta: Fraction) -> None:
    part = pld.from_discrete_laplace_mechanism(0.1, sensitivity=shift, value_discretization_interval=INTERVAL)
    theirs = looped([(part, 40)])
    ours = exact_epsilon({LaplaceLoss(Fraction(10), shift): 40}, delta).epsilon
    assert ours - 1e-6 <= theirs.get_epsilon_for_delta(float(delta)) <= ours + 40 * INTERVAL


def test_dp_accounting_agrees_on_a_mixture_within_its_rounding() -> None:
    answer = dp_accounting.pld.common.DifferentialPrivacyParameters(0.1, 0)
    parts = [
        (pld.from_discrete_laplace_mechanism(0.05, value_discretization_interval=INTERVAL), 10),
        (pld.from_discrete_gaussian_mechanism(5, value_discretization_interval=INTERVAL), 10),
        (pld.from_privacy_parameters(answer, value_discretization_interval=INTERVAL), 5),
    ]
    losses: dict[Loss, int] = {pure(Fraction(1, 20)): 10, GaussianLoss(Fraction(25), 1): 10, pure(Fraction(1, 10)): 5}
    ours = exact_epsilon(losses, TEN).epsilon
    assert ours - 1e-6 <= looped(parts).get_epsilon_for_delta(1e-10) <= ours + 25 * INTERVAL


def test_dp_accounting_forgets_how_often_randomised_response_was_repeated_and_we_do_not() -> None:
    noise = 2 / (1 + math.exp(0.5))  # the probability of an answer drawn at random: epsilon is one half
    event, relation = dp_event.RandomizedResponseDpEvent(noise, 2), dp_accounting.NeighboringRelation.REPLACE_ONE
    by_count, one_by_one = PLDAccountant(relation), PLDAccountant(relation)
    by_count.compose(event, 100)
    for _ in range(100):
        one_by_one.compose(event)
    ours = exact_epsilon({pure(Fraction(1, 2)): 100}, SIX).epsilon
    assert ours == pytest.approx(33.32, abs=0.005)
    assert ours - 1e-6 <= one_by_one.get_epsilon(1e-6) <= ours + 0.02
    assert by_count.get_epsilon(1e-6) < 0.51


# opendp: its conversion of zCDP is the tight one.


@pytest.mark.parametrize("delta", [1e-6, 1e-10, 1e-15])
@pytest.mark.parametrize("rho", [0.001, 0.125, 1.25, 2.5, 50.0])
def test_opendps_conversion_of_zcdp_is_our_tight_one(rho: float, delta: float) -> None:
    dp.enable_features("contrib", "honest-but-curious")
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    measurement = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=1 / math.sqrt(2 * rho)))
    theirs = measurement.map(1).epsilon(delta)
    assert epsilon_tight(Fraction(rho), Fraction(delta)) == pytest.approx(theirs, rel=1e-6)
