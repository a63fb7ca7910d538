"""Rows of a published CSV file: UTF-8, LF, a field quoted only where it must be; areas times cells, fast.

Codes and areas are written as declared. No label is written, so no text comes in that a spreadsheet runs as a formula.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from release_specs.domain import Area, Attribute
from reporting.errors import ReleaseFault

ROWS_AT_ONCE = 1 << 18
OURS = frozenset({"level", "area", "statistic", "value", "estimate", "moe", "low", "high", "flag"})
MOST_SHOWN = 120


def field(text: str) -> str:
    """A text as a field of a CSV file."""
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\r\n') else text


def column_names(attributes: Sequence[Attribute]) -> list[str]:
    """The columns of some attributes: their names, with `_` behind a name that a column of ours has."""
    return [f"{one.name}_" if one.name in OURS else one.name for one in attributes]


def header(names: Sequence[str]) -> bytes:
    """The first line."""
    return (",".join(field(name) for name in names) + "\n").encode()


def leads(level: str | None, areas: Sequence[Area]) -> list[str]:
    """For each area the beginning of its rows; one, empty, where there is no geography."""
    lead = f"{field(level or '')},"
    return [lead + field(area.code) for area in areas] or [lead]


def middles(codes: Sequence[Sequence[str]], *more: str) -> list[str]:
    """For each combination of codes its part of a row."""
    fields = [[field(code) for code in one] for one in codes]
    return [",".join((*combination, *map(field, more))) for combination in product(*fields)]


def lines(leads: Sequence[str], middles: Sequence[str], columns: Sequence[Any]) -> bytes:
    """Rows for some areas and all their cells; each column is an Arrow array of text, areas first."""
    areas = np.repeat(np.arange(len(leads)), len(middles))
    cells = np.tile(np.arange(len(middles)), len(leads))
    parts = [pa.array(leads, pa.string()).take(pa.array(areas))]
    if any(middles):
        parts.append(pa.array(middles, pa.string()).take(pa.array(cells)))
    last = pc.binary_join_element_wise(columns[-1], "\n", "")
    rows = pc.binary_join_element_wise(*parts, *columns[:-1], last, ",")
    return b"".join(_bytes_of(chunk) for chunk in (rows.chunks if isinstance(rows, pa.ChunkedArray) else [rows]))


def _bytes_of(texts: Any) -> bytes:
    """All texts of an array behind each other: what Arrow holds in memory already."""
    _, offsets, data = texts.buffers()
    if data is None:
        return b""
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return bytes(memoryview(data)[int(ends[0]) : int(ends[-1])])


def area_chunks(areas: int, cells: int) -> Iterator[slice]:
    """Areas in pieces of bounded size."""
    step = max(1, ROWS_AT_ONCE // max(cells, 1))
    for start in range(0, areas, step):
        yield slice(start, min(start + step, areas))


def read_columns(data: bytes, names: Sequence[str], *, file: str, rows: int) -> dict[str, Any]:
    """The columns of a CSV file as text. Raises `ReleaseFault` unless it has exactly these columns and so many rows."""
    first, _, _ = data.partition(b"\n")
    if first + b"\n" != header(names):
        found = first[:MOST_SHOWN].decode("utf-8", "replace")
        raise ReleaseFault(f"{file}: the first line is '{found}', expected '{header(names).decode().rstrip()}'")
    try:
        table = pacsv.read_csv(
            pa.BufferReader(data),
            read_options=pacsv.ReadOptions(use_threads=False),
            parse_options=pacsv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            convert_options=pacsv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
        )
    except pa.ArrowException as fault:
        raise ReleaseFault(f"{file} is not a CSV file of {len(names)} columns: {_short(fault)}") from None
    if table.num_rows != rows:
        raise ReleaseFault(f"{file} has {table.num_rows} rows, expected {rows}: one for each declared cell")
    return {name: table.column(name).combine_chunks() for name in names}


def require_written(data: bytes, expected: bytes, file: str) -> None:
    """Raises `ReleaseFault` at the first line that is not as it is written for what was read."""
    if data == expected:
        return
    pairs = zip_longest(data.split(b"\n"), expected.split(b"\n"), fillvalue=b"(end)")
    number, (found, wanted) = next((n, pair) for n, pair in enumerate(pairs, start=1) if pair[0] != pair[1])
    shown = [one[:MOST_SHOWN].decode("utf-8", "replace") for one in (found, wanted)]
    raise ReleaseFault(f"{file}, line {number}: found '{shown[0]}', expected '{shown[1]}'")


def read_bytes(path: Path, file: str) -> bytes:
    """The bytes of a file of a release."""
    try:
        return path.read_bytes()
    except OSError as fault:
        raise ReleaseFault(f"{file} cannot be read: {fault.strerror}") from None


def _short(fault: Exception) -> str:
    return str(fault).splitlines()[0][:MOST_SHOWN]
