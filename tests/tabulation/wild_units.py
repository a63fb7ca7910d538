"""Files in which one protected unit comes, goes or is exchanged, and says whatever a file can say.

Rows are cells as they are stored: bytes of CSV, values of Parquet. Generated files have clean keys, so the rows of a
unit are those that carry its key. A unit that arrives has a key that nobody has; its rows are copies of others in which
some cells are wild.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import inf, nan
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from release_specs.load import Loaded
from release_specs.reading.resolve import members_of
from release_specs.spec import ReleaseSpec

WILD_BYTES = (
    *(b"", b" \t", b"NA", b"N", b"-9", b"-9.0", b"9223372036854775807", b"-9223372036854775808", b"9" * 19, b"7" * 40),
    *(
        b"0" * 60 + b"1",
        b"1." + b"0" * 80 + b"1",
        b"999999999999999999.5",
        b"1e300",
        b"-1e99",
        b"1e-99",
        b"1e999999999",
    ),
    *(
        b".",
        b"+",
        b"--1",
        b"0x1f",
        b"nan",
        b"inf",
        b"-0",
        b"1_000",
        b"1.5e",
        b"2026-02-30",
        b"9999-12-31",
        b"0000-00-00",
    ),
    *(b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xc3\xbc", b"\xef\xbb\xbf1", b"\xc2\xa0", b"\0", b"\x1a", b"1\r", b"\\"),
    *(b"'; DROP TABLE t0; --", b"%s{0}$1", b"x" * 5000, b"|||", b"de|fr|it", b"edition", b"None"),
)
WILD_WHOLE = (None, 0, -1, -9, 2**63 - 1, -(2**63), 10**18, 99_999_999)
WILD_REAL = (None, nan, inf, -inf, 1e300, -1e300, 5e-324, -0.0, 0.5, 2.0**63, 1e15 + 0.3)
WILD_DAYS = (None, date.min, date.max, date(1970, 1, 1), date(2024, 2, 29))
CHANGES = ("exchange", "add", "remove", "odd line", "single")
SIZES = (50, 3, 0, 1, 8)

Row = list[Any]


@dataclass(frozen=True)
class Table:
    """The rows of one file; `schema` where it is Parquet. `odd` are lines that are no rows."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    delimiter: bytes = b","
    schema: pa.Schema | None = None
    odd: tuple[bytes, ...] = ()

    @classmethod
    def read(cls, path: Path, delimiter: str) -> Table:
        """A generated file."""
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            rows = tuple(list(row.values()) for row in table.to_pylist())
            return cls(tuple(table.column_names), rows, schema=table.schema.remove_metadata())
        header, *lines = path.read_bytes().rstrip(b"\n").split(b"\n")
        split = delimiter.encode()
        return cls(tuple(header.decode().split(delimiter)), tuple(line.split(split) for line in lines), split)

    def write(self, path: Path) -> None:
        if self.schema is not None:
            columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.columns)
            arrays = [pa.array(list(cells), field.type) for cells, field in zip(columns, self.schema, strict=True)]
            pq.write_table(pa.table(arrays, schema=self.schema), path)
            return
        header = self.delimiter.join(name.encode() for name in self.columns)
        path.write_bytes(b"\n".join([header, *map(self.delimiter.join, self.rows), *self.odd]) + b"\n")

    def wild(self, column: str) -> tuple[Any, ...]:
        """What may stand in a cell of a column, whatever is declared for it."""
        if self.schema is None:
            return tuple(cell for cell in WILD_BYTES if self.delimiter not in cell)
        kind = self.schema.field(column).type
        if pa.types.is_integer(kind):
            return WILD_WHOLE
        if pa.types.is_floating(kind):
            return WILD_REAL
        return WILD_DAYS if pa.types.is_date(kind) else (None, *(text for cell in WILD_BYTES if (text := _text(cell))))

    def fresh(self, column: str, number: int) -> Any:
        """A key that nobody has."""
        if self.schema is None:
            return b"fresh-%d" % number
        whole = pa.types.is_integer(self.schema.field(column).type)
        return 10**9 + number if whole else f"fresh-{number}"

    def empty(self, column: str) -> Any:
        return b"" if self.schema is None else None


