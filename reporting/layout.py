"""What table files must hold, from the spec alone: tables, levels, statistics, areas and cells, in their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod

import numpy as np

from estimation.arrays import Flags
from estimation.figures import figure_of
from release_specs.domain import Area, Attribute, Domain
from release_specs.language.tables import Table
from release_specs.spec import ReleaseSpec
from release_specs.tallies import Tally, tallies_of

Spines = Mapping[str | None, Mapping[str, Tally]]
"""The tallies of a table by the name of their geography, then by statistic."""


@dataclass(frozen=True, slots=True)
class Part:
    """One statistic of a table at one level: a block of rows. `tally` is there where whole numbers are published."""

    table: str
    statistic: str
    column: str | None
    level: str | None
    attributes: tuple[Attribute, ...] = field(repr=False)
    areas: tuple[Area, ...] = field(repr=False)
    tally: Tally | None = field(repr=False, default=None)

    @property
    def tick(self) -> Fraction:
        """What one of a whole number is worth in declared units."""
        return self.tally.adds.step if self.tally is not None and self.tally.adds is not None else Fraction(1)

    @property
    def is_signed(self) -> bool:
        """Whether it may be negative."""
        return self.tally is None or (self.tally.adds is not None and self.tally.adds.bounds[0] < 0)

    @property
    def shape(self) -> tuple[int, int]:
        """How many areas and cells it has."""
        return max(len(self.areas), 1), prod(attribute.size or 0 for attribute in self.attributes)


def label_of(statistic: str, column: str | None) -> str:
    """What stands in the column `statistic`."""
    return statistic if column is None else f"{statistic} of {column}"


def parts_of(spec: ReleaseSpec, domain: Domain) -> dict[str, list[Part]]:
    """For each table with a file its blocks of rows, in order."""
    places: dict[str, dict[str | None, dict[str, Tally]]] = {}
    for tally in tallies_of(spec, domain):
        spine = tally.spine.name if tally.spine is not None else None
        places.setdefault(tally.table, {}).setdefault(spine, {})[tally.statistic] = tally
    found: dict[str, list[Part]] = {}
    for name, table in spec.tables.items():
        if table.is_free:
            found[name] = list(_computed(name, table, places))
        elif table.publish:
            found[name] = [part for one in places[name].values() for part in _measured(name, table, one)]
    return {name: parts for name, parts in found.items() if parts}


def _measured(name: str, table: Table, tallies: Mapping[str, Tally]) -> Iterator[Part]:
    by = len(table.attributes)
    for level in next(iter(tallies.values())).levels or (None,):
        for word, column, tally in _words(table, tallies):
            is_whole = word in ("count", "sum")
            place = (level, tally.attributes[:by], _areas(tally, level))
            yield Part(name, word, column, *place, tally if is_whole else None)


def _words(table: Table, tallies: Mapping[str, Tally]) -> Iterator[tuple[str, str | None, Tally]]:
    """The statistics of a measured table with their columns, and a tally that each is made of."""
    if table.count is not None:
        yield "count", None, tallies["count"]
    if table.sum is not None:
        yield "sum", table.sum, tallies[f"sum({table.sum})"]
    if table.mean is not None:
        yield "mean", table.mean, tallies[f"centred({table.mean})"]
    for column, quantiles in (table.quantiles or {}).items():
        for share in quantiles.at:
            yield f"quantile {share}", column, tallies[f"grid({column})"]
    if table.proportion is not None:
        yield "proportion", None, tallies["part"]


def _computed(name: str, table: Table, places: Mapping[str, Spines]) -> Iterator[Part]:
    sides = (table.ratio.numerator, table.ratio.denominator) if table.ratio is not None else (table.of or "",) * 2
    for spine, tallies in places[sides[0]].items():
        if spine not in places[sides[1]]:
            continue
        figure = figure_of(tallies, by=table.attributes)
        other = next(iter(places[sides[1]][spine].values()))
        wanted = table.at if table.at not in (None, ("all",)) else figure.top.tally.levels
        shared = [one for one in figure.top.tally.levels if one in (wanted or ()) and one in other.levels]
        for level in shared if spine is not None else [None]:
            areas = _areas(figure.top.tally, level)
            yield Part(name, table.as_ or "ratio", None, level, figure.attributes, areas)


def _areas(tally: Tally, level: str | None) -> tuple[Area, ...]:
    return tally.spine.areas[level] if tally.spine is not None and level is not None else ()


def is_shown(tally: Tally) -> Flags:
    """For each cell of a tally whether tables print it; the others are "not stated", or elsewhere."""
    places = np.indices(tally.shape).reshape(len(tally.shape), prod(tally.shape))
    sizes = np.array([attribute.size or 0 for attribute in tally.attributes], np.int64)
    stated: Flags = np.all(places < sizes[:, None], axis=0)
    return np.concatenate([stated, np.zeros(int(tally.elsewhere), np.bool_)])
