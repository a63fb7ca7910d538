"""One rule for every number that comes from a public file: exact totals, rules and expectations.

A public column holds whole numbers of at least 0. Its rows are told apart by area, by what is counted by, and by
`edition` where the file has such a column; every code in them is declared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from release_specs.checks.draft import Draft, wanted_findings
from release_specs.checks.sizes import finest_level, is_count
from release_specs.diagnostics import Finding, Path, did_you_mean, error, listed
from release_specs.domain import MOST_CATEGORIES, Attribute, Hierarchy
from release_specs.language.conditions import Criterion
from release_specs.language.phrases import FileColumn
from release_specs.reading.public_files import PublicTable

MOST_CELLS = 1_000_000
"""With more cells than this they are not looked for one by one."""


@dataclass(frozen=True, slots=True)
class PublicColumn:
    """A column of a public file, and what its numbers are for: rows of an entity, by attributes, at levels.

    `complete`: the numbers are published, so that every cell of every level needs one. `file_path` is where the spec
    names the file, `path` where it names the column.
    """

    source: FileColumn
    entity: str
    by: tuple[str, ...]
    at: tuple[str, ...]
    path: Path
    file_path: Path
    complete: bool = False


def public_column_findings(draft: Draft, wanted: PublicColumn) -> Iterator[Finding]:
    """What is wrong with a public column."""
    table = draft.files.table(wanted.source.file, wanted.file_path)
    if table is None or not draft.files.has_columns(table, (wanted.source.column,), wanted.path):
        return
    for line, text in table.column(wanted.source.column):
        if not is_count(text):
            message = f"'{text}' in column '{wanted.source.column}' is not a whole number of at least 0"
            yield error("file-row", wanted.path, message, place=(table.file, line, 1))
            break
    faults = [*_cannot_be_joined(draft, wanted, table), *_lacks_attributes(wanted, table)]
    faults = faults or [*_unknown_codes(draft, wanted, table)] or [*_rows_are_not_one_for_each(draft, wanted, table)]
    yield from faults


def _trees(draft: Draft, wanted: PublicColumn, table: PublicTable) -> list[Hierarchy]:
    """The spines it is joined in: all it is wanted in where it must be complete, else those it has columns for."""
    trees = [tree for tree in draft.domain.hierarchy_of(wanted.entity) if set(tree.levels) & set(wanted.at)]
    return [tree for tree in trees if finest_level(tree, table) is not None or wanted.complete] or trees


def _cannot_be_joined(draft: Draft, wanted: PublicColumn, table: PublicTable) -> Iterator[Finding]:
    """Areas are told apart finely enough: for every level where all are published, else for one of them."""
    for tree in _trees(draft, wanted, table):
        places = [tree.levels.index(level) for level in wanted.at if level in tree.levels]
        below = tree.levels[max(places) if wanted.complete else min(places) :]
        finest = finest_level(tree, table)
        if finest is None:
            message = f"'{table.file}' has no column named like a level ({', '.join(below)})"
            yield error("file-column", wanted.file_path, f"{message}, so it cannot be joined to areas")
        elif finest not in below:
            message = f"'{table.file}' tells areas apart only by {finest}, which is too coarse for {below[0]}"
            yield error("file-column", wanted.file_path, f"{message}; add a column {' or '.join(below)}")


def _lacks_attributes(wanted: PublicColumn, table: PublicTable) -> Iterator[Finding]:
    for name in wanted.by:
        if name not in table.header:
            message = (
                f"'{table.file}' has no column '{name}', and the total is by it; add one, with a row for each code"
            )
            yield error("file-column", wanted.file_path, message)


def _unknown_codes(draft: Draft, wanted: PublicColumn, table: PublicTable) -> Iterator[Finding]:
    """Areas and codes that are not declared: the first of each column."""
    for tree in _trees(draft, wanted, table):
        finest = finest_level(tree, table) or tree.smallest
        known = {area.code for area in tree.areas[finest]}
        strange = next(((line, code) for line, code in table.column(finest) if code not in known), None)
        if strange is not None:
            line, code = strange
            message = f"'{code}' is not a {finest}; {did_you_mean(code, sorted(known))}"
            yield error("unknown-area", wanted.file_path, message, place=(table.file, line, 1))
    for name in wanted.by:
        attribute = draft.domain.attribute(wanted.entity, name)
        lines = {code: line for line, code in reversed(list(table.column(name)))}
        for code, line in lines.items() if attribute is not None else ():
            found = next(_unknown_code(draft, attribute, code, wanted.file_path), None)
            if found is not None:
                yield error("unknown-code", wanted.file_path, found, place=(table.file, line, 1))
                break


def _unknown_code(draft: Draft, attribute: Attribute | None, code: str, path: Path) -> Iterator[str]:
    if attribute is not None:
        if attribute.scale is not None and ".." in code:
            yield f"'{code}' is a range; each row counts one value of '{attribute.name}'"
        for found in wanted_findings(draft, attribute, Criterion(attribute.name, (code,)), path):
            yield found.message


def _rows_are_not_one_for_each(draft: Draft, wanted: PublicColumn, table: PublicTable) -> Iterator[Finding]:
    """Each cell has one row; where all are needed, each has a row."""
    levels = [level for tree in _trees(draft, wanted, table) if (level := finest_level(tree, table)) is not None]
    names = [*levels, *wanted.by]
    editions = ["edition"] if "edition" in table.header and "edition" not in names else []
    places = [table.header.index(name) for name in (*editions, *names)]
    first: dict[tuple[str, ...], int] = {}
    for line, row in table.rows:
        key = tuple(row[place] for place in places)
        if first.setdefault(key, line) != line:
            which = " with ".join(f"{name} {code}" for name, code in zip((*editions, *names), key, strict=True))
            message = f"{which} stands here twice, first in line {first[key]}; keep one row for each"
            if not places:
                message = f"'{table.file}' has {len(table.rows)} rows, and no column tells them apart; keep one"
            yield error("file-row", wanted.file_path, message, place=(table.file, line, 1))
            return
    edition = draft.spec.release.edition
    if editions and edition is not None and all(key[0] != edition for key in first):
        yield error("file-row", wanted.file_path, f"'{table.file}' has no row of edition '{edition}'")
    elif wanted.complete:
        told = {key[len(editions) :] for key in first if not editions or edition is None or key[0] == edition}
        yield from _cells_without_a_row(draft, wanted, table, told)


def _is_listable(attribute: Attribute) -> bool:
    return attribute.size is not None and attribute.size <= MOST_CATEGORIES


def _cells_without_a_row(
    draft: Draft, wanted: PublicColumn, table: PublicTable, found: set[tuple[str, ...]]
) -> Iterator[Finding]:
    trees = _trees(draft, wanted, table)
    attributes = [draft.domain.attribute(wanted.entity, name) for name in wanted.by]
    if len(trees) > 1 or any(attribute is None or not _is_listable(attribute) for attribute in attributes):
        return
    levels = [(tree, finest_level(tree, table) or tree.smallest) for tree in trees]
    axes = [[area.code for area in tree.areas[level]] for tree, level in levels]
    size = len(axes[0]) if axes else 1
    for attribute in attributes:
        size *= (attribute.size or 1) if attribute is not None else 1
    if size > MOST_CELLS:
        return
    axes += [[category.code for category in attribute.categories] for attribute in attributes if attribute is not None]
    lacking = [key for key in product(*axes) if key not in found]
    names = [*(level for _, level in levels), *wanted.by]
    if lacking and len(names) == 1:
        what = f"{names[0]} {listed((key[0] for key in lacking), 5)}"
        every = "area" if levels else "code"
        message = f"'{table.file}' has no row for {what}; every {every} needs one"
        yield error("file-row", wanted.file_path, message)
    elif lacking:
        cell = " with ".join(f"{name} {code}" for name, code in zip(names, lacking[0], strict=True))
        more = f" and {len(lacking) - 1} other cells" if len(lacking) > 1 else ""
        message = f"'{table.file}' has no row for {cell or 'the whole'}{more}; write 0 where there are none"
        yield error("file-row", wanted.file_path, message)
