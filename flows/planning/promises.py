"""Promised margins of error: what the cheapest charge that keeps one costs, and whether a plan keeps all of them.

A promise is kept by a query's own measurement: its margin of error is at most the one that was promised. What other
measurements add makes the published estimate better still. A percentage is of the expected size of the smallest area.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from estimation.intervals import agency_quantile
from flows.planning.noise import CellNoise
from flows.planning.shares import WHOLE, Wish
from flows.terminal import UserError
from release_specs.checks.draft import Draft
from release_specs.checks.sizes import expected_areas, expected_sizes
from release_specs.language.tables import Promise, Table
from release_specs.language.values import write_number

LEAST, MOST = Fraction(1, 10**9), Fraction(10**9)
"""Between these amounts the price of a promise is sought."""
STEPS = 10**6
"""It is found to one in so many."""

ROUGH = 3.0
"""Rough margins are off by less."""

NoiseFor = Callable[[Fraction], CellNoise]
"""The noise that an amount buys."""


@dataclass(frozen=True, slots=True)
class Target:
    """A margin of error that a table promises at a level, in the units of what is counted."""

    table: str
    level: str
    margin: Fraction
    confidence: Fraction
    agency: bool
    binding: bool
    """Whether the plan is refused where it is not kept; else it warns."""
    tick: Fraction = Fraction(1)
    """What one unit of noise is worth."""

    def margin_of(self, noise: CellNoise) -> float:
        """The margin that some noise gives."""
        if self.agency:
            return agency_quantile(self.confidence) * sqrt(noise.variance) * float(self.tick)
        return noise.margin(self.confidence) * float(self.tick)

    def is_kept_by(self, noise: CellNoise) -> bool:
        """Whether it is kept. Where it clearly is or is not, the exact margin is not computed."""
        rough = None if self.agency else noise.rough_margin(self.confidence)
        if rough is not None and abs(rough - float(self.margin / self.tick)) > ROUGH:
            return rough < float(self.margin / self.tick)
        return self.margin_of(noise) <= self.margin

    def price(self, noise_for: NoiseFor) -> Fraction | None:
        """The least amount that keeps it, to six digits; None where no amount does."""
        high = Fraction(1)
        while not self.is_kept_by(noise_for(high)):
            high *= 10
            if high > MOST:
                return None
        while high > LEAST and self.is_kept_by(noise_for(high / 10)):
            high /= 10
        low, most = STEPS // 10, STEPS
        while most - low > 1:
            middle = (low + most) // 2
            kept = self.is_kept_by(noise_for(high * middle / STEPS))
            low, most = (low, middle) if kept else (middle, most)
        return high * most / STEPS

    def __str__(self) -> str:
        return f"tables.{self.table}.precision.{self.level}"


def targets_of(draft: Draft) -> list[Target]:
    """Every promise of a spec in units; refused where it cannot be told what it means before the data."""
    spec = draft.spec
    return [
        _target(draft, name, table, level)
        for name, table in spec.tables.items()
        if not table.is_free
        for level in table.precision
    ]


def _target(draft: Draft, name: str, table: Table, level: str) -> Target:
    promise, publish = table.precision[level], draft.spec.publish
    where = f"tables.{name}.precision.{level}"
    if table.statistics not in (("count",), ("sum",)):
        raise UserError(
            f"{where}: promises of {' and '.join(table.statistics)} cannot be planned yet, only those of counts and "
            "sums; delete it, or promise a margin of a table of counts"
        )
    return Target(
        name,
        level,
        _margin(draft, table, level, promise),
        promise.confidence or publish.confidence,
        publish.moe_rule == "agency",
        promise.otherwise == "refuse",
        _tick(draft, table),
    )


def _tick(draft: Draft, table: Table) -> Fraction:
    """What one tick of a sum is worth; a count counts ones."""
    entity = draft.entity(table.universe)
    attribute = draft.domain.attribute(entity or "", table.sum or "")
    return attribute.scale.step if attribute is not None and attribute.scale is not None else Fraction(1)


def _margin(draft: Draft, table: Table, level: str, promise: Promise) -> Fraction:
    """The promised margin in units: that of the smallest area where it is a percentage."""
    if not promise.moe.relative:
        return promise.moe.amount
    where, universe = f"{promise.moe} of {table.universe} at {level}", table.universe or ""
    if promise.moe_of == "cell":
        raise UserError(f"{where}: percentages of single cells cannot be planned yet; write the margin in units")
    sizes = expected_areas(draft, universe, level)
    tree = draft.domain.level_spine(level)
    if not sizes and universe in (known := expected_sizes(draft)) and (tree is None or len(tree.areas[level]) == 1):
        sizes = {WHOLE: known[universe]}
    wanted = [size for code, size in sizes.items() if not promise.areas or code in promise.areas]
    if not wanted:
        raise UserError(f"{where}: the expected size of these areas is not declared; write the margin in units")
    return promise.moe.amount * min(wanted)


def target_for(targets: Iterable[Target], wish: Wish) -> Target | None:
    """What a query's table promises at its level."""
    return next((one for one in targets if (one.table, one.level) == (wish.tally.table, wish.place)), None)


def shown(margin: float | Fraction) -> str:
    """A margin as a person reads it."""
    return write_number(Fraction(round(float(margin), 2)).limit_denominator(100))
