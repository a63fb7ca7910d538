"""Where records come from: Parquet, text and PostgreSQL, each known by its structure before a record is read.

Structure is what a footer, a header or a catalogue says. It may stop a run, with an error that names the entity and the
column; paths are told to nobody.
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from release_specs.language.microdata import Entity, ReadOptions
from release_specs.spec import ReleaseSpec
from tabulation.errors import MicrodataError
from tabulation.lines import Header, decodable, read_header, spelled
from tabulation.postgres import ADDRESS, PostgresTable, open_table

CHUNK = 1 << 20


class Kind(StrEnum):
    """How a column is stored, as far as reading it differs."""

    TEXT = "text"
    WHOLE = "whole numbers"
    REAL = "fractional numbers"
    DAY = "days"
    TRUTH = "true and false"
    OTHER = "nested or binary values"


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """One Parquet file or a folder of them; `partitions` are columns that stand in folder names (`year=2026`)."""

    files: tuple[Path, ...]
    kinds: Mapping[str, Kind]
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text file with a header."""

    path: Path
    header: Header
    read: ReadOptions

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """Every column holds text."""
        return dict.fromkeys(self.header.columns, Kind.TEXT)


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table or view of PostgreSQL."""

    table: PostgresTable
    kinds: Mapping[str, Kind]


Source = ParquetFiles | TextFile | DatabaseTable


def spelling_of(source: Source, text: str) -> str | None:
    """A declared text as the engine sees it in this source; None where the source cannot spell it."""
    if isinstance(source, TextFile) and not source.read.quoted_newlines:
        return spelled(text, source.read.encoding)
    return text


def spellings_of(source: Source, texts: Sequence[str]) -> Sequence[str | None]:
    """Many declared texts as the engine sees them."""
    if isinstance(source, TextFile) and not source.read.quoted_newlines:
        return [spelled(text, source.read.encoding) for text in texts]
    return texts


def decodable_in(source: Source) -> str | None:
    """The pattern of cells that are text; None where every cell is."""
    if isinstance(source, TextFile) and not source.read.quoted_newlines:
        return decodable(source.read.encoding)
    return None


def open_source(entity: str, declared: Entity, place: str) -> Source:
    """The source at a path or address, by its structure. Raises `MicrodataError`."""
    if place.startswith(ADDRESS):
        table = open_table(entity, place)
        return DatabaseTable(table, _kinds(entity, table.schema))
    path = Path(place)
    if path.is_dir():
        return _parquet(entity, tuple(_parts(path)), path)
    if not path.is_file():
        message = f"there is no file for '{entity}' at the place given; mend --data {entity}=PATH"
        raise MicrodataError("no-file", entity, message)
    if path.suffix.lower() in (".parquet", ".pq"):
        return _parquet(entity, (path,), path.parent)
    if _magic(path) == b"PAR1":
        message = f"the file of '{entity}' is Parquet under another name; call it something.parquet"
        raise MicrodataError("wrong-format", entity, message)
    header = read_header(path, declared.read, entity)
    twice = [name for name, times in Counter(header.columns).items() if times > 1 and _is_used(declared, name)]
    if twice:
        raise _doubled(entity, twice[0])
    return TextFile(path, header, declared.read)


def _doubled(entity: str, column: str) -> MicrodataError:
    message = f"the file of '{entity}' has two columns '{column}'; rename or drop one"
    return MicrodataError("column-twice", entity, message, column=column)


def _magic(path: Path) -> bytes:
    try:
        with path.open("rb") as handle:
            return handle.read(4)
    except OSError:
        return b""


def _parts(folder: Path) -> Iterator[Path]:
    """The Parquet files below a folder, in order; names that begin with a dot or underscore are bookkeeping."""
    for path in sorted(folder.rglob("*")):
        below = path.relative_to(folder).parts
        if path.suffix.lower() in (".parquet", ".pq") and not any(part.startswith((".", "_")) for part in below):
            yield path


def _parquet(entity: str, files: tuple[Path, ...], base: Path) -> ParquetFiles:
    if not files:
        raise MicrodataError("no-file", entity, f"the folder for '{entity}' holds no Parquet file")
    schemas = [_footer(entity, path) for path in files]
    kinds = reduce(lambda one, other: _common(entity, one, other), (_kinds(entity, schema) for schema in schemas))
    chains = [_partitions(path, base) for path in files]
    partitions = chains[0] if all(chain == chains[0] for chain in chains) else ()
    found = dict(kinds) | dict.fromkeys(partitions, Kind.TEXT)
    return ParquetFiles(files, found, partitions)


def _footer(entity: str, path: Path) -> pa.Schema:
    schema: pa.Schema | None = None
    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowException, ValueError):
        schema = None
    if schema is None:
        message = (
            f"the file of '{entity}' is called Parquet and has no footer of one: it was cut short, or is another format"
        )
        raise MicrodataError("wrong-format", entity, message)
    return schema


def _partitions(path: Path, base: Path) -> tuple[str, ...]:
    return tuple(part.partition("=")[0] for part in path.relative_to(base).parts[:-1] if "=" in part)


def _common(entity: str, one: Mapping[str, Kind], other: Mapping[str, Kind]) -> Mapping[str, Kind]:
    """The columns that all files have; the files of a folder store a column alike."""
    shared = [name for name in one if name in other]
    mixed = [name for name in shared if one[name] is not other[name]]
    if mixed:
        message = f"the files of '{entity}' store column '{mixed[0]}' in different ways; write them with one type"
        raise MicrodataError("column-type", entity, message, column=mixed[0])
    return {name: one[name] for name in shared}


def _kinds(entity: str, schema: pa.Schema) -> Mapping[str, Kind]:
    twice = [name for name, times in Counter(schema.names).items() if times > 1]
    if twice:
        raise _doubled(entity, twice[0])
    return {field.name: _kind(field.type) for field in schema}


def _kind(kind: pa.DataType) -> Kind:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    for family, test in _FAMILIES.items():
        if any(check(kind) for check in test):
            return family
    return Kind.OTHER


_FAMILIES = {
    Kind.TEXT: (pa.types.is_string, pa.types.is_large_string, pa.types.is_decimal, pa.types.is_null),
    Kind.WHOLE: (pa.types.is_integer,),
    Kind.REAL: (pa.types.is_floating,),
    Kind.DAY: (pa.types.is_date, pa.types.is_timestamp),
    Kind.TRUTH: (pa.types.is_boolean,),
}


def file_columns(entity: Entity, name: str) -> tuple[str, ...]:
    """The columns of a file that hold a declared column."""
    return entity.columns[name].columns or (name,)


def key_columns(entity: Entity) -> tuple[str, ...]:
    """The columns that identify a row and its group."""
    return tuple(dict.fromkeys((*(entity.key or ()), *(entity.group or {}).values())))


def _is_used(entity: Entity, name: str) -> bool:
    held = [column for declared in entity.columns for column in file_columns(entity, declared)]
    return name in (*held, *key_columns(entity))


def open_sources(spec: ReleaseSpec, places: Mapping[str, str]) -> dict[str, Source]:
    """The source of every entity that has one. Raises `MicrodataError` for what is missing or has no place."""
    wanted = [name for name, entity in spec.microdata.items() if entity.built_from is None]
    for name in places:
        if name not in spec.microdata:
            known = ", ".join(wanted)
            raise MicrodataError("unknown-entity", name, f"'{name}' is not an entity of the spec; known: {known}")
        if name not in wanted:
            source = spec.microdata[name].built_from
            raise MicrodataError("no-file-wanted", name, f"'{name}' are built from '{source}' and have no file")
    for name in wanted:
        if name not in places:
            raise MicrodataError("no-file", name, f"no file is given for '{name}'; add --data {name}=PATH")
    return {name: open_source(name, spec.microdata[name], places[name]) for name in wanted}


def fingerprint(sources: Mapping[str, Source], key: bytes) -> bytes:
    """An HMAC of all contents: tells whether two runs saw the same data, to nobody but who holds the key (law 12)."""
    digest = hmac.new(key, digestmod=sha256)
    for entity in sorted(sources):
        digest.update(f"{len(entity)}:{entity}".encode())
        for part in _contents(sources[entity], key):
            digest.update(part)
    return digest.digest()


def _contents(source: Source, key: bytes) -> Iterator[bytes]:
    """The contents of a source; of a table its rows, whose order says nothing."""
    if isinstance(source, DatabaseTable):
        yield source.table.digest(key)
        return
    for path in (source.path,) if isinstance(source, TextFile) else source.files:
        yield path.stat().st_size.to_bytes(8, "big")
        with path.open("rb") as handle:
            yield from iter(lambda: handle.read(CHUNK), b"")


def unread(source: Source, used: Iterable[str]) -> list[str]:
    """The columns of a source that are never read."""
    return [name for name in source.kinds if name not in set(used)]
