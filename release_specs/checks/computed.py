"""Checks of tables that are computed from others: ratios and comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from release_specs.checks.draft import Draft, needs, parts_of, unknown_name, wanted_findings
from release_specs.diagnostics import Finding, Path, error, listed
from release_specs.language.conditions import Criterion
from release_specs.language.tables import Table, UpTo

ONE_NUMBER = ("count", "sum", "mean", "proportion")
"""The statistics that give one number for each cell."""


@needs("tables")
def computed_tables_use_other_tables(draft: Draft) -> Iterator[Finding]:
    """A ratio or comparison is made of measured tables that share what it is by."""
    tables = draft.spec.tables
    for name, table in tables.items():
        parts = parts_of(table)
        path: Path = ("tables", name, "ratio" if table.ratio is not None else "of")
        for part in parts:
            yield from unknown_name(draft, "unknown-table", part, tables, path, "a table")
            if part in tables and tables[part].is_free:
                yield error("computed-of-computed", path, f"'{part}' is computed itself; use the tables it is made of")
        if len(parts) == 2 and parts[0] == parts[1]:
            yield error("table-kind", path, f"'{parts[0]}' divided by itself is 1 everywhere; name two tables")
        known = {part: tables[part] for part in parts if part in tables and not tables[part].is_free}
        if parts and len(known) == len(set(parts)):
            yield from _parts_give_one_number(known, path)
            yield from _computed_by(name, table, known)
            yield from _computed_at(draft, name, table, list(known.values()))
            yield from _compared(draft, name, table, list(known.values()))
        yield from _out_of_place(name, table) if parts else ()


def _out_of_place(name: str, table: Table) -> Iterator[Finding]:
    words = [word for word in ("precision", "at_most", "margins", "grow") if getattr(table, word)]
    words += ["mechanism"] if table.mechanism != "auto" else []
    for word in words:
        message = f"'{word}' does not go with a table that is computed from others; delete the line"
        yield error("table-kind", ("tables", name, word), message, at_key=True)
    if not table.publish:
        message = "a table that is computed from others helps none of them; publish it, or delete the table"
        yield error("table-kind", ("tables", name, "publish"), message, at_key=True)


def _parts_give_one_number(parts: Mapping[str, Table], path: Path) -> Iterator[Finding]:
    for part, table in parts.items():
        if len(table.statistics) > 1 or table.statistics[0] not in ONE_NUMBER:
            found = " and ".join(table.statistics)
            message = f"'{part}' has {found}, so it is not clear which number is meant; use a table of one {_either()}"
            yield error("table-kind", path, message)


def _either() -> str:
    return f"{', '.join(ONE_NUMBER[:-1])} or {ONE_NUMBER[-1]}"


def _computed_by(name: str, table: Table, parts: Mapping[str, Table]) -> Iterator[Finding]:
    for index, word in enumerate(table.attributes):
        path: Path = ("tables", name, "by", index)
        if any(word not in part.attributes for part in parts.values() if not isinstance(part.by, UpTo)):
            message = f"'{word}' is not in every table it is computed from; leave it out, or add it there"
            yield error("unknown-column", path, message)
        elif word in table.attributes[:index]:
            yield error("listed-twice", path, f"'{word}' is listed twice; keep one")
        elif word in (table.compare or ()):
            yield error("table-kind", path, f"'{word}' is what is compared, so the result is not by it; leave it out")


def _computed_at(draft: Draft, name: str, table: Table, parts: list[Table]) -> Iterator[Finding]:
    levels = [draft.levels_of(part) for part in parts]
    shared = [level for level in levels[0] if all(level in known for known in levels)]
    if any(not found and not draft.is_placeless(part) for found, part in zip(levels, parts, strict=True)):
        return
    if any(levels) and not shared:
        message = "the tables it is computed from share no level, so there is nothing to compute; publish both at one"
        yield error("no-levels", ("tables", name), message, at_key=True)
    elif table.at is None and shared:
        message = f"'at' is missing; say where it is published: at: [{', '.join(shared)}]"
        yield error("missing-key", ("tables", name), message, at_key=True)
    elif not any(levels) and table.at is not None:
        message = "the tables it is computed from carry no area, so there are no levels; delete 'at'"
        yield error("no-levels", ("tables", name, "at"), message, at_key=True)
    for index, level in enumerate(table.at or ()) if shared and table.at != ("all",) else ():
        path: Path = ("tables", name, "at") if len(table.at or ()) == 1 else ("tables", name, "at", index)
        if level not in draft.levels():
            yield from unknown_name(draft, "unknown-level", level, shared, path, "a level of these rows' geography")
        elif level in (table.at or ())[:index]:
            yield error("listed-twice", path, f"level '{level}' is listed twice; keep one")
        elif level not in shared:
            message = (
                f"the tables it is computed from are not all published at '{level}'; leave it out, or add it there"
            )
            yield error("unknown-level", path, message)


def _compared(draft: Draft, name: str, table: Table, parts: list[Table]) -> Iterator[Finding]:
    path: Path = ("tables", name, "compare")
    if table.compare is not None and len(table.compare) != 1:
        found = f"found {listed(table.compare)}" if table.compare else "no column is named"
        yield error("wrong-shape", path, f"{found}; a comparison is of two codes of one column", at_key=True)
        return
    for column, codes in (table.compare or {}).items():
        where: Path = (*path, column)
        attribute = draft.domain.attribute(draft.entity(parts[0].universe) or "", column)
        if column not in parts[0].attributes:
            if not isinstance(parts[0].by, UpTo) and column not in draft.domain.unknown:
                yield error("unknown-column", where, f"'{column}' is not in the 'by' of the table it compares")
        elif len(codes) != 2:
            yield error("wrong-shape", where, f"found {len(codes)} codes; a comparison is of two")
        elif codes[0] == codes[1]:
            yield error("listed-twice", where, f"'{codes[0]}' is compared with itself; name two codes")
        elif attribute is not None:
            spans = [code for code in codes if attribute.scale is not None and ".." in code]
            if spans:
                yield error("wrong-shape", where, f"'{spans[0]}' is a range; a comparison is of two values")
            else:
                yield from wanted_findings(draft, attribute, Criterion(column, codes), where)


CHECKS = (computed_tables_use_other_tables,)
