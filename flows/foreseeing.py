"""What a plan buys: the error of every published table at every level, before the data is opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from estimation.error import Margins
from estimation.foresight import blank_measurement, deviations, foresee
from estimation.problem import problem
from flows.plan import Plan, PlannedQuery
from flows.planning.shares import WHOLE
from mechanisms.choose import Currency
from release_specs.tallies import Tally, tallies_of

HEADINGS = ("table", "level", "share", "noise sd", "estimate sd", "moe")


@dataclass(frozen=True, slots=True)
class Foreseen:
    """One tally of a table at one level: what it is charged, and how far its estimates may be off in the worst cell.

    `charge`, `share`, `mechanism` and `sd_measured` are None where it is not measured but computed from others. A sum
    errs in units of its column.
    """

    table: str
    level: str
    statistic: str
    charge: str | None
    share: str | None
    mechanism: str | None
    scale: str | None
    sd_measured: float | None
    sd_estimate: float
    moe: float
    confidence: str


def foresee_tables(plan: Plan, folder: Path) -> list[Foreseen]:
    """Every published table at every level, in the order of the spec. `folder` holds the spec's public files."""
    found = problem(plan.spec, plan.domain, list(plan.tallies), folder=folder)
    measurements = [blank_measurement(one.tally, one.level, one.noise) for one in plan.queries]
    known = foresee(found, measurements, plan.exact)
    publish = plan.spec.publish
    margins = Margins(known, measurements, confidence=publish.confidence, rule=publish.moe_rule)
    bought = {(one.tally.name, one.level): one for one in plan.queries}
    rows = []
    for tally, level in _published(plan):
        worst = deviations(known, tally, level).max()
        moe = margins.moe(tally, level, np.array([worst]))
        errors = (float(worst), float(moe[0]))
        rows.append(_row(plan, tally, level, bought.get((tally.name, level)), errors))
    return rows


def _published(plan: Plan) -> list[tuple[Tally, str | None]]:
    """What readers will see: tables that are measured only to help others are left out."""
    tallies = {tally.name: tally for tally in plan.tallies}
    return [
        (tallies[one.name], level)
        for one in tallies_of(plan.spec, plan.domain)
        if one.table in plan.spec.tables and plan.spec.tables[one.table].publish
        for level in one.levels or (None,)
    ]


def _row(
    plan: Plan, tally: Tally, level: str | None, query: PlannedQuery | None, errors: tuple[float, float]
) -> Foreseen:
    tick = float(tally.adds.step / tally.adds.factor) if tally.adds is not None else 1.0
    price = None if query is None else query.charge.epsilon if plan.currency == Currency.EPSILON else query.charge.rho
    return Foreseen(
        table=tally.table,
        level=level or WHOLE,
        statistic=tally.statistic,
        charge=None if price is None else str(price),
        share=None if price is None else str(price / plan.budget),
        mechanism=None if query is None else query.mechanism.name,
        scale=None if query is None else _scale(query),
        sd_measured=None if query is None else tick * float(query.noise.variance) ** 0.5,
        sd_estimate=tick * errors[0],
        moe=tick * errors[1],
        confidence=str(plan.spec.publish.confidence),
    )


def _scale(query: PlannedQuery) -> str:
    return ", ".join(f"{name} {value}" for name, value in query.mechanism.parameters.items())


def as_lines(rows: Sequence[Foreseen]) -> list[str]:
    """The rows as a table for the terminal."""
    cells = [HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(HEADINGS))]
    return [
        "  ".join(text.ljust(width) if place < 2 else text.rjust(width) for place, (text, width) in columns).rstrip()
        for row in cells
        for columns in [list(enumerate(zip(row, widths, strict=True)))]
    ]


def _cells(row: Foreseen) -> tuple[str, ...]:
    name = row.table if row.statistic == "count" else f"{row.table}: {row.statistic}"
    share = "" if row.share is None else f"{float(Fraction(row.share)):.2%}"
    noise = "" if row.sd_measured is None else f"{row.sd_measured:,.2f}"
    return name, row.level, share, noise, f"{row.sd_estimate:,.2f}", f"{row.moe:,.2f}"


def as_data(rows: Sequence[Foreseen]) -> list[dict[str, Any]]:
    """The rows as plain data."""
    return [asdict(row) for row in rows]
