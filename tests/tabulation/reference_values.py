"""The plain reading of files and cells: bytes to fields, fields to values, texts to hashes. Slow and obvious.

Follows sections 1 and 2 of docs/tabulation.md and shares nothing with the code it is compared with.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from release_specs.domain import Scale
from release_specs.language.microdata import Column, ReadOptions, Treatment
from release_specs.language.values import Range, read_range
from release_specs.load import Loaded

BLANKS = " \t\n\r\v\f"
MARK_OF_UTF8 = b"\xef\xbb\xbf"


class Special(Enum):
    """What a cell can be besides a value."""

    NOT_APPLICABLE = "not applicable"
    NOT_STATED = "not stated"
    MISSING = "missing"


Place = str | int
"""A declared code, the code of a smallest area, or the place of a number or day on its scale."""

Value = Special | frozenset[Place]
"""A value is a set of places, because a row may have several answers; most have one."""


class Cell(NamedTuple):
    """What stands in a file: the value as the file stores it, and its text as it is hashed. None is null."""

    value: Any
    hashed: str | None


NOTHING = Cell(None, None)


def read_file(path: Path, options: ReadOptions, columns: Sequence[str]) -> list[dict[str, Cell]]:
    """The wanted columns of a CSV file, a Parquet file or a folder of Parquet files, record by record."""
    if path.suffix == ".csv":
        return _read_csv(path.read_bytes(), options, columns)
    records: list[dict[str, Cell]] = []
    for part in sorted(path.glob("*.parquet")) if path.is_dir() else [path]:
        file = pq.ParquetFile(part)
        positions_of(list(file.schema_arrow.names), columns)
        for record in file.read(columns=list(columns)).to_pylist():
            records.append({name: Cell(record[name], hashed_text(record[name])) for name in columns})
    return records


def positions_of(header: Sequence[str], columns: Sequence[str]) -> dict[str, int]:
    """Where each wanted column stands; a missing or doubled one is a fault of the file's structure."""
    for name in columns:
        if list(header).count(name) != 1:
            raise ValueError(f"column '{name}' stands {list(header).count(name)} times in the header")
    return {name: list(header).index(name) for name in columns}


def _read_csv(content: bytes, options: ReadOptions, columns: Sequence[str]) -> list[dict[str, Cell]]:
    encoding = "utf-8" if options.encoding.lower().replace("_", "-") == "utf-8-sig" else options.encoding
    delimiter = options.delimiter.encode(encoding).decode("latin-1")
    text = content.removeprefix(MARK_OF_UTF8).decode("latin-1")
    if options.quoted_newlines:
        lines = [fields for fields in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if fields]
        header, records = lines[0], [fields for fields in lines[1:] if fields != lines[0]]
    else:
        first, *others = physical_lines(text)
        header, records = (
            split_line(first, delimiter),
            [split_line(line, delimiter) for line in others if line != first],
        )
    places = positions_of([name.encode("latin-1").decode(encoding) for name in header], columns)
    return [
        {name: _csv_cell(fields[places[name]], encoding) for name in columns}
        if len(fields) == len(header)
        else dict.fromkeys(columns, NOTHING)
        for fields in records
    ]


def physical_lines(text: str) -> Iterator[str]:
    """The text cut at the line feed, without a carriage return before it and without blank lines."""
    for line in text.split("\n"):
        if line.removesuffix("\r"):
            yield line.removesuffix("\r")


def split_line(line: str, delimiter: str) -> list[str]:
    """The fields of one line, by the doc's rules alone."""
    if line.count('"') % 2 == 1:
        return line.split(delimiter)
    fields, quoted, at = [""], False, 0
    while at < len(line):
        if quoted and line.startswith('""', at):
            fields[-1] += '"'
            at += 2
        elif line[at] == '"':
            quoted = not quoted
            at += 1
        elif not quoted and line.startswith(delimiter, at):
            fields.append("")
            at += len(delimiter)
        else:
            fields[-1] += line[at]
            at += 1
    return fields


def _csv_cell(field: str, encoding: str) -> Cell:
    try:
        return Cell(field.encode("latin-1").decode(encoding), field or None)
    except UnicodeDecodeError:
        return NOTHING


def hashed_text(value: Any) -> str | None:
    """The text of a Parquet cell as it is hashed."""
    return text_of(value) or None


