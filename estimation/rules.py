"""Rules of a spec as groups of cells: which cells of one table, and which of another, are compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np

from estimation.arrays import Labels
from release_specs.domain import Attribute
from release_specs.language.phrases import Rule, TablePart
from release_specs.tallies import Tally, extended_size


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a rule: a tally, and for each of its cells the group it is compared in, negative for none."""

    tally: Tally
    group_of: Labels = field(repr=False)
    groups: int


@dataclass(frozen=True, eq=False)
class Compared:
    """A rule between two tallies of one geography, at the levels both have."""

    rule: Rule
    left: Side
    relation: str
    right: Side
    levels: tuple[str | None, ...]


def compared(rule: Rule, tallies: dict[str, list[Tally]]) -> list[Compared]:
    """A rule between tables, once for each geography that both are published on."""
    if not isinstance(rule.right, TablePart):
        return []
    found = []
    for left in tallies.get(rule.left.table, []):
        for right in tallies.get(rule.right.table, []):
            levels = _shared_levels(left, right)
            if levels:
                shared = _shared_attributes(left, rule.left, right, rule.right)
                sides = [_side(left, rule.left, shared), _side(right, rule.right, shared)]
                found.append(Compared(rule, sides[0], rule.relation, sides[1], levels))
    return found


def whole_side(tally: Tally, part: TablePart) -> Side:
    """A part of a table summed to one number in each area: what a public column is compared with."""
    return _side(tally, part, [])


def _shared_levels(left: Tally, right: Tally) -> tuple[str | None, ...]:
    if left.spine is None and right.spine is None:
        return (None,)
    if left.spine is None or right.spine is None or left.spine.name != right.spine.name:
        return ()
    return tuple(level for level in left.levels if level in right.levels)


def _shared_attributes(left: Tally, part: TablePart, right: Tally, other: TablePart) -> list[Attribute]:
    """Attributes that both tables are by and neither fixes."""
    fixed = {column for column, _ in (*part.where, *other.where)}
    return [one for one in left.attributes if one in right.attributes and one.name not in fixed]


def _side(tally: Tally, part: TablePart, shared: list[Attribute]) -> Side:
    """Cells with the fixed codes, grouped by the shared attributes; their not-stated codes are left out."""
    wanted = dict(part.where)
    places = []
    for attribute in tally.attributes:
        codes = [category.code for category in attribute.categories]
        if attribute.name in wanted:
            places.append([0 if code == wanted[attribute.name] else -1 for code in codes])
        elif attribute in shared:
            places.append(list(range(len(codes))))
        else:
            places.append([0] * len(codes))
        summed_out = attribute.name not in wanted and attribute not in shared
        places[-1] += [0 if summed_out else -1] * (extended_size(attribute) - len(codes))
    sizes = [len(attribute.categories) if attribute in shared else 1 for attribute in tally.attributes]
    order = [shared.index(one) if one in shared else -1 for one in tally.attributes]
    labels = []
    for cell in product(*places):
        if min(cell, default=0) < 0:
            labels.append(-1)
            continue
        number = 0
        for wanted_place in range(len(shared)):
            at = order.index(wanted_place)
            number = number * sizes[at] + cell[at]
        labels.append(number)
    groups = int(np.prod([len(one.categories) for one in shared], dtype=np.int64)) if shared else 1
    return Side(tally, np.array(labels + [-1] * tally.elsewhere, np.int32), groups)
