"""Finished tables looked at once more: every promise about published numbers, checked by plain addition.

Nothing here is shared with how the numbers were made; what a table counts is read from the spec anew. Where the spec
does not say for certain that two tables count the same rows, or one a part of the other's, they are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from estimation.arrays import Integers, Numbers
from release_specs.domain import Attribute, Domain, Hierarchy
from release_specs.language.conditions import Condition
from release_specs.language.phrases import Rule, TablePart
from release_specs.meanings import NOT_STATED, Meanings, Node, Span, Test
from release_specs.reading.resolve import leaves_out
from release_specs.spec import ReleaseSpec
from release_specs.tallies import EXACT, Tally, extended_size

MOST_OF_A_KIND = 5
FALSE, UNKNOWN, TRUE = 0, 1, 2
RELATIONS = {"=": (np.equal, "exactly"), "<=": (np.less_equal, "at most"), ">=": (np.greater_equal, "at least")}

Published = Mapping[tuple[str, str | None], Integers]
"""For each tally by name, and level, its numbers (area, cell) as published, hidden cells included."""
Clauses = frozenset[frozenset[Test]]
"""A condition: any of several clauses, each of which is all of its tests."""
Axis = tuple[int, Integers, list[str]]
"""One attribute of a margin: its number, the group of each of its codes (negative: left out), the groups' names."""
Finding = tuple[str, int, list[str]]
"""Faults of one kind: how many, and sentences about the first."""


class Rows(NamedTuple):
    """What rows surely meet, and the columns that surely apply to them (or place them in an area)."""

    conditions: frozenset[Clauses]
    applying: frozenset[Node]


@dataclass(frozen=True, eq=False)
class Shown:
    """A table, or an exact total, with its numbers by level."""

    tally: Tally
    rows: Rows
    numbers: Mapping[str | None, Numbers] = field(repr=False)
    name: str

    @property
    def is_signed(self) -> bool:
        """Whether its numbers may be negative."""
        return self.tally.adds is not None and self.tally.adds.bounds[0] < 0

    def at(self, level: str | None) -> Numbers | None:
        """The numbers of a level: as published, or added up from the nearest published level below."""
        tree = self.tally.spine
        if level in self.numbers or tree is None or level is None:
            return self.numbers.get(level)
        below = [one for one in tree.levels[tree.levels.index(level) :] if one in self.numbers]
        return _added_up(tree, self.numbers[below[0]], below[0], level) if below else None

    def margin(self, level: str | None, numbers: Numbers, axes: Sequence[Axis]) -> Margin:
        """Numbers (area, cell) summed over all but some attributes."""
        codes = np.indices(self.tally.shape).reshape(len(self.tally.shape), prod(self.tally.shape))
        group = np.zeros(codes.shape[1], np.int64)
        for number, groups, names in axes:
            place = groups[codes[number]]
            group = np.where((group < 0) | (place < 0), -1, group * len(names) + place)
        found = np.zeros((prod(len(names) for _, _, names in axes), len(numbers)), numbers.dtype)
        np.add.at(found, group[group >= 0], numbers.T[: len(group)][group >= 0])
        return Margin(self, level, found.T, [names for _, _, names in axes])

    def own(self, level: str | None) -> Margin:
        """Its numbers as they stand."""
        return Margin(self, level, self.numbers[level], [_codes(attribute) for attribute in self.tally.attributes])


@dataclass(frozen=True, eq=False)
class Margin:
    """Numbers (area, group) of a table."""

    shown: Shown
    level: str | None
    numbers: Numbers = field(repr=False)
    names: list[list[str]] = field(repr=False)

    def say(self, area: int, group: int) -> str:
        """One number with its table, level, area and codes."""
        tree, sizes = self.shown.tally.spine, [len(names) for names in self.names]
        place = f" at {self.level}, area {tree.areas[self.level][area].code}" if tree and self.level else ""
        places = np.unravel_index(group, sizes) if sizes and group < prod(sizes) else ()
        codes = "".join(f", {names[n]}" for names, n in zip(self.names, places, strict=False))
        return f"{self.shown.name}{place}{codes}: found {self.numbers[area, group]}"

    def against(self, kind: str, relation: str, expected: Numbers, source: str) -> Finding:
        """Where the numbers are not as expected."""
        holds, word = RELATIONS[relation]
        wrong = [(int(area), int(group)) for area, group in np.argwhere(~holds(self.numbers, expected))]
        told = [f"{self.say(*at)}, expected {word} {expected[at]}{source}" for at in wrong[:MOST_OF_A_KIND]]
        return kind, len(wrong), told


