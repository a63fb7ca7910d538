"""The accountant: what the charges of a release cost together, in every currency that has a proved bound.

For one release, whose plan is fixed before any noise is drawn, every price below is valid on its own, so the smallest
is published, rounded up and named, with the others beside it. Across releases, which are chosen one after another, only
the sum of rho is valid (Rogers, Roth, Ullman and Vadhan 2016; Whitehouse and others 2023: the additive filter).
Advanced composition is shown because textbooks have it; it is never the smallest and is never published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import ceil, floor, isfinite

from mechanisms.accounting.composition import Exact, exact_epsilon
from mechanisms.accounting.conversion import (
    LARGEST_RHO,
    Real,
    advanced_composition,
    check_delta,
    epsilon_simple,
    epsilon_tight,
    group_concentrated,
    group_pure,
    largest_rho,
    rho_simple,
    rho_tight,
)
from mechanisms.accounting.groups import NoExactPrice
from mechanisms.accounting.losses import GaussianLoss, TooManyPoints, pure
from mechanisms.accounting.parts import DifferentIdentity, Parallel, Sequential
from mechanisms.charge import Charge
from mechanisms.sensitivity import Relation, Unit

__all__ = [
    "DifferentIdentity",
    "Parallel",
    "Price",
    "Sequential",
    "Statement",
    "across_releases",
    "below_levels",
    "by_attribute",
    "convert",
    "for_groups",
    "gaussian_epsilon",
    "onto_lattice",
    "rho_for",
    "rounded_up",
    "state",
]

Plan = Sequential | Iterable[Charge | Parallel]
"""The charges of one release, one after another."""

NOT_PURE = "a mechanism of this release has no pure price"
PURE_BUDGET = "a budget without delta has only the pure price"
LEAST_EXACT_RHO = Fraction(1, 10**9)
"""Below this a search for the rho of an exact epsilon would sum for minutes."""


@dataclass(frozen=True, slots=True)
class Price:
    """One way to state what a release costs: an epsilon that is not below the truth, or why there is none."""

    name: str
    epsilon: Real | None
    note: str = ""
    publishable: bool = True
    exact: Exact | None = None
    """For prices by exact composition: how the losses were placed, and the excess."""

    @property
    def rounded(self) -> Decimal | None:
        """The epsilon rounded up to two decimals, as it is printed."""
        return None if self.epsilon is None else rounded_up(self.epsilon)


def rounded_up(epsilon: Real) -> Decimal:
    """The smallest number of two decimals that is not below epsilon."""
    hundredths = ceil(Fraction(epsilon) * 100)
    return Decimal(f"{hundredths // 100}.{hundredths % 100:02d}")  # from text: exact in every decimal context


@dataclass(frozen=True, slots=True)
class Statement:
    """All prices of one release at one delta (None: a pure budget), for one unit under one relation."""

    unit: Unit
    relation: Relation
    delta: Fraction | None
    rho: Fraction
    prices: tuple[Price, ...]

    @property
    def published(self) -> Price:
        """The smallest valid price; the basic one where it is printed the same, because it holds without delta."""
        valid = [price for price in self.prices if price.publishable and price.epsilon is not None]
        if not valid:
            raise ValueError("a release with Gaussian noise has no price without a delta; state one in its budget")
        smallest, first = min(valid, key=lambda price: Fraction(price.epsilon or 0)), valid[0]
        return first if first.name == "basic" and first.rounded == smallest.rounded else smallest

    def price(self, name: str) -> Price:
        """The price of this name."""
        return {price.name: price for price in self.prices}[name]


def state(plan: Plan, delta: Fraction | None) -> Statement:
    """What the charges of one release's fixed plan cost together."""
    plan = _sequential(plan)
    first = next(plan.charges)
    prices = [_basic(plan)]
    if delta is not None:
        check_delta(delta)
        prices += [
            _advanced(plan, delta),
            _optimal_pure(plan, delta),
            _concentrated("zCDP simple", epsilon_simple, plan.rho, delta),
            _concentrated("zCDP tight", epsilon_tight, plan.rho, delta),
            _exact(plan, delta),
        ]
    else:
        names = ("advanced", "optimal pure", "zCDP simple", "zCDP tight", "exact")
        prices += [Price(name, None, PURE_BUDGET, publishable=name != "advanced") for name in names]
    return Statement(first.unit, first.relation, delta, plan.rho, tuple(prices))


