"""How far one protected unit can move a query: every line of the privacy law's table, and nothing beside it.

A query is described by its shape: what is counted, what decides where, in how many cells. With the protected unit and
the relation between neighbours that gives two exact numbers: the furthest that one unit moves the answer, in L1 and in
squared L2. They may be reached by different changes. A shape for which the law has no line is refused with
`NoProvedBound`. Nothing here looks at data; `tests/mechanisms/test_sensitivity_brute_force.py` compares every line with
all neighbours on small domains.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction


class NoProvedBound(ValueError):  # noqa: N818 - a refusal, named as in the specs' diagnostics
    """The privacy law has no line for this shape under this unit and relation, so it has no price."""


class Relation(StrEnum):
    """Which two datasets are neighbours: one unit more or less, or one unit exchanged for another."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"


class Rows(StrEnum):
    """What a query counts."""

    RECORDS = "records"
    GROUPS = "groups"


class Decides(StrEnum):
    """What decides in which cell a row is counted, and whether it is counted: universe, area and `keep_first` too."""

    OWN = "own"
    """The row's own columns."""
    GROUP = "group"
    """For a record: a column of its group's row, or an attribute derived from the records of the group."""
    MEMBERS = "members"
    """For a group: an attribute derived from its records, such as its size."""


def _check_whole(least: int, **numbers: object) -> None:
    """Only Python's integers: they have no largest, so nothing overflows on the way to a price."""
    for name, number in numbers.items():
        if type(number) is not int:
            raise ValueError(f"{name} must be a Python integer, got {number!r}")
        if number < least:
            raise ValueError(f"{name} must be at least {least}, got {number}")


@dataclass(frozen=True, slots=True)
class Unit:
    """Whose presence is hidden: one record, or a group of which at most `members` records are counted."""

    members: int | None = None

    def __post_init__(self) -> None:
        if self.members is not None:
            _check_whole(1, members=self.members)

    @property
    def is_group(self) -> bool:
        """Whether groups are protected, not single records."""
        return self.members is not None

    @property
    def size(self) -> int:
        """The most records that one unit contributes."""
        return self.members or 1

    def rows(self, of: Rows, cap: int | None = None) -> int:
        """The most rows of this kind that one unit contributes; a table may lower the cap, and a group is one group."""
        if of is Rows.GROUPS:
            return 1
        return self.size if cap is None else min(self.size, cap)


