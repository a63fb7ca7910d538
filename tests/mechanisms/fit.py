"""How well draws fit a law: one p-value by chi-square, from exact probabilities and counted outcomes.

A test asks for a p-value above IMPLAUSIBLE under the law and below it under laws that are wrong by a tenth. Seeds are
fixed, so a test that passes once passes always; the level is so low that a new seed would hardly ever fail either.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations
from math import exp, log, prod

import numpy as np
from scipy.stats import chisquare

from mechanisms.noise.laws import Law

IMPLAUSIBLE = 1e-6
FEWEST = 10
"""Outcomes expected fewer times than this are counted together."""


def fit(outcomes: Iterable[int], probabilities: Sequence[float]) -> float:
    """The p-value of outcomes 0, 1, ... under these probabilities."""
    chances = np.asarray(probabilities, float)
    counts = np.bincount(np.fromiter(outcomes, np.int64), minlength=len(chances))
    expected = chances / chances.sum() * counts.sum()
    common = expected >= FEWEST
    rare = expected[~common].sum()
    observed, wanted = counts[common], expected[common]
    if rare > 1e-3:
        observed, wanted = np.append(observed, counts[~common].sum()), np.append(wanted, rare)
    elif counts[~common].sum():
        return 0.0  # what should never occur did
    return float(chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue)


def fit_noise(noise: np.ndarray, law: Law, *, reach: int) -> float:
    """The p-value of noise under a law; all that is further than `reach` from zero counts as two outcomes."""
    held = np.clip(noise, -reach, reach) + reach
    inside = [law.pmf(x) for x in range(-reach + 1, reach)]
    return fit(held.ravel(), [law.tail(reach), *inside, law.tail(reach)])


def exponential_law(scores: Sequence[int], scale: float) -> list[float]:
    """P proportional to exp(score / scale)."""
    weights = [exp((score - max(scores)) / scale) for score in scores]
    return [weight / sum(weights) for weight in weights]


def permute_and_flip_law(scores: Sequence[int], scale: float) -> list[float]:
    """All orders of the candidates, and in each the chance that all before a candidate toss tails and it heads."""
    heads = [exp((score - max(scores)) / scale) for score in scores]
    chances = [0.0] * len(scores)
    orders = list(permutations(range(len(scores))))
    for order in orders:
        tails = 1.0
        for candidate in order:
            chances[candidate] += tails * heads[candidate] / len(orders)
            tails *= 1 - heads[candidate]
    return chances


def noisy_max_law(scores: Sequence[int], scale: float) -> list[float]:
    """The sum over own noise x of its probability times that of all others lying below, or level and later."""
    reach = int(40 * scale) + max(scores) - min(scores)
    own, fall = np.arange(-reach, reach + 1), exp(-1 / scale)
    mass = (1 - fall) / (1 + fall) * fall ** np.abs(own)

    def at_most(x: np.ndarray) -> np.ndarray:
        return np.where(x < 0, fall ** np.abs(x), 1 + fall - fall ** (np.abs(x) + 1)) / (1 + fall)

    def chance(i: int) -> float:
        others = (at_most(own + scores[i] - score - (j < i)) for j, score in enumerate(scores) if j != i)
        return float((mass * prod(others, start=np.ones(len(own)))).sum())

    return [chance(i) for i in range(len(scores))]


def largest_loss(law: Sequence[float], other: Sequence[float]) -> float:
    """The epsilon between two laws: the largest logarithm of a ratio of their probabilities, in both directions."""
    return max(abs(log(p / q)) for p, q in zip(law, other, strict=True))


def renyi_over_order(law: Sequence[float], other: Sequence[float]) -> float:
    """The rho between two laws: the largest Renyi divergence of an order, over the order, in both directions."""
    orders = 1 + np.geomspace(1e-3, 200, 60)[:, None]

    def largest(p: np.ndarray, q: np.ndarray) -> float:
        divergences = np.logaddexp.reduce(orders * p + (1 - orders) * q, axis=1) / (orders[:, 0] - 1)
        return float((divergences / orders[:, 0]).max())

    return max(largest(np.log(law), np.log(other)), largest(np.log(other), np.log(law)))
