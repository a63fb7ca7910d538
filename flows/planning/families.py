"""Which noise a query gets for an amount, and which family errs least over a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flows.planning.noise import CellNoise
from flows.planning.purse import Purse
from flows.planning.shares import Wish
from flows.terminal import UserError
from mechanisms.choose import Currency, Family, Offer, Request, compare_families
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace

CellMechanism = DiscreteLaplace | DiscreteGaussian
"""What adds independent noise to every cell."""


@dataclass(frozen=True, slots=True)
class Means:
    """What a release is paid with: its purse, and the family of the tables that name none."""

    purse: Purse
    family: Family

    def mechanism(self, wish: Wish, amount: Fraction) -> CellMechanism:
        """The least noisy mechanism of a query that costs no more than an amount of the purse's currency."""
        family = self.family if wish.mechanism == "auto" else Family(wish.mechanism)
        if self.purse.currency is Currency.EPSILON:
            return DiscreteLaplace.costing(wish.sensitivity, epsilon=amount)
        if family is Family.GAUSSIAN:
            return DiscreteGaussian.costing(wish.sensitivity, rho=amount)
        try:
            return DiscreteLaplace.costing(wish.sensitivity, rho=amount)
        except ValueError as fault:
            raise UserError(f"'{wish.name}' has too small a share: {fault}") from None

    def noise(self, wish: Wish, amount: Fraction) -> CellNoise:
        """The law of its noise."""
        return CellNoise(self.mechanism(wish, amount).law)


def choose_means(purses: Sequence[Purse], shares: Mapping[Wish, Fraction]) -> Means:
    """The purse and the family that err least, by shares that are known before the currency is.

    Tables that name their mechanism have it; a purse of epsilon has no Gaussian noise.
    """
    open_ones = [wish for wish in shares if wish.mechanism == "auto"]
    requests = [Request(wish.sensitivity, shares[wish]) for wish in open_ones]
    gaussian = any(wish.mechanism == Family.GAUSSIAN for wish in shares)
    fitting = [purse for purse in purses if not (gaussian and purse.currency is Currency.EPSILON)]
    if not requests:
        return Means(fitting[0], Family.LAPLACE if fitting[0].currency is Currency.EPSILON else Family.GAUSSIAN)
    offers: list[tuple[float, Means]] = []
    for purse in fitting:
        pure = purse.currency is Currency.EPSILON
        found = compare_families(requests, epsilon=purse.budget) if pure else _by_rho(requests, purse)
        offers += [(offer.error, Means(purse, offer.family)) for offer in found]
    return min(offers, key=lambda offer: offer[0])[1] if offers else Means(fitting[0], Family.GAUSSIAN)


def _by_rho(requests: Sequence[Request], purse: Purse) -> tuple[Offer, ...]:
    """What both families would do with rho; nothing where some share is too small for Laplace noise."""
    try:
        return compare_families(requests, rho=purse.budget, delta=purse.delta)
    except ValueError:
        return ()
