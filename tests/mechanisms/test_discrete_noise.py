"""Discrete Laplace and discrete Gaussian noise: the law it has, the price it was charged, and every cell noised."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from fractions import Fraction
from math import exp, log, tanh
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms import noisy_counts
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.noise.integers import LARGEST
from mechanisms.noise.laws import GaussianLaw, LaplaceLaw, Law
from mechanisms.noise.sampling import draw
from mechanisms.noise.seeded import SeededBits
from mechanisms.noisy_counts import FURTHEST, LIMIT, add_noise
from mechanisms.prices import GRAIN, pure_to_rho
from mechanisms.randomness import Randomness
from mechanisms.sensitivity import Sensitivity
from tests.mechanisms.fit import IMPLAUSIBLE, fit_noise, largest_loss, renyi_over_order

ONE = Sensitivity(Fraction(1), Fraction(1))
BOTH = pytest.mark.parametrize("mechanism", [DiscreteLaplace(Fraction(3)), DiscreteGaussian(Fraction(9))])

DRAWS = 60_000


def noise_of(mechanism: Any, seed: int, draws: int = DRAWS) -> np.ndarray:
    return mechanism.answer(np.zeros(draws, np.int64), SeededBits(seed))


# The law.


@pytest.mark.parametrize("scale", [Fraction(7, 10), Fraction(3), Fraction(100, 3)])
def test_laplace_noise_has_the_law_it_was_charged_for(scale: Fraction) -> None:
    noise, reach = noise_of(DiscreteLaplace(scale), 1), int(5 * scale) + 3
    assert fit_noise(noise, LaplaceLaw(scale), reach=reach) > IMPLAUSIBLE
    assert fit_noise(noise, LaplaceLaw(scale * Fraction(9, 10)), reach=reach) < IMPLAUSIBLE
    assert fit_noise(noise, LaplaceLaw(scale * Fraction(11, 10)), reach=reach) < IMPLAUSIBLE


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(9), Fraction(1000, 3)])
def test_gaussian_noise_has_the_law_it_was_charged_for(variance: Fraction) -> None:
    noise, reach = noise_of(DiscreteGaussian(variance), 2), int(3 * float(variance) ** 0.5) + 3
    assert fit_noise(noise, GaussianLaw(variance), reach=reach) > IMPLAUSIBLE
    assert fit_noise(noise, GaussianLaw(variance * Fraction(9, 10)), reach=reach) < IMPLAUSIBLE
    assert fit_noise(noise, GaussianLaw(variance * Fraction(11, 10)), reach=reach) < IMPLAUSIBLE


@BOTH
def test_noise_does_not_depend_on_the_counts_it_is_added_to(mechanism: Any) -> None:
    counts = np.arange(-500, 500) * 10**15
    assert np.array_equal(mechanism.answer(counts, SeededBits(3)) - counts, noise_of(mechanism, 3, 1000))


@BOTH
def test_cells_are_noised_independently(mechanism: Any) -> None:
    noise = noise_of(mechanism, 4).astype(float)
    assert abs(np.corrcoef(noise[1:], noise[:-1])[0, 1]) < 5 / DRAWS**0.5
    assert abs(noise.mean()) < 5 * noise.std() / DRAWS**0.5


# The price, against the law itself.


def laws(law: Law, shift: int, reach: int) -> tuple[list[float], list[float]]:
    """The law of the noise and the law moved by a change of one cell, far into the tails."""
    places = range(-reach, reach + shift + 1)
    return [law.pmf(x) for x in places], [law.pmf(x - shift) for x in places]


@pytest.mark.parametrize("shift", [1, 2, 5])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3)])
def test_the_pure_price_of_laplace_noise_is_the_largest_loss_of_its_law(scale: Fraction, shift: int) -> None:
    moved = Sensitivity(Fraction(shift), Fraction(shift**2))
    loss = largest_loss(*laws(LaplaceLaw(scale), shift, 40))
    assert loss == pytest.approx(float(DiscreteLaplace(scale).epsilon(moved)), rel=1e-12)


@pytest.mark.parametrize("shift", [1, 2, 5])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(10)])
def test_the_zcdp_price_of_laplace_noise_covers_every_order(scale: Fraction, shift: int) -> None:
    moved = Sensitivity(Fraction(shift), Fraction(shift**2))
    found = renyi_over_order(*laws(LaplaceLaw(scale), shift, int(60 * scale)))
    price = float(DiscreteLaplace(scale).rho(moved))
    assert found <= price
    if shift == 1:
        assert found == pytest.approx(price, rel=1e-3)  # one step is randomised response: the price is attained


@pytest.mark.parametrize("shift", [1, 3])
def test_the_price_of_gaussian_noise_covers_every_order_and_is_attained(shift: int) -> None:
    found = renyi_over_order(*laws(GaussianLaw(Fraction(9)), shift, 90))
    price = float(DiscreteGaussian(Fraction(9)).rho(Sensitivity(Fraction(shift), Fraction(shift**2))))
    assert found == pytest.approx(price, rel=1e-6)


def test_gaussian_noise_has_no_largest_loss() -> None:
    assert largest_loss(*laws(GaussianLaw(Fraction(9)), 1, 50)) > largest_loss(*laws(GaussianLaw(Fraction(9)), 1, 40))
    assert DiscreteGaussian(Fraction(9)).epsilon(ONE) is None


def test_laplace_noise_on_many_cells_is_priced_by_its_steps_not_by_its_sum() -> None:
    ten_cells, one_cell = Sensitivity(Fraction(10), Fraction(10)), Sensitivity(Fraction(10), Fraction(100))
    mechanism = DiscreteLaplace(Fraction(10))
    assert float(mechanism.rho(ten_cells)) == pytest.approx(10 * 0.1 * tanh(0.05), rel=1e-9)
    assert float(mechanism.rho(one_cell)) == pytest.approx(tanh(0.5), rel=1e-9)
    assert mechanism.epsilon(ten_cells) == mechanism.epsilon(one_cell) == 1


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=6).filter(any), st.fractions(Fraction(1, 4), 20))
def test_no_change_of_whole_steps_costs_more_than_the_price(change: list[int], scale: Fraction) -> None:
    moved = Sensitivity(Fraction(sum(map(abs, change))), Fraction(sum(d * d for d in change)))
    cell_by_cell = sum(float(d / scale) * tanh(float(d / (2 * scale))) for d in map(abs, change))
    assert cell_by_cell <= float(DiscreteLaplace(scale).rho(moved)) + 1e-9


def test_a_price_is_rounded_up_once_to_twelve_decimals() -> None:
    rho = DiscreteLaplace(Fraction(3)).rho(Sensitivity(Fraction(30), Fraction(7)))
    assert rho % GRAIN == 0
    assert 0 <= float(rho - Fraction(7, 3) * Fraction(tanh(1 / 6))) < 1.01e-12
    assert rho <= 7 * pure_to_rho(Fraction(1, 3))


def test_a_price_asked_for_is_the_price_paid() -> None:
    household = Sensitivity(Fraction(6), Fraction(36))
    assert DiscreteLaplace.costing(household, epsilon=Fraction(3, 8)) == DiscreteLaplace(Fraction(16))
    assert DiscreteGaussian.costing(household, rho=Fraction(1, 8)) == DiscreteGaussian(Fraction(144))
    laplace = DiscreteLaplace.costing(ONE, rho=Fraction(1, 8))
    assert Fraction(1, 8) - 2 * GRAIN < laplace.rho(ONE) <= Fraction(1, 8)


# Every cell, and no wrap.


@pytest.mark.parametrize("shape", [(0,), (), (1,), (7,), (3, 4), (2, 3, 4), (5, 0)])
@BOTH
def test_every_cell_is_drawn_for_once_zeros_included(
    mechanism: Any, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def counting(law: Law, count: int, bits: Any) -> np.ndarray:
        asked.append(count)
        return np.arange(1, count + 1)

    monkeypatch.setattr(noisy_counts, "draw", counting)
    noisy = mechanism.measure(np.zeros(shape, np.int64), Randomness())
    assert asked == [int(np.prod(shape))]
    assert (noisy.dtype, noisy.shape) == (np.int64, shape)
    assert noisy.ravel().tolist() == list(range(1, asked[0] + 1))


@BOTH
def test_a_masked_array_is_refused_because_its_hidden_cells_would_pass_without_noise(mechanism: Any) -> None:
    counts = np.ma.masked_array(np.full(1000, 10**9), mask=np.arange(1000) % 2 == 0)
    with pytest.raises(TypeError, match="MaskedArray"):
        mechanism.measure(counts, Randomness())


@BOTH
def test_a_slice_a_transpose_and_a_file_are_measured_like_their_copies(mechanism: Any) -> None:
    table = np.arange(24).reshape(4, 6)
    for view in (table[::2, ::-1], table.T, np.asfortranarray(table)):
        seen = mechanism.answer(view, SeededBits(6))
        assert np.array_equal(seen, mechanism.answer(view.copy(), SeededBits(6)))


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(Fraction(2**61)), DiscreteGaussian(Fraction(2**122))])
def test_nothing_wraps_at_the_edges_of_64_bits(mechanism: Any) -> None:
    for edge in (2**63 - 1, -(2**63)):
        noisy = mechanism.answer(np.full(2000, edge), SeededBits(7))
        exact = draw(mechanism.law, 2000, SeededBits(7)).astype(object) + max(-LIMIT, min(LIMIT, edge))
        assert noisy.tolist() == [max(-FURTHEST, min(FURTHEST, value)) for value in exact]
        assert np.sign(noisy).sum() * np.sign(edge) > 500  # a wrapped sum would have the other sign


counts = st.integers(-(2**63), LARGEST) | st.sampled_from([-(2**63), -LIMIT - 1, -LIMIT, 0, LIMIT, LIMIT + 1, LARGEST])
draws = st.integers(-LARGEST, LARGEST) | st.sampled_from([-LARGEST, LARGEST])


@given(count=counts, drawn=draws, beyond=st.integers(0, 2**70))
def test_a_draw_held_at_64_bits_gives_what_the_unbounded_draw_would(count: int, drawn: int, beyond: int) -> None:
    true = drawn + beyond * ((drawn == LARGEST) - (drawn == -LARGEST))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noisy_counts, "draw", lambda law, size, bits: np.full(size, drawn))
        (noisy,) = add_noise(np.array([count]), LaplaceLaw(Fraction(1)), SeededBits(0))
    assert noisy == max(-FURTHEST, min(FURTHEST, max(-LIMIT, min(LIMIT, count)) + true))


@given(first=st.integers(-(2**63), LARGEST), second=st.integers(-(2**63), LARGEST))
def test_the_limit_moves_no_two_counts_apart(first: int, second: int) -> None:
    held = [max(-LIMIT, min(LIMIT, count)) for count in (first, second)]
    assert abs(held[0] - held[1]) <= abs(first - second)


# Large tables.


def blocks(number: int, size: int) -> Iterator[np.ndarray]:
    return (np.zeros(size, np.int64) for _ in range(number))


@BOTH
def test_blocks_are_measured_one_by_one_with_fresh_bits(mechanism: Any) -> None:
    measured = list(mechanism.measure_blocks(blocks(3, 200), Randomness()))
    assert [block.shape for block in measured] == [(200,)] * 3
    assert not np.array_equal(measured[0], measured[1])
    with pytest.raises(TypeError, match="takes its noise from Randomness"):
        next(mechanism.measure_blocks(blocks(1, 2), SeededBits(1)))


@pytest.mark.parametrize("number", [4, pytest.param(100, marks=pytest.mark.slow)])  # 100 million cells
def test_a_table_of_any_length_is_noised_in_the_memory_of_one_block(number: int) -> None:
    size = 1 << 20
    mechanism = DiscreteGaussian(Fraction(100))
    mechanism.measure(np.zeros(10, np.int64), Randomness())  # tables are made once
    tracemalloc.start()
    try:
        squares = sum(int((block**2).sum()) for block in mechanism.measure_blocks(blocks(number, size), Randomness()))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 12 * 8 * size
    assert squares / (number * size) == pytest.approx(100, rel=0.01)


def test_the_textbook_law_is_the_limit_of_small_steps() -> None:
    for step in (Fraction(1), Fraction(1, 10), Fraction(1, 1000)):
        tail = 2 * LaplaceLaw(10 / step).tail(int(10 / step) + 1)
        assert abs(tail - exp(-1)) < 0.06 * float(step)
    assert log(2 * LaplaceLaw(Fraction(10**4)).tail(10**4 + 1)) == pytest.approx(-1, abs=1e-3)
