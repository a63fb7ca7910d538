"""Exact composition: known figures, and the edges of what can be asked."""

from __future__ import annotations

from fractions import Fraction
from math import exp, sqrt

import pytest
from scipy.stats import norm

from mechanisms.accounting.composition import Exact, exact_delta, exact_epsilon
from mechanisms.accounting.conversion import epsilon_tight
from mechanisms.accounting.losses import (
    GaussianLoss,
    LaplaceLoss,
    Loss,
    ResponseLoss,
    TooManyPoints,
    common_spacing,
    pure,
)
from tests.mechanisms.charges import gaussians

TEN, SIX = Fraction(1, 10**10), Fraction(1, 10**6)
ROUNDED = 5e-4  # figures printed to three decimals


@pytest.mark.parametrize(
    ("variance", "count", "delta", "epsilon"),
    [(400, 100, TEN, 3.099), (400, 1000, TEN, 10.908), (400, 1000, SIX, 8.306), (1, 10, TEN, 24.678)],
)
def test_gaussian_compositions_have_the_figures_that_were_checked(
    variance: int, count: int, delta: Fraction, epsilon: float
) -> None:
    found = exact_epsilon(gaussians(variance, count), delta)
    assert found.epsilon == pytest.approx(epsilon, abs=ROUNDED)
    assert found.kind == "lattice"
    assert found.excess < 1e-8


@pytest.mark.parametrize(
    ("count", "delta", "epsilon"),
    [(10, TEN, 1.000), (100, TEN, 6.295), (1000, TEN, 24.407), (100, SIX, 4.775), (1000, SIX, 19.345)],
)
def test_pure_compositions_have_the_optimal_figures(count: int, delta: Fraction, epsilon: float) -> None:
    found = exact_epsilon({pure(Fraction(1, 10)): count}, delta)
    assert found.epsilon == pytest.approx(epsilon, abs=ROUNDED)
    assert found.epsilon <= count / 10


@pytest.mark.parametrize(("delta", "printed"), [(TEN, 3.613), (SIX, 2.698)])
def test_the_mixture_is_a_little_below_what_a_grid_that_rounds_losses_up_found(delta: Fraction, printed: float) -> None:
    mixture = {pure(Fraction(1, 20)): 40, GaussianLoss(Fraction(900), 1): 100, pure(Fraction(1, 10)): 15}
    assert printed - 0.006 < exact_epsilon(mixture, delta).epsilon < printed


def test_an_epsilon_of_half_repeated_a_hundred_times_is_33_3_not_one_half() -> None:
    assert exact_epsilon({pure(Fraction(1, 2)): 100}, SIX).epsilon == pytest.approx(33.32, abs=0.005)


@pytest.mark.parametrize(
    ("variance", "count", "delta", "gap"), [(Fraction(1, 4), 4, SIX, 0.295), (Fraction(1), 10, TEN, 0.108)]
)
def test_the_formula_for_continuous_noise_is_below_the_truth_for_discrete_noise(
    variance: Fraction, count: int, delta: Fraction, gap: float
) -> None:
    exact = exact_epsilon(gaussians(variance, count), delta).epsilon
    continuous = continuous_epsilon(count / (2 * float(variance)), float(delta))
    assert exact - continuous == pytest.approx(gap, abs=1e-3)
    assert exact < epsilon_tight(count / (2 * variance), delta)


def test_where_the_noise_is_wide_continuous_and_discrete_noise_hardly_differ() -> None:
    exact = exact_epsilon(gaussians(400, 1000), TEN).epsilon
    assert exact == pytest.approx(continuous_epsilon(1.25, 1e-10), abs=1e-5)


def continuous_epsilon(rho: float, delta: float) -> float:
    """Balle and Wang 2018: for continuous Gaussian noise only."""
    mu = sqrt(2 * rho)
    low, high = 0.0, 200.0
    for _ in range(200):
        middle = (low + high) / 2
        tail = norm.cdf(mu / 2 - middle / mu) - exp(middle + norm.logcdf(-mu / 2 - middle / mu))
        low, high = (middle, high) if tail > delta else (low, middle)
    return high


@pytest.mark.parametrize("delta", [Fraction(1, 10**12), Fraction(1, 10**30), Fraction(1, 10**300)])
def test_at_a_tiny_delta_pure_mechanisms_cost_their_sum_and_no_more(delta: Fraction) -> None:
    found = exact_epsilon({pure(Fraction(1, 10)): 10, LaplaceLoss(Fraction(20), 2): 3}, delta)
    assert 1.3 * (1 - 1e-6) < found.epsilon < 1.3 * (1 + 1e-11)


def test_at_a_large_delta_nothing_is_left_to_pay() -> None:
    assert exact_epsilon(gaussians(400, 10), Fraction(1, 2)).epsilon == 0.0
    assert exact_epsilon({pure(Fraction(1, 10)): 2}, Fraction(1, 4)).epsilon == 0.0
    assert exact_epsilon(gaussians(400, 10), Fraction(99, 100)) == Exact(0.0, 0.0, "lattice")


