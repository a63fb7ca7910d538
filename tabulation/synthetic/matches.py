"""Tests of a condition, turned into questions about places: which places of which column meet them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from release_specs.domain import Attribute, Domain, Scale
from release_specs.language.conditions import Criterion
from release_specs.language.values import Range, read_range
from release_specs.reading.resolve import group_of, members_of
from release_specs.spec import ReleaseSpec
from tabulation.synthetic.errors import SynthesisError
from tabulation.synthetic.variables import Bools, Integers, Variables, as_point

EDITION = "edition"
YES_NO = {"yes": 0, "no": 1}
ROW_COUNTS = Scale(Fraction(0), None)


@dataclass(frozen=True, slots=True)
class Match:
    """Which places a test wants: the True ones of `table`, or those in `spans`. No value never meets it."""

    table: Bools | None = None
    spans: tuple[tuple[int, int | None], ...] = ()
    negated: bool = False

    def meets(self, places: Integers) -> Bools:
        """For each row whether it meets the test; a row of several answers meets it with any of them."""
        found = _any_answer(self._wanted(places))
        return ~found & _any_answer(places >= 0) if self.negated else found

    def _wanted(self, places: Integers) -> Bools:
        if self.table is not None:
            found: Bools = self.table[places]  # the last two entries stand for the places -1 and -2
            return found
        found = np.zeros(places.shape, dtype=np.bool_)
        for first, last in self.spans:
            found |= (places >= max(first, 0)) & (True if last is None else places <= last)
        return found


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a test means for an entity: the owner and base column whose places decide, and which of them are wanted.

    `spine` is that of an area column.
    """

    owner: str
    base: str
    derived: bool
    match: Match
    spine: str | None = None


@dataclass(slots=True)
class Meanings:
    """The meaning of every test of a spec, each found once."""

    spec: ReleaseSpec
    domain: Domain
    variables: Variables
    _known: dict[tuple[str, Criterion], Meaning] = field(default_factory=dict)

    def of(self, entity: str, test: Criterion) -> Meaning:
        """What `test` asks of a row of `entity`."""
        if (entity, test) not in self._known:
            attribute = self.domain.attribute(entity, test.column)
            if attribute is not None:
                self._known[entity, test] = self._find(attribute, test)
            elif (owner := self._area_owner(entity, test.column)) is not None:
                self._known[entity, test] = self._find_area(owner, test)
            else:
                raise SynthesisError(f"a condition names '{test.column}', which means nothing for '{entity}'")
        return self._known[entity, test]

    def can_read(self, entity: str, columns: frozenset[str]) -> bool:
        """Whether all these names mean something for rows of `entity`, and one of them is its own."""
        owners = [self._owner(entity, column) for column in columns]
        return None not in owners and entity in owners

    def _owner(self, entity: str, name: str) -> str | None:
        attribute = self.domain.attribute(entity, name)
        return self._area_owner(entity, name) if attribute is None else attribute.owner

    def _area_owner(self, entity: str, name: str) -> str | None:
        owners = (owner for owner in (entity, group_of(self.spec, entity)) if owner is not None)
        return next((owner for owner in owners if self._is_area(owner, name)), None)

    def _is_area(self, owner: str, name: str) -> bool:
        return (owner, name) in self.variables and self.variables[owner, name].column.area is not None

    def _find_area(self, owner: str, test: Criterion) -> Meaning:
        variable = self.variables[owner, test.column]
        match = _code_match(variable.place_of, test.wanted, test)
        return Meaning(owner, test.column, derived=False, match=match, spine=variable.column.area)

    def coding_of(self, owner: str, base: str) -> dict[str, int] | Scale:
        """How the values of a column or derived attribute are numbered: codes by name, or a scale."""
        if (owner, base) in self.variables:
            variable = self.variables[owner, base]
            return variable.scale or variable.place_of
        made = self.spec.derive[owner][base]
        if made.any is not None:
            return YES_NO
        if made.number_of is not None:
            return ROW_COUNTS
        return self.coding_of(*self.source_of(owner, made.value_of or ""))

    def source_of(self, group: str, column: str) -> tuple[str, str]:
        """The member entity and its column that a `value_of` of a group looks at."""
        for member in members_of(self.spec, group):
            attribute = self.domain.attribute(member, column)
            if attribute is not None and attribute.owner == member:
                return member, attribute.base
        raise SynthesisError(f"derive.{group}: '{column}' is not a column of the rows of '{group}'")

    def _find(self, attribute: Attribute, test: Criterion) -> Meaning:
        coding = self.coding_of(attribute.owner, attribute.base)
        parts = tuple(part for word in test.wanted for part in self._parts(attribute, word))
        match = _scale_match(coding, parts, test) if isinstance(coding, Scale) else _code_match(coding, parts, test)
        return Meaning(attribute.owner, attribute.base, attribute.derived, match)

    def _parts(self, attribute: Attribute, word: str) -> Iterator[str | Range]:
        if word == EDITION and attribute.code_named(EDITION) is None:
            yield self._edition(attribute)
        elif attribute.coded:
            category = attribute.code_named(word)
            yield from category.holds if category is not None else ()
        else:
            yield read_range(word)

    def _edition(self, attribute: Attribute) -> str | Range:
        """The release's edition, the account's first, or else the first declared value."""
        account = self.spec.privacy.account
        named = [self.spec.release.edition, *(account.editions or () if account else ())]
        for edition in (name for name in named if name is not None):
            if attribute.coded and (category := attribute.code_named(edition)) is not None:
                return category.holds[0]
            if attribute.scale is not None and (point := as_point(edition)) is not None:
                return Range(point, point)
        return attribute.coded[0].holds[0] if attribute.scale is None else Range(*[attribute.scale.low] * 2)


def _any_answer(found: Bools) -> Bools:
    return found if found.ndim == 1 else np.logical_or.reduce(found, axis=1)


def _code_match(coding: dict[str, int], parts: tuple[str | Range, ...], test: Criterion) -> Match:
    table = np.zeros(len(coding) + 2, dtype=np.bool_)
    table[[coding[part] for part in parts if isinstance(part, str) and part in coding]] = True
    return Match(table=table, negated=test.negated)


def _scale_match(scale: Scale, parts: tuple[str | Range, ...], test: Criterion) -> Match:
    spans = tuple(scale.span(part) for part in parts if isinstance(part, Range) and scale.fits(part))
    return Match(spans=spans, negated=test.negated)
