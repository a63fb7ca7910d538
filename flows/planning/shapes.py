"""From a tally to a line of the privacy law's table: what is counted, what decides where, in how many cells.

Nothing is assumed that the spec does not declare. What decides about a row is everything that tabulation reads to count
it: attributes, universe, area, `only`, `keep_first`, and what decides whether each of them applies. Where something
belongs to the row's group, or is derived from its members, the law's larger line is taken; where the law has no line,
the table is refused.
"""

from __future__ import annotations

from math import prod

from flows.terminal import UserError
from mechanisms.sensitivity import (
    RECORD,
    Counts,
    Decides,
    NoProvedBound,
    Relation,
    Rows,
    Sensitivity,
    Shape,
    Sums,
    Unit,
)
from release_specs.meanings import Meanings, Node
from release_specs.reading.resolve import group_of, members_of
from release_specs.spec import ReleaseSpec
from release_specs.tallies import Tally, extended_size
from tabulation.needs import needs_of


def unit_of(spec: ReleaseSpec) -> Unit:
    """Whose presence is hidden: a group of at most so many rows, or one record.

    Where several entities are nested in the group, each tally's own cap bounds its rows further.
    """
    members = members_of(spec, spec.privacy.protect)
    if not members:
        return RECORD
    caps = spec.privacy.caps
    without = [member for member in members if member not in caps]
    if without:
        raise UserError(f"privacy.at_most: {', '.join(without)} have no cap, so nothing bounds one unit; add it")
    return Unit(members=max(caps[member] for member in members))


def relation_of(spec: ReleaseSpec) -> Relation:
    """Which two datasets are neighbours."""
    return Relation(spec.privacy.neighbours)


def shape_of(meanings: Meanings, tally: Tally, level: str | None) -> Shape:
    """What the law's table calls a tally at one level, hidden cells included."""
    spec = meanings.spec
    _require_tied(spec, tally)
    of = Rows.GROUPS if members_of(spec, tally.entity) else Rows.RECORDS
    by = _decides(meanings, tally, of)
    cap = tally.cap if of is Rows.RECORDS else None
    one_cell = tally.areas(level) * tally.cells == 1
    try:
        if tally.adds is not None:
            low, high = tally.adds.bounds
            return Sums(low, high, of=of, by=by, one_cell=one_cell, cap=cap)
        return Counts(of=of, by=by, one_cell=one_cell, answers=_answers(tally), cap=cap)
    except ValueError as fault:
        raise UserError(f"tables.{tally.table}: {tally.statistic} has no price: {fault}") from None


def sensitivity_of(shape: Shape, spec: ReleaseSpec, *, tally: Tally) -> Sensitivity:
    """How far one protected unit moves a tally; a tally without a proved bound is refused by name."""
    try:
        return shape.sensitivity(unit_of(spec), relation_of(spec))
    except NoProvedBound as refusal:
        raise UserError(
            f"tables.{tally.table}: {tally.statistic} has no proved bound on one of {spec.privacy.protect}: {refusal}"
        ) from None


def attributes_of(meanings: Meanings, tally: Tally) -> frozenset[str]:
    """Every column and derived attribute whose value has a say in a tally, as entity.name; areas are told by levels."""
    nodes = {node for found in needs_of(meanings, [tally]).values() for node in found}
    return frozenset(f"{owner}.{name}" for owner, name in nodes if not _is_area(meanings.spec, (owner, name)))


def _is_area(spec: ReleaseSpec, node: Node) -> bool:
    column = spec.microdata[node[0]].columns.get(node[1])
    return column is not None and column.area is not None


def _require_tied(spec: ReleaseSpec, tally: Tally) -> None:
    """A tally counts the protected unit, its rows, or its records' groups, and groups lie in no groups."""
    protect = spec.privacy.protect
    members, group = members_of(spec, protect), group_of(spec, protect)
    if members and group is not None:
        raise UserError(f"privacy.protect: {protect} have members and lie in {group}; groups in groups have no bound")
    if tally.entity not in (protect, *members, group):
        raise UserError(f"tables.{tally.table}: rows of {tally.entity} are not tied to {protect}, the protected unit")


def _decides(meanings: Meanings, tally: Tally, of: Rows) -> Decides:
    """What has a say in where a row is counted, the furthest from the row itself."""
    spec, nodes = meanings.spec, needs_of(meanings, [tally])[tally.entity]
    others = any(owner != tally.entity for owner, _ in nodes)
    if of is Rows.RECORDS:
        return Decides.GROUP if others else Decides.OWN
    entity = spec.microdata[tally.entity]
    read_off = any(entity.built_from is not None or name not in entity.columns for _, name in nodes)
    return Decides.MEMBERS if others or read_off else Decides.OWN


def _answers(tally: Tally) -> int:
    """The most cells in which one row is counted: every combination of its answers, "not stated" among them."""
    return prod(min(attribute.up_to, extended_size(attribute)) for attribute in tally.attributes)
