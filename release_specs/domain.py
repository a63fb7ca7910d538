"""The shape of the data, known before the data: attributes, hierarchies, and what a name means in an entity.

A `Domain` is built from a spec and the public files beside it. Everything in it is declared; nothing is observed.
Every room shares these classes: they say which cells a table has, whatever the microdata hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction

from release_specs.language.values import Endpoint, Range, write_number

MOST_CATEGORIES = 100_000
"""An attribute with more categories than this is not listed one by one."""


@dataclass(frozen=True, slots=True)
class Category:
    """One category of an attribute: its code, its label, and the base column's codes or ranges it holds."""

    code: str
    label: str
    holds: tuple[str | Range, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """Numbers or days from `low` to `high` in steps; an open end only for counts of rows."""

    low: Endpoint
    high: Endpoint | None
    step: Fraction = Fraction(1)

    @property
    def size(self) -> int | None:
        """How many values there are; None when there is no upper end."""
        if self.high is None:
            return None
        return self.index(self.high) + 1

    def index(self, point: Endpoint) -> int:
        """The place of a value on the scale, after rounding to the step (half away from zero)."""
        if isinstance(point, date) and isinstance(self.low, date):
            return (point - self.low).days
        if isinstance(point, date) or isinstance(self.low, date):
            raise TypeError(f"{point} and {self.low} are of different kinds")
        return _round_half_away(point / self.step) - _round_half_away(self.low / self.step)

    def value(self, index: int) -> Endpoint:
        """The value at a place."""
        if isinstance(self.low, date):
            return date.fromordinal(self.low.toordinal() + index)
        return (_round_half_away(self.low / self.step) + index) * self.step

    def span(self, part: Range) -> tuple[int, int | None]:
        """First and last place of a range; its open ends are the scale's."""
        first = 0 if part.low is None else self.index(part.low)
        last = self.size - 1 if self.size is not None else None
        return first, last if part.high is None else self.index(part.high)

    def fits(self, part: Range) -> bool:
        """Whether the ends of a range are of the scale's kind: days with days, numbers with numbers."""
        return all(end is None or isinstance(end, date) is isinstance(self.low, date) for end in (part.low, part.high))

    def __str__(self) -> str:
        return str(Range(self.low, self.high))


def _round_half_away(number: Fraction) -> int:
    whole = int(abs(number) + Fraction(1, 2))
    return whole if number >= 0 else -whole


@dataclass(frozen=True, slots=True)
class Attribute:
    """What a name means in an entity: a coded column, a scale, a recode or a derived attribute.

    `owner` and `base` name the entity and the column (or derived attribute) whose values decide; `hidden` says that
    there is one more code, "not stated", that is measured and never printed.
    """

    name: str
    label: str
    owner: str
    base: str
    coded: tuple[Category, ...] = ()
    scale: Scale | None = None
    hidden: bool = False
    up_to: int = 1
    derived: bool = False
    recoded: bool = False
    unit: str | None = None
    _by_code: Mapping[str, Category] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_code", {category.code: category for category in self.coded})

    @property
    def size(self) -> int | None:
        """How many published categories it has; None when there is no end to them."""
        return self.scale.size if self.scale is not None else len(self.coded)

    @property
    def categories(self) -> tuple[Category, ...]:
        """Its categories in published order; values of a scale are listed one by one."""
        if self.scale is None:
            return self.coded
        if self.size is None or self.size > MOST_CATEGORIES:
            raise ValueError(f"'{self.name}' has too many values to list; recode it")
        points = [self.scale.value(index) for index in range(self.size)]
        texts = [point.isoformat() if isinstance(point, date) else write_number(point) for point in points]
        return tuple(Category(text, text, (Range(point, point),)) for text, point in zip(texts, points, strict=True))

    def code_named(self, code: str) -> Category | None:
        """The category with this code."""
        return self._by_code.get(code)

    def is_read_off(self, finer: Attribute) -> bool:
        """Whether its categories are unions of those of a finer attribute of the same column."""
        if (self.owner, self.base, self.up_to, finer.up_to) != (finer.owner, finer.base, 1, 1):
            return False
        if self == finer or (not finer.recoded and self.recoded):
            return True
        mine = [held for category in self.coded for held in category.holds]
        return bool(mine) and all(any(_within(held, wide) for wide in mine) for held in _all_held(finer))


def _all_held(attribute: Attribute) -> Iterator[str | Range]:
    return (held for category in attribute.coded for held in category.holds)


def _within(narrow: str | Range, wide: str | Range) -> bool:
    if isinstance(narrow, str) or isinstance(wide, str):
        return narrow == wide
    return wide.holds(narrow)


@dataclass(frozen=True, slots=True)
class Area:
    """One area: its code, label, and the area of the next larger level it lies in."""

    code: str
    label: str
    parent: str | None


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A spine: its levels from the whole to the smallest, and every area of each, in published order."""

    name: str
    levels: tuple[str, ...]
    areas: Mapping[str, tuple[Area, ...]]

    @property
    def smallest(self) -> str:
        """The level that area columns carry."""
        return self.levels[-1]


@dataclass(slots=True)
class Domain:
    """Every attribute and hierarchy of a release, and what names mean.

    `unknown` holds names whose declaration is itself mistaken: they exist, but nothing more is said about them.
    """

    attributes: dict[tuple[str, str], Attribute] = field(default_factory=dict)
    hierarchies: dict[str, Hierarchy] = field(default_factory=dict)
    spines: dict[str, dict[str, str]] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)

    def attribute(self, entity: str, name: str) -> Attribute | None:
        """What `name` means for rows of `entity`; None where it means nothing."""
        return self.attributes.get((entity, name))

    def names(self, entity: str) -> list[str]:
        """Every name rows of `entity` may be tabulated by."""
        return [name for owner, name in self.attributes if owner == entity]

    def hierarchy_of(self, entity: str) -> Iterator[Hierarchy]:
        """The spines rows of `entity` lie in, through their own or their group's area column."""
        for spine in self.spines.get(entity, {}):
            if spine in self.hierarchies:
                yield self.hierarchies[spine]

    def level_spine(self, level: str) -> Hierarchy | None:
        """The hierarchy that has this level."""
        return next((tree for tree in self.hierarchies.values() if level in tree.levels), None)


@dataclass(frozen=True, slots=True)
class Query:
    """A table's margin at one level: what is measured there. `level` is None where no geography is involved."""

    table: str
    universe: str
    attributes: tuple[Attribute, ...]
    level: str | None
    areas: int

    @property
    def cells(self) -> int:
        """How many cells are published."""
        cells = self.areas
        for attribute in self.attributes:
            cells *= attribute.size or 0
        return cells
