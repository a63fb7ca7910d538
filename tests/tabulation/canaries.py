"""Canaries: values that stand in one place of the confidential files and may be met nowhere else.

There is one in every kind of column, in ids, in columns that nobody declares, in the names of file and folder, and in
what follows from the records: exact totals, sizes of groups, sizes, times and plain hashes of the files.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import date
from functools import cache
from hashlib import md5, sha1, sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from release_specs.load import Loaded, load_text

SPEC = """
margrave: 1
release: {name: aviary, title: Aviary}
microdata:
  homes:
    key: home
    defaults: {outside: leave_out, missing: leave_out}
    columns:
      part:  {area: parts}
      kind:  {codes: [H, F]}
      rooms: {integer: 0..9999999, clip: 0..20}
      rent:  {number: 0..9999999, step: 0.25, clip: 0..20000}
      built: {date: 1800-01-01..2025-12-31}
  people:
    key: [home, line]
    in: {homes: home}
    READ
    defaults: {outside: leave_out, missing: leave_out}
    columns:
      sex:    {codes: [m, f]}
      wealth: {integer: 0..9999999, clip: 0..9000000}
      tongue: {codes: [de, fr, it], up_to: 2, columns: [tongue1, tongue2]}
      skills: {codes: [read, write], up_to: 2, separator: ";"}
geography: {parts: {levels: [land, part], areas: {01: North, 02: South}}}
derive: {homes: {size: {number_of: people, into: {None: 0, One: 1, Two: 2, More: 3..}}}}
universes: {women: {of: people, where: {sex: f}}}
privacy: {protect: homes, at_most: {people: 9}, neighbours: add-remove, budget: {epsilon: 1}}
tables:
  kinds:   {count: homes, by: [kind, size], at: all}
  rents:   {sum: rent, of: homes, at: all}
  sexes:   {count: people, by: [sex], at: all}
  tongues: {count: women, by: [tongue], at: [land]}
  skills:  {count: people, by: [skills], at: [land]}
  wealth:  {sum: wealth, of: people, at: [land]}
impossible: [{kind: F, size: None}]
"""

FOLDER, FILE = "Fd3xNqv8w", "Fn5zGtk2y"
TEXTS = {
    "name of the folder": FOLDER,
    "name of the file": FILE,
    "unknown code of a group": "Ck7vRxq3w",
    "unknown code of a record": "Cr2jWmz9k",
    "unknown area": "Ar8qLxd4v",
    "unknown answer in a column": "Mc6kTzy1q",
    "unknown answer between separators": "Ms9wPhb5x",
    "id of a group": "Hg4nVkt7z",
    "id of a record": "Pr1xSgw6m",
    "name of a person": "Nm3yBqf8j",
    "address of a person": "Em7tKvx2p",
    "number of a person": "Ph5qDwz9n",
    "text where a number belongs": "Tx8rJkm4g",
    "line with too many fields": "Ln2vQxh6d",
    "line with a stray quote": "Qt6mZcw1b",
}
NUMBERS = {
    "integer of a group": "8359217",
    "integer of a record": "7351946",
    "number of a group": "4821397.25",
    "date of a group": "1807-03-29",
    "telephone": "41796623851",
}
UNKNOWN = ("unknown code of a group", "unknown code of a record", "unknown area", "unknown answer in a column")
"""What the findings are for: they do tell these to the custodian."""
CROWD, HOMES, LONELY = 10_267, 43, 29
"""Records in the largest group, groups, and records that lie alone in one of their own."""
MOMENT = 1_111_222_333
"""When the files were written, as far as their times say."""

FORMS = {"csv": "csv", "csv with breaks": "csv", "parquet": "parquet", "parquet of text": "parquet"}
"""How the files are written, with their suffix; the engine's own reader is used for CSV with breaks in its fields."""

HOME_COLUMNS = ("home", "owner", "part", "kind", "rooms", "rent", "built")
PERSON_COLUMNS = ("home", "line", "name", "mail", "phone", "sex", "wealth", "tongue1", "tongue2", "skills")


@dataclass(frozen=True)
class Canary:
    """A value and where it comes from; a number is met only where no further digit touches it."""

    name: str
    text: str
    is_number: bool = False


@dataclass(frozen=True)
class Aviary:
    """The confidential files, the spec that declares them, and everything that may be found nowhere else."""

    loaded: Loaded
    spec: Path
    places: dict[str, str]
    canaries: tuple[Canary, ...]

    @property
    def folder(self) -> Path:
        """Where the files are; its name is a canary."""
        return self.spec.parent / FOLDER


Rows = list[tuple[str, ...]]


def homes() -> Rows:
    """The rows of groups, those with canaries first."""
    t, n = TEXTS, NUMBERS
    special = [
        (t["id of a group"], t["name of a person"], "01", "H", n["integer of a group"], "100.25", "1999-12-31"),
        ("h1", "x", "02", "F", "4", n["number of a group"], n["date of a group"]),
        ("h2", "x", t["unknown area"], t["unknown code of a group"], "2", "900", "1960-02-30"),
        ("h3", "x", "01", "H", t["text where a number belongs"], t["text where a number belongs"], "long ago"),
    ]
    plain = [
        (f"g{n}", "x", f"0{n % 2 + 1}", "HF"[n % 2], str(n % 9), f"{n}.5", f"19{n % 90 + 10}-01-01")
        for n in range(HOMES - len(special))
    ]
    return special + plain


