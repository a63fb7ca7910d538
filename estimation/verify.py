"""Finished tables looked at once more: every promise about published numbers, checked by plain addition.

Nothing here is shared with how the numbers were made; what a table counts is read from the spec anew. Where the spec
does not say for certain that two tables count the same rows, they are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod
from typing import Protocol

import numpy as np

from estimation.arrays import Flags, Integers, Numbers
from release_specs.domain import Attribute, Domain, Hierarchy
from release_specs.language.conditions import Condition
from release_specs.language.phrases import Rule, TablePart
from release_specs.meanings import NOT_STATED, Meanings, Node, Test
from release_specs.reading.resolve import leaves_out
from release_specs.spec import ReleaseSpec
from release_specs.tallies import EXACT, Tally, extended_size

MOST_OF_A_KIND = 5
NO_END = 2**62
FALSE, UNKNOWN, TRUE = 0, 1, 2
WORDS = {"=": "the same as", "<=": "at most", ">=": "at least"}

Published = Mapping[tuple[str, str | None], Integers]
"""For each tally by name, and level, its numbers (area, cell) as published, hidden cells included."""
Spans = list[tuple[int, int]]
Clauses = frozenset[frozenset[Test]]
"""A condition: any of several clauses, each of which is all of its tests."""


class Exact(Protocol):
    """Numbers that are published without noise."""

    tally: Tally
    level: str | None
    numbers: Integers


@dataclass(frozen=True, slots=True)
class Rows:
    """What the rows of a table surely meet, and the columns that surely apply to them (or place them in an area)."""

    conditions: frozenset[Clauses]
    applying: frozenset[Node]

    @property
    def tests(self) -> set[Test]:
        """What every row meets, whatever else it meets."""
        return {test for clauses in self.conditions if len(clauses) == 1 for clause in clauses for test in clause}


@dataclass(frozen=True, eq=False)
class Shown:
    """A table, or an exact total, with its numbers by level."""

    tally: Tally
    rows: Rows
    numbers: dict[str | None, Numbers] = field(repr=False)
    exact: bool = False

    def at(self, level: str | None) -> Numbers | None:
        """The numbers of a level: as published, or added up from the nearest level below."""
        tree = self.tally.spine
        if level in self.numbers or tree is None or level is None:
            return self.numbers.get(level)
        below = [one for one in tree.levels[tree.levels.index(level) + 1 :] if one in self.numbers]
        return added_up(tree, self.numbers[below[0]], below[0], level) if below else None

    def place(self, level: str | None, area: int) -> str:
        """Which number is meant: the table, its level, the area."""
        tally = self.tally
        what = f"the exact total of {tally.universe}" if self.exact else f"table '{tally.table}'"
        what += "" if tally.statistic == "count" or self.exact else f" ({tally.statistic})"
        if tally.spine is None or level is None:
            return what if tally.spine is None else f"{what} in all areas"
        return f"{what} at {level}, area {tally.spine.areas[level][area].code}"


@dataclass(frozen=True, eq=False)
class Side:
    """A table summed to a margin: of each axis that is kept the groups of its codes, negative for codes left out."""

    shown: Shown
    kept: tuple[tuple[int, Integers], ...]

    def of(self, numbers: Numbers) -> Numbers:
        """The margin (area, group) of numbers (area, cell)."""
        shape = self.shown.tally.shape
        found = numbers[:, : prod(shape)].reshape(-1, *shape)
        for axis, groups in self.kept:
            front = np.moveaxis(found, axis + 1, 0)
            summed = np.zeros((int(groups.max()) + 1, *front.shape[1:]), found.dtype)
            np.add.at(summed, groups[groups >= 0], front[groups >= 0])
            found = np.moveaxis(summed, 0, axis + 1)
        kept = [axis + 1 for axis, _ in self.kept]
        rest = tuple(axis for axis in range(1, found.ndim) if axis not in kept)
        order = np.argsort(np.argsort(kept))
        return found.sum(axis=rest).transpose(0, *(order + 1)).reshape(len(numbers), -1)


@dataclass(frozen=True, slots=True)
class Finding:
    """Faults of one kind: how many, and sentences about the first."""

    kind: str
    number: int
    sentences: tuple[str, ...]

    @classmethod
    def of(cls, kind: str, wrong: Flags, sentence: Callable[[int, int], str]) -> Finding:
        """Faults at the areas and cells where something is wrong."""
        places = np.argwhere(wrong)
        return cls(kind, len(places), tuple(sentence(int(a), int(c)) for a, c in places[:MOST_OF_A_KIND]))


def faults(
    spec: ReleaseSpec, domain: Domain, tallies: Sequence[Tally], published: Published, exact: Sequence[Exact] = ()
) -> list[str]:
    """What is wrong with finished tables, in plain sentences; nothing where every promise holds."""
    meanings = Meanings(spec, domain)
    findings = [one for tally in tallies for one in _misshapen(tally, published)]
    tables = [
        Shown(tally, rows_of(meanings, tally), found)
        for tally in tallies
        if (found := {level: published[tally.name, level] for level in _levels(tally) if _fits(tally, level, published)})
    ]
    totals = [Shown(one.tally, rows_of(meanings, one.tally), {one.level: one.numbers}, exact=True) for one in exact]
    for table in tables:
        findings += [*_own_faults(table), *_zeros(meanings, table)]
    for one, other in combinations([*tables, *totals], 2):
        findings += [] if one.exact else _disagreements(meanings, one, other)
    for rule in spec.rules:
        findings += _broken(rule, tables)
    return list(_sentences(findings))


def _sentences(findings: Iterable[Finding]) -> Iterator[str]:
    """The first sentences of each kind, and how many more there are."""
    by_kind: dict[str, list[Finding]] = {}
    for finding in findings:
        by_kind.setdefault(finding.kind, []).append(finding)
    for kind, found in by_kind.items():
        shown = [sentence for one in found for sentence in one.sentences][:MOST_OF_A_KIND]
        yield from shown
        more = sum(one.number for one in found) - len(shown)
        if more:
            yield f"and {more} more {kind}"


def _levels(tally: Tally) -> tuple[str | None, ...]:
    return tally.levels or (None,)


def _fits(tally: Tally, level: str | None, published: Published) -> bool:
    found = published.get((tally.name, level))
    return found is not None and found.shape == (tally.areas(level), tally.cells)


def _misshapen(tally: Tally, published: Published) -> Iterator[Finding]:
    """A table that is not there, or has another number of areas or cells; exact totals need not be there."""
    for level in _levels(tally):
        found, expected = published.get((tally.name, level)), (tally.areas(level), tally.cells)
        if not _fits(tally, level, published) and (found is not None or tally.table != EXACT):
            what = "no numbers" if found is None else f"numbers of shape {found.shape}"
            sentence = f"table '{tally.table}' ({tally.statistic}) at {level}: found {what}, expected shape {expected}"
            yield Finding("tables of another shape", 1, (sentence,))


def _own_faults(table: Shown) -> Iterator[Finding]:
    """Numbers that are no whole numbers or negative, and levels that do not add up."""
    codes = [_codes(attribute) for attribute in table.tally.attributes]
    for level, numbers in table.numbers.items():
        name = _namer(table, level, numbers, [*codes, ["elsewhere"]] if table.tally.elsewhere else codes)
        wrong = numbers != np.rint(numbers)
        yield Finding.of("numbers that are not whole", wrong, lambda a, c, say=name: f"{say(a, c)}, expected a whole number")  # type: ignore[misc]
        if not _is_signed(table.tally):
            yield Finding.of("negative numbers", numbers < 0, lambda a, c, say=name: f"{say(a, c)}, expected none below 0")  # type: ignore[misc]
