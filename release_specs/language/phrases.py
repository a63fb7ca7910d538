"""Short phrases inside a spec: rules between tables, sources of exact totals, reliability classes, calendar days."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Annotated

from release_specs.diagnostics import did_you_mean
from release_specs.language.values import mistake, read_number, read_text, typed, write_number


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A column of a public file: `zones.csv:tot_hhs`."""

    file: str
    column: str

    def __str__(self) -> str:
        return f"{self.file}:{self.column}"


@dataclass(frozen=True, slots=True)
class TablePart:
    """A table, or the part of it where columns have the given codes: `relationship(relate=0)`."""

    table: str
    where: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        inside = ", ".join(f"{column}={code}" for column, code in self.where)
        return f"{self.table}({inside})" if inside else self.table


@dataclass(frozen=True, slots=True)
class Rule:
    """A promise between published numbers: `population >= household_size`."""

    left: TablePart
    relation: str
    right: TablePart | FileColumn

    def __str__(self) -> str:
        return f"{self.left} {self.relation} {self.right}"


def read_rule(value: object) -> Rule:
    """`TABLE <= TABLE`, `TABLE(column=CODE) = TABLE` or `TABLE >= file.csv:column`."""
    if isinstance(value, Rule):
        return value
    text = read_text(value)
    parts = re.split(r"\s*(<=|>=|(?<![<>=])=(?!=))\s*(?![^()]*\))", text.strip())
    if len(parts) != 3:
        raise mistake(
            "bad-rule",
            f"'{text}' is not a rule; write 'table_a <= table_b', 'table_a(column=code) = table_b' or "
            "'table_a >= file.csv:column'",
        )
    left, relation, right = parts
    column = re.fullmatch(r"([^:()]+\.csv):(\w+)", right)
    return Rule(
        _read_part(left, text), relation, FileColumn(column[1], column[2]) if column else _read_part(right, text)
    )


def _read_part(text: str, whole: str) -> TablePart:
    shape = re.fullmatch(r"(\w+)\s*(?:\(\s*([^()]*)\s*\))?", text)
    if shape is None:
        raise mistake("bad-rule", f"'{text}' in '{whole}' is not a table; write table or table(column=code)")
    where = []
    for piece in filter(None, re.split(r"\s*,\s*", shape[2] or "")):
        column, equals, code = (part.strip() for part in piece.partition("="))
        if not (column and equals and code):
            raise mistake("bad-rule", f"'{piece}' in '{whole}' is not a condition; write column=code")
        where.append((column, code))
    return TablePart(shape[1], tuple(where))


@dataclass(frozen=True, slots=True)
class Ratio:
    """One table divided by another, on the attributes they share."""

    numerator: str
    denominator: str

    def __str__(self) -> str:
        return f"{self.numerator} / {self.denominator}"


def read_ratio(value: object) -> Ratio:
    """`TABLE / TABLE`."""
    if isinstance(value, Ratio):
        return value
    text = read_text(value)
    shape = re.fullmatch(r"\s*(\w+)\s*/\s*(\w+)\s*", text)
    if shape is None:
        raise mistake("bad-ratio", f"'{text}' is not a ratio; write 'table_a / table_b'")
    return Ratio(shape[1], shape[2])


@dataclass(frozen=True, slots=True)
class Microdata:
    """The confidential files themselves, as the source of an exact total."""

    def __str__(self) -> str:
        return "microdata"


ExactSource = Microdata | FileColumn | Fraction


def read_source_of_exact(value: object) -> ExactSource:
    """`microdata`, `file.csv:column` or a number."""
    if isinstance(value, Microdata | FileColumn | Fraction):
        return value
    text = read_text(value).strip()
    if text == "microdata":
        return Microdata()
    column = re.fullmatch(r"([^:]+\.csv):(\w+)", text)
    if column:
        return FileColumn(column[1], column[2])
    if re.fullmatch(r"[+-]?[\d.,/%]+", text):
        return read_number(text)
    raise mistake("bad-source", f"'{text}' is no source; write microdata, file.csv:column or a number")


@dataclass(frozen=True, slots=True)
class Unreliable:
    """When a published number belongs to a reliability class: `cv > 20%` or `moe > estimate`."""

    measure: str
    above: Fraction | None

    def __str__(self) -> str:
        return f"{self.measure} > {'estimate' if self.above is None else write_number(self.above)}"


def read_unreliable(value: object) -> Unreliable:
    """`cv > 20%`, `moe > 50` or `moe > estimate`."""
    if isinstance(value, Unreliable):
        return value
    text = read_text(value)
    shape = re.fullmatch(r"\s*(cv|moe)\s*>\s*(\S+)\s*", text)
    if shape is None or (shape[1] == "cv" and shape[2] == "estimate"):
        raise mistake("bad-reliability", f"'{text}' is no reliability rule; write 'cv > 20%' or 'moe > estimate'")
    return Unreliable(shape[1], None if shape[2] == "estimate" else read_number(shape[2]))


MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": -1}


@dataclass(frozen=True, slots=True)
class CalendarDay:
    """A day that comes back: the 15th, or the second Tuesday, of some months. Months count from 1, Monday is 0."""

    number: int
    weekday: int | None
    months: tuple[int, ...]

    def falls_on(self, day: date) -> bool:
        """Whether a date is such a day. A month without it (a 30th of February) has none."""
        if day.month not in self.months or self.weekday not in (None, day.weekday()):
            return False
        if self.number < 0:
            return (day + timedelta(days=1 if self.weekday is None else 7)).month != day.month
        return self.number == (day.day if self.weekday is None else (day.day + 6) // 7)

    def __str__(self) -> str:
        if self.weekday is None:
            day = ordinal(self.number) if self.number > 0 else "last day"
        else:
            day = f"{next(word for word, n in ORDINALS.items() if n == self.number)} {WEEKDAYS[self.weekday]}"
        months = "every month" if len(self.months) == 12 else " and ".join(MONTHS[month - 1] for month in self.months)
        return f"{day} of {months}"


def read_day(value: object) -> CalendarDay:
    """`15th of September`, `10th of April and October`, `second Tuesday of every month`, `last day of March`."""
    if isinstance(value, CalendarDay):
        return value
    text = read_text(value).strip()
    day, of, months = re.split(r"\s+(of)\s+", text, maxsplit=1) if re.search(r"\s+of\s+", text) else (text, "", "")
    if not of:
        raise mistake("bad-day", f"'{text}' is no day; write '15th of September' or 'second Tuesday of every month'")
    number, weekday = _read_day_of_month(day, text)
    return CalendarDay(number, weekday, _read_months(months, text))


def _read_day_of_month(day: str, whole: str) -> tuple[int, int | None]:
    dated = re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th)?", day)
    if dated and 1 <= int(dated[1]) <= 31:
        return int(dated[1]), None
    words = day.split()
    if len(words) == 2 and words[0].lower() in ORDINALS:
        if words[1].lower() == "day" and words[0].lower() == "last":
            return -1, None
        if words[1].capitalize() in WEEKDAYS:
            return ORDINALS[words[0].lower()], WEEKDAYS.index(words[1].capitalize())
        raise mistake("bad-day", f"'{words[1]}' in '{whole}' is no weekday; {did_you_mean(words[1], WEEKDAYS)}")
    raise mistake("bad-day", f"'{day}' in '{whole}' is no day; write 15th, last day, or second Tuesday")


def _read_months(text: str, whole: str) -> tuple[int, ...]:
    if text.lower() == "every month":
        return tuple(range(1, 13))
    months = []
    for word in re.split(r"\s*,\s*|\s+and\s+", text):
        if word.capitalize() not in MONTHS:
            raise mistake("bad-day", f"'{word}' in '{whole}' is no month; {did_you_mean(word, MONTHS)}")
        months.append(MONTHS.index(word.capitalize()) + 1)
    return tuple(sorted(set(months)))


def ordinal(number: int) -> str:
    """`15th`, `2nd`."""
    suffix = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


@dataclass(frozen=True, slots=True)
class Lead:
    """How long before publication the measuring happens."""

    amount: int
    unit: str

    def __str__(self) -> str:
        return f"{self.amount} {self.unit}{'s' if self.amount > 1 else ''} before"


def read_lead(value: object) -> Lead:
    """`2 days before` or `6 hours before`."""
    if isinstance(value, Lead):
        return value
    text = read_text(value).strip()
    shape = re.fullmatch(r"(\d{1,3}) (hour|day|week)s? before", text)
    if shape is None or int(shape[1]) == 0:
        raise mistake("bad-lead", f"'{text}' is no lead time; write '2 days before' or '6 hours before'")
    return Lead(int(shape[1]), shape[2])


def _write(value: object) -> str:
    return write_number(value) if isinstance(value, Fraction) else str(value)


RuleText = Annotated[Rule, *typed(read_rule, str, type="string")]
RatioText = Annotated[Ratio, *typed(read_ratio, str, type="string")]
ExactSourceText = Annotated[ExactSource, *typed(read_source_of_exact, _write)]
UnreliableText = Annotated[Unreliable, *typed(read_unreliable, str, type="string")]
DayText = Annotated[CalendarDay, *typed(read_day, str, type="string")]
LeadText = Annotated[Lead, *typed(read_lead, str, type="string")]
