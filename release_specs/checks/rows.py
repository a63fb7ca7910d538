"""Which rows a condition means, as far as declarations tell: is one inside another, do two exclude each other?

The answers are one-sided. `implies` and `excludes` say yes only when that is certain from the declared domains.
"""

from __future__ import annotations

from pydantic_core import PydanticCustomError

from release_specs.checks.draft import Draft
from release_specs.domain import Attribute
from release_specs.language.conditions import Condition, Criterion
from release_specs.language.values import read_range

Spans = list[tuple[int, int]]
"""Places on a scale, or of codes in their list, from first to last."""

NO_END = 2**62
"""The last place where a count of rows has no end."""


def conditions_of(draft: Draft, universe: str | None) -> list[Condition]:
    """Every condition a row of a universe meets, through the universes it is part of."""
    found: list[Condition] = []
    seen: set[str] = set()
    while universe in draft.spec.universes and universe not in seen:
        seen.add(universe)
        found.append(draft.spec.universes[universe].where)
        universe = draft.spec.universes[universe].of
    return found


def implies(draft: Draft, entity: str, held: list[Condition], wanted: Condition) -> bool:
    """Whether rows that meet all of `held` surely meet `wanted`."""
    if wanted in held:
        return True
    known = _sure_tests(held)
    return any(all(_is_within(draft, entity, known, test) for test in clause) for clause in wanted.any_of)


def excludes(draft: Draft, entity: str, held: list[Condition], other: Condition) -> bool:
    """Whether no row can meet all of `held` and also `other`."""
    known = _sure_tests(held)
    return all(any(_is_apart(draft, entity, known, test) for test in clause) for clause in other.any_of)


def _sure_tests(conditions: list[Condition]) -> list[Criterion]:
    return [test for condition in conditions if len(condition.any_of) == 1 for test in condition.any_of[0]]


def _is_within(draft: Draft, entity: str, known: list[Criterion], wanted: Criterion) -> bool:
    attribute = draft.domain.attribute(entity, wanted.column)
    if attribute is None or attribute.up_to > 1:
        return wanted in known
    outer = spans(attribute, wanted)
    return any(
        test.column == wanted.column
        and all(any(a <= c and d <= b for a, b in outer) for c, d in spans(attribute, test))
        for test in known
    )


def _is_apart(draft: Draft, entity: str, known: list[Criterion], other: Criterion) -> bool:
    attribute = draft.domain.attribute(entity, other.column)
    if attribute is None or attribute.up_to > 1:
        return False
    there = spans(attribute, other)
    return any(
        test.column == other.column and not any(a <= d and c <= b for a, b in there for c, d in spans(attribute, test))
        for test in known
    )


def spans(attribute: Attribute, criterion: Criterion) -> Spans:
    """The places a criterion wants, in order and without overlaps."""
    end = NO_END if attribute.size is None else attribute.size - 1
    places: Spans = []
    for text in criterion.wanted:
        if attribute.scale is None:
            places += [(place, place) for place, found in enumerate(attribute.coded) if found.code == text]
        else:
            try:
                first, last = attribute.scale.span(read_range(text))
            except (PydanticCustomError, TypeError):
                continue
            places.append((max(first, 0), end if last is None else min(last, end)))
    merged = _merged(sorted(places))
    return _complement(merged, end) if criterion.negated else merged


def _merged(places: Spans) -> Spans:
    merged: Spans = []
    for first, last in places:
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def _complement(places: Spans, end: int) -> Spans:
    starts = [0, *(last + 1 for _, last in places)]
    ends = [*(first - 1 for first, _ in places), end]
    return [(first, last) for first, last in zip(starts, ends, strict=True) if first <= last]
