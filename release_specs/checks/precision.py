"""Checks of promised precision: where it is promised, of which cells and areas, and what a percentage is of."""

from __future__ import annotations

from collections.abc import Iterator

from release_specs.checks.draft import Draft, condition_findings, needs, unknown_name
from release_specs.checks.sizes import expected_areas
from release_specs.diagnostics import Finding, Path, error, listed, note, warning
from release_specs.language.values import write_number


@needs("microdata", "tables", "geography")
def promises_are_at_published_levels(draft: Draft) -> Iterator[Finding]:
    """A promise is about a level the table is published at, and about areas of that level."""
    for name, table, entity in draft.tables():
        known = draft.spine_levels(entity) or (["whole"] if draft.is_placeless(table) else [])
        published = draft.levels_of(table) or known
        for level, promise in table.precision.items() if known else ():
            path: Path = ("tables", name, "precision", level)
            if level in known and level not in published:
                message = f"'{name}' is not published at '{level}'; add it to 'at', or promise for {listed(published)}"
                yield error("unknown-level", path, message, at_key=True)
                continue
            what = "a level of these rows' geography" if level != "whole" else f"a level of '{name}'"
            yield from unknown_name(draft, "unknown-level", level, known, path, what)
            tree = draft.domain.level_spine(level)
            areas = {area.code: None for area in tree.areas[level]} if tree is not None else {}
            for index, area in enumerate(promise.areas if tree is not None else ()):
                yield from unknown_name(draft, "unknown-area", area, areas, (*path, "areas", index), f"a {level}")


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


@needs("tables")
def a_margin_is_not_a_part_of_one(draft: Draft) -> Iterator[Finding]:
    """A count has no margin below one: 0.05 was probably meant as 5%."""
    for name, table in draft.spec.tables.items():
        for level, promise in table.precision.items():
            if not promise.moe.relative and promise.moe.amount < 1 and table.statistics == ("count",):
                percent = write_number(promise.moe.amount * 100)
                message = (
                    f"{promise.moe} is less than one of {table.universe}, and counts are whole; did you mean "
                    f"{percent}%?"
                )
                yield error("moe-below-one", ("tables", name, "precision", level, "moe"), message)


@needs("tables", "spend", "privacy", "expect")
def relative_promises_have_a_size(draft: Draft) -> Iterator[Finding]:
    """A percentage is of something public: an expected size, or an earlier edition's cells."""
    expect = draft.spec.expect
    for name, table in draft.spec.tables.items():
        for level, promise in table.precision.items():
            if not promise.moe.relative:
                continue
            path: Path = ("tables", name, "precision", level, "moe")
            if table.statistics not in (("count",), ("proportion",)):
                message = (
                    f"a percentage of a {table.statistics[0]} is not offered; write the margin in units, such as "
                    "moe: 50"
                )
                yield error("relative-needs-size", path, message)
                continue
            sized = expect is not None and (
                table.universe in expect.named or (expect.areas is not None and table.universe in expect.areas.named)
            )
            if promise.moe_of == "cell" and (expect is None or expect.previous is None):
                message = "a percentage of each cell needs the sizes of cells; add expect: {previous: folder}"
                yield error("relative-needs-size", path, message)
            elif promise.moe_of == "total" and not sized and (expect is None or expect.previous is None):
                message = (
                    f"{promise.moe} of what? The size of '{table.universe}' is not declared; add it to 'expect', "
                    "or write the margin in units"
                )
                yield error("relative-needs-size", path, message)


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


@needs("tables")
def promises_wait_for_the_plan(draft: Draft) -> Iterator[Finding]:
    """That a promise can be written does not mean that the budget keeps it."""
    promised = [name for name, table in draft.spec.tables.items() if table.precision]
    if promised:
        message = (
            f"whether the budget keeps the promises of {listed(promised)} is not told here: 'check' knows no prices"
        )
        yield note("promises-unpriced", ("tables",), message)


ADVICE = (promises_wait_for_the_plan,)
CHECKS = (
    a_margin_is_not_a_part_of_one,
    promises_are_at_published_levels,
    promises_name_cells_of_their_table,
    relative_promises_have_a_size,
    relative_promises_mean_something_everywhere,
)