def _text(cell: bytes) -> str | None:
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return None


Files = dict[str, Table]


@dataclass(frozen=True)
class Change:
    """What happens to one unit; `seed` decides about everything that is not said."""

    kind: str
    size: int
    seed: int

    @property
    def exchanges(self) -> bool:
        return self.kind == "exchange"


def changed(loaded: Loaded, files: Files, change: Change) -> Files:
    """The files after a change of one unit."""
    random, spec = Random(change.seed), loaded.spec  # noqa: S311 - picks test cells, draws no noise
    found = dict(files)
    if change.kind in ("exchange", "remove"):
        found = _without_one(spec, found, random)
    if change.kind == "odd line":
        entity = random.choice(sorted(files))
        return {**found, entity: _with_odd_line(spec, entity, files[entity], random)}
    if change.kind == "single" and spec.privacy.singles is not None:
        return _with_single(spec, found, random)
    return found if change.kind == "remove" else _with_one_more(spec, found, random, change.size)


def keys_of(spec: ReleaseSpec) -> dict[str, str | None]:
    """For each file the column that says to which unit a row belongs; None where each row is a unit."""
    protect = spec.privacy.protect
    members = members_of(spec, protect)
    own = spec.microdata[protect].key
    found = {name: spec.microdata[name].group[protect] for name in members if spec.microdata[name].group}
    if spec.microdata[protect].built_from is None:
        found[protect] = own[-1] if own else None
    return found


def _without_one(spec: ReleaseSpec, files: Files, random: Random) -> Files:
    """One unit less. A group that holds rows which may be singles is let be: they are units of their own."""
    keys = keys_of(spec)
    entity = random.choice(sorted(keys))
    key = keys[entity]
    if key is None:
        place = random.randrange(len(files[entity].rows))
        rows = files[entity].rows
        return {**files, entity: replace(files[entity], rows=(*rows[:place], *rows[place + 1 :]))}
    there = {row[files[entity].columns.index(key)] for row in files[entity].rows}
    singles = {_cell(files[name], row, key) for name, row in _possible_singles(spec, files)}
    gone = random.choice(sorted(there - singles - {b"", None}))
    return {
        name: replace(
            one, rows=tuple(row for row in one.rows if name not in keys or _cell(one, row, keys[name]) != gone)
        )
        for name, one in files.items()
    }


def _cell(table: Table, row: Row, column: str | None) -> Any:
    return row[table.columns.index(column or "")]


def single_codes(spec: ReleaseSpec) -> dict[str, tuple[str, ...]]:
    """The codes that make a row a single, column by column."""
    condition = spec.privacy.singles
    return {test.column: test.wanted for _, test in condition.criteria()} if condition is not None else {}


def _possible_singles(spec: ReleaseSpec, files: Files) -> list[tuple[str, Row]]:
    codes = single_codes(spec)
    return [
        (name, row)
        for name in members_of(spec, spec.privacy.protect)
        for row in files[name].rows
        if any(_spelled(_cell(files[name], row, column)) in wanted for column, wanted in codes.items())
    ]


def _spelled(cell: Any) -> str:
    return cell.decode("latin-1").strip() if isinstance(cell, bytes) else str(cell).strip()


def _with_one_more(spec: ReleaseSpec, files: Files, random: Random, size: int) -> Files:
    """A unit more: a group with so many members and no, one or two rows of its own; or a record, perhaps twice."""
    keys, protect = keys_of(spec), spec.privacy.protect
    numbers = dict.fromkeys(keys, size)
    if protect in keys:
        numbers[protect] = random.choice((0, 1, 2)) if members_of(spec, protect) else 1 if size < 8 else 2
    if keys.get(protect, "") is None:
        numbers[protect] = 1
    found = dict(files)
    for entity, number in numbers.items():
        rows = [_wild_row(spec, entity, files[entity], random) for _ in range(number)]
        own = spec.microdata[entity].key or ()
        _name_rows(files[entity], rows, own, unit=keys[entity], how=random.choice(("numbered", "nameless", "same")))
        found[entity] = replace(files[entity], rows=(*files[entity].rows, *rows))
    return found


