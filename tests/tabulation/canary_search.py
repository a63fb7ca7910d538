"""Looks for canaries in bytes, however they are written there.

As they stand, in UTF-16, base64 at every alignment, hexadecimal, as binary numbers, compressed, and in Parquet, Arrow,
JSON and ZIP.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.tabulation.canaries import Canary

DEEPEST = 3
"""How many layers of packing are taken off."""
LARGEST = 1 << 26
BEFORE, AFTER = b"(?<![0-9a-fA-F])", b"(?![0-9a-fA-F])"
"""A number is part of no longer one, nor of a hash."""


def found_in(data: bytes, canaries: Iterable[Canary], *, depth: int = 0) -> list[str]:
    """The names of the canaries that are in the data, each with the way in which it is written."""
    found = {f"{canary.name} ({how})" for canary in canaries for how in _ways(data, canary)}
    if depth < DEEPEST:
        for how, inner in _unpacked(data):
            found |= {f"{name} in {how}" for name in found_in(inner, canaries, depth=depth + 1)}
    return sorted(found)


def _ways(data: bytes, canary: Canary) -> Iterator[str]:
    for how, needle, bounds in _needles(canary):
        if needle in data and (bounds is None or bounds.search(data)):
            yield how


@cache
def _needles(canary: Canary) -> tuple[tuple[str, bytes, re.Pattern[bytes] | None], ...]:
    """What to look for: a quick needle, and for numbers the boundaries that make it one."""
    found: dict[bytes, tuple[str, re.Pattern[bytes] | None]] = {}
    for text in _spellings(canary):
        raw = text.encode()
        found.setdefault(raw, ("raw", _bounded(raw) if canary.is_number else None))
        found.setdefault(text.encode("utf-16-le"), ("UTF-16 little-endian", None))
        found.setdefault(text.encode("utf-16-be"), ("UTF-16 big-endian", None))
        found.setdefault(raw.hex().encode(), ("hexadecimal", None))
        found.setdefault(raw.hex().upper().encode(), ("hexadecimal", None))
        for shift in range(3):
            for needle in _in_base64(raw, shift):
                found.setdefault(needle, (f"base64, shifted by {shift}", None))
    for needle in _as_binary(canary):
        found.setdefault(needle, ("binary number", None))
    return tuple((how, needle, bounds) for needle, (how, bounds) in found.items())


def _spellings(canary: Canary) -> Iterator[str]:
    yield canary.text
    if not canary.is_number:
        yield canary.text.lower()
        yield canary.text.upper()
    elif canary.text.isdecimal():
        yield f"{int(canary.text):,}"
        yield f"{int(canary.text):_}"


def _bounded(raw: bytes) -> re.Pattern[bytes]:
    return re.compile(BEFORE + re.escape(raw) + AFTER)


def _in_base64(raw: bytes, shift: int) -> set[bytes]:
    """The characters of base64 that these bytes alone decide, if `shift` bytes stand before them."""
    whole = base64.b64encode(b"\0" * shift + raw + b"\0\0")
    first, last = -(-8 * shift // 6), 8 * (shift + len(raw)) // 6
    plain = whole[first:last]
    return {plain, plain.translate(bytes.maketrans(b"+/", b"-_"))}


def _as_binary(canary: Canary) -> Iterator[bytes]:
    """A number as engines store it; small ones are too common to be told apart."""
    if canary.is_number and canary.text.isdecimal() and int(canary.text) > 1 << 16:
        yield struct.pack("<q", int(canary.text))
        yield struct.pack("<d", int(canary.text))
    elif canary.is_number and canary.text.replace(".", "", 1).isdecimal() and "." in canary.text:
        yield struct.pack("<d", float(canary.text))


def _unpacked(data: bytes) -> Iterator[tuple[str, bytes]]:
    for how, unpack in UNPACKERS.items():
        for inner in unpack(data):
            if inner and inner != data:
                yield how, inner


def _starts(data: bytes, mark: bytes) -> Iterator[int]:
    place = data.find(mark)
    while place >= 0:
        yield place
        place = data.find(mark, place + 1)


def _gzip(data: bytes) -> Iterator[bytes]:
    for start in _starts(data, b"\x1f\x8b\x08"):
        yield _inflated(data[start:], 31)


def _zlib(data: bytes) -> Iterator[bytes]:
    for level in (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda"):
        for start in _starts(data, level):
            yield _inflated(data[start:], 15)


def _inflated(data: bytes, bits: int) -> bytes:
    """What can be read, also of a stream that was cut."""
    try:
        return zlib.decompressobj(bits).decompress(data, LARGEST)
    except zlib.error:
        return b""


def _zstd(data: bytes) -> Iterator[bytes]:
    for start in _starts(data, b"\x28\xb5\x2f\xfd"):
        parts = []
        try:
            with pa.CompressedInputStream(pa.BufferReader(data[start:]), "zstd") as stream:
                while part := stream.read(1 << 16):
                    parts.append(part)
        except (OSError, pa.ArrowException):
            pass
        yield b"".join(parts)


def _parquet(data: bytes) -> Iterator[bytes]:
    if data.startswith(b"PAR1"):
        try:
            yield _written(pq.read_table(io.BytesIO(data)))
        except (OSError, pa.ArrowException):
            return


def _arrow(data: bytes) -> Iterator[bytes]:
    opens: tuple[Callable[..., Any], ...] = ()
    if data.startswith(b"ARROW1"):
        opens = (pa.ipc.open_file,)
    elif data.startswith(b"\xff\xff\xff\xff"):
        opens = (pa.ipc.open_stream,)
    for open_it in opens:
        try:
            yield _written(open_it(pa.BufferReader(data)).read_all())
        except (OSError, pa.ArrowException):
            return


def _written(table: pa.Table) -> bytes:
    rows = "\n".join(str(value) for column in table.columns for value in column.to_pylist())
    return f"{table.schema}\n{rows}".encode(errors="backslashreplace")


def _json(data: bytes) -> Iterator[bytes]:
    """The texts of a JSON document, or of one on each line, without their escapes."""
    for part in (data, *(data.splitlines() if data.count(b"\n") < 10_000 else ())):
        if part.lstrip()[:1] in (b"{", b"[", b'"'):
            try:
                yield "\n".join(_leaves(json.loads(part))).encode(errors="backslashreplace")
            except ValueError:
                continue


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield str(value)


def _zip(data: bytes) -> Iterator[bytes]:
    if b"PK\x03\x04" not in data:
        return
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield "\n".join(archive.namelist()).encode()
            yield from (archive.read(name) for name in archive.namelist())
    except (zipfile.BadZipFile, OSError, RuntimeError):
        return


UNPACKERS: dict[str, Callable[[bytes], Iterator[bytes]]] = {
    "gzip": _gzip,
    "zlib": _zlib,
    "Zstandard": _zstd,
    "Parquet": _parquet,
    "Arrow": _arrow,
    "JSON": _json,
    "ZIP": _zip,
}


def files_below(folder: Path) -> Iterator[Path]:
    """Every file, link and folder below a folder."""
    yield from sorted(folder.rglob("*"))


def found_in_files(folder: Path, canaries: Iterable[Canary], *, spared: Iterable[Path] = ()) -> list[str]:
    """The canaries in the names and contents of all files below a folder, except below those that are spared."""
    found: list[str] = []
    spared = tuple(spared)
    for path in files_below(folder):
        if any(path.is_relative_to(one) for one in spared):
            continue
        name = str(path.relative_to(folder))
        content = str(path.readlink()).encode() if path.is_symlink() else _content(path)
        found += [f"{name}: {one}" for one in found_in(name.encode(errors="replace") + b"\n" + content, canaries)]
        found += [f"{name}: {one}" for one in found_in(content, canaries)]
    return sorted(set(found))


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def packed(text: str) -> dict[str, bytes]:
    """A text in every way in which the search must find it."""
    raw, table = text.encode(), pa.table({"x": [text]})
    parquet, arrow, stream, archive = io.BytesIO(), io.BytesIO(), io.BytesIO(), io.BytesIO()
    pq.write_table(table, parquet, compression="zstd")
    with pa.ipc.new_file(arrow, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    with pa.ipc.new_stream(stream, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as members:
        members.writestr("a", b" ".join([raw] * 3))
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in text)
    return {
        "raw": b"before " + raw + b" after",
        "UTF-16 little-endian": text.encode("utf-16-le"),
        "UTF-16 big-endian": text.encode("utf-16-be"),
        "base64": base64.b64encode(raw + b" after"),
        "base64, shifted by 1": base64.b64encode(b"?" + raw + b" after"),
        "base64, shifted by 2": base64.b64encode(b"??" + raw + b" after"),
        "base64 for addresses": base64.urlsafe_b64encode(b"??" + raw),
        "hexadecimal": raw.hex().encode(),
        "gzip": b"head" + gzip.compress(raw),
        "zlib": b"head" + zlib.compress(raw, 1),
        "Zstandard": b"head" + pa.Codec("zstd").compress(raw, asbytes=True),
        "Parquet": parquet.getvalue(),
        "Arrow file": arrow.getvalue(),
        "Arrow stream": stream.getvalue(),
        "JSON": f'{{"a": ["{escaped}"]}}'.encode(),
        "lines of JSON": f'{{"a": 1}}\n{{"a": "{escaped}"}}\n'.encode(),
        "ZIP": archive.getvalue(),
        "ZIP in gzip": gzip.compress(archive.getvalue()),
    }
