"""Whom the release protects, how strongly, and from which account it is paid."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import model_validator

from release_specs.language.conditions import ConditionText
from release_specs.language.model import NamedModel, SpecModel
from release_specs.language.values import Positive, Proportion, ShareNumber, Text, Whole, WholeOrZero, choice, mistake

PERIODS = ("month", "quarter", "term", "half-year", "year")
"""What an account may be divided into; a term is a third of a year."""


class Budget(SpecModel):
    """What the account may spend: `{epsilon}`, `{epsilon, delta}` or `{rho, delta}`."""

    epsilon: Positive | None = None
    """Pure differential privacy, or approximate with `delta`."""
    rho: Positive | None = None
    """Zero-concentrated differential privacy."""
    delta: Proportion | None = None
    """The probability the epsilon statement may fail with; far below one over the population."""

    @model_validator(mode="after")
    def is_one_of_three_forms(self) -> Self:
        """`{epsilon}`, `{epsilon, delta}` or `{rho, delta}`."""
        if (self.epsilon is None) is (self.rho is None):
            found = "found both epsilon and rho" if self.epsilon is not None else "neither epsilon nor rho is given"
            raise mistake("bad-budget", f"{found}; expected {{epsilon}}, {{epsilon, delta}} or {{rho, delta}}")
        if self.rho is not None and self.delta is None:
            raise mistake("bad-budget", "rho is restated as epsilon at a delta; add delta, for example delta: 1e-10")
        return self


class Approvals(SpecModel):
    """How many people must agree. The ledger's policy sets the least."""

    to_spend: WholeOrZero = 0
    """Before the budget is spent."""
    to_publish: WholeOrZero = 0
    """Before the tables are published."""


class Account(SpecModel):
    """The policy of the ledger that pays: named editions, or equal parts of a budget that starts afresh."""

    name: Text
    """The account's name in the ledger."""
    editions: dict[Text, ShareNumber] | None = None
    """Each edition's share of the budget: `{2025: 1/2, 2026: 1/4}`."""
    every: Annotated[str, *choice(*PERIODS)] | None = None
    """An edition each month, quarter, term (a third of a year), half-year or year; equal parts."""
    renew: Annotated[str, *choice("year")] | None = None
    """When the budget starts afresh."""
    unspent: Annotated[str, *choice("lost")] | None = None
    """What happens to what is left at the end of a period."""

    @model_validator(mode="after")
    def has_one_calendar(self) -> Self:
        """Named editions, or a period with its renewal."""
        if (self.editions is None) is (self.every is None):
            found = "found both" if self.editions is not None else "neither is given"
            raise mistake("bad-account", f"{found}; expected editions: {{NAME: SHARE}}, or every: quarter")
        if self.every is not None and (self.renew is None or self.unspent is None):
            raise mistake("bad-account", "an account by period says when it starts afresh: renew: year, unspent: lost")
        if self.editions is not None and (self.renew is not None or self.unspent is not None):
            raise mistake("bad-account", "renew and unspent go with every, not with named editions")
        return self


class AtMost(NamedModel):
    """How many rows one protected unit may contribute, entity by entity."""

    __pydantic_extra__: dict[str, Whole]
    keep_first: ConditionText | None = None
    """Rows that are kept before all others; needed for rules such as heads = households."""


class Privacy(SpecModel):
    """The guarantee: who is protected, against what, and how strongly."""

    protect: Text
    """Whose presence is hidden: a record entity or a group entity."""
    at_most: AtMost | None = None
    """The rows one protected group may contribute. Required if it has rows."""
    neighbours: Annotated[str, *choice("add-remove", "replace")]
    """`add-remove` (the number of units is hidden too) or `replace` (one unit is exchanged for another)."""
    singles: ConditionText | None = None
    """Rows that are protected one by one, such as residents of group quarters."""
    budget: Budget
    """What the account (or, without one, this release) may spend."""
    approvals: Approvals = Approvals()
    """How many people must agree."""
    account: Account | None = None
    """The ledger's account that pays, and its editions. Without one the release is an account of its own."""

    @property
    def caps(self) -> dict[str, int]:
        """The cap for each entity."""
        return self.at_most.named if self.at_most else {}
