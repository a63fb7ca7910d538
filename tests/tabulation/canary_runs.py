"""The doors of the room, and the files whose structure it refuses: what the canaries are sent through."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows import terminal
from flows.cli import main
from tabulation.findings import inspect
from tabulation.tabulate import Work, dataset_fingerprint, open_dataset, tabulate
from tests.tabulation.canaries import (
    FILE,
    HOME_COLUMNS,
    PERSON_COLUMNS,
    Aviary,
    csv,
    homes,
    people,
    table,
    typed_homes,
    typed_people,
)
from tests.tabulation.canary_watch import Watch

KEY = bytes(range(32))
Places = Mapping[str, str]
Door = Callable[[Aviary, Places, Watch], Any]
"""Sends files through a door of the room. What it returns is searched as a caller could print it."""


def opened(flock: Aviary, places: Places, watch: Watch) -> object:
    """The structure alone. What is returned is for the next step of the confidential room and is not shown."""
    return sorted(open_dataset(flock.loaded.spec, flock.loaded.domain, places))


def fingerprinted(flock: Aviary, places: Places, watch: Watch) -> object:
    """The keyed fingerprint."""
    sources = open_dataset(flock.loaded.spec, flock.loaded.domain, places)
    found = dataset_fingerprint(sources, KEY)
    return found, found.hex()


def counted(flock: Aviary, places: Places, watch: Watch) -> object:
    """The exact counts, as they would be printed by mistake."""
    loaded, work = flock.loaded, Work(folder=watch.around.private)
    sources = open_dataset(loaded.spec, loaded.domain, places)
    found = tabulate(loaded.spec, loaded.domain, sources, key=KEY, work=work, tell=watch.tell)
    return found, [(str(one), one.smallest, one.leaves) for one in found.values()]


def counted_in_passing(flock: Aviary, places: Places, watch: Watch) -> object:
    """The same with nothing said about folders: the system's temporary one is used."""
    loaded = flock.loaded
    sources = open_dataset(loaded.spec, loaded.domain, places)
    return tabulate(loaded.spec, loaded.domain, sources, key=KEY, tell=watch.tell)


def inspected(flock: Aviary, places: Places, watch: Watch) -> object:
    """The findings; they are the custodian's and are not shown."""
    loaded, work = flock.loaded, Work(folder=watch.around.private)
    sources = open_dataset(loaded.spec, loaded.domain, places)
    inspect(loaded.spec, loaded.domain, sources, work=work, tell=watch.tell)
    return "findings"


def command(flock: Aviary, places: Places, *options: str) -> list[str]:
    """The words of `margrave inspect`."""
    data = [word for name, place in places.items() for word in ("--data", f"{name}={place}")]
    return ["inspect", str(flock.spec), *data, *options]


def commanded(*options: str) -> Door:
    """The command in this process; returns its exit code."""

    def door(flock: Aviary, places: Places, watch: Watch) -> object:
        with pytest.MonkeyPatch.context() as patch:
            plain = terminal.tell
            patch.setattr(terminal, "tell", lambda text: (watch.tell(text), plain(text)))
            return main(command(flock, places, "--private", str(watch.around.private), *options))

    return door


DOORS: dict[str, Door] = {
    "opening": opened,
    "fingerprinting": fingerprinted,
    "counting": counted,
    "counting without a folder": counted_in_passing,
    "inspecting": inspected,
    "the command": commanded(),
    "the command in JSON": commanded("--json"),
    "a dry run": commanded("--dry-run"),
}
COMMANDS = frozenset(name for name in DOORS if name.startswith(("the command", "a dry run")))

Spoils = Callable[[Aviary, Path], Places]
"""Makes files in a folder whose name is a canary, one of them with a structure that is refused."""


def _people(name: str, content: bytes | pa.Table) -> Spoils:
    """Another file of people."""

    def spoil(flock: Aviary, folder: Path) -> Places:
        path = folder / f"{FILE}{name}"
        _write(path, content)
        return {**flock.places, "people": str(path)}

    return spoil


def _homes(name: str, content: bytes | pa.Table) -> Spoils:
    """Another file of homes."""
    return lambda flock, folder: {**flock.places, "homes": _people(name, content)(flock, folder)["people"]}


