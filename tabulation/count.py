"""Counts every tally of a release inside the engine and fetches the cells, never a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import product
from operator import and_, or_
from typing import Any

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from release_specs.domain import Attribute, Hierarchy
from release_specs.meanings import NOT_APPLICABLE, NOT_STATED, Meanings
from release_specs.tallies import Tally, extended_size
from tabulation.clusters import Adder, Cluster, adder_of, clusters_of, may_not_apply
from tabulation.counts import ExactCounts, Integers, Leaves, ancestors, integers_of
from tabulation.engines.engine import Engine
from tabulation.logic import NOTHING, TRUE, surely
from tabulation.numbers import held
from tabulation.places import index_of, meets, meets_all
from tabulation.records import prepare_records
from tabulation.rows import RANK, Context, Rows
from tabulation.sources import Source


def count_tallies(
    meanings: Meanings, engine: Engine, sources: Mapping[str, Source], tallies: Sequence[Tally], key: bytes
) -> dict[str, ExactCounts]:
    """The exact counts of every tally by its name."""
    rows = prepare_records(Context(meanings, engine, sources, key), tallies)
    found: dict[str, ExactCounts] = {}
    for entity in rows:
        clusters = clusters_of(meanings, (tally for tally in tallies if tally.entity == entity))
        found |= _count_entity(_Counting(meanings, engine, rows[entity], clusters), clusters)
    return {tally.name: found[tally.name] for tally in tallies}


def _count_entity(counting: _Counting, clusters: Sequence[Cluster]) -> dict[str, ExactCounts]:
    """All clusters of an entity: one alone is counted in the pass that reads; several share what was read once."""
    tables = [counting.keyed(cluster) for cluster in clusters]
    if len(clusters) > 1:
        kept = counting.keep(clusters)
        tables = [counting.part(kept, number, cluster) for number, cluster in enumerate(clusters)]
    found: dict[str, ExactCounts] = {}
    for cluster, table in zip(clusters, tables, strict=True):
        found |= _read_off(cluster, counting.engine.fetch(_totals(table, cluster)))
    return found


class _Counting:
    """Turns the rows of an entity into keys."""

    def __init__(self, meanings: Meanings, engine: Engine, rows: Rows, clusters: Sequence[Cluster]) -> None:
        self.meanings, self.engine, self.rows = meanings, engine, rows
        self._areas: dict[tuple[str, str], str] = {}
        for cluster in clusters:
            self._add_areas(cluster)

    def _add_areas(self, cluster: Cluster) -> None:
        """Adds the number of each row's area at the cluster's level, where that is not the smallest."""
        spine, level = cluster.spine, cluster.level
        if spine is None or level is None or level == spine.smallest or (spine.name, level) in self._areas:
            return
        upwards = ancestors(spine, spine.smallest, level)
        name, key = f"area{len(self._areas)}", f"area{len(self._areas)}_key"
        place = self._place(spine)
        onto = self.engine.lookup({key: np.arange(len(upwards)), name: upwards})
        table = self.rows.table.left_join(onto, place == onto[key]).drop(key)
        self.rows = replace(self.rows, table=table.mutate(**{name: table[name].fill_null(-1)}))
        self._areas[spine.name, level] = name

    def _place(self, spine: Hierarchy) -> ir.IntegerColumn:
        """The number of a row's smallest area; negative where it is left out."""
        (place,) = self.rows.of(self.meanings.area_node(self.rows.entity, spine.name))
        return place

    def keys(self, cluster: Cluster) -> list[ir.IntegerValue]:
        """The keys of a row: one, or one for each of its answers; null where it is in no cell."""
        counted = self._counted(cluster.first)
        area = self._area(cluster)
        if area is not None:
            counted = counted & (area >= 0)
        keys = []
        for indices in product(*(self._indices(cluster, attribute) for attribute in cluster.attributes)):
            doubtful = [index for index, sure in indices if not sure]
            inside = reduce(and_, (surely(index >= 0) for index in doubtful), counted)
            keys.append(self._key(cluster, area, [index for index, _ in indices], inside))
        return keys

    def _key(
        self,
        cluster: Cluster,
        area: ir.IntegerValue | None,
        indices: Sequence[ir.IntegerValue],
        inside: ir.BooleanValue,
    ) -> ir.IntegerValue:
        cell: ir.IntegerValue = ibis.literal(0, "int64")
        for size, index in zip(cluster.sizes, indices, strict=True):
            cell = cell * size + index
        if cluster.first.elsewhere:
            cell = inside.ifelse(cell, cluster.cells - 1)
            inside = self._within_cap(cluster.first)
            inside = inside & (area >= 0) if area is not None else inside
        key = cell if area is None else area * cluster.cells + cell
        return inside.ifelse(key, NOTHING).cast("int64")

    def _counted(self, tally: Tally) -> ir.BooleanValue:
        """Whether a row is of the universe and within the cap."""
        conditions = self.meanings.conditions(tally.universe)
        return self._within_cap(tally) & meets_all(self.meanings, tally.entity, conditions, self.rows.of)

    def _within_cap(self, tally: Tally) -> ir.BooleanValue:
        return TRUE if tally.cap is None else self.rows.table[RANK] < tally.cap

    def _area(self, cluster: Cluster) -> ir.IntegerValue | None:
        """The number of a row's area at the cluster's level; negative where it is left out."""
        if cluster.spine is None or cluster.level is None:
            return None
        name = self._areas.get((cluster.spine.name, cluster.level))
        return self._place(cluster.spine) if name is None else self.rows.table[name]

    def _indices(self, cluster: Cluster, attribute: Attribute) -> list[tuple[ir.IntegerValue, bool]]:
        """The index of each answer in an attribute, and whether every row surely has one.

        It is negative where an answer is an earlier one again, where nothing was answered or where it does not apply.
        """
        hidden, optional = extended_size(attribute) - 1, attribute in cluster.optional
        places = self.rows.of((attribute.owner, attribute.base))
        indices = [index_of(self.meanings, attribute, place) for place in places]
        applies = not may_not_apply(self.meanings, attribute)
        if len(indices) == 1 and applies:
            (index,) = indices
            return [((index >= 0).ifelse(index, hidden) if attribute.hidden else index, True)]
        found: list[tuple[ir.IntegerValue, bool]] = []
        for index in indices:
            value = ibis.cases(
                (index >= 0, index),
                (index == NOT_APPLICABLE, hidden + 1 if optional else -1),
                (index == NOT_STATED, hidden if attribute.hidden else -1),
                else_=-1,
            )
            again = [surely(index == earlier) for earlier in indices[: len(found)]]
            found.append((reduce(or_, again).ifelse(-1, value) if again else value, optional and len(indices) == 1))
        return found

    def adder(self, adder: Adder) -> ir.IntegerValue:
        """What a row adds beside itself: an amount, 0 where it has none, or a mark that it counts, null where not."""
        entity = self.rows.entity
        if adder.where is not None:
            return meets(self.meanings, entity, adder.where, self.rows.of).ifelse(1, NOTHING)
        name = adder.usable or (adder.adds.column if adder.adds is not None else "")
        node = self.meanings.node(entity, name)
        (place,) = self.rows.of(node)
        usable = surely(place >= 0)
        if adder.adds is None:
            return usable.ifelse(1, NOTHING)
        summand = adder.adds
        tick = held(place + self.meanings.base(node).origin, summand.low, summand.high)
        return usable.ifelse(tick * summand.factor - summand.shift, 0).cast("decimal(18, 0)")

    def keyed(self, cluster: Cluster) -> ir.Table:
        """One row for each key of each row, with what it adds."""
        keys = self.keys(cluster)
        adds = {f"a{number}": self.adder(adder) for number, adder in enumerate(cluster.adders)}
        key = keys[0] if len(keys) == 1 else ibis.array(keys).unnest()
        return self.rows.table.select(key=key, **adds)

    def keep(self, clusters: Sequence[Cluster]) -> ir.Table:
        """The keys of all clusters, computed in one pass over the rows."""
        columns: dict[str, ir.Value] = {}
        for number, cluster in enumerate(clusters):
            columns |= {f"k{number}_{slot}": key for slot, key in enumerate(self.keys(cluster))}
            columns |= {f"a{number}_{place}": self.adder(adder) for place, adder in enumerate(cluster.adders)}
        return self.engine.keep(self.rows.table.select(**columns))

    def part(self, kept: ir.Table, number: int, cluster: Cluster) -> ir.Table:
        """One cluster's keys out of those that were kept."""
        slots = [kept[name] for name in kept.columns if name.startswith(f"k{number}_")]
        adds = {f"a{place}": kept[f"a{number}_{place}"] for place in range(len(cluster.adders))}
        return kept.select(key=slots[0] if len(slots) == 1 else ibis.array(slots).unnest(), **adds)


