"""Neighbours of generated files: one unit comes, goes or is exchanged, and says whatever a file can say.

Nothing public may differ between them, and no count may move further than the law declares. `MARGRAVE_NEIGHBOURS` is
the number of changes that are tried for each spec and format.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mechanisms.sensitivity import Unit
from release_specs.load import Loaded, load_spec, load_text
from release_specs.tallies import Tally, tallies_of
from tabulation.errors import EngineError
from tabulation.synthesize import synthesize
from tabulation.tabulate import tabulate
from tests.tabulation import neighbours
from tests.tabulation.neighbours import ADD_REMOVE, REPLACE, Outcome, faults, outcome_of
from tests.tabulation.town import TOWN, ZONES
from tests.tabulation.wild_units import CHANGES, SIZES, Change, Files, Table, changed, crowd, odd_lines

EXAMPLES = Path("release_specs/examples")
TRIES = int(os.environ.get("MARGRAVE_NEIGHBOURS", "3"))
RECORDS, DIRT, EDITION = 150, Fraction(3, 100), "2026"
MOST_TALLIES = 5

MORE_TABLES = """  tongues:    {count: people, by: [tongue], at: all}
  skills:     {count: people, by: [skills, sex], at: [town]}
  incomes:    {mean: income, of: people, by: [sex], at: [town, quarter]}
  all_income: {sum: income, of: people, at: [town]}
  grid:       {quantiles: {income: {at: 1/2, every: 1000}}, of: people, at: [town]}
  rents:      {sum: rent, of: homes, at: [town, quarter]}
  rooms:      {mean: rooms, of: dwellings, by: [kind], at: all}
  weddings:   {count: people, by: [marital, rich], at: [quarter]}
  by_head:    {count: dwellings, by: [head_sex, staff], at: [town]}
  lodging:    {count: at_home, by: [size, lodgers], at: all}
  eras:       {count: dwellings, by: [era, side], at: [town]}
  born:       {most_common: born, of: people, at: [town]}
  german:     {proportion: {tongue: de}, of: people, at: all}
  two_each:   {count: people, by: [sex, side], at: [town], at_most: 2}
