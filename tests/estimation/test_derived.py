"""Derived statistics: exact examples, laws, and how often the truth lies within their intervals."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from estimation.derived import (
    Cumulative,
    Derived,
    Pair,
    difference,
    difference_of,
    fieller,
    in_percent,
    mean_of,
    percent,
    proportion,
    quantiles_of,
    ratio,
    ratio_of,
)
from estimation.intervals import law_quantile, normal_quantile
from release_specs.tallies import Summand
from tests.estimation.made_up import Laplace, Normal

DRAWS = 60_000
HALF = Fraction(1, 2)
Floats = npt.NDArray[np.float64]
Noise = Normal | Laplace

numbers = arrays.arrays(np.float64, 8, elements=st.floats(-1e6, 1e6))
spreads = arrays.arrays(np.float64, 8, elements=st.floats(0, 1e4))
correlations = st.floats(-1, 1)
confidences = st.floats(0.5, 0.999)


def quotient(
    top: object, bottom: object, *, variances: tuple[float, float] = (1.0, 1.0), quantile: float = 1.645
) -> Derived:
    one, other = np.asarray(top, np.float64), np.asarray(bottom, np.float64)
    return fieller(one, other, variances=variances, covariance=0.0, quantile=quantile)


def all_parts(found: Derived) -> list[list[float]]:
    return [found.value.tolist(), found.low.tolist(), found.high.tolist()]


def holds(found: Derived) -> bool:
    """Whether every known value lies in its interval and every unknown one is not a number."""
    inside = (found.low <= found.value) & (found.value <= found.high)
    hidden = np.isnan(found.value) & np.isnan(found.low) & np.isnan(found.high)
    return bool(np.where(found.known, inside, hidden).all())


def test_a_quotient_has_the_interval_that_solves_fiellers_equation() -> None:
    found = fieller(np.array([30.0]), np.array([50.0]), variances=(9.0, 4.0), covariance=2.0, quantile=1.645)
    assert found.value.tolist() == [0.6]
    for end in (found.low[0], found.high[0]):
        assert abs(30 - end * 50) == pytest.approx(1.645 * np.sqrt(9 - 4 * end + 4 * end**2), rel=1e-9)


def test_a_quotient_by_an_exact_number_errs_as_its_numerator() -> None:
    found = quotient([30.0], [10.0], variances=(4.0, 0.0), quantile=2.0)
    assert all_parts(found) == [[3.0], [pytest.approx(2.6)], [pytest.approx(3.4)]]


@pytest.mark.parametrize(("top", "bottom"), [(0.0, 0.0), (5.0, 0.0), (5.0, 1.645), (5.0, -30.0), (np.nan, 9.0)])
def test_nothing_is_known_where_the_denominator_may_be_zero(top: float, bottom: float) -> None:
    found = quotient([top, 1.0], [bottom, 10.0])
    assert found.known.tolist() == [False, True]
    assert holds(found)


def test_nothing_is_known_of_what_was_not_measured() -> None:
    assert not quotient([1.0], [10.0], variances=(np.inf, 1.0)).known.any()
    assert not quotient([1.0], [10.0], variances=(1.0, np.inf)).known.any()


def test_zero_over_an_exact_number_is_exactly_zero() -> None:
    assert all_parts(quotient([0.0], [7.0], variances=(0.0, 0.0))) == [[0.0], [0.0], [0.0]]


@given(numbers, numbers, st.tuples(spreads, spreads), correlations, st.tuples(confidences, confidences))
def test_a_quotient_lies_in_its_interval_and_more_confidence_widens_it(
    top: Floats, bottom: Floats, spread: tuple[Floats, Floats], correlation: float, sure: tuple[float, float]
) -> None:
    variances, both = (spread[0] ** 2, spread[1] ** 2), correlation * spread[0] * spread[1]
    few, many = (
        fieller(top, bottom, variances=variances, covariance=both, quantile=normal_quantile(confidence))
        for confidence in sorted(sure)
    )
    assert holds(few)
    assert holds(many)
    assert not (many.known & ~few.known).any()
    slack = 1e-6 * (1 + np.abs(few.value))
    assert ((many.low <= few.low + slack) & (many.high >= few.high - slack))[many.known].all()


@given(numbers, numbers, spreads, st.permutations(range(8)))
def test_a_quotient_does_not_depend_on_its_neighbours(
    top: Floats, bottom: Floats, spread: Floats, order: list[int]
) -> None:
    straight = fieller(top, bottom, variances=(spread**2, 1.0), covariance=0.0, quantile=2.0)
    mixed = fieller(top[order], bottom[order], variances=(spread[order] ** 2, 1.0), covariance=0.0, quantile=2.0)
    for part in ("value", "low", "high", "known"):
        np.testing.assert_array_equal(getattr(straight, part)[order], getattr(mixed, part))


@pytest.mark.parametrize("high", [5, 6])
def test_the_mean_of_values_is_found_from_their_centred_sum(high: int) -> None:
    summand = Summand("rooms", HALF, 0, high).centred
    ticks = [1, 2, 5]
    total = float(sum(summand.factor * tick - summand.shift for tick in ticks))
    pair = Pair(np.array([total]), np.array([3.0]), variances=(0.0, 0.0))
    assert mean_of(summand, pair, quantile=1.645).value.tolist() == [pytest.approx(8 / 3 / 2)]


def test_a_mean_and_its_interval_stay_within_the_clip() -> None:
    summand = Summand("age", Fraction(1), 0, 99).centred
    pair = Pair(np.array([900.0, -2000.0, 0.0]), np.array([10.0, 10.0, 1.0]), variances=(100.0**2, 1.0))
    found = mean_of(summand, pair, quantile=1.645)
    assert found.known.tolist() == [True, True, False]
    assert found.high[0] == 99.0
    assert found.value[0] == pytest.approx(94.5)
    assert (found.low[1], found.value[1]) == (0.0, 0.0)
    assert holds(found)


def test_proportions_and_ratios_of_counts_stay_where_they_can_be() -> None:
    pair = Pair(np.array([-1.0, 12.0, 5.0]), np.array([10.0, 10.0, 10.0]), variances=(4.0, 4.0))
    found = proportion(pair, quantile=1.645)
    assert found.value.tolist() == [0.0, 1.0, 0.5]
    assert found.low[0] == 0.0
    assert found.high[1] == 1.0
    assert ratio(pair, quantile=1.645, signed=False).value.tolist() == [0.0, 1.2, 0.5]
    assert ratio(pair, quantile=1.645, signed=True).value.tolist() == [-0.1, 1.2, 0.5]
    hundredfold = percent(pair, quantile=1.645, signed=True)
    assert hundredfold.value.tolist() == [pytest.approx(-10.0), pytest.approx(120.0), pytest.approx(50.0)]
    np.testing.assert_allclose(hundredfold.high, 100 * ratio(pair, quantile=1.645, signed=True).high)


def test_a_difference_knows_the_covariance() -> None:
    pair = Pair(np.array([10.0, 1.0]), np.array([4.0, 4.0]), variances=(9.0, np.array([16.0, np.inf])), covariance=4.5)
    found = difference(pair, quantile=2.0)
    assert found.known.tolist() == [True, False]
    assert (found.value[0], found.low[0], found.high[0]) == (6.0, -2.0, 14.0)


def exact(value: float, below: float, above: float) -> Derived:
    return Derived(np.array([value]), np.array([value - below]), np.array([value + above]), np.array([True]))


def test_a_difference_of_means_is_as_far_off_as_both_intervals_say() -> None:
    found = difference_of(exact(10, 3, 1), exact(6, 2, 4))
    assert all_parts(found) == [[4.0], [4 - 5.0], [pytest.approx(4 + 5**0.5)]]
    apart = difference_of(exact(10, 3, 3), exact(6, 4, 4), correlation=-1.0)
    assert all_parts(apart) == [[4.0], [-3.0], [11.0]]


@given(st.floats(-50, 50), st.floats(1, 50), st.floats(0.1, 30), st.floats(0.1, 30), st.floats(-0.9, 0.9))
def test_a_ratio_of_means_with_even_intervals_is_fiellers(
    one: float, other: float, spread: float, width: float, correlation: float
) -> None:
    top, bottom = exact(one, spread, spread), exact(other, width, width)
    found = in_percent(ratio_of(top, bottom, correlation=correlation))
    both = correlation * spread * width
    known = fieller(top.value, bottom.value, variances=(spread**2, width**2), covariance=both, quantile=1.0)
    assert found.known.tolist() == known.known.tolist()
    np.testing.assert_allclose(found.value, 100 * known.value)
    np.testing.assert_allclose(found.low, 100 * known.low, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.high, 100 * known.high, rtol=1e-6, atol=1e-6)


def test_nothing_is_known_of_a_comparison_with_the_unknown() -> None:
    nothing = quotient([1.0], [0.0])
    assert not difference_of(nothing, exact(1, 1, 1)).known.any()
    assert not ratio_of(exact(1, 1, 1), exact(1, 1, 1)).known.any()  # the other may be zero
    assert holds(ratio_of(nothing, exact(5, 1, 1)))


def medians(counts: list[float], *, variance: float, at: Fraction = HALF, quantile: float = 1.645) -> list[float]:
    points = 10.0 * np.arange(len(counts))
    cumulative = Cumulative.independent(np.array([counts]), np.full(len(counts), variance))
    found = quantiles_of(points, cumulative, at=[at], quantile=quantile)
    return [float(part[0, 0]) for part in (found.value, found.low, found.high)]


def test_a_quantile_is_the_point_at_which_the_share_is_reached() -> None:
    assert medians([1, 1, 1, 1], variance=0.0) == [10.0, 10.0, 10.0]
    assert medians([1, 1, 1, 1], variance=0.0, at=Fraction(3, 4)) == [20.0, 20.0, 20.0]
    assert medians([0, 0, 5, 0], variance=0.0) == [20.0, 20.0, 20.0]
    assert medians([7], variance=0.0) == [0.0, 0.0, 0.0]


def test_sums_that_fall_are_pooled() -> None:
    # Cumulative 4, 8, 2, 7, 10: the 8 and the 2 become 5, which is half of the total.
    assert medians([4, 4, -6, 5, 3], variance=0.0)[0] == 10.0
    assert medians([4, 2, -4, 5, 3], variance=0.0)[0] == 30.0


def test_the_interval_of_a_quantile_inverts_the_band() -> None:
    # Cumulative sums less half of the total: -30, -10, 10, 30, 50, each with a variance of a quarter of 5 * 4.
    assert medians([20, 20, 20, 20, 20], variance=4.0, quantile=9.9 / 5**0.5) == [20.0, 20.0, 20.0]
    assert medians([20, 20, 20, 20, 20], variance=4.0, quantile=10.1 / 5**0.5) == [20.0, 10.0, 30.0]


def test_no_quantile_is_known_where_the_total_may_be_zero() -> None:
    counts = np.array([[1.0, 0.0, 1.0], [50.0, 60.0, 50.0], [0.0, 0.0, 0.0]])
    found = quantiles_of(np.arange(3.0), Cumulative.independent(counts, np.ones(3)), at=[HALF], quantile=1.645)
    assert found.known[:, 0].tolist() == [False, True, False]
    assert holds(found)


def test_correlated_cells_err_as_their_matrix_says() -> None:
    counts = np.array([[5.0, 9.0, 6.0], [5.0, 1.0, 6.0]])
    alone = Cumulative.independent(counts, np.array([1.0, 4.0, 9.0]))
    same = Cumulative.correlated(counts, np.diag([1.0, 4.0, 9.0]))
    np.testing.assert_allclose(alone.deviations, same.deviations)
    np.testing.assert_allclose(alone.with_total, same.with_total)
    fixed = Cumulative.correlated(counts, np.eye(3) - 1 / 3)  # the total is known exactly
    np.testing.assert_allclose(fixed.deviations[:, -1], 0, atol=1e-7)
    np.testing.assert_allclose(fixed.with_total, 0, atol=1e-12)


@given(arrays.arrays(np.float64, (3, 9), elements=st.floats(-20, 100)), st.floats(0, 20), confidences, confidences)
def test_quantiles_rise_lie_in_their_intervals_and_more_confidence_widens_these(
    counts: Floats, spread: float, less: float, more: float
) -> None:
    at = [Fraction(1, 10), HALF, Fraction(9, 10)]
    cumulative = Cumulative.independent(counts, np.full(9, spread**2))
    few, many = (
        quantiles_of(np.arange(9.0), cumulative, at=at, quantile=normal_quantile(each)) for each in sorted((less, more))
    )
    assert holds(few)
    assert ((many.low <= few.low) & (many.high >= few.high))[many.known].all()
    assert (np.diff(few.value, axis=-1)[few.known[:, 0]] >= 0).all()


def deviation_of(noise: Noise) -> float:
    """Rounding adds a twelfth to the variance of normal noise."""
    return float(noise.variance + noise.is_gaussian / 12) ** 0.5


def kind(name: str, deviation: float) -> Noise:
    """Noise of about this deviation."""
    return Normal(deviation**2) if name == "normal" else Laplace(deviation / 2**0.5)


def multiplier(top: Noise, bottom: Noise, *, at: float, confidence: float) -> float:
    """Normal for normal noise, else from simulated errors of the numerator less so many denominators."""
    if top.is_gaussian:
        return normal_quantile(confidence)
    rng = np.random.default_rng(8)
    errors = top.draw(DRAWS, rng) - at * bottom.draw(DRAWS, rng)
    spread = (top.variance + at**2 * bottom.variance) ** 0.5
    return float(law_quantile(errors, spread, confidence=confidence))


def share_covered(found: Derived, truth: float) -> float:
    """Of the known rows, those whose interval holds the truth; the unknown ones are counted elsewhere."""
    return float(np.mean(((found.low <= truth) & (truth <= found.high))[found.known]))


def noisy(top: Noise, bottom: Noise, truth: tuple[float, float], *, shrink: float, seed: int = 3) -> Pair:
    """Estimates of two true numbers, with deviations that are stated `shrink` times as large as they are."""
    rng = np.random.default_rng(seed)
    first, second = truth[0] + top.draw(DRAWS, rng), truth[1] + bottom.draw(DRAWS, rng).astype(np.float64)
    stated = tuple((shrink * deviation_of(noise)) ** 2 for noise in (top, bottom))
    return Pair(first.astype(np.float64), second, variances=(stated[0], stated[1]))


UNKNOWN = {5: 0.15, 50: 0.0, 500: 0.0}
"""At most so many rows are unknown where a true denominator is measured with a deviation of 1.5."""

both_noises = pytest.mark.parametrize("name", ["normal", "laplace"])
both_confidences = pytest.mark.parametrize("confidence", [0.9, 0.95])


@both_noises
@both_confidences
@pytest.mark.parametrize("count", [5, 50, 500])
@pytest.mark.parametrize("mean", [12, 49, 81])
def test_a_mean_lies_within_its_interval_as_often_as_promised(
    name: str, confidence: float, count: int, mean: int
) -> None:
    summand = Summand("age", Fraction(1), 0, 99).centred
    top, bottom = kind(name, 1.5 * 99), kind(name, 1.5)
    at = summand.factor * mean - summand.shift
    times = multiplier(top, bottom, at=at, confidence=confidence)
    right, small = (
        mean_of(summand, noisy(top, bottom, (at * count, count), shrink=shrink), quantile=times)
        for shrink in (1.0, 0.85)
    )
    assert np.mean(~right.known) <= UNKNOWN[count]
    assert share_covered(right, mean) >= confidence - 0.02
    assert share_covered(small, mean) < confidence - 0.02  # and a deviation 15 % too small would be noticed


@both_noises
@both_confidences
@pytest.mark.parametrize("count", [5, 50, 500])
@pytest.mark.parametrize("truth", [0.2, 0.6, 2.4])
def test_a_ratio_lies_within_its_interval_as_often_as_promised(
    name: str, confidence: float, count: int, truth: float
) -> None:
    top, bottom = kind(name, 12.0), kind(name, 1.5)
    times = multiplier(top, bottom, at=truth, confidence=confidence)
    right, small = (
        ratio(noisy(top, bottom, (truth * count, count), shrink=shrink), quantile=times, signed=False)
        for shrink in (1.0, 0.85)
    )
    assert np.mean(~right.known) <= UNKNOWN[count]
    assert share_covered(right, truth) >= confidence - 0.02
    assert share_covered(small, truth) < confidence - 0.02


@both_noises
def test_a_quotient_that_is_rarely_known_misses_more_often_than_promised(name: str) -> None:
    # A denominator of 5 with a deviation of 8 is known only where noise makes it two or three times as large. What is
    # then said of the quotient is too small: known rows hold the truth in about 84 of 100 cases instead of 90.
    top, bottom = kind(name, 160.0), kind(name, 8.0)
    found = ratio(noisy(top, bottom, (50.0, 5.0), shrink=1.0), quantile=normal_quantile(0.9), signed=True)
    assert np.mean(found.known) < 0.2
    assert 0.8 < share_covered(found, 10.0) < 0.88


@both_noises
@both_confidences
@pytest.mark.parametrize("compare", [difference_of, ratio_of])
def test_a_comparison_of_means_holds_as_often_as_promised(
    name: str, confidence: float, compare: Callable[[Derived, Derived], Derived]
) -> None:
    summand = Summand("income", Fraction(100), 0, 3000).centred
    top, bottom = kind(name, 1.5 * 1500), kind(name, 1.5)
    means, truth = (600, 900), {"difference_of": -30_000.0, "ratio_of": 2 / 3}[compare.__name__]
    at = [mean - summand.shift for mean in means]
    times = multiplier(top, bottom, at=at[0], confidence=confidence)
    for shrink in (1.0, 0.85):
        pairs = [noisy(top, bottom, (one * 50.0, 50.0), shrink=shrink, seed=seed) for seed, one in enumerate(at)]
        one, other = (mean_of(summand, pair, quantile=times) for pair in pairs)
        assert (share_covered(compare(one, other), truth) >= confidence - 0.02) is (shrink == 1.0)


@both_noises
@both_confidences
def test_a_median_lies_within_its_interval_as_often_as_promised(name: str, confidence: float) -> None:
    noise, rows, points = kind(name, 6.0), 8_000, 201
    counts = 5.0 + noise.draw(rows * points, np.random.default_rng(4)).reshape(rows, points)
    for shrink in (1.0, 0.85):
        cumulative = Cumulative.independent(counts, np.full(points, (shrink * deviation_of(noise)) ** 2))
        found = quantiles_of(np.arange(points), cumulative, at=[HALF], quantile=normal_quantile(confidence))
        assert found.known.all()
        assert (share_covered(found, 100.0) >= confidence - 0.02) is (shrink == 1.0)