def faults(
    spec: ReleaseSpec, domain: Domain, tallies: Sequence[Tally], published: Published, exact: Sequence[Any] = ()
) -> list[str]:
    """What is wrong with finished tables, in plain sentences; none where every promise holds.

    `exact` are numbers published without noise, each with its `tally`, `level` and `numbers`.
    """
    meanings = Meanings(spec, domain)
    tables = [_table(meanings, tally, published) for tally in tallies]
    totals = [
        Shown(x.tally, _rows_of(meanings, x.tally), {x.level: x.numbers}, f"the exact {x.tally.universe}")
        for x in exact
    ]
    findings: list[Finding] = []
    for table in tables:
        findings += [*_own_faults(table), *_where_nothing_can_be(meanings, table)]
    for one, other in combinations(tables, 2):
        findings += _disagreements(meanings, one, other)
    for table, total in product(tables, totals):
        findings += _disagreements(meanings, table, total)
    for rule in spec.rules:
        findings += _broken(rule, tables)
    told: list[str] = []
    for kind in dict.fromkeys(kind for kind, _, _ in findings):
        first = [sentence for one, _, sentences in findings if one == kind for sentence in sentences][:MOST_OF_A_KIND]
        more = sum(number for one, number, _ in findings if one == kind) - len(first)
        told += [*first, *([f"and {more} more {kind}"] if more else [])]
    return told


def _table(meanings: Meanings, tally: Tally, published: Published) -> Shown:
    """A table with its numbers, as far as they have the declared shape."""
    found = {level: published.get((tally.name, level)) for level in tally.levels or (None,)}
    shapes = {level: (tally.areas(level), tally.cells) for level in found}
    numbers = {level: one for level, one in found.items() if one is not None and one.shape == shapes[level]}
    name = f"table '{tally.table}'" + (f" ({tally.statistic})" if tally.statistic != "count" else "")
    return Shown(tally, _rows_of(meanings, tally), numbers, name)


def _own_faults(table: Shown) -> Iterator[Finding]:
    """Levels without numbers (exact totals need none), numbers that are not whole or negative, and wrong sums."""
    for level in set(table.tally.levels or (None,)) - set(table.numbers) if table.tally.table != EXACT else ():
        shape = f"{table.tally.areas(level)} areas of {table.tally.cells} cells"
        yield "missing tables", 1, [f"{table.name} at {level}: found no such numbers, expected {shape}"]
    for level, numbers in table.numbers.items():
        own = table.own(level)
        yield own.against("numbers that are not whole", "=", np.rint(numbers), ", a whole number")
        if not table.is_signed:
            yield own.against("negative numbers", ">=", np.zeros_like(numbers), "")
    for upper, lower in pairwise(table.numbers):
        if table.tally.spine is not None and upper is not None and lower is not None:
            below = _added_up(table.tally.spine, table.numbers[lower], lower, upper)
            yield table.own(upper).against("levels that do not add up", "=", below, f", the sum over {lower}")


def _added_up(tree: Hierarchy, numbers: Numbers, lower: str, upper: str) -> Numbers:
    """Numbers of a lower level, added up to the areas of an upper."""
    place = np.arange(len(numbers))
    for depth in range(tree.levels.index(lower), tree.levels.index(upper), -1):
        numbered = {area.code: n for n, area in enumerate(tree.areas[tree.levels[depth - 1]])}
        place = np.array([numbered[area.parent or ""] for area in tree.areas[tree.levels[depth]]])[place]
    found = np.zeros((len(tree.areas[upper]), numbers.shape[1]), numbers.dtype)
    np.add.at(found, place, numbers)
    return found


def _codes(attribute: Attribute) -> list[str]:
    codes = [*(category.code for category in attribute.categories), *(["not stated"] if attribute.hidden else [])]
    return [f"{attribute.name} {code}" for code in codes]


def _read(meanings: Meanings, entity: str, condition: Condition) -> Clauses:
    return frozenset(frozenset(meanings.test(entity, test) for test in clause) for clause in condition.any_of)


def _rows_of(meanings: Meanings, tally: Tally) -> Rows:
    """The universe, and who has a value of every column and area the table looks at."""
    microdata = meanings.spec.microdata
    wanted = [*meanings.conditions(tally.universe), *([tally.where] if tally.where is not None else [])]
    held = {_read(meanings, tally.entity, condition) for condition in wanted}
    if tally.usable is not None:  # any value will do: none is unwanted
        held.add(frozenset({frozenset({Test(meanings.node(tally.entity, tally.usable), (), negated=True)})}))
    ahead = [*((one.owner, one.base) for one in tally.attributes), *(test.node for test in _sure(held))]
    if tally.spine is not None:
        owner, name = meanings.area_node(tally.entity, tally.spine.name)
        ahead += [(owner, name)] if leaves_out(microdata[owner], microdata[owner].columns[name]) else []
    applying: set[Node] = set()
    for node in ahead:  # grows on the way: a condition may look at columns that do not apply to everyone either
        column = microdata[node[0]].columns.get(node[1])
        if column is not None and column.applies_to is not None:
            condition = _read(meanings, node[0], column.applies_to)
            ahead += [] if condition in held else [test.node for test in _sure({condition})]
            held.add(condition)
        elif column is not None and (column.not_applicable is not None or column.area is not None):
            applying.add(node)
    return Rows(frozenset(held), frozenset(applying))


