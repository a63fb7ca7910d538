"""Public sizes, as numbers: what exact totals and expectations say about universes and their areas.

Nothing here complains. A source that cannot be read says nothing; the checks of `public_columns` say why.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from release_specs.checks.draft import Draft
from release_specs.diagnostics import Path
from release_specs.domain import Hierarchy
from release_specs.language.phrases import FileColumn
from release_specs.reading.public_files import PublicTable

LONGEST_COUNT = 18
"""More digits than any count of people has."""


def is_count(text: str) -> bool:
    """Whether a text is a whole number of at least 0."""
    return text.isascii() and text.isdecimal() and len(text) <= LONGEST_COUNT


def expected_sizes(draft: Draft) -> dict[str, int]:
    """The public size of every universe that has one: from `expect`, from its areas, or an exact total."""
    sizes = exact_wholes(draft)
    expect = draft.spec.expect
    if expect is None:
        return sizes
    if expect.areas is not None:
        for name, column in expect.areas.named.items():
            counts = _counts(draft, FileColumn(expect.areas.file, column), ("expect", "areas", "file"))
            sizes |= {name: sum(size for _, size in counts)} if counts is not None else {}
    return sizes | dict(expect.named)


def expected_areas(draft: Draft, universe: str, level: str) -> dict[str, int]:
    """The expected size of every area of a level, where `expect.areas` tells it."""
    areas = draft.spec.expect.areas if draft.spec.expect is not None else None
    column = areas.named.get(universe) if areas is not None else None
    if areas is None or column is None:
        return {}
    return areas_of(draft, FileColumn(areas.file, column), level, ("expect", "areas", "file"))


def exact_wholes(draft: Draft) -> dict[str, int]:
    """The exact number of every universe that has one, for the whole; the first where there are several."""
    sizes: dict[str, int] = {}
    for index, total in enumerate(draft.spec.exact):
        if (whole := whole_total(draft, index)) is not None:
            sizes.setdefault(total.count, whole)
    return sizes


def whole_total(draft: Draft, index: int) -> int | None:
    """The number an exact total gives for the whole, where it is public."""
    total = draft.spec.exact[index]
    if isinstance(total.source, Fraction):
        return int(total.source) if total.source.denominator == 1 and not total.by else None
    if not isinstance(total.source, FileColumn) or total.by:
        return None
    counts = _counts(draft, total.source, ("exact", index, "from"))
    return sum(size for _, size in counts) if counts is not None else None


def areas_of(draft: Draft, source: FileColumn, level: str, path: Path) -> dict[str, int]:
    """A public column summed up to the areas of a level; nothing where the file's areas are larger."""
    table = draft.files.table(source.file, path)
    tree = draft.domain.level_spine(level)
    counts = _counts(draft, source, path)
    if table is None or tree is None or counts is None:
        return {}
    finest = finest_level(tree, table)
    if finest is None or tree.levels.index(finest) < tree.levels.index(level):
        return {}
    above = _areas_above(tree, finest, level)
    place = table.header.index(finest)
    sizes: dict[str, int] = {}
    for row, size in counts:
        if row[place] in above:
            sizes[above[row[place]]] = sizes.get(above[row[place]], 0) + size
    return sizes


def finest_level(tree: Hierarchy, table: PublicTable) -> str | None:
    """The smallest level of a spine that a file has a column for: what it is joined on."""
    return next((level for level in reversed(tree.levels) if level in table.header), None)


def rows_of_edition(draft: Draft, table: PublicTable) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The rows that speak of this edition: all of them where the file has no column `edition`."""
    place = table.header.index("edition") if "edition" in table.header else None
    for line, row in table.rows:
        if place is None or row[place] == draft.spec.release.edition:
            yield line, row


def _counts(draft: Draft, source: FileColumn, path: Path) -> list[tuple[tuple[str, ...], int]] | None:
    """The rows of this edition with their numbers; None where some are not numbers, or none speak of it."""
    table = draft.files.table(source.file, path)
    if table is None or source.column not in table.header:
        return None
    place = table.header.index(source.column)
    rows = [row for _, row in rows_of_edition(draft, table)]
    if not rows or not all(is_count(row[place]) for row in rows):
        return None
    return [(row, int(row[place])) for row in rows]


def _areas_above(tree: Hierarchy, finest: str, level: str) -> dict[str, str]:
    """For every area of the finest level, the area of the larger level it lies in."""
    above = {area.code: area.code for area in tree.areas[level]}
    for depth in range(tree.levels.index(level) + 1, tree.levels.index(finest) + 1):
        above = {area.code: above[area.parent] for area in tree.areas[tree.levels[depth]] if area.parent in above}
    return above
