"""Text files, cut into physical lines and split by our own expression, so that one line can spoil only itself.

A line is carried as its bytes, each byte one character (Latin-1), whatever the file's encoding: bytes always decode,
and what is declared is compared in the same spelling. Quotes are looked at within a line only.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa

from release_specs.language.microdata import ReadOptions
from tabulation.errors import MicrodataError

BLOCK = 1 << 24
BETWEEN = "\ue000"
"""What stands between fields once a line is split: no byte is spelled like this."""
QUOTE = '"'
BYTE_ORDER_MARK = codecs.BOM_UTF8.decode("latin-1")
LONGEST_HEADER = 1 << 20
LONGEST_LINE = 1 << 28
"""What stands beyond this in a line is not read: it can only be no record."""
MOST_PARTS = 10_000
"""A line with more delimiters and quotes than columns and these is no record; taking it apart would cost too much."""
LINES = pa.schema([("line", pa.string())])


def spelled(text: str, encoding: str) -> str | None:
    """A declared text as a field of the file spells it; None where the encoding has no bytes for it."""
    try:
        return text.encode(encoding).decode("latin-1")
    except UnicodeEncodeError:
        return None


def cut_lines(path: Path) -> Iterator[pa.RecordBatch]:
    """The physical lines of a file as text, a block at a time; line feeds are still on."""
    rest = b""
    with path.open("rb") as handle:
        while chunk := handle.read(BLOCK):
            data = rest + chunk
            end = data.rfind(b"\n") + 1
            rest = data[end:][:LONGEST_LINE]
            if end:
                yield _batch(data[:end])
    if rest:
        yield _batch(rest + b"\n")


def _batch(data: bytes) -> pa.RecordBatch:
    text = data if data.isascii() else data.decode("latin-1").encode("utf-8")
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + 1
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    lines = pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(text))
    return pa.record_batch([lines.cast(pa.string())], schema=LINES)


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a file: as it stands, and the columns it names."""

    line: str
    columns: tuple[str, ...]


def read_header(path: Path, read: ReadOptions, entity: str) -> Header:
    """The header of a text file. Raises `MicrodataError` where there is none that can be read."""
    start: bytes | None = None
    try:
        with path.open("rb") as handle:
            start = handle.readline(LONGEST_HEADER)
    except OSError:
        start = None
    if start is None:
        raise MicrodataError("no-file", entity, f"the file of '{entity}' cannot be read; check its rights and its disk")
    line = start.removeprefix(codecs.BOM_UTF8).rstrip(b"\r\n")
    fault = _header_fault(start, line, read.encoding)
    if fault is not None:
        raise MicrodataError("bad-header", entity, f"the file of '{entity}' {fault}")
    columns = split_plainly(line.decode(read.encoding), read.delimiter)
    return Header(line.decode("latin-1"), tuple(column.strip() for column in columns))


def _header_fault(start: bytes, line: bytes, encoding: str) -> str | None:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in start:
        return f"is UTF-16 or no text file, and the spec says {encoding}; save it as {encoding}"
    if len(start) >= LONGEST_HEADER:
        return "has a first line of more than a million characters; is it a text file with lines?"
    try:
        line.decode(encoding)
    except UnicodeDecodeError:
        return f"has a header that is not {encoding}; state its encoding under 'read'"
    return None if line.strip() else "has no header: its first line is empty; name the columns there"


def split_plainly(line: str, delimiter: str) -> list[str]:
    """The fields of a line, by the same rules as `split_lines`."""
    if line.count(QUOTE) % 2:
        return line.split(delimiter)
    parts = line.split(QUOTE)
    for index, part in enumerate(parts):
        if index % 2 == 0:
            doubled = part == "" and 0 < index < len(parts) - 1
            parts[index] = QUOTE if doubled else part.replace(delimiter, BETWEEN)
    return "".join(parts).split(BETWEEN)


def split_lines(lines: ir.Table, header: Header, read: ReadOptions) -> ir.Table:
    """One row a record with its `fields`, null where the line has another number of them than the header."""
    line = lines.line.replace("\n", "")
    kept = lines.select(line=line.endswith("\r").ifelse(line.substr(0, line.length() - 1), line))
    kept = kept.filter(kept.line.length() > 0, ~kept.line.isin([header.line, BYTE_ORDER_MARK + header.line]))
    delimiter = spelled(read.delimiter, read.encoding) or read.delimiter
    parts = _number_of(kept.line, delimiter) + _number_of(kept.line, QUOTE)
    sane = (parts <= MOST_PARTS + len(header.columns)).ifelse(kept.line, "")
    fields = _marked(sane, delimiter).split(BETWEEN)
    split = kept.select(fields=fields)
    return split.select(fields=(split.fields.length() == len(header.columns)).ifelse(split.fields, ibis.null()))


def _number_of(line: ir.StringValue, mark: str) -> ir.IntegerValue:
    """How often a mark stands in a line, without taking the line apart."""
    return (line.length() - line.replace(mark, "").length()) / len(mark)


def _marked(line: ir.StringValue, delimiter: str) -> ir.StringValue:
    """The line with its delimiters replaced by `BETWEEN`, except between quotes, and its quotes resolved."""
    parts = line.split(QUOTE)
    last = parts.length() - 1

    def resolve(part: ir.StringValue, index: ir.IntegerValue) -> ir.StringValue:
        doubled = (part == "") & (index > 0) & (index < last)
        outside = doubled.ifelse(QUOTE, part.replace(delimiter, BETWEEN))
        return (index % 2 == 1).ifelse(part, outside)

    resolved = parts.map(resolve).join("")
    plain = line.replace(delimiter, BETWEEN)
    return (line.contains(QUOTE) & (parts.length() % 2 == 1)).ifelse(resolved, plain)


_TAIL = "[\x80-\xbf]"
_WELL_FORMED = "|".join(
    (
        "[^\x80-\xff]",
        f"[\xc2-\xdf]{_TAIL}",
        f"\xe0[\xa0-\xbf]{_TAIL}",
        f"[\xe1-\xec\xee\xef]{_TAIL}{_TAIL}",
        f"\xed[\x80-\x9f]{_TAIL}",
        f"\xf0[\x90-\xbf]{_TAIL}{_TAIL}",
        f"[\xf1-\xf3]{_TAIL}{_TAIL}{_TAIL}",
        f"\xf4[\x80-\x8f]{_TAIL}{_TAIL}",
    )
)
"""The byte sequences of UTF-8, one character a byte (RFC 3629, section 4)."""


@cache
def decodable(encoding: str) -> str | None:
    """The pattern of fields whose bytes are text in the encoding; None where all bytes are."""
    if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig"):
        return f"^(?:{_WELL_FORMED})*$"
    bad = "".join(chr(byte) for byte in range(128, 256) if not _is_text(byte, encoding))
    return f"^[^{bad}]*$" if bad else None


def _is_text(byte: int, encoding: str) -> bool:
    try:
        bytes([byte]).decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
