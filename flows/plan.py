"""The plan of a release: every query with its mechanism, scale and charge, from the spec alone. No data is opened.

A plan is fixed before any noise is drawn. Its charges never cost more than the edition may spend, and everything that
decides what will be measured is in its digest.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from flows.planning.families import CellMechanism
from flows.planning.guarantee import guarantee
from flows.planning.market import Stall
from flows.planning.noise import CellNoise
from flows.planning.purse import edition_of, purses_of
from flows.planning.shapes import attributes_of, relation_of, unit_of
from flows.planning.spending import Spending, spend_budget
from flows.planning.wishes import tallies_to_publish, wishes_of
from mechanisms.charge import Charge
from mechanisms.choose import Currency
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from release_specs.domain import Domain
from release_specs.load import Loaded
from release_specs.meanings import Meanings
from release_specs.measured import draft_of
from release_specs.spec import ReleaseSpec
from release_specs.tallies import EXACT, Tally

__all__ = ["Plan", "PlannedQuery", "guarantee", "plan_release"]


@dataclass(frozen=True)
class PlannedQuery:
    """A tally at one level (None: its rows lie in no area), and what measuring it is charged with."""

    tally: Tally
    level: str | None
    charge: Charge

    @property
    def name(self) -> str:
        """What tells it from all other queries of the plan."""
        return self.charge.query

    @property
    def mechanism(self) -> CellMechanism:
        """What adds its noise: one draw for every cell of every area of the level."""
        held = self.charge.mechanism
        if not isinstance(held, DiscreteLaplace | DiscreteGaussian):
            raise TypeError(f"'{self.name}' is not measured by noise in every cell")
        return held

    @cached_property
    def noise(self) -> CellNoise:
        """The law of the noise in one cell, for estimation and error reports."""
        return CellNoise(self.mechanism.law)

    def as_data(self) -> dict[str, Any]:
        """The query as plain data."""
        return {
            "name": self.name,
            "tally": self.tally.name,
            "level": self.level,
            "areas": self.tally.areas(self.level),
            "cells": self.tally.cells,
            "charge": self.charge.as_data(),
        }


@dataclass(frozen=True)
class Plan:
    """Everything a release will measure and what it costs.

    `tallies` are all that is published, in the order of the spec, each with the levels it is published or measured at,
    and the exact totals that are counted from the microdata; `queries` are what gets noise.
    """

    spec: ReleaseSpec = field(repr=False)
    domain: Domain = field(repr=False)
    edition: str | None
    currency: str
    budget: Fraction
    delta: Fraction | None
    queries: tuple[PlannedQuery, ...] = field(repr=False)
    tallies: tuple[Tally, ...] = field(repr=False)
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = {query.name for query in self.queries}
        if not names or len(names) < len(self.queries):
            raise ValueError("a plan has at least one query, and no two have the same name")
        if self.price > self.budget:
            raise ValueError(f"the charges cost {self.currency} {self.price}, over the budget of {self.budget}")

    @cached_property
    def price(self) -> Fraction:
        """What the charges cost together, in the plan's currency."""
        pure = self.currency == Currency.EPSILON
        costs = [query.charge.epsilon if pure else query.charge.rho for query in self.queries]
        if any(cost is None for cost in costs):
            raise ValueError("a plan in epsilon has pure mechanisms only")
        return sum((cost for cost in costs if cost is not None), Fraction(0))

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What the ledger is asked to pay for."""
        return tuple(query.charge for query in self.queries)

    @property
    def exact(self) -> tuple[Tally, ...]:
        """The totals that are counted from the microdata and published without noise."""
        return tuple(tally for tally in self.tallies if tally.table == EXACT)

    @property
    def counted(self) -> tuple[Tally, ...]:
        """What tabulation has to count: everything measured, and the exact totals."""
        return (*{query.tally.name: query.tally for query in self.queries}.values(), *self.exact)

    def as_data(self) -> dict[str, Any]:
        """The plan as plain data: text, whole numbers, lists and mappings; fractions as text."""
        return {
            "release": self.spec.release.name,
            "edition": self.edition,
            "currency": self.currency,
            "budget": str(self.budget),
            "delta": None if self.delta is None else str(self.delta),
            "price": str(self.price),
            "queries": [query.as_data() for query in self.queries],
            "exact": [{"tally": tally.name, "levels": list(tally.levels)} for tally in self.exact],
            "warnings": list(self.warnings),
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan's data in one canonical form."""
        text = json.dumps(self.as_data(), sort_keys=True, separators=(",", ":"))
        return sha256(text.encode()).hexdigest()


def plan_release(loaded: Loaded, *, folder: Path, edition: str | None = None) -> Plan:
    """The plan of one edition of a spec, with its public files in `folder`. Raises `UserError`."""
    spec, domain = loaded.spec, loaded.domain
    named = edition_of(spec, edition)
    draft = draft_of(spec, domain, folder=folder, edition=named)
    meanings = Meanings(spec, domain, named)
    tallies = tallies_to_publish(draft)
    wishes = wishes_of(draft, meanings, tallies)
    spending = spend_budget(Stall(draft, tallies), wishes, purses_of(spec, named))
    return Plan(
        spec=spec,
        domain=domain,
        edition=named,
        currency=str(spending.means.purse.currency),
        budget=spending.means.purse.budget,
        delta=spending.means.purse.delta,
        queries=tuple(_queries(meanings, spending)),
        tallies=tuple(tallies),
        warnings=spending.warnings,
    )


def _queries(meanings: Meanings, spending: Spending) -> Sequence[PlannedQuery]:
    """The queries that are paid for, with their charges."""
    spec, found = meanings.spec, []
    for wish, amount in spending.amounts.items():
        charge = Charge(
            query=wish.name,
            mechanism=spending.means.mechanism(wish, amount),
            shape=wish.shape,
            unit=unit_of(spec),
            relation=relation_of(spec),
            level=wish.place,
            attributes=attributes_of(meanings, wish.tally),
        )
        found.append(PlannedQuery(wish.tally, wish.level, charge))
    return found
