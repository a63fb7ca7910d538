"""Checks of the tables: what they count, by what, where, and that every kind of query has a proved bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from release_specs.checks.draft import Draft, attribute_or_findings, condition_findings, needs, unknown_name
from release_specs.diagnostics import Finding, Path, error
from release_specs.domain import Attribute
from release_specs.language.tables import Table, UpTo
from release_specs.language.values import write_number

MOST_CELLS = 10**10
LARGEST_ATTRIBUTE = 2_000


@needs("microdata", "tables")
def tables_count_something_known(draft: Draft) -> Iterator[Finding]:
    """A table is about a declared entity or universe."""
    for name, table in draft.spec.tables.items():
        word = "count" if table.count is not None else "of"
        if table.universe is not None and draft.entity(table.universe) is None:
            path: Path = ("tables", name, word)
            known = draft.universes()
            yield from unknown_name(draft, "unknown-universe", table.universe, known, path, "an entity or universe")


@needs("microdata", "tables")
def tables_are_by_attributes_of_their_rows(draft: Draft) -> Iterator[Finding]:
    """Every name in `by` is an attribute the counted rows have, with a list of categories, named once."""
    for name, table, entity in draft.tables():
        path: Path = ("tables", name, "by")
        if isinstance(table.by, UpTo):
            message = "every table of up to so many attributes is not offered yet; write the tables you want one by one"
            yield error("up-to-not-offered", path, message, at_key=True)
            continue
        for index, word in enumerate(table.by):
            found = attribute_or_findings(draft, entity, word, (*path, index))
            if isinstance(found, list):
                yield from found
            elif word in table.by[:index]:
                yield error("listed-twice", (*path, index), f"'{word}' is listed twice; keep one")
            else:
                yield from _is_countable(found, (*path, index))


def _is_countable(attribute: Attribute, path: Path) -> Iterator[Finding]:
    size = attribute.size
    if size is None:
        message = (
            f"'{attribute.name}' has no upper end; give it categories with 'into', the last one open (5 or more: 5..)"
        )
        yield error("too-many-categories", path, message)
    elif attribute.scale is not None and size > LARGEST_ATTRIBUTE:
        message = f"'{attribute.name}' has {size:,} values; make a recode of it and count by that"
        yield error("too-many-categories", path, message)


@needs("microdata", "tables", "geography")
def tables_are_published_at_known_levels(draft: Draft) -> Iterator[Finding]:
    """Where rows have areas, a table says at which levels it is published; where they have none, it does not."""
    for name, table, entity in draft.tables():
        path: Path = ("tables", name)
        levels = [level for tree in draft.domain.hierarchy_of(entity) for level in tree.levels]
        if table.at is None:
            if levels:
                message = f"'at' is missing; say where it is published: at: [{', '.join(levels)}] or at: all"
                yield error("missing-key", path, message, at_key=True)
        elif not levels:
            if not draft.domain.unknown:
                message = (
                    f"rows of {entity} carry no area, so there are no levels; delete 'at' or declare an area column"
                )
                yield error("no-levels", (*path, "at"), message, at_key=True)
        elif table.at != ("all",):
            yield from _levels_are_known(draft, table.at, levels, (*path, "at"))
        if levels or not draft.spec.geography:
            yield from _promises_are_at_levels(draft, table, levels or ["whole"], path)


def _levels_are_known(draft: Draft, at: tuple[str, ...], levels: list[str], path: Path) -> Iterator[Finding]:
    for index, level in enumerate(at):
        where: Path = path if len(at) == 1 else (*path, index)
        parts = level.split(" x ")
        if len(parts) > 1 and all(part.strip() in draft.levels() for part in parts):
            message = f"'{level}' crosses two geographies, which is not offered yet; publish at one level of one spine"
            yield error("crossing-not-offered", where, message)
        elif level in at[:index]:
            yield error("listed-twice", where, f"level '{level}' is listed twice; keep one")
        else:
            yield from unknown_name(draft, "unknown-level", level, levels, where, "a level of these rows' geography")


def _promises_are_at_levels(draft: Draft, table: Table, levels: list[str], path: Path) -> Iterator[Finding]:
    for level, promise in table.precision.items():
        where: Path = (*path, "precision", level)
        yield from unknown_name(draft, "unknown-level", level, levels, where, "a level of these rows' geography")
        tree = draft.domain.level_spine(level)
        known = [area.code for area in tree.areas[level]] if tree is not None else []
        for index, area in enumerate(promise.areas):
            if tree is not None:
                yield from unknown_name(draft, "unknown-area", area, known, (*where, "areas", index), f"a {level}")


@needs("microdata", "tables")
def promises_name_cells_of_their_table(draft: Draft) -> Iterator[Finding]:
    """A promise about some cells names them by attributes of the table."""
    for name, table, entity in draft.tables():
        for level, promise in table.precision.items():
            path: Path = ("tables", name, "precision", level)
            if promise.cells is None:
                continue
            for column in sorted(promise.cells.columns() - set(table.attributes)):
                message = f"'{column}' is not in the table's 'by'; a promise speaks of the table's own cells"
                yield error("unknown-column", (*path, "cells"), message)
            if promise.cells.columns() <= set(table.attributes):
                yield from condition_findings(draft, entity, promise.cells, (*path, "cells"))


@needs("microdata", "tables")
def sums_and_means_are_of_clipped_numbers(draft: Draft) -> Iterator[Finding]:
    """A sum, mean or quantile is of a number column with a clip: nothing else bounds one record's influence."""
    for name, table, entity in draft.tables():
        asked = [("sum", table.sum), ("mean", table.mean)]
        asked += [("quantiles", column) for column in table.quantiles or {}]
        for word, column in asked:
            if column is not None:
                path: Path = ("tables", name, word, column) if word == "quantiles" else ("tables", name, word)
                yield from _has_a_clip(draft, entity, column, word, path)


