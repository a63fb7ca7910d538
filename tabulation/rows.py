"""The rows of an entity while they are worked on, and what every step of the work shares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import ibis.expr.types as ir

from release_specs.language.microdata import Entity
from release_specs.meanings import NOT_APPLICABLE, NOT_STATED, Meanings, Node
from tabulation.engines.engine import Engine
from tabulation.logic import NOTHING, surely
from tabulation.places import meets
from tabulation.sources import Kind, Source

SINGLE, RANK = "is_single", "rank"


@dataclass(frozen=True)
class Rows:
    """The rows of an entity: `places` names the columns of each base known so far, `applied` those that are final.

    A base is final once `applies_to` was looked at. `cells` are the columns of the file as read.
    """

    entity: str
    table: ir.Table
    places: Mapping[Node, tuple[str, ...]] = field(default_factory=dict)
    cells: Mapping[str, tuple[str, Kind]] = field(default_factory=dict)
    applied: frozenset[Node] = frozenset()

    def of(self, node: Node) -> list[ir.IntegerColumn]:
        """The places of a base in these rows."""
        return [self.table[name] for name in self.places[node]]

    def cell(self, column: str) -> tuple[ir.Value, Kind]:
        """A cell as read."""
        name, kind = self.cells[column]
        return self.table[name], kind


class Context:
    """What every step needs: the spec's meanings, the engine, the sources, the key of the run, and column names."""

    def __init__(self, meanings: Meanings, engine: Engine, sources: Mapping[str, Source], key: bytes) -> None:
        self.meanings, self.engine, self.sources, self.key = meanings, engine, sources, key
        self.spec = meanings.spec
        self._names: dict[Node, str] = {}

    def name(self, node: Node) -> str:
        """The column of a base's places."""
        return self._names.setdefault(node, f"p{len(self._names)}")

    def declared(self, rows: Rows) -> Entity:
        """What the spec declares about some rows."""
        return self.spec.microdata[rows.entity]

    def built_groups(self, entity: str) -> list[str]:
        """The groups that are built from the rows of an entity."""
        return [name for name, declared in self.spec.microdata.items() if declared.built_from == entity]

    def place_of_missing(self, node: Node) -> int:
        """The place of a column's missing values."""
        declared = self.spec.microdata[node[0]]
        rule = declared.columns[node[1]].missing or declared.defaults.missing
        if rule is None or rule.kind != "count_as":
            return NOT_STATED
        return self.meanings.base(node).place_of_text(rule.code or "")

    def with_what_decides(self, nodes: Iterable[Node]) -> set[Node]:
        """Bases, and those that decide whether they apply, and so on."""
        found: set[Node] = set()
        ahead = set(nodes)
        while ahead:
            found |= ahead
            ahead = {other for node in ahead for other in self.decided_by(node)} - found
        return found

    def decided_by(self, node: Node) -> set[Node]:
        """The bases that decide whether a base applies."""
        column = self.spec.microdata[node[0]].columns.get(node[1])
        return self.meanings.nodes(node[0], column.applies_to) if column is not None else set()

    def advanced(self, rows: Rows, wanted: Iterable[Node]) -> Rows:
        """The rows with `applies_to` looked at wherever everything is known that it looks at."""
        waiting = [node for node in sorted(wanted) if node in rows.places]
        while True:
            ready = [node for node in waiting if node not in rows.applied and self.decided_by(node) <= rows.applied]
            if not ready:
                return rows
            changed: dict[str, ir.Value] = {}
            for node in ready:
                changed |= self._applied(rows, node)
            table = rows.table.mutate(**changed) if changed else rows.table
            rows = replace(rows, table=table, applied=rows.applied | set(ready))

    def _applied(self, rows: Rows, node: Node) -> dict[str, ir.Value]:
        column = self.spec.microdata[node[0]].columns.get(node[1])
        if column is None or column.applies_to is None:
            return {}
        applies = meets(self.meanings, node[0], column.applies_to, rows.of)
        first, *others = rows.places[node]
        place = rows.table[first]
        stated = surely(place == NOT_APPLICABLE).ifelse(self.place_of_missing(node), place)
        changed: dict[str, ir.Value] = {first: applies.ifelse(stated, NOT_APPLICABLE).cast("int64")}
        return changed | {name: applies.ifelse(rows.table[name], NOTHING) for name in others}
