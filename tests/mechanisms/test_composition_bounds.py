"""Exact composition on a grid, the bounds on what may go wrong, and which change dominates."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import comb, exp, expm1, inf, log

import numpy as np
import pytest

from mechanisms.accounting import composition, transform
from mechanisms.accounting.composition import exact_delta, exact_epsilon
from mechanisms.accounting.conversion import epsilon_tight
from mechanisms.accounting.domination import dominates
from mechanisms.accounting.grids import merged, on_lattice, spread
from mechanisms.accounting.losses import (
    GaussianLoss,
    LaplaceLoss,
    Loss,
    ResponseLoss,
    collected,
    common_spacing,
    pure,
)
from mechanisms.accounting.sums import Sum
from mechanisms.accounting.transform import tilted
from tests.mechanisms.charges import gaussians

TEN, SIX = Fraction(1, 10**10), Fraction(1, 10**6)
ROUNDED = 5e-4  # figures printed to three decimals


@pytest.mark.parametrize(
    "losses",
    [
        gaussians(400, 100),
        {pure(Fraction(1, 10)): 100},
        {pure(Fraction(1, 20)): 40, GaussianLoss(Fraction(900), 1): 100, ResponseLoss(Fraction(1, 10), 5): 15},
        {GaussianLoss(Fraction(4), 2): 6, LaplaceLoss(Fraction(8), 5): 2},
    ],
)
def test_the_grid_encloses_the_lattice(losses: dict[Loss, int], request: pytest.FixtureRequest) -> None:
    exact = exact_epsilon(losses, TEN)
    request.getfixturevalue("on_a_grid")
    found = exact_epsilon(losses, TEN)
    assert (exact.kind, found.kind) == ("lattice", "grid")
    assert found.epsilon - found.excess <= exact.epsilon
    assert exact.epsilon - exact.excess <= found.epsilon
    assert found.excess < 1e-3


def test_variances_without_a_common_lattice_go_to_a_grid_by_themselves() -> None:
    losses: dict[Loss, int] = {GaussianLoss(Fraction(10**6 + 3**place, 10**4 + place), 1): 2 for place in (1, 2)}
    found = exact_epsilon(losses, TEN)
    assert found.kind == "grid"
    assert found.excess < 1e-6
    assert found.epsilon < epsilon_tight(sum(2 * loss.offset for loss in losses), TEN)


@pytest.mark.parametrize(
    "loss", [GaussianLoss(Fraction(5), 2), LaplaceLoss(Fraction(7), 9), ResponseLoss(Fraction(1, 3), 4)]
)
@pytest.mark.parametrize("bits", [1, 4, 12])
def test_spread_and_merged_laws_keep_both_measures(loss: Loss, bits: int) -> None:
    steps = np.concatenate([block for block, _ in loss.blocks(-100.0)])
    masses = np.exp(loss.log_masses(steps))
    against = masses * np.exp(-float(loss.spacing) * steps)
    above = spread(loss, bits, log_negligible=-100.0)
    assert np.exp(above.logs).sum() == pytest.approx(masses.sum(), rel=1e-12)
    assert np.exp(above.logs - above.steps * 2.0**-bits).sum() == pytest.approx(against.sum(), rel=1e-12)
    under_p, under_q = merged(loss, bits, log_negligible=-100.0)
    assert np.exp(under_p.logs).sum() == pytest.approx(masses.sum(), rel=1e-12)
    assert np.exp(under_q.logs - under_q.steps * 2.0**-bits).sum() == pytest.approx(against.sum(), rel=1e-12)


def curve(losses: np.ndarray, masses: np.ndarray, against: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(masses - exp(epsilon) * against, 0.0).sum())


@pytest.mark.parametrize("loss", [GaussianLoss(Fraction(5), 2), LaplaceLoss(Fraction(7), 9)])
def test_a_law_lies_between_its_merged_and_its_spread_law_at_every_epsilon(loss: Loss) -> None:
    steps = np.concatenate([block for block, _ in loss.blocks(-100.0)])
    losses, masses = float(loss.spacing) * steps, np.exp(loss.log_masses(steps))
    above = spread(loss, 2, log_negligible=-100.0)
    under_p, under_q = merged(loss, 2, log_negligible=-100.0)
    for epsilon in np.linspace(-3, 3, 61):
        true = curve(losses, masses, masses * np.exp(-losses), epsilon)
        heights = above.steps / 4
        high = curve(heights, np.exp(above.logs), np.exp(above.logs - heights), epsilon)
        low = curve(heights, np.exp(under_p.logs), np.exp(under_q.logs - under_q.steps / 4), epsilon)
        assert low - 1e-14 <= true <= high + 1e-14
    assert any(
        curve(losses, masses, masses * np.exp(-losses), epsilon)
        < curve(heights, np.exp(above.logs), np.exp(above.logs - heights), epsilon) - 1e-6
        for epsilon in np.linspace(-3, 3, 61)
    )


@pytest.mark.parametrize("copies", [2, 37, 300])
@pytest.mark.parametrize("theta", [0.0, 0.05, 1.0])
def test_short_sums_are_right_to_their_last_digits(copies: int, theta: float) -> None:
    law = on_lattice(pure(Fraction(1, 5)), 1, log_negligible=-100.0)
    found = tilted([(law, copies)], theta, lambda: (0, 0))
    masses = np.exp(law.logs + theta * law.steps)
    share = Fraction(float(masses[1] / masses.sum()))
    exact = [float(comb(copies, k) * share**k * (1 - share) ** (copies - k)) for k in range(copies + 1)]
    assert found.whole
    assert found.steps.tolist() == list(range(-copies, 1))
    assert found.masses.tolist() == pytest.approx(exact, rel=found.error)
    assert found.noise == 0.0


@pytest.mark.parametrize("theta", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("copies", [2, 37, 400])
def test_the_error_of_a_transform_is_within_its_bound_and_the_bound_is_not_absurd(
    copies: int, theta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    laws = [
        (on_lattice(loss, 1, log_negligible=-100.0), copies)
        for loss in (pure(Fraction(1, 5)), LaplaceLoss(Fraction(9), 3))
    ]
    span = (-4 * copies, 1 << 12)
    monkeypatch.setattr(transform, "SHORT", 1 << 20)
    direct = tilted(laws, theta, lambda: span)
    monkeypatch.setattr(transform, "SHORT", 0)
    found = tilted(laws, theta, lambda: span)
    error = found.masses.copy()
    error[: direct.masses.size] -= direct.masses
    assert direct.whole
    assert not found.whole
    assert np.linalg.norm(error) < found.noise < 1e-10
    assert found.noise < 1e6 * np.linalg.norm(error)


def test_masses_cut_off_are_within_what_was_called_negligible() -> None:
    for variance in (Fraction(1, 100), Fraction(1, 2), Fraction(3), Fraction(400)):
        law = GaussianLoss(variance, 1)
        _, reach = law.steps(-40.0)
        outside = np.exp(law.log_masses(np.arange(reach + 1.0, 3 * reach + 60))).sum()
        assert 2 * outside <= exp(-40.0)


@pytest.mark.parametrize("variance", [Fraction(1, 10), Fraction(19, 10), Fraction(2), Fraction(50)])
def test_gaussian_masses_add_up_to_one_and_not_to_less(variance: Fraction) -> None:
    law = GaussianLoss(variance, 3)
    total = sum(float(np.exp(logs).sum()) for _, logs in law.blocks(-745.0))
    assert total == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("tilt", [-3.0, -0.5, 0.0, 0.7, 5.0])
@pytest.mark.parametrize(
    "loss", [GaussianLoss(Fraction(1, 3), 1), GaussianLoss(Fraction(50), 4), LaplaceLoss(Fraction(3), 9000)]
)
def test_cumulants_are_bounds(loss: Loss, tilt: float) -> None:
    steps, logs = (np.concatenate(parts) for parts in zip(*loss.blocks(-745.0), strict=True))
    losses = float(loss.offset) + float(loss.spacing) * steps
    truth = float(np.logaddexp.reduce(logs + tilt * losses))
    assert loss.cumulants(tilt).bound >= truth - 1e-9 * (1 + abs(truth))


def test_chernoffs_bound_holds_above_a_loss() -> None:
    total = Sum({pure(Fraction(1)): 20})
    plus = 1 / (1 + exp(-1))
    tail = sum(comb(20, k) * plus**k * (1 - plus) ** (20 - k) for k in range(19, 21))
    assert log(tail) <= total.log_above(18.0, 0.8)


def test_below_its_window_a_curve_promises_nothing() -> None:
    total = Sum(gaussians(10**4, 200, shift=100))
    tilt = total.tilt_for_mean(400.0)
    ladder = composition._ladder(total, total.window(tilt, -100.0), -200.0)
    curve = composition._curve(ladder, tilt, -100.0)
    assert curve.span[0] * float(ladder.spacing) + float(total.offset) > 200
    assert [curve.upper(epsilon) for epsilon in (0.0, 100.0, 200.0)] == [0.0, 0.0, 0.0]
    assert curve.upper(400.0) < -50


def test_the_common_spacing_divides_every_spacing() -> None:
    losses: list[Loss] = [GaussianLoss(Fraction(6), 1), GaussianLoss(Fraction(10), 1), pure(Fraction(1, 4))]
    spacing = common_spacing(losses)
    assert spacing == Fraction(1, 30)
    assert all((loss.spacing / spacing).denominator == 1 for loss in losses)


def test_masses_of_one_place_are_added_up_even_where_floats_would_vanish() -> None:
    places, logs = collected(np.array([1.0, 1.0, 2.0, 5.0]), np.array([-900.0, -900.0, -inf, -1.0]))
    assert places.tolist() == [1.0, 5.0]
    assert logs.tolist() == pytest.approx([-900 + log(2), -1.0])


@pytest.mark.parametrize("variance", [Fraction(1), Fraction(4), Fraction(400), Fraction(10**6)])
def test_members_in_one_cell_are_worse_than_members_in_two_under_gaussian_noise(variance: Fraction) -> None:
    for whole in (2, 3, 5):
        for part in range(1, whole // 2 + 1):
            two = (GaussianLoss(variance, part), GaussianLoss(variance, whole - part))
            assert dominates(GaussianLoss(variance, whole), two, log_slack=-60.0)


@pytest.mark.parametrize("scale", [Fraction(1, 4), Fraction(1), Fraction(30)])
def test_members_in_one_cell_are_worse_than_members_in_two_under_laplace_noise(scale: Fraction) -> None:
    assert dominates(LaplaceLoss(scale, 5), (LaplaceLoss(scale, 2), LaplaceLoss(scale, 3)), log_slack=-60.0)


def test_a_smaller_move_is_not_taken_for_a_worse_one() -> None:
    variance, scale = Fraction(25), Fraction(3)
    two = (GaussianLoss(variance, 3), GaussianLoss(variance, 4))  # as far as one cell moved by 5
    assert not dominates(GaussianLoss(variance, 4), two, log_slack=-60.0)
    assert dominates(GaussianLoss(variance, 6), two, log_slack=-60.0)
    assert not dominates(LaplaceLoss(scale, 9), two, log_slack=-60.0)
    assert not dominates(LaplaceLoss(scale, 4), (LaplaceLoss(scale, 2), LaplaceLoss(scale, 3)), log_slack=-60.0)


def test_what_cannot_be_compared_within_floats_is_not_taken_for_worse() -> None:
    tiny = Fraction(1, 100)
    assert not dominates(GaussianLoss(tiny, 9), (GaussianLoss(tiny, 4), GaussianLoss(tiny, 5)), log_slack=-60.0)
    huge = Fraction(10**14)
    assert not dominates(GaussianLoss(huge, 2), (GaussianLoss(huge, 1), GaussianLoss(huge, 1)), log_slack=-60.0)


@pytest.mark.parametrize("noise", [GaussianLoss, LaplaceLoss])
def test_a_larger_shift_costs_more_at_every_epsilon(noise: type[GaussianLoss | LaplaceLoss]) -> None:
    for epsilon in (0.0, 0.1, 0.3):
        deltas = [exact_delta({noise(Fraction(6), shift): 1}, epsilon) for shift in (2, 3, 4, 5)]
        assert all(low < high for low, high in pairwise(deltas))


def test_laplace_masses_are_those_of_the_noise() -> None:
    law, q = LaplaceLoss(Fraction(2), 3), exp(-0.5)
    steps = np.arange(-3.0, 1.0)
    expected = [q**3 / (1 + q), (1 - q) / (1 + q) * q**2, (1 - q) / (1 + q) * q, 1 / (1 + q)]
    assert np.exp(law.log_masses(steps)).tolist() == pytest.approx(expected, rel=1e-13)
    assert -expm1(-0.5) == pytest.approx(1 - q)