def _sure(conditions: Iterable[Clauses]) -> list[Test]:
    """The tests that every row passes that meets some conditions."""
    return [test for condition in conditions if len(condition) == 1 for clause in condition for test in clause]


def _is_within(meanings: Meanings, rows: Rows, other: Rows) -> bool:
    """Whether some rows are surely among others."""
    met = all(_judged(meanings, rows, (), one) == TRUE for one in other.conditions - rows.conditions)
    return met and rows.applying >= other.applying


def _judged(meanings: Meanings, rows: Rows, attributes: Sequence[Attribute], condition: Clauses) -> Integers:
    """For each cell of some attributes whether rows that are in it meet a condition."""
    passed = {test: _passed(meanings, rows, attributes, test) for clause in condition for test in clause}
    found: Integers = np.max([np.min([passed[test] for test in clause], axis=0) for clause in condition], axis=0)
    return found


def _passed(meanings: Meanings, rows: Rows, attributes: Sequence[Attribute], test: Test) -> Integers:
    """For each cell whether its rows pass a test: from their code of its column, or from a test that all rows pass."""
    known = [one for one in _sure(rows.conditions) if one.node == test.node]
    sure = test in known or any(_verdict(meanings, test, x.wanted) == TRUE for x in known if not x.negated)
    found: Integers = np.full([extended_size(one) for one in attributes], TRUE if sure else UNKNOWN)
    for number, attribute in enumerate(attributes):
        if (attribute.owner, attribute.base) == test.node:
            told = np.array([_verdict(meanings, test, spans) for spans in _held(meanings, attribute)])
            told = told.reshape([-1 if axis == number else 1 for axis in range(len(attributes))])
            found = np.where(told == UNKNOWN, found, told)
    return found


def _verdict(meanings: Meanings, test: Test, spans: Sequence[Span]) -> int:
    """Whether a value somewhere in these places passes a test; of several answers one tells only part."""
    edges = [edge for first, last in test.wanted for edge in (first, first if last is None else last + 1)]
    places = [*(first for first, _ in spans), *(edge for edge in edges if _holds(spans, edge))]
    passed = {place >= 0 and _holds(test.wanted, place) is not test.negated for place in places}
    several = meanings.base(test.node).answers is not None
    if len(passed) != 1 or not (test.wanted or test.negated) or (several and passed == {test.negated}):
        return UNKNOWN
    return TRUE if passed == {True} else FALSE


def _holds(spans: Sequence[Span], place: int) -> bool:
    return any(first <= place and (last is None or place <= last) for first, last in spans)


def _held(meanings: Meanings, attribute: Attribute) -> list[list[Span]]:
    """The places of each code of an attribute, "not stated" included."""
    found: list[list[Span]] = [[(place, place)] if attribute.scale else [] for place in range(attribute.size or 0)]
    for first, last, code in meanings.spans(attribute) if attribute.scale is None else ():
        found[code].append((first, last))
    return [*found, [(NOT_STATED, NOT_STATED)]] if attribute.hidden else found


def _where_nothing_can_be(meanings: Meanings, table: Shown) -> Iterator[Finding]:
    """Numbers in cells that are declared impossible, or whose codes no row of the universe has."""
    tally, rows, known = table.tally, table.rows, meanings.domain.names(table.tally.entity)
    declared = [_read(meanings, tally.entity, one) for one in meanings.spec.impossible if one.columns() <= set(known)]
    zero = np.zeros(tally.shape, bool)
    for verdict, conditions in ((TRUE, declared), (FALSE, rows.conditions)):
        for condition in conditions:
            zero |= _judged(meanings, rows, tally.attributes, condition) == verdict
    zero = np.append(zero.reshape(-1), [False] * tally.elsewhere)
    for level, numbers in table.numbers.items():
        expected = np.where(zero, 0, numbers)
        yield table.own(level).against("numbers where nothing can be", "=", expected, ", as no row has these codes")