impossible:"""
RICH_TOWN = (
    TOWN.replace("impossible:", MORE_TABLES)
    .replace("universes:", "universes:\n  at_home: {of: people, where: {place: {not: inmate}}}")
    .replace("recodes:", "recodes:\n  era: {of: built, into: {Old: ..1950-12-31, New: 1951-01-01..}}")
)
SPECS = ("town", "households", "births", "redistricting_2020")


@dataclass
class Base:
    """A generated dataset, what the product makes of it, and what it made of neighbours with one unit more."""

    loaded: Loaded
    files: Files
    folder: Path
    suffix: str
    outcome: Outcome = field(init=False)
    grown: list[Outcome] = field(default_factory=list)
    numbers: count[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.outcome = self.run(self.files)

    @property
    def tallies(self) -> tuple[Tally, ...]:
        return tallies_of(self.loaded.spec, self.loaded.domain)

    def run(self, files: Files, tallies: Sequence[Tally] | None = None) -> Outcome:
        """What the product makes of files."""
        folder = self.folder / str(next(self.numbers))
        folder.mkdir()
        places = {entity: folder / f"{entity}.{self.suffix}" for entity in files}
        for entity, table in files.items():
            table.write(places[entity])
        return outcome_of(self.loaded, places, edition=EDITION, tallies=tallies)

    def wrongs(self, change: Change, tallies: Sequence[Tally], unit: Unit | None = None) -> list[str]:
        """What the law forbids between this dataset, its neighbour, and neighbours that grew from it likewise."""
        other = self.run(changed(self.loaded, self.files, change), tallies)
        relation = REPLACE if change.exchanges else ADD_REMOVE
        found = list(faults(self.loaded, self.outcome.of(other), other, relation, unit=unit))
        if change.kind in ("add", "single", "odd line"):
            for earlier in self.grown:
                found += faults(self.loaded, earlier.of(other), other.of(earlier), REPLACE, unit=unit)
            self.grown.append(other)
        return found


Bases = Callable[[str, str], Base]


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Bases:
    @cache
    def make(name: str, suffix: str) -> Base:
        folder = tmp_path_factory.mktemp(f"{name}-{suffix}")
        (folder / "zones.csv").write_text(ZONES, encoding="utf-8")
        public = folder if name == "town" else EXAMPLES
        if name == "town":
            loaded = load_text(RICH_TOWN, file="town.yaml", folder=folder)
        else:
            loaded = load_spec(EXAMPLES / f"{name}.yaml")
        wishes = {"records": RECORDS, "seed": 7, "dirt": DIRT, "form": suffix}
        made = synthesize(loaded.spec, loaded.domain, out=folder / "made", folder=public, **wishes)
        files = {one.entity: Table.read(one.path, loaded.spec.microdata[one.entity].read.delimiter) for one in made}
        return Base(loaded, files, folder, suffix)

    return make


changes = st.builds(Change, st.sampled_from(CHANGES), st.sampled_from(SIZES), st.integers(0, 10**6))


def some_of(tallies: Sequence[Tally]) -> st.SearchStrategy[list[Tally]]:
    return st.lists(st.sampled_from(tallies), min_size=1, max_size=MOST_TALLIES, unique_by=lambda tally: tally.name)


tried = settings(
    max_examples=TRIES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("name", SPECS)
def test_one_unit_changes_nothing_public_and_no_count_beyond_its_sensitivity(
    name: str, suffix: str, bases: Bases
) -> None:
    base = bases(name, suffix)

    @tried
    @given(changes, some_of(base.tallies))
    def holds(change: Change, tallies: list[Tally]) -> None:
        assert base.wrongs(change, tallies) == []

    assert base.outcome.error is None
    holds()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("name", SPECS)
def test_no_cell_of_a_file_stops_a_run_or_changes_what_it_tells(name: str, suffix: str, bases: Bases) -> None:
    base = bases(name, suffix)
    other = base.run({entity: crowd(table) for entity, table in base.files.items()})
    assert other.error is None
    assert other.public == base.outcome.public


def test_no_line_of_a_text_file_stops_a_run_or_changes_what_it_tells(bases: Bases) -> None:
    base = bases("births", "csv")
    table = base.files["births"]
    random = Random(7)  # noqa: S311 - picks test cells, draws no noise
    lines = tuple(line for _ in range(20) for line in odd_lines(base.loaded.spec, "births", table, random))
    other = base.run({"births": replace(table, odd=lines)}, base.tallies[:1])
    assert other.error is None
    assert other.public == base.outcome.of(other).public


@pytest.mark.parametrize("members", [1, 2])
def test_a_cap_that_is_not_kept_would_be_noticed(members: int, bases: Bases) -> None:
    base = bases("births", "csv")
    births = [tally for tally in base.tallies if tally.table == "births_by_sex"]
    table = base.files["births"]
    more = [[b"fresh-%d" % number, b"fresh", b"VD", *table.rows[0][3:]] for number in range(50)]
    files = {"births": replace(table, rows=(*table.rows, *more))}
    kept, loose = base.run(files, births), base.run(files, [replace(tally, cap=4) for tally in births])
    before = base.outcome.of(kept)
    assert list(faults(base.loaded, before, kept, ADD_REMOVE)) == []
    assert any(
        "moved by" in wrong for wrong in faults(base.loaded, before, kept, ADD_REMOVE, unit=Unit(members=members))
    )
    assert any("moved by" in wrong for wrong in faults(base.loaded, before, loose, ADD_REMOVE))


def test_an_exception_that_a_record_causes_would_be_noticed(bases: Bases, monkeypatch: pytest.MonkeyPatch) -> None:
    base = bases("births", "csv")

    def stumbles(*args: Any, **wishes: Any) -> dict[str, Any]:
        if b"fresh" in args[2]["births"].path.read_bytes():
            raise EngineError("engine-failed", "", "counting: the engine stopped")
        return tabulate(*args, **wishes)

    monkeypatch.setattr(neighbours, "tabulate", stumbles)
    assert base.wrongs(Change("remove", 1, 1), base.tallies[:1]) == []
    assert ["public differs" in wrong for wrong in base.wrongs(Change("exchange", 1, 1), base.tallies[:1])] == [True]


def test_a_stage_that_a_record_adds_would_be_noticed(bases: Bases, monkeypatch: pytest.MonkeyPatch) -> None:
    base = bases("births", "csv")

    def chatters(*args: Any, tell: Any, **wishes: Any) -> dict[str, Any]:
        tell(f"read {len(args[2]['births'].path.read_bytes())} bytes")
        return tabulate(*args, tell=tell, **wishes)

    monkeypatch.setattr(neighbours, "tabulate", chatters)
    one, other = base.run(base.files), base.run(changed(base.loaded, base.files, Change("remove", 1, 1)))
    assert ["public differs" in wrong for wrong in faults(base.loaded, one, other, ADD_REMOVE)] == [True]


def test_cells_that_a_record_adds_would_be_noticed(bases: Bases) -> None:
    base = bases("births", "csv")
    wider = {name: np.pad(counts, ((0, 0), (0, 1))) for name, counts in base.outcome.counts.items()}
    other = replace(base.outcome, counts=wider)
    assert ["public differs" in wrong for wrong in faults(base.loaded, base.outcome, other, ADD_REMOVE)] == [True]


ROWS = """
margrave: 1
release: {name: small, title: Small}
microdata:
  rows:
    defaults: {outside: leave_out, missing: leave_out}
    columns: {x: COLUMN}
