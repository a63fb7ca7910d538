"""Every number that is published: for each table, statistic and level its values, and how far off they may be.

Counts and sums are published as whole numbers that agree (of ticks, for sums). What is computed from several tallies, a
mean, a proportion, a quantile, a ratio or a comparison, is published as computed from the unbiased estimates. The cells
that are measured and never printed, "not stated", are left out. The most common code is selected and not estimated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import prod

import numpy as np

from estimation.arrays import Flags, Floats, Integers, Numbers
from estimation.covariances import Sums, covariances, estimates, variances
from estimation.derived import Cumulative, Derived, quantiles_of
from estimation.error import Margins
from estimation.figures import Computing, Figure, Tallies, figure_of, multiplier, sums_by
from estimation.intervals import Words, reliability_class
from estimation.release import Estimated
from release_specs.domain import Area, Attribute, Domain, Hierarchy
from release_specs.language.phrases import Unreliable
from release_specs.language.tables import Table
from release_specs.spec import ReleaseSpec
from release_specs.tallies import Tally, extended_size, tallies_of

NOT_KNOWN = "not known"
"""The flag of a number of which the measurements tell nothing."""


@dataclass(frozen=True, eq=False)
class Statistic:
    """One statistic of a table at one level, with its errors. Arrays are (area, published cell).

    `value` is what is published. `estimate` is unbiased, and `moe`, `low` and `high` belong to it; what is computed has
    no other value. Where nothing is known all are not a number and the flag says so; a published whole number stays.
    """

    table: str
    statistic: str
    column: str | None
    """Of which column it is the sum, mean or quantile."""
    level: str | None
    attributes: tuple[Attribute, ...] = field(repr=False)
    areas: tuple[Area, ...] = field(repr=False)
    """In the order of the rows; none where there is no geography and all is one row."""
    value: Floats = field(repr=False)
    estimate: Floats = field(repr=False)
    moe: Floats = field(repr=False)
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)
    known: Flags = field(repr=False)
    flag: Words = field(repr=False)
    unit: str | None = None
    whole: Integers | None = field(repr=False, default=None)
    """The published whole numbers of counts and sums, exact however large: each is worth a tick."""
    tick: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a statistic stands: all that is said of it beside its numbers."""

    table: str
    statistic: str
    spine: Hierarchy | None
    level: str | None
    attributes: tuple[Attribute, ...]
    column: str | None = None
    unit: str | None = None

    @property
    def areas(self) -> tuple[Area, ...]:
        """The areas of the level."""
        return self.spine.areas[self.level] if self.spine is not None and self.level is not None else ()


def published_statistics(
    estimated: Estimated, margins: Margins, spec: ReleaseSpec, domain: Domain
) -> Iterator[Statistic]:
    """For every published table at every level its statistics, in the order of the spec."""
    by_table: dict[str, list[Tally]] = {}
    for tally in tallies_of(spec, domain):
        by_table.setdefault(tally.table, []).append(tally)
    places = {name: _by_spine(found) for name, found in by_table.items()}
    publishing = _Publishing(estimated, margins, spec, domain, places)
    for name, table in spec.tables.items():
        if table.is_free:
            yield from publishing.computed(name, table)
        elif table.publish:
            for tallies in places[name].values():
                yield from publishing.measured(table, tallies)


def _by_spine(tallies: list[Tally]) -> dict[str | None, Tallies]:
    spines = dict.fromkeys(tally.spine.name if tally.spine is not None else None for tally in tallies)
    return {
        name: {one.statistic: one for one in tallies if name == (one.spine.name if one.spine is not None else None)}
        for name in spines
    }


