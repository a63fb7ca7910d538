"""What an edition may spend, and in which currency: the budget, turned into one currency, and the edition's part."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flows.terminal import UserError
from mechanisms.accounting.conversion import rho_tight
from mechanisms.choose import Currency
from release_specs.language.privacy import Account
from release_specs.language.values import write_number
from release_specs.spec import ReleaseSpec

EDITIONS = {"month": 12, "quarter": 4, "term": 3, "half-year": 2, "year": 1}
"""How many editions share a year's budget."""


MOST = {Currency.RHO: 300, Currency.EPSILON: 600}
"""Beyond these amounts noise is nearly always 0: nobody is protected, and laws lose their digits."""


@dataclass(frozen=True, slots=True)
class Purse:
    """An amount in a currency; `delta` is None for a pure budget."""

    currency: Currency
    budget: Fraction
    delta: Fraction | None

    def __post_init__(self) -> None:
        if self.budget > MOST[self.currency]:
            raise UserError(
                f"privacy.budget: {self.currency} {write_number(self.budget)} for one edition protects nobody; "
                f"the most that is planned is {MOST[self.currency]}"
            )


def purses_of(spec: ReleaseSpec, edition: str | None) -> tuple[Purse, ...]:
    """What this edition may spend: one amount, or two of which the plan takes the one that errs less.

    Epsilon at a delta is turned into the largest rho that the tight conversion allows; without an account, shares may
    also divide epsilon itself among pure mechanisms, whose sum never exceeds it.
    """
    budget, account = spec.privacy.budget, spec.privacy.account
    part = _part(account, edition) if account is not None else Fraction(1)
    if budget.rho is not None:
        return (Purse(Currency.RHO, budget.rho * part, budget.delta),)
    if budget.epsilon is None:
        raise ValueError("a budget is {epsilon}, {epsilon, delta} or {rho, delta}")
    pure = Purse(Currency.EPSILON, budget.epsilon * part, budget.delta)
    if budget.delta is None:
        return (pure,)
    concentrated = Purse(Currency.RHO, _rho(budget.epsilon, budget.delta) * part, budget.delta)
    return (concentrated,) if account is not None else (concentrated, pure)


def _rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    try:
        return rho_tight(epsilon, delta)
    except ValueError as fault:
        raise UserError(f"privacy.budget: epsilon {write_number(epsilon)} buys no rho: {fault}") from None


def edition_of(spec: ReleaseSpec, edition: str | None) -> str | None:
    """The edition that is planned: the one asked for, or the one the spec names. Refused where one is needed."""
    found = edition or spec.release.edition
    if found is None and spec.privacy.account is not None:
        known = ", ".join(spec.privacy.account.editions or ())
        which = f"one of {known}" if known else f"the {spec.privacy.account.every} it is for"
        raise UserError(
            f"account '{spec.privacy.account.name}' pays edition by edition, and no edition is named; "
            f"add --edition NAME: {which}"
        )
    has_editions = spec.privacy.account is not None or spec.schedule is not None or _selects_an_edition(spec)
    if not has_editions and edition not in (None, spec.release.edition):
        raise UserError(
            f"the spec has no editions, so '{edition}' would publish the same rows once more and pay again; "
            "leave --edition out, select rows with only: {COLUMN: edition}, or declare privacy.account.editions"
        )
    if found is None and _selects_an_edition(spec):
        raise UserError("'only' selects the rows of an edition, and no edition is named; add --edition NAME")
    return found


def _selects_an_edition(spec: ReleaseSpec) -> bool:
    chosen = [entity.only for entity in spec.microdata.values() if entity.only is not None]
    return any("edition" in test.wanted for condition in chosen for _, test in condition.criteria())


def _part(account: Account, edition: str | None) -> Fraction:
    """An edition's part of its account."""
    if account.every is not None:
        return Fraction(1, EDITIONS[account.every])
    shares = account.editions or {}
    if edition not in shares:
        raise UserError(
            f"'{edition}' is no edition of account '{account.name}'; its editions are {', '.join(shares)}: "
            "name one of them, or add it to privacy.account.editions"
        )
    return shares[edition]