privacy: {protect: rows, neighbours: add-remove, budget: {epsilon: 1}}
tables: {t: {count: rows, by: [x]}}
"""


def wrongs_of_one_more(column: str, before: pa.Array, after: pa.Array, folder: Path) -> list[str]:
    """What the law forbids between two Parquet files of one column."""
    loaded = load_text(ROWS.replace("COLUMN", column), file="small.yaml", folder=folder)
    found = []
    for number, array in enumerate((before, after)):
        pq.write_table(pa.table({"x": array}), folder / f"{number}.parquet")
        found.append(outcome_of(loaded, {"rows": folder / f"{number}.parquet"}))
    return list(faults(loaded, *found, ADD_REMOVE))


def texts(*values: bytes) -> pa.Array:
    """A column of texts whose bytes nobody has looked at."""
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())


def test_a_text_that_is_no_utf_8_does_not_stop_a_run_on_parquet(tmp_path: Path) -> None:
    assert wrongs_of_one_more("{codes: [a, b]}", texts(b"a", b"b"), texts(b"a", b"b", b"\xff\xfe"), tmp_path) == []


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_moment_beyond_all_calendars_does_not_stop_a_run(unit: str, tmp_path: Path) -> None:
    kind, far = pa.timestamp(unit), 2**52 if unit == "s" else 2**62
    column = "{date: 2026-01-01..2026-01-03, outside: nearest}"
    assert wrongs_of_one_more(column, pa.array([0], kind), pa.array([0, far], kind), tmp_path) == []


SPELLED_TWICE = ("h,1,m", "h,1.0,m", "h, 1,m", "h,2,f", "h,3,f", "h,4,f")


def test_rows_that_spell_one_id_in_several_ways_are_kept_whatever_their_order(tmp_path: Path) -> None:
    text = """
margrave: 1
release: {name: small, title: Small}
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
privacy: {protect: homes, at_most: {people: 2}, neighbours: add-remove, budget: {epsilon: 1}}
tables: {t: {count: people, by: [sex]}}
"""
    loaded = load_text(text, file="small.yaml", folder=tmp_path)
    (tmp_path / "homes.csv").write_text("home,kind\nh,H\n", encoding="utf-8")
    seen = set()
    for first in range(3):
        lines = ["home,line,sex", *SPELLED_TWICE[first:], *SPELLED_TWICE[:first]]
        (tmp_path / "people.csv").write_text("\n".join(lines), encoding="utf-8")
        found = outcome_of(loaded, {name: tmp_path / f"{name}.csv" for name in ("homes", "people")})
        seen.add(tuple(found.counts["t.count", None].ravel().tolist()))
    assert len(seen) == 1


def test_a_lone_carriage_return_does_not_stop_the_engines_own_reader(tmp_path: Path) -> None:
    text = ROWS.replace("COLUMN", "{codes: [a, b]}").replace("rows:\n", "rows:\n    read: {quoted_newlines: yes}\n", 1)
    loaded = load_text(text, file="small.yaml", folder=tmp_path)
    outcomes = []
    for more in (b"", b"a,1\ra,1\n"):
        (tmp_path / "rows.csv").write_bytes(b"x,y\n" + b"a,1\nb,2\n" * 5 + more)
        outcomes.append(outcome_of(loaded, {"rows": tmp_path / "rows.csv"}))
    assert outcomes[0].error is None
    assert outcomes[1].public == outcomes[0].public
