"""How many rows there are, and which group each lies in."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from release_specs.reading.resolve import group_of
from release_specs.spec import ReleaseSpec
from tabulation.synthetic.errors import SynthesisError
from tabulation.synthetic.population import Role, Rows
from tabulation.synthetic.streams import Streams
from tabulation.synthetic.variables import Bools, Integers

SHARE_OF_SINGLES = 0.05
HOUSEHOLD_SIZES = (0.276, 0.345, 0.151, 0.128, 0.060, 0.024, 0.010)
"""Shares of households of 1 to 7 persons; larger ones follow with a tail that halves."""
SIZE_TABLE = 4096


def nest(spec: ReleaseSpec, records: int, singles_of: str | None, streams: Streams) -> dict[str, Rows]:
    """Rows of every entity: `records` of those that hold no others, groups as many as follow from their sizes."""
    grower = _Grower(spec, records, singles_of, streams)
    for entity in spec.microdata:
        if outer_group(spec, entity) is None:
            grower.grow(entity)
    lost = [entity for entity in spec.microdata if entity not in grower.rows]
    if lost:
        raise SynthesisError(f"microdata.{lost[0]}.in: the groups lie inside each other; one entity must be outermost")
    return grower.rows


def outer_group(spec: ReleaseSpec, entity: str) -> str | None:
    """The group that decides where rows of an entity lie: the first one that is declared."""
    group = group_of(spec, entity)
    return group if group in spec.microdata else None


@dataclass(slots=True)
class _Grower:
    spec: ReleaseSpec
    records: int
    singles_of: str | None
    streams: Streams
    rows: dict[str, Rows] = field(default_factory=dict)

    def grow(self, entity: str) -> Rows:
        """The rows of an entity, after those of the entities nested in it."""
        members = [name for name in self.spec.microdata if outer_group(self.spec, name) == entity]
        if not members:
            self.rows[entity] = Rows(entity, self.records, _roles(np.zeros(self.records, dtype=np.bool_)))
            return self.rows[entity]
        leader = min(members, key=lambda name: name not in self.spec.privacy.caps)
        sizes, single = self._groups(leader, self.grow(leader).count)
        parent = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        self.rows[entity] = Rows(entity, len(sizes), _roles(single))
        self._place(leader, parent, single)
        shared = np.flatnonzero(~single)
        for other in members:
            if other != leader and len(shared):
                random = self.streams.of("nesting", other)
                chosen = shared[random.integers(0, len(shared), self.grow(other).count)]
                self._place(other, np.sort(chosen).astype(np.int32), single)
        return self.rows[entity]

    def _groups(self, leader: str, count: int) -> tuple[Integers, Bools]:
        """Sizes of the groups, and which of them hold a single."""
        random = self.streams.of("nesting", leader)
        singles = max(round(count * SHARE_OF_SINGLES), min(1, count - 1)) if leader == self.singles_of else 0
        sizes = _sizes(count - singles, self._size_table(leader), random)
        single = np.zeros(len(sizes) + singles, dtype=np.bool_)
        single[len(sizes) :] = True
        order = random.permutation(len(single))
        return np.concatenate([sizes, np.ones(singles, dtype=sizes.dtype)])[order], single[order]

    def _size_table(self, leader: str) -> Integers:
        expected = self.spec.expect.sizes if self.spec.expect else None
        if expected:
            shares = {int(size): float(share) for size, share in expected.items() if size.isdecimal() and int(size)}
            if shares:
                return _table_of(np.array(list(shares)), np.array(list(shares.values())))
        cap = self.spec.privacy.caps.get(leader)
        return _household_sizes() if cap is None or 5 <= cap <= 12 else _sizes_around(cap)

    def _place(self, member: str, parent: Integers, single: Bools) -> None:
        rows = self.rows[member]
        first = np.flatnonzero(np.diff(parent, prepend=-1))
        lengths = np.diff(first, append=len(parent))
        rows.parent = parent
        rows.position = np.arange(len(parent), dtype=np.int32) - np.repeat(first, lengths).astype(np.int32)
        role = np.where(rows.position == 0, Role.FIRST, Role.LATER)
        rows.role = np.where(single[parent], Role.SINGLE, role).astype(np.int8)


def _roles(single: Bools) -> Integers:
    return np.where(single, Role.SINGLE, Role.FIRST).astype(np.int8)


def _sizes(rows: int, table: Integers, random: np.random.Generator) -> Integers:
    """Group sizes that add up to `rows`."""
    sizes = np.zeros(0, dtype=np.int64)
    while sizes.sum() < rows:
        more = int((rows - sizes.sum()) / table.mean() * 1.02) + 16
        sizes = np.concatenate([sizes, table[random.integers(0, len(table), more)]])
    ends = np.cumsum(sizes)
    last = int(np.searchsorted(ends, rows))
    sizes = sizes[: last + 1] if rows else sizes[:0]
    if rows:
        sizes[-1] -= ends[last] - rows
    return sizes


def _table_of(sizes: Integers, shares: np.typing.NDArray[np.float64]) -> Integers:
    chances = (np.arange(SIZE_TABLE) + 0.5) / SIZE_TABLE
    found = np.searchsorted(np.cumsum(shares / shares.sum()), chances)
    table: Integers = sizes.astype(np.int64)[np.minimum(found, len(sizes) - 1)]
    return table


def _household_sizes() -> Integers:
    tail = 0.006 * 0.5 ** np.arange(1, 9)
    return _table_of(np.arange(1, 16), np.concatenate([HOUSEHOLD_SIZES, tail]))


def _sizes_around(cap: int) -> Integers:
    """Log-normal sizes, two groups in a hundred above the cap."""
    spread = 0.9
    normal = np.array([NormalDist().inv_cdf((i + 0.5) / SIZE_TABLE) for i in range(SIZE_TABLE)])
    sizes = (cap + 1) * np.exp(spread * (normal - NormalDist().inv_cdf(0.98)))
    table: Integers = np.maximum(np.floor(np.minimum(sizes, 4 * cap + 4)), 1).astype(np.int64)
    return table