def _wild_row(spec: ReleaseSpec, entity: str, table: Table, random: Random) -> Row:
    """A copy of a row in which some cells are wild; it is no single."""
    row = list(random.choice(table.rows))
    share = random.choice((0.0, 0.2, 1.0))
    codes = single_codes(spec) if entity in members_of(spec, spec.privacy.protect) else {}
    for place, column in enumerate(table.columns):
        if random.random() < share:
            row[place] = random.choice(table.wild(column))
        if _spelled(row[place]) in codes.get(column, ()):
            row[place] = table.empty(column)
    return row


def _name_rows(table: Table, rows: list[Row], key: Sequence[str], *, unit: str | None, how: str) -> None:
    """Gives rows the fresh key of one unit, and ids of their own, none, or one for all."""
    for number, row in enumerate(rows):
        for column in key:
            own = {"numbered": table.fresh(column, number), "same": table.fresh(column, 0)}
            row[table.columns.index(column)] = own.get(how, table.empty(column))
        if unit is not None:
            row[table.columns.index(unit)] = table.fresh(unit, 10**6)


def _with_single(spec: ReleaseSpec, files: Files, random: Random) -> Files:
    """A single more, under the key of a group that is there where one column alone says that it is a single."""
    (entity,) = members_of(spec, spec.privacy.protect)
    table, codes = files[entity], single_codes(spec)
    (row,) = [_wild_row(spec, entity, table, random)]
    link = keys_of(spec)[entity] or ""
    known = _cell(table, random.choice(table.rows), link)
    _name_rows(table, [row], spec.microdata[entity].key or (), unit=link, how="numbered")
    if len(codes) == 1:
        row[table.columns.index(link)] = known
    for column, wanted in codes.items():
        row[table.columns.index(column)] = wanted[0].encode() if table.schema is None else wanted[0]
    return {**files, entity: replace(table, rows=(*table.rows, row))}


def _with_odd_line(spec: ReleaseSpec, entity: str, table: Table, random: Random) -> Table:
    """One line that is no row of the file, or a row without any value: a unit of its own."""
    if table.schema is not None:
        return replace(table, rows=(*table.rows, [None] * len(table.columns)))
    return replace(table, odd=(random.choice(odd_lines(spec, entity, table, random)),))


def odd_lines(spec: ReleaseSpec, entity: str, table: Table, random: Random) -> tuple[bytes, ...]:
    """Lines with too many or too few fields, stray quotes, bytes that are no text, and no line at all."""
    row, between = _wild_row(spec, entity, table, random), table.delimiter
    for column in {*(spec.microdata[entity].key or ()), *(spec.microdata[entity].group or {}).values()}:
        row[table.columns.index(column)] = table.fresh(column, 10**7)
    line, middle = between.join(row), len(row) // 2
    quoted = [*row[:middle], b'"' + row[middle], *row[middle + 1 :]]
    return (
        *(between.join(quoted), b'"', b'""', b'"' * 31, line + b'"', b'"' + line + b'"', line + between),
        *(between * (len(row) - 1), between * 5000, b"\xff" * 30, b"\0\0", b"x" * 300_000, b"\r", b""),
        *(line.replace(between, b"\t"), line + b"\r", b"\xef\xbb\xbf" + line, between.join(row[:middle])),
    )


def crowd(table: Table) -> Table:
    """The file with every wild cell in every column, keys included: many units, and none may stop a run."""
    rows = []
    for place, column in enumerate(table.columns):
        for number, cell in enumerate(table.wild(column)):
            row = list(table.rows[(place + number) % len(table.rows)])
            row[place] = cell
            rows.append(row)
    return replace(table, rows=(*table.rows, *rows))