def _has_a_clip(draft: Draft, entity: str, name: str, word: str, path: Path) -> Iterator[Finding]:
    found = attribute_or_findings(draft, entity, name, path)
    if isinstance(found, list):
        yield from found
        return
    column = draft.column(entity, name)
    if column is None or column.type not in ("integer", "number"):
        yield error(
            "not-a-number", path, f"'{name}' holds no numbers, so it has no {word}; name an integer or number column"
        )
    elif column.clip is None:
        message = (
            f"'{name}' has no clip, so only the valid range {column.valid} bounds what one record does to the {word}; "
            "add a clip to the column, inside that range, decided beforehand"
        )
        yield error("clip-missing", path, message)
    elif draft.domain.attribute(entity, name) is not None and column.up_to is not None:
        yield error("no-proved-bound", path, f"'{name}' may have several answers; no bound on its {word} is proved")


@needs("microdata", "tables")
def quantile_grids_fit_the_clip(draft: Draft) -> Iterator[Finding]:
    """A grid step is a multiple of the column's step and divides the clip."""
    for name, table, entity in draft.tables():
        for column_name, quantiles in (table.quantiles or {}).items():
            column = draft.column(entity, column_name)
            clip = getattr(column, "clip", None)
            if column is None or clip is None or not isinstance(getattr(clip, "low", None), Fraction):
                continue
            path: Path = ("tables", name, "quantiles", column_name, "every")
            step = column.step or Fraction(1)
            if (quantiles.every / step).denominator != 1:
                message = f"{write_number(quantiles.every)} is not a multiple of the step {write_number(step)}"
                yield error("bins-off-step", path, message)
            elif (
                all((end / step).denominator == 1 for end in (clip.low, clip.high))
                and ((clip.high - clip.low) / quantiles.every).denominator != 1
            ):
                message = f"the clip {clip} is not a whole number of grid steps of {write_number(quantiles.every)}"
                yield error("bins-off-step", path, message)


@needs("microdata", "tables")
def most_common_is_of_codes(draft: Draft) -> Iterator[Finding]:
    """The most common code and a proportion are of attributes the rows have."""
    for name, table, entity in draft.tables():
        if table.most_common is not None:
            found = attribute_or_findings(draft, entity, table.most_common, ("tables", name, "most_common"))
            if isinstance(found, list):
                yield from found
            else:
                yield from _is_countable(found, ("tables", name, "most_common"))
        if table.proportion is not None:
            yield from condition_findings(draft, entity, table.proportion, ("tables", name, "proportion"))


