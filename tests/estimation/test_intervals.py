"""Intervals of counts and sums: exact examples, laws, and how often the truth lies within."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from estimation.intervals import (
    LARGEST,
    agency_quantile,
    count_interval,
    cv,
    law_quantile,
    normal_quantile,
    reliability_class,
    sum_interval,
)
from release_specs.language.phrases import Unreliable, read_unreliable
from tests.estimation.made_up import Laplace, Normal

DRAWS = 100_000
Floats = npt.NDArray[np.float64]

estimates = arrays.arrays(np.float64, 12, elements=st.floats(-1e6, 1e6))
margins = arrays.arrays(np.float64, 12, elements=st.floats(0, 1e5))
confidences = st.floats(0.5, 0.999)


def ends(estimate: float, moe: float, *, signed: bool = False) -> tuple[int, int]:
    low, high = sum_interval(np.array(estimate), np.array(moe), signed=signed)
    return int(low), int(high)


def deviation_of(noise: Normal | Laplace) -> float:
    """Rounding adds a twelfth to the variance of normal noise."""
    return float(noise.variance + noise.is_gaussian / 12) ** 0.5


def multiplier(noise: Normal | Laplace, confidence: Fraction) -> float:
    """Normal for noise that is as good as normal, else from simulated errors."""
    if noise.is_gaussian:
        return normal_quantile(confidence)
    errors = noise.draw(DRAWS, np.random.default_rng(5))
    return float(law_quantile(errors, deviation_of(noise), confidence=confidence))


def test_the_agencies_use_1_645_1_96_and_2_576() -> None:
    assert [agency_quantile(Fraction(level, 100)) for level in (90, 95, 99)] == [1.645, 1.96, 2.576]
    assert agency_quantile(0.8) == 1.282


def test_the_normal_multiplier_is_the_one_of_the_tables() -> None:
    assert normal_quantile(Fraction(9, 10)) == pytest.approx(1.6448536269514722, abs=1e-14)
    assert normal_quantile(Fraction(95, 100)) == pytest.approx(1.959963984540054, abs=1e-14)


@pytest.mark.parametrize("confidence", [0, 1, -0.1, Fraction(3, 2)])
def test_a_confidence_lies_between_0_and_1(confidence: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        normal_quantile(confidence)


@given(confidences, confidences)
def test_more_confidence_asks_for_more_deviations(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert normal_quantile(low) <= normal_quantile(high)


@pytest.mark.parametrize(
    ("estimate", "moe", "expected"),
    [
        (10.0, 3.0, (7, 13)),
        (10.5, 3.0, (8, 13)),  # rounded inward
        (2.0, 3.5, (0, 5)),  # no count is below zero
        (10.4, 0.2, (10, 10)),  # no whole number within: the nearest
        (10.6, 0.2, (11, 11)),
        (-0.4, 0.1, (0, 0)),
        (-7.2, 3.0, (0, 0)),
        (0.0, 0.0, (0, 0)),
        (10.0 + 1e-10, 3.0, (7, 13)),  # dust does not cost a whole number
        (10.0 - 1e-10, 3.0, (7, 13)),
        (5.0, np.inf, (0, LARGEST)),  # not measured at all
    ],
)
def test_a_count_lies_between_whole_numbers(estimate: float, moe: float, expected: tuple[int, int]) -> None:
    low, high = count_interval(np.array([estimate]), moe)
    assert low.dtype == high.dtype == np.int64
    assert (int(low[0]), int(high[0])) == expected


@pytest.mark.parametrize(
    ("estimate", "moe", "expected"),
    [(-10.5, 3.0, (-13, -8)), (-0.4, 0.1, (0, 0)), (-2.6, 0.1, (-3, -3)), (1.0, np.inf, (-LARGEST, LARGEST))],
)
def test_a_signed_sum_may_lie_below_zero(estimate: float, moe: float, expected: tuple[int, int]) -> None:
    assert ends(estimate, moe, signed=True) == expected


def test_a_large_sum_keeps_its_ends_within_the_dust_of_least_squares() -> None:
    assert ends(4e12 + 5e-4, 5.0, signed=True) == (4 * 10**12 - 5, 4 * 10**12 + 5)


@pytest.mark.parametrize(("estimate", "moe"), [(np.nan, 1.0), (np.inf, 1.0), (1.0, -1.0), (1.0, np.nan)])
def test_an_interval_needs_numbers(estimate: float, moe: float) -> None:
    with pytest.raises(ValueError, match="needs an estimate"):
        ends(estimate, moe)


@given(estimates, margins, st.booleans())
def test_an_interval_is_in_order_and_holds_whole_numbers_within_the_margin(
    estimate: Floats, moe: Floats, signed: bool
) -> None:
    low, high = sum_interval(estimate, moe, signed=signed)
    assert (low <= high).all()
    assert signed or (low >= 0).all()
    inside = (low < high) & (signed | (estimate > 0))
    assert (low >= estimate - moe - 1e-5)[inside].all()
    assert (high <= estimate + moe + 1e-5)[inside].all()
    nearest = np.rint(estimate) if signed else np.maximum(np.rint(estimate), 0)
    assert ((low <= nearest) & (nearest <= high))[moe >= 0.5].all()


@given(estimates, margins, confidences, confidences)
def test_a_wider_margin_never_gives_a_narrower_interval(
    estimate: Floats, deviation: Floats, one: float, other: float
) -> None:
    few, many = (normal_quantile(confidence) for confidence in sorted((one, other)))
    inner, outer = count_interval(estimate, few * deviation), count_interval(estimate, many * deviation)
    assert (outer[0] <= inner[0]).all()
    assert (outer[1] >= inner[1]).all()


@given(estimates, margins, st.permutations(range(12)))
def test_an_interval_does_not_depend_on_its_neighbours(estimate: Floats, moe: Floats, order: list[int]) -> None:
    low, high = count_interval(estimate, moe)
    mixed_low, mixed_high = count_interval(estimate[order], moe[order])
    assert (mixed_low == low[order]).all()
    assert (mixed_high == high[order]).all()


def test_a_multiplier_is_read_off_simulated_errors() -> None:
    errors = np.array([-9, 1, 2, -3, 4, 5, -6, 7, 8.0])
    assert law_quantile(errors, 2.0, confidence=Fraction(9, 10)) == 4.5  # the 9th of 9, as 9/10 of 9 + 1
    assert law_quantile(errors, 2.0, confidence=0.5) == 2.5
    with pytest.raises(ValueError, match="too few"):
        law_quantile(errors, 2.0, confidence=0.95)


def test_where_nothing_errs_the_multiplier_is_zero() -> None:
    errors = np.tile([0.0, 1.0], (20, 1))
    assert law_quantile(errors, np.array([0.0, 2.0]), confidence=0.9).tolist() == [0.0, 0.5]
    with pytest.raises(ValueError, match="without a deviation"):
        law_quantile(errors, np.array([0.0, 0.0]), confidence=0.9)


@given(arrays.arrays(np.float64, 50, elements=st.floats(-1e9, 1e9)), st.floats(1e-3, 1e6), confidences, confidences)
def test_a_multiplier_is_never_below_what_the_sample_says(
    errors: Floats, deviation: float, one: float, other: float
) -> None:
    low, high = sorted(min(confidence, 0.98) for confidence in (one, other))
    few, many = (float(law_quantile(errors, deviation, confidence=each)) for each in (low, high))
    assert np.mean(np.abs(errors) <= many * deviation) >= high - 1e-9
    assert few <= many


def test_the_law_of_laplace_noise_is_found() -> None:
    errors = np.random.default_rng(2).laplace(0, 1, 400_000)
    found = float(law_quantile(errors, 2**0.5, confidence=0.95))
    assert found == pytest.approx(np.log(20) / 2**0.5, abs=0.02)
    assert found > normal_quantile(0.95) + 0.1  # the normal multiplier is too small for it


def covered(noise: Normal | Laplace, truth: int, times: float) -> float:
    """How often a count's interval holds the truth, with margins of so many deviations."""
    estimate = truth + noise.draw(DRAWS, np.random.default_rng(truth)).astype(np.float64)
    low, high = count_interval(estimate, times * deviation_of(noise))
    return float(np.mean((low <= truth) & (truth <= high)))


