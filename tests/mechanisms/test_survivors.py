"""Faults that every other test let live, found by planting them: see `mutants.toml`."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from math import exp, log

import numpy as np
import pytest

from mechanisms import noisy_counts, randomness
from mechanisms.accountant import Parallel, Price, Statement, state
from mechanisms.accounting import domination, groups
from mechanisms.accounting.composition import Curve, Ladder, exact_delta, exact_epsilon
from mechanisms.accounting.domination import dominates
from mechanisms.accounting.grids import _on_grid, on_lattice
from mechanisms.accounting.losses import GaussianLoss, LaplaceLoss, Loss, ResponseLoss, TooManyPoints, pure
from mechanisms.accounting.sums import Sum, Window
from mechanisms.accounting.transform import Tilted, tilted
from mechanisms.bounded_sum import BoundedSum
from mechanisms.exponential_mechanism import ExponentialMechanism
from mechanisms.noise import bernoulli
from mechanisms.noise.exponentials import Enclosure
from mechanisms.noise.gaussian_sums import _integrated, _suffix_sums
from mechanisms.noise.integers import LARGEST, add_saturating
from mechanisms.noise.inversion import Inversion
from mechanisms.noise.laws import GaussianLaw, LaplaceLaw
from mechanisms.noise.scales import _keep, _Ladder
from mechanisms.noise.seeded import SeededBits
from mechanisms.noisy_counts import FURTHEST, LIMIT
from mechanisms.noisy_max import NoisyMax
from mechanisms.plain_data import as_plain
from mechanisms.quantile import Quantile
from mechanisms.randomised_response import RandomisedResponse
from mechanisms.sensitivity import RECORD, Relation, Sensitivity, Sums, Unit
from tests.mechanisms.charges import TABLE, TEN, epsilon_of, gaussian, gaussians, laplace
from tests.mechanisms.enumeration import Tape

LAST = 2**64 - 1


def first_word(exponent: Fraction) -> int:
    """exp(-exponent) * 2^64, rounded down, by the decimals of the standard library."""
    with localcontext() as context:
        context.prec = 60
        return int((-Decimal(exponent.numerator) / exponent.denominator).exp() * 2**64)


# Random bits, coins and tables.


def test_seeded_bits_do_not_repeat_when_a_key_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(randomness, "BYTES_PER_KEY", 64)
    bits, again = SeededBits("long"), SeededBits("long")
    read = [bits.read(64) for _ in range(5)]
    assert len(set(read)) == 5
    assert [again.read(64) for _ in range(5)] == read


def test_a_word_beyond_the_equal_parts_is_drawn_again_and_not_put_anywhere() -> None:
    second = 2**64 // 3
    assert bernoulli.uniform_below(3, 1, Tape(((LAST, 64), (second, 64)))).tolist() == [1]
    assert bernoulli.uniform_below(3, 1, Tape(((LAST, 64), (LAST, 64), (2 * second, 64)))).tolist() == [2]


@pytest.mark.parametrize("below", [7, 64, 1000, 2**31 - 1])
def test_a_coin_of_an_array_falls_at_its_probability_to_the_last_bit(below: int) -> None:
    for above in range(1, 60):
        word = first_word(Fraction(above, below))
        for drawn, heads in ((word - 1, True), (word + 1, False)):
            tape = Tape(((drawn, 64),))
            assert bernoulli.coins_exp_of_ratios(np.array([above]), below, tape)[0] == heads, (above, below)


@pytest.mark.parametrize(
    ("law", "scale", "x"),
    [
        (LaplaceLaw, 2**38 + 1, 3 * 2**38),  # beyond the 31 bits of the fixed point
        (LaplaceLaw, 10**8 + 1, 2**31 - 1),
        (GaussianLaw, 2**39 + 12345, 3 * 2**20),  # x^2 is near the largest that is decided in fixed point
        (GaussianLaw, 3**24 + 2, 4 * 3**12),
    ],
)
def test_a_draw_far_out_at_a_wide_scale_is_kept_at_its_probability_to_the_last_bit(
    law: type[LaplaceLaw | GaussianLaw], scale: int, x: int
) -> None:
    cells = np.array([0])
    for numerator in range(scale, 2 * scale, scale // 40):
        ladder = _Ladder(law, np.array([numerator]), np.array([1]))
        rungs = ladder.rungs(cells)
        word = first_word(law(Fraction(numerator)).exponent(x) - ladder.law(int(rungs[0])).exponent(x))
        for drawn, kept in ((word - 1, True), (word + 1, False)):
            assert _keep(ladder, cells, rungs, np.array([x]), Tape(((drawn, 64),)))[0] == kept, numerator


def test_an_edge_that_one_precision_leaves_open_is_computed_with_more() -> None:
    def cumulative(precision: int) -> list[Enclosure]:
        """Weights one third and two thirds, known to a third of the bits that were asked for."""
        third, coarse = (1 << precision) // 3, 1 << (2 * precision // 3)
        return [Enclosure(third - coarse, third + coarse), Enclosure(1 << precision, 1 << precision)]

    assert Inversion(cumulative, [0, 1])._edges.tolist() == [2**64 // 3]


def test_the_smallest_sum_is_minus_the_largest() -> None:
    assert add_saturating(np.array([-(2**63)]), np.array([0])).tolist() == [-LARGEST]


def test_wide_sums_by_integral_enclose_the_sums_term_by_term_in_their_finest_digits() -> None:
    variance = Fraction(4096**2) + Fraction(1, 3)
    terms = _suffix_sums(variance, 160)
    for x in (1, 2048, 4096, 3 * 4096):
        by_integral = _integrated(x, variance, 160)
        assert by_integral.low <= terms[x].high
        assert terms[x].low <= by_integral.high


# Counts and sums.


def test_a_draw_as_large_as_the_limit_of_counts_does_not_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy_counts, "draw", lambda law, size, bits: np.full(size, LIMIT))
    noisy = noisy_counts.add_noise(np.array([LIMIT, 0]), LaplaceLaw(Fraction(1)), SeededBits(0))
    assert noisy.tolist() == [FURTHEST, FURTHEST]


def test_the_cell_after_the_last_one_is_not_declared() -> None:
    with pytest.raises(ValueError, match="every value has a declared cell"):
        BoundedSum(Sums(0, 1)).totals(np.array([1]), np.array([3]), size=3)


def test_the_code_after_the_last_one_is_not_declared() -> None:
    with pytest.raises(ValueError, match="every record has a declared code"):
        RandomisedResponse(5, Fraction(1, 2)).answer(np.array([0, 5]), SeededBits(1))


# Selections.


def test_distances_of_a_quantile_of_many_digits_do_not_wrap() -> None:
    unit, records = 10**12 + 39, 10**8
    what = Quantile(Fraction(123456789, unit), ExponentialMechanism(Fraction(1)))
    assert what.distances(np.array([records, 0])).tolist() == [0, (unit - 123456789) * records]


def test_noisy_max_bought_for_half_steps_costs_no_more_than_was_paid() -> None:
    for moved in (Fraction(2, 3), Fraction(1, 4), Fraction(5, 4)):
        sensitivity = Sensitivity(moved, moved**2)
        assert NoisyMax.costing(sensitivity, epsilon=Fraction(1)).epsilon(sensitivity) == 1
        assert NoisyMax.costing(sensitivity, rho=Fraction(1, 2)).rho(sensitivity) <= Fraction(1, 2)


# What the ledger stores.


@pytest.mark.parametrize("value", [0.5, "3/8", np.int64(1), [1]])
def test_only_what_can_be_read_back_is_stored(value: object) -> None:
    with pytest.raises(ValueError, match="are stored"):
        as_plain({"scale": value})


# What the accountant publishes, and what it adds to delta.


def test_parts_have_no_pure_price_where_one_of_them_has_none() -> None:
    assert Parallel((laplace(10), gaussian(10))).epsilon is None
    assert Parallel((laplace(10), (laplace(10), gaussian(10)))).epsilon is None


def test_a_price_that_is_only_shown_is_not_published_however_small() -> None:
    shown = Price("advanced", 0.5, publishable=False)
    statement = Statement(RECORD, Relation.REPLACE, TEN, Fraction(1), (Price("basic", Fraction(1)), shown))
    assert statement.published.name == "basic"


def test_what_a_comparison_gives_away_of_delta_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    household = gaussian(25, TABLE, Unit(5))
    plain = epsilon_of(state([household], TEN), "exact")
    monkeypatch.setattr(groups, "LOG_SLACK", -3.0)
    given_away = groups.candidates(household, TEN).slack
    assert given_away > TEN / 5
    expected = exact_epsilon(gaussians(25, 1, shift=5), TEN - given_away).epsilon
    assert epsilon_of(state([household], TEN), "exact") == pytest.approx(expected, rel=1e-9)
    assert expected > plain + 0.01


def test_noise_beyond_the_reach_of_a_law_is_counted_as_lost() -> None:
    total = Sum(gaussians(4, 3))
    tilt = total.tilt_for_mean(3.0)
    ladder = Ladder(total, Fraction(1, 4), None, -6.0)
    curve = Curve(ladder, tilt, total.window(tilt, -6.0))
    for epsilon in (0.0, 1.0, 3.0, 5.0, 8.0, 12.0):
        assert curve.upper(epsilon) >= log(exact_delta(gaussians(4, 3), epsilon))
    assert curve.upper(50.0) >= -6.0


def test_what_lies_above_the_window_is_counted_as_lost() -> None:
    losses = gaussians(10**4, 400, shift=100)
    total = Sum(losses)
    narrow = Window(low=100.0, high=200.0, tilt_below=-1.0, tilt_above=0.5)
    curve = Curve(Ladder(total, Fraction(1, 100), None, -200.0), 0.0, narrow)
    top = sum(curve.span) / 100 + float(total.offset)
    assert not curve.over.whole
    assert exact_delta(losses, top) > 1e-20
    assert curve.upper(top - 1) >= log(exact_delta(losses, top - 1))
    assert curve.upper(top + 1) >= log(exact_delta(losses, top + 1))


def test_short_sums_state_what_they_may_be_wrong_by() -> None:
    law, copies = on_lattice(pure(Fraction(1, 5)), 1, log_negligible=-100.0), 300
    found = tilted([(law, copies)], 0.0, lambda: (0, 0))
    masses = [Fraction(float(mass)) for mass in np.exp(law.logs - float(np.log(np.exp(law.logs).sum())))]
    exact = masses[1] ** copies
    assert 0 < abs(Fraction(float(found.masses[-1])) / exact - 1) < Fraction(found.error)


def test_the_tilt_is_taken_off_within_the_error_that_is_stated() -> None:
    for first in (-12_345.0, 77_777.0, 10.0**9 + 1):
        law = Tilted(0.1, np.array([first]), np.ones(1), 17.3, 0.0, 0.0, whole=True)
        exact = Fraction(17.3) - Fraction(0.1) * Fraction(first)
        assert 0 < abs(Fraction(law.log_first) - exact) <= Fraction(law.log_error)


def test_a_loss_on_a_grid_is_never_below_the_loss_itself() -> None:
    loss = LaplaceLoss(Fraction(7, 3), 400)
    for rungs, beyond, _ in _on_grid(loss, 5, -100.0):
        steps = range(-400, 1)
        for step, rung, rest in zip(steps, rungs.tolist(), beyond.tolist(), strict=True):
            assert Fraction(rung) + Fraction(rest) >= loss.spacing * step * 2**5


def test_steps_that_no_float_tells_apart_are_refused() -> None:
    with pytest.raises(TooManyPoints, match="no ladder"):
        on_lattice(pure(Fraction(1)), 2**53, log_negligible=-100.0)


def test_randomised_response_has_the_losses_of_its_answers() -> None:
    law = ResponseLoss(Fraction(3, 2), 7)
    masses = np.exp(law.log_masses(np.array([-1.0, 0.0, 1.0])))
    assert masses.tolist() == pytest.approx([each / (exp(1.5) + 6) for each in (1, 5, exp(1.5))], rel=1e-13)


# Which change is the worst.


def test_a_law_that_is_worse_near_zero_and_better_further_out_does_not_dominate() -> None:
    hardly = GaussianLoss(Fraction(10**8), 1)
    one, other = GaussianLoss(Fraction(100), 10), ResponseLoss(Fraction(5), 1000)
    assert exact_delta({one: 1}, 0.0) > 2 * exact_delta({other: 1}, 0.0)
    assert 2 * exact_delta({one: 1}, 4.0) < exact_delta({other: 1}, 4.0)
    assert not dominates(one, (other, hardly), log_slack=-60.0)


def test_a_law_of_many_losses_is_compared_from_the_safe_side() -> None:
    one, other, hardly = GaussianLoss(Fraction(10**6), 3007), GaussianLoss(Fraction(16), 12), pure(Fraction(1, 10**9))
    assert exact_delta({one: 1}, 4.125) < exact_delta({other: 1}, 4.125) - 1e-4
    assert not dominates(one, (other, hardly), log_slack=-200.0)


def test_losses_beyond_what_floats_hold_are_not_compared() -> None:
    one, two = (tuple(GaussianLoss(Fraction(1, 10), shift) for shift in shifts) for shifts in ((5,), (2, 3)))
    assert float(one[0].offset) + float(one[0].spacing) * one[0].steps(-63.0)[1] > domination.LARGEST_EPSILON
    assert not dominates(one[0], (two[0], two[1]), log_slack=-60.0)


def test_a_comparison_that_rounding_could_have_turned_is_not_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    law: type[Loss] = GaussianLoss
    pair = law(Fraction(9), 10), (law(Fraction(9), 4), law(Fraction(9), 6))
    assert dominates(*pair, log_slack=-61.0)
    monkeypatch.setattr(domination, "ROUNDING", 0.5)
    assert not dominates(*pair, log_slack=-62.0)