def people() -> Rows:
    """The rows of records: a crowd in one group, people who live alone, and those with canaries."""
    t, n = TEXTS, NUMBERS
    mail = f"{t['address of a person']}@example.org"
    special = [
        ("h1", t["id of a record"], t["name of a person"], mail, n["telephone"], "m", n["integer of a record"]),
        ("h1", "2", t["number of a person"], mail, n["telephone"], t["unknown code of a record"], "12"),
        ("h2", "1", "x", "x", "x", "f", t["text where a number belongs"]),
    ]
    answers = [
        ("de", t["unknown answer in a column"], "read;write"),
        ("fr", "", f"read;{t['unknown answer between separators']}"),
        ("it", "it", ""),
    ]
    crowd = [
        (t["id of a group"], str(i), "x", "x", "x", "mf"[i % 2], str(i % 977), "de", "fr", "read") for i in range(CROWD)
    ]
    alone = [(f"g{i}", "1", "x", "x", "x", "f", "31", "it", "", "write") for i in range(LONELY)]
    return [one + other for one, other in zip(special, answers, strict=True)] + crowd + alone


def strange_lines() -> bytes:
    """Lines that are no records, or nearly none."""
    too_many, stray = TEXTS["line with too many fields"], TEXTS["line with a stray quote"]
    return f'h1,9,{too_many},a,b,c,d,e,f,g,h,i,j\nh1,8,"{stray},a,b,m,5,de,fr,read\n'.encode() + b"h1,\xff\xfe\n"


def csv(columns: tuple[str, ...], rows: Rows) -> bytes:
    """The rows as a text file."""
    return "".join(",".join(row) + "\n" for row in (columns, *rows)).encode()


def table(columns: tuple[str, ...], rows: Rows) -> pa.Table:
    """The rows as a table of texts."""
    return pa.table({name: [row[place] for row in rows] for place, name in enumerate(columns)})


def typed_people() -> pa.Table:
    """The records as numbers and texts."""
    found = table(PERSON_COLUMNS, people())
    wealth = [int(value) if value.isdecimal() else None for value in found["wealth"].to_pylist()]
    return found.set_column(6, "wealth", pa.array(wealth, pa.int64()))


def typed_homes() -> pa.Table:
    """The groups as numbers, days and texts."""
    found = table(HOME_COLUMNS, homes())
    days = [_day(value) for value in found["built"].to_pylist()]
    return found.set_column(6, "built", pa.array(days, pa.date32()))


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


@cache
def load(folder: Path, read: str = "") -> Loaded:
    """The spec, written to a folder and read."""
    text = SPEC.replace("READ", read)
    (folder / "aviary.yaml").write_text(text, encoding="utf-8")
    return load_text(text, file="aviary.yaml", folder=folder)


@cache
def aviary(base: Path, form: str) -> Aviary:
    """Files below `base` with a canary in every place, in one of the `FORMS`."""
    folder = base / form.replace(" ", "-")
    places = {name: folder / FOLDER / f"{FILE}-{name}.{FORMS[form]}" for name in ("homes", "people")}
    places["homes"].parent.mkdir(parents=True)
    if form == "parquet":
        pq.write_table(typed_homes(), places["homes"])
        pq.write_table(typed_people(), places["people"])
    elif form == "parquet of text":
        pq.write_table(table(HOME_COLUMNS, homes()), places["homes"])
        pq.write_table(table(PERSON_COLUMNS, people()), places["people"])
    else:
        places["homes"].write_bytes(csv(HOME_COLUMNS, homes()))
        places["people"].write_bytes(csv(PERSON_COLUMNS, people()) + strange_lines())
    loaded = load(folder, "read: {quoted_newlines: yes}" if form == "csv with breaks" else "")
    named = {name: str(place) for name, place in places.items()}
    return Aviary(loaded, folder / "aviary.yaml", named, canaries_of(*places.values()))


def canaries_of(*files: Path) -> tuple[Canary, ...]:
    """Everything that may be found nowhere but in these files and in the findings."""
    found = [Canary(name, text) for name, text in TEXTS.items()]
    found += [Canary(name, text, is_number=True) for name, text in {**NUMBERS, **totals()}.items()]
    for number, path in enumerate(files):
        os.utime(path, (MOMENT, MOMENT))
        content = path.read_bytes()
        found.append(Canary(f"size of file {number}", str(len(content)), is_number=True))
        for make in (md5, sha1, sha256):
            found.append(Canary(f"plain hash of file {number}", make(content).hexdigest()[:16]))
    found.append(Canary("time of the files", str(MOMENT), is_number=True))
    return tuple(found)


@cache
def totals() -> dict[str, str]:
    """Exact totals that follow from the records; each is a number that nothing else would print."""
    wealth = [row[6] for row in people()]
    rents = [row[5] for row in homes()]
    return {
        "size of the largest group": str(CROWD),
        "number of records": str(len(people())),
        "number of lines": str(len(people()) + 3),
        "records that the cap leaves out": str(CROWD - 9),
        "sum of a column": str(sum(int(value) for value in wealth if value.isdecimal())),
        "sum of a number": str(sum(float(value) for value in rents if value.replace(".", "").isdecimal())),
    }
