"""`mechanism: auto`: prices the queries of a plan in discrete Laplace and in discrete Gaussian noise and compares them.

A budget is {epsilon}, {epsilon, delta} or {rho, delta}, and shares divide it:
* {epsilon} is pure, so the noise is Laplace and shares divide epsilon;
* {epsilon, delta} buys Gaussian noise by shares of the largest rho that converts to that epsilon, or Laplace noise by
  shares of epsilon, or of the larger total that optimal composition of pure mechanisms allows at that delta;
* {rho, delta} buys either by shares of rho, Laplace noise at its price in zCDP.

The error of a family is the weighted geometric mean of the standard deviations of its noise: it has no unit, so sums in
cents and counts of people weigh alike, and the ratio of two families is the mean ratio. All this is planning: it looks
at no data, and what is measured is charged at its exact price whatever was chosen here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import exp, fsum, log, sqrt
from typing import Self

from mechanisms.accounting.composition import exact_epsilon
from mechanisms.accounting.conversion import rho_tight
from mechanisms.accounting.losses import Loss, TooManyPoints, pure
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.noise.laws import require_positive
from mechanisms.sensitivity import Relation, Sensitivity, Shape, Unit

PARTS = 100
"""The total that optimal composition allows is sought among multiples of epsilon / PARTS."""

RhoWithin = Callable[[Fraction, Fraction], Fraction]
"""The largest rho that is within an epsilon at a delta."""


class Family(StrEnum):
    """What `mechanism:` calls the noise of a table of counts or sums."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


class Currency(StrEnum):
    """What shares divide."""

    EPSILON = "epsilon"
    RHO = "rho"


@dataclass(frozen=True, slots=True)
class Request:
    """One query that is to be measured: its sensitivity, its share of the budget, and how much its error weighs."""

    sensitivity: Sensitivity
    share: Fraction
    weight: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        require_positive(self.share, "share")
        require_positive(self.weight, "weight")

    @classmethod
    def of(
        cls, shape: Shape, unit: Unit, *, relation: Relation, share: Fraction, weight: Fraction = Fraction(1)
    ) -> Self:
        """A request for a query of this shape."""
        return cls(shape.sensitivity(unit, relation), share, weight)


@dataclass(frozen=True, slots=True)
class Offer:
    """What one family would do with the budget: a mechanism for every request, in their order."""

    family: Family
    currency: Currency
    total: Fraction
    """What the shares divide, in that currency."""
    mechanisms: tuple[DiscreteLaplace | DiscreteGaussian, ...]
    deviations: tuple[float, ...]
    """The standard deviation of the noise in one cell, for every request."""
    error: float


def compare_families(
    requests: Sequence[Request],
    *,
    epsilon: Fraction | None = None,
    delta: Fraction | None = None,
    rho: Fraction | None = None,
    rho_within: RhoWithin = rho_tight,
) -> tuple[Offer, ...]:
    """What every family that the budget allows would do with it, the one with the least error first."""
    _check_shares(requests)
    if epsilon is not None and delta is None and rho is None:
        found = [_laplace(requests, Currency.EPSILON, epsilon)]
    elif epsilon is not None and delta is not None and rho is None:
        most = pure_total(requests, epsilon, delta=delta)
        found = [_laplace(requests, Currency.EPSILON, most), _gaussian(requests, rho_within(epsilon, delta))]
    elif rho is not None and delta is not None and epsilon is None:
        found = [_laplace(requests, Currency.RHO, rho), _gaussian(requests, rho)]
    else:
        raise ValueError("a budget is {epsilon}, {epsilon, delta} or {rho, delta}")
    return tuple(sorted(found, key=lambda offer: offer.error))


def _check_shares(requests: Sequence[Request]) -> None:
    total = sum(request.share for request in requests)
    if not requests or total > 1:
        raise ValueError(f"shares of at least one query add up to at most 1, got {total} from {len(requests)}")


def _laplace(requests: Sequence[Request], currency: Currency, total: Fraction) -> Offer:
    """Discrete Laplace noise by shares of epsilon, or of rho at its price in zCDP."""
    chosen = [
        DiscreteLaplace.costing(request.sensitivity, **{str(currency): request.share * total}) for request in requests
    ]
    return _offer(Family.LAPLACE, currency, total, chosen=chosen, requests=requests)


def _gaussian(requests: Sequence[Request], rho: Fraction) -> Offer:
    """Discrete Gaussian noise by shares of rho."""
    chosen = [DiscreteGaussian.costing(request.sensitivity, rho=request.share * rho) for request in requests]
    return _offer(Family.GAUSSIAN, Currency.RHO, rho, chosen=chosen, requests=requests)


def _offer(
    family: Family,
    currency: Currency,
    total: Fraction,
    *,
    chosen: Sequence[DiscreteLaplace | DiscreteGaussian],
    requests: Sequence[Request],
) -> Offer:
    deviations = tuple(sqrt(mechanism.law.variance_of_draw()) for mechanism in chosen)
    weights = [float(request.weight) for request in requests]
    logs = fsum(weight * log(deviation) for weight, deviation in zip(weights, deviations, strict=True))
    return Offer(family, currency, total, tuple(chosen), deviations, exp(logs / fsum(weights)))


def pure_total(requests: Sequence[Request], epsilon: Fraction, *, delta: Fraction) -> Fraction:
    """The largest total found whose shares, as prices of pure mechanisms, compose to at most epsilon at this delta.

    Composition is optimal (Kairouz, Oh and Viswanath 2015; Murtagh and Vadhan 2016 for unequal prices). Epsilon itself
    is always allowed: shares of it add up to no more.
    """

    def fits(parts: int) -> bool:
        losses: Counter[Loss] = Counter(pure(request.share * epsilon * parts / PARTS) for request in requests)
        try:
            return exact_epsilon(losses, delta).epsilon <= epsilon
        except TooManyPoints:
            return False

    low, high = PARTS, PARTS + 1
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return epsilon * low / PARTS
