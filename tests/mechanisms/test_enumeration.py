"""The exact law of the samplers, over all strings of random bits at once."""

import math
import os
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.noise import bernoulli, envelope
from mechanisms.noise.envelope import TAIL, WEDGE, Sampler
from mechanisms.noise.exponentials import exp_neg
from mechanisms.noise.laws import GaussianLaw, LaplaceLaw, Law
from mechanisms.noise.scales import _keep, _Ladder
from mechanisms.randomness import Bits
from tests.mechanisms.enumeration import Tape, law_of

DEPTH = int(os.environ.get("MARGRAVE_ENUMERATION", "20"))
"""Probabilities are right to 2^-DEPTH; `make test-slow` asks for 2^-30."""
TOLERANCE = Fraction(1, 2**DEPTH)
LEAST = Fraction(1, 2 ** (DEPTH + 8))

NARROW = [LaplaceLaw(Fraction(1, 2)), LaplaceLaw(Fraction(7, 3)), GaussianLaw(Fraction(1, 3)), GaussianLaw(Fraction(9))]
WIDE = [(LaplaceLaw(Fraction(9, 2)), 2), (GaussianLaw(Fraction(40)), 2)]
"""With few cells and a short reach, wedges and tails take large parts of the law."""


def power(exponent: Fraction) -> Fraction:
    """exp(-exponent) to 120 bits."""
    return Fraction(exp_neg(exponent, 120).low, 2**120)


@pytest.mark.parametrize("law", [*NARROW, GaussianLaw(Fraction(100))])
def test_the_boxes_have_exactly_their_weights(law: Law) -> None:
    sampler = Sampler(law)
    found = law_of(lambda bits: int(sampler._top.draw(1, bits)[0]), least=LEAST)
    assert found.remainder < TOLERANCE
    boxes = {mark: share for mark, share in found.probabilities.items() if mark != TAIL}
    tails = found.probabilities[TAIL]
    inside = 1 - 2 * law.tail(sampler._boxes + 1) - law.pmf(sampler._boxes)
    total = float(sum(boxes.values()))
    for mark, share in boxes.items():
        assert abs(float(share) / total * inside - law.pmf(mark)) < TOLERANCE
    assert 0 <= tails < Fraction(1, 2**12)


@pytest.mark.parametrize(("law", "cells"), WIDE)
def test_one_attempt_of_a_wide_sampler_has_exactly_the_target_law(law: Law, cells: int) -> None:
    sampler = Sampler(law, cells=cells, tail_bits=4)
    attempt = attempted(sampler)
    accepted = sum(attempt.values())
    for x, share in attempt.items():
        assert abs(float(share / accepted) - law.pmf(x)) < TOLERANCE, x
    assert float(sum(share / accepted for share in attempt.values())) == pytest.approx(1)


def attempted(sampler: Sampler) -> dict[int, Fraction]:
    """The probability of each accepted value of one attempt, put together from the enumerated parts."""
    top = law_of(lambda bits: int(sampler._top.draw(1, bits)[0]), least=LEAST)
    steps = law_of(lambda bits: int(sampler._steps.draw(1, bits)[0]), least=LEAST)
    within = law_of(lambda bits: int(sampler._within(1, bits)[0]), least=LEAST)
    assert max(top.remainder, steps.remainder) < TOLERANCE
    box = sampler._box
    assert dict(within.probabilities) == {place: Fraction(1, box) for place in range(box)}
    values: dict[int, Fraction] = defaultdict(Fraction)
    for mark, share in top.probabilities.items():
        if mark == TAIL:
            for x, kept in tail_law(sampler).items():
                values[x] += share * kept
        elif mark == WEDGE:
            for j, step in steps.probabilities.items():
                for place in range(box):
                    for left in (0, 1):
                        x = j * box + place + left
                        part = share * step / (2 * box) * acceptance(sampler, j, place + left)
                        values[-x if left else x] += part
        else:
            for place in range(box):
                values[mark * box + place] += share / box
    return values


def acceptance(sampler: Sampler, step: int, distance: int) -> Fraction:
    """The probability that a point of a wedge is accepted."""

    def run(bits: Bits) -> bool:
        return bool(sampler._accept(np.array([step]), np.array([distance]), bits)[0])

    found = law_of(run, least=LEAST)
    assert found.remainder < TOLERANCE
    return found.probabilities[True]


class UndecidedError(Exception):
    """A coin beyond the script, and its probability of heads."""


class Coins(Bits):
    """Coins decided by a script."""

    def __init__(self, script: tuple[bool, ...]) -> None:
        self._script = list(script)[::-1]

    def toss(self, probability: Fraction) -> bool:
        if not self._script:
            raise UndecidedError(probability)
        return self._script.pop()

    def integer(self, width: int) -> int:
        assert width == 1
        return int(self.toss(Fraction(1, 2)))

    def read(self, size: int) -> bytes:
        raise AssertionError("the tail reads coins only")