def _concentrated(name: str, convert: Callable[[Fraction, Fraction], float], rho: Fraction, delta: Fraction) -> Price:
    if rho > LARGEST_RHO:
        return Price(name, None, f"rho is above {LARGEST_RHO}")
    return Price(name, convert(rho, delta))


def _sequential(plan: Plan) -> Sequential:
    return plan if isinstance(plan, Sequential) else Sequential(tuple(plan))


def _basic(plan: Sequential) -> Price:
    return Price("basic", plan.epsilon, "" if plan.epsilon is not None else NOT_PURE)


def _advanced(plan: Sequential, delta: Fraction) -> Price:
    if plan.epsilons is None:
        return Price("advanced", None, NOT_PURE, publishable=False)
    epsilon = advanced_composition(plan.epsilons, delta)
    if not isfinite(epsilon):
        return Price("advanced", None, "larger than any float", publishable=False)
    return Price("advanced", epsilon, "shown for teaching", publishable=False)


def _optimal_pure(plan: Sequential, delta: Fraction) -> Price:
    """Every part as randomised response: the best that is true of all pure mechanisms with these epsilons."""
    if plan.epsilons is None:
        return Price("optimal pure", None, NOT_PURE)
    epsilons = plan.epsilons
    return _composed("optimal pure", lambda: exact_epsilon(Counter(map(pure, epsilons)), delta))


def _exact(plan: Sequential, delta: Fraction) -> Price:
    """The worst joint change, composed exactly."""

    def worst() -> Exact:
        found = plan.candidates(delta)
        results = [exact_epsilon(dict(losses), delta, slack=found.slack) for losses in found.alternatives]
        return max(results, key=lambda result: result.epsilon)

    return _composed("exact", worst)


def _composed(name: str, compose: Callable[[], Exact]) -> Price:
    try:
        found = compose()
    except (NoExactPrice, TooManyPoints) as refusal:
        return Price(name, None, str(refusal))
    if found.kind == "lattice":
        return Price(name, found.epsilon, "losses on one lattice", exact=found)
    return Price(name, found.epsilon, f"losses on a grid, at most {found.excess:.1e} too high", exact=found)


@dataclass(frozen=True, slots=True)
class GroupPrice:
    """What a guarantee for one unit is worth for a group of `size` units, converted last."""

    size: int
    epsilon: Fraction | None
    """Pure, where there is one."""
    rho: Fraction
    tight: float | None
    """The tight conversion of rho, where there is a delta."""


def for_groups(plan: Plan, delta: Fraction | None, *, size: int) -> GroupPrice:
    """k times the pure price and k^2 times rho."""
    plan = _sequential(plan)
    epsilon, grown = plan.epsilon, group_concentrated(plan.rho, size)
    return GroupPrice(
        size=size,
        epsilon=None if epsilon is None else group_pure(epsilon, size),
        rho=grown,
        tight=None if delta is None else epsilon_tight(grown, delta),
    )


@dataclass(frozen=True, slots=True)
class GaussianPrice:
    """The epsilon of one discrete Gaussian, and whether it is exact; if not, it is the tight zCDP figure."""

    epsilon: float
    exact: bool


def gaussian_epsilon(rho: Fraction, delta: Fraction, *, shift: int = 1) -> GaussianPrice:
    """One cell measured with variance 1/(2 rho), moved by `shift`: the exact epsilon, not below the truth."""
    tight = epsilon_tight(group_concentrated(rho, shift), delta)
    try:
        found = exact_epsilon({GaussianLoss(1 / (2 * rho), shift): 1}, delta)
    except TooManyPoints:
        return GaussianPrice(tight, exact=False)
    return GaussianPrice(min(found.epsilon, tight), exact=True)


@dataclass(frozen=True, slots=True)
class Converted:
    """A bare rho as epsilons, for a group of `size` units; none is below the truth of its formula."""

    size: int
    rho: Fraction
    simple: float
    tight: float
    gaussian: GaussianPrice
    """One discrete Gaussian of variance 1/(2 rho) for one unit, moved by the whole group."""


