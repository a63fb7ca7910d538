"""How far one protected unit moves exact counts, beside what the privacy law declares for it.

`shape_of` says from the words of the law what a tally is: what is counted, what decides where, in how many cells.
`Outcome` is everything a run shows: its stages, its error if it has one, and its counts. `faults` compares the outcomes
of two neighbours. Nothing here knows how the product counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mechanisms.sensitivity import RECORD, Counts, Decides, Relation, Rows, Shape, Sums, Unit
from release_specs.domain import Domain
from release_specs.language.conditions import Condition
from release_specs.load import Loaded
from release_specs.reading.resolve import group_of, members_of
from release_specs.spec import ReleaseSpec
from release_specs.tallies import EXACT, Tally, tallies_of
from tabulation.errors import MicrodataError
from tabulation.tabulate import open_dataset, tabulate

KEY = bytes(range(32))
ADD_REMOVE, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE
Integers = npt.NDArray[np.int64]


# What the law says.


Node = tuple[str, str]
"""An entity, and a column or derived attribute of it."""


def deciding(spec: ReleaseSpec, domain: Domain, tally: Tally) -> set[Node]:
    """Everything whose value decides whether a row is counted, where, and what it adds; the area too."""
    conditions: list[Condition | None] = [tally.where, spec.microdata[tally.entity].only]
    universe = tally.universe
    while universe in spec.universes:
        conditions.append(spec.universes[universe].where)
        universe = spec.universes[universe].of
    if tally.entity in spec.privacy.caps and spec.privacy.at_most is not None:
        conditions.append(spec.privacy.at_most.keep_first)
    names = {name for condition in conditions if condition is not None for name in condition.columns()}
    names |= {name for name in (tally.usable, tally.adds.column if tally.adds is not None else None) if name}
    found = {(attribute.owner, attribute.base) for attribute in tally.attributes}
    found |= {_node(spec, domain, tally.entity, name) for name in names}
    if tally.spine is not None:
        carrier = domain.spines[tally.entity][tally.spine.name]
        found |= {(carrier, name) for name, one in spec.microdata[carrier].columns.items() if one.area is not None}
    return _with_what_applies(spec, domain, found)


def _node(spec: ReleaseSpec, domain: Domain, entity: str, name: str) -> Node:
    """What a name stands for in rows of an entity; an area column is no attribute."""
    attribute = domain.attribute(entity, name)
    if attribute is not None:
        return attribute.owner, attribute.base
    return (entity if name in spec.microdata[entity].columns else group_of(spec, entity) or entity), name


def _with_what_applies(spec: ReleaseSpec, domain: Domain, nodes: set[Node]) -> set[Node]:
    """Values, and those that decide whether they apply, and so on."""
    found: set[Node] = set()
    ahead = set(nodes)
    while ahead:
        found |= ahead
        columns = [(owner, spec.microdata[owner].columns.get(name)) for owner, name in ahead]
        rules = [(owner, one.applies_to) for owner, one in columns if one is not None and one.applies_to is not None]
        ahead = {_node(spec, domain, owner, name) for owner, rule in rules for name in rule.columns()} - found
    return found


def decides(spec: ReleaseSpec, domain: Domain, tally: Tally) -> Decides:
    """What decides in which cell a row is counted: its own columns, its group, or its members."""
    nodes = deciding(spec, domain, tally)
    if group_of(spec, tally.entity) is not None and any(owner != tally.entity for owner, _ in nodes):
        return Decides.GROUP
    made = {(owner, name) for owner, derived in spec.derive.items() for name in derived}
    read_off = {(owner, name) for owner, name in nodes if spec.microdata[owner].built_from is not None}
    return Decides.MEMBERS if members_of(spec, tally.entity) and (nodes & made or read_off) else Decides.OWN


def unit_of(spec: ReleaseSpec) -> Unit:
    """Whose presence is hidden: a group with its cap, or one record."""
    members = members_of(spec, spec.privacy.protect)
    return Unit(members=max(spec.privacy.caps[member] for member in members)) if members else RECORD


def shape_of(spec: ReleaseSpec, domain: Domain, tally: Tally, cells: int) -> Shape:
    """What the law's table says a tally is, where all its cells at one level are so many."""
    of = Rows.GROUPS if members_of(spec, tally.entity) else Rows.RECORDS
    by = decides(spec, domain, tally)
    cap = tally.cap if of is Rows.RECORDS else None
    if tally.adds is not None:
        low, high = tally.adds.bounds
        return Sums(low, high, of=of, by=by, one_cell=cells == 1, cap=cap)
    answers = prod(min(attribute.up_to, attribute.size or 1) for attribute in tally.attributes)
    return Counts(of=of, by=by, one_cell=cells == 1, answers=answers, cap=cap)


