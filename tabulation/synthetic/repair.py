"""Mends what drawing column by column cannot: a unit that breaches a demand takes the values of one that does not."""

from __future__ import annotations

import numpy as np

from tabulation.synthetic.demands import Demand
from tabulation.synthetic.errors import SynthesisError
from tabulation.synthetic.nesting import outer_group
from tabulation.synthetic.population import Population
from tabulation.synthetic.streams import Streams
from tabulation.synthetic.variables import Bools, Integers


def repair(population: Population, demands: tuple[Demand, ...], streams: Streams) -> None:
    """Replaces whole units (a group with its rows) that breach a demand by copies of others of the same size.

    Areas are copied too, so that what held for the donor holds for the copy.

    Raises `SynthesisError` for a demand on plain columns that still does not hold; one on derived attributes may not.
    """
    spec = population.meanings.spec
    wrong: dict[str, Bools] = {}
    for demand in demands:
        breaches = demand.breaches(population)
        if breaches.any():
            unit = outer_group(spec, demand.entity) or demand.entity
            rows = population.rows[demand.entity]
            faulty = wrong.setdefault(unit, np.zeros(population.rows[unit].count, dtype=np.bool_))
            faulty[rows.parent[breaches] if rows.nested else breaches] = True
    for unit, faulty in wrong.items():
        _replace(population, unit, faulty, streams.of("repair", unit))
    for demand in demands if wrong else ():
        if demand.breaches(population).any() and not _is_derived(population, demand):
            raise SynthesisError(
                f"{demand.origin}: no rows of '{demand.entity}' were found that obey it together with the rest of the "
                "spec; generate more records, or look for conditions that contradict it"
            )


def _is_derived(population: Population, demand: Demand) -> bool:
    return any(population.meanings.of(demand.entity, test).derived for _, test in demand.condition.criteria())


def _replace(population: Population, unit: str, faulty: Bools, random: np.random.Generator) -> None:
    shape = _shapes(population, unit)
    sound = np.flatnonzero(~faulty)
    sound = sound[np.argsort(shape[sound], kind="stable")]
    broken = np.flatnonzero(faulty)
    low = np.searchsorted(shape[sound], shape[broken], side="left")
    high = np.searchsorted(shape[sound], shape[broken], side="right")
    broken, low, high = (part[high > low] for part in (broken, low, high))
    donors = sound[low + (random.random(len(broken)) * (high - low)).astype(np.int64)]
    _copy(population, unit, broken, donors)
    for member in _members(population, unit):
        parent = population.rows[member].parent
        _copy(population, member, _rows_in(parent, broken), _rows_in(parent, donors))


def _members(population: Population, unit: str) -> list[str]:
    spec = population.meanings.spec
    return [name for name in spec.microdata if outer_group(spec, name) == unit]


def _shapes(population: Population, unit: str) -> Integers:
    """A number for each unit that is the same for units of the same role with as many rows of each kind."""
    rows = population.rows[unit]
    shape = rows.role.astype(np.int64)
    for member in _members(population, unit):
        parent = population.rows[member].parent
        sizes = np.bincount(parent, minlength=rows.count)
        shape = shape * (int(sizes.max()) + 1) + sizes
    return shape


def _rows_in(parent: Integers, units: Integers) -> Integers:
    """The rows of these units, unit after unit; rows lie in the order of their units."""
    first = np.searchsorted(parent, units, side="left")
    sizes = np.searchsorted(parent, units, side="right") - first
    starts = np.cumsum(sizes) - sizes
    return np.repeat(first - starts, sizes) + np.arange(int(sizes.sum()))


def _copy(population: Population, entity: str, rows: Integers, donors: Integers) -> None:
    for places in population.rows[entity].places.values():
        places[rows] = places[donors]
