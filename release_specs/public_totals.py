"""Numbers that are public already: exact totals from files or written in the spec, and columns that rules name.

Nothing confidential is read. The checks have seen the files; here they are only joined to areas and codes and added up
to the levels that ask for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product

from release_specs.domain import Domain, Hierarchy
from release_specs.language.phrases import FileColumn, Rule
from release_specs.reading.public_files import PublicFiles, PublicTable
from release_specs.reading.resolve import entity_of
from release_specs.spec import ReleaseSpec
from release_specs.tallies import EXACT, Tally

Rows = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class PublicNumbers:
    """Public numbers of a tally at one level: one row for each area, one number for each cell; hidden cells have 0."""

    tally: Tally
    level: str | None
    numbers: Rows = field(repr=False)


@dataclass(frozen=True, slots=True)
class PublicBound:
    """A rule between a table and a public column: the column's number for each area, at one level."""

    rule: Rule
    level: str | None
    numbers: Rows = field(repr=False)


def public_totals(spec: ReleaseSpec, domain: Domain, files: PublicFiles) -> list[PublicNumbers]:
    """Every exact total that comes from a number or a public file."""
    found = []
    for number, total in enumerate(spec.exact, start=1):
        entity = entity_of(spec, total.count)
        if entity is None or not isinstance(total.source, Fraction | FileColumn):
            continue
        by = tuple(one for name in total.by if (one := domain.attribute(entity, name)) is not None)
        cap = spec.privacy.caps.get(entity)
        for spine, levels in _places(domain, entity, total.at):
            tally = Tally(EXACT, f"public{number}", entity, total.count, by, spine, levels, cap)
            for level in levels or (None,):
                numbers = _numbers(spec, tally, total.source, level, files)
                if numbers is not None:
                    found.append(PublicNumbers(replace(tally, levels=(level,) if level else ()), level, numbers))
    return _together(found)


def _together(found: list[PublicNumbers]) -> list[PublicNumbers]:
    """One tally for all levels of a total."""
    levels: dict[str, tuple[str, ...]] = {}
    for one in found:
        levels[one.tally.name] = (*levels.get(one.tally.name, ()), *one.tally.levels)
    return [replace(one, tally=replace(one.tally, levels=levels[one.tally.name])) for one in found]


def public_bounds(spec: ReleaseSpec, tallies: Iterable[Tally], files: PublicFiles) -> list[PublicBound]:
    """The public side of every rule that names a column, at each level of the table it binds."""
    counts = [tally for tally in tallies if tally.statistic == "count"]
    found = []
    for rule in spec.rules:
        if not isinstance(rule.right, FileColumn):
            continue
        for tally in (one for one in counts if one.table == rule.left.table):
            whole = replace(tally, attributes=())
            for level in tally.levels or (None,):
                numbers = _numbers(spec, whole, rule.right, level, files)
                if numbers is not None:
                    found.append(PublicBound(rule, level, numbers))
    return found


def _places(
    domain: Domain, entity: str, at: tuple[str, ...] | None
) -> Iterator[tuple[Hierarchy | None, tuple[str, ...]]]:
    if at is None:
        yield None, ()
        return
    for tree in domain.hierarchy_of(entity):
        levels = tuple(level for level in tree.levels if level in at or at == ("all",))
        if levels:
            yield tree, levels


def _numbers(
    spec: ReleaseSpec, tally: Tally, source: Fraction | FileColumn, level: str | None, files: PublicFiles
) -> Rows | None:
    """Numbers of every area and cell; None where the source says nothing at this level."""
    if isinstance(source, Fraction):
        return ((int(source),),) if tally.areas(level) == 1 else None
    table = files.table(source.file, ())
    if table is None:
        return None
    finest = _finest(tally.spine, table) if tally.spine is not None else None
    if tally.spine is not None and level is not None and not _is_within(tally.spine, finest, level):
        return None
    home = _areas_above(tally.spine, finest, level) if tally.spine and finest and level else {}
    areas = {area.code: n for n, area in enumerate(tally.spine.areas[level])} if tally.spine and level else {"": 0}
    cells = _cells(tally)
    totals = [[0] * tally.cells for _ in range(tally.areas(level))]
    for row in _rows(spec, table):
        facts = dict(zip(table.header, row, strict=False))
        area = home.get(facts[finest]) if finest is not None and home else ""
        cell = cells.get(tuple(facts[one.name] for one in tally.attributes))
        if area is not None and area in areas and cell is not None:
            totals[areas[area]][cell] += int(facts[source.column])
    return tuple(tuple(row) for row in totals)


def _is_within(spine: Hierarchy, finest: str | None, level: str) -> bool:
    """Whether areas of a file's finest level lie in areas of a level."""
    return finest is not None and spine.levels.index(finest) >= spine.levels.index(level)


def _rows(spec: ReleaseSpec, table: PublicTable) -> Iterator[tuple[str, ...]]:
    """The rows that speak of this edition."""
    place = table.header.index("edition") if "edition" in table.header else None
    for _, row in table.rows:
        if place is None or row[place] == spec.release.edition:
            yield row


def _finest(spine: Hierarchy, table: PublicTable) -> str | None:
    return next((level for level in reversed(spine.levels) if level in table.header), None)


def _cells(tally: Tally) -> dict[tuple[str, ...], int]:
    """The cell of every combination of published codes."""
    found = {}
    codes = [list(enumerate(category.code for category in one.categories)) for one in tally.attributes]
    for combination in product(*codes):
        cell = 0
        for (place, _), size in zip(combination, tally.shape, strict=True):
            cell = cell * size + place
        found[tuple(code for _, code in combination)] = cell
    return found


def _areas_above(spine: Hierarchy, finest: str, level: str) -> dict[str, str]:
    """For every area of the finest level the area of a larger level that it lies in."""
    above = {area.code: area.code for area in spine.areas[level]}
    for depth in range(spine.levels.index(level) + 1, spine.levels.index(finest) + 1):
        above = {area.code: above[area.parent or ""] for area in spine.areas[spine.levels[depth]]}
    return above