def _totals(table: ir.Table, cluster: Cluster) -> ir.Table:
    """The totals by key; rows that are in no cell have one total of their own, under no key."""
    sums = {
        f"a{number}": table[f"a{number}"].count() if adder.adds is None else table[f"a{number}"].sum()
        for number, adder in enumerate(cluster.adders)
    }
    return table.group_by("key").agg(number=table.count(), **sums)


def _read_off(cluster: Cluster, fetched: pa.Table) -> dict[str, ExactCounts]:
    """Every tally out of a cluster: other attributes are summed, rows to which its own do not apply are left out."""
    if fetched["key"].null_count:
        fetched = fetched.filter(pc.is_valid(fetched["key"]))
    leaves = Leaves(cluster.level, cluster.cells, integers_of(fetched["key"]))
    numbers: dict[Adder | None, Any] = {None: integers_of(fetched["number"])}
    numbers |= {adder: integers_of(fetched[f"a{number}"]) for number, adder in enumerate(cluster.adders)}
    return {
        tally.name: ExactCounts(tally, leaves, numbers[adder_of(tally)], _own_cells(tally, cluster))
        for tally in cluster.tallies
    }


def _own_cells(tally: Tally, cluster: Cluster) -> Integers | None:
    """For each cell of a cluster that of a tally, negative where there is none; None where they are the same."""
    if tally.elsewhere or (tally.attributes == cluster.attributes and tally.shape == cluster.sizes):
        return None
    indices = dict(zip(cluster.attributes, np.indices(cluster.sizes or (1,)).reshape(-1, cluster.cells), strict=False))
    inside, cell = np.ones(cluster.cells, np.bool_), np.zeros(cluster.cells, np.int64)
    for attribute, size in zip(tally.attributes, tally.shape, strict=True):
        inside &= indices[attribute] < size
        cell = cell * size + indices[attribute]
    return np.where(inside, cell, -1)
