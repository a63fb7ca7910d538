"""Whether the exact tables keep the spec's rules, for the custodian: where they do not, publication will bend them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from release_specs.language.phrases import Rule, TablePart
from release_specs.meanings import Meanings
from tabulation.counts import ExactCounts, Integers


def broken_rules(meanings: Meanings, counts: Mapping[str, ExactCounts]) -> list[tuple[str, str, int, int]]:
    """Each rule between two tables that some cell breaks: the rule, the level, how many cells break it, of how many."""
    found: list[tuple[str, str, int, int]] = []
    for rule in meanings.spec.rules:
        if not isinstance(rule.right, TablePart):
            continue
        for left in _tallies(counts, rule.left.table):
            for right in _tallies(counts, rule.right.table):
                found += _compared(rule, left, right, rule.right)
    return found


def _tallies(counts: Mapping[str, ExactCounts], table: str) -> list[ExactCounts]:
    return [found for found in counts.values() if (found.tally.table, found.tally.statistic) == (table, "count")]


def _compared(
    rule: Rule, left: ExactCounts, right: ExactCounts, right_part: TablePart
) -> list[tuple[str, str, int, int]]:
    one, other = left.tally, right.tally
    if (one.spine.name if one.spine else None) != (other.spine.name if other.spine else None):
        return []
    fixed = {name for name, _ in (*rule.left.where, *right_part.where)}
    shared = [a.name for a in one.attributes if a.name in {b.name for b in other.attributes} and a.name not in fixed]
    levels: list[str | None] = [level for level in one.levels if level in other.levels] if one.levels else [None]
    found = []
    for level in levels:
        first, second = _part(left, rule.left, shared, level), _part(right, right_part, shared, level)
        wrong = {"<=": first > second, ">=": first < second, "=": first != second}[rule.relation]
        if wrong.any():
            found.append((str(rule), level or "whole", int(wrong.sum()), int(wrong.size)))
    return found


def _part(counts: ExactCounts, part: TablePart, shared: list[str], level: str | None) -> Integers:
    """A table, or part of it, on shared attributes; the rest is summed, what is not stated included."""
    tally = counts.tally
    cells: npt.NDArray[Any] = counts.dense(level).reshape(-1, *tally.shape)
    wanted = dict(part.where)
    for axis in range(len(tally.attributes), 0, -1):
        attribute = tally.attributes[axis - 1]
        if attribute.name in wanted:
            codes = [category.code for category in attribute.categories]
            cells = cells.take(codes.index(wanted[attribute.name]), axis=axis)
        elif attribute.name in shared:
            cells = cells.take(range(attribute.size or 0), axis=axis)
        else:
            cells = np.asarray(cells.sum(axis=axis))
    kept = [
        attribute.name for attribute in tally.attributes if attribute.name in shared and attribute.name not in wanted
    ]
    order = [0, *(kept.index(name) + 1 for name in shared)]
    return np.transpose(cells, order)
