"""The published tables as CSV files, one a table under `tables/`, one row a cell; written, and read back strictly.

Columns: level, area, one for each attribute, `statistic` where a table has several, value, estimate, moe, low, high,
flag. `docs/table_files.md` says what they mean. The same statistics give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estimation.tables import NOT_KNOWN, Statistic
from release_specs.domain import Domain
from release_specs.spec import ReleaseSpec
from reporting.csv_rows import (
    area_chunks,
    column_names,
    field,
    header,
    leads,
    lines,
    middles,
    read_bytes,
    read_columns,
    require_written,
)
from reporting.decimals import (
    as_floats,
    blank,
    computed,
    decimals,
    filled,
    in_units,
    read_computed,
    read_decimals,
)
from reporting.errors import ReleaseFault
from reporting.layout import Part, label_of, parts_of

FOLDER = "tables"
NUMBERS = ("value", "estimate", "moe", "low", "high")
FINER = 1000
"""Estimates and margins of error of counts and sums are written to this part of a tick."""


def write_tables(folder: Path, statistics: Iterable[Statistic]) -> list[Path]:
    """One CSV file for each table under `tables/`, as the statistics come, level by level."""
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    written = []
    for table, found in groupby(statistics, key=lambda one: one.table):
        path = folder / FOLDER / f"{table}.csv"
        with path.open("xb") as file:
            file.writelines(_pieces(found))
        written.append(path)
    return written


def _pieces(statistics: Iterable[Statistic]) -> Iterator[bytes]:
    """The bytes of one table's file. What the first level holds says whether there are several statistics."""
    several = None
    for _, found in groupby(statistics, key=lambda one: one.level):
        level = list(found)
        if several is None:
            several = len(level) > 1
            yield header(_names(level[0], several=several))
        for one in level:
            yield from _rows(one, several=several)


def _names(one: Statistic | Part, *, several: bool) -> list[str]:
    statistic = ["statistic"] if several else []
    return ["level", "area", *column_names(one.attributes), *statistic, *NUMBERS, "flag"]


def _rows(one: Statistic, *, several: bool) -> Iterator[bytes]:
    label = [label_of(one.statistic, one.column)] if several else []
    codes = [[category.code for category in attribute.categories] for attribute in one.attributes]
    beginnings, parts = leads(one.level, one.areas), middles(codes, *label)
    for piece in area_chunks(*one.value.shape):
        yield lines(beginnings[piece], parts, _texts(one, piece))


def _texts(one: Statistic, piece: slice) -> list[Any]:
    """The numbers of some areas as text, and their flags."""
    known = one.known[piece].ravel()
    words, place = np.unique(one.flag[piece].ravel(), return_inverse=True)
    flags = pa.array([field(str(word)) for word in words], pa.string()).take(pa.array(place.ravel()))
    numbers = {name: np.where(known, getattr(one, name)[piece].ravel(), 0.0) for name in NUMBERS}
    if one.whole is None:
        return [*(blank(computed(numbers[name]), known) for name in NUMBERS), flags]
    units = {"estimate": one.tick / FINER, "moe": one.tick / FINER, "low": one.tick, "high": one.tick}
    rest = [blank(decimals(in_units(numbers[name], unit), unit), known) for name, unit in units.items()]
    return [decimals(one.whole[piece].ravel(), one.tick), *rest, flags]


def read_tables(folder: Path, spec: ReleaseSpec, domain: Domain) -> Iterator[Statistic]:
    """The statistics of every table file, in the order of the spec.

    Raises `ReleaseFault` where a file is missing, holds other rows than the spec declares, or a number that is not
    written as `write_tables` writes it.
    """
    expected = parts_of(spec, domain)
    present = {path.name for path in (folder / FOLDER).iterdir()} if (folder / FOLDER).is_dir() else set()
    for name in sorted(present - {f"{table}.csv" for table in expected}):
        raise ReleaseFault(f"{FOLDER}/{name}: the spec publishes no such table; remove the file")
    for table, parts in expected.items():
        yield from _read_table(folder / FOLDER / f"{table}.csv", parts)


def _read_table(path: Path, parts: Sequence[Part]) -> list[Statistic]:
    file, several = f"{FOLDER}/{path.name}", len(_first_level(parts)) > 1
    data = read_bytes(path, file)
    sizes = [areas * cells for areas, cells in (part.shape for part in parts)]
    columns = read_columns(data, _names(parts[0], several=several), file=file, rows=sum(sizes))
    found, start = [], 0
    for part, size in zip(parts, sizes, strict=True):
        texts = {name: column.slice(start, size) for name, column in columns.items()}
        try:
            found.append(_read_part(part, texts))
        except ReleaseFault as fault:
            raise ReleaseFault(f"{file}, {_said(part)}: {fault}") from None
        start += size
    require_written(data, b"".join(_pieces(found)), file)
    return found


def _first_level(parts: Sequence[Part]) -> list[Part]:
    return [part for part in parts if part.level == parts[0].level]


def _said(part: Part) -> str:
    place = f"at {part.level}" if part.level is not None else "in all"
    return f"{label_of(part.statistic, part.column)} {place}"


def _read_part(part: Part, texts: Mapping[str, Any]) -> Statistic:
    flag = np.array(texts["flag"].to_pylist(), np.str_)
    known = flag != NOT_KNOWN
    empty = {name: pc.equal(texts[name], "").to_numpy(zero_copy_only=False) for name in NUMBERS}
    for name in NUMBERS if part.tally is None else NUMBERS[1:]:
        if (empty[name] == known).any():
            raise ReleaseFault(f"{name} is empty in other rows than those flagged '{NOT_KNOWN}'")
    filling = {name: filled(texts[name]) if name != "value" or part.tally is None else texts[name] for name in NUMBERS}
    whole = None
    if part.tally is None:
        numbers = {name: read_computed(filling[name]) for name in NUMBERS}
    else:
        units = {name: part.tick / FINER if name in ("estimate", "moe") else part.tick for name in NUMBERS}
        read = {name: read_decimals(filling[name], units[name]) for name in NUMBERS}
        if read["value"].dtype == object:
            raise ReleaseFault("a value is larger than any count or sum")
        whole = read["value"].reshape(part.shape)
        numbers = {name: as_floats(read[name], units[name]) for name in NUMBERS}
    given = {name: np.where(known, found, np.nan).reshape(part.shape) for name, found in numbers.items()}
    return Statistic(
        part.table,
        part.statistic,
        part.column,
        part.level,
        part.attributes,
        part.areas,
        value=given["value"] if whole is None else numbers["value"].reshape(part.shape),
        estimate=given["estimate"],
        moe=given["moe"],
        low=given["low"],
        high=given["high"],
        known=known.reshape(part.shape),
        flag=flag.reshape(part.shape),
        whole=whole,
        tick=part.tick,
    )
