"""What was measured, as Parquet files under `measurements/`: one a tally, one row for each level, area and cell.

Columns: level, area, one for each attribute with "not stated" as its last code, value. What was done is in the file's
own metadata: the mechanism with its exact parameters, its charge and the variance of its noise, level by level. Exact
totals of the microdata stand there too, and say that they are exact. The same numbers give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from estimation.arrays import Integers, Numbers
from estimation.measurement import ExactNumbers, Measurement
from release_specs.tallies import Tally
from reporting.csv_rows import column_names, read_bytes
from reporting.errors import ReleaseFault
from reporting.hidden_cells import cell_codes, file_name
from reporting.plain_json import canonical, read_canonical

FOLDER = "measurements"
TALLY, LEVELS = b"margrave.tally", b"margrave.levels"
EXACT_KIND = "exact"
NO_LEVEL = ""
"""How the one level is called where there is no geography."""
ROWS_IN_GROUP = 1 << 20
UNREADABLE = (pa.ArrowException, OSError, ValueError, KeyError, TypeError, MemoryError, NotImplementedError)
"""All that Arrow raises for a file that is damaged."""

Key = tuple[str, str | None]
Described = Mapping[Key, Mapping[str, Any]]
"""For each tally by name, and level, how it was measured: `mechanism`, `parameters` as text, `charge` as plain data."""


@dataclass(frozen=True, eq=False)
class Stored:
    """Numbers of a tally at one level as read from a release; `described` is empty for exact numbers."""

    tally: Tally
    level: str | None
    numbers: Integers = field(repr=False)
    described: Mapping[str, Any] = field(repr=False)

    @property
    def is_exact(self) -> bool:
        """Whether it has no noise."""
        return not self.described


def write_measurements(
    folder: Path, measurements: Iterable[Measurement], exact: Iterable[ExactNumbers] = (), *, described: Described
) -> list[Path]:
    """One Parquet file for each tally under `measurements/`."""
    by_tally: dict[str, list[Measurement | ExactNumbers]] = {}
    found: list[Measurement | ExactNumbers] = [*measurements, *exact]
    for one in found:
        by_tally.setdefault(one.tally.name, []).append(one)
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    return [_write(folder, numbers, described) for numbers in by_tally.values()]


def _write(folder: Path, found: list[Measurement | ExactNumbers], described: Described) -> Path:
    tally = found[0].tally
    order = [*(tally.levels or (None,))]
    found = sorted(found, key=lambda one: order.index(one.level))
    if len({one.level for one in found}) < len(found):
        raise ValueError(f"'{tally.name}' was measured twice at one level; a release holds one measurement of each")
    told = {one.level or NO_LEVEL: _told(one, described) for one in found}
    schema = _schema(tally)
    path = folder / FOLDER / file_name(tally, ".parquet")
    with path.open("xb") as file, _writer(file, schema) as writer:
        for one in found:
            numbers = np.ascontiguousarray(one.numbers, np.int64)
            writer.write_table(_table(tally, one.level, numbers, schema), row_group_size=ROWS_IN_GROUP)
        writer.add_key_value_metadata({TALLY: tally.name.encode(), LEVELS: canonical(told)})
    return path


def _writer(file: Any, schema: Any) -> Any:
    """Everything that decides the bytes is said here; no clock and no machine does."""
    return pq.ParquetWriter(
        file,
        schema,
        version="2.6",
        compression="zstd",
        compression_level=3,
        use_dictionary=[name for name in schema.names if name != "value"],
        data_page_version="1.0",
        write_page_checksum=True,
        store_schema=False,
    )


def _told(one: Measurement | ExactNumbers, described: Described) -> dict[str, Any]:
    if isinstance(one, ExactNumbers):
        return {"kind": EXACT_KIND}
    if one.scales is not None:
        raise ValueError(f"'{one.tally.name}': areas with a budget of their own cannot be written yet")
    given = described[one.tally.name, one.level]
    keys = ("mechanism", "parameters", "charge")
    return {"kind": "measured", "variance": repr(float(one.noise.variance)), **{key: given[key] for key in keys}}


def _schema(tally: Tally) -> Any:
    texts = ["level", "area", *column_names(tally.attributes)]
    columns = [pa.field(name, pa.string(), nullable=False) for name in texts]
    return pa.schema([*columns, pa.field("value", pa.int64(), nullable=False)])


def _table(tally: Tally, level: str | None, numbers: Integers, schema: Any) -> Any:
    """One level of a tally as a table of Arrow."""
    codes = np.array(cell_codes(tally), object).reshape(tally.cells, len(tally.attributes))
    areas = _area_codes(tally, level)
    lead = [np.full(numbers.size, level or NO_LEVEL, object), np.repeat(np.array(areas, object), tally.cells)]
    columns = [*lead, *(np.tile(codes[:, n], len(areas)) for n in range(codes.shape[1]))]
    arrays = [pa.array(column, pa.string()) for column in columns]
    return pa.Table.from_arrays([*arrays, pa.array(numbers.ravel())], schema=schema)


def _area_codes(tally: Tally, level: str | None) -> list[str]:
    if tally.spine is None or level is None:
        return [NO_LEVEL]
    return [area.code for area in tally.spine.areas[level]]


def read_measurements(folder: Path, tallies: Sequence[Tally]) -> dict[Key, Stored]:
    """The numbers of every measurement file, in the order of the tallies.

    Raises `ReleaseFault` where a file is damaged, belongs to no tally, or holds other rows than the spec declares.
    """
    wanted = {file_name(tally, ".parquet"): tally for tally in tallies}
    present = {path.name for path in (folder / FOLDER).iterdir()} if (folder / FOLDER).is_dir() else set()
    for name in sorted(present - set(wanted)):
        raise ReleaseFault(f"{FOLDER}/{name}: the spec asks for no such measurement; remove the file")
    found: dict[Key, Stored] = {}
    for name, tally in wanted.items():
        if name in present:
            found |= {(tally.name, one.level): one for one in _read(folder / FOLDER / name, tally)}
    return found


def _read(path: Path, tally: Tally) -> Iterator[Stored]:
    file = f"{FOLDER}/{path.name}"
    data = read_bytes(path, file)
    try:
        opened = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        metadata, schema, rows = opened.metadata.metadata or {}, opened.schema_arrow, opened.metadata.num_rows
    except UNREADABLE as fault:
        raise _damaged(file, fault) from None
    levels = _levels(metadata, tally, file)
    if not schema.remove_metadata().equals(_schema(tally).remove_metadata()):
        expected = ", ".join(_schema(tally).names)
        raise ReleaseFault(f"{file} has the columns {', '.join(schema.names)}, expected {expected} of their types")
    sizes = {level: tally.areas(level) * tally.cells for level in levels}
    if rows != sum(sizes.values()):
        raise ReleaseFault(f"{file} has {rows} rows, expected {sum(sizes.values())}: one for each declared cell")
    try:
        table = opened.read(use_threads=False)
        table.validate(full=True)
    except UNREADABLE as fault:
        raise _damaged(file, fault) from None
    start = 0
    for level, size in sizes.items():
        yield _stored(table.slice(start, size), tally, level, told=levels[level], file=file)
        start += size


def _stored(found: Any, tally: Tally, level: str | None, *, told: Mapping[str, Any], file: str) -> Stored:
    """One level, once its rows are those that were declared, in their order."""
    column = found.column("value").combine_chunks()
    if column.null_count:
        raise ReleaseFault(f"{file} lacks numbers at '{level}'")
    numbers: Numbers = column.to_numpy().reshape(tally.areas(level), tally.cells)
    expected = _table(tally, level, numbers, _schema(tally))
    for name in expected.column_names:
        if not found.column(name).combine_chunks().equals(expected.column(name).combine_chunks()):
            raise ReleaseFault(
                f"{file}: column '{name}' at '{level}' holds other codes, or another order, than declared"
            )
    described = {key: value for key, value in told.items() if key != "kind"}
    return Stored(tally, level, numbers.astype(np.int64), described)


def _levels(metadata: Mapping[bytes, bytes], tally: Tally, file: str) -> dict[str | None, Mapping[str, Any]]:
    """What the file says of each level."""
    if metadata.get(TALLY) != tally.name.encode():
        raise ReleaseFault(f"{file} says it holds {metadata.get(TALLY)!r}, expected the tally '{tally.name}'")
    told = read_canonical(metadata.get(LEVELS, b""), f"{file}, {LEVELS.decode()}")
    known = [level or NO_LEVEL for level in tally.levels or (None,)]
    if not isinstance(told, dict) or not told or not set(told) <= set(known):
        raise ReleaseFault(f"{file} says other levels than the tally has: {', '.join(known)}")
    for level, facts in told.items():
        _require_facts(facts, f"{file}, level '{level}'")
    return {level or None: told[level] for level in known if level in told}


def _require_facts(facts: object, where: str) -> None:
    """An exact number says only that; a measurement says how it was made."""
    if facts == {"kind": EXACT_KIND}:
        return
    shape = {"kind": str, "mechanism": str, "parameters": dict, "charge": dict, "variance": str}
    if (
        not isinstance(facts, dict)
        or {key: type(value) for key, value in facts.items()} != shape
        or facts["kind"] != "measured"
        or not all(isinstance(text, str) for text in facts["parameters"].values())
    ):
        found = json.dumps(facts)[:120]
        raise ReleaseFault(f"{where}: found {found}, expected a mechanism with its parameters, charge and variance")


def _damaged(file: str, fault: BaseException) -> ReleaseFault:
    reason = (str(fault).splitlines() or [type(fault).__name__])[0][:120]
    return ReleaseFault(f"{file} is damaged and cannot be read as Parquet: {reason}")
