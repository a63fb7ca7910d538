"""Where rows live: areas of very unequal size, some of them empty, in a few kinds of neighbourhood."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from release_specs.domain import Hierarchy
from release_specs.reading.public_files import PublicFiles
from release_specs.reading.resolve import entity_of
from release_specs.spec import ReleaseSpec
from tabulation.synthetic.demands import Demand
from tabulation.synthetic.errors import SynthesisError
from tabulation.synthetic.laws import ARCHETYPES
from tabulation.synthetic.matches import Meanings
from tabulation.synthetic.nesting import outer_group
from tabulation.synthetic.population import EVERY_ROLE, Rows
from tabulation.synthetic.streams import Streams
from tabulation.synthetic.variables import Bools, Integers, as_point

Floats = npt.NDArray[np.float64]
EMPTY = 0.12
"""The share of areas without anyone, where there are many."""
MANY = 20
ALIKE = 0.6
"""How often a small area is of the same kind as the larger one it lies in."""


@dataclass(frozen=True, slots=True)
class Map:
    """The spec's areas, where rows may live at all, the public files that say how large areas are, and the seeds."""

    meanings: Meanings
    demands: tuple[Demand, ...]
    files: PublicFiles | None
    streams: Streams

    @property
    def spec(self) -> ReleaseSpec:
        """The spec the areas are of."""
        return self.meanings.spec

    def tree(self, spine: str) -> Hierarchy:
        """The hierarchy of a spine."""
        return self.meanings.domain.hierarchies[spine]

    def habitable(self, spine: str, kin: list[str]) -> Bools:
        """The smallest areas that `only` and `impossible` leave to rows of these entities."""
        allowed = np.ones(len(self.tree(spine).areas[self.tree(spine).smallest]), dtype=np.bool_)
        for demand in self.demands:
            if demand.entity in kin and demand.roles == EVERY_ROLE:
                allowed &= _habitable(demand, spine, self.meanings, len(allowed))
        if not allowed.any():
            raise SynthesisError(f"geography.{spine}: the conditions on areas leave no area to live in; mend them")
        return allowed


def settle(rows: dict[str, Rows], place: Map) -> None:
    """Gives every row its area in each spine of its kin, and the kind of its neighbourhood."""
    for entity, outermost in rows.items():
        if outer_group(place.spec, entity) is None:
            kin = [entity, *_descendants(place.spec, entity)]
            _settle_outermost(outermost, kin, place)
            for member in kin[1:]:
                _settle_within(rows[member], rows[outer_group(place.spec, member) or entity])


def area_weights(spine: str, kin: list[str], place: Map) -> Floats:
    """The share of each smallest area: from public sizes where the spec names them, else log-normal."""
    tree, random = place.tree(spine), place.streams.of("areas", spine)
    weights = _unequal(tree, random)
    public = _public_sizes(tree, kin, place)
    if public is not None:
        level, sizes = public
        above = ancestors(tree, level)
        within = np.bincount(above, weights, minlength=len(sizes))[above]
        weights = np.where(within > 0, weights / np.where(within > 0, within, 1), 0) * sizes[above]
    elif len(weights) >= MANY:
        weights[random.permutation(len(weights))[: round(EMPTY * len(weights))]] = 0
    habitable = place.habitable(spine, kin)
    weights = weights * habitable if (weights * habitable).sum() > 0 else habitable.astype(np.float64)
    shares: Floats = weights / weights.sum()
    return shares


def _habitable(demand: Demand, spine: str, meanings: Meanings, areas: int) -> Bools:
    """The areas a demand leaves, as far as it speaks of areas."""
    left = np.full(areas, not demand.met)
    for tests in demand.condition.any_of:
        found = [meanings.of(demand.entity, test) for test in tests]
        here = np.ones(areas, dtype=np.bool_)
        for meaning in (meaning for meaning in found if meaning.spine == spine):
            here &= meaning.match.meets(np.arange(areas))
        if demand.met:
            left |= here
        elif all(meaning.spine == spine for meaning in found):
            left &= ~here
    return left


