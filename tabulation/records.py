"""From cells to bounded records: who a row is, whether it counts, what its group is, and its rank under the cap.

The steps are those of `docs/tabulation.md`, section 3. Each is an expression over the one before. Only groups that may
need it are sorted: those with more rows than the smallest cap, and those that may hold an id twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import ibis
import ibis.expr.types as ir

from release_specs.language.conditions import Condition
from release_specs.language.microdata import Entity
from release_specs.reading.resolve import group_of, members_of
from release_specs.tallies import Tally
from tabulation.bases import NO, NOT_APPLICABLE, NOT_STATED, YES, Meanings, Node
from tabulation.engines.engine import Engine
from tabulation.errors import MicrodataError
from tabulation.identity import GROUP, RECORD, hashed, id_of, joined
from tabulation.logic import FALSE, NOTHING, TRUE
from tabulation.needs import Needs, keep_first_of, needs_of, singles_of
from tabulation.places import meets
from tabulation.reading import Reading, read_columns
from tabulation.sources import Kind, Source, file_columns

SINGLE, RANK, BUCKET = "is_single", "rank", "bucket"
FIELDS = 15
"""Ids of a group are told apart by fields of four bits in one 64-bit sum."""
SPREAD = 2**20 * FIELDS
DOUBLED = sum(0b1110 << (4 * field) for field in range(FIELDS))
"""The bits that are set where some field counted more than one."""


@dataclass(frozen=True)
class Rows:
    """The rows of an entity while they are worked on: `places` names the columns of each base known so far."""

    entity: str
    table: ir.Table
    places: Mapping[Node, tuple[str, ...]] = field(default_factory=dict)
    cells: Mapping[str, tuple[str, Kind]] = field(default_factory=dict)

    def of(self, node: Node) -> list[ir.IntegerColumn]:
        """The places of a base in these rows."""
        return [self.table[name] for name in self.places[node]]

    def cell(self, column: str) -> tuple[ir.Value, Kind]:
        """A cell as read."""
        name, kind = self.cells[column]
        return self.table[name], kind


class Records:
    """Prepares the rows of every entity that is asked for."""

    def __init__(self, meanings: Meanings, engine: Engine, sources: Mapping[str, Source], key: bytes) -> None:
        self.meanings, self.engine, self.sources, self.key = meanings, engine, sources, key
        self.spec = meanings.spec
        self._names: dict[Node, str] = {}
        self._applied: dict[str, set[Node]] = {}

    def prepare(self, tallies: Sequence[Tally]) -> dict[str, Rows]:
        """The rows of each entity, with everything known that the tallies look at, and their rank under the cap."""
        needs = needs_of(self.meanings, tallies)
        caps = {name: min(t.cap for t in tallies if t.entity == name and t.cap) for name in _capped(tallies)}
        rows: dict[str, Rows] = {}
        for entity in sorted(needs, key=lambda name: group_of(self.spec, name) is not None):
            if self.spec.microdata[entity].built_from is None:
                rows[entity] = self._read(entity, needs, rows, caps.get(entity))
        for entity in needs:
            source = self.spec.microdata[entity].built_from
            if source is not None:
                rows[entity] = self._built(entity, rows[source], needs)
        self._settle(rows, needs)
        return rows

    # Reading: cells, places, ids, rows of this release, one row for each id.

    def _read(self, entity: str, needs: Needs, rows: Mapping[str, Rows], cap: int | None) -> Rows:
        declared, source = self.spec.microdata[entity], self.sources[entity]
        columns = self._columns(entity, needs, hashing=cap is not None or _is_deduplicated(declared))
        cells = {name: (f"c{index}", source.kinds[name]) for index, name in enumerate(columns)}
        table = self.engine.cells(source, columns)
        readings = [
            self._reading((owner, name), source, cells)
            for owner in (entity, *self._built_groups(entity))
            for _, name in sorted(node for node in self._all_needed(needs, owner))
        ]
        table = read_columns(self.engine, table, readings)
        own = {reading.base.node: reading.places for reading in readings if reading.base.node[0] == entity}
        found = self._identified(Rows(entity, table, own, cells))
        found = self._selected(found, needs, rows)
        if cap is not None and (first := keep_first_of(self.meanings, entity)) is not None:
            found = self._known_early(found, first, "keep_first", needs, rows)
        return self._single_and_once(found, cap)

    def _all_needed(self, needs: Needs, owner: str) -> set[Node]:
        """The columns of an entity that its own rows or its group's rows need, wherever they are looked at."""
        columns = self.spec.microdata[owner].columns
        return {node for nodes in needs.values() for node in nodes if node[0] == owner and node[1] in columns}

    def _built_groups(self, entity: str) -> list[str]:
        return [name for name, declared in self.spec.microdata.items() if declared.built_from == entity]

    def _columns(self, entity: str, needs: Needs, *, hashing: bool) -> list[str]:
        """The columns of the file that are read: those of places, of ids, and all declared ones where rows are hashed."""
        declared = self.spec.microdata[entity]
        found: dict[str, None] = {}
        for owner in (entity, *self._built_groups(entity)):
            facts = self.spec.microdata[owner]
            names = list(facts.columns) if hashing else [name for _, name in sorted(self._all_needed(needs, owner))]
            found |= {column: None for name in names for column in file_columns(facts, name)}
        keys = [*(declared.group or {}).values(), *(declared.key or ())] if self._is_identified(entity) else []
        return list(found | dict.fromkeys(keys))

    def _is_identified(self, entity: str) -> bool:
        """Whether anything depends on who a row is."""
        declared = self.spec.microdata[entity]
        return declared.group is not None or _is_deduplicated(declared) or bool(members_of(self.spec, entity))

    def _reading(self, node: Node, source: Source, cells: Mapping[str, tuple[str, Kind]]) -> Reading:
        declared = self.spec.microdata[node[0]]
        held = file_columns(declared, node[1])
        kinds = {cells[name][1] for name in held}
        kind = kinds.pop() if len(kinds) == 1 else Kind.TEXT
        reader = declared if declared.built_from is None else self._reader(declared)
        names = tuple(cells[name][0] for name in held)
        return Reading(self.meanings.base(node), reader, source, kind, names, self._name(node))

    def _reader(self, declared: Entity) -> Entity:
        """A group built from rows is written as the rows' file is."""
        source = self.spec.microdata[declared.built_from or ""]
        return declared.model_copy(update={"read": source.read})

    def _name(self, node: Node) -> str:
        return self._names.setdefault(node, f"p{len(self._names)}")

    def _identified(self, rows: Rows) -> Rows:
        entity, declared = rows.entity, self.spec.microdata[rows.entity]
        if not self._is_identified(entity):
            return rows
        ids: dict[str, ir.Value] = {}
        group = group_of(self.spec, entity)
        link = declared.group[group] if declared.group is not None and group is not None else None
        if link is not None and group is not None:
            ids[GROUP] = self._id(rows, link, as_number=self._groups_are_numbers(group))
        elif members_of(self.spec, entity) and declared.key is not None:
            ids[GROUP] = self._id(rows, declared.key[0], as_number=self._groups_are_numbers(entity))
        own = [column for column in declared.key or () if column != link]
        if own and _is_deduplicated(declared):
            whole = len(own) == 1 and rows.cells[own[0]][1] is Kind.WHOLE
            ids[RECORD] = joined([self._id(rows, column, as_number=whole) for column in own])
        return replace(rows, table=rows.table.mutate(**ids))

    def _id(self, rows: Rows, column: str, *, as_number: bool) -> ir.Value:
        cell, kind = rows.cell(column)
        return id_of(cell, kind, self.sources[rows.entity], self.spec.microdata[rows.entity], as_number=as_number)

    def _groups_are_numbers(self, group: str) -> bool:
        """Whether every file that names these groups stores whole numbers."""
        declared = self.spec.microdata[group]
        kinds = [
            self.sources[member].kinds[facts.group[group]]
            for member in members_of(self.spec, group)
            if (facts := self.spec.microdata[member]).group is not None and member in self.sources
        ]
        if declared.built_from is None and declared.key is not None:
            kinds.append(self.sources[group].kinds[declared.key[0]])
        return all(kind is Kind.WHOLE for kind in kinds)

    def _selected(self, rows: Rows, needs: Needs, others: Mapping[str, Rows]) -> Rows:
        """The rows of this release."""
        only = self.spec.microdata[rows.entity].only
        if only is None:
            return rows
        rows = self._known_early(rows, only, "only", needs, others)
        return replace(rows, table=rows.table.filter(meets(self.meanings, rows.entity, only, rows.of)))

    def _known_early(
        self, rows: Rows, condition: Condition, word: str, needs: Needs, others: Mapping[str, Rows]
    ) -> Rows:
        """The rows with all that a condition looks at, before groups are gathered: nothing derived is known yet."""
        asked = self._with_what_decides(self.meanings.nodes(rows.entity, condition))
        group = group_of(self.spec, rows.entity)
        if any(owner != rows.entity for owner, _ in asked) and group is not None:
            rows = self._inherited(rows, others.get(group), needs)
        if not asked <= set(rows.places):
            message = f"'{word}' of '{rows.entity}' looks at what is derived or built from rows; name columns of files"
            raise MicrodataError("looks-too-far", rows.entity, message)
        return self._advanced(rows, asked)

    def _with_what_decides(self, nodes: Iterable[Node]) -> set[Node]:
        found: set[Node] = set()
        ahead = set(nodes)
        while ahead:
            found |= ahead
            columns = {node: self.spec.microdata[node[0]].columns.get(node[1]) for node in ahead}
            ahead = {
                other
                for node, column in columns.items()
                if column is not None
                for other in self.meanings.nodes(node[0], column.applies_to)
            } - found
        return found

    # One row for each id, and the groups that have to be sorted.

    def _single_and_once(self, rows: Rows, cap: int | None) -> Rows:
        entity, declared = rows.entity, self.spec.microdata[rows.entity]
        condition = singles_of(self.meanings, entity)
        if condition is not None:
            rows = self._advanced(rows, self._with_what_decides(self.meanings.nodes(entity, condition)))
            single = meets(self.meanings, entity, condition, rows.of)
            rows = replace(rows, table=rows.table.mutate(**{SINGLE: single}))
        nested = declared.group is not None
        once = _is_deduplicated(declared)
        if not once and cap is None:
            return _without_group(rows)
        within = [GROUP, *([SINGLE, BUCKET] if condition is not None else [])] if nested else []
        if BUCKET in within:
            rows = replace(rows, table=rows.table.mutate(**{BUCKET: _bucket(rows.table, once=once)}))
        suspects = self.engine.keep(self._suspects(rows, within, cap=cap, once=once))
        rest = rows.table.anti_join(suspects, list(suspects.columns))
        some = rows.table.semi_join(suspects, list(suspects.columns))
        if once:
            some = self._once(replace(rows, table=some), [*within[:2], _own_id(rows, declared)])
        if cap is not None:
            rest = rest.mutate(**{RANK: ibis.literal(0, "int64")})
            some = self._ranked(replace(rows, table=some), cap)
        read = [*(name for name, _ in rows.cells.values()), *(name for name in within if name == BUCKET)]
        table = ibis.union(rest.drop(*read), some.drop(*read).select(*rest.drop(*read).columns))
        return _without_group(replace(rows, table=self.engine.keep(table), cells={}))

    def _suspects(self, rows: Rows, within: Sequence[str], *, cap: int | None, once: bool) -> ir.Table:
        """Keys of the groups that may hold an id twice or exceed the cap; of the ids themselves without groups."""
        table = rows.table
        if not within:
            own = _own_id(rows, self.spec.microdata[rows.entity])
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

    def _once(self, rows: Rows, identity: Sequence[str]) -> ir.Table:
        """Of rows with one identity the one with the smallest hash; rows without an id are all different."""
        same = [rows.table[name] for name in identity]
        counted = replace(rows, table=rows.table.mutate(same=rows.table.count().over(group_by=same)))
        table = counted.table
        several = (table.same > 1) & table[identity[-1]].notnull()
        order = several.ifelse(self._row_hash(counted), "")
        number = ibis.row_number().over(group_by=[table[name] for name in identity], order_by=order)
        numbered = table.mutate(order=several.ifelse(number, 0))
        return numbered.filter(numbered.order == 0).drop("order", "same")

    def _row_hash(self, rows: Rows) -> ir.StringColumn:
        """SHA-256 of all declared columns as read."""
        columns: dict[str, None] = {}
        for owner in (rows.entity, *self._built_groups(rows.entity)):
            facts = self.spec.microdata[owner]
            columns |= {column: None for name in facts.columns for column in file_columns(facts, name)}
        return hashed(self.key, self.sources[rows.entity], [rows.cell(column) for column in columns])

    # Groups: built from rows, inherited by rows, and what is derived for them.

    def _built(self, group: str, source: Rows, needs: Needs) -> Rows:
        """A group for every key that rows carry; a column's value is theirs where they agree."""
        table = source.table.filter(source.table[GROUP].notnull())
        nodes = sorted(self._all_needed(needs, group))
        agreed: dict[str, ir.Value] = {}
        for node in nodes:
            mixed = self.spec.microdata[group].columns[node[1]].mixed
            place = NOT_STATED
            if mixed is not None and mixed.kind == "count_as":
                place = self.meanings.base(node).place_of_text(mixed.code or "")
            column = table[self._name(node)]
            agreed[self._name(node)] = (column.min() == column.max()).ifelse(column.min(), place)
        built = table.group_by(GROUP).agg(**agreed) if agreed else table.select(GROUP).distinct()
        rows = Rows(group, built, {node: (self._name(node),) for node in nodes})
        return self._selected(rows, needs, {})

    def _inherited(self, rows: Rows, group: Rows | None, needs: Needs) -> Rows:
        """The rows with the columns of their group's row that they need; missing values where there is none."""
        if group is None:
            return rows
        nodes = [node for node in sorted(needs[rows.entity]) if node[0] == group.entity and node in group.places]
        nodes = [node for node in nodes if node not in rows.places]
        if not nodes:
            return rows
        names = [name for node in nodes for name in group.places[node]]
        right = group.table.select(GROUP, *names).rename(group_key=GROUP)
        table = rows.table.left_join(right, rows.table[GROUP] == right.group_key)
        filled: dict[str, ir.Value] = {}
        for node in nodes:
            first, *others = group.places[node]
            missing = self._reading_of_missing(node)
            there = table.group_key.notnull()
            filled[first] = there.ifelse(table[first], missing)
        table = table.mutate(**filled).drop("group_key")
        return replace(rows, table=table, places={**rows.places, **{node: group.places[node] for node in nodes}})

    def _reading_of_missing(self, node: Node) -> int:
        declared = self.spec.microdata[node[0]]
        rule = declared.columns[node[1]].missing or declared.defaults.missing
        counted = rule is not None and rule.kind == "count_as"
        return self.meanings.base(node).place_of_text(rule.code or "") if counted and rule is not None else NOT_STATED

    def _settle(self, rows: dict[str, Rows], needs: Needs) -> None:
        """Makes everything known that rows need: applies what applies, derives, inherits, until nothing is left."""
        for entity, found in rows.items():
            group = group_of(self.spec, entity)
            if group is not None:
                rows[entity] = self._inherited(found, rows.get(group), needs)
        for _ in range(1 + sum(len(nodes) for nodes in needs.values())):
            for entity in rows:
                rows[entity] = self._advanced(rows[entity], needs[entity])
            waiting = [node for node in self._derived_nodes(needs) if self._is_due(node, rows)]
            if not waiting:
                return
            for member in dict.fromkeys(self.meanings.member_of(node) for node in waiting):
                mine = [node for node in waiting if self.meanings.member_of(node) == member]
                self._derive(member, mine, rows, needs)

    def _derived_nodes(self, needs: Needs) -> list[Node]:
        nodes = {node for found in needs.values() for node in found}
        return sorted(node for node in nodes if node[1] not in self.spec.microdata[node[0]].columns)

    def _is_due(self, node: Node, rows: Mapping[str, Rows]) -> bool:
        """Whether a derived attribute is not known yet, and all is known that it looks at."""
        member = self.meanings.member_of(node)
        if node in self._applied.get("derived", set()):
            return False
        made = self.spec.derive[node[0]][node[1]]
        asked = self.meanings.nodes(member, made.where)
        if made.value_of is not None:
            asked.add(self.meanings.source_of(node))
        return asked <= self._applied.get(member, set())

    def _derive(self, member: str, nodes: Sequence[Node], rows: dict[str, Rows], needs: Needs) -> None:
        """Aggregates the rows of each group, and hands the results to the groups and to rows that need them."""
        source = rows[member]
        alone = {self._name(node): self._alone(node, source) for node in nodes}
        prepared = source.table.mutate(**{f"{name}_self": value for name, value in alone.items()})
        prepared = self.engine.keep(prepared)
        known = prepared.filter(prepared[GROUP].notnull())
        totals = {self._name(node): self._total(node, known[f"{self._name(node)}_self"]) for node in nodes}
        facts = known.group_by(GROUP).agg(**totals)
        self._applied.setdefault("derived", set()).update(nodes)
        for entity in rows:
            wanted = [node for node in nodes if node in needs[entity]]
            table = prepared if entity == member else rows[entity].table
            if wanted:
                table = self._joined(table, facts, wanted, own=entity == member)
                self._applied.setdefault(entity, set()).update(wanted)
            table = table.drop(*[name for name in table.columns if name.endswith("_self")])
            places = {**rows[entity].places, **{node: (self._name(node),) for node in wanted}}
            rows[entity] = replace(rows[entity], table=table, places=places)

    def _joined(self, table: ir.Table, facts: ir.Table, nodes: Sequence[Node], *, own: bool) -> ir.Table:
        names = [self._name(node) for node in nodes]
        right = facts.select(GROUP, *names).rename(fact_key=GROUP)
        joined_table = table.left_join(right, table[GROUP] == right.fact_key)
        filled = {}
        for node, name in zip(nodes, names, strict=True):
            instead = joined_table[f"{name}_self"] if own else ibis.literal(self._of_nobody(node), "int64")
            instead = self._total_of_one(node, instead) if own else instead
            filled[name] = joined_table.fact_key.notnull().ifelse(joined_table[name], instead)
        return joined_table.mutate(**filled).drop("fact_key")

    def _alone(self, node: Node, rows: Rows) -> ir.IntegerColumn:
        """What one row brings to a derived attribute: 1 or 0, or the place of its value (null where it brings none)."""
        made, member = self.spec.derive[node[0]][node[1]], rows.entity
        met = TRUE if made.where is None else meets(self.meanings, member, made.where, rows.of)
        if made.value_of is None:
            return met.ifelse(1, 0).cast("int64")
        first, *others = rows.of(self.meanings.source_of(node))
        value = (first >= 0).ifelse(first, NOT_STATED)
        for other in others:
            value = other.isnull().ifelse(value, NOT_STATED)
        return met.ifelse(value, NOTHING)

    def _total(self, node: Node, brought: ir.IntegerColumn) -> ir.IntegerScalar:
        made = self.spec.derive[node[0]][node[1]]
        if made.number_of is not None:
            return brought.nullif(0).count()
        if made.any is not None:
            return (brought.max() > 0).ifelse(YES, NO).cast("int64")
        return (brought.count() == 1).ifelse(brought.max(), NOT_STATED).cast("int64")

    def _total_of_one(self, node: Node, brought: ir.IntegerColumn) -> ir.IntegerColumn:
        """The derived attribute of a row that is alone in a group of its own."""
        made = self.spec.derive[node[0]][node[1]]
        if made.any is not None:
            return (brought > 0).ifelse(YES, NO).cast("int64")
        return brought if made.number_of is not None else brought.fill_null(NOT_STATED)

    def _of_nobody(self, node: Node) -> int:
        """The derived attribute of a group without rows."""
        made = self.spec.derive[node[0]][node[1]]
        if made.number_of is not None:
            return 0
        return NO if made.any is not None else NOT_STATED

    def _advanced(self, rows: Rows, wanted: Iterable[Node]) -> Rows:
        """Applies `applies_to` wherever everything it looks at is known."""
        done = self._applied.setdefault(rows.entity, set())
        wanted = [node for node in sorted(wanted) if node in rows.places]
        while True:
            ready = [node for node in wanted if node not in done and self._decided_by(node) <= done]
            if not ready:
                return rows
            changed: dict[str, ir.Value] = {}
            for node in ready:
                changed |= self._applied_places(rows, node)
            done.update(ready)
            rows = replace(rows, table=rows.table.mutate(**changed)) if changed else rows

    def _decided_by(self, node: Node) -> set[Node]:
        column = self.spec.microdata[node[0]].columns.get(node[1])
        return self.meanings.nodes(node[0], column.applies_to) if column is not None else set()

    def _applied_places(self, rows: Rows, node: Node) -> dict[str, ir.Value]:
        column = self.spec.microdata[node[0]].columns.get(node[1])
        if column is None or column.applies_to is None:
            return {}
        applies = meets(self.meanings, node[0], column.applies_to, rows.of)
        first, *others = rows.places[node]
        place, missing = rows.table[first], self._reading_of_missing(node)
        stated = (place == NOT_APPLICABLE).fill_null(FALSE).ifelse(missing, place)
        changed: dict[str, ir.Value] = {first: applies.ifelse(stated, NOT_APPLICABLE).cast("int64")}
        changed |= {name: applies.ifelse(rows.table[name], NOTHING) for name in others}
        return changed

    # The cap.

    def _ranked(self, rows: Rows, cap: int) -> ir.Table:
        """The rows with their rank in their group, from 0; singles are members of no group. Few need to be hashed."""
        within = [GROUP, *([SINGLE] if SINGLE in rows.table.columns else [])]
        size = rows.table.count().over(group_by=[rows.table[name] for name in within])
        counted = replace(rows, table=rows.table.mutate(size=size))
        table = counted.table
        concerned = table.size > cap
        if SINGLE in within:
            concerned = concerned & ~table[SINGLE]
        order = [concerned.ifelse(part, "") for part in self._order(counted)]
        first = keep_first_of(self.meanings, rows.entity)
        if first is not None:
            order.insert(0, meets(self.meanings, rows.entity, first, counted.of).ifelse(0, 1))
        rank = ibis.row_number().over(group_by=[table[name] for name in within], order_by=order)
        return table.mutate(**{RANK: concerned.ifelse(rank, 0).cast("int64")}).drop("size")

    def _order(self, rows: Rows) -> list[ir.StringValue]:
        """What the rows of a group are sorted by: the hash of their id, or of all they say where they have none."""
        declared = self.spec.microdata[rows.entity]
        by_row = self._row_hash(rows)
        if declared.key is None:
            return [by_row]
        keys = dict.fromkeys([*(declared.group or {}).values(), *declared.key])
        by_id = hashed(self.key, self.sources[rows.entity], [rows.cell(column) for column in keys])
        if RECORD in rows.table.columns:
            return [rows.table[RECORD].isnull().ifelse(by_row, by_id)]
        return [by_id, by_row]


def _capped(tallies: Sequence[Tally]) -> set[str]:
    return {tally.entity for tally in tallies if tally.cap is not None}


def _is_deduplicated(declared: Entity) -> bool:
    return declared.key is not None and declared.duplicates == "keep_one" and declared.built_from is None


def _own_id(rows: Rows, declared: Entity) -> str:
    """The column that tells rows of an entity apart: groups by their key, records by their id."""
    return RECORD if declared.group is not None or GROUP not in rows.table.columns else GROUP


def _without_group(rows: Rows) -> Rows:
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