@pytest.mark.parametrize("noise", [Normal(900.0), Laplace(21.0)], ids=["normal", "laplace"])
@pytest.mark.parametrize("confidence", [Fraction(9, 10), Fraction(95, 100)], ids=str)
@pytest.mark.parametrize("truth", [0, 1, 2, 3, 4, 5, 50])
def test_a_count_lies_within_its_interval_as_often_as_promised(
    noise: Normal | Laplace, confidence: Fraction, truth: int
) -> None:
    times = multiplier(noise, confidence)
    # An estimate that is too low costs nothing where the truth is zero: only half of the errors can miss it.
    promised = float(1 + confidence) / 2 - 0.01 if truth == 0 else float(confidence) - 0.02
    assert covered(noise, truth, times) >= promised
    assert covered(noise, truth, times) <= promised + 0.04
    assert covered(noise, truth, 0.85 * times) < promised  # and a deviation 15 % too small would be noticed


@pytest.mark.parametrize("noise", [Normal(1.0), Normal(2.89), Laplace(0.6), Laplace(1.1)], ids=repr)
@pytest.mark.parametrize("confidence", [Fraction(9, 10), Fraction(95, 100)], ids=str)
def test_one_measurement_of_small_noise_needs_the_quantile_of_its_own_law(
    noise: Normal | Laplace, confidence: Fraction
) -> None:
    errors = noise.draw(DRAWS, np.random.default_rng(5))
    times = float(law_quantile(errors, deviation_of(noise), confidence=confidence))
    for truth in (0, 1, 5, 50):
        assert covered(noise, truth, times) >= float(confidence) - 0.002


