"""Which tables will agree on which margins, and which look alike and will not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

from release_specs.checks.draft import Draft, needs
from release_specs.checks.rows import conditions_of, implies
from release_specs.diagnostics import Finding, listed, note, warning
from release_specs.language.tables import Table

MOST_NOTES = 20


def readable(draft: Draft, table: Table) -> frozenset[str]:
    """Every attribute that can be read off a table: its own, and recodes of them (not of several answers)."""
    found = set(table.attributes)
    for _ in draft.spec.recodes:
        more = {name for name, made in draft.spec.recodes.items() if made.of in found} - found
        if not more:
            break
        found |= more
    return frozenset(found - several_answers(draft, table) | set(table.attributes))


def several_answers(draft: Draft, table: Table) -> frozenset[str]:
    """The attributes of a universe in which a row may fall into several cells: their cells do not add up."""
    entity = draft.entity(table.universe) or ""
    names = {*table.attributes, *draft.spec.recodes}
    found = {name: draft.domain.attribute(entity, name) for name in names}
    return frozenset(name for name, attribute in found.items() if attribute is not None and attribute.up_to > 1)


def margins_within(draft: Draft, wanted: Table, other: Table) -> bool:
    """Whether `wanted` can be summed from `other`: its attributes are readable there, and nothing else stops it."""
    return set(wanted.attributes) <= readable(draft, other) and _counted(draft, wanted) == _counted(draft, other)


def _counted(draft: Draft, table: Table) -> tuple[object, ...]:
    """What a table counts: its universe, less rows its columns do not apply to, a row in one cell or in several."""
    entity = draft.entity(table.universe) or ""
    held = conditions_of(draft, table.universe)
    narrowed = set()
    for word in table.attributes:
        attribute = draft.domain.attribute(entity, word)
        column = draft.column(entity, attribute.base) if attribute is not None else None
        if column is not None and column.applies_to is not None and not implies(draft, entity, held, column.applies_to):
            narrowed.add(column.applies_to)
    return table.universe, frozenset(narrowed), several_answers(draft, table) & set(table.attributes)


@needs("microdata", "tables")
def tables_agree_where_they_count_the_same(draft: Draft) -> Iterator[Finding]:
    """Same thing counted, same universe, same margin: same number. This lists what that gives."""
    shared: dict[tuple[str, frozenset[str]], dict[str, None]] = defaultdict(dict)
    counts = {name: table for name, table, _ in draft.tables() if table.statistics == ("count",)}
    for (name, table), (other_name, other) in combinations(counts.items(), 2):
        if table.universe is not None and _counted(draft, table) == _counted(draft, other):
            margin = _finest(draft, readable(draft, table) & readable(draft, other))
            shared[table.universe, margin] |= {name: None, other_name: None}
    for (universe, margin), tables in list(shared.items())[:MOST_NOTES]:
        what = f"{universe} by {listed(sorted(margin))}" if margin else f"the total of {universe}"
        yield note("tables-agree", ("tables",), f"{listed(tables)} will agree on {what}, at the levels they share")


def _finest(draft: Draft, margin: frozenset[str]) -> frozenset[str]:
    """A margin without the recodes that its other attributes already give."""
    recodes = draft.spec.recodes
    return frozenset(name for name in margin if not (name in recodes and recodes[name].of in margin))


@needs("microdata", "tables")
def tables_that_look_alike_may_differ(draft: Draft) -> Iterator[Finding]:
    """Two tables by the same attributes of different universes show different numbers, and readers will ask why."""
    counts = [(name, table, entity) for name, table, entity in draft.tables() if table.statistics == ("count",)]
    for (name, table, entity), (other_name, other, other_entity) in combinations(counts, 2):
        same = set(table.attributes) == set(other.attributes) and table.attributes
        if same and entity == other_entity and table.universe != other.universe:
            message = (
                f"'{name}' and '{other_name}' are both by {listed(table.attributes)} and will not agree: "
                f"one counts {table.universe}, the other {other.universe}"
            )
            yield note("tables-differ", ("tables", other_name), message)


@needs("microdata", "tables")
def a_universe_is_stated_where_a_column_does_not_apply_to_all(draft: Draft) -> Iterator[Finding]:
    """Rows to which a column does not apply are in no table by it; the universe should say so."""
    for name, table, entity in draft.tables():
        held = conditions_of(draft, table.universe)
        for index, word in enumerate(table.attributes):
            attribute = draft.domain.attribute(entity, word)
            column = draft.column(entity, attribute.base) if attribute is not None else None
            if column is None or column.applies_to is None or implies(draft, entity, held, column.applies_to):
                continue
            fitting = [
                universe
                for universe in draft.spec.universes
                if draft.entity(universe) == entity
                and implies(draft, entity, conditions_of(draft, universe), column.applies_to)
            ]
            advice = f"count '{fitting[0]}'" if fitting else "declare a universe with the same condition and count that"
            message = (
                f"'{word}' does not apply to all of {table.universe}: the others are in no cell of this table; {advice}"
            )
            yield warning("unstated-universe", ("tables", name, "by", index), message)


CHECKS = (
    tables_agree_where_they_count_the_same,
    tables_that_look_alike_may_differ,
    a_universe_is_stated_where_a_column_does_not_apply_to_all,
)
