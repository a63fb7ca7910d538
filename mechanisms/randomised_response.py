"""Randomised response: every record answers with its own code, or with one of the other codes.

Guarantee: with odds = truth * (choices - 1) / (1 - truth), one answer is ln(odds)-DP, because no answer is more than
`odds` times as probable under one code as under another (Warner 1965; Kairouz, Oh and Viswanath 2014 for more than two
choices). A unit that gives several answers pays for each; in zCDP an answer costs epsilon tanh(epsilon / 2). The
number of answers is published, so neighbours exchange units: replace. ln(odds) is rounded up to a multiple of 10^-12.
Needs: a declared code for every record, "missing" and "not applicable" included; exact coins.

The classical coin (heads: the truth; tails: a second coin decides) is truth 3/4 among 2 choices: odds 3, epsilon ln 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import index
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mechanisms.noise.bernoulli import coins, uniform_below
from mechanisms.noise.integers import Integers, as_integers
from mechanisms.prices import GRAIN, affordable_epsilon, exp_down, ln_up, pure_to_rho
from mechanisms.randomness import Bits, Randomness, release_bits
from mechanisms.sensitivity import Sensitivity


@dataclass(frozen=True, slots=True)
class RandomisedResponse:
    """Reports the true code with probability `truth`, and each other code with (1 - truth) / (choices - 1)."""

    choices: int
    truth: Fraction

    def __post_init__(self) -> None:
        if type(self.choices) is not int or not 2 <= self.choices < 2**63:
            raise ValueError(f"an answer has at least 2 choices, as a Python integer, got {self.choices!r}")
        if not isinstance(self.truth, Fraction):
            raise TypeError(f"the truth is a Fraction, got {type(self.truth).__name__}: floats are not exact")
        if not Fraction(1, self.choices) < self.truth < 1:
            raise ValueError(f"the truth must lie above 1/{self.choices} and below 1, got {self.truth}")

    @property
    def name(self) -> str:
        """The name under which the ledger knows it."""
        return "randomised_response"

    @property
    def parameters(self) -> dict[str, Fraction]:
        """Everything that decides its law."""
        return {"choices": Fraction(self.choices), "truth": self.truth}

    @property
    def lie(self) -> Fraction:
        """The probability of each code that is not the true one."""
        return (1 - self.truth) / (self.choices - 1)

    @property
    def odds(self) -> Fraction:
        """How much likelier an answer is for those whose code it is: e^epsilon of one answer, exactly."""
        return self.truth / self.lie

    @classmethod
    def costing(
        cls, choices: int, sensitivity: Sensitivity, *, epsilon: Fraction | None = None, rho: Fraction | None = None
    ) -> Self:
        """The truest one that costs no more, among those with odds of at most 12 decimals."""
        answers = sensitivity.l1
        share = None if epsilon is None else epsilon / answers
        each = affordable_epsilon(lambda bought: answers * pure_to_rho(bought), epsilon=share, rho=rho)
        odds = exp_down(each // GRAIN * GRAIN)
        if odds <= 1:
            raise ValueError(f"a price of {each} for one answer buys nothing; the least is {GRAIN}")
        return cls(choices, odds / (odds + choices - 1))

    def epsilon(self, sensitivity: Sensitivity) -> Fraction:
        """The pure price: ln(odds) for each answer of a unit, rounded up."""
        return sensitivity.l1 * ln_up(self.odds)

    def rho(self, sensitivity: Sensitivity) -> Fraction:
        """The price in zCDP: that of one answer as often as a unit answers."""
        return sensitivity.l1 * pure_to_rho(ln_up(self.odds))

    def measure(self, codes: NDArray[Any], randomness: Randomness) -> Integers:
        """One answer for every code, in the same order."""
        return self.answer(codes, release_bits(randomness))

    def answer(self, codes: NDArray[Any], bits: Bits) -> Integers:
        """What `measure` returns, from any bits: for simulation; a release goes through `measure`.

        The other code is drawn for everyone, whether it is needed or not.
        """
        true = as_integers(codes)
        if ((true < 0) | (true >= self.choices)).any():
            raise ValueError(f"codes must be from 0 to {self.choices - 1}: every record has a declared code")
        keeps = coins(self.truth, true.size, bits).reshape(true.shape)
        others = uniform_below(self.choices - 1, true.size, bits).reshape(true.shape)
        return np.where(keeps, true, others + (others >= true))

    def estimate(self, answers: Sequence[int]) -> tuple[Fraction, ...]:
        """The unbiased estimate of how many have each code, from how often each code was answered."""
        if len(answers) != self.choices:
            raise ValueError(f"expected {self.choices} numbers of answers, one for each code, got {len(answers)}")
        counts = [index(number) for number in answers]
        expected_lies = sum(counts) * self.lie
        return tuple((count - expected_lies) / (self.truth - self.lie) for count in counts)

    def variance(self, count: int | Fraction, *, respondents: int) -> Fraction:
        """The variance of the estimate for a code that `count` of the respondents have; an estimate may be put in."""
        held = min(max(count, 0), respondents)
        spread = held * self.truth * (1 - self.truth) + (respondents - held) * self.lie * (1 - self.lie)
        return spread / (self.truth - self.lie) ** 2

    def largest_variance(self, *, respondents: int) -> Fraction:
        """The variance at the worst count: all respondents or none, because it is linear in the count."""
        return max(self.variance(count, respondents=respondents) for count in (0, respondents))
