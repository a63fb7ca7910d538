"""What is legal and probably a slip: unused declarations, repeated tables, a cap that drowns a table."""

from __future__ import annotations

import re
from collections.abc import Iterator

from release_specs.checks.draft import Draft, needs
from release_specs.checks.sizes import expected_sizes
from release_specs.diagnostics import Finding, Path, listed, warning
from release_specs.language.conditions import Condition
from release_specs.reading.resolve import group_of, queries_of

DROWNING = 5
"""A cap of at least one in so many of a typical cell is worth a warning."""


@needs("microdata", "tables")
def tables_are_not_repeated(draft: Draft) -> Iterator[Finding]:
    """The same statistics of the same universe, by the same attributes at the same levels, are paid for once."""
    seen: dict[object, str] = {}
    for name, table in draft.spec.tables.items():
        shape = (
            table.statistics,
            table.universe,
            frozenset(table.attributes),
            frozenset(table.at or ()),
            *(str(getattr(table, word)) for word in ("sum", "mean", "most_common", "quantiles", "proportion", "ratio")),
            str(table.compare),
        )
        first = seen.setdefault(shape, name)
        if first != name:
            message = f"'{name}' repeats '{first}': the same numbers would be paid for twice; keep one"
            yield warning("table-repeated", ("tables", name), message, at_key=True)


@needs("microdata", "tables", "privacy", "recodes", "derive", "universes", "impossible", "exact", "rules", "expect")
def nothing_is_declared_in_vain(draft: Draft) -> Iterator[Finding]:
    """A column, recode, derived attribute or universe that nothing uses."""
    used = set(_used_names(draft))
    for path, what in _declarations(draft):
        if path[-1] not in used:
            message = (
                f"{what} '{path[-1]}' is declared and never used; delete it, or the table that needs it is missing"
            )
            yield warning("never-used", path, message, at_key=True)


def _declarations(draft: Draft) -> Iterator[tuple[Path, str]]:
    spec = draft.spec
    for entity, facts in spec.microdata.items():
        for name, column in facts.columns.items():
            if column.area is None:
                yield ("microdata", entity, "columns", name), "column"
    yield from ((("recodes", name), "recode") for name in spec.recodes)
    for entity, derived in spec.derive.items():
        yield from ((("derive", entity, name), "attribute") for name in derived)
    yield from ((("universes", name), "universe") for name in spec.universes)


def _used_names(draft: Draft) -> Iterator[str]:
    spec = draft.spec
    conditions: list[Condition | None] = [universe.where for universe in spec.universes.values()]
    conditions += [spec.privacy.singles, spec.privacy.at_most.keep_first if spec.privacy.at_most else None]
    conditions += spec.impossible
    for facts in spec.microdata.values():
        conditions += [facts.only, *(column.applies_to for column in facts.columns.values())]
    for derived in spec.derive.values():
        conditions += [made.where for made in derived.values()]
        yield from (made.value_of for made in derived.values() if made.value_of)
    for table in spec.tables.values():
        conditions.append(table.proportion)
        yield from table.attributes
        yield from (word for word in (table.count, table.of, table.sum, table.mean, table.most_common) if word)
        yield from table.quantiles or ()
    for condition in conditions:
        yield from condition.columns() if condition is not None else ()
    for total in spec.exact:
        yield from (total.count, *total.by)
    yield from (universe.of for universe in spec.universes.values())
    yield from (made.of for made in spec.recodes.values())
    yield from spec.expect.named if spec.expect is not None else ()


@needs("microdata", "tables", "privacy", "expect", "exact")
def the_cap_does_not_drown_a_table(draft: Draft) -> Iterator[Finding]:
    """Where one unit may be a large part of a typical cell, noise that hides it hides the cell too."""
    sizes = expected_sizes(draft)
    drowned: dict[str, str] = {}
    for query in queries_of(draft.spec, draft.domain):
        entity = draft.entity(query.universe)
        size = sizes.get(query.universe)
        if entity is None or size is None or query.cells == 0:
            continue
        cap = draft.spec.tables[query.table].at_most or draft.spec.privacy.caps.get(entity)
        typical = size / query.cells
        if cap is not None and cap * DROWNING > typical:
            where = f" at {query.level}" if query.level else ""
            drowned.setdefault(
                query.table,
                f"one of {draft.spec.privacy.protect} may be {cap} of a typical {typical:.0f} {query.universe} in a "
                f"cell{where}; use a smaller at_most, fewer categories, or larger areas",
            )
    for name, message in drowned.items():
        yield warning("cap-drowns", ("tables", name), message, at_key=True)


@needs("microdata", "tables", "privacy")
def tables_of_groups_go_with_protected_groups(draft: Draft) -> Iterator[Finding]:
    """Where rows are protected and their groups are published, a group is protected only as far as one row goes."""
    protect = draft.spec.privacy.protect
    group = group_of(draft.spec, protect)
    tables = [name for name, _, entity in draft.tables() if entity == group]
    if group is not None and tables:
        message = (
            f"{group} are published ({listed(tables)}), and only {protect} are protected, one by one; "
            f"did you mean protect: {group}?"
        )
        yield warning("group-unprotected", ("privacy", "protect"), message)


@needs("privacy", "schedule")
def a_calendar_has_an_account(draft: Draft) -> Iterator[Finding]:
    """A release that comes back needs a budget that does."""
    if draft.spec.schedule is not None and draft.spec.privacy.account is None:
        message = "this is published again and again, and the budget is for one release; add privacy.account"
        yield warning("one-budget-many-releases", ("schedule",), message, at_key=True)


@needs("microdata")
def codes_and_labels_are_the_right_way_round(draft: Draft) -> Iterator[Finding]:
    """Codes are what stands in the file; labels are what is printed."""
    for entity, _, name, _, path in draft.columns():
        attribute = draft.domain.attribute(entity, name)
        coded = attribute.coded if attribute is not None else ()
        joined = next((item.code for item in coded if re.fullmatch(r"\w+\s*[=:]\s*\D.*", item.code)), None)
        if joined is not None:
            code, label = re.split(r"\s*[=:]\s*", joined, maxsplit=1)
            message = f"'{joined}' looks like a code and its label in one; write {{{code}: {label}}}"
            yield warning("code-or-label", (*path, "codes"), message, at_key=True)
        elif coded and all(item.label.isdecimal() and not item.code.isdecimal() for item in coded):
            message = (
                f"codes and labels look exchanged; a code is what stands in the file: {{{coded[0].label}: "
                f"{coded[0].code}}}"
            )
            yield warning("code-or-label", (*path, "codes"), message, at_key=True)


CHECKS = (
    tables_of_groups_go_with_protected_groups,
    a_calendar_has_an_account,
    codes_and_labels_are_the_right_way_round,
    tables_are_not_repeated,
    nothing_is_declared_in_vain,
    the_cap_does_not_drown_a_table,
)
