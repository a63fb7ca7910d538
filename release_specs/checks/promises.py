"""Checks of exact totals, impossible combinations, rules between tables, and public expectations."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from release_specs.checks.draft import (
    Draft,
    attribute_or_findings,
    condition_findings,
    needs,
    unknown_name,
    wanted_findings,
)
from release_specs.diagnostics import Finding, Path, did_you_mean, error, listed, warning
from release_specs.language.conditions import Criterion
from release_specs.language.phrases import FileColumn, Microdata, Rule, TablePart
from release_specs.language.tables import Table, UpTo
from release_specs.language.values import write_number
from release_specs.reading.public_files import PublicTable


@needs("microdata", "exact", "geography")
def exact_totals_name_known_things(draft: Draft) -> Iterator[Finding]:
    """An exact total counts a declared universe, by its attributes, at its levels, from a source that has numbers."""
    for index, total in enumerate(draft.spec.exact):
        path: Path = ("exact", index)
        entity = draft.entity(total.count)
        if entity is None:
            known = draft.universes()
            yield from unknown_name(
                draft, "unknown-universe", total.count, known, (*path, "count"), "an entity or universe"
            )
            continue
        for place, word in enumerate(total.by):
            found = attribute_or_findings(draft, entity, word, (*path, "by", place))
            yield from found if isinstance(found, list) else ()
        levels = [level for tree in draft.domain.hierarchy_of(entity) for level in tree.levels]
        for level in total.at or ():
            if level != "all":
                yield from unknown_name(
                    draft, "unknown-level", level, levels, (*path, "at"), f"a level of {total.count}"
                )
        if total.at is None and levels:
            yield error(
                "missing-key",
                path,
                f"'at' is missing; say at which level it is exact: {', '.join(levels)}",
                at_key=True,
            )
        yield from _source_has_numbers(draft, index, levels)


def _source_has_numbers(draft: Draft, index: int, levels: list[str]) -> Iterator[Finding]:
    total = draft.spec.exact[index]
    path: Path = ("exact", index, "from")
    if isinstance(total.source, FileColumn):
        yield from _file_has_numbers(draft, total.source, levels, path)
    elif isinstance(total.source, Fraction):
        if total.source.denominator != 1 or total.source < 0:
            message = f"{write_number(total.source)} is not a count; write a whole number of at least 0"
            yield error("bad-number", path, message)
        elif total.by or (levels and total.at != (levels[0],)):
            message = (
                "one number is exact for the whole only; use a file with a row for each area, or at: the first level"
            )
            yield error("one-number-many-cells", path, message)


def _file_has_numbers(draft: Draft, source: FileColumn, levels: list[str], path: Path) -> Iterator[Finding]:
    table = draft.files.table(source.file, path)
    if table is None or not draft.files.has_columns(table, (source.column,), path):
        return
    if levels and not any(level in table.header for level in levels):
        message = (
            f"'{source.file}' has no column named like a level ({', '.join(levels)}), so it cannot be joined to areas"
        )
        yield error("file-column", path, message)
    for line, text in table.column(source.column):
        if not text.isdecimal():
            message = f"'{text}' in column '{source.column}' is not a whole number of at least 0"
            yield error("file-row", path, message, place=(source.file, line, 1))
            return
    yield from _every_area_has_a_row(draft, table, levels, path)


def _every_area_has_a_row(draft: Draft, table: PublicTable, levels: list[str], path: Path) -> Iterator[Finding]:
    """The file's finest level names areas of the geography, and all of them."""
    finest = next((level for level in reversed(levels) if level in table.header), None)
    tree = draft.domain.level_spine(finest) if finest is not None else None
    if finest is None or tree is None:
        return
    known = {area.code for area in tree.areas[finest]}
    found = set()
    for line, code in table.column(finest):
        found.add(code)
        if code not in known:
            message = f"'{code}' is not a {finest}; {did_you_mean(code, sorted(known))}"
            yield error("unknown-area", path, message, place=(table.file, line, 1))
            return
    lacking = sorted(known - found)
    if lacking:
        yield error(
            "file-row", path, f"'{table.file}' has no row for {finest} {listed(lacking, 5)}; every area needs one"
        )


def whole_total(draft: Draft, index: int) -> int | None:
    """The number an exact total gives for the whole, where it is public."""
    total = draft.spec.exact[index]
    if total.by or isinstance(total.source, Microdata):
        return None
    if isinstance(total.source, Fraction):
        return int(total.source) if total.source.denominator == 1 else None
    table = draft.files.table(total.source.file, ("exact", index, "from"))
    if table is None or total.source.column not in table.header or "edition" in table.header:
        return None
    texts = [text for _, text in table.column(total.source.column)]
    return sum(int(text) for text in texts) if all(text.isdecimal() for text in texts) else None


