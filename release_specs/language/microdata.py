"""What is in the confidential files: entities, their keys and groups, and the domain of every column."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from release_specs.language.conditions import ConditionText
from release_specs.language.model import SpecModel, Words, read_csv_name
from release_specs.language.values import (
    TEXT_SCHEMA,
    Positive,
    Range,
    RangeText,
    Text,
    Whole,
    YesNo,
    choice,
    mistake,
    read_range,
    read_text,
    shape_of,
    typed,
)

COLUMN_TYPES = ("codes", "integer", "number", "date", "area")


@dataclass(frozen=True, slots=True)
class Treatment:
    """What happens to a value that is outside the domain or missing: `nearest`, `leave_out` or `{count_as: CODE}`."""

    kind: str
    code: str | None = None


def read_treatment(value: object) -> Treatment:
    """`nearest`, `leave_out` or `{count_as: CODE}`."""
    if isinstance(value, Treatment):
        return value
    if isinstance(value, dict) and set(value) == {"count_as"}:
        return Treatment("count_as", read_text(value["count_as"]))
    if isinstance(value, dict | list):
        raise mistake("bad-choice", f"found {shape_of(value)}; expected nearest, leave_out or {{count_as: CODE}}")
    text = read_text(value)
    if text not in ("nearest", "leave_out"):
        raise mistake("bad-choice", f"found '{text}'; expected nearest, leave_out or {{count_as: CODE}}")
    return Treatment(text)


TreatmentText = Annotated[
    Treatment,
    *typed(
        read_treatment,
        lambda rule: {"count_as": rule.code} if rule.kind == "count_as" else rule.kind,
        anyOf=[
            {"enum": ["nearest", "leave_out"]},
            {
                "type": "object",
                "properties": {"count_as": TEXT_SCHEMA},
                "required": ["count_as"],
                "additionalProperties": False,
            },
        ],
    ),
]


@dataclass(frozen=True, slots=True)
class CodeList:
    """The declared codes with their labels, in published order; or the CSV file that holds them."""

    inline: tuple[tuple[str, str], ...] = ()
    file: str | None = None


def read_codes(value: object) -> CodeList:
    """`{CODE: label}`, `[CODE]` or `file.csv`."""
    if isinstance(value, CodeList):
        return value
    if isinstance(value, dict) and value:
        if "" in value:
            raise mistake("empty-value", "a code is empty; give it a code, or say what 'missing' values count as")
        return CodeList(tuple((code, read_text(label)) for code, label in value.items()))
    if isinstance(value, list) and value:
        codes = [read_text(code) for code in value]
        if twice := next((code for code, times in Counter(codes).items() if times > 1), None):
            raise mistake("code-twice", f"code '{twice}' is listed twice; keep one")
        return CodeList(tuple((code, code) for code in codes))
    if isinstance(value, str):
        return CodeList(file=read_csv_name(value))
    raise mistake("wrong-shape", f"found {shape_of(value)}; expected {{code: label}}, [codes] or file.csv")


def write_codes(codes: CodeList) -> Any:
    """The code list as plain data."""
    return codes.file if codes.file else dict(codes.inline)


CodesText = Annotated[
    CodeList,
    *typed(
        read_codes,
        write_codes,
        anyOf=[
            {"type": "string", "pattern": r"\.csv$"},
            {"type": "array", "minItems": 1, "items": TEXT_SCHEMA},
            {"type": "object", "minProperties": 1, "additionalProperties": TEXT_SCHEMA},
        ],
    ),
]


@dataclass(frozen=True, slots=True)
class ClipBy:
    """A clip that depends on another column; part of the language, not yet offered."""

    column: str
    ranges: tuple[tuple[str, Range], ...]


def read_clip(value: object) -> Range | ClipBy:
    """A range, or `{by: column, CODE: RANGE}`."""
    if isinstance(value, Range | ClipBy):
        return value
    if isinstance(value, dict) and "by" in value:
        ranges = tuple((code, read_range(part)) for code, part in value.items() if code != "by")
        return ClipBy(read_text(value["by"]), ranges)
    return read_range(value)


ClipText = Annotated[
    Range | ClipBy,
    *typed(
        read_clip,
        lambda clip: (
            {"by": clip.column, **{code: str(part) for code, part in clip.ranges}}
            if isinstance(clip, ClipBy)
            else str(clip)
        ),
        anyOf=[TEXT_SCHEMA, {"type": "object", "required": ["by"], "additionalProperties": TEXT_SCHEMA}],
    ),
]


class Column(SpecModel):
    """One column of a confidential file: its type, what is valid, and what happens to everything else."""

    label: Text | None = None
    """What is printed instead of the column's name."""
    codes: CodesText | None = None
    """TYPE. The declared codes, in published order: `{1: Male, 2: Female}`, `[A, B]`, or a file with `code,label`."""
    integer: RangeText | None = None
    """TYPE. Whole numbers in this range are valid: `0..99`."""
    number: RangeText | None = None
    """TYPE. Numbers in this range are valid, rounded to `step`."""
    date: RangeText | None = None
    """TYPE. Days in this range are valid: `2025-01-01..2025-12-31`."""
    area: Text | None = None
    """TYPE. Codes of the smallest areas of this spine of `geography`."""
    unit: Text | None = None
    """What the number counts: dollars, years."""
    step: Positive | None = None
    """Numbers are rounded to multiples of this, half away from zero. Required for `number`; 1 for `integer`."""
    clip: ClipText | None = None
    """Bounds one record's influence on sums, means and quantiles. The valid range does not."""
    read_as: dict[Text, Text] | None = None
    """Spellings replaced before anything else is checked."""
    not_applicable: Words | None = None
    """The value or values that say: this row has none."""
    applies_to: ConditionText | None = None
    """Which rows have a value at all."""
    outside: TreatmentText | None = None
    """What happens to a value outside the domain: `nearest`, `leave_out` or `{count_as: CODE}`."""
    missing: TreatmentText | None = None
    """What happens to a missing value: `leave_out` or `{count_as: CODE}`."""
    up_to: Whole | None = None
    """Multi-response: a row may have up to this many of the codes, and fall into as many cells."""
    columns: Words | None = None
    """Multi-response: the file's columns that hold the answers."""
    separator: Text | None = None
    """Multi-response: what stands between the answers where one column holds them all."""
    mixed: TreatmentText | None = None
    """For groups built from rows (`from`): what happens where the rows of a group disagree."""

    @property
    def type(self) -> str:
        """Which of codes, integer, number, date and area it is."""
        return next(kind for kind in COLUMN_TYPES if getattr(self, kind) is not None)

    @property
    def valid(self) -> Range | None:
        """The valid range of an integer, number or date."""
        return self.integer or self.number or self.date

    @model_validator(mode="after")
    def has_one_type(self) -> Self:
        """Exactly one of codes, integer, number, date and area."""
        found = [kind for kind in COLUMN_TYPES if getattr(self, kind) is not None]
        if len(found) != 1:
            what = f"found {' and '.join(found)}" if found else "no type is declared"
            raise mistake("column-type", f"{what}; expected exactly one of {', '.join(COLUMN_TYPES)}")
        return self


