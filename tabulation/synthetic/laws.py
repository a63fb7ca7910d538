"""Laws: how often each place of a column occurs, in each kind of neighbourhood.

A law is a table of equally likely places for each archetype, so drawing is one look-up and a restriction is a filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tabulation.synthetic.code_laws import code_tables
from tabulation.synthetic.matches import Match
from tabulation.synthetic.scale_laws import is_age, scale_tables
from tabulation.synthetic.streams import Streams
from tabulation.synthetic.variables import Bools, Integers, Variable

ARCHETYPES = 8
ADULT = 18
FEW_PLACES = 65_536
"""A column with no more places than this is searched whole when a restriction leaves nothing of its law."""


@dataclass(frozen=True, slots=True)
class Law:
    """For each archetype its part of `pool`, from `start`, `length` long: equally likely places."""

    pool: Integers
    start: Integers
    length: Integers
    spare: Integers

    def draw(self, archetypes: Integers, random: np.random.Generator) -> Integers:
        """One place for each entry of `archetypes`."""
        chances = random.integers(0, 2**32, len(archetypes), dtype=np.uint32).astype(np.uint64)
        if len(self.length) == 1:
            found = (chances * np.uint64(self.length[0])) >> np.uint64(32)
        else:
            found = self.start[archetypes] + ((chances * self.length[archetypes]) >> np.uint64(32))
        drawn: Integers = self.pool[found]
        return drawn

    def restricted(self, wanted: Sequence[Match], unwanted: Sequence[Match] = ()) -> Law | None:
        """The law among places that meet all of `wanted` and none of `unwanted`; None where there are none."""
        allowed = _allowed(self.pool, wanted, unwanted)
        lengths = np.add.reduceat(allowed.astype(np.int64), self.start.astype(np.int64))
        pool = self.pool[allowed]
        if lengths.min() > 0:
            return Law(pool, (np.cumsum(lengths) - lengths).astype(np.uint64), lengths.astype(np.uint64), self.spare)
        if not len(pool):
            rare = np.concatenate([self.spare, _inside(wanted)])
            pool = rare[_allowed(rare, wanted, unwanted) & (rare >= self.spare[0]) & (rare <= self.spare[-1])]
        return _one_pool(pool, self.spare) if len(pool) else None


def law_of(variable: Variable, streams: Streams) -> Law:
    """The law of a column, without places that are spelled like no value."""
    random = streams.of("law", variable.entity, variable.name)
    tables = code_tables if variable.scale is None else scale_tables
    pool = tables(variable, ARCHETYPES, random)
    entries = pool.shape[1]
    first, last = variable.span
    spare = np.arange(first, last + 1) if last - first < FEW_PLACES else np.linspace(first, last, 1001).astype(np.int64)
    start = (np.arange(ARCHETYPES) * entries).astype(np.uint64)
    law = Law(pool.reshape(-1), start, np.full(ARCHETYPES, entries, dtype=np.uint64), spare)
    if not variable.banned:
        return law
    banned = Match(spans=tuple((place, place) for place in sorted(variable.banned)))
    return law.restricted((), (banned,)) or law


def adults(variable: Variable) -> Match | None:
    """For an age: the adults, of whom the first of a group is one."""
    if variable.scale is None or not is_age(variable):
        return None
    return Match(spans=((ADULT - variable.origin, None),))


def _one_pool(pool: Integers, spare: Integers) -> Law:
    return Law(pool, np.zeros(1, dtype=np.uint64), np.array([len(pool)], dtype=np.uint64), spare)


def _allowed(places: Integers, wanted: Sequence[Match], unwanted: Sequence[Match]) -> Bools:
    allowed = np.ones(len(places), dtype=np.bool_)
    for match in wanted:
        allowed &= match.meets(places)
    for match in unwanted:
        allowed &= ~match.meets(places)
    return allowed


def _inside(wanted: Sequence[Match]) -> Integers:
    """Places spread over the ranges that are wanted, for ranges too rare to be in the law."""
    spans = [span for match in wanted for span in match.spans]
    parts = [np.linspace(max(first, 0), last, 257).astype(np.int64) for first, last in spans if last is not None]
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)