@needs("microdata", "exact")
def exact_totals_do_not_contradict_each_other(draft: Draft) -> Iterator[Finding]:
    """Two exact totals of one universe add up to the same whole."""
    first: dict[str, tuple[int, int]] = {}
    for index, total in enumerate(draft.spec.exact):
        whole = whole_total(draft, index)
        if whole is None:
            continue
        known = first.setdefault(total.count, (index, whole))
        if known[1] != whole:
            message = (
                f"this adds up to {whole:,} for the whole, and exact[{known[0]}] to {known[1]:,}; "
                "both cannot be exact: mend a source or delete one"
            )
            yield error("exact-contradiction", ("exact", index, "from"), message)


@needs("microdata", "impossible")
def impossible_combinations_can_be_told(draft: Draft) -> Iterator[Finding]:
    """The columns of an impossible combination meet in the rows of one entity."""
    for index, condition in enumerate(draft.spec.impossible):
        path: Path = ("impossible", index)
        names = condition.columns()
        fitting = [entity for entity in draft.spec.microdata if names <= set(draft.domain.names(entity))]
        if fitting:
            yield from condition_findings(draft, fitting[0], condition, path)
            continue
        known = {name for entity in draft.spec.microdata for name in draft.domain.names(entity)}
        strange = sorted(names - known - draft.domain.unknown)
        for name in strange:
            yield from unknown_name(draft, "unknown-column", name, sorted(known), (*path, name), "an attribute")
        if not strange and not names & draft.domain.unknown:
            message = f"{', '.join(sorted(names))} never meet in one row; a combination is of one entity's attributes"
            yield error("never-meet", path, message)


@needs("tables", "rules", "microdata")
def rules_are_about_published_tables(draft: Draft) -> Iterator[Finding]:
    """A rule compares measured tables (or a public column) on what they share, at levels they share."""
    tables = draft.spec.tables
    for index, rule in enumerate(draft.spec.rules):
        path: Path = ("rules", index)
        parts = [part for part in (rule.left, rule.right) if isinstance(part, TablePart)]
        for part in parts:
            yield from unknown_name(draft, "unknown-table", part.table, tables, path, "a table")
            if part.table in tables:
                yield from _part_findings(draft, part, tables[part.table], path)
        if rule.left == rule.right:
            yield error("rule-empty", path, f"'{rule}' compares a table with itself; delete it")
        elif len(parts) == 2 and all(part.table in tables for part in parts):
            yield from _levels_are_shared(draft, rule, [tables[part.table] for part in parts], path)
        if isinstance(rule.right, FileColumn):
            table = draft.files.table(rule.right.file, path)
            if table is not None:
                draft.files.has_columns(table, (rule.right.column,), path)


def _part_findings(draft: Draft, part: TablePart, table: Table, path: Path) -> Iterator[Finding]:
    if table.statistics != ("count",):
        yield error("rule-needs-counts", path, f"'{part.table}' is no table of counts; rules bind counts")
        return
    entity = draft.entity(table.universe)
    for column, code in part.where:
        if isinstance(table.by, UpTo):
            continue
        if column not in table.attributes:
            yield error("unknown-column", path, f"'{column}' is not in the 'by' of '{part.table}'")
        elif entity is not None and (attribute := draft.domain.attribute(entity, column)) is not None:
            yield from wanted_findings(draft, attribute, Criterion(column, (code,)), path)


def _levels_are_shared(draft: Draft, rule: Rule, tables: list[Table], path: Path) -> Iterator[Finding]:
    places = [set(draft.levels()) if table.at == ("all",) else set(table.at or ()) for table in tables]
    if places[0] and places[1] and not places[0] & places[1]:
        yield error(
            "rule-empty", path, f"the tables of '{rule}' share no level, so it binds nothing; publish both at one"
        )


@needs("tables", "rules", "privacy", "microdata")
def rules_are_not_broken_by_the_cap(draft: Draft) -> Iterator[Finding]:
    """Rows equal groups only if the cap never drops the row that stands for its group."""
    privacy = draft.spec.privacy
    for index, rule in enumerate(draft.spec.rules):
        if rule.relation != "=" or not isinstance(rule.right, TablePart):
            continue
        for part, other in ((rule.left, rule.right), (rule.right, rule.left)):
            rows = draft.spec.tables.get(part.table)
            groups = draft.spec.tables.get(other.table)
            entity = draft.entity(rows.universe) if rows is not None else None
            if entity not in privacy.caps or groups is None or draft.entity(groups.universe) != privacy.protect:
                continue
            if privacy.at_most is None or privacy.at_most.keep_first is None:
                cap = f"{entity}: {privacy.caps[entity]}"
                message = (
                    f"the cap keeps {privacy.caps[entity]} rows of each of {privacy.protect} by a secret hash, so "
                    f"'{part}' may fall short; say which row always stays: at_most: {{{cap}, keep_first: ...}}"
                )
                yield error("rule-needs-keep-first", ("rules", index), message)