def text_of(value: Any) -> str | None:
    """The text of a cell; None where it is null or "not a number"."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float | Decimal):
        if math.isnan(value):
            return None
        return str(int(value)) if math.isfinite(value) and value == int(value) else str(value)
    if isinstance(value, datetime):
        return value.date().isoformat()
    return value.isoformat() if isinstance(value, date) else str(value)


def id_text(text: str | None) -> str | None:
    """An id: trimmed, without a trailing `.0`; None where nothing is left."""
    return None if text is None else text.strip(BLANKS).removesuffix(".0") or None


def digest(key: bytes, texts: Sequence[str | None]) -> str:
    """SHA-256 of the key's hexadecimal digits and then each text as LENGTH:TEXT, or - for null."""
    whole = key.hex() + "".join("-" if text is None else f"{len(text)}:{text}" for text in texts)
    return hashlib.sha256(whole.encode("utf-8")).hexdigest()


@dataclass(frozen=True)
class Declared:
    """A column with everything that decides how its cells are read."""

    name: str
    column: Column
    read: ReadOptions
    outside: Treatment
    missing: Treatment
    codes: tuple[str, ...]
    scale: Scale | None

    @property
    def file_columns(self) -> tuple[str, ...]:
        """The columns of the file it is read from."""
        return self.column.columns or (self.name,)

    def value(self, cells: Sequence[Any]) -> Value:
        """What the cells of a row say, by steps 1 to 5. MISSING is not yet treated."""
        if self.column.up_to is None:
            return self._of_cell(cells[0])
        parts = list(cells)
        if self.column.separator is not None and isinstance(cells[0], str):
            parts = list(cells[0].split(self.column.separator)[: self.column.up_to])
        found = [self._of_cell(part) for part in parts]
        answers: list[Place] = []
        for one in found:
            if isinstance(one, frozenset) and len(answers) < self.column.up_to:
                answers += [place for place in one if place not in answers]
        if answers:
            return frozenset(answers)
        return Special.NOT_APPLICABLE if found[0] is Special.NOT_APPLICABLE else Special.MISSING

    def treated(self, rule: Treatment) -> Value:
        """What `leave_out` or `count_as` makes of a value."""
        if rule.kind == "leave_out":
            return Special.NOT_STATED
        code = rule.code or ""
        if self.scale is None:
            return frozenset([code])
        point = read_range(code).low
        if isinstance(point, Fraction):
            return self._at(self._tick(point))
        return frozenset([self.scale.index(point)])

    def _of_cell(self, stored: Any) -> Value:
        text = text_of(stored)
        if text is None:
            return Special.MISSING
        if self.column.area is None:
            text = text.strip(BLANKS)
        replaced = text in (self.column.read_as or {})
        text = (self.column.read_as or {}).get(text, text)
        number = self._number(text if replaced else stored, text, "." if replaced else self.read.decimal)
        is_number = isinstance(stored, int | float | Decimal) and not isinstance(stored, bool)
        for word in self.column.not_applicable or ():
            if same_code(text, word, as_numbers=is_number) or same_number(number, parse(word, ".")):
                return Special.NOT_APPLICABLE
        if text == "" or text in self.read.missing:
            return Special.MISSING
        if self.scale is None:
            return self._coded(text, as_numbers=is_number)
        return self._day(text) if isinstance(self.scale.low, date) else self._rounded(number)

    def _number(self, stored: Any, text: str, decimal: str) -> Fraction | float | None:
        """The number in a cell: a float only where the file stores one."""
        if self.scale is None or isinstance(self.scale.low, date) or isinstance(stored, bool):
            return None
        if isinstance(stored, float):
            return stored
        return Fraction(stored) if isinstance(stored, int | Decimal) else parse(text, decimal)

    def _coded(self, text: str, *, as_numbers: bool) -> Value:
        if text in self.codes:
            return frozenset([text])
        for code in self.codes:
            if same_code(text, code, as_numbers=as_numbers):
                return frozenset([code])
        return self.treated(self.outside)

    def _day(self, text: str) -> Value:
        assert self.scale is not None
        try:
            day = date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) else None
        except ValueError:
            day = None
        if day is None:
            return Special.MISSING
        if day < self.scale.low or day > self.scale.high:
            return self._beyond(below=day < self.scale.low)
        return frozenset([(day - self.scale.low).days])

    def _rounded(self, number: Fraction | float | None) -> Value:
        assert self.scale is not None
        if number is None:
            return Special.MISSING
        kind = float if isinstance(number, float) else Fraction
        low, high = kind(self.scale.low), kind(self.scale.high)
        if number < low or number > high:
            return self._beyond(below=number < low)
        return self._at(self._tick(number))

    def _beyond(self, *, below: bool) -> Value:
        assert self.scale is not None
        if self.outside.kind != "nearest":
            return self.treated(self.outside)
        return frozenset([0 if below else self.scale.size - 1])

    def _at(self, tick: int) -> Value:
        assert self.scale is not None
        place = tick - self._tick(Fraction(self.scale.low))
        return frozenset([max(0, min(self.scale.size - 1, place))])

    def _tick(self, number: Fraction | float) -> int:
        """How many steps a number is from zero: half away from zero; floats as IEEE has it."""
        assert self.scale is not None
        if isinstance(number, float):
            size, times, by = abs(number), self.scale.step.denominator, self.scale.step.numerator
            size = size if times == 1 else size * times
            size = size if by == 1 else size / by
            whole = math.floor(size + 0.5)
        else:
            whole = math.floor(abs(number) / self.scale.step + Fraction(1, 2))
        return whole if number >= 0 else -whole