@dataclass(frozen=True, eq=False)
class _Publishing:
    """The statistics of a release; the tallies of each table are told apart by geography."""

    estimated: Estimated
    margins: Margins
    spec: ReleaseSpec
    domain: Domain
    places: Mapping[str, Mapping[str | None, Tallies]]

    @property
    def classes(self) -> Mapping[str, Unreliable]:
        """When a number is unreliable."""
        return self.spec.publish.reliability

    def measured(self, table: Table, tallies: Tallies) -> Iterator[Statistic]:
        """The statistics of a table that was measured, on one geography."""
        makers = {
            "count": self._whole,
            "sum": self._whole,
            "mean": self._quotient,
            "quantiles": self._quantiles,
            "proportion": self._quotient,
        }
        for level in next(iter(tallies.values())).levels or (None,):
            for word in table.statistics:
                if word in makers:
                    yield from makers[word](word, table, tallies, level)

    def _whole(self, word: str, table: Table, tallies: Tallies, level: str | None) -> Iterator[Statistic]:
        """Counts and sums: published as whole numbers of ticks."""
        tally = tallies[f"sum({table.sum})" if word == "sum" else "count"]
        place = self._place(word, tally, level, table.sum)
        tick = tally.adds.step if tally.adds is not None else Fraction(1)
        error = self.margins.of(tally, level)
        whole = _shown(tally, self.estimated.value(tally, level))
        parts = (self.estimated.estimate(tally, level), error.deviation, error.moe, error.low, error.high)
        estimate, deviation, moe, low, high = (_in_units(_shown(tally, part), tick) for part in parts)
        size = np.abs(estimate) if tally.adds is not None else estimate
        flag = reliability_class(size, deviation, moe=moe, classes=self.classes)
        known = np.full(whole.shape, self.estimated.is_known(tally, level))
        found = Derived(estimate, low, high, known)
        yield replace(
            _statistic(place, found, moe, flag), value=_in_units(whole, tick), whole=whole.astype(np.int64), tick=tick
        )

    def _quotient(self, word: str, table: Table, tallies: Tallies, level: str | None) -> Iterator[Statistic]:
        """Means and proportions: a quotient of two tallies."""
        wanted = (f"centred({table.mean})", f"usable({table.mean})") if word == "mean" else ("part", "all")
        pair = {statistic: tallies[statistic] for statistic in wanted}
        figure = figure_of(pair, by=table.attributes)
        computing = Computing(self.estimated, self.margins, level)
        times = computing.multiplier(figure)
        place = self._place(word, pair[wanted[0]], level, table.mean if word == "mean" else None)
        found = computing.alone(figure, times) if computing.told(figure) else _nothing(figure, level)
        yield self._derived(place, found, times)

    def _quantiles(self, _: str, table: Table, tallies: Tallies, level: str | None) -> Iterator[Statistic]:
        """Quantiles of each column, read off its histogram."""
        for column, quantiles in (table.quantiles or {}).items():
            tally = tallies[f"grid({column})"]
            place = self._place("quantile", tally, level, column)
            times = multiplier(self.margins, [tally], level)
            points = np.array([float(Fraction(category.code)) for category in tally.attributes[-1].categories])
            found = quantiles_of(points, _cumulative(self.estimated, tally, level), at=quantiles.at, quantile=times)
            told = found.known & self.estimated.is_known(tally, level)
            for number, share in enumerate(quantiles.at):
                value, low, high = (part[..., number] for part in (found.value, found.low, found.high))
                here = replace(place, statistic=f"quantile {share}")
                yield self._derived(here, Derived(value, low, high, told[..., number]), times)

    def computed(self, name: str, table: Table) -> Iterator[Statistic]:
        """A ratio of two tables, or a comparison of two codes of one."""
        names = (table.ratio.numerator, table.ratio.denominator) if table.ratio is not None else (table.of or "",) * 2
        picks: list[dict[str, str]] = [
            {column: codes[side] for column, codes in (table.compare or {}).items()} for side in range(2)
        ]
        for spine in self.places[names[0]]:
            if spine in self.places[names[1]]:
                one, other = (
                    figure_of(self.places[part][spine], by=table.attributes, picked=picked)
                    for part, picked in zip(names, picks, strict=True)
                )
                yield from self._compared(name, table, one, other)

    def _compared(self, name: str, table: Table, one: Figure, other: Figure) -> Iterator[Statistic]:
        how = table.as_ or "ratio"
        if [_codes(found) for found in one.attributes] != [_codes(found) for found in other.attributes]:
            raise ValueError(f"'{name}' is computed from tables whose attributes have different codes")
        for level in _levels(table, one.top.tally, other.top.tally):
            computing = Computing(self.estimated, self.margins, level)
            times = computing.multiplier(one, other)
            found = (
                computing.compared(one, other, how=how, times=times)
                if computing.told(one, other)
                else _nothing(one, level)
            )
            unit = self._compared_unit(how, one, other)
            place = _Place(name, how, one.top.tally.spine, level, one.attributes, unit=unit)
            yield self._derived(place, found, times)

    def _compared_unit(self, how: str, one: Figure, other: Figure) -> str | None:
        """A difference keeps its unit, a ratio that of its first table where the second counts rows."""
        units = [self._unit(figure.top.tally) for figure in (one, other)]
        if how == "percent":
            return "percent"
        return units[0] if how == "difference" or units[1] is None else None

    def _derived(self, place: _Place, found: Derived, times: float) -> Statistic:
        """What is computed, with half the width of its interval as its margin of error."""
        moe = (found.high - found.low) / 2
        size = np.abs(found.value)
        with np.errstate(all="ignore"):
            relative = np.where(moe > 0, moe / times / size, 0.0)
            flag = reliability_class(size, relative * np.maximum(size, 1.0), moe=moe, classes=self.classes)
        return _statistic(place, found, moe, flag)

    def _place(self, word: str, tally: Tally, level: str | None, column: str | None) -> _Place:
        by = tally.attributes[:-1] if word == "quantile" else tally.attributes
        return _Place(tally.table, word, tally.spine, level, by, column, self._unit(tally, column))

    def _unit(self, tally: Tally, column: str | None = None) -> str | None:
        """The unit of a column, or of what a tally adds up."""
        name = column or (tally.adds.column if tally.adds is not None else None)
        attribute = self.domain.attribute(tally.entity, name) if name is not None else None
        return attribute.unit if attribute is not None else None


