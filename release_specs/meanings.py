"""What a name means for the rows: bases, the columns and derived attributes, whose values are numbered as places.

A place is the number of a declared code, value or area, from 0. Two places are no values: `NOT_APPLICABLE` and
`NOT_STATED`. An attribute lays categories over the places of its base; a condition wants some of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cached_property

from release_specs.domain import Attribute, Domain, Scale
from release_specs.language.conditions import Condition, Criterion
from release_specs.language.microdata import Column, Entity
from release_specs.language.values import Range, read_range
from release_specs.reading.resolve import group_of, members_of
from release_specs.spec import ReleaseSpec

NOT_APPLICABLE, NOT_STATED = -1, -2
YES, NO = 0, 1

Node = tuple[str, str]
"""An entity and a column or derived attribute of it."""
Span = tuple[int, int | None]
"""Places from first to last; no last place where a count of rows has no end."""


@dataclass(frozen=True)
class Base:
    """A declared column or derived attribute and the values it may have: codes (or areas), or a scale."""

    node: Node
    codes: tuple[str, ...] = ()
    scale: Scale | None = None
    column: Column | None = None

    @cached_property
    def place_of(self) -> dict[str, int]:
        """The place of each code."""
        return {code: place for place, code in enumerate(self.codes)}

    @property
    def answers(self) -> int | None:
        """How many cells of a row are looked at for answers; None where a row has one value and not several answers."""
        if self.column is None or self.column.up_to is None:
            return None
        return len(self.column.columns) if self.column.columns is not None else self.column.up_to

    @property
    def origin(self) -> int:
        """Place 0 of a scale, counted in steps from zero; for days, from the first of January 1970."""
        if self.scale is None:
            raise TypeError(f"'{self.node[1]}' has no scale")
        first = self.scale.value(0)
        return (first - date(1970, 1, 1)).days if isinstance(first, date) else int(first / self.scale.step)

    def place_of_text(self, text: str) -> int:
        """The place of a declared value, such as the one that missing values count as."""
        if self.scale is None:
            return self.place_of[text]
        point = read_range(text).low
        if point is None:
            raise ValueError("a value has two ends")
        return self.scale.index(point)

    def span(self, held: str | Range) -> Span:
        """The places of a code or of a range."""
        if isinstance(held, Range):
            if self.scale is None:
                raise TypeError(f"'{self.node[1]}' has codes, not ranges")
            return self.scale.span(held)
        return self.place_of[held], self.place_of[held]


@dataclass(frozen=True, slots=True)
class Test:
    """What a criterion wants: these places of a base, or any but these."""

    node: Node
    wanted: tuple[Span, ...]
    negated: bool


class Meanings:
    """What the names of a spec mean for the rows of each entity."""

    def __init__(self, spec: ReleaseSpec, domain: Domain, edition: str | None = None) -> None:
        self.spec, self.domain = spec, domain
        self.edition = edition or spec.release.edition
        self._bases: dict[Node, Base] = {}

    def base(self, node: Node) -> Base:
        """A column or derived attribute with its values."""
        if node not in self._bases:
            self._bases[node] = self._find(node)
        return self._bases[node]

    def _find(self, node: Node) -> Base:
        owner, name = node
        column = self.spec.microdata[owner].columns.get(name)
        if column is None:
            return self._derived(node)
        if column.area is not None:
            tree = self.domain.hierarchies[column.area]
            return Base(node, tuple(area.code for area in tree.areas[tree.smallest]), column=column)
        attribute = self.domain.attributes[node]
        codes = tuple(category.code for category in attribute.coded)
        return Base(node, codes, attribute.scale, column)

    def _derived(self, node: Node) -> Base:
        made = self.spec.derive[node[0]][node[1]]
        if made.any is not None:
            return Base(node, ("yes", "no"))
        if made.number_of is not None:
            return Base(node, scale=Scale(Fraction(0), None))
        source = self.base(self.source_of(node))
        return Base(node, source.codes, source.scale)

    def source_of(self, node: Node) -> Node:
        """The column of the rows whose value a derived attribute takes."""
        name = self.spec.derive[node[0]][node[1]].value_of or ""
        for member in members_of(self.spec, node[0]):
            attribute = self.domain.attribute(member, name)
            if attribute is not None and attribute.owner == member:
                return attribute.owner, attribute.base
        raise KeyError(f"'{name}' is no column of the rows of '{node[0]}'")

    def member_of(self, node: Node) -> str:
        """The entity whose rows a derived attribute looks at."""
        made = self.spec.derive[node[0]][node[1]]
        return made.number_of or made.any or self.source_of(node)[0]

    def spans(self, attribute: Attribute) -> list[tuple[int, int | None, int]]:
        """For each category of an attribute the places of its base, in the order of places, neighbours joined."""
        base = self.base((attribute.owner, attribute.base))
        if attribute.scale is not None:
            raise TypeError(f"'{attribute.name}' is its base")
        found = sorted(
            (*base.span(held), index) for index, category in enumerate(attribute.coded) for held in category.holds
        )
        joined: list[tuple[int, int | None, int]] = []
        for first, last, index in found:
            if joined and joined[-1][2] == index and joined[-1][1] == first - 1:
                joined[-1] = (joined[-1][0], last, index)
            else:
                joined.append((first, last, index))
        return joined

    def test(self, entity: str, criterion: Criterion) -> Test:
        """What a criterion wants of rows of an entity."""
        words = [self.edition if word == "edition" else word for word in criterion.wanted]
        attribute = self.domain.attribute(entity, criterion.column)
        node = self.node(entity, criterion.column)
        base = self.base(node)
        spans = [span for word in words if word is not None for span in self._wanted(base, attribute, word)]
        return Test(node, tuple(spans), criterion.negated)

    def _wanted(self, base: Base, attribute: Attribute | None, word: str) -> Iterator[Span]:
        if attribute is None:
            place = base.place_of[word]
            yield place, place
        elif attribute.scale is not None:
            yield base.span(read_range(word))
        else:
            category = attribute.code_named(word)
            for held in category.holds if category is not None else ():
                yield base.span(held)

    def node(self, entity: str, name: str) -> Node:
        """The column or derived attribute that a name stands for in rows of an entity."""
        attribute = self.domain.attribute(entity, name)
        if attribute is not None:
            return attribute.owner, attribute.base
        for owner in (entity, group_of(self.spec, entity)):
            if owner is not None and name in self.spec.microdata[owner].columns:
                return owner, name
        raise KeyError(f"'{name}' is no attribute of '{entity}'")

    def nodes(self, entity: str, condition: Condition | None) -> set[Node]:
        """The bases that a condition looks at."""
        return set() if condition is None else {self.node(entity, name) for name in condition.columns()}

    def area_node(self, entity: str, spine: str) -> Node:
        """The area column that places rows of an entity on a spine: their own, or their group's."""
        owner = self.domain.spines[entity][spine]
        return owner, next(name for name, column in self._columns(owner).items() if column.area == spine)

    def _columns(self, entity: str) -> dict[str, Column]:
        declared: Entity = self.spec.microdata[entity]
        return declared.columns

    def conditions(self, universe: str) -> list[Condition]:
        """Every condition that a row of a universe meets."""
        found: list[Condition] = []
        while universe in self.spec.universes:
            found.append(self.spec.universes[universe].where)
            universe = self.spec.universes[universe].of
        return found