@needs("tables")
def computed_tables_use_other_tables(draft: Draft) -> Iterator[Finding]:
    """A ratio or comparison is made of measured tables that share what it is by."""
    tables = draft.spec.tables
    for name, table in tables.items():
        parts: list[tuple[str, Path]] = []
        if table.ratio is not None:
            path: Path = ("tables", name, "ratio")
            parts = [(table.ratio.numerator, path), (table.ratio.denominator, path)]
        elif table.compare is not None and table.of is not None:
            parts = [(table.of, ("tables", name, "of"))]
        for part, path in parts:
            yield from unknown_name(draft, "unknown-table", part, tables, path, "a table")
            if part in tables and tables[part].is_free:
                yield error("computed-of-computed", path, f"'{part}' is computed itself; use the tables it is made of")
        known = [tables[part] for part, _ in parts if part in tables and not tables[part].is_free]
        if parts and len(known) == len(parts):
            yield from _computed_shape(draft, name, table, known)
        for word in ("precision", "at_most", "margins", "grow") if parts else ():
            if getattr(table, word):
                message = f"'{word}' does not go with a table that is computed from others; delete the line"
                yield error("table-kind", ("tables", name, word), message, at_key=True)


def _computed_shape(draft: Draft, name: str, table: Table, parts: list[Table]) -> Iterator[Finding]:
    for index, word in enumerate(table.attributes):
        if any(word not in part.attributes for part in parts):
            message = f"'{word}' is not in every table it is computed from; leave it out, or add it there"
            yield error("unknown-column", ("tables", name, "by", index), message)
    levels = [_levels_of(draft, part) for part in parts]
    if table.at is None and any(levels):
        shared = [level for level in levels[0] if all(level in known for known in levels)]
        message = f"'at' is missing; say where it is published: at: [{', '.join(shared)}]"
        yield error("missing-key", ("tables", name), message, at_key=True)
    for level in (table.at or ()) if table.at != ("all",) else ():
        if any(level not in known for known in levels) and draft.levels_are_clear():
            message = (
                f"the tables it is computed from are not all published at '{level}'; leave it out, or add it there"
            )
            yield error("unknown-level", ("tables", name, "at"), message)
    if table.compare is not None:
        yield from _compared_codes(draft, name, table.compare, parts[0])


def _compared_codes(draft: Draft, name: str, compare: Mapping[str, tuple[str, ...]], part: Table) -> Iterator[Finding]:
    entity = draft.entity(part.universe) or ""
    for column, codes in compare.items():
        path: Path = ("tables", name, "compare", column)
        attribute = draft.domain.attribute(entity, column)
        if column not in part.attributes:
            yield error("unknown-column", path, f"'{column}' is not in the 'by' of the table it compares")
        elif len(codes) != 2:
            yield error("wrong-shape", path, f"found {len(codes)} codes; a comparison is of two")
        elif attribute is not None:
            known = {category.code for category in attribute.categories}
            for code in codes:
                if code not in known:
                    yield error("unknown-code", path, f"'{code}' is not a code of '{column}'")


def _levels_of(draft: Draft, table: Table) -> tuple[str, ...]:
    return tuple(draft.levels()) if table.at == ("all",) else (table.at or ())


@needs("microdata", "tables")
def tables_are_of_a_size(draft: Draft) -> Iterator[Finding]:
    """A table with more cells than can be published is a slip of the pen."""
    for name, table, entity in draft.tables():
        cells = 1
        for word in table.attributes:
            attribute = draft.domain.attribute(entity, word)
            cells *= (attribute.size or 1) if attribute is not None else 1
        areas = [
            len(tree.areas[level])
            for tree in draft.domain.hierarchy_of(entity)
            for level in tree.levels
            if table.at is not None and (level in table.at or table.at == ("all",))
        ]
        if cells * max(sum(areas), 1) > MOST_CELLS:
            message = (
                f"the table has {cells * max(sum(areas), 1):,} cells, more than {MOST_CELLS:,}; use recodes or "
                "fewer levels"
            )
            yield error("table-too-large", ("tables", name), message, at_key=True)


@needs("tables")
def growth_is_not_offered(draft: Draft) -> Iterator[Finding]:
    """`grow` and `landmarks` are part of the language and wait for a later version."""
    for name, table in draft.spec.tables.items():
        if table.grow is not None:
            message = (
                "detail that grows with a first noisy total is not offered yet; make two tables of different detail"
            )
            yield error("grow-not-offered", ("tables", name, "grow"), message, at_key=True)
    for name in draft.spec.landmarks:
        message = "a cut-off bought before the tables is not offered yet; use a declared range"
        yield error("landmarks-not-offered", ("landmarks", name), message, at_key=True)


CHECKS = (
    tables_count_something_known,
    tables_are_by_attributes_of_their_rows,
    tables_are_published_at_known_levels,
    promises_name_cells_of_their_table,
    sums_and_means_are_of_clipped_numbers,
    quantile_grids_fit_the_clip,
    most_common_is_of_codes,
    computed_tables_use_other_tables,
    tables_are_of_a_size,
    growth_is_not_offered,
)