def convert(rho: Fraction, delta: Fraction, *, size: int = 1) -> Converted:
    """The epsilons of a rho at a delta, each by its own conversion; for groups rho is multiplied first."""
    grown = group_concentrated(rho, size)
    gaussian = gaussian_epsilon(rho, delta, shift=size)
    return Converted(size, grown, epsilon_simple(grown, delta), epsilon_tight(grown, delta), gaussian)


@dataclass(frozen=True, slots=True)
class Rhos:
    """The largest rho of each conversion that costs at most an epsilon, each a multiple of 10^-12."""

    simple: Fraction
    tight: Fraction
    gaussian: Fraction
    """For one discrete Gaussian of sensitivity 1 and variance 1/(2 rho), exactly; below 10^-9 the tight one."""


def rho_for(epsilon: Real, delta: Fraction) -> Rhos:
    """What an epsilon at a delta buys, by each conversion."""
    tight = rho_tight(epsilon, delta)
    return Rhos(rho_simple(epsilon, delta), tight, _rho_gaussian(epsilon, delta, tight))


def _rho_gaussian(epsilon: Real, delta: Fraction, tight: Fraction) -> Fraction:
    """Found by halving from the tight one upwards; what is returned was itself converted and compared.

    The exact epsilon need not grow with rho where the noise is smaller than the steps of the counts.
    """
    if tight < LEAST_EXACT_RHO:
        return tight
    return largest_rho(lambda rho: gaussian_epsilon(rho, delta).epsilon <= epsilon, start=tight)


def by_attribute(plan: Plan, delta: Fraction) -> dict[str, float]:
    """For each attribute the epsilon of what is told about it: the charges that resolve it, by the tight conversion.

    It holds for neighbours that differ in this attribute of one unit only, as the 2020 certificate prints it. Such a
    unit leaves one cell and enters another: whatever the relation of the plan, the prices are those of replace. An
    attribute that tells parallel parts apart must be among the attributes of their charges.
    """
    plan = _sequential(plan)
    attributes = sorted({attribute for charge in plan.charges for attribute in charge.attributes})
    return {name: _tight(plan.only(partial(_resolves, name)), delta) for name in attributes}


def below_levels(plan: Plan, delta: Fraction, *, levels: Sequence[str]) -> dict[str, float]:
    """For each level but the finest the epsilon of where within it a unit is: the charges of all finer levels.

    `levels` runs from the whole to the smallest areas. It holds for neighbours that differ only below the level, at
    the prices of replace.
    """
    plan = _sequential(plan)
    unknown = {charge.level for charge in plan.charges} - set(levels)
    if unknown:
        raise ValueError(f"charges at levels that were not listed: {', '.join(sorted(unknown))}")
    finer = {level: frozenset(levels[place + 1 :]) for place, level in enumerate(levels[:-1])}
    return {level: _tight(plan.only(partial(_is_at, below)), delta) for level, below in finer.items()}


def _resolves(attribute: str, charge: Charge) -> bool:
    return attribute in charge.attributes


def _is_at(levels: frozenset[str], charge: Charge) -> bool:
    return charge.level in levels


def _tight(part: Sequential | None, delta: Fraction) -> float:
    return 0.0 if part is None else epsilon_tight(part.under(Relation.REPLACE).rho, delta)


def across_releases(rhos: Iterable[Fraction], delta: Fraction) -> float:
    """The epsilon of several releases, each chosen after the ones before: the sum of rho, converted once."""
    spent = list(rhos)
    if min(spent, default=Fraction(0)) < 0:
        raise ValueError("no release gives back what another has spent: every rho is positive")
    return epsilon_tight(sum(spent, Fraction(0)), delta)


def onto_lattice(variance: Fraction, quantum: Fraction) -> Fraction:
    """The smallest variance, not below the given one, whose precision 1/variance is a whole multiple of a quantum.

    Releases whose precisions share a quantum are composed exactly, without a grid.
    """
    if variance <= 0 or quantum <= 0:
        raise ValueError(f"variance and quantum must be positive, got {variance} and {quantum}")
    multiple = floor(1 / (variance * quantum))
    if multiple < 1:
        raise ValueError(f"a quantum of {quantum} is too coarse for a variance of {variance}; it is at most 1/variance")
    return 1 / (multiple * quantum)
