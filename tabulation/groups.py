"""Groups and their rows: groups built from rows, what rows inherit, and what is derived for groups, before any cap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import ibis
import ibis.expr.types as ir

from release_specs.language.vocabulary import Derived
from release_specs.meanings import NO, NOT_STATED, YES, Node
from release_specs.reading.resolve import group_of
from tabulation.identity import GROUP
from tabulation.logic import NOTHING, TRUE
from tabulation.needs import Needs, columns_needed
from tabulation.places import meets
from tabulation.rows import Context, Rows


def build_groups(context: Context, group: str, source: Rows, needs: Needs) -> Rows:
    """A group for every key that rows carry; a column's value is theirs where they agree."""
    table = source.table.filter(source.table[GROUP].notnull())
    nodes = sorted(columns_needed(context.meanings, needs, group))
    agreed = {context.name(node): _agreed(context, node, table) for node in nodes}
    built = table.group_by(GROUP).agg(**agreed) if agreed else table.select(GROUP).distinct()
    return Rows(group, built, {node: (context.name(node),) for node in nodes})


def _agreed(context: Context, node: Node, table: ir.Table) -> ir.IntegerValue:
    mixed = context.spec.microdata[node[0]].columns[node[1]].mixed
    counted = mixed is not None and mixed.kind == "count_as"
    place = context.meanings.base(node).place_of_text(mixed.code or "") if mixed is not None and counted else NOT_STATED
    column = table[context.name(node)]
    return (column.min() == column.max()).ifelse(column.min(), place)


def inherit(context: Context, rows: Rows, group: Rows | None, needs: Needs) -> Rows:
    """The rows with the columns of their group's row that they need; missing values where there is none."""
    if group is None:
        return rows
    wanted = sorted(node for node in needs[rows.entity] if node in group.places and node not in rows.places)
    nodes = [node for node in wanted if node[0] == group.entity and _is_column(context, node)]
    if not nodes:
        return rows
    names = [name for node in nodes for name in group.places[node]]
    right = group.table.select(GROUP, *names).rename(group_key=GROUP)
    own = rows.table.drop(*(name for name in names if name in rows.table.columns))
    table = own.left_join(right, own[GROUP] == right.group_key)
    there = table.group_key.notnull()
    firsts = {group.places[node][0]: context.place_of_missing(node) for node in nodes}
    filled = {name: there.ifelse(table[name], missing) for name, missing in firsts.items()}
    places = {**rows.places, **{node: group.places[node] for node in nodes}}
    return replace(rows, table=table.mutate(**filled).drop("group_key"), places=places)


def _is_column(context: Context, node: Node) -> bool:
    return node[1] in context.spec.microdata[node[0]].columns


def settle(context: Context, rows: Mapping[str, Rows], needs: Needs) -> dict[str, Rows]:
    """Makes everything known that rows need: inherits, applies what applies and derives, until nothing is left."""
    found = {
        entity: inherit(context, some, rows.get(group_of(context.spec, entity) or ""), needs)
        for entity, some in rows.items()
    }
    nodes = {node for wanted in needs.values() for node in wanted if not _is_column(context, node)}
    while True:
        found = {entity: context.advanced(some, needs[entity]) for entity, some in found.items()}
        due = sorted(node for node in nodes if _looks_at(context, node) <= found[_member(context, node)].applied)
        if not due:
            return found
        for member in dict.fromkeys(_member(context, node) for node in due):
            found = _derive(context, member, [node for node in due if _member(context, node) == member], found, needs)
        nodes -= set(due)


def _member(context: Context, node: Node) -> str:
    return context.meanings.member_of(node)


def _made(context: Context, node: Node) -> Derived:
    return context.spec.derive[node[0]][node[1]]


def _looks_at(context: Context, node: Node) -> set[Node]:
    made = _made(context, node)
    asked = context.meanings.nodes(_member(context, node), made.where)
    return asked | ({context.meanings.source_of(node)} if made.value_of is not None else set())


def _derive(
    context: Context, member: str, nodes: Sequence[Node], rows: Mapping[str, Rows], needs: Needs
) -> dict[str, Rows]:
    """Aggregates the rows of each group, and hands the results to the groups and to the rows that need them."""
    brought = {_brought(context, node): _alone(context, node, rows[member]) for node in nodes}
    prepared = context.engine.keep(rows[member].table.mutate(**brought))
    known = prepared.filter(prepared[GROUP].notnull())
    totals = {context.name(node): _total(_made(context, node), known[_brought(context, node)]) for node in nodes}
    facts = known.group_by(GROUP).agg(**totals)
    found: dict[str, Rows] = {}
    for entity, some in rows.items():
        wanted = [node for node in nodes if node in needs[entity]]
        table = prepared if entity == member else some.table
        if wanted:
            table = _joined(context, table, facts, wanted, own=entity == member)
        table = table.drop(*brought) if entity == member else table
        places = {**some.places, **{node: (context.name(node),) for node in wanted}}
        found[entity] = replace(some, table=table, places=places, applied=some.applied | set(wanted))
    return found


def _brought(context: Context, node: Node) -> str:
    return f"{context.name(node)}_brought"


def _joined(context: Context, table: ir.Table, facts: ir.Table, nodes: Sequence[Node], *, own: bool) -> ir.Table:
    """A table with what was derived; rows without a group are alone in one of their own."""
    names = [context.name(node) for node in nodes]
    right = facts.select(GROUP, *names).rename(fact_key=GROUP)
    both = table.left_join(right, table[GROUP] == right.fact_key)
    filled: dict[str, ir.Value] = {}
    for node, name in zip(nodes, names, strict=True):
        made = _made(context, node)
        instead = _of_one(made, both[_brought(context, node)]) if own else ibis.literal(_of_nobody(made), "int64")
        filled[name] = both.fact_key.notnull().ifelse(both[name], instead)
    return both.mutate(**filled).drop("fact_key")


def _alone(context: Context, node: Node, rows: Rows) -> ir.IntegerColumn:
    """What one row brings to a derived attribute: 1 or 0, or the place of its value (null where it brings none)."""
    made = _made(context, node)
    met = TRUE if made.where is None else meets(context.meanings, rows.entity, made.where, rows.of)
    if made.value_of is None:
        return met.ifelse(1, 0).cast("int64")
    first, *others = rows.of(context.meanings.source_of(node))
    value = (first >= 0).ifelse(first, NOT_STATED)
    for other in others:
        value = other.isnull().ifelse(value, NOT_STATED)
    return met.ifelse(value, NOTHING)


def _total(made: Derived, brought: ir.IntegerColumn) -> ir.IntegerScalar:
    """A derived attribute of a group, out of what its rows bring."""
    if made.number_of is not None:
        return brought.nullif(0).count()
    if made.any is not None:
        return (brought.max() > 0).ifelse(YES, NO).cast("int64")
    return (brought.count() == 1).ifelse(brought.max(), NOT_STATED).cast("int64")


def _of_one(made: Derived, brought: ir.IntegerColumn) -> ir.IntegerColumn:
    """The derived attribute of a row that is alone in a group of its own."""
    if made.any is not None:
        return (brought > 0).ifelse(YES, NO).cast("int64")
    return brought if made.number_of is not None else brought.fill_null(NOT_STATED)


def _of_nobody(made: Derived) -> int:
    """The derived attribute of a group without rows."""
    if made.number_of is not None:
        return 0
    return NO if made.any is not None else NOT_STATED