@needs("tables", "rules", "exact", "microdata")
def rules_are_not_broken_by_exact_totals(draft: Draft) -> Iterator[Finding]:
    """Two exact totals that already break a rule leave nothing to publish."""
    totals: dict[str, int] = {}
    for index, total in enumerate(draft.spec.exact):
        if (whole := whole_total(draft, index)) is not None:
            totals[total.count] = whole
    for index, rule in enumerate(draft.spec.rules):
        if not isinstance(rule.right, TablePart) or rule.left.where or rule.right.where:
            continue
        sides = [draft.spec.tables.get(part.table) for part in (rule.left, rule.right)]
        numbers = [totals.get(side.universe or "") if side is not None else None for side in sides]
        left, right = numbers
        if left is None or right is None:
            continue
        if not {"<=": left <= right, ">=": left >= right, "=": left == right}[rule.relation]:
            message = (
                f"the exact totals are {left:,} and {right:,}, so '{rule}' cannot hold; mend the totals or the rule"
            )
            yield error("rule-contradiction", ("rules", index), message)


@needs("microdata", "expect")
def expectations_name_known_things(draft: Draft) -> Iterator[Finding]:
    """Public sizes are of declared entities and universes, from files that have them."""
    expect = draft.spec.expect
    if expect is None:
        return
    known = draft.universes()
    for name in expect.named:
        yield from unknown_name(draft, "unknown-universe", name, known, ("expect", name), "an entity or universe")
    if expect.areas is not None:
        path: Path = ("expect", "areas")
        for name in expect.areas.named:
            yield from unknown_name(draft, "unknown-universe", name, known, (*path, name), "an entity or universe")
        table = draft.files.table(expect.areas.file, (*path, "file"))
        if table is not None:
            for name, column in expect.areas.named.items():
                draft.files.has_columns(table, (column,), (*path, name))
    for size in expect.sizes or {}:
        if not size.isdecimal():
            yield error(
                "bad-number", ("expect", "sizes", size), f"'{size}' is not a number of rows; write 1: 28%", at_key=True
            )
    total = sum((expect.sizes or {}).values(), Fraction(0))
    if total > 1:
        yield error(
            "shares-exceed", ("expect", "sizes"), f"the parts add up to {total}, over by {total - 1}", at_key=True
        )


@needs("microdata", "tables", "expect", "geography")
def relative_promises_mean_something_everywhere(draft: Draft) -> Iterator[Finding]:
    """A percentage of a tiny area is less than one person: no budget buys that."""
    for name, table in draft.spec.tables.items():
        for level, promise in table.precision.items():
            if not promise.moe.relative or promise.moe_of != "total":
                continue
            sizes = expected_areas(draft, table.universe or "", level)
            tiny = [code for code, size in sizes.items() if promise.moe.amount * size < 1]
            tiny = [code for code in tiny if not promise.areas or code in promise.areas]
            if tiny:
                message = (
                    f"{promise.moe} of the expected {table.universe} comes to less than 1 in {listed(tiny, 5)} "
                    f"({len(tiny)} of {len(sizes)} areas): no budget buys that; write it in units, or name the areas"
                )
                yield warning("relative-near-zero", ("tables", name, "precision", level, "moe"), message)


def expected_areas(draft: Draft, universe: str, level: str) -> dict[str, int]:
    """The expected size of every area of a level, where `expect.areas` tells it."""
    areas = draft.spec.expect.areas if draft.spec.expect is not None else None
    column = areas.named.get(universe) if areas is not None else None
    table = draft.files.table(areas.file, ("expect", "areas", "file")) if areas is not None else None
    if column is None or table is None or not {column, level} <= set(table.header):
        return {}
    sizes: dict[str, int] = {}
    for (_, code), (_, size) in zip(table.column(level), table.column(column), strict=True):
        sizes[code] = sizes.get(code, 0) + (int(size) if size.isdecimal() else 0)
    return sizes


CHECKS = (
    relative_promises_mean_something_everywhere,
    exact_totals_name_known_things,
    exact_totals_do_not_contradict_each_other,
    impossible_combinations_can_be_told,
    rules_are_about_published_tables,
    rules_are_not_broken_by_the_cap,
    rules_are_not_broken_by_exact_totals,
    expectations_name_known_things,
)
