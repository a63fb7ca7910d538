"""What has to be counted for a table, before noise: tallies, known from the spec alone.

A table is published from one tally or several: a mean from a sum and a count of usable values, quantiles from a
histogram on their grid, a proportion from two counts. A tally says which rows, in which cells, at which levels, and
what each row adds. Its cells are all declared: those that are published, and for every attribute with left-out values
one more, "not stated", the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from math import prod

from release_specs.domain import Attribute, Category, Domain, Hierarchy, Scale
from release_specs.language.conditions import Condition
from release_specs.language.phrases import Microdata
from release_specs.language.tables import Quantiles, Table
from release_specs.language.values import Range, write_number
from release_specs.reading.resolve import entity_of
from release_specs.spec import ReleaseSpec

EXACT = "exact"
"""The name of what is counted for exact totals, where a table's name stands otherwise."""


@dataclass(frozen=True, slots=True)
class Summand:
    """What a row adds to a sum: its value in ticks of `step`, clipped to [low, high], times `factor`, less `shift`.

    A mean is bought as a sum of distances from the middle of the clip, in half ticks where the middle lies between two.
    """

    column: str
    step: Fraction
    low: int
    high: int
    factor: int = 1
    shift: int = 0

    @classmethod
    def of(cls, column: str, attribute: Attribute, clip: Range) -> Summand:
        """The clipped values of a column, as they stand."""
        step = attribute.scale.step if attribute.scale is not None else Fraction(1)
        if not isinstance(clip.low, Fraction) or not isinstance(clip.high, Fraction):
            raise TypeError(f"'{column}' has no clip with two ends")
        return cls(column, step, int(clip.low / step), int(clip.high / step))

    @property
    def centred(self) -> Summand:
        """The same values as distances from the middle of the clip."""
        factor = 1 if (self.low + self.high) % 2 == 0 else 2
        return replace(self, factor=factor, shift=factor * (self.low + self.high) // 2)

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the most that one row adds."""
        return self.factor * self.low - self.shift, self.factor * self.high - self.shift


@dataclass(frozen=True, slots=True)
class Tally:
    """One thing that is counted for a table on one geography.

    `where` narrows the universe further (a proportion); `usable` names a column without whose value a row does not
    count; `adds` makes it a sum. `elsewhere` asks for one more cell, after all others, with the rows of the entity
    that are in no other: those outside the universe or to whom an attribute does not apply.
    """

    table: str
    statistic: str
    entity: str
    universe: str
    attributes: tuple[Attribute, ...]
    spine: Hierarchy | None
    levels: tuple[str, ...]
    cap: int | None = None
    where: Condition | None = None
    usable: str | None = None
    adds: Summand | None = None
    elsewhere: bool = False

    @property
    def name(self) -> str:
        """What tells it from the other tallies of a release."""
        return f"{self.table}.{self.statistic}" + (f"@{self.spine.name}" if self.spine is not None else "")

    @property
    def shape(self) -> tuple[int, ...]:
        """How many codes each attribute has, the hidden one included."""
        return tuple(extended_size(attribute) for attribute in self.attributes)

    @property
    def cells(self) -> int:
        """How many cells an area has."""
        return prod(self.shape) + self.elsewhere

    def areas(self, level: str | None) -> int:
        """How many areas a level has; one where there is no geography."""
        return len(self.spine.areas[level]) if self.spine is not None and level is not None else 1


def extended_size(attribute: Attribute) -> int:
    """The number of codes of an attribute, "not stated" included."""
    if attribute.size is None:
        raise ValueError(f"'{attribute.name}' has no upper end")
    return attribute.size + attribute.hidden


def tallies_of(spec: ReleaseSpec, domain: Domain) -> tuple[Tally, ...]:
    """Everything that is counted for the tables and exact totals of a spec without mistakes, in their order."""
    return (*_of_tables(spec, domain), *_of_exact_totals(spec, domain))


def _of_tables(spec: ReleaseSpec, domain: Domain) -> Iterator[Tally]:
    for name, table in spec.tables.items():
        entity = entity_of(spec, table.universe)
        if entity is None or table.universe is None:
            continue
        by = _known(domain, entity, table.attributes)
        cap = table.at_most or spec.privacy.caps.get(entity)
        for spine, levels in _places(domain, entity, table.at):
            base = Tally(name, "count", entity, table.universe, by, spine, levels, cap)
            yield from _statistics(spec, domain, table, base)


def _statistics(spec: ReleaseSpec, domain: Domain, table: Table, base: Tally) -> Iterator[Tally]:
    """The tallies of one table on one geography."""
    if table.count is not None:
        yield replace(base, elsewhere=table.mechanism == "randomised_response")
    if table.sum is not None:
        yield replace(base, statistic=f"sum({table.sum})", adds=_summand(spec, domain, base.entity, table.sum))
    if table.mean is not None:
        adds = _summand(spec, domain, base.entity, table.mean).centred
        yield replace(base, statistic=f"centred({table.mean})", adds=adds)
        yield replace(base, statistic=f"usable({table.mean})", usable=table.mean)
    if table.most_common is not None:
        code = _known(domain, base.entity, (table.most_common,))
        yield replace(base, statistic=f"codes({table.most_common})", attributes=(*base.attributes, *code))
    for column, quantiles in (table.quantiles or {}).items():
        grid = grid_of(domain, base.entity, column, quantiles, _clip(spec, domain, base.entity, column))
        yield replace(base, statistic=f"grid({column})", attributes=(*base.attributes, grid))
    if table.proportion is not None:
        yield replace(base, statistic="part", where=table.proportion)
        yield replace(base, statistic="all")


def _of_exact_totals(spec: ReleaseSpec, domain: Domain) -> Iterator[Tally]:
    """Exact totals from the microdata: outside the guarantee, counted like a table."""
    number = count(1)
    for total in spec.exact:
        entity = entity_of(spec, total.count)
        if entity is None or not isinstance(total.source, Microdata):
            continue
        by = _known(domain, entity, total.by)
        for spine, levels in _places(domain, entity, total.at):
            yield Tally(EXACT, f"total{next(number)}", entity, total.count, by, spine, levels)


def _places(
    domain: Domain, entity: str, at: tuple[str, ...] | None
) -> Iterator[tuple[Hierarchy | None, tuple[str, ...]]]:
    """The geographies and levels of a table, each geography once; no geography where rows have no area."""
    if at is None:
        yield None, ()
        return
    for tree in domain.hierarchy_of(entity):
        levels = tuple(level for level in tree.levels if at == ("all",) or level in at)
        if levels:
            yield tree, levels


def _known(domain: Domain, entity: str, names: tuple[str, ...]) -> tuple[Attribute, ...]:
    return tuple(attribute for name in names if (attribute := domain.attribute(entity, name)) is not None)


def _summand(spec: ReleaseSpec, domain: Domain, entity: str, column: str) -> Summand:
    (attribute,) = _known(domain, entity, (column,))
    return Summand.of(column, attribute, _clip(spec, domain, entity, column))


def _clip(spec: ReleaseSpec, domain: Domain, entity: str, column: str) -> Range:
    (attribute,) = _known(domain, entity, (column,))
    clip = spec.microdata[attribute.owner].columns[attribute.base].clip
    if not isinstance(clip, Range):
        raise TypeError(f"'{column}' has no clip")
    return clip


def grid_of(domain: Domain, entity: str, column: str, quantiles: Quantiles, clip: Range) -> Attribute:
    """The grid of a column's quantiles as an attribute.

    One category for each grid point: the values from it up to the next. The first holds everything below the clip too,
    the last everything from the clip's upper end on, which is what clipping does.
    """
    (attribute,) = _known(domain, entity, (column,))
    low, high, scale = clip.low, clip.high, attribute.scale
    if scale is None or not isinstance(low, Fraction) or not isinstance(high, Fraction):
        raise TypeError(f"'{column}' has no clip with two ends")
    points = [low + index * quantiles.every for index in range(int((high - low) / quantiles.every) + 1)]
    coded = tuple(
        Category(write_number(point), write_number(point), (_between(scale, points, index),))
        for index, point in enumerate(points)
    )
    return Attribute(
        f"{column} on a grid",
        attribute.label,
        attribute.owner,
        attribute.base,
        coded,
        hidden=attribute.hidden,
        derived=attribute.derived,
        recoded=True,
        unit=attribute.unit,
    )


def _between(scale: Scale, points: list[Fraction], index: int) -> Range:
    """From a grid point to just below the next; the ends reach to those of the scale."""
    first = scale.low if index == 0 else points[index]
    return Range(first, scale.high if index == len(points) - 1 else points[index + 1] - scale.step)
