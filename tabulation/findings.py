"""What a custodian should know about the files: confidential findings, gathered without noise and told to nobody else.

They say which values are missing, outside or unknown and how often, which rows are dropped and why, how large groups
are, and whether the rows keep the spec's rules. Nothing in them may leave the private folder they are written to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import ibis
import ibis.expr.types as ir

from release_specs.domain import Domain
from release_specs.language.conditions import Condition, write_condition
from release_specs.language.values import Range
from release_specs.meanings import NOT_APPLICABLE, Meanings
from release_specs.reading.resolve import group_of, members_of
from release_specs.spec import ReleaseSpec
from release_specs.tallies import Tally, tallies_of
from tabulation.boundary import confidential
from tabulation.count import count_tallies
from tabulation.engines.engine import Engine
from tabulation.identity import GROUP
from tabulation.logic import NOTHING
from tabulation.numbers import ABOVE, BELOW
from tabulation.reading import MISSING, OUTSIDE, Reading, probed, text_of
from tabulation.records import prepare_records, readings_of
from tabulation.rows import Context, Rows
from tabulation.rules_kept import broken_rules
from tabulation.sources import Source, TextFile, file_columns, key_columns, unread
from tabulation.tabulate import Tell, Work, check_edition, new_key, tell_nobody, with_an_engine

STATES = {
    "valid": None,
    "not applicable": NOT_APPLICABLE,
    "missing or unreadable": MISSING,
    "outside the codes": OUTSIDE,
    "below the range": BELOW,
    "above the range": ABOVE,
}
MOST_VALUES = 50
LARGEST_SIZE = 60


@dataclass
class ColumnFindings:
    """One declared column: how many cells are in each state, and the commonest that are not valid."""

    states: dict[str, int]
    unknown: list[tuple[str, int]] = field(default_factory=list)
    beyond_clip: int | None = None


@dataclass
class EntityFindings:
    """One file: its rows, what was dropped, its columns, and the sizes of its groups."""

    rows: int
    invalid_lines: int
    counted: int
    columns: dict[str, ColumnFindings]
    undeclared: list[str]
    sizes: dict[int, int] = field(default_factory=dict)
    cap: int | None = None
    without_group_row: int | None = None
    groups_without_rows: int | None = None


@dataclass
class Findings:
    """Everything that was found."""

    entities: dict[str, EntityFindings]
    universes: dict[str, int]
    dropped_by_cap: dict[str, int]
    impossible: list[tuple[str, int]]
    broken_rules: list[tuple[str, str, int, int]]


@confidential("inspecting")
def inspect(  # noqa: PLR0913
    spec: ReleaseSpec,
    domain: Domain,
    sources: Mapping[str, Source],
    *,
    edition: str | None = None,
    work: Work | None = None,
    tell: Tell = tell_nobody,
) -> Findings:
    """Looks at every record, draws nothing and pays nothing. Raises `MicrodataError`."""
    check_edition(spec, edition)
    meanings, key = Meanings(spec, domain, edition), new_key()
    return with_an_engine(work or Work(), tell, lambda engine: _found(meanings, engine, sources, key))


def _found(meanings: Meanings, engine: Engine, sources: Mapping[str, Source], key: bytes) -> Findings:
    context = Context(meanings, engine, sources, key)
    entities = {entity: _columns_of(context, entity) for entity in sources}
    rows = prepare_records(context, _all_rows(meanings.spec))
    for entity, found in entities.items():
        _add_groups(context, entity, rows, found)
    return _counted(meanings, Context(meanings, engine, sources, key), entities)


def _all_rows(spec: ReleaseSpec) -> list[Tally]:
    """The rows of every entity, with and without the cap."""
    counts = [Tally("findings", entity, entity, entity, (), None, ()) for entity in spec.microdata]
    capped = [
        replace(tally, statistic=f"{tally.statistic} within the cap", cap=spec.privacy.caps[tally.entity])
        for tally in counts
        if tally.entity in spec.privacy.caps
    ]
    return [*counts, *capped]


def _columns_of(context: Context, entity: str) -> EntityFindings:
    """The states of every declared column of a file."""
    declared, source = context.spec.microdata[entity], context.sources[entity]
    owners = (entity, *context.built_groups(entity))
    nodes = {(owner, name) for owner in owners for name in context.spec.microdata[owner].columns}
    held = [column for owner, name in sorted(nodes) for column in file_columns(context.spec.microdata[owner], name)]
    columns = list(dict.fromkeys([*held, *key_columns(declared)]))
    cells = {name: (f"c{index}", source.kinds[name]) for index, name in enumerate(columns)}
    table = context.engine.cells(source, columns)
    readings = readings_of(context, entity, {entity: nodes}, cells, told=True)
    kept = context.engine.keep(probed(context.engine, table, readings))
    totals = {"rows": kept.count(), "invalid": _invalid_lines(kept, source)}
    for reading in readings:
        totals |= _state_counts(kept, reading)
    (found,) = context.engine.fetch(kept.agg(**totals)).to_pylist()
    return EntityFindings(
        rows=found["rows"],
        invalid_lines=found["invalid"],
        counted=found["rows"],
        columns={reading.base.node[1]: _column(context, kept, reading, found) for reading in readings},
        undeclared=unread(source, columns),
        cap=context.spec.privacy.caps.get(entity),
    )


def _invalid_lines(table: ir.Table, source: Source) -> ir.IntegerScalar:
    """How many lines have the wrong number of fields: only their cells are null."""
    if isinstance(source, TextFile) and not source.read.quoted_newlines and "c0" in table.columns:
        return table.c0.isnull().ifelse(1, NOTHING).count()
    return ibis.literal(0)


def _state_counts(table: ir.Table, reading: Reading) -> dict[str, ir.Value]:
    found: dict[str, ir.Value] = {}
    for place in reading.places:
        for number, state in enumerate(STATES.values()):
            met = table[place] >= 0 if state is None else table[place] == state
            found[f"{place}_{number}"] = met.ifelse(1, NOTHING).count()
    return found


def _column(context: Context, table: ir.Table, reading: Reading, found: Mapping[str, int]) -> ColumnFindings:
    states = {name: sum(found[f"{place}_{number}"] for place in reading.places) for number, name in enumerate(STATES)}
    return ColumnFindings(
        {name: number for name, number in states.items() if number},
        _unknown_values(context, table, reading),
        _beyond_clip(context, table, reading),
    )


def _unknown_values(context: Context, table: ir.Table, reading: Reading) -> list[tuple[str, int]]:
    """The commonest cells that hold something and are neither valid nor not applicable, as they stand in the file."""
    cells = reading.cells if len(reading.cells) == len(reading.places) else reading.cells[:1]
    parts = [
        table.filter(table[place] < NOT_APPLICABLE).select(value=text_of(table[cell], reading.kind))
        for cell, place in zip(cells, reading.places, strict=False)
    ]
    values = ibis.union(*parts) if len(parts) > 1 else parts[0]
    values = values.filter(values.value.length() > 0)
    counted = values.group_by("value").agg(number=values.count())
    ordered = counted.order_by([ibis.desc("number"), "value"]).limit(MOST_VALUES)
    return [(_shown(row["value"], reading.source), row["number"]) for row in context.engine.fetch(ordered).to_pylist()]


def _shown(text: str, source: Source) -> str:
    """A cell as a person would read it."""
    if isinstance(source, TextFile) and not source.read.quoted_newlines:
        return text.encode("latin-1").decode(source.read.encoding, "backslashreplace")
    return text


def _beyond_clip(context: Context, table: ir.Table, reading: Reading) -> int | None:
    """How many valid values a clip changes."""
    column = reading.base.column
    clip = column.clip if column is not None else None
    if not isinstance(clip, Range) or reading.base.scale is None:
        return None
    first, last = reading.base.scale.span(clip)
    place = table[reading.place]
    beyond = (place >= 0) & ((place < first) | (place > (last if last is not None else first)))
    (found,) = context.engine.fetch(table.agg(number=beyond.ifelse(1, NOTHING).count())).to_pylist()
    return int(found["number"])


def _add_groups(context: Context, entity: str, rows: Mapping[str, Rows], found: EntityFindings) -> None:
    """Sizes of groups, records without a group's row, and groups without records."""
    group = group_of(context.spec, entity)
    if group is not None and GROUP in rows[entity].table.columns:
        table = rows[entity].table
        known = table.filter(table[GROUP].notnull())
        sizes = known.group_by(GROUP).agg(size=known.count())
        held = (sizes.size > LARGEST_SIZE).ifelse(LARGEST_SIZE, sizes.size)
        by_size = sizes.select(size=held).group_by("size").agg(number=ibis._.count()).order_by("size")
        found.sizes = {int(row["size"]): int(row["number"]) for row in context.engine.fetch(by_size).to_pylist()}
        if context.spec.microdata[group].built_from is None:
            orphans = known.anti_join(rows[group].table.select(GROUP), GROUP)
            found.without_group_row = _number(context, orphans)
    members = [name for name in members_of(context.spec, entity) if name in rows]
    if members and context.spec.microdata[entity].built_from is None:
        empty = rows[entity].table
        for member in members:
            table = rows[member].table
            empty = empty.anti_join(table.filter(table[GROUP].notnull()).select(GROUP).distinct(), GROUP)
        found.groups_without_rows = _number(context, empty)


