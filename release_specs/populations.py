"""What is counted together: tallies of the same rows, and the columns that tell their cells apart.

A *population* is a set of rows, counted equally often by all its tallies (or one column of theirs, added up). Rows are
told apart by columns; of a column's values only those matter that some tally, universe, rule or impossible combination
tells apart: its *atoms*. Everything here follows from the spec; tables of one population agree on what they share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from release_specs.domain import Attribute, Domain
from release_specs.language.conditions import Condition
from release_specs.meanings import NOT_APPLICABLE, NOT_STATED, Meanings, Node, Test
from release_specs.reading.resolve import leaves_out
from release_specs.spec import ReleaseSpec
from release_specs.tallies import Summand, Tally

Reading = Callable[[int], int]
"""What a use makes of a place: the number of a category, or 0 and 1 for a test."""
NO_CELL = -1


@dataclass(frozen=True, slots=True)
class PopulationKey:
    """What two tallies must have in common to count the same rows equally often."""

    entity: str
    cap: int | None
    several: frozenset[str]
    spine: str | None
    """The geography that leaves rows out, if it does."""
    adds: Summand | None
    alone: str | None
    """The tally, where it shares its rows with no other."""


@dataclass(frozen=True)
class Column:
    """A column as far as a population looks at it: one place for each of its atoms."""

    node: Node
    atoms: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.atoms)


@dataclass(frozen=True)
class Population:
    """Rows that are counted together, with the columns that tell their cells apart."""

    key: PopulationKey
    tallies: tuple[Tally, ...]
    columns: dict[Node, Column] = field(repr=False)
    impossible: tuple[Condition, ...] = ()

    @property
    def name(self) -> str:
        """The rows, and what is added up of them."""
        return f"{self.key.entity}, {self.key.adds.column}" if self.key.adds else self.key.entity


class Populations:
    """The populations of a spec, and what their tallies make of atoms."""

    def __init__(self, spec: ReleaseSpec, domain: Domain, tallies: Iterable[Tally]) -> None:
        self.spec, self.domain, self.meanings = spec, domain, Meanings(spec, domain)
        grouped: dict[PopulationKey, list[Tally]] = {}
        for tally in tallies:
            grouped.setdefault(self.key_of(tally), []).append(tally)
        self.all = tuple(self._population(key, tuple(found)) for key, found in grouped.items())

    def key_of(self, tally: Tally) -> PopulationKey:
        """The rows a tally counts."""
        several = frozenset(one.name for one in tally.attributes if one.up_to > 1)
        spine = tally.spine.name if tally.spine is not None and self._leaves_out(tally) else None
        alone = tally.name if tally.elsewhere else None
        return PopulationKey(tally.entity, tally.cap, several, spine, tally.adds, alone)

    def _leaves_out(self, tally: Tally) -> bool:
        if tally.spine is None:
            return False
        owner, name = self.meanings.area_node(tally.entity, tally.spine.name)
        facts = self.spec.microdata[owner]
        return leaves_out(facts, facts.columns[name])

    def _population(self, key: PopulationKey, tallies: tuple[Tally, ...]) -> Population:
        nodes = {node for tally in tallies for node in self.nodes_of(tally)}
        impossible = tuple(one for one in self.spec.impossible if self._is_about(key.entity, one, nodes))
        return Population(key, tallies, {node: self._column(key, tallies, node) for node in sorted(nodes)}, impossible)

    def _is_about(self, entity: str, condition: Condition, nodes: set[Node]) -> bool:
        known = all(self.domain.attribute(entity, name) is not None for name in condition.columns())
        return known and self.meanings.nodes(entity, condition) <= nodes

    def conditions_of(self, tally: Tally) -> list[Condition]:
        """Every condition a row must meet to be counted."""
        return [*self.meanings.conditions(tally.universe), *([tally.where] if tally.where is not None else [])]

    def nodes_of(self, tally: Tally) -> set[Node]:
        """Every column that decides whether and where a row counts."""
        found = {(one.owner, one.base) for one in tally.attributes}
        for condition in self.conditions_of(tally):
            found |= self.meanings.nodes(tally.entity, condition)
        if tally.usable is not None:
            found.add(self.meanings.node(tally.entity, tally.usable))
        return self.with_deciding(found)

    def with_deciding(self, nodes: set[Node]) -> set[Node]:
        """Columns, and those that decide whether they apply."""
        found: set[Node] = set()
        ahead = set(nodes)
        while ahead:
            found |= ahead
            ahead = {other for node in ahead for other in self._decided_by(node)} - found
        return found

    def _decided_by(self, node: Node) -> set[Node]:
        return self.meanings.nodes(node[0], self.applies_to(node))

    def applies_to(self, node: Node) -> Condition | None:
        """Which rows have a value of a column at all; None where all have."""
        column = self.spec.microdata[node[0]].columns.get(node[1])
        return column.applies_to if column is not None else None

    def may_not_apply(self, node: Node) -> bool:
        """Whether a column may have no value because it does not apply."""
        column = self.spec.microdata[node[0]].columns.get(node[1])
        return column is not None and (column.applies_to is not None or column.not_applicable is not None)

    def _column(self, key: PopulationKey, tallies: Sequence[Tally], node: Node) -> Column:
        readings = [reading for _, reading in self.readings(key, tallies, node)]
        places = [*self._cuts(key, tallies, node)]
        if any(one.hidden for one in self._attributes(key, tallies, node)):
            places.append(NOT_STATED)
        if self.may_not_apply(node):
            places.append(NOT_APPLICABLE)
        ranked = sorted(places, key=lambda place: self.word_of(node, place), reverse=True)
        atoms = {tuple(reading(place) for reading in readings): place for place in ranked}
        return Column(node, tuple(sorted(atoms.values(), key=places.index)))

    def word_of(self, node: Node, place: int) -> tuple[str, int]:
        """What sorts the places of a column, in whatever order its codes are listed."""
        codes = self.meanings.base(node).codes
        return (codes[place], 0) if place >= 0 and codes else ("", place)

    def _attributes(self, key: PopulationKey, tallies: Sequence[Tally], node: Node) -> list[Attribute]:
        """Every attribute that lies over a column: those of tallies, and the column itself."""
        found = [one for tally in tallies for one in tally.attributes if (one.owner, one.base) == node]
        own = self.domain.attribute(key.entity, node[1])
        return [*dict.fromkeys(found), *([own] if own is not None and (own.owner, own.base) == node else [])]

    def readings(self, key: PopulationKey, tallies: Sequence[Tally], node: Node) -> Iterator[tuple[str, Reading]]:
        """Everything that is made of a column's places: an attribute's name with its categories, or "" with a test."""
        for attribute in dict.fromkeys(
            one for tally in tallies for one in tally.attributes if (one.owner, one.base) == node
        ):
            yield attribute.name, self.category_of(attribute)
        for test in dict.fromkeys(self._tests(key, tallies, node)):
            yield "", lambda place, test=test: int(holds(test, place))  # type: ignore[misc]
        if any(tally.usable is not None and self.meanings.node(key.entity, tally.usable) == node for tally in tallies):
            yield "", lambda place: int(place >= 0)
        if self.may_not_apply(node):
            yield "", lambda place: int(place == NOT_APPLICABLE)

    def _tests(self, key: PopulationKey, tallies: Sequence[Tally], node: Node) -> Iterator[Test]:
        nodes = {other for tally in tallies for other in self.nodes_of(tally)}
        conditions = [(key.entity, one) for tally in tallies for one in self.conditions_of(tally)]
        conditions += [(key.entity, one) for one in self.spec.impossible if self._is_about(key.entity, one, nodes)]
        conditions += [(other[0], one) for other in sorted(nodes) if (one := self.applies_to(other)) is not None]
        for entity, condition in conditions:
            for _, criterion in condition.criteria():
                if (test := self.meanings.test(entity, criterion)).node == node:
                    yield test

    def _cuts(self, key: PopulationKey, tallies: Sequence[Tally], node: Node) -> list[int]:
        """One place for each stretch of places that nothing tells apart."""
        base = self.meanings.base(node)
        if base.scale is None:
            return list(range(len(base.codes)))
        starts = {0}
        for attribute in self._attributes(key, tallies, node)[: None if self._is_listed(key, tallies, node) else -1]:
            if attribute.scale is not None:
                return list(range(attribute.size or 0))
            starts |= {edge for first, last, _ in self.meanings.spans(attribute) for edge in _edges(first, last)}
        for test in self._tests(key, tallies, node):
            starts |= {edge for first, last in test.wanted for edge in _edges(first, last)}
        end = base.scale.size
        return sorted(start for start in starts if start >= 0 and (end is None or start < end))

    def _is_listed(self, key: PopulationKey, tallies: Sequence[Tally], node: Node) -> bool:
        """Whether some tally is by the column itself."""
        own = self.domain.attribute(key.entity, node[1])
        return own is None or any(own in tally.attributes for tally in tallies)

    def category_of(self, attribute: Attribute) -> Reading:
        """The category that a place falls into: "not stated" is the last, what does not apply falls into none."""
        size = attribute.size or 0
        spans = [] if attribute.scale is not None else self.meanings.spans(attribute)

        def read(place: int) -> int:
            if place == NOT_STATED:
                return size if attribute.hidden else NO_CELL
            if place < 0:
                return NO_CELL
            if attribute.scale is not None:
                return place
            return next((i for first, last, i in spans if first <= place and (last is None or place <= last)), NO_CELL)

        return read

    def finest(self, population: Population) -> list[Tally]:
        """The tallies that are no margins of others: each is settled in its own cells, all others are read off them.

        Those that count all rows come first, then by name: in which order tables are written does not matter.
        """
        kept: list[Tally] = []
        for tally in sorted(population.tallies, key=lambda one: (-one.cells, one.name)):
            if not any(self.is_margin_of(population, tally, other) for other in kept):
                kept.append(tally)
        return sorted(kept, key=lambda one: (len(self.conditions_of(one)) + (one.usable is not None), one.name))

    def is_margin_of(self, population: Population, tally: Tally, other: Tally) -> bool:
        """Whether a tally's numbers are surely sums of another's: True only where declarations prove it."""
        conditions = set(self.conditions_of(tally))
        if not set(self.conditions_of(other)) <= conditions or other.usable not in (None, tally.usable):
            return False
        mine = {(one.owner, one.base) for one in tally.attributes}
        for attribute in other.attributes:
            node = (attribute.owner, attribute.base)
            if self.may_not_apply(node) and node not in mine and not self._surely_applies(tally, node, conditions):
                return False
        needed = [condition for condition in conditions if condition not in self.conditions_of(other)]
        nodes = mine | {node for one in needed for node in self.meanings.nodes(tally.entity, one)}
        if tally.usable is not None and other.usable is None:
            nodes.add(self.meanings.node(tally.entity, tally.usable))
        return all(self._is_told_by(population, tally, other, node, needed) for node in nodes)

    def _surely_applies(self, tally: Tally, node: Node, conditions: set[Condition]) -> bool:
        """Whether rows that meet some conditions all have a value of a column, or at least one that was not stated."""
        tested = {
            self.meanings.node(tally.entity, criterion.column)
            for condition in conditions
            if len(condition.any_of) == 1
            for _, criterion in condition.criteria()
        }
        return node in tested or self.applies_to(node) in conditions

    def _is_told_by(
        self, population: Population, tally: Tally, other: Tally, node: Node, needed: Sequence[Condition]
    ) -> bool:
        """Whether the categories of another tally decide all that a tally makes of a column."""
        atoms = population.columns[node].atoms
        finer = [self.category_of(one) for one in other.attributes if (one.owner, one.base) == node]
        coarser = [self.category_of(one) for one in tally.attributes if (one.owner, one.base) == node]
        for condition in needed:
            for _, criterion in condition.criteria():
                test = self.meanings.test(tally.entity, criterion)
                if test.node == node:
                    coarser.append(lambda place, test=test: int(holds(test, place)))  # type: ignore[misc]
        if tally.usable is not None and self.meanings.node(tally.entity, tally.usable) == node:
            coarser.append(lambda place: int(place >= 0))
        told = {tuple(read(place) for read in finer) for place in atoms}
        both = {tuple(read(place) for read in (*finer, *coarser)) for place in atoms}
        return len(both) == len(told)


def holds(test: Test, place: int) -> bool:
    """Whether a place is wanted: no place that is no value is, even where a test is negated."""
    wanted = any(max(first, 0) <= place and (last is None or place <= last) for first, last in test.wanted)
    return place >= 0 and wanted is not test.negated


def _edges(first: int, last: int | None) -> tuple[int, ...]:
    return (first,) if last is None else (first, last + 1)
