"""From a population to coordinates: which of its columns are free, what its core is, and each tally as a margin."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from estimation.arrays import Floats, Labels, Numbers
from estimation.atoms import Atoms
from estimation.coordinates import Coordinates
from estimation.errors import TooLarge
from estimation.kernels.blocks import orthonormal
from estimation.observations import Margin
from release_specs.meanings import Node
from release_specs.populations import Population, Populations
from release_specs.tallies import Tally, extended_size

LARGEST_CORE = 1_500
"""A core with more coordinates would take hours: matrices of this size are inverted for every kind of area."""
PROBES = 4
"""Dependencies between cells are looked for in so many combinations for each cell."""


@dataclass(frozen=True, eq=False)
class TallyMargin:
    """A tally in coordinates: its margin, and how its cells are ordered there (core attributes first, then free)."""

    tally: Tally
    margin: Margin
    order: tuple[int, ...]
    """The tally's attributes in the order of the margin."""

    def to_margin(self, numbers: Numbers) -> Numbers:
        """Numbers of a tally (area, cell) as those of its margin (area, core cell, free combination)."""
        core = len(self.margin.cells)
        if not self.order:
            return numbers.reshape(len(numbers), core, -1)
        shaped = numbers.reshape(len(numbers), *self.tally.shape)
        turned = shaped.transpose(0, *(1 + place for place in self.order))
        return np.ascontiguousarray(turned).reshape(len(numbers), core, -1)

    def from_margin(self, numbers: Numbers) -> Numbers:
        """Numbers of a margin as those of its tally."""
        if not self.order:
            return numbers.reshape(len(numbers), -1)
        shape = [self.tally.shape[place] for place in self.order]
        back = np.argsort(self.order)
        turned = numbers.reshape(len(numbers), *shape).transpose(0, *(1 + back))
        return np.ascontiguousarray(turned).reshape(len(numbers), -1)


@dataclass(frozen=True, eq=False)
class Design:
    """A population in coordinates."""

    populations: Populations
    population: Population
    free: tuple[Node, ...]
    """The free columns; the others are the core."""
    coordinates: Coordinates
    core: int
    margins: dict[str, TallyMargin] = field(repr=False)
    """For each tally by its name."""

    @property
    def is_closed_form(self) -> bool:
        """Whether every part has a single number: nothing but full margins of free attributes."""
        return self.core == 1

    @cached_property
    def axis(self) -> dict[Node, int]:
        """The number of each free column."""
        return {node: number for number, node in enumerate(self.free)}

    def split(self, tally: Tally) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The places of a tally's core attributes, and of its free ones in the order of their columns."""
        nodes = [(one.owner, one.base) for one in tally.attributes]
        core = tuple(place for place, node in enumerate(nodes) if node not in self.axis)
        free = [place for place, node in enumerate(nodes) if node in self.axis]
        return core, tuple(sorted(free, key=lambda place: self.axis[nodes[place]]))

    def cells_of(self, tally: Tally, atoms: Atoms) -> Labels:
        """For combinations of atoms of all a tally's columns, their cells in the order of its margin."""
        if tally.elsewhere:
            return np.arange(tally.cells, dtype=np.int32)
        core, free = self.split(tally)
        return atoms.cell(tally, [tally.attributes[place] for place in (*core, *free)])


def design(populations: Populations, population: Population) -> Design:
    """A population in coordinates, from the spec alone."""
    if population.key.alone is not None:
        return _alone(populations, population)
    largest = max(population.tallies, key=lambda one: one.cells)  # its cells then need no turning
    order = dict.fromkeys([*((one.owner, one.base) for one in largest.attributes), *population.columns])
    free = tuple(node for node in order if _is_free(populations, population, node))
    held = set(population.columns) - set(free)
    atoms = Atoms.enough_of(populations, population, held)
    made = Design(populations, population, free, Coordinates((), ()), 0, {})
    labels: dict[str, tuple[Labels, int]] = {}
    for tally in population.tallies:
        inner = [tally.attributes[place] for place in made.split(tally)[0]]
        labels[tally.name] = atoms.cell(tally, inner), prod(extended_size(one) for one in inner)
    maps = _maps(list(labels.values()))
    margins = {}
    for tally, cells in zip(population.tallies, maps, strict=True):
        core, outer = made.split(tally)
        axes = tuple(made.axis[tally.attributes[place].owner, tally.attributes[place].base] for place in outer)
        margins[tally.name] = TallyMargin(tally, Margin(tally.name, axes, cells), (*core, *outer))
    sizes = tuple(len(population.columns[node]) for node in free)
    coordinates = Coordinates.seen_by(sizes, [one.margin.free for one in margins.values()])
    return Design(populations, population, free, coordinates, maps[0].shape[1], margins)


def _alone(populations: Populations, population: Population) -> Design:
    """A tally that shares its rows with no other: one attribute, whose codes are its cells."""
    (tally,) = population.tallies
    margin = TallyMargin(tally, Margin(tally.name, (0,), np.ones((1, 1))), ())
    coordinates = Coordinates.seen_by((tally.cells,), [(0,)])
    return Design(populations, population, (), coordinates, 1, {tally.name: margin})


def _is_free(populations: Populations, population: Population, node: Node) -> bool:
    """Whether a column appears in full or not at all: every use lists its atoms one by one."""
    atoms = population.columns[node].atoms
    uses = list(populations.readings(population.key, population.tallies, node))
    return all(name and [read(place) for place in atoms] == list(range(len(atoms))) for name, read in uses)


def _maps(labels: list[tuple[Labels, int]]) -> list[Floats]:
    """For each tally its core cells in core coordinates: a basis of all that any of them can tell apart."""
    told = np.unique(np.stack([found for found, _ in labels], axis=1), axis=0)
    rows = [np.equal(np.arange(cells)[:, None], told[:, place]) for place, (_, cells) in enumerate(labels)]
    stacked = np.concatenate(rows).astype(np.float64)
    if len(told) == 1:
        return [part.astype(np.float64) for part in rows]
    order = np.random.Generator(np.random.PCG64(0)).permutation(len(told))
    width = PROBES * len(stacked)
    basis, other = (_basis(stacked[:, part]) for part in (order[:width], order[-width:]))
    while len(basis) != len(other):  # too few combinations to tell: look at more
        width *= 2
        basis, other = (_basis(stacked[:, part]) for part in (order[:width], order[-width:]))
    if len(basis) > LARGEST_CORE:
        raise TooLarge(
            f"{len(basis):,} kinds of rows are told apart by recodes, universes and impossible combinations at once; "
            f"at most {LARGEST_CORE:,} can be reconciled. Use fewer overlapping recodes or universes"
        )
    if len(basis) == len(told):
        return [part.astype(np.float64) for part in rows]
    return [np.ascontiguousarray(part.astype(np.float64)[:, order[:width]] @ basis.T) for part in rows]


def _basis(rows: Floats) -> Floats:
    return orthonormal(np.ascontiguousarray(rows), np.zeros((0, rows.shape[1])))
