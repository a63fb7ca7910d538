"""The population while it grows: the rows of every entity, what has been drawn of them, and what they meet."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from release_specs.language.conditions import Condition, Criterion
from tabulation.synthetic.matches import YES_NO, Meanings
from tabulation.synthetic.variables import NOTHING, Bools, Integers


class Role(IntEnum):
    """A row's part in its group: the first of it, a later one, or alone as the law's `singles` are."""

    FIRST = 0
    LATER = 1
    SINGLE = 2


EVERY_ROLE = frozenset(Role)


@dataclass(slots=True)
class Rows:
    """The rows of one entity. `parent` is the row of the group each lies in, `role` its part there.

    Rows that lie in no group have neither parents nor positions in it.
    """

    entity: str
    count: int
    role: Integers
    parent: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    position: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    archetype: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int16))
    areas: dict[str, Integers] = field(default_factory=dict)
    places: dict[str, Integers] = field(default_factory=dict)

    @property
    def nested(self) -> bool:
        """Whether they lie in groups."""
        return len(self.parent) > 0

    def part(self, chosen: Integers) -> Rows:
        """Some of the rows, with nothing drawn of them yet."""
        areas = {spine: places[chosen] for spine, places in self.areas.items()}
        parent, position = (found[chosen] if self.nested else found for found in (self.parent, self.position))
        return Rows(self.entity, len(chosen), self.role[chosen], parent, position, self.archetype[chosen], areas)


@dataclass(slots=True)
class Population:
    """All rows, and what the names of the spec mean for them."""

    meanings: Meanings
    rows: dict[str, Rows]

    def meets(self, entity: str, condition: Condition) -> Bools:
        """For each row of `entity` whether it meets the condition. No value meets no test, negated or not."""
        met = np.zeros(self.rows[entity].count, dtype=np.bool_)
        for clause in condition.any_of:
            met |= self.meets_all(entity, clause)
        return met

    def meets_all(self, entity: str, tests: tuple[Criterion, ...]) -> Bools:
        """For each row of `entity` whether it meets all of the tests."""
        met = np.ones(self.rows[entity].count, dtype=np.bool_)
        for test in tests:
            meaning = self.meanings.of(entity, test)
            places = self.places_of(meaning.owner, meaning.base)
            found = meaning.match.meets(places)
            met &= found if meaning.owner == entity else found[self.rows[entity].parent]
        return met

    def places_of(self, owner: str, base: str) -> Integers:
        """What was drawn of a column, or follows for a derived attribute; one entry for each row of `owner`."""
        drawn = self.rows[owner].places.get(base)
        return self._derive(owner, base) if drawn is None else drawn

    def _derive(self, group: str, name: str) -> Integers:
        """An attribute of groups from their rows; singles are members of no group."""
        made = self.meanings.spec.derive[group][name]
        if made.value_of is not None:
            member, base = self.meanings.source_of(group, made.value_of)
        else:
            member, base = made.number_of or made.any or "", ""
        rows, groups = self.rows[member], self.rows[group].count
        chosen = rows.role != Role.SINGLE
        if made.where is not None:
            chosen = chosen & self.meets(member, made.where)
        numbers = np.bincount(rows.parent[chosen], minlength=groups)
        if made.number_of is not None:
            return numbers
        if made.any is not None:
            return np.where(numbers > 0, YES_NO["yes"], YES_NO["no"])
        values = np.full(groups, NOTHING, dtype=np.int64)
        places = self.places_of(member, base)
        values[rows.parent[chosen]] = places[chosen] if places.ndim == 1 else places[chosen, 0]
        return np.where(numbers == 1, values, NOTHING)