def _statistic(place: _Place, found: Derived, moe: Floats, flag: Words) -> Statistic:
    """Numbers in their place, area by area; what is not known is not a number."""
    rows = max(len(place.areas), 1)
    known = found.known.reshape(rows, -1)
    parts = [np.where(known, part.reshape(rows, -1), np.nan) for part in (found.value, moe, found.low, found.high)]
    value, margin, low, high = parts
    flags = np.where(known, flag.reshape(rows, -1), NOT_KNOWN)
    return Statistic(
        place.table,
        place.statistic,
        place.column,
        place.level,
        place.attributes,
        place.areas,
        value=value,
        estimate=value,
        moe=margin,
        low=low,
        high=high,
        known=known,
        flag=flags,
        unit=place.unit,
    )


def _cumulative(estimated: Estimated, tally: Tally, level: str | None) -> Cumulative:
    """The cumulative sums of a histogram over its published grid points: (area, *cells, grid point)."""
    cells = sums_by(tally, [attribute.name for attribute in tally.attributes])
    grid = tally.attributes[-1]
    points, size = grid.size or 0, extended_size(grid)
    total = np.tile(np.arange(size) < points, (points, 1)).astype(np.float64)
    running: Sums = replace(cells, codes=(*cells.codes[:-1], np.tri(points, size)))
    whole: Sums = replace(cells, codes=(*cells.codes[:-1], total))
    return Cumulative(
        estimates(estimated, running, level),
        np.sqrt(variances(estimated, running, level)),
        covariances(estimated, running, whole, level),
    )


def _shown(tally: Tally, numbers: Numbers) -> Numbers:
    """Numbers of a tally (area, cell) without the cells that are not published."""
    shaped = numbers[:, : prod(tally.shape)].reshape(len(numbers), *tally.shape)
    stated = shaped[(slice(None), *(slice(attribute.size) for attribute in tally.attributes))]
    return stated.reshape(len(numbers), -1)


def _in_units(numbers: Numbers, tick: Fraction) -> Floats:
    """Numbers of ticks in declared units, each the nearest to what is meant."""
    found: Floats = numbers.astype(np.float64) * tick.numerator / tick.denominator
    return found


def _levels(table: Table, one: Tally, other: Tally) -> tuple[str | None, ...]:
    """The levels of a computed table on the geography of two tallies."""
    if one.spine is None:
        return (None,)
    wanted = one.levels if table.at in (None, ("all",)) else table.at or ()
    return tuple(level for level in one.levels if level in wanted and level in other.levels)


def _codes(attribute: Attribute) -> list[str]:
    return [category.code for category in attribute.categories]


def _nothing(figure: Figure, level: str | None) -> Derived:
    """Numbers of which nothing is known."""
    empty = np.full((figure.top.tally.areas(level), *figure.top.shape), np.nan)
    return Derived(empty, empty, empty, np.zeros(empty.shape, np.bool_))