class ReadOptions(SpecModel):
    """How a text file is written."""

    delimiter: Text = ","
    """What stands between two fields."""
    decimal: Annotated[str, *choice(".", ",")] = "."
    """The decimal mark of numbers."""
    encoding: Text = "utf-8"
    """The text encoding."""
    missing: Words = ("",)
    """Spellings that mean: no value."""
    quoted_newlines: YesNo = False
    """Whether a quoted field may hold a line break. Reading is then less robust, and the certificate says so."""


class Defaults(SpecModel):
    """What happens to values outside the domain and to missing ones, where a column does not say."""

    outside: TreatmentText | None = None
    """For values outside the domain."""
    missing: TreatmentText | None = None
    """For missing values."""


class Entity(SpecModel):
    """One confidential file: what a row is, what identifies it, and its columns."""

    key: Words | None = None
    """The column or columns that identify a row. Without one, every row is a unit of its own; groups need one."""
    group: dict[Text, Text] | None = Field(default=None, alias="in")
    """Rows are nested in groups: `{households: household_id}`."""
    built_from: Text | None = Field(default=None, alias="from")
    """A group without a file of its own: built from the rows of this entity that carry its key."""
    only: ConditionText | None = None
    """Rows of this release, for example `{year: edition}`."""
    duplicates: Annotated[str, *choice("keep_one", "keep_all")] = "keep_one"
    """What happens to rows with the same key."""
    read: ReadOptions = ReadOptions()
    """How the text file is written, where it is not UTF-8 with commas."""
    defaults: Defaults = Defaults()
    """The treatment of values outside the domain and of missing ones, for columns that state none."""
    columns: dict[Text, Column] = Field(default_factory=dict)
    """The declared columns, in published order. Other columns of the file are never read."""
    label: Text | None = None
    """What is printed instead of the entity's name."""