def test_the_smallest_delta_at_epsilon_zero_is_the_distance_in_total_variation() -> None:
    law = pure(Fraction(1))
    distance = (exp(1) - 1) / (exp(1) + 1)
    assert exact_delta({law: 1}, 0.0) == pytest.approx(distance, rel=1e-11)
    assert exact_epsilon({law: 1}, Fraction(distance) * (1 + Fraction(1, 10**9))).epsilon == 0.0
    assert exact_epsilon({law: 1}, Fraction(distance) * (1 - Fraction(1, 10**9))).epsilon > 0.0


def test_beyond_the_largest_loss_delta_is_zero() -> None:
    assert exact_delta({pure(Fraction(1, 2)): 4}, 2.1) == 0.0
    assert exact_delta({pure(Fraction(1, 2)): 4}, 1.999) > 0.0


def test_deltas_far_below_all_floats_have_an_epsilon() -> None:
    far = exact_epsilon(gaussians(1, 10), Fraction(1, 10**400)).epsilon
    near = exact_epsilon(gaussians(1, 10), Fraction(1, 10**300)).epsilon
    assert near < far < epsilon_tight(Fraction(5), Fraction(1, 10**400))
    assert 0.0 < exact_delta(gaussians(1, 10), 200.0) < 1e-300


@pytest.mark.parametrize("epsilon", [30, 1000])
def test_a_single_large_epsilon_is_itself(epsilon: int) -> None:
    assert exact_epsilon({pure(Fraction(epsilon)): 1}, TEN).epsilon == pytest.approx(epsilon, abs=1e-6)
    assert exact_epsilon({pure(Fraction(epsilon)): 3}, TEN).epsilon == pytest.approx(3 * epsilon, abs=1e-6)


def test_very_small_noise_costs_the_loss_of_no_noise_at_all() -> None:
    assert exact_epsilon(gaussians(Fraction(1, 2000), 1), TEN).epsilon == pytest.approx(1000, abs=1e-6)
    assert exact_epsilon(gaussians(Fraction(1, 2000), 7), TEN).epsilon == pytest.approx(7000, abs=1e-5)


@pytest.mark.parametrize("variance", [10**4, 10**8])
def test_one_large_variance_is_summed_loss_by_loss(variance: int) -> None:
    found = exact_epsilon(gaussians(variance, 1), TEN)
    assert found.kind == "lattice"
    assert found.epsilon == pytest.approx(continuous_epsilon(1 / (2 * variance), 1e-10), rel=1e-5)


@pytest.mark.slow
def test_a_variance_of_a_million_millions_goes_to_a_grid() -> None:
    found = exact_epsilon(gaussians(10**12, 1), TEN)
    assert found.kind == "grid"
    assert found.excess < 1e-5 * found.epsilon


def test_what_is_too_long_to_sum_is_refused_by_name() -> None:
    with pytest.raises(TooManyPoints, match="too many for an exact sum"):
        exact_epsilon(gaussians(10**18, 1), TEN)
    with pytest.raises(TooManyPoints, match="mechanisms are too many"):
        exact_epsilon(gaussians(100, 10**7), TEN)


@pytest.mark.usefixtures("on_a_grid")
def test_variances_whose_common_lattice_no_float_holds_go_to_a_grid() -> None:
    losses: dict[Loss, int] = {
        GaussianLoss(Fraction(10**12 + 7 * place, 10**10 + 11 * place**2), 1): 1 for place in range(40)
    }
    assert float(common_spacing(list(losses))) == 0.0
    found = exact_epsilon(losses, TEN)
    assert found.epsilon < epsilon_tight(sum(loss.offset for loss in losses), TEN)


@pytest.mark.usefixtures("on_a_grid")
def test_pure_losses_that_lie_on_no_grid_cost_hardly_more_than_their_sum() -> None:
    losses: dict[Loss, int] = {ResponseLoss(Fraction(1, 3), 4): 2, pure(Fraction(1, 7)): 3}
    found = exact_epsilon(losses, Fraction(1, 10**100))
    assert 1.0952 < found.epsilon < 1.0955


def test_a_slack_is_taken_off_delta_and_may_not_use_it_up() -> None:
    plain, less = (exact_epsilon(gaussians(9, 4), TEN, slack=slack).epsilon for slack in (Fraction(0), TEN / 2))
    assert less == pytest.approx(exact_epsilon(gaussians(9, 4), TEN / 2).epsilon, rel=1e-9)
    assert less > plain
    with pytest.raises(TooManyPoints, match="exceeds this delta"):
        exact_epsilon(gaussians(9, 4), TEN, slack=TEN)


@pytest.mark.parametrize("losses", [{}, {pure(Fraction(1)): 0}])
def test_a_composition_of_nothing_is_refused(losses: dict[Loss, int]) -> None:
    with pytest.raises(ValueError, match="at least one mechanism"):
        exact_epsilon(losses, TEN)


def test_a_negative_epsilon_has_no_delta() -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        exact_delta(gaussians(1, 1), -0.5)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (GaussianLoss, (Fraction(0), 1)),
        (GaussianLoss, (Fraction(1), 0)),
        (LaplaceLoss, (Fraction(-1), 1)),
        (LaplaceLoss, (Fraction(1), 0)),
        (ResponseLoss, (Fraction(0), 3)),
        (ResponseLoss, (Fraction(1), 2)),
    ],
)
def test_a_law_without_noise_or_shift_cannot_be_made(kind: type[Loss], arguments: tuple[Fraction, int]) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        kind(*arguments)
