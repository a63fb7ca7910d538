"""Checks of the tables: what they count, by what, where, and that every kind of query has a proved bound."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from release_specs.checks.draft import Draft, attribute_or_findings, condition_findings, needs, unknown_name
from release_specs.diagnostics import Finding, Path, error
from release_specs.domain import Attribute
from release_specs.language.tables import UpTo
from release_specs.language.values import Range, write_number
from release_specs.reading.resolve import members_of, queries_of

MOST_CELLS = 10**10
LARGEST_ATTRIBUTE = 2_000
MOST_GRID_STEPS = 10_000


@needs("microdata", "tables")
def tables_count_something_known(draft: Draft) -> Iterator[Finding]:
    """A table is about a declared entity or universe."""
    for name, table in draft.spec.tables.items():
        word = "count" if table.count is not None else "of"
        universe = table.universe
        if universe is None or draft.entity(universe) is not None:
            continue
        path: Path = ("tables", name, word)
        owner = next((entity for entity in draft.spec.microdata if draft.domain.attribute(entity, universe)), None)
        if owner is not None and universe not in draft.spec.universes:
            message = f"'{universe}' is an attribute of {owner}, not an entity or universe; write {word}: {owner}"
            yield error("unknown-universe", path, f"{message}, by: [{universe}]" if word == "count" else message)
        else:
            known = draft.universes()
            yield from unknown_name(draft, "unknown-universe", universe, known, path, "an entity or universe")


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
        levels = draft.spine_levels(entity)
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
    rows = next((row for row in members_of(draft.spec, entity) if name in draft.spec.microdata[row].columns), None)
    if rows is not None and draft.column(entity, name) is None:
        message = f"'{name}' belongs to the rows ({rows}), and sums over a group are not offered; write of: {rows}"
        yield error("column-of-another", path, message)
        return
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


@needs("tables")
def quantiles_are_named_once(draft: Draft) -> Iterator[Finding]:
    """A table of quantiles names columns, and each quantile of a column once."""
    for name, table in draft.spec.tables.items():
        path: Path = ("tables", name, "quantiles")
        if table.quantiles is not None and not table.quantiles:
            message = "no column is named; write {column: {at: [1/2], every: 50}}, or delete the line"
            yield error("empty-value", path, message, at_key=True)
        for column, quantiles in (table.quantiles or {}).items():
            twice = [part for index, part in enumerate(quantiles.at) if part in quantiles.at[:index]]
            if twice:
                message = f"the quantile {write_number(twice[0])} is listed twice; keep one"
                yield error("listed-twice", (*path, column, "at"), message, at_key=True)


@needs("microdata", "tables")
def sums_are_not_by_several_answers(draft: Draft) -> Iterator[Finding]:
    """A sum or mean by an attribute with several answers has no proved bound."""
    for name, table, entity in draft.tables():
        for index, word in enumerate(table.attributes if table.sum or table.mean else ()):
            attribute = draft.domain.attribute(entity, word)
            if attribute is not None and attribute.up_to > 1:
                message = (
                    f"'{word}' may have several answers, and no bound on sums by such is proved; count by it instead"
                )
                yield error("no-proved-bound", ("tables", name, "by", index), message)


@needs("microdata", "tables")
def quantile_grids_fit_the_clip(draft: Draft) -> Iterator[Finding]:
    """A grid step is a multiple of the column's step and divides the clip."""
    for name, table, entity in draft.tables():
        for column_name, quantiles in (table.quantiles or {}).items():
            column = draft.column(entity, column_name)
            clip = getattr(column, "clip", None)
            if column is None or not isinstance(clip, Range):
                continue
            if not isinstance(clip.low, Fraction) or not isinstance(clip.high, Fraction):
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
            elif (clip.high - clip.low) / quantiles.every > MOST_GRID_STEPS:
                message = f"these are more than {MOST_GRID_STEPS:,} grid steps; make them wider"
                yield error("table-too-large", path, message)


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


@needs("microdata", "tables")
def tables_are_of_a_size(draft: Draft) -> Iterator[Finding]:
    """A table with more cells than can be published is a slip of the pen."""
    cells: dict[str, int] = {}
    for query in queries_of(draft.spec, draft.domain):
        cells[query.table] = cells.get(query.table, 0) + query.cells
    for name, number in cells.items():
        if number > MOST_CELLS:
            message = f"the table has {number:,} cells, more than {MOST_CELLS:,}; use recodes or fewer levels"
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
    sums_and_means_are_of_clipped_numbers,
    sums_are_not_by_several_answers,
    quantiles_are_named_once,
    quantile_grids_fit_the_clip,
    most_common_is_of_codes,
    tables_are_of_a_size,
    growth_is_not_offered,
)
