"""Dirty files as entries of a table: what is in them, how they are declared, and what has to come of them.

An entry is run through the door of the room. What it must give is written by hand: counts by the names of their cells,
or the code of the error that the file's structure deserves. Where the plain reference can read the file, it is asked
too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from release_specs.domain import Attribute
from release_specs.language.values import write_number
from release_specs.load import Loaded, load_text
from tabulation.counts import ExactCounts
from tabulation.errors import MicrodataError
from tabulation.tabulate import Work, open_dataset, tabulate
from tests.tabulation.agreement import KEY, as_cells, differences

NOT_STATED = "-"
"""How the cell of values that are left out is called here."""

Content = str | bytes | pa.Table | Callable[[Path], Path]
"""The text or bytes of a CSV file, the table of a Parquet file, or a function that makes a file in a folder."""

Counted = Mapping[str, Mapping[str, int]]
"""For each table the cells that are not zero: `2`, or `A/2` with an area or a second attribute."""


@dataclass(frozen=True)
class Refused:
    """The structural error that a file deserves; `column` where it has one, `entity` whose file it is."""

    code: str
    column: str | None = None
    entity: str = "rows"


@dataclass(frozen=True)
class Dirty:
    """One kind of dirty file."""

    name: str
    files: Content | Mapping[str, Content]
    spec: str
    expected: Counted | Refused
    secrets: tuple[str, ...] = field(default=(), kw_only=True)
    """Texts of the files that nothing may repeat."""
    plainly: bool = field(default=True, kw_only=True)
    """Whether the reference can read these files as well."""


ROWS = """
margrave: 1
release: {name: dirty, title: Dirty, edition: 2026}
microdata:
  rows:
    MORE
    defaults: {outside: leave_out, missing: leave_out}
    columns:
      COLUMNS
PLACES
privacy: {protect: rows, neighbours: add-remove, budget: {epsilon: 1}}
tables:
  TABLES
"""

HOMES = """
margrave: 1
release: {name: dirty, title: Dirty}
microdata:
  homes:
    key: home
    defaults: {outside: leave_out, missing: leave_out}
    columns: {kind: {codes: [H, F]}}
  people:
    key: [home, line]
    in: {homes: home}
    defaults: {outside: leave_out, missing: leave_out}
    columns: {sex: {codes: [m, f]}}
derive: {homes: {size: {number_of: people, into: {None: 0, One: 1, Two: 2, More: 3..}}}}
privacy: {protect: homes, at_most: {people: 9}, neighbours: add-remove, budget: {epsilon: 1}}
tables:
  sizes: {count: homes, by: [size]}
  sexes: {count: people, by: [sex]}
  kinds: {count: people, by: [kind]}
