"""Places as expressions: categories laid over them, and conditions on them, for every engine alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, or_

import ibis
import ibis.expr.types as ir

from release_specs.domain import Attribute
from release_specs.language.conditions import Condition
from release_specs.meanings import Meanings, Node, Span, Test
from tabulation.logic import FALSE, TRUE

Places = Callable[[Node], Sequence[ir.IntegerColumn]]
"""The places of a base in the rows at hand: one expression, or one for each answer."""


def index_of(meanings: Meanings, attribute: Attribute, place: ir.IntegerColumn) -> ir.IntegerColumn:
    """The category that a place falls into; places that are no values stay what they are."""
    if attribute.scale is not None:
        return place
    spans = meanings.spans(attribute)
    if all(first == last == index for first, last, index in spans):
        return place
    return (place >= 0).ifelse(_sorted_into(place, spans), place)


def _sorted_into(place: ir.IntegerColumn, spans: Sequence[tuple[int, int | None, int]]) -> ir.IntegerColumn:
    """The index of the span that a place lies in, found by halves: as few comparisons as their number allows."""
    if len(spans) == 1:
        return ibis.literal(spans[0][2], "int64")
    middle = len(spans) // 2
    lower, upper = _sorted_into(place, spans[:middle]), _sorted_into(place, spans[middle:])
    return (place < spans[middle][0]).ifelse(lower, upper)


def meets(meanings: Meanings, entity: str, condition: Condition, places: Places) -> ir.BooleanValue:
    """Whether rows meet a condition: false, never unknown, where a value is missing, left out or not applicable."""
    clauses = [
        reduce(and_, (_meets_test(meanings.test(entity, test), places) for test in clause))
        for clause in condition.any_of
    ]
    return reduce(or_, clauses)


def meets_all(meanings: Meanings, entity: str, conditions: Sequence[Condition], places: Places) -> ir.BooleanValue:
    """Whether rows meet every one of some conditions; true for none."""
    return reduce(and_, (meets(meanings, entity, one, places) for one in conditions), TRUE)


def _meets_test(test: Test, places: Places) -> ir.BooleanValue:
    answers = places(test.node)
    wanted = reduce(or_, (_within(place, test.wanted) for place in answers))
    if not test.negated:
        return wanted
    return reduce(or_, ((place >= 0).fill_null(FALSE) for place in answers)) & ~wanted


def _within(place: ir.IntegerColumn, spans: Sequence[Span]) -> ir.BooleanValue:
    tests = [_between(place, first, last) for first, last in spans]
    return reduce(or_, tests, FALSE).fill_null(FALSE)


def _between(place: ir.IntegerColumn, first: int, last: int | None) -> ir.BooleanValue:
    if last is None:
        return place >= max(first, 0)
    if first == last:
        return place == first
    return (place >= max(first, 0)) & (place <= last)