def _write(path: Path, content: bytes | pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        pq.write_table(content, path)


def _with(found: pa.Table, column: str, kind: pa.DataType, value: object) -> pa.Table:
    """A table in which a column is stored in another way."""
    return found.set_column(found.column_names.index(column), column, pa.array([value] * found.num_rows, kind))


def _doubled(found: pa.Table, column: str) -> pa.Table:
    return pa.Table.from_arrays([*found.columns, found[column]], names=[*found.column_names, column])


def _cut(flock: Aviary, folder: Path) -> Places:
    whole = folder / f"{FILE}-whole.parquet"
    _write(whole, typed_people())
    content = whole.read_bytes()
    whole.unlink()
    return _people("-cut.parquet", content[: len(content) // 2])(flock, folder)


def _broken_footer(flock: Aviary, folder: Path) -> Places:
    _people("-footer.parquet", typed_people())(flock, folder)
    content = (folder / f"{FILE}-footer.parquet").read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    spoiled = content[: -8 - length] + content[-8 - length : -8][::-1] + content[-8:]
    return _people("-footer.parquet", spoiled)(flock, folder)


def _linked(flock: Aviary, folder: Path) -> Places:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{FILE}-link.csv").symlink_to(folder / f"{FILE}-nothing.csv")
    return {**flock.places, "people": str(folder / f"{FILE}-link.csv")}


def _mixed_folder(flock: Aviary, folder: Path) -> Places:
    _write(folder / FILE / "a.parquet", typed_people())
    _write(folder / FILE / "b.parquet", table(PERSON_COLUMNS, people()))
    return {**flock.places, "people": str(folder / FILE)}


def _empty_folder(flock: Aviary, folder: Path) -> Places:
    (folder / FILE).mkdir(parents=True)
    return {**flock.places, "people": str(folder / FILE)}


def _elsewhere(**places: str) -> Spoils:
    return lambda flock, folder: {**flock.places, **{name: place.format(folder) for name, place in places.items()}}


_LINES = csv(PERSON_COLUMNS, people())
_NO_SEX = tuple(name for name in PERSON_COLUMNS if name != "sex")
_UNSEXED = [row[:5] + row[6:] for row in people()]
_TYPED = typed_people()
_AREAS = typed_homes()

STRUCTURAL: dict[str, tuple[Spoils, str]] = {
    "there is no file": (_elsewhere(people="{}/nothing.csv"), "no-file"),
    "a link points nowhere": (_linked, "no-file"),
    "the file is a device": (_elsewhere(people=os.devnull), "no-file"),
    "the name is too long": (_elsewhere(people="{}/" + "x" * 300 + ".csv"), "no-file"),
    "a column is missing in CSV": (_people(".csv", csv(_NO_SEX, _UNSEXED)), "column-missing"),
    "a column is missing in Parquet": (_people(".parquet", _TYPED.drop_columns("sex")), "column-missing"),
    "a column of several answers is missing": (_people(".parquet", _TYPED.drop_columns("tongue2")), "column-missing"),
    "the key is missing": (_people(".parquet", _TYPED.drop_columns("line")), "column-missing"),
    "the group's key is missing": (_homes(".parquet", _AREAS.drop_columns("home")), "column-missing"),
    "the first line is a record": (_people(".csv", _LINES.split(b"\n", 1)[1]), "column-missing"),
    "the file begins amid a record": (_people(".csv", _LINES[300:]), "column-missing"),
    "semicolons stand for commas": (_people(".csv", _LINES.replace(b",", b";")), "column-missing"),
    "carriage returns alone end lines": (_people(".csv", _LINES[:4000].replace(b"\n", b"\r")), "column-missing"),
    "a column stands twice in CSV": (_people(".csv", b"sex," + _LINES), "column-twice"),
    "a column stands twice in Parquet": (_people(".parquet", _doubled(_TYPED, "sex")), "column-twice"),
    "numbers are lists": (_people(".parquet", _with(_TYPED, "wealth", pa.list_(pa.int64()), [7])), "column-type"),
    "numbers are days": (_people(".parquet", _with(_TYPED, "wealth", pa.date32(), 7)), "column-type"),
    "numbers are true and false": (_people(".parquet", _with(_TYPED, "wealth", pa.bool_(), True)), "column-type"),
    "codes are bytes": (_people(".parquet", _with(_TYPED, "sex", pa.binary(), b"m")), "column-type"),
    "ids are lists": (_people(".parquet", _with(_TYPED, "line", pa.list_(pa.string()), ["1"])), "column-type"),
    "days are numbers": (_homes(".parquet", _with(_AREAS, "built", pa.int64(), 7)), "column-type"),
    "areas are whole numbers": (_homes(".parquet", _with(_AREAS, "part", pa.int64(), 1)), "area-as-number"),
    "areas are fractions": (_homes(".parquet", _with(_AREAS, "part", pa.float64(), 1.0)), "area-as-number"),
    "Parquet is cut short": (_cut, "wrong-format"),
    "a footer is broken": (_broken_footer, "wrong-format"),
    "CSV is called Parquet": (_people(".parquet", _LINES), "wrong-format"),
    "Parquet is called CSV": (_people(".csv", _TYPED), "wrong-format"),
    "text is UTF-16": (_people(".csv", _LINES.decode().encode("utf-16")), "bad-header"),
    "text is UTF-16 the other way": (_people(".csv", b"\xfe\xff" + _LINES.decode().encode("utf-16-be")), "bad-header"),
    "text is UTF-16 without a mark": (_people(".csv", _LINES.decode().encode("utf-16-le")), "bad-header"),
    "the file is empty": (_people(".csv", b""), "bad-header"),
    "the first line is blank": (_people(".csv", b"\n" + _LINES), "bad-header"),
    "the header does not decode": (_people(".csv", b"\xe4" + _LINES[400:]), "bad-header"),
    "there are no lines": (_people(".csv", _LINES.replace(b"\n", b",") * 4), "bad-header"),
    "the files of a folder differ": (_mixed_folder, "column-type"),
    "the folder is empty": (_empty_folder, "no-file"),
    "an entity is unknown": (_elsewhere(birds="{}/" + FILE), "unknown-entity"),
    "the server is away": (_elsewhere(people="postgresql://127.0.0.1:1/" + FILE + "#records"), "no-table"),
    "no table is named": (_elsewhere(people="postgresql://127.0.0.1:1/" + FILE), "no-table"),
}
STRUCTURE_DOORS = ("opening", "the command", "the command in JSON")


def header_only() -> tuple[bytes, bytes]:
    """Files of homes and people that hold no record."""
    return csv(HOME_COLUMNS, []), csv(PERSON_COLUMNS, [])


def clean() -> tuple[bytes, bytes]:
    """Files of homes and people in which everything is valid."""
    return csv(HOME_COLUMNS, homes()[4:]), csv(PERSON_COLUMNS, people()[-20:])
