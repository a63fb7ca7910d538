"""Text typed by the language: exact numbers, shares, ranges, dates, names.

Each type is read from text by one function that either returns the value or raises `mistake(code, sentence)`, and
written back by another, so that a spec and its normalised text say the same thing. Nothing here is ever a float.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, time
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from release_specs.diagnostics import did_you_mean

TEXT_SCHEMA: Mapping[str, Any] = {"type": ["string", "number", "boolean"]}
"""An editor's YAML reader may turn `01` into a number and `NO` into false; the language reads both as text."""

RESERVED = ("rest", "none", "all", "edition", "areas", "file", "whole")
UNDECIDED = "DECIDE"
LONGEST_NUMBER = 60


def mistake(code: str, message: str) -> PydanticCustomError:
    """An error in one value: its code for `margrave explain`, and a sentence."""
    return PydanticCustomError(code, message)


def typed(read: Callable[[Any], Any], write: Callable[[Any], Any], **schema: Any) -> tuple[Any, ...]:
    """The three annotations that make a type of the language: how it is read, written and described."""
    return (
        PlainValidator(read),
        PlainSerializer(write, return_type=object),
        WithJsonSchema({**TEXT_SCHEMA, **schema} if "type" not in schema and "anyOf" not in schema else schema),
    )


def shape_of(value: object) -> str:
    """What a person would call the thing that was found."""
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return f"'{value}'"


def read_text(value: object) -> str:
    """Any scalar, as written."""
    if isinstance(value, str):
        if value.strip() == UNDECIDED:
            raise mistake("undecided", f"'{UNDECIDED}' marks a choice a person must make; write the value here")
        return value
    if value is None:
        raise mistake("empty-value", "nothing is written after the ':'; write a value or delete the line")
    raise mistake("wrong-shape", f"found {shape_of(value)}; expected one word or text")


def read_name(value: object) -> str:
    """Letters, digits and underscores; none of the language's own words."""
    text = read_text(value)
    if not re.fullmatch(r"[^\W\d]\w*", text):
        raise mistake("bad-name", f"'{text}' is not a name; use letters, digits and _, and begin with a letter")
    if text in RESERVED:
        raise mistake("reserved-name", f"'{text}' is a word of the language; choose another name")
    return text


def read_number(value: object) -> Fraction:
    """An exact number: `12`, `-0.5`, `3/8`, `37.5%` or `1e-10`."""
    if isinstance(value, Fraction):
        return value
    text = read_text(value).strip()
    number = _plain_number(text)
    if number is None:
        raise mistake("bad-number", f"'{text}' is not a number; {_number_advice(text)}")
    return number


def _plain_number(text: str) -> Fraction | None:
    body, percent = (text[:-1].strip(), True) if text.endswith("%") else (text, False)
    shape = re.fullmatch(r"[+-]?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d{1,2})?|\d+\s*/\s*0*[1-9]\d*)", body, re.ASCII)
    if shape is None or len(body) > LONGEST_NUMBER:
        return None
    number = Fraction(body.replace(" ", "")) / (100 if percent else 1)
    return number if len(write_number(number)) <= LONGEST_NUMBER else None


def _number_advice(text: str) -> str:
    if re.fullmatch(r"[+-]?\d{1,3}([, _']\d{3})+(\.\d+)?", text):
        return f"leave out the separators: {re.sub(r'[, _' + chr(39) + ']', '', text)}"
    if re.fullmatch(r"[+-]?\d+,\d+", text):
        return f"the decimal mark is a point: {text.replace(',', '.')}"
    if re.search(r"/\s*0+$", text):
        return "the part below the line is zero"
    if len(text) > LONGEST_NUMBER or re.fullmatch(r"[+-]?\d+(\.\d+)?[eE][+-]?\d+", text):
        return f"write it with at most {LONGEST_NUMBER} characters and an exponent of at most two digits"
    return "write it like 12, -0.5, 3/8, 37.5% or 1e-10"