def _number(context: Context, table: ir.Table) -> int:
    (found,) = context.engine.fetch(table.agg(number=table.count())).to_pylist()
    return int(found["number"])


def _counted(meanings: Meanings, context: Context, entities: dict[str, EntityFindings]) -> Findings:
    """Everything that is counted like a table: universes, the cap's loss, impossible rows, rules."""
    spec = meanings.spec
    universes = [
        Tally("findings", f"universe {name}", _entity(meanings, name), name, (), None, ()) for name in spec.universes
    ]
    impossible = list(_impossible(meanings))
    tables = [tally for tally in tallies_of(spec, meanings.domain) if tally.statistic == "count"]
    wanted = [*_all_rows(spec), *universes, *(tally for _, tally in impossible), *(tables if spec.rules else [])]
    counts = count_tallies(meanings, context.engine, context.sources, wanted, context.key)
    total = {tally.name: int(counts[tally.name].dense(None).sum()) for tally in wanted if tally.spine is None}
    for entity, found in entities.items():
        found.counted = total[f"findings.{entity}"]
    return Findings(
        entities,
        {name: total[f"findings.universe {name}"] for name in spec.universes},
        {
            name: total[f"findings.{name}"] - total[f"findings.{name} within the cap"]
            for name in spec.privacy.caps
            if f"findings.{name}" in total
        },
        [(str(write_condition(condition)), total[tally.name]) for condition, tally in impossible],
        broken_rules(meanings, counts),
    )


def _entity(meanings: Meanings, universe: str) -> str:
    while universe in meanings.spec.universes:
        universe = meanings.spec.universes[universe].of
    return universe


def _impossible(meanings: Meanings) -> Iterator[tuple[Condition, Tally]]:
    """Each impossible combination with the rows of the first entity that has all its columns."""
    for number, condition in enumerate(meanings.spec.impossible):
        entity = next((name for name in meanings.spec.microdata if _has(meanings, name, condition)), None)
        if entity is not None:
            yield condition, Tally("findings", f"impossible {number}", entity, entity, (), None, (), where=condition)


def _has(meanings: Meanings, entity: str, condition: Condition) -> bool:
    try:
        meanings.nodes(entity, condition)
    except KeyError:
        return False
    return True