def _disagreements(meanings: Meanings, one: Shown, other: Shown) -> Iterator[Finding]:
    """Tables of the same rows that differ, and parts that exceed their whole."""
    alike = [(x.entity, x.cap, x.adds, {a for a in x.attributes if a.up_to > 1}) for x in (one.tally, other.tally)]
    if alike[0] != alike[1] or one.tally.elsewhere or other.tally.elsewhere:
        return
    inside, around = _is_within(meanings, one.rows, other.rows), _is_within(meanings, other.rows, one.rows)
    if not (inside or around) or (one.is_signed and not (inside and around)):
        return
    relation = "=" if inside and around else "<=" if inside else ">="
    kind = "numbers that disagree" if relation == "=" else "parts that exceed their whole"
    axes = _shared_axes(meanings, one.tally, other.tally)
    for level, mine, theirs in _shared_levels(one, other):
        right = other.margin(level, theirs, [axis for _, axis in axes])
        left = one.margin(level, mine, [axis for axis, _ in axes])
        yield left.against(kind, relation, right.numbers, f" as in {other.name}")


def _shared_levels(one: Shown, other: Shown) -> Iterator[tuple[str | None, Numbers, Numbers]]:
    """Where two tables can be compared: levels that one has and the other reaches, or all areas together."""
    tree, beside = one.tally.spine, other.tally.spine
    if tree is not None and beside is not None and tree.name == beside.name:
        for level in (level for level in tree.levels if level in one.numbers or level in other.numbers):
            here, there = one.at(level), other.at(level)
            if here is not None and there is not None:
                yield level, here, there
    elif one.numbers and other.numbers:
        mine, theirs = (next(iter(shown.numbers.values())).sum(axis=0, keepdims=True) for shown in (one, other))
        yield None, mine, theirs


def _shared_axes(meanings: Meanings, one: Tally, other: Tally) -> list[tuple[Axis, Axis]]:
    """The attributes of two tables that lie over the same columns, equal ones first, with their common groups."""
    pairs = product(enumerate(one.attributes), enumerate(other.attributes))
    alike = [(m, a, n, b) for (m, a), (n, b) in pairs if (a.owner, a.base, a.hidden) == (b.owner, b.base, b.hidden)]
    found: list[tuple[Axis, Axis]] = []
    for mine, attribute, theirs, beside in sorted(alike, key=lambda pair: pair[1] != pair[3]):
        if all(mine != here[0] and theirs != there[0] for here, there in found):
            groups, others, names = _common(meanings, attribute, beside)
            found.append(((mine, groups, names), (theirs, others, names)))
    return found


def _common(meanings: Meanings, one: Attribute, other: Attribute) -> tuple[Integers, Integers, list[str]]:
    """The finest groups that are unions of codes of both attributes."""
    codes, size = [*_codes(one), *_codes(other)], extended_size(one)
    group = np.arange(len(codes))
    if one == other:
        return group[:size], group[:size], codes[:size]
    first, second = _held(meanings, one), _held(meanings, other)
    for mine, theirs in product(range(size), range(size, len(codes))):
        here, there = first[mine], second[theirs - size]
        if any(_holds(there, place) for place, _ in here) or any(_holds(here, place) for place, _ in there):
            group[group == group[theirs]] = group[mine]
    _, labels = np.unique(group, return_inverse=True)
    names = [" or ".join(codes[n] for n in np.flatnonzero(labels == label)) for label in range(labels.max() + 1)]
    return labels[:size], labels[size:], names


def _broken(rule: Rule, tables: Sequence[Shown]) -> Iterator[Finding]:
    """Where a rule between two tables does not hold; public columns are compared elsewhere."""
    if not isinstance(rule.right, TablePart):
        return
    counts = [
        [one for one in tables if one.tally.name.startswith(f"{part.table}.count")] for part in (rule.left, rule.right)
    ]
    fixed = {name for name, _ in (*rule.left.where, *rule.right.where)}
    for left, right in product(*counts):
        if left.tally.spine != right.tally.spine:
            continue
        shared = [one for one in left.tally.attributes if one in right.tally.attributes and one.name not in fixed]
        mine, theirs = _axes(left.tally, rule.left, shared), _axes(right.tally, rule.right, shared)
        for level in (level for level in left.numbers if level in right.numbers):
            other = right.margin(level, right.numbers[level], theirs).numbers
            found = left.margin(level, left.numbers[level], mine)
            yield found.against("broken rules", rule.relation, other, f" by rule '{rule}'")


def _axes(tally: Tally, part: TablePart, shared: Sequence[Attribute]) -> list[Axis]:
    """The shared attributes code by code without "not stated", then those of which one code is wanted."""
    found: list[Axis] = []
    for attribute in shared:
        groups = np.array([*range(attribute.size or 0), *([-1] * attribute.hidden)])
        found.append((tally.attributes.index(attribute), groups, _codes(attribute)[: attribute.size]))
    for name, code in part.where:
        number = [attribute.name for attribute in tally.attributes].index(name)
        wanted = [0 if one == f"{name} {code}" else -1 for one in _codes(tally.attributes[number])]
        found.append((number, np.array(wanted), [f"{name} {code}"]))
    return found