def test_the_normal_multiplier_is_too_small_for_one_measurement_of_small_noise() -> None:
    assert covered(Normal(1.7**2), 5, normal_quantile(0.9)) < 0.87  # of the whole errors 0, 1, 2 are within 2.87


def test_the_coefficient_of_variation_of_less_than_one_is_that_of_one() -> None:
    assert cv(np.array([10.0, 1.0, 0.2, -5.0]), 2.0).tolist() == [0.2, 2.0, 2.0, 2.0]


def test_an_estimate_has_the_worst_class_that_it_belongs_to() -> None:
    classes = {"poor": read_unreliable("cv > 20%"), "bad": read_unreliable("moe > estimate")}
    estimate, deviation = np.array([100.0, 10.0, 2.0, 10.0, -3.0]), np.array([1.0, 3.0, 3.0, 2.0, 1.0])
    found = reliability_class(estimate, deviation, moe=1.645 * deviation, classes=classes)
    assert found.tolist() == ["", "poor", "bad", "", "bad"]  # a cv of exactly 20 % is not above it
    turned = reliability_class(estimate, deviation, moe=1.645 * deviation, classes=dict(reversed(classes.items())))
    assert turned.tolist() == ["", "poor", "poor", "", "poor"]


def test_a_class_may_name_a_margin_and_what_is_unknown_has_none() -> None:
    classes = {"wide": Unreliable("moe", Fraction(25))}
    found = reliability_class(np.array([1.0, np.nan, 3.0]), 1.0, moe=np.array([26.0, np.nan, 25.0]), classes=classes)
    assert found.tolist() == ["wide", "", ""]
    assert reliability_class(np.array([1.0]), 9.0, moe=9.0, classes={}).tolist() == [""]
