"""From cells to bounded records: who a row is, whether it counts, what its group is, and its rank under the cap.

The steps are those of `docs/tabulation.md`, section 3. Each is an expression over the one before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import ibis.expr.types as ir

from release_specs.language.conditions import Condition
from release_specs.language.microdata import Entity
from release_specs.meanings import Node
from release_specs.reading.resolve import group_of, members_of
from release_specs.tallies import Tally
from tabulation.bound import bound_rows, is_deduplicated
from tabulation.errors import MicrodataError
from tabulation.groups import build_groups, inherit, settle
from tabulation.identity import GROUP, RECORD, id_of, joined
from tabulation.needs import Needs, columns_needed, keep_first_of, needs_of
from tabulation.places import meets
from tabulation.reading import Reading, read_columns
from tabulation.rows import Context, Rows
from tabulation.sources import Kind, Source, file_columns


def prepare_records(context: Context, tallies: Sequence[Tally]) -> dict[str, Rows]:
    """The rows of each entity, with everything known that the tallies look at, and their rank under the cap."""
    needs, spec = needs_of(context.meanings, tallies), context.spec
    rows: dict[str, Rows] = {}
    for entity in sorted(needs, key=lambda name: group_of(spec, name) is not None):
        if spec.microdata[entity].built_from is None:
            rows[entity] = _read(context, entity, needs, rows, _smallest_cap(tallies, entity))
    for entity in needs:
        source = spec.microdata[entity].built_from
        if source is not None:
            rows[entity] = _selected(context, build_groups(context, entity, rows[source], needs), needs, {})
    return settle(context, rows, needs)


def _smallest_cap(tallies: Sequence[Tally], entity: str) -> int | None:
    return min((tally.cap for tally in tallies if tally.entity == entity and tally.cap is not None), default=None)


def _read(context: Context, entity: str, needs: Needs, others: Mapping[str, Rows], cap: int | None) -> Rows:
    """The rows of one file: read, identified, selected and bounded."""
    declared, source = context.spec.microdata[entity], context.sources[entity]
    columns = _columns(context, entity, needs, hashing=cap is not None or is_deduplicated(declared))
    cells = {name: (f"c{index}", source.kinds[name]) for index, name in enumerate(columns)}
    readings = readings_of(context, entity, needs, cells)
    table = read_columns(context.engine, context.engine.cells(source, columns), readings)
    own = {reading.base.node: reading.places for reading in readings if reading.base.node[0] == entity}
    rows = _identified(context, Rows(entity, table, own, cells))
    rows = _selected(context, rows, needs, others)
    first = keep_first_of(context.meanings, entity)
    if cap is not None and first is not None:
        rows = _known_early(context, rows, first, "keep_first", gathered=(needs, others))
    return bound_rows(context, rows, cap)


def _columns(context: Context, entity: str, needs: Needs, *, hashing: bool) -> list[str]:
    """The columns of a file that are read: those of places, of ids, and all declared ones where rows are hashed."""
    declared = context.spec.microdata[entity]
    found: dict[str, None] = {}
    for owner in (entity, *context.built_groups(entity)):
        facts = context.spec.microdata[owner]
        names = (
            facts.columns if hashing else [name for _, name in sorted(columns_needed(context.meanings, needs, owner))]
        )
        found |= {column: None for name in names for column in file_columns(facts, name)}
    keys = [*(declared.group or {}).values(), *(declared.key or ())] if _is_identified(context, entity) else []
    return list(found | dict.fromkeys(keys))


def readings_of(
    context: Context, entity: str, needs: Needs, cells: Mapping[str, tuple[str, Kind]], *, told: bool = False
) -> list[Reading]:
    """How the needed columns of a file are read, those of groups that are built from it too."""
    return [
        _reading(context, node, context.sources[entity], cells, told=told)
        for owner in (entity, *context.built_groups(entity))
        for node in sorted(columns_needed(context.meanings, needs, owner))
    ]


def _reading(
    context: Context, node: Node, source: Source, cells: Mapping[str, tuple[str, Kind]], *, told: bool
) -> Reading:
    declared = context.spec.microdata[node[0]]
    held = file_columns(declared, node[1])
    if declared.built_from is not None:
        declared = declared.model_copy(update={"read": context.spec.microdata[declared.built_from].read})
    names, kinds = tuple(cells[name][0] for name in held), tuple(cells[name][1] for name in held)
    return Reading(context.meanings.base(node), declared, source, kinds, names, context.name(node), told)


def _is_identified(context: Context, entity: str) -> bool:
    """Whether anything depends on who a row is."""
    declared = context.spec.microdata[entity]
    return declared.group is not None or is_deduplicated(declared) or bool(members_of(context.spec, entity))


def _identified(context: Context, rows: Rows) -> Rows:
    """The rows with the ids of their group and their own."""
    entity, declared = rows.entity, context.declared(rows)
    if not _is_identified(context, entity):
        return rows
    ids: dict[str, ir.Value] = {}
    group = group_of(context.spec, entity)
    link = declared.group[group] if declared.group is not None and group is not None else None
    if link is not None and group is not None:
        ids[GROUP] = _id(context, rows, link, as_number=_groups_are_numbers(context, group))
    elif members_of(context.spec, entity) and declared.key is not None:
        ids[GROUP] = _id(context, rows, declared.key[0], as_number=_groups_are_numbers(context, entity))
    own = [column for column in declared.key or () if column != link]
    if own and is_deduplicated(declared):
        whole = len(own) == 1 and rows.cells[own[0]][1] is Kind.WHOLE
        ids[RECORD] = joined([_id(context, rows, column, as_number=whole) for column in own])
    return replace(rows, table=rows.table.mutate(**ids))


def _id(context: Context, rows: Rows, column: str, *, as_number: bool) -> ir.Value:
    cell, kind = rows.cell(column)
    return id_of(cell, kind, context.sources[rows.entity], context.declared(rows), as_number=as_number)


def _groups_are_numbers(context: Context, group: str) -> bool:
    """Whether every file that names these groups stores whole numbers."""
    named: list[tuple[str, Entity, str]] = [
        (member, facts, facts.group[group])
        for member in members_of(context.spec, group)
        if (facts := context.spec.microdata[member]).group is not None and member in context.sources
    ]
    kinds = [context.sources[member].kinds[column] for member, _, column in named]
    declared = context.spec.microdata[group]
    if declared.built_from is None and declared.key is not None:
        kinds.append(context.sources[group].kinds[declared.key[0]])
    return all(kind is Kind.WHOLE for kind in kinds)


def _selected(context: Context, rows: Rows, needs: Needs, others: Mapping[str, Rows]) -> Rows:
    """The rows of this release."""
    only = context.declared(rows).only
    if only is None:
        return rows
    rows = _known_early(context, rows, only, "only", gathered=(needs, others))
    return replace(rows, table=rows.table.filter(meets(context.meanings, rows.entity, only, rows.of)))


def _known_early(
    context: Context, rows: Rows, condition: Condition, word: str, *, gathered: tuple[Needs, Mapping[str, Rows]]
) -> Rows:
    """The rows with all that a condition looks at, before groups are gathered: nothing derived is known yet."""
    needs, others = gathered
    asked = context.with_what_decides(context.meanings.nodes(rows.entity, condition))
    group = group_of(context.spec, rows.entity)
    if any(owner != rows.entity for owner, _ in asked) and group is not None:
        rows = inherit(context, rows, others.get(group), needs)
    if not asked <= set(rows.places):
        message = f"'{word}' of '{rows.entity}' looks at what is derived or built from rows; name columns of files"
        raise MicrodataError("looks-too-far", rows.entity, message)
    return context.advanced(rows, asked)