RECORD = Unit()


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The furthest that one unit moves a vector: L1, and L2 kept squared so that it stays exact."""

    l1: Fraction
    l2_squared: Fraction

    def __post_init__(self) -> None:
        for number in (self.l1, self.l2_squared):
            if type(number) is not Fraction:
                raise ValueError(f"a sensitivity is a Fraction, got {number!r}")
        if self.l1 <= 0 or self.l2_squared <= 0:
            raise ValueError("no query has sensitivity 0: one that seems to is an exact total")
        if self.l2_squared > self.l1**2:
            raise ValueError(f"no vector is longer in L2 than in L1, got {self.l2_squared} > {self.l1} squared")


def _bound(l1: int | Fraction, l2_squared: int | Fraction) -> Sensitivity:
    return Sensitivity(Fraction(l1), Fraction(l2_squared))


def _require(kind: type, **values: object) -> None:
    """A text equals the member of an enumeration that it names and is not that member, so types are compared."""
    for name, value in values.items():
        if type(value) is not kind:
            raise TypeError(f"{name} is a {kind.__name__}, got {type(value).__name__}")


def _identified(unit: Unit, relation: Relation) -> None:
    _require(Unit, unit=unit)
    _require(Relation, relation=relation)


def _check_rows(of: Rows, by: Decides, cap: int | None) -> None:
    _require(Rows, of=of)
    _require(Decides, by=by)
    if cap is not None:
        _check_whole(1, cap=cap)
    if of is Rows.GROUPS and cap is not None:
        raise ValueError("a cap is on the records of a group; groups are counted once each")
    if by is (Decides.GROUP if of is Rows.GROUPS else Decides.MEMBERS):
        raise ValueError(f"{of} are not counted by '{by}': records go by their group, groups by their members")


@dataclass(frozen=True, slots=True)
class Counts:
    """A table of counts.

    `answers` is the most cells in which one record is counted, after recoding (above 1 for multi-response attributes:
    a record is counted once in each cell, however many of its answers were recoded to it).
    `cap` is the most records counted of one group: where records are protected, a newcomer displaces one beyond it.
    """

    of: Rows = Rows.RECORDS
    by: Decides = Decides.OWN
    one_cell: bool = False
    answers: int = 1
    cap: int | None = None

    def __post_init__(self) -> None:
        _check_whole(1, answers=self.answers)
        _check_rows(self.of, self.by, self.cap)
        _require(bool, one_cell=self.one_cell)
        if self.one_cell and self.answers > 1:
            raise ValueError("a query of one cell counts each record at most once")

    @property
    def depends_on_the_row_alone(self) -> bool:
        """Whether the other records of a group have no say in how a record or a group is counted."""
        return self.by is Decides.OWN and self.cap is None

    def sensitivity(self, unit: Unit, relation: Relation) -> Sensitivity:
        """The exact bound for one unit."""
        _identified(unit, relation)
        if unit.is_group or self.depends_on_the_row_alone:
            return self._of_rows_that_come_and_go(unit, relation)
        return self._of_rows_that_others_move(relation)

    def _of_rows_that_come_and_go(self, unit: Unit, relation: Relation) -> Sensitivity:
        """The unit's rows enter or leave; no other row moves. All rows of a unit may be in one cell (not the root)."""
        if self.of is Rows.GROUPS and self.answers > 1:
            raise NoProvedBound("groups by a multi-response attribute have no proved bound; recode it to one answer")
        rows = unit.rows(self.of, self.cap)
        sides = 2 if relation is Relation.REPLACE and not self.one_cell else 1
        return _bound(sides * rows * self.answers, sides * rows**2 * self.answers)

    def _of_rows_that_others_move(self, relation: Relation) -> Sensitivity:
        """A record that comes or goes displaces one under a cap, or moves its group, or all records of its group.

        A query of one cell is no exception: an exchange touches two groups, and both may move it the same way.
        """
        if self.answers > 1:
            raise NoProvedBound("multi-response counts beside a cap or by a group have no proved bound for one record")
        moved = self.cap if self.by is Decides.GROUP else 1
        if moved is None:
            raise NoProvedBound("records by something of their group need a cap on the records counted of one group")
        if relation is Relation.ADD_REMOVE:
            return _bound(2 * moved, 2 * moved**2)
        return _bound(4 * moved, 8 * moved**2)


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums of a whole number of ticks, each value clipped to [low, high] ticks before it is added.

    A row without a value adds 0, also where 0 is outside the clip. A sum of distances from the clip's midpoint is a
    sum with the clip moved likewise (in half ticks where its width is odd).
    """

    low: int
    high: int
    of: Rows = Rows.RECORDS
    by: Decides = Decides.OWN
    one_cell: bool = False
    cap: int | None = None

    def __post_init__(self) -> None:
        _check_rows(self.of, self.by, self.cap)
        _require(bool, one_cell=self.one_cell)
        if type(self.low) is not int or type(self.high) is not int:
            raise ValueError(f"clips are Python integers, got {self.low!r} and {self.high!r}")
        if self.low > self.high:
            raise ValueError(f"the lower clip {self.low} is above the upper {self.high}")
        if self.furthest == 0:
            raise ValueError("a sum of zeros is no query; widen the clip")

    @property
    def furthest(self) -> int:
        """The furthest one value is from zero: what a row that enters or leaves can change."""
        return max(abs(self.low), abs(self.high))

    @property
    def depends_on_the_row_alone(self) -> bool:
        """Whether the other records of a group have no say in what a record adds."""
        return self.by is Decides.OWN and self.cap is None

    def sensitivity(self, unit: Unit, relation: Relation) -> Sensitivity:
        """The exact bound for one unit. Under replace a value may cross the whole clip inside one cell."""
        _identified(unit, relation)
        if not unit.is_group and (self.of is Rows.GROUPS or not self.depends_on_the_row_alone):
            raise NoProvedBound("sums of groups, by a group or beside a cap have no proved bound for one record")
        rows, furthest, width = unit.rows(self.of, self.cap), self.furthest, self.high - self.low
        if relation is Relation.ADD_REMOVE:
            l1, l2_squared = furthest, furthest**2
        elif self.one_cell:
            l1 = max(width, furthest)
            l2_squared = l1**2
        else:
            l1, l2_squared = 2 * furthest, max(2 * furthest**2, width**2)
        return _bound(rows * l1, rows**2 * l2_squared)


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of candidates for a selection: the furthest that one unit moves any one score.

    The score is a count (`most_common`), or minus the distance of a rank from the rank of `quantile`.
    """

    quantile: Fraction | None = None
    of: Rows = Rows.RECORDS
    by: Decides = Decides.OWN
    cap: int | None = None

    def __post_init__(self) -> None:
        _check_rows(self.of, self.by, self.cap)
        if self.quantile is not None and (type(self.quantile) is not Fraction or not 0 <= self.quantile <= 1):
            raise ValueError(f"a quantile is a Fraction between 0 and 1, got {self.quantile!r}")

    @property
    def depends_on_the_row_alone(self) -> bool:
        """Whether the other records of a group have no say in what a record or a group adds to a score."""
        return self.by is Decides.OWN and self.cap is None

    @property
    def one_cell(self) -> bool:
        """A selection looks at all candidates."""
        return False

    def sensitivity(self, unit: Unit, relation: Relation) -> Sensitivity:
        """The bound on one score, in both places."""
        _identified(unit, relation)
        if not unit.is_group and not self.depends_on_the_row_alone:
            raise NoProvedBound("scores by a group, by its members or beside a cap have no proved bound for one record")
        furthest = Fraction(1)
        if self.quantile is not None and relation is Relation.ADD_REMOVE:
            furthest = max(self.quantile, 1 - self.quantile)
        furthest *= unit.rows(self.of, self.cap)
        return _bound(furthest, furthest**2)


@dataclass(frozen=True, slots=True)
class Responses:
    """One randomised answer for every record: the number of answers is published, so it must not tell neighbours.

    `cap` is the most records that answer of one group. Where records are protected it lets others answer in a
    record's place, and the number of answers then differs between neighbours.
    """

    cap: int | None = None

    def __post_init__(self) -> None:
        _check_rows(Rows.RECORDS, Decides.OWN, self.cap)

    @property
    def depends_on_the_row_alone(self) -> bool:
        """Whether a record answers for itself, whoever else is in its group."""
        return self.cap is None

    @property
    def one_cell(self) -> bool:
        """Every record is a cell of its own."""
        return False

    def sensitivity(self, unit: Unit, relation: Relation) -> Sensitivity:
        """The number of answers that one unit gives."""
        _identified(unit, relation)
        if relation is not Relation.REPLACE:
            raise NoProvedBound("randomised response publishes how many answered: it needs neighbours: replace")
        if not unit.is_group and self.cap is not None:
            raise NoProvedBound("randomised response beside a cap has no proved bound for one record")
        answers = unit.rows(Rows.RECORDS, self.cap)
        return _bound(answers, answers)


Shape = Counts | Sums | Scores | Responses
"""Everything the privacy law has a line for."""
