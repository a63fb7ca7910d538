"""The cells behind the cells: combinations of the atoms of a population's columns, as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from estimation.arrays import Flags, Integers, Labels
from release_specs.domain import Attribute
from release_specs.language.conditions import Condition
from release_specs.meanings import NOT_APPLICABLE, Node, Test
from release_specs.populations import Population, Populations, holds
from release_specs.tallies import Tally, extended_size

MOST_ATOMS = 200_000
"""Where a core has more combinations, enough of them are drawn to tell which of its cells depend on others."""
SOME = 8
"""So many combinations are drawn for each cell of a tally."""


@dataclass(frozen=True, eq=False)
class Atoms:
    """Combinations of atoms of some columns: for each column the number of the atom in each combination."""

    populations: Populations
    population: Population
    index: dict[Node, Integers] = field(repr=False)
    size: int

    @classmethod
    def all_of(cls, populations: Populations, population: Population, nodes: Iterable[Node]) -> Atoms:
        """Every possible combination of the atoms of these columns."""
        columns = sorted(nodes)
        sizes = tuple(len(population.columns[node]) for node in columns)
        grid = np.indices(sizes).reshape(len(sizes), -1) if sizes else np.zeros((0, 1), np.int64)
        return cls(populations, population, dict(zip(columns, grid, strict=True)), grid.shape[1]).possible()

    @classmethod
    def enough_of(cls, populations: Populations, population: Population, nodes: Iterable[Node]) -> Atoms:
        """All combinations; or, of very many, for every cell of every tally several with the other columns drawn."""
        columns = sorted(nodes)
        if prod(len(population.columns[node]) for node in columns) <= MOST_ATOMS:
            return cls.all_of(populations, population, columns)
        rng = np.random.Generator(np.random.PCG64(0))
        drawn = []
        for tally in population.tallies:
            own = cls.all_of(populations, population, populations.nodes_of(tally) & set(columns))
            kept = own.some_of_each(own.cell(tally, [a for a in tally.attributes if (a.owner, a.base) in own.index]))
            index = {node: rng.integers(0, len(population.columns[node]), kept.size) for node in columns} | kept.index
            drawn.append(_mended(cls(populations, population, index, kept.size)))
        index = {node: np.concatenate([one.index[node] for one in drawn]) for node in columns}
        return cls(populations, population, index, sum(one.size for one in drawn)).possible()

    def some_of_each(self, labels: Labels) -> Atoms:
        """A few combinations of each label, spread over all it has."""
        order = np.argsort(labels, kind="stable")
        starts = np.flatnonzero(np.diff(labels[order], prepend=-2))
        ends = np.append(starts[1:], len(order))
        chosen = [order[np.linspace(a, b - 1, min(b - a, SOME)).astype(int)] for a, b in zip(starts, ends, strict=True)]
        return self.at(np.concatenate(chosen))

    def at(self, chosen: Integers) -> Atoms:
        """Some of the combinations."""
        index = {node: found[chosen] for node, found in self.index.items()}
        return Atoms(self.populations, self.population, index, len(chosen))

    def possible(self) -> Atoms:
        """Without the combinations that cannot occur."""
        return self.at(np.flatnonzero(~self.impossible()))

    def impossible(self) -> Flags:
        """Combinations that are declared impossible, or where a column applies though it cannot or the reverse."""
        found = np.zeros(self.size, bool)
        for condition in self.population.impossible:
            if self.populations.meanings.nodes(self.population.key.entity, condition) <= set(self.index):
                found |= self.meet(self.population.key.entity, condition)
        for node in self.index:
            applies = self.populations.applies_to(node)
            if applies is not None and self.populations.meanings.nodes(node[0], applies) <= set(self.index):
                found |= self.meet(node[0], applies) == (self.places(node) == NOT_APPLICABLE)
        return found

    def places(self, node: Node) -> Integers:
        """The place of a column in each combination."""
        found: Integers = np.array(self.population.columns[node].atoms, np.int64)[self.index[node]]
        return found

    def meet(self, entity: str, condition: Condition) -> Flags:
        """Which combinations meet a condition."""
        found = np.zeros(self.size, bool)
        for clause in condition.any_of:
            met = np.ones(self.size, bool)
            for criterion in clause:
                met &= self.wanted(self.populations.meanings.test(entity, criterion))
            found |= met
        return found

    def wanted(self, test: Test) -> Flags:
        """Which combinations a test wants."""
        atoms = self.population.columns[test.node].atoms
        found: Flags = np.array([holds(test, place) for place in atoms], bool)[self.index[test.node]]
        return found

    def category(self, attribute: Attribute) -> Integers:
        """The category of an attribute that each combination falls into; negative for none."""
        node = (attribute.owner, attribute.base)
        read = self.populations.category_of(attribute)
        found: Integers = np.array([read(place) for place in self.population.columns[node].atoms])[self.index[node]]
        return found

    def cell(self, tally: Tally, attributes: Sequence[Attribute]) -> Labels:
        """For each combination its cell of a tally, as far as these attributes of it tell; negative for none."""
        place = np.zeros(self.size, np.int64)
        inside = np.ones(self.size, bool)
        for attribute in attributes:
            category = self.category(attribute)
            inside &= category >= 0
            place = place * extended_size(attribute) + category
        for condition in self.populations.conditions_of(tally):
            inside &= self.meet(tally.entity, condition)
        if tally.usable is not None:
            inside &= self.places(self.populations.meanings.node(tally.entity, tally.usable)) >= 0
        return np.where(inside, place, -1).astype(np.int32)


def _mended(drawn: Atoms) -> Atoms:
    """Drawn combinations with columns that do not apply set so, and those that do apply set to some value."""
    rng = np.random.Generator(np.random.PCG64(1))
    for _ in range(len(drawn.index)):
        for node in drawn.index:
            applies = drawn.populations.applies_to(node)
            atoms = drawn.population.columns[node].atoms
            if applies is None or NOT_APPLICABLE not in atoms:
                continue
            none = atoms.index(NOT_APPLICABLE)
            some = rng.integers(0, max(len(atoms) - 1, 1), drawn.size)
            some = np.where(some >= none, np.minimum(some + 1, len(atoms) - 1), some)
            now = drawn.index[node]
            met = drawn.meet(node[0], applies)
            drawn.index[node] = np.where(met, np.where(now == none, some, now), none)
    return drawn
