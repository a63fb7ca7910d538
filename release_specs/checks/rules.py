"""Checks of rules between tables: that they bind something, and that nothing declared breaks them."""

from __future__ import annotations

from collections.abc import Iterator

from release_specs.checks.draft import Draft, needs, unknown_name, wanted_findings
from release_specs.checks.public_columns import PublicColumn, public_column_findings
from release_specs.checks.rows import conditions_of, implies
from release_specs.checks.sizes import exact_wholes
from release_specs.diagnostics import Finding, Path, error, listed, note
from release_specs.language.conditions import Condition, Criterion
from release_specs.language.phrases import FileColumn, Rule, TablePart
from release_specs.language.tables import Table, UpTo


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
            yield from _public_side(draft, rule, rule.right, path)


def _part_findings(draft: Draft, part: TablePart, table: Table, path: Path) -> Iterator[Finding]:
    if table.statistics != ("count",):
        yield error("rule-needs-counts", path, f"'{part.table}' is no table of counts; rules bind counts")
        return
    entity = draft.entity(table.universe)
    if entity is None or isinstance(table.by, UpTo):
        return
    fixed = {column for column, _ in part.where}
    for word in table.attributes:
        attribute = draft.domain.attribute(entity, word)
        if attribute is not None and attribute.up_to > 1 and word not in fixed:
            message = (
                f"'{word}' may have several answers, so summing '{part.table}' over it counts rows twice; fix one code"
            )
            yield error("rule-needs-counts", path, message)
    meant = all(draft.domain.attribute(entity, word) is not None for word in table.attributes)
    for column, code in part.where:
        attribute = draft.domain.attribute(entity, column)
        if column not in table.attributes:
            if meant:
                yield error("unknown-column", path, f"'{column}' is not in the 'by' of '{part.table}'")
        elif attribute is not None:
            yield from wanted_findings(draft, attribute, Criterion(column, (code,)), path)


def _levels_are_shared(draft: Draft, rule: Rule, tables: list[Table], path: Path) -> Iterator[Finding]:
    places = [set(draft.levels_of(table)) for table in tables]
    known = all(set(table.at or ()) <= {"all", *draft.levels()} for table in tables)
    if known and places[0] and places[1] and not places[0] & places[1]:
        yield error(
            "rule-empty", path, f"the tables of '{rule}' share no level, so it binds nothing; publish both at one"
        )


def _public_side(draft: Draft, rule: Rule, source: FileColumn, path: Path) -> Iterator[Finding]:
    """A public column is joined on the levels and attributes that it shares with the table."""
    table = draft.spec.tables.get(rule.left.table)
    entity = draft.entity(table.universe) if table is not None else None
    if table is None or entity is None or (not draft.levels_of(table) and not draft.is_placeless(table)):
        draft.files.table(source.file, path)
        return
    file = draft.files.table(source.file, path)
    fixed = {column for column, _ in rule.left.where}
    by = tuple(word for word in table.attributes if file is not None and word in file.header and word not in fixed)
    yield from public_column_findings(draft, PublicColumn(source, entity, by, draft.levels_of(table), path, path))


def _not_to_fall_short(rule: Rule) -> Iterator[tuple[TablePart, TablePart | FileColumn]]:
    """Each side that must be at least the other, with that other."""
    if rule.relation in (">=", "="):
        yield rule.left, rule.right
    if rule.relation in ("<=", "=") and isinstance(rule.right, TablePart):
        yield rule.right, rule.left


def _rows_meant(draft: Draft, part: TablePart, table: Table, entity: str) -> list[Condition]:
    """What the rows of a part of a table surely meet, recodes said in codes of their column."""
    held = conditions_of(draft, table.universe)
    for column, code in part.where:
        held.append(Condition(((Criterion(column, (code,)),),)))
        attribute = draft.domain.attribute(entity, column)
        category = attribute.code_named(code) if attribute is not None and attribute.recoded else None
        if attribute is not None and category is not None:
            held.append(Condition(((Criterion(attribute.base, tuple(str(text) for text in category.holds)),),)))
    return held


@needs("tables", "rules", "privacy", "microdata")
def rules_are_not_broken_by_the_cap(draft: Draft) -> Iterator[Finding]:
    """Rows are at least as many as groups only if the cap never drops the row that stands for its group."""
    privacy = draft.spec.privacy
    for index, rule in enumerate(draft.spec.rules):
        for part, other in _not_to_fall_short(rule):
            rows = draft.spec.tables.get(part.table)
            groups = draft.spec.tables.get(other.table) if isinstance(other, TablePart) else None
            entity = draft.entity(rows.universe) if rows is not None else None
            if rows is None or groups is None or entity is None or privacy.at_most is None:
                continue
            if entity not in privacy.caps or draft.entity(groups.universe) != privacy.protect:
                continue
            held, keep_first = _rows_meant(draft, part, rows, entity), privacy.at_most.keep_first
            cap = f"the cap keeps {privacy.caps[entity]} rows of each of {privacy.protect}"
            if keep_first is None and (held or rule.relation == "="):
                message = (
                    f"{cap}, no matter which, so '{part}' may fall short; say which row always stays: "
                    f"at_most: {{{entity}: {privacy.caps[entity]}, keep_first: ...}}"
                )
                yield error("rule-needs-keep-first", ("rules", index), message)
            elif keep_first is not None and held and not implies(draft, entity, held, keep_first):
                message = f"{cap}, and keep_first does not cover '{part}', which may fall short; let it name those rows"
                yield error("rule-needs-keep-first", ("rules", index), message)


@needs("tables", "rules", "microdata")
def rules_on_columns_that_leave_rows_out_may_fall_short(draft: Draft) -> Iterator[Finding]:
    """A row whose code is left out is in no published cell, so a part of a table may be smaller than the truth."""
    for index, rule in enumerate(draft.spec.rules):
        for part, other in _not_to_fall_short(rule):
            table = draft.spec.tables.get(part.table)
            entity = draft.entity(table.universe) if table is not None else None
            found = [(column, draft.domain.attribute(entity or "", column)) for column, _ in part.where]
            hidden = [column for column, attribute in found if attribute is not None and attribute.hidden]
            if hidden:
                message = (
                    f"rows whose {listed(hidden)} is left out are in no cell of '{part}', so in the file it may fall "
                    f"short of '{other}'; the published numbers obey the rule all the same"
                )
                yield note("rule-leaves-out", ("rules", index), message)


@needs("tables", "rules", "exact", "microdata")
def rules_are_not_broken_by_exact_totals(draft: Draft) -> Iterator[Finding]:
    """Two exact totals that already break a rule leave nothing to publish."""
    totals = exact_wholes(draft)
    for index, rule in enumerate(draft.spec.rules):
        if not isinstance(rule.right, TablePart) or rule.left.where or rule.right.where:
            continue
        sides = [draft.spec.tables.get(part.table) for part in (rule.left, rule.right)]
        left, right = [totals.get(side.universe or "") if side is not None else None for side in sides]
        if left is None or right is None:
            continue
        if not {"<=": left <= right, ">=": left >= right, "=": left == right}[rule.relation]:
            message = (
                f"the exact totals are {left:,} and {right:,}, so '{rule}' cannot hold; mend the totals or the rule"
            )
            yield error("rule-contradiction", ("rules", index), message)


CHECKS = (rules_are_about_published_tables, rules_are_not_broken_by_the_cap, rules_are_not_broken_by_exact_totals)
ADVICE = (rules_on_columns_that_leave_rows_out_may_fall_short,)
