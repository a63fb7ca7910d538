"""Tallies that are counted together: one mixed-radix key for several tables of the same rows.

A cluster counts all its attributes at once for the smallest areas it needs; each tally is then read off it. Tallies
join a cluster only while it has no more cells than they have apart, so nothing more is fetched than is declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from release_specs.domain import Attribute, Hierarchy
from release_specs.language.conditions import Condition
from release_specs.meanings import Meanings
from release_specs.tallies import Summand, Tally, extended_size

MOST_KEYS = 2**62


@dataclass(frozen=True, slots=True)
class Adder:
    """What is added up beside the number of rows: a sum, or how many have a usable value or meet a condition."""

    adds: Summand | None = None
    usable: str | None = None
    where: Condition | None = None


@dataclass(frozen=True)
class Cluster:
    """Tallies of the same rows on the same spine. `optional` attributes may not apply: one more index says so."""

    tallies: tuple[Tally, ...]
    attributes: tuple[Attribute, ...]
    optional: frozenset[Attribute]

    @property
    def first(self) -> Tally:
        """Any of its tallies: they agree on entity, universe, spine and cap."""
        return self.tallies[0]

    @property
    def spine(self) -> Hierarchy | None:
        """The geography it is counted on."""
        return self.first.spine

    @property
    def level(self) -> str | None:
        """The smallest level that one of its tallies asks for."""
        if self.spine is None:
            return None
        return next(level for level in reversed(self.spine.levels) if any(level in t.levels for t in self.tallies))

    @property
    def areas(self) -> int:
        """The number of areas it is counted for."""
        return self.first.areas(self.level)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The radices of its key, below the area."""
        return tuple(extended_size(one) + (one in self.optional) for one in self.attributes)

    @property
    def cells(self) -> int:
        """How many cells an area has."""
        return prod(self.sizes) + self.first.elsewhere

    @property
    def size(self) -> int:
        """The number of keys."""
        return self.areas * self.cells

    @property
    def adders(self) -> tuple[Adder, ...]:
        """What is added up beside the number of rows, each once."""
        return tuple(dict.fromkeys(adder for tally in self.tallies if (adder := adder_of(tally)) is not None))


def adder_of(tally: Tally) -> Adder | None:
    """What a tally adds up; None where it counts rows."""
    if tally.adds is None and tally.usable is None and tally.where is None:
        return None
    return Adder(tally.adds, tally.usable, tally.where)


def clusters_of(meanings: Meanings, tallies: Iterable[Tally]) -> list[Cluster]:
    """The tallies in clusters, the largest first in each."""
    found: list[Cluster] = []
    for tally in sorted(tallies, key=lambda one: -one.cells * one.areas(_smallest(one))):
        alone = _cluster(meanings, (tally,))
        for place, cluster in enumerate(found):
            together = _cluster(meanings, (*cluster.tallies, tally)) if _alike(cluster.first, tally) else None
            if together is not None and together.size <= min(cluster.size + alone.size, MOST_KEYS):
                found[place] = together
                break
        else:
            found.append(alone)
    return found


def _smallest(tally: Tally) -> str | None:
    return tally.levels[-1] if tally.levels else None


def _alike(one: Tally, other: Tally) -> bool:
    """Whether two tallies count the same rows, equally often."""
    same = all(getattr(one, what) == getattr(other, what) for what in ("entity", "universe", "cap"))
    spine = (one.spine.name if one.spine else None) == (other.spine.name if other.spine else None)
    return same and spine and not (one.elsewhere or other.elsewhere) and _several(one) == _several(other)


def _several(tally: Tally) -> set[Attribute]:
    return {attribute for attribute in tally.attributes if attribute.up_to > 1}


def _cluster(meanings: Meanings, tallies: Sequence[Tally]) -> Cluster:
    attributes = tuple(dict.fromkeys(attribute for tally in tallies for attribute in tally.attributes))
    shared = set(attributes).intersection(*(tally.attributes for tally in tallies))
    optional = {one for one in attributes if one not in shared and may_not_apply(meanings, one)}
    return Cluster(tuple(tallies), attributes, frozenset(optional))


def may_not_apply(meanings: Meanings, attribute: Attribute) -> bool:
    """Whether some rows may have no value of an attribute because it does not apply to them."""
    column = meanings.spec.microdata[attribute.owner].columns.get(attribute.base)
    return column is not None and (column.applies_to is not None or column.not_applicable is not None)