def declared(
    loaded: Loaded, tally: Tally, cells: int, relation: Relation, *, unit: Unit | None = None
) -> tuple[int, int]:
    """The largest L1 and the largest squared L2 that the law allows; counts are whole, so both are rounded down."""
    shape = shape_of(loaded.spec, loaded.domain, tally, cells)
    bound = shape.sensitivity(unit or unit_of(loaded.spec), relation)
    return int(bound.l1), int(bound.l2_squared)


# What a run shows.


@dataclass(frozen=True)
class Outcome:
    """What one run shows: the stages it told, its error in full, and for each tally and level every cell."""

    stages: tuple[str, ...]
    error: str | None = None
    counts: Mapping[tuple[str, str | None], Integers] = field(default_factory=dict)

    @property
    def public(self) -> object:
        """All of it that is not confidential: neighbours agree on it."""
        return self.stages, self.error, {name: counts.shape for name, counts in self.counts.items()}

    def of(self, other: Outcome) -> Outcome:
        """The part about the tallies that another outcome has too; all of it where one of them has an error."""
        if self.error is not None or other.error is not None:
            return self
        return replace(self, counts={name: one for name, one in self.counts.items() if name in other.counts})


def outcome_of(
    loaded: Loaded,
    places: Mapping[str, Path],
    *,
    edition: str | None = None,
    tallies: Sequence[Tally] | None = None,
) -> Outcome:
    """Runs the product on files; `tallies` instead of the spec's own, by the same names."""
    stages: list[str] = []
    try:
        sources = open_dataset(loaded.spec, loaded.domain, {name: str(place) for name, place in places.items()})
        stages.append("opened")
        found = tabulate(
            loaded.spec, loaded.domain, sources, key=KEY, edition=edition, tallies=tallies, tell=stages.append
        )
    except MicrodataError as fault:
        return Outcome(tuple(stages), f"{type(fault).__name__} {fault}")
    cells = {(name, level): one.dense(level) for name, one in found.items() for level in levels_of(one.tally)}
    return Outcome(tuple(stages), None, cells)


def levels_of(tally: Tally) -> Sequence[str | None]:
    """The levels at which a tally is published; none where it has no geography."""
    return tally.levels or (None,)


def faults(
    loaded: Loaded, one: Outcome, other: Outcome, relation: Relation, *, unit: Unit | None = None
) -> Iterator[str]:
    """Everything in which the outcomes of two neighbours differ more than the law allows."""
    if one.public != other.public:
        yield f"what is public differs: {one.stages} {one.error} and {other.stages} {other.error}"
        return
    for tally in tallies_of(loaded.spec, loaded.domain) if one.error is None else ():
        if tally.table == EXACT:
            continue  # outside the guarantee, by declaration
        for level in levels_of(tally) if (tally.name, levels_of(tally)[0]) in one.counts else ():
            before, after = one.counts[tally.name, level], other.counts[tally.name, level]
            most = declared(loaded, tally, before.size, relation, unit=unit)
            moved = norms(after - before)
            if any(found > bound for found, bound in zip(moved, most, strict=True)):
                yield f"{tally.name} at {level} moved by {moved}, and the law allows {most}"


def norms(change: Integers) -> tuple[int, int]:
    """L1 and squared L2, in Python's integers: sums may be large."""
    numbers = [int(number) for number in change[change != 0].ravel()]
    return sum(abs(number) for number in numbers), sum(number**2 for number in numbers)
