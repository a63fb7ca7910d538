"""One unit's oddest cell changes nothing about how others are read, bounded or counted."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from release_specs.load import Loaded, load_text
from tabulation.tabulate import Work, open_dataset, tabulate
from tests.tabulation.agreement import as_cells, counted, differences
from tests.tabulation.dirty import not_utf8

HOMES = """
margrave: 1
release: {name: small, title: Small}
microdata:
  homes: {key: home, from: people, defaults: {outside: leave_out, missing: leave_out}, columns: {}}
  people:
    in: {homes: home}
    defaults: {outside: leave_out, missing: leave_out}
    columns: {x: {codes: [a, b]}, day: {date: 2000-01-01..2010-12-31, outside: nearest}}
privacy: {protect: homes, at_most: {people: 2}, neighbours: add-remove, budget: {epsilon: 1}}
tables: {by_x: {count: people, by: [x]}, days: {count: people, by: [year]}}
recodes: {year: {of: day, into: {Old: ..2005-12-31, New: 2006-01-01..}}}
"""


def found_in(loaded: Loaded, table: pa.Table, folder: Path) -> dict[str, list[int]]:
    pq.write_table(table, folder / "people.parquet")
    sources = open_dataset(loaded.spec, loaded.domain, {"people": str(folder / "people.parquet")})
    counts = tabulate(loaded.spec, loaded.domain, sources, key=bytes(32))
    return {name: found.dense(None)[0].tolist() for name, found in counts.items()}


@pytest.mark.parametrize("moment", [0, 253_402_214_400_000, -(2**63) + 1, 2**63 - 2])
def test_a_bad_byte_in_one_home_leaves_the_cap_and_the_days_of_all_others(moment: int, tmp_path: Path) -> None:
    loaded = load_text(HOMES, file="small.yaml", folder=tmp_path)
    home = pa.array([Decimal(0)] * 10 + [Decimal(5)], pa.decimal128(18, 8))
    days = pa.array([moment] * 11, pa.timestamp("ms" if abs(moment) < 2**60 else "us"))
    clean = found_in(loaded, pa.table({"home": home, "x": ["a"] * 10 + ["b"], "day": days}), tmp_path)
    texts = not_utf8(*[b"a"] * 10, b"\xff")
    spoiled = found_in(loaded, pa.table({"home": home, "x": texts, "day": days}), tmp_path)
    assert clean["by_x.count"] == [2, 1, 0]
    assert spoiled["by_x.count"] == [2, 0, 1]
    assert spoiled["days.count"] == clean["days.count"]


def test_rows_of_a_group_that_is_built_from_them_have_the_groups_value(tmp_path: Path) -> None:
    text = """
margrave: 1
release: {name: small, title: Small}
microdata:
  mothers:
    key: mother
    from: births
    defaults: {outside: leave_out, missing: leave_out}
    columns: {age: {integer: 1..4, mixed: leave_out}}
  births:
    key: birth
    in: {mothers: mother}
    defaults: {outside: leave_out, missing: leave_out}
    columns: {sex: {codes: [b, g]}}
universes: {young: {of: births, where: {age: 1}}}
privacy: {protect: mothers, at_most: {births: 3}, neighbours: add-remove, budget: {epsilon: 1}}
tables: {ages: {count: births, by: [age]}, young: {count: young}}
"""
    loaded = load_text(text, file="small.yaml", folder=tmp_path)
    (tmp_path / "births.csv").write_text("mother,birth,age,sex\n1,1,1,b\n1,2,2,g\n2,3,3,b\n", encoding="utf-8")
    files = {"births": tmp_path / "births.csv"}
    found = counted(loaded, files, tmp_path)
    assert found["ages.count"].dense(None).tolist() == [[0, 0, 1, 0, 2]]
    assert as_cells(found["young.count"]) == {}
    assert differences(loaded, files, found) == {}


ANSWERS = """
margrave: 1
release: {name: small, title: Small}
microdata:
  rows:
    key: id
    defaults: {outside: leave_out, missing: leave_out}
    columns: {m: {codes: [p, q], up_to: 2, separator: ";"}}
privacy: {protect: rows, neighbours: add-remove, budget: {epsilon: 1}}
tables: {t: {count: rows, by: [m]}}
"""


def test_answers_in_a_cell_that_is_no_text_are_missing_whatever_the_order_of_lines(tmp_path: Path) -> None:
    loaded = load_text(ANSWERS, file="small.yaml", folder=tmp_path)
    for lines in ([b"1,p;\xff", b"1,q;\xff"], [b"1,q;\xff", b"1,p;\xff"]):
        (tmp_path / "rows.csv").write_bytes(b"\n".join([b"id,m", *lines]))
        files = {"rows": tmp_path / "rows.csv"}
        found = counted(loaded, files, tmp_path)
        assert found["t.count"].dense(None).tolist() == [[0, 0, 1]]
        assert differences(loaded, files, found) == {}


@pytest.mark.parametrize("line", [b"," * 20_000_000, b'"' * 20_000_000, b"9," + b";" * 20_000_000])
def test_one_line_of_twenty_million_marks_costs_no_run(line: bytes, tmp_path: Path) -> None:
    loaded = load_text(ANSWERS, file="small.yaml", folder=tmp_path)
    (tmp_path / "rows.csv").write_bytes(b"id,m\n1,p\n" + line + b"\n2,q\n")
    sources = open_dataset(loaded.spec, loaded.domain, {"rows": str(tmp_path / "rows.csv")})
    counts = tabulate(loaded.spec, loaded.domain, sources, key=bytes(32), work=Work(memory=1 << 30))
    assert counts["t.count"].dense(None).tolist() == [[1, 1, 1]]
