"""Where records come from: Parquet, text and PostgreSQL, each known by its structure before a record is read.

Structure is what a footer, a header or a catalogue says. It may stop a run, with an error that names the entity and the
column; paths are told to nobody.
"""

from __future__ import annotations

import codecs
import hmac
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import reduce
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from release_specs.language.microdata import Entity, ReadOptions
from release_specs.spec import ReleaseSpec
from tabulation.errors import MicrodataError
from tabulation.lines import Header, decodable, read_header, spelled
from tabulation.postgres import ADDRESS, PostgresTable, open_table

CHUNK = 1 << 20
PARQUET = (".parquet", ".pq")
ENGINE_ENCODINGS = ("utf-8", "utf-8-sig", "ascii", "iso8859-1")


class Kind(StrEnum):
    """How a column is stored, as far as reading it differs."""

    TEXT = "text"
    WHOLE = "whole numbers"
    EXACT = "decimal numbers"
    REAL = "fractional numbers"
    DAY = "days"
    TRUTH = "true and false"
    OTHER = "nested or binary values"


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """One Parquet file or a folder of them; `partitions` are columns that stand in folder names (`year=2026`).

    `values` holds, for each file, the value of each partition; `alike` says that all files have the same footer.
    """

    files: tuple[Path, ...] = field(repr=False)
    kinds: Mapping[str, Kind]
    partitions: tuple[str, ...] = ()
    values: tuple[tuple[str, ...], ...] = field(repr=False, default=())
    alike: bool = False


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text file with a header."""

    path: Path = field(repr=False)
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


def open_source(entity: str, place: str, read: ReadOptions, used: Collection[str]) -> Source:
    """The source at a path or address, by its structure; only the columns that are used matter.

    Raises `MicrodataError`.
    """
    if place.startswith(ADDRESS):
        table = open_table(entity, place)
        return DatabaseTable(table, _resolved(_kinds(entity, table.schema, used)))
    path = Path(place)
    if path.is_dir():
        return _parquet(entity, tuple(_parts(path)), path, used)
    if not path.is_file():
        message = f"there is no file for '{entity}' at the place given; mend --data {entity}=PATH"
        raise MicrodataError("no-file", entity, message)
    if path.suffix.lower() in PARQUET:
        return _parquet(entity, (path,), path.parent, used)
    if _magic(entity, path) == b"PAR1":
        message = f"the file of '{entity}' is Parquet under another name; call it something.parquet"
        raise MicrodataError("wrong-format", entity, message)
    if read.quoted_newlines and codecs.lookup(read.encoding).name not in ENGINE_ENCODINGS:
        message = f"quoted line breaks in the file of '{entity}' can be read from UTF-8 and Latin-1 only; save it so"
        raise MicrodataError("bad-header", entity, message)
    header = read_header(path, read, entity)
    twice = [name for name, times in Counter(header.columns).items() if times > 1 and name in used]
    if twice:
        raise _doubled(entity, twice[0])
    return TextFile(path, header, read)


def _doubled(entity: str, column: str) -> MicrodataError:
    message = f"the file of '{entity}' has two columns '{column}', or one that differs only in case; rename or drop one"
    return MicrodataError("column-twice", entity, message, column=column)


def _magic(entity: str, path: Path) -> bytes:
    start: bytes | None = None
    try:
        with path.open("rb") as handle:
            start = handle.read(4)
    except OSError:
        start = None
    if start is None:
        raise MicrodataError("no-file", entity, f"the file of '{entity}' cannot be read; check its rights and its disk")
    return start


def _parts(folder: Path) -> Iterator[Path]:
    """The Parquet files below a folder, in order; names that begin with a dot or underscore are bookkeeping."""
    for path in sorted(folder.rglob("*")):
        below = path.relative_to(folder).parts
        hidden = any(part.startswith((".", "_")) for part in below)
        if path.suffix.lower() in PARQUET and path.is_file() and not hidden:
            yield path


def _parquet(entity: str, files: tuple[Path, ...], base: Path, used: Collection[str]) -> ParquetFiles:
    if not files:
        raise MicrodataError("no-file", entity, f"the folder for '{entity}' holds no Parquet file")
    schemas = [_footer(entity, path) for path in files]
    found = [_kinds(entity, schema, used) for schema in schemas]
    kinds = _resolved(reduce(lambda one, other: _common(entity, one, other, used), found))
    alike = all(schema.equals(schemas[0]) for schema in schemas)
    chains = [_partitions(path, base) for path in files]
    names = [tuple(name for name, _ in chain) for chain in chains]
    if not names[0] or any(other != names[0] for other in names):
        return ParquetFiles(files, kinds, alike=alike)
    values = tuple(tuple(value for _, value in chain) for chain in chains)
    return ParquetFiles(files, dict(kinds) | dict.fromkeys(names[0], Kind.TEXT), names[0], values, alike)


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


def _partitions(path: Path, base: Path) -> tuple[tuple[str, str], ...]:
    """The columns that stand in the names of folders below the one given: `year=2026`."""
    pairs = (part.partition("=") for part in path.relative_to(base).parts[:-1])
    return tuple((name, unquote(value)) for name, equals, value in pairs if equals)


def _common(
    entity: str, one: Mapping[str, Kind | None], other: Mapping[str, Kind | None], used: Collection[str]
) -> Mapping[str, Kind | None]:
    """The columns that all files have; the files of a folder store a column alike, or hold no value at all."""
    shared = [name for name in one if name in other]
    mixed = [name for name in shared if name in used and len({one[name], other[name]} - {None}) > 1]
    if mixed:
        message = f"the files of '{entity}' store column '{mixed[0]}' in different ways; write them with one type"
        raise MicrodataError("column-type", entity, message, column=mixed[0])
    return {name: one[name] or other[name] for name in shared}


def _resolved(kinds: Mapping[str, Kind | None]) -> Mapping[str, Kind]:
    """A column that holds no value anywhere may be anything."""
    return {name: kind or Kind.TEXT for name, kind in kinds.items()}


def _kinds(entity: str, schema: pa.Schema, used: Collection[str]) -> Mapping[str, Kind | None]:
    """How each column is stored; engines do not tell apart names that differ only in case."""
    times = Counter(name.casefold() for name in schema.names)
    twice = [name for name in schema.names if times[name.casefold()] > 1]
    doubled = [name for name in used if name.casefold() in {other.casefold() for other in twice}]
    if doubled:
        raise _doubled(entity, doubled[0])
    return {field.name: _kind(field) for field in schema if field.name not in twice}


def _kind(field: pa.Field) -> Kind | None:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_null(kind):
        return None
    if (field.metadata or {}).get(b"ADBC:postgresql:typname") == b"numeric":
        return Kind.EXACT
    for family, tests in _FAMILIES.items():
        if any(test(kind) for test in tests):
            return family
    return Kind.OTHER


_FAMILIES = {
    Kind.TEXT: (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    Kind.EXACT: (pa.types.is_decimal, pa.types.is_uint64),
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


def used_columns(spec: ReleaseSpec, entity: str) -> set[str]:
    """Every column of an entity's file that is ever read: its own, its keys, and those of groups built from it."""
    owners = [declared for name, declared in spec.microdata.items() if entity in (name, declared.built_from)]
    held = {column for declared in owners for name in declared.columns for column in file_columns(declared, name)}
    return held | set(key_columns(spec.microdata[entity]))


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
    return {
        name: open_source(name, places[name], spec.microdata[name].read, used_columns(spec, name)) for name in wanted
    }


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