def declare(loaded: Loaded, entity: str, name: str) -> Declared:
    """A declared column of a spec. A group built from rows is read as the file of its rows is."""
    facts, attribute = loaded.spec.microdata[entity], loaded.domain.attribute(entity, name)
    column = facts.columns[name]
    outside, missing = column.outside or facts.defaults.outside, column.missing or facts.defaults.missing
    assert outside is not None, f"what happens to values of '{name}' outside the domain is not stated"
    assert missing is not None, f"what happens to missing values of '{name}' is not stated"
    codes = tuple(category.code for category in attribute.coded) if attribute is not None else ()
    if column.area is not None:
        tree = loaded.domain.hierarchies[column.area]
        codes = tuple(area.code for area in tree.areas[tree.smallest])
    read = loaded.spec.microdata[facts.built_from or entity].read
    scale = attribute.scale if attribute is not None else None
    return Declared(name, column, read, outside, missing, codes, scale)


def within(scale: Scale, part: Range, place: Place) -> bool:
    """Whether a place on a scale lies in a range."""
    first, last = scale.span(part)
    return first <= int(place) and (last is None or int(place) <= last)


def same_code(text: str, code: str, *, as_numbers: bool) -> bool:
    """Whether a cell holds a code: as text; where the file stores numbers, by whole-number value."""
    if as_numbers and all(re.fullmatch(r"[+-]?\d+", word, re.ASCII) for word in (text, code)):
        return int(text) == int(code)
    return text == code


def same_number(number: Fraction | float | None, other: Fraction | None) -> bool:
    """Whether two numbers are one; a float is compared with a float."""
    if number is None or other is None:
        return False
    return number == float(other) if isinstance(number, float) else number == other


def parse(text: str, decimal: str) -> Fraction | float | None:
    """A number: digits with at most one decimal mark and a sign; a float with an exponent. None for all other text."""
    mark = re.escape(decimal)
    shape = re.fullmatch(rf"([+-]?)(\d*)(?:{mark}(\d*))?(?:[eE]([+-]?)(\d{{1,2}}))?", text, re.ASCII)
    if shape is None or not (shape[2] or shape[3]):
        return None
    size = Fraction(Decimal(f"{shape[2] or 0}.{shape[3] or 0}"))
    if shape[5] is not None:
        return float(text.replace(decimal, "."))
    return -size if shape[1] == "-" else size


@dataclass(eq=False)
class Row:
    """A record, or a group. `home` is the group it lies in; `members` are the rows that lie in it, singles not.

    An `absent` group has no row: it stands for what its records say alone.
    """

    entity: str
    cells: Mapping[str, Cell] = field(default_factory=dict)
    group: str | None = None
    home: Row | None = None
    members: list[Row] = field(default_factory=list)
    absent: bool = False
    single: bool = False
    rank: int = 0
    known: dict[str, Value] = field(default_factory=dict)