"""

AREA = "{area: places}"
PLACES = "geography: {places: {levels: [land, place], areas: {01: North, 02: South, AB: East}}}"


def rows(more: str = "", **columns: str) -> str:
    """A spec of one file: its columns, each with a table of its name; `more` says how the file is written."""
    listed = [f"{name}: {column}" for name, column in columns.items()]
    tables = [
        f"of_{name}: {{count: rows, at: all}}" if column == AREA else f"of_{name}: {{count: rows, by: [{name}]}}"
        for name, column in columns.items()
    ]
    text = ROWS.replace("MORE", more).replace("COLUMNS", "\n      ".join(listed)).replace("TABLES", "\n  ".join(tables))
    return text.replace("PLACES", PLACES if AREA in columns.values() else "")


def codes(*declared: str) -> str:
    """A column of codes in which values outside the domain are `out` and missing ones are `gone`."""
    listed = json.dumps([*declared, "out", "gone"], ensure_ascii=False)
    return f"{{codes: {listed}, outside: {{count_as: out}}, missing: {{count_as: gone}}}}"


def parquet(*parts: tuple[str, pa.Table]) -> Callable[[Path], Path]:
    """A folder `rows` of Parquet files, each at a path below it."""

    def write(folder: Path) -> Path:
        for name, table in parts:
            (folder / "rows" / name).parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, folder / "rows" / name)
        return folder / "rows"

    return write


def called(name: str, content: bytes | pa.Table) -> Callable[[Path], Path]:
    """A file of a given name, which may be a wrong one."""

    def write(folder: Path) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            pq.write_table(content, path)
        return path

    return write


def not_utf8(*values: bytes | None, kind: pa.DataType | None = None) -> pa.Array:
    """Texts whose bytes need not be UTF-8: Arrow takes them as they are."""
    kind = kind or pa.string()
    width = np.int64 if kind == pa.large_string() else np.int32
    offsets = np.cumsum([0, *(len(value or b"") for value in values)]).astype(width)
    there = np.packbits([value is not None for value in values], bitorder="little")
    data = b"".join(value or b"" for value in values)
    buffers = [pa.py_buffer(there.tobytes()), pa.py_buffer(offsets.tobytes()), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(values), buffers)


def placed(content: Content, entity: str, folder: Path) -> Path:
    """The file of an entity."""
    if callable(content):
        return content(folder)
    if isinstance(content, pa.Table):
        return called(f"{entity}.parquet", content)(folder)
    return called(f"{entity}.csv", content.encode() if isinstance(content, str) else content)(folder)


def run(kind: Dirty, folder: Path) -> tuple[Loaded, dict[str, Path], dict[str, ExactCounts]]:
    """The counts of an entry's files, through the door."""
    loaded = load_text(kind.spec, file="dirty.yaml", folder=folder)
    contents = kind.files if isinstance(kind.files, Mapping) else {"rows": kind.files}
    files = {entity: placed(content, entity, folder) for entity, content in contents.items()}
    sources = open_dataset(loaded.spec, loaded.domain, {name: str(path) for name, path in files.items()})
    return loaded, files, tabulate(loaded.spec, loaded.domain, sources, key=KEY, work=Work(folder=folder / "private"))


def check(kind: Dirty, folder: Path) -> None:
    """Runs an entry and compares what comes of it with what it says."""
    if isinstance(kind.expected, Refused):
        check_refusal(kind, kind.expected, folder)
        return
    loaded, files, found = run(kind, folder)
    named = {counts.tally.table.removeprefix("of_"): by_name(counts) for counts in found.values()}
    assert named == kind.expected, f"found {named}"
    assert not [secret for secret in kind.secrets if secret in repr(found) + repr(named)]
    if kind.plainly:
        wrong = differences(loaded, files, found)
        assert wrong == {}, f"the product and the reference differ: {wrong}"


def check_refusal(kind: Dirty, expected: Refused, folder: Path) -> None:
    """The error names the rule, the entity and the column, and nothing that stands in a record or a path."""
    with pytest.raises(MicrodataError) as caught:
        run(kind, folder)
    fault, message = caught.value, str(caught.value)
    assert (fault.code, fault.entity, fault.column) == (expected.code, expected.entity, expected.column), message
    assert f"'{expected.entity}'" in message
    assert expected.column is None or f"'{expected.column}'" in message
    assert not [secret for secret in (*kind.secrets, str(folder), folder.name) if secret in message]
    assert (fault.__cause__, fault.__context__) == (None, None)


def by_name(counts: ExactCounts) -> dict[str, int]:
    """Counts by the names of area and codes."""
    tally, found = counts.tally, {}
    areas = tally.spine.areas[tally.spine.smallest] if tally.spine is not None else ()
    for (area, cell), number in as_cells(counts).items():
        places = np.unravel_index(cell, tally.shape) if tally.shape else ()
        words = [_word(one, int(place)) for one, place in zip(tally.attributes, places, strict=True)]
        found["/".join([areas[area].code, *words] if areas else words)] = number
    return found


def _word(attribute: Attribute, place: int) -> str:
    if place == attribute.size:
        return NOT_STATED
    if attribute.scale is None:
        return attribute.coded[place].code
    value = attribute.scale.value(place)
    return value.isoformat() if isinstance(value, date) else write_number(value)
