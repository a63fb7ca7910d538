"""Which tables will agree on which margins, and which look alike and will not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

from release_specs.checks.draft import Draft, needs
from release_specs.checks.rows import conditions_of, implies
from release_specs.diagnostics import Finding, listed, note, warning
from release_specs.language.tables import Table
from release_specs.reading.resolve import leaves_out

MOST_NOTES = 20


def readable(draft: Draft, table: Table) -> frozenset[str]:
    """Every attribute that can be read off a table: its own, and coarser ones of the same columns."""
    entity = draft.entity(table.universe) or ""
    own = [draft.domain.attribute(entity, name) for name in table.attributes]
    found = set(table.attributes)
    for name in draft.domain.names(entity):
        attribute = draft.domain.attribute(entity, name)
        if attribute is not None and any(finer is not None and attribute.is_read_off(finer) for finer in own):
            found.add(name)
    return frozenset(found)


def margins_within(draft: Draft, wanted: Table, other: Table) -> bool:
    """Whether `wanted` can be summed from `other`: its attributes are readable there, and it counts the same rows."""
    return set(wanted.attributes) <= readable(draft, other) and counted_rows(draft, wanted) == counted_rows(
        draft, other
    )


def counted_rows(draft: Draft, table: Table) -> tuple[object, ...]:
    """What decides which rows a table counts, and how often: two tables that differ in it do not agree.

    The universe; columns that do not apply to all of it; columns with several answers, whose cells do not add up; the
    cap; and the area columns that leave rows out.
    """
    entity = draft.entity(table.universe) or ""
    held = conditions_of(draft, table.universe)
    narrowed: set[object] = set()
    several = set()
    for word in table.attributes:
        attribute = draft.domain.attribute(entity, word)
        column = draft.column(entity, attribute.base) if attribute is not None else None
        if attribute is None or column is None:
            continue
        if attribute.up_to > 1:
            several.add(word)
        if column.applies_to is not None:
            narrowed |= set() if implies(draft, entity, held, column.applies_to) else {column.applies_to}
        elif column.not_applicable is not None:
            narrowed.add(attribute.base)
    cap = table.at_most or draft.spec.privacy.caps.get(entity)
    return (
        table.universe,
        frozenset(narrowed),
        frozenset(several),
        cap,
        frozenset(_spines_leaving_out(draft, table, entity)),
    )


def _spines_leaving_out(draft: Draft, table: Table, entity: str) -> Iterator[str]:
    """The spines a table is published on whose area columns leave rows out: such a row is in no table of that spine."""
    for spine, owner in draft.domain.spines.get(entity, {}).items():
        tree, facts = draft.domain.hierarchies.get(spine), draft.spec.microdata[owner]
        used = tree is not None and (table.at == ("all",) or set(table.at or ()) & set(tree.levels))
        if used and any(column.area == spine and leaves_out(facts, column) for column in facts.columns.values()):
            yield spine


@needs("microdata", "tables", "privacy")
def tables_agree_where_they_count_the_same(draft: Draft) -> Iterator[Finding]:
    """Same thing counted, same universe, same margin: same number. This lists what that gives."""
    counts = {name: table for name, table, _ in draft.tables() if table.statistics == ("count",) and table.publish}
    rows = {name: counted_rows(draft, table) for name, table in counts.items()}
    read = {name: readable(draft, table) for name, table in counts.items()}
    shared: dict[tuple[object, frozenset[str]], dict[str, None]] = defaultdict(dict)
    for (name, table), (other_name, other) in combinations(counts.items(), 2):
        if rows[name] == rows[other_name] and _share_a_level(draft, table, other):
            margin = _finest(draft, table, read[name] & read[other_name])
            shared[rows[name], margin] |= {name: None, other_name: None}
    for (_, margin), tables in list(shared.items())[:MOST_NOTES]:
        universe = counts[next(iter(tables))].universe
        what = f"{universe} by {listed(sorted(margin))}" if margin else f"the total of {universe}"
        yield note("tables-agree", ("tables",), f"{listed(tables)} will agree on {what}, at the levels they share")


def _share_a_level(draft: Draft, table: Table, other: Table) -> bool:
    places = [set(draft.levels()) if part.at == ("all",) else set(part.at or ("whole",)) for part in (table, other)]
    return bool(places[0] & places[1])


def _finest(draft: Draft, table: Table, margin: frozenset[str]) -> frozenset[str]:
    """A margin without the attributes that can be read off its others."""
    entity = draft.entity(table.universe) or ""
    known = {name: attribute for name in margin if (attribute := draft.domain.attribute(entity, name)) is not None}
    return frozenset(
        name
        for name in margin
        if name not in known
        or not any(
            known[name].is_read_off(finer) and (not finer.is_read_off(known[name]) or other < name)
            for other, finer in known.items()
            if other != name
        )
    )


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