def write_number(number: Fraction) -> str:
    """The shortest exact text of a number."""
    if number.denominator == 1:
        return str(number.numerator)
    for digits in range(1, 7):
        if (number * 10**digits).denominator == 1:
            whole, part = divmod(abs(number.numerator) * 10**digits // number.denominator, 10**digits)
            return f"{'-' if number < 0 else ''}{whole}.{part:0{digits}d}"
    for digits in range(7, 40):
        if (number * 10**digits).denominator == 1 and abs(number * 10**digits) < 1000:
            return f"{(number * 10**digits).numerator}e-{digits}"
    return f"{number.numerator}/{number.denominator}"


def read_positive(value: object) -> Fraction:
    """An exact number above zero."""
    number = read_number(value)
    if number <= 0:
        raise mistake("bad-number", f"{write_number(number)} is not above zero; write a positive number")
    return number


def read_whole(value: object) -> int:
    """A whole number, 1 or more."""
    if isinstance(value, int):
        return value
    number = read_number(value)
    if number.denominator != 1 or number < 1:
        raise mistake("bad-number", f"{write_number(number)} is not a whole number of at least 1")
    return int(number)


def read_whole_or_zero(value: object) -> int:
    """A whole number, 0 or more."""
    if isinstance(value, int):
        return value
    number = read_number(value)
    if number.denominator != 1 or number < 0:
        raise mistake("bad-number", f"{write_number(number)} is not a whole number of at least 0")
    return int(number)


def read_proportion(value: object) -> Fraction:
    """A number strictly between 0 and 1, such as a confidence, a delta or a quantile."""
    number = read_number(value)
    if not 0 < number < 1:
        advice = f"; did you mean {write_number(number)}%?" if 1 < number < 100 else ""
        raise mistake("bad-number", f"{write_number(number)} is not between 0 and 1 (0% and 100%){advice}")
    return number


class ShareWord(StrEnum):
    """The two shares that are not numbers."""

    REST = "rest"
    NONE = "none"


Share = Fraction | ShareWord


def read_share(value: object) -> Share:
    """A fraction of the enclosing line: `3/8`, `0.375`, `37.5%`, `rest` or `none`."""
    if isinstance(value, ShareWord):
        return value
    if isinstance(value, str) and value in ("rest", "none"):
        return ShareWord(value)
    number = read_number(value)
    if not 0 < number <= 1:
        what = "zero buys nothing; write 'none' for a table computed from others" if number == 0 else ""
        if number > 1:
            what = "a share is at most 1, the whole of the enclosing line"
        raise mistake("bad-share", f"{write_number(number)} is not a share: {what or 'it cannot be negative'}")
    return number


def read_share_number(value: object) -> Fraction:
    """A share that is a number."""
    share = read_share(value)
    if isinstance(share, ShareWord):
        raise mistake("bad-share", f"'{share}' cannot stand here; write a fraction such as 1/4")
    return share


def write_share(share: Share) -> str:
    """A share as text."""
    return str(share) if isinstance(share, ShareWord) else write_number(share)


Endpoint = Fraction | date


def _not_above(first: Endpoint, second: Endpoint) -> bool:
    """Whether one end does not lie above another; a day and a number have no order."""
    if isinstance(first, date) or isinstance(second, date):
        return isinstance(first, date) and isinstance(second, date) and first <= second
    return first <= second


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers or dates from `low` to `high`, both included; None is an open end."""

    low: Endpoint | None
    high: Endpoint | None

    @property
    def dated(self) -> bool:
        """Whether it is of days, not of numbers."""
        return isinstance(self.low, date) or isinstance(self.high, date)

    def holds(self, other: Range) -> bool:
        """Whether every value of another range is in this one."""
        above = self.low is None or (other.low is not None and _not_above(self.low, other.low))
        return above and (self.high is None or (other.high is not None and _not_above(other.high, self.high)))

    def __str__(self) -> str:
        if self.low is not None and self.low == self.high:
            return _write_endpoint(self.low)
        return f"{_write_endpoint(self.low)}..{_write_endpoint(self.high)}"


def read_range(value: object) -> Range:
    """`a`, `a..b`, `a..` or `..b`."""
    if isinstance(value, Range):
        return value
    text = read_text(value).strip()
    ends = [end.strip() for end in text.split("..")]
    if len(ends) > 2 or ends in ([""], ["", ""]):
        raise mistake("bad-range", f"'{text}' is not a range; write 0..17, 65.. or ..17")
    try:
        points = [_read_endpoint(end) if end else None for end in ends]
    except PydanticCustomError as fault:
        if fault.type == "bad-date":
            raise
        raise mistake("bad-range", f"'{text}' is not a range; {_range_advice(text, ends)}") from None
    low, high = points[0], points[-1]
    if low is not None and high is not None:
        if isinstance(low, date) is not isinstance(high, date):
            raise mistake("bad-range", f"'{text}' mixes a date and a number")
        if not _not_above(low, high):
            raise mistake("empty-range", f"'{text}' holds nothing: {ends[0]} is above {ends[-1]}; swap the ends")
    return Range(low, high)


def _range_advice(text: str, ends: list[str]) -> str:
    between = re.fullmatch(r"(-?\d+(?:\.\d+)?)\s*(?:-|–|to|:)\s*(-?\d+(?:\.\d+)?)", text)
    upwards = re.fullmatch(r"(\d+)\s*(?:\+|and (?:over|more)|or more)", text)
    if between:
        return f"write {between[1]}..{between[2]}"
    if upwards:
        return f"write {upwards[1]}.."
    if any("separators" in _number_advice(end) for end in ends):
        return f"leave out the separators: {re.sub('[, _]', '', text)}"
    return "write 0..17, 65.., ..17 or 2025-01-01..2025-12-31"


def _read_endpoint(text: str) -> Endpoint:
    return read_date(text) if re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}", text) else read_number(text)


def _write_endpoint(point: Endpoint | None) -> str:
    if point is None:
        return ""
    return point.isoformat() if isinstance(point, date) else write_number(point)


def read_date(value: object) -> date:
    """A calendar day, `2026-09-15`."""
    text = read_text(value).strip()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise mistake("bad-date", f"'{text}' is not a day of the calendar; write 2026-09-15") from None


def read_time(value: object) -> time:
    """A time of day, `06:00`."""
    if isinstance(value, time):
        return value
    text = read_text(value).strip()
    shape = re.fullmatch(r"(\d{1,2}):(\d{2})", text)
    if shape is None or int(shape[1]) > 23 or int(shape[2]) > 59:
        raise mistake("bad-time", f"'{text}' is not a time of day; write 06:00 or 18:30")
    return time(int(shape[1]), int(shape[2]))


def read_yes_no(value: object) -> bool:
    """`yes` or `no`."""
    if isinstance(value, bool):
        return value
    text = read_text(value)
    if text not in ("yes", "no"):
        raise mistake("bad-choice", f"found '{text}'; expected yes or no")
    return text == "yes"


Text = Annotated[str, *typed(read_text, str)]
Name = Annotated[str, *typed(read_name, str, type="string", pattern=r"^[^\W\d]\w*$")]
Number = Annotated[Fraction, *typed(read_number, write_number)]
Positive = Annotated[Fraction, *typed(read_positive, write_number)]
Whole = Annotated[int, *typed(read_whole, str)]
WholeOrZero = Annotated[int, *typed(read_whole_or_zero, str)]
Proportion = Annotated[Fraction, *typed(read_proportion, write_number)]
ShareText = Annotated[Share, *typed(read_share, write_share)]
ShareNumber = Annotated[Fraction, *typed(read_share_number, write_number)]
RangeText = Annotated[Range, *typed(read_range, str)]
TimeText = Annotated[time, *typed(read_time, lambda value: value.strftime("%H:%M"))]
YesNo = Annotated[bool, *typed(read_yes_no, lambda value: "yes" if value else "no")]


def _either(words: tuple[str, ...]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def choice(*words: str) -> Any:
    """A type with a closed list of words."""

    def read(value: object) -> str:
        text = read_text(value)
        if text not in words:
            near = did_you_mean(text, words)
            advice = f"; {near}" if near.startswith("did") else ""
            raise mistake("bad-choice", f"found '{text}'; expected {_either(words)}{advice}")
        return text

    return typed(read, str, enum=list(words), type="string")
