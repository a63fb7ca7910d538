"""Variables: the declared columns, with the values each may hold numbered from 0."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cached_property
from math import ceil, floor

import numpy as np
import numpy.typing as npt
from pydantic_core import PydanticCustomError

from release_specs.domain import Domain, Scale
from release_specs.language.microdata import Column, Entity
from release_specs.language.values import Endpoint, read_range
from release_specs.spec import ReleaseSpec
from tabulation.synthetic.errors import SynthesisError

Integers = npt.NDArray[np.integer]
Bools = npt.NDArray[np.bool_]

NOT_APPLICABLE = -1
"""The place of a row that has no value."""
NOTHING = -2
"""The place of an answer that was not given."""

WIDEST = 2**60
"""Numbers are drawn as whole numbers of 64 bits."""


@dataclass(frozen=True)
class Variable:
    """A declared column: its codes or areas as `texts`, or its `scale`. `banned` places are spelled like no value."""

    entity: str
    name: str
    column: Column
    texts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    scale: Scale | None = None
    banned: frozenset[int] = frozenset()

    @cached_property
    def span(self) -> tuple[int, int]:
        """The first and last place whose value is valid as it stands, before any rounding."""
        if self.scale is None:
            return 0, len(self.texts) - 1
        low, high, step = self.scale.low, self.scale.high, self.scale.step
        if isinstance(low, Fraction) and isinstance(high, Fraction):
            return ceil(low / step) - self.origin, floor(high / step) - self.origin
        return 0, (self.scale.size or 1) - 1

    @property
    def ruler(self) -> Scale:
        """The scale of a variable that has one."""
        if self.scale is None:
            raise TypeError(f"'{self.name}' holds codes, not numbers or days")
        return self.scale

    @property
    def is_days(self) -> bool:
        """Whether it holds days of the calendar."""
        return self.column.date is not None

    @cached_property
    def origin(self) -> int:
        """Place 0 of a scale, in steps; for days, as an ordinal."""
        first = self.ruler.value(0)
        return first.toordinal() if isinstance(first, date) else int(first / self.ruler.step)

    @cached_property
    def place_of(self) -> dict[str, int]:
        """The place of each code."""
        return {text: place for place, text in enumerate(self.texts)}

    @cached_property
    def answers(self) -> int:
        """How many answers a row may give: more than one for multi-response."""
        if self.column.columns is not None and len(self.column.columns) > 1:
            return min(self.column.up_to or len(self.column.columns), len(self.column.columns))
        return (self.column.up_to or 1) if self.column.separator is not None else 1

    @property
    def file_columns(self) -> tuple[str, ...]:
        """The columns of the file that hold it."""
        return self.column.columns or (self.name,)

    def place_of_text(self, text: str) -> int | None:
        """The place of a value as it is spelled in a file; None for a value outside the domain."""
        if self.scale is None:
            return self.place_of.get(text)
        point = as_point(text)
        if point is None or isinstance(point, date) is not self.is_days:
            return None
        return self.scale.index(point)


def as_point(text: str) -> Endpoint | None:
    """The number or day that a text spells; None where it spells neither."""
    try:
        part = read_range(text)
    except PydanticCustomError:
        return None
    return part.low if part.low == part.high else None


Variables = dict[tuple[str, str], Variable]


def variables_of(spec: ReleaseSpec, domain: Domain) -> Variables:
    """Every declared column by entity and name."""
    return {
        (entity, name): _variable(domain, entity, declared, name)
        for entity, declared in spec.microdata.items()
        for name in declared.columns
    }


def _variable(domain: Domain, entity: str, declared: Entity, name: str) -> Variable:
    column = declared.columns[name]
    if column.area is not None:
        tree = domain.hierarchies[column.area]
        texts = tuple(area.code for area in tree.areas[tree.smallest])
        return Variable(entity, name, column, texts)
    attribute = domain.attribute(entity, name)
    if attribute is None:
        where = f"microdata.{entity}.columns.{name}"
        raise SynthesisError(f"{where}: the valid values have no end; give the range both ends, or list the codes")
    texts = tuple(category.code for category in attribute.coded)
    labels = tuple(category.label for category in attribute.coded)
    bare = Variable(entity, name, column, texts, labels, attribute.scale)
    if bare.scale is not None and max(map(abs, (*bare.span, bare.origin))) * bare.scale.step.numerator >= WIDEST:
        raise SynthesisError(f"microdata.{entity}.columns.{name}: the valid range is too wide to draw from; narrow it")
    return Variable(entity, name, column, texts, labels, attribute.scale, _banned(bare, _no_values(declared, column)))


def _no_values(declared: Entity, column: Column) -> set[str]:
    """Spellings that would be read as no value, or as another one."""
    respelled = {old for old, new in (column.read_as or {}).items() if old != new}
    return {*(column.not_applicable or ()), *declared.read.missing, *respelled}


def _banned(variable: Variable, spellings: Iterable[str]) -> frozenset[int]:
    places = (variable.place_of_text(text) for text in spellings)
    return frozenset(place for place in places if place is not None)
