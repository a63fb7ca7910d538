"""Bounds what one unit can do: one row for each id, and a rank under the cap that looks at one group only.

Only groups that may need it are sorted and hashed: those with more rows than the smallest cap, and those that may hold
an id twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import ibis
import ibis.expr.types as ir

from release_specs.language.microdata import Entity
from tabulation.identity import GROUP, RECORD, hashed
from tabulation.logic import FALSE
from tabulation.needs import keep_first_of, singles_of
from tabulation.places import meets
from tabulation.rows import RANK, SINGLE, Context, Rows
from tabulation.sources import file_columns

BUCKET = "bucket"
FIELDS = 15
"""Ids of a group are told apart by fields of four bits in one 64-bit sum."""
SPREAD = 2**20 * FIELDS
DOUBLED = sum(0b1110 << (4 * field) for field in range(FIELDS))
"""The bits that are set where some field counted more than one."""


def bound_rows(context: Context, rows: Rows, cap: int | None) -> Rows:
    """The rows with singles taken out of their groups, one for each id, and their rank where there is a cap."""
    declared, condition = context.declared(rows), singles_of(context.meanings, rows.entity)
    if condition is not None:
        rows = context.advanced(rows, context.with_what_decides(context.meanings.nodes(rows.entity, condition)))
        single = meets(context.meanings, rows.entity, condition, rows.of)
        rows = replace(rows, table=rows.table.mutate(**{SINGLE: single}))
    once = is_deduplicated(declared)
    if not once and cap is None:
        return _out_of_groups(rows)
    within = [GROUP, *([SINGLE, BUCKET] if condition is not None else [])] if declared.group is not None else []
    if BUCKET in within:
        rows = replace(rows, table=rows.table.mutate(**{BUCKET: _bucket(rows.table, once=once)}))
    suspects = context.engine.keep(_suspects(context, rows, within, cap=cap, once=once))
    rest = rows.table.anti_join(suspects, list(suspects.columns))
    some = rows.table.semi_join(suspects, list(suspects.columns))
    if once:
        some = _once(context, replace(rows, table=some), [*within[:2], _own_id(rows, declared)])
    if cap is not None:
        rest = rest.mutate(**{RANK: ibis.literal(0, "int64")})
        some = _ranked(context, replace(rows, table=some), cap)
    done = [*(name for name, _ in rows.cells.values()), *(name for name in within if name == BUCKET)]
    rest = rest.drop(*done)
    table = context.engine.keep(ibis.union(rest, some.select(*rest.columns)))
    return _out_of_groups(replace(rows, table=table, cells={}))


def is_deduplicated(declared: Entity) -> bool:
    """Whether rows with one id count once."""
    return declared.key is not None and declared.duplicates == "keep_one" and declared.built_from is None


def _suspects(context: Context, rows: Rows, within: Sequence[str], *, cap: int | None, once: bool) -> ir.Table:
    """Keys of the groups that may hold an id twice or exceed the cap; of the ids themselves without groups."""
    table = rows.table
    if not within:
        own = _own_id(rows, context.declared(rows))
        known = table.filter(table[own].notnull())
        counted = known.group_by(own).agg(number=known.count())
        return counted.filter(counted.number > 1).select(own)
    known = table.filter(table[GROUP].notnull())
    fields = {"number": known.count()}
    if once:
        fields["fields"] = _field_of(known[RECORD]).sum()
    counted = known.group_by(list(within)).agg(**fields)
    suspect = FALSE
    if cap is not None:
        suspect = counted.number > cap
        suspect = suspect & ~counted[SINGLE] if SINGLE in within else suspect
    if once:
        doubled = counted.fields.cast("int64") & ibis.literal(DOUBLED, "int64")
        suspect = suspect | (counted.number > FIELDS) | (doubled.fill_null(0) != 0)
    return counted.filter(suspect).select(*within)


def _once(context: Context, rows: Rows, identity: Sequence[str]) -> ir.Table:
    """Of rows with one identity the one with the smallest hash; rows without an id are all different."""
    same = [rows.table[name] for name in identity]
    counted = replace(rows, table=rows.table.mutate(same=rows.table.count().over(group_by=same)))
    table = counted.table
    several = (table.same > 1) & table[identity[-1]].notnull()
    hashes = (_row_hash(context, counted), _id_hash(context, counted))
    order = [several.ifelse(found, "") for found in hashes]
    number = ibis.row_number().over(group_by=[table[name] for name in identity], order_by=order)
    numbered = table.mutate(order=several.ifelse(number, 0))
    return numbered.filter(numbered.order == 0).drop("order", "same")


def _row_hash(context: Context, rows: Rows) -> ir.StringColumn:
    """SHA-256 of all declared columns as read."""
    columns: dict[str, None] = {}
    for owner in (rows.entity, *context.built_groups(rows.entity)):
        facts = context.spec.microdata[owner]
        columns |= {column: None for name in facts.columns for column in file_columns(facts, name)}
    return hashed(context.key, context.sources[rows.entity], [rows.cell(column) for column in columns])


def _id_hash(context: Context, rows: Rows) -> ir.StringColumn:
    """SHA-256 of the ids as read."""
    declared = context.declared(rows)
    keys = dict.fromkeys([*(declared.group or {}).values(), *(declared.key or ())])
    return hashed(context.key, context.sources[rows.entity], [rows.cell(column) for column in keys])


def _ranked(context: Context, rows: Rows, cap: int) -> ir.Table:
    """The rows with their rank in their group, from 0; singles are members of no group. Few need to be hashed."""
    within = [GROUP, *([SINGLE] if SINGLE in rows.table.columns else [])]
    size = rows.table.count().over(group_by=[rows.table[name] for name in within])
    counted = replace(rows, table=rows.table.mutate(size=size))
    table = counted.table
    concerned = table.size > cap
    if SINGLE in within:
        concerned = concerned & ~table[SINGLE]
    order = [concerned.ifelse(part, "") for part in _order(context, counted)]
    first = keep_first_of(context.meanings, rows.entity)
    if first is not None:
        order.insert(0, meets(context.meanings, rows.entity, first, counted.of).ifelse(0, 1))
    rank = ibis.row_number().over(group_by=[table[name] for name in within], order_by=order)
    return table.mutate(**{RANK: concerned.ifelse(rank, 0).cast("int64")}).drop("size")


def _order(context: Context, rows: Rows) -> list[ir.StringValue]:
    """What the rows of a group are sorted by: the hash of their id, or of all they say where they have none."""
    declared = context.declared(rows)
    by_row = _row_hash(context, rows)
    if declared.key is None:
        return [by_row]
    by_id = _id_hash(context, rows)
    if RECORD in rows.table.columns:
        return [rows.table[RECORD].isnull().ifelse(by_row, by_id)]
    return [by_id, by_row]


def _own_id(rows: Rows, declared: Entity) -> str:
    """The column that tells rows of an entity apart: groups by their key, records by their id."""
    return RECORD if declared.group is not None or GROUP not in rows.table.columns else GROUP


def _out_of_groups(rows: Rows) -> Rows:
    """Singles are members of no group."""
    if SINGLE not in rows.table.columns:
        return rows
    group = rows.table[SINGLE].ifelse(ibis.null(rows.table[GROUP].type()), rows.table[GROUP])
    return replace(rows, table=rows.table.mutate(**{GROUP: group}))


def _number_of(own: ir.Value) -> ir.IntegerColumn:
    """An id as a number that is not negative: whole numbers by their last digits, so that neighbours differ."""
    number = own if isinstance(own, ir.IntegerValue) else own.hash()
    return (number % SPREAD + SPREAD) % SPREAD


def _field_of(own: ir.Value) -> ir.IntegerColumn:
    """A one in the field that an id falls into."""
    return (ibis.literal(2.0) ** (_number_of(own) % FIELDS * 4).cast("float64")).cast("int64")


def _bucket(table: ir.Table, *, once: bool) -> ir.IntegerColumn:
    """Where singles are told apart by their ids, in parts that are small whatever the size of their group."""
    if not once:
        return ibis.literal(0, "int64")
    part = (_number_of(table[RECORD]) / FIELDS).floor().cast("int64")
    return table[SINGLE].ifelse(part.fill_null(0), 0)