def ancestors(tree: Hierarchy, level: str) -> Integers:
    """For each smallest area the place of the area of `level` that it lies in."""
    found = np.arange(len(tree.areas[tree.smallest]))
    for depth in range(len(tree.levels) - 1, tree.levels.index(level), -1):
        larger = {area.code: index for index, area in enumerate(tree.areas[tree.levels[depth - 1]])}
        parents = np.array([larger[area.parent or ""] for area in tree.areas[tree.levels[depth]]])
        found = parents[found]
    return found


def _descendants(spec: ReleaseSpec, entity: str) -> Iterator[str]:
    for name in spec.microdata:
        if outer_group(spec, name) == entity:
            yield name
            yield from _descendants(spec, name)


def _settle_outermost(rows: Rows, kin: list[str], place: Map) -> None:
    columns = [column for entity in kin for column in place.spec.microdata[entity].columns.values()]
    spines = list(dict.fromkeys(column.area for column in columns if column.area is not None))
    random = place.streams.of("settle", rows.entity)
    rows.archetype = random.integers(0, ARCHETYPES, rows.count).astype(np.int16)
    for spine in spines:
        if spine == spines[0]:
            numbers = random.multinomial(rows.count, area_weights(spine, kin, place))
            rows.areas[spine] = np.repeat(np.arange(len(numbers), dtype=np.int32), numbers)
            rows.archetype = _archetypes(place.tree(spine), place.streams)[rows.areas[spine]]
        else:
            there = np.flatnonzero(place.habitable(spine, kin)).astype(np.int32)
            rows.areas[spine] = there[_across(rows.areas[spines[0]], len(there), random)]


def _settle_within(rows: Rows, group: Rows) -> None:
    rows.archetype = group.archetype[rows.parent]
    rows.areas = {spine: places[rows.parent] for spine, places in group.areas.items()}


def _across(areas: Integers, others: int, random: np.random.Generator) -> Integers:
    """Areas of another spine that lie about where the first ones do, as neighbouring codes lie side by side."""
    nearby = areas.astype(np.int64) * others // (int(areas.max(initial=0)) + 1)
    found: Integers = np.clip(nearby + random.integers(-1, 2, len(areas)), 0, others - 1).astype(np.int32)
    return found


def _unequal(tree: Hierarchy, random: np.random.Generator) -> Floats:
    weights = random.lognormal(0, 0.7, len(tree.areas[tree.smallest]))
    for level in tree.levels[1:-1]:
        weights *= random.lognormal(0, 0.5, len(tree.areas[level]))[ancestors(tree, level)]
    return weights


def _archetypes(tree: Hierarchy, streams: Streams) -> Integers:
    """The kind of each smallest area, mostly that of the larger area it lies in."""
    random = streams.of("archetypes", tree.name)
    count = len(tree.areas[tree.smallest])
    kinds = random.integers(0, ARCHETYPES, count).astype(np.int16)
    if len(tree.levels) > 2:
        above = ancestors(tree, tree.levels[-2])
        shared = random.integers(0, ARCHETYPES, int(above.max()) + 1).astype(np.int16)
        kinds = np.where(random.random(count) < ALIKE, shared[above], kinds)
    return kinds


def _public_sizes(tree: Hierarchy, kin: list[str], place: Map) -> tuple[str, Floats] | None:
    """The finest level a public file has sizes for, and the size of each of its areas."""
    areas = place.spec.expect.areas if place.spec.expect else None
    if areas is None or place.files is None:
        return None
    ranks = {entity: rank for rank, entity in enumerate(reversed(kin))}
    named = sorted(areas.named, key=lambda name: (name not in ranks, ranks.get(entity_of(place.spec, name) or "", 99)))
    name = next((name for name in named if entity_of(place.spec, name) in ranks), None)
    table = place.files.table(areas.file, ("expect", "areas", "file"))
    level = next((level for level in reversed(tree.levels) if table and level in table.header), None)
    if name is None or table is None or level is None or areas.named[name] not in table.header:
        return None
    index = {area.code: number for number, area in enumerate(tree.areas[level])}
    sizes = np.zeros(len(index))
    for (_, code), (_, size) in zip(table.column(level), table.column(areas.named[name]), strict=True):
        point = as_point(size)
        if code in index and point is not None and not hasattr(point, "year"):
            sizes[index[code]] += max(float(point), 0.0)
    return (level, sizes) if sizes.sum() > 0 else None
