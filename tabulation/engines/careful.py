"""Parquet read with care, for files with texts that are no UTF-8 or moments beyond all calendars.

Engines stop at such a cell; here it becomes a missing value of its record. Slower than the engine, and used only where
the engine has stopped.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tabulation.sources import Kind, ParquetFiles

FILE = "margrave_file"
DAY_IN = {unit: 86_400 * 10**power for power, unit in ((0, "s"), (3, "ms"), (6, "us"), (9, "ns"))}
FIRST_DAY, LAST_DAY = ((day - date(1970, 1, 1)).days for day in (date.min, date.max))
NOTE, NO_NOTE = b"ARROW:schema", b"-----:schema"
"""Under this name Arrow notes its own types in a footer; reading them back checks texts and stops at bad ones."""


class _WithoutNote(io.RawIOBase):
    """A Parquet file whose footer lacks Arrow's note."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        size = self._file.seek(-8, io.SEEK_END) + 8
        length = int.from_bytes(self._file.read(4), "little")
        self._start = max(0, size - 8 - length)
        self._file.seek(self._start)
        self._footer = self._file.read().replace(NOTE, NO_NOTE)
        self._size, self._at = size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._at + size, self._size)
        self._file.seek(self._at)
        before = self._file.read(max(0, min(end, self._start) - self._at))
        first = max(self._at - self._start, 0)
        found = before + self._footer[first : max(end - self._start, first)]
        self._at += len(found)
        return found

    def close(self) -> None:
        self._file.close()
        super().close()


def _opened(path: Path) -> pq.ParquetFile:
    return pq.ParquetFile(_WithoutNote(path), coerce_int96_timestamp_unit="us")


def read_with_care(source: ParquetFiles, columns: Sequence[str]) -> pa.RecordBatchReader:
    """The rows of all files with the name of their file; partitions are not part of it."""
    inside = [column for column in columns if column not in source.partitions]
    types = [_opened(path).schema_arrow for path in source.files]
    fields = [pa.field(FILE, pa.string())]
    fields += [pa.field(name, _type_of(source.kinds[name], types, name)) for name in inside]
    schema = pa.schema(fields)

    def batches() -> Iterator[pa.RecordBatch]:
        for path in source.files:
            for batch in _opened(path).iter_batches(columns=inside):
                arrays = [pa.array([str(path)] * batch.num_rows, pa.string())]
                arrays += [_read(batch.column(name), schema.field(name).type) for name in inside]
                yield pa.record_batch(arrays, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _type_of(kind: Kind, schemas: Sequence[pa.Schema], name: str) -> pa.DataType:
    if kind is Kind.TEXT:
        return pa.string()
    if kind is Kind.DAY:
        return pa.date32()
    widest = {Kind.WHOLE: pa.int64(), Kind.REAL: pa.float64()}
    found = [schema.field(name).type for schema in schemas if not pa.types.is_null(schema.field(name).type)]
    return widest[kind] if kind in widest else found[0]


def _read(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if wanted == pa.string():
        return _decoded(array)
    return _days(array) if pa.types.is_timestamp(array.type) else array.cast(wanted)


def _days(array: pa.Array) -> pa.Array:
    """The days of moments; null for those outside the years 1 to 9999."""
    moments = array.cast(pa.int64())
    days = np.floor_divide(moments.fill_null(0).to_numpy(zero_copy_only=False), DAY_IN[array.type.unit])
    unknown = moments.is_null().to_numpy(zero_copy_only=False) | (days < FIRST_DAY) | (days > LAST_DAY)
    unknown |= np.abs(moments.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)) >= 2.0**63
    return pa.array(np.where(unknown, 0, days).astype(np.int32), pa.int32(), mask=unknown).cast(pa.date32())


def _decoded(array: pa.Array) -> pa.Array:
    plain = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    if not (pa.types.is_string(plain.type) or pa.types.is_large_string(plain.type) or pa.types.is_binary(plain.type)):
        return plain.cast(pa.string())
    values = plain.cast(pa.large_binary()).to_pylist()
    return pa.array([_text(value) for value in values], pa.string())


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode("utf-8")
    except UnicodeDecodeError:
        return None