def tail_law(sampler: Sampler) -> dict[int, Fraction]:
    """The accepted values of the tail, over all outcomes of its coins that are not too unlikely."""
    values: dict[int, Fraction] = defaultdict(Fraction)
    waiting: list[tuple[tuple[bool, ...], Fraction]] = [((), Fraction(1))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(envelope, "coin_exp", lambda exponent, bits: bits.toss(power(exponent)))
        while waiting:
            script, weight = waiting.pop()
            try:
                x, kept = sampler._draw_in_tail(Coins(script))
            except UndecidedError as coin:
                heads = Fraction(round(coin.args[0] * weight * 2**64), 2**64)
                both = (((*script, True), heads), ((*script, False), weight - heads))
                waiting += [branch for branch in both if branch[1] > LEAST]
            else:
                values[x] += weight if kept else 0
    return values


@pytest.mark.parametrize("exponent", [Fraction(1, 1000), Fraction(1), Fraction(5, 3), Fraction(40)])
def test_a_coin_has_exactly_the_probability_of_its_exponential(exponent: Fraction) -> None:
    found = law_of(lambda bits: bernoulli.coin_exp(exponent, bits), least=LEAST)
    assert found.remainder < TOLERANCE
    assert abs(found.probabilities[True] - power(exponent)) < TOLERANCE


@pytest.mark.parametrize(("above", "below"), [(0, 1), (1, 7), (9, 4), (3, 2**33 + 1), (2**61, 2**60 + 3)])
def test_a_coin_of_an_array_has_exactly_the_probability_of_its_exponential(above: int, below: int) -> None:
    found = law_of(lambda bits: bool(bernoulli.coins_exp_of_ratios(np.array([above]), below, bits)[0]), least=LEAST)
    assert abs(found.probabilities[True] - power(Fraction(above, below))) < TOLERANCE


@pytest.mark.parametrize(
    "probability", [Fraction(0), Fraction(1, 3), Fraction(3, 4), Fraction(10**9, 10**9 + 7), Fraction(1)]
)
def test_a_rational_coin_has_exactly_its_probability(probability: Fraction) -> None:
    found = law_of(lambda bits: bool(bernoulli.coins(probability, 1, bits)[0]), least=Fraction(1, 2**100))
    assert abs(found.probabilities[True] - probability) <= Fraction(1, 2**100)
    if probability.denominator in (1, 4):
        assert found.probabilities[True] == probability


@pytest.mark.parametrize("limit", [1, 2, 3, 10, 2**63 - 1])
def test_uniform_draws_are_exactly_uniform(limit: int) -> None:
    if limit > 100:
        drawn = [bernoulli.uniform_below(limit, 1, Tape(((word, 64), (0, 64))))[0] for word in (0, 1, 2, 3, 2**64 - 1)]
        assert drawn == [0, 0, 1, 1, 0]  # the last two words are beyond the parts and drawn again
        return
    found = law_of(lambda bits: int(bernoulli.uniform_below(limit, 1, bits)[0]), least=Fraction(1, 2**100))
    assert set(found.probabilities) == set(range(limit))
    assert all(abs(share - Fraction(1, limit)) < Fraction(1, 2**60) for share in found.probabilities.values())


def test_every_order_of_distinct_words_gives_its_own_permutation() -> None:
    orders = [(1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1)]
    found = {tuple(bernoulli.permutation(3, Tape(tuple((word, 64) for word in words)))) for words in orders}
    assert len(found) == math.factorial(3)


def test_tied_words_are_all_drawn_again() -> None:
    words = (5, 5, 1, 9, 8, 7)
    assert list(bernoulli.permutation(3, Tape(tuple((word, 64) for word in words)))) == [2, 1, 0]


@pytest.mark.parametrize("law", [LaplaceLaw, GaussianLaw])
@pytest.mark.parametrize(
    ("above", "below", "x"), [(7, 2, 3), (22, 7, -9), (10**12 + 1, 10**6, 2000), (5, 9, 0), (3, 1, 40)]
)
def test_a_draw_from_a_wider_scale_is_kept_with_exactly_the_ratio_of_the_laws(
    law: type[LaplaceLaw] | type[GaussianLaw], above: int, below: int, x: int
) -> None:
    ladder = _Ladder(law, np.array([above]), np.array([below]))
    cells = np.array([0])
    rungs = ladder.rungs(cells)
    own, wider = law(Fraction(above, below)), ladder.law(int(rungs[0]))
    found = law_of(lambda bits: bool(_keep(ladder, cells, rungs, np.array([x]), bits)[0]), least=LEAST)
    gap = own.exponent(abs(x)) - wider.exponent(abs(x))
    assert gap >= 0
    assert abs(found.probabilities[True] - power(gap)) < TOLERANCE
