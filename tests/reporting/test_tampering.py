"""Every edit of a finished release is noticed, also by somebody who mends the hashes afterwards."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reporting.check_release import check_release
from reporting.errors import ReleaseFault
from reporting.manifest import Manifest, check_hashes, hashes_of, read_manifest, write_manifest
from reporting.replay import replay
from tests.reporting.releases import homes, noise_of, small

PEOPLE = "tables/people.csv"
MEASURED = "measurements/people.count@town.parquet"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    small(folder).publish(folder / "release")
    return folder / "release"


@pytest.fixture(scope="module")
def finished_homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("homes")
    homes(folder).publish(folder / "release")
    return folder / "release"


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "release")
    return tmp_path / "release"


def mended(folder: Path, **changes: object) -> None:
    """Writes the manifest anew, with the hashes of what now stands in the folder."""
    manifest = read_manifest(folder)
    (folder / "manifest.json").unlink()
    write_manifest(folder, replace(manifest, files=hashes_of(folder), **changes))  # type: ignore[arg-type]


def said(folder: Path) -> dict[str, str]:
    """The checks that fail, with what they say."""
    return {check.name: check.detail for check in check_release(folder) if not check.ok}


def lines(folder: Path, file: str, edit: Callable[[list[list[str]]], object]) -> None:
    """Edits the fields of a table file."""
    path = folder / file
    rows = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]
    edit(rows)
    path.write_text("".join(",".join(row) + "\n" for row in rows), encoding="utf-8")


def cell(row: int, column: str, text: str) -> Callable[[list[list[str]]], object]:
    """Another text in one cell."""

    def edit(rows: list[list[str]]) -> None:
        rows[row][rows[0].index(column)] = text

    return edit


def raised(rows: list[list[str]]) -> None:
    place = rows[0].index("value")
    rows[5][place] = str(int(rows[5][place]) + 1)


Edit = Callable[[list[list[str]]], object]
TABLES: dict[str, tuple[str, Edit, str, str]] = {
    "a number is raised": (PEOPLE, raised, "promises", "table 'people'"),
    "a count is negative": (PEOPLE, cell(1, "value", "-1"), "promises", "found -1"),
    "a count is no whole number": (PEOPLE, cell(1, "value", "0.5"), "tables", "found 0.5, expected a whole number"),
    "a number has an exponent": (PEOPLE, cell(1, "value", "1e3"), "tables", "found '1e3', expected a number written"),
    "a number has a needless nought": (PEOPLE, cell(1, "moe", "7.0590"), "tables", "7.0590"),
    "a number is text": (PEOPLE, cell(2, "estimate", "many"), "tables", "found 'many'"),
    "a number is removed": (PEOPLE, cell(2, "estimate", ""), "tables", "estimate is empty in other rows"),
    "a value is removed": (PEOPLE, cell(2, "value", ""), "tables", "found ''"),
    "a row is removed": (PEOPLE, lambda rows: rows.pop(3), "tables", "has 15 rows, expected 16"),
    "a row is doubled": (PEOPLE, lambda rows: rows.append(rows[3]), "tables", "has 17 rows, expected 16"),
    "two rows are exchanged": (
        PEOPLE,
        lambda rows: rows.insert(6, rows.pop(7)),
        "tables",
        "people.csv, line 7: found 'block,A1,2,A",
    ),
    "a code is changed": (PEOPLE, cell(3, "sex", "9"), "tables", "line 4: found 'whole_town,T,9,A"),
    "an area is changed": (PEOPLE, cell(9, "area", "A9"), "tables", "line 10"),
    "a column is renamed": (PEOPLE, cell(0, "moe", "margin"), "tables", "the first line is"),
    "a row has a field too many": (
        PEOPLE,
        lambda rows: rows[4].append("x"),
        "tables",
        "is not a CSV file of 10 columns",
    ),
    "a margin of error is negative": (PEOPLE, cell(1, "moe", "-3"), "errors", "negative margin of error"),
    "an interval is narrowed": (PEOPLE, cell(2, "high", "9"), "errors", "interval that is not that of its estimate"),
    "an interval is turned round": (PEOPLE, cell(2, "low", "99"), "errors", "a low end above its high end"),
    "an estimate is moved": (PEOPLE, cell(2, "estimate", "90"), "errors", "interval that is not that of its estimate"),
    "a flag is invented": (PEOPLE, cell(2, "flag", "splendid"), "errors", "unknown flag"),
    "a number is hidden": (PEOPLE, cell(2, "flag", "not known"), "tables", "empty in other rows"),
    "a computed number is moved": ("tables/each.csv", cell(1, "value", "4"), "errors", "table 'each' (ratio)"),
    "a sum is off its steps": (
        "tables/earned.csv",
        cell(1, "value", "1.05"),
        "tables",
        "whole number of steps of 1/10",
    ),
    "a hidden cell is changed": ("not_stated/people.count@town.csv", cell(1, "value", "1"), "promises", "'people'"),
}


@pytest.mark.parametrize("kind", TABLES)
def test_an_edit_of_a_table_is_noticed_with_and_without_its_hash(kind: str, folder: Path) -> None:
    file, edit, check, sentence = TABLES[kind]
    lines(folder, file, edit)
    assert file in said(folder)["files"]
    mended(folder)
    found = said(folder)
    assert "files" not in found
    assert sentence in found[check]


def test_a_byte_mark_or_other_line_ends_are_noticed(folder: Path) -> None:
    path = folder / PEOPLE
    before = path.read_bytes()
    for data in (b"\xef\xbb\xbf" + before, before.replace(b"\n", b"\r\n"), before.rstrip(b"\n"), before + b"\n", b""):
        path.write_bytes(data)
        mended(folder)
        assert "people.csv" in said(folder)["tables"]


def test_exchanged_files_are_noticed(folder: Path) -> None:
    one, other = folder / "tables" / "people.csv", folder / "tables" / "ages.csv"
    one.rename(folder / "tables" / "aside")
    other.rename(one)
    (folder / "tables" / "aside").rename(other)
    assert "tables/people.csv" in said(folder)["files"]
    mended(folder)
    assert "the first line is" in said(folder)["tables"]


@pytest.mark.parametrize("file", [PEOPLE, MEASURED, "spec/spec.yaml", "not_stated/people.count@town.csv"])
def test_a_removed_file_is_noticed(folder: Path, file: str) -> None:
    (folder / file).unlink()
    assert said(folder)["files"] == f"{file} is in the manifest and not in the folder"
    mended(folder)
    check = {"tables": "tables", "measurements": "measurements", "spec": "spec", "not_stated": "tables"}
    assert check[file.partition("/")[0]] in said(folder)


@pytest.mark.parametrize(
    ("file", "check"),
    [
        ("tables/more_tables.csv", "tables"),
        ("measurements/more.parquet", "measurements"),
        ("not_stated/more.csv", "tables"),
        ("spec/more.csv", "spec"),
        (".hidden", None),
    ],
)
def test_an_added_file_is_noticed(folder: Path, file: str, check: str | None) -> None:
    (folder / file).write_text("a\n", encoding="utf-8")
    assert said(folder)["files"] == f"{file} is not in the manifest; it was added after publication"
    mended(folder)
    assert next(iter(said(folder)), None) == check


def test_links_and_pipes_are_no_part_of_a_release(folder: Path) -> None:
    path = folder / PEOPLE
    shutil.copy(path, folder.parent / "elsewhere.csv")
    path.unlink()
    path.symlink_to(folder.parent / "elsewhere.csv")
    os.mkfifo(folder / "pipe")
    assert said(folder)["files"] == (
        f"pipe is neither a file nor a folder; {PEOPLE} is a link; a release holds files only"
    )
    with pytest.raises(ReleaseFault, match="pipe is neither"):
        hashes_of(folder)


@pytest.mark.parametrize("name", ["../release/a", "/etc/hosts", "a/../b", "a//b", "./a", "a\\b", "manifest.json", ""])
def test_a_manifest_names_no_path_that_leaves_the_release(folder: Path, name: str) -> None:
    edited(folder, lambda data: data["files"].update({name: {"sha256": "0" * 64, "bytes": 1}}))
    assert "manifest.json" in said(folder)["manifest"]


def edited(folder: Path, edit: Callable[[dict[str, dict[str, object]]], object]) -> None:
    path = folder / "manifest.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    edit(data)
    text = json.dumps(data, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")


MANIFESTS: dict[str, tuple[Callable[[dict[str, dict[str, object]]], object], str]] = {
    "a hash is edited": (lambda data: data["files"][PEOPLE].update(sha256="0" * 64), "files"),  # type: ignore[attr-defined]
    "a size is edited": (lambda data: data["files"][PEOPLE].update(bytes=1), "files"),  # type: ignore[attr-defined]
    "a file is left out": (lambda data: data["files"].pop(PEOPLE), "files"),
    "a measurement is left out": (lambda data: data["measured"].pop(), "measurements"),
    "a measurement is invented": (lambda data: data["measured"].append(["x", None]), "measurements"),  # type: ignore[attr-defined]
    "the title is edited": (lambda data: data["release"].update(title="Other"), "spec"),
    "a value is of another kind": (lambda data: data["release"].update(title=3), "manifest"),
    "a version is nought": (lambda data: data["release"].update(version=0), "manifest"),
    "a version is no number": (lambda data: data["release"].update(version="1"), "manifest"),
    "the code is a list": (lambda data: data.update(code=[]), "manifest"),  # type: ignore[arg-type]
    "a value is missing": (lambda data: data.pop("run"), "manifest"),
    "a value is too many": (lambda data: data.update(more={}), "manifest"),
    "another format": (lambda data: data.update(format=2), "manifest"),  # type: ignore[arg-type]
    "a float": (lambda data: data["plan"].update(rho=0.5), "manifest"),
}


@pytest.mark.parametrize("kind", MANIFESTS)
def test_an_edited_manifest_is_noticed(kind: str, folder: Path) -> None:
    edit, check = MANIFESTS[kind]
    edited(folder, edit)
    assert check in said(folder)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "{}", "\ufeff{}", '{"format": 1}', "[" * 100_000, "1" * 10_000]
)
def test_what_is_no_manifest_is_said_to_be_none(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text, encoding="utf-8")
    assert "manifest.json" in said(folder)["manifest"]
    with pytest.raises(ReleaseFault):
        check_hashes(folder)


def test_a_manifest_with_a_name_twice_is_refused(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(
        path.read_text(encoding="utf-8").replace('{\n "code"', '{\n "run": "x",\n "code"'), encoding="utf-8"
    )
    assert "a name twice" in said(folder)["manifest"]


def remeasured(folder: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Writes a measurement file anew with other numbers."""
    path = folder / MEASURED
    with pq.ParquetFile(path) as file:
        told = {key: value for key, value in file.metadata.metadata.items() if key.startswith(b"margrave")}
        table = change(file.read())
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(told)


def with_column(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), pa.field(name, column.type, nullable=False), column)


def more_in_the_first(table: pa.Table) -> pa.Table:
    numbers = table.column("value").to_pylist()
    return with_column(table, "value", pa.array([numbers[0] + 50, *numbers[1:]], pa.int64()))


def test_a_changed_measurement_is_noticed_by_its_hash_and_by_the_replay(folder: Path, tmp_path: Path) -> None:
    assert replay(folder, tmp_path / "first", noise_of=noise_of) == []
    remeasured(folder, more_in_the_first)
    assert MEASURED in said(folder)["files"]
    mended(folder)
    assert said(folder) == {}  # a measurement alone promises nothing of the tables
    assert "tables/people.csv" in replay(folder, tmp_path / "again", noise_of=noise_of)


def test_a_changed_table_is_named_by_the_replay(folder: Path, tmp_path: Path) -> None:
    lines(folder, PEOPLE, raised)
    (folder / "tables" / "ages.csv").unlink()
    (folder / "tables" / "more.csv").rename(folder / "tables" / "other.csv")
    found = replay(folder, tmp_path / "again", noise_of=noise_of)
    assert found == ["tables/ages.csv", "tables/more.csv", "tables/other.csv", "tables/people.csv"]


def test_a_mechanism_that_nobody_knows_stops_the_replay_with_a_sentence(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ReleaseFault, match=r"'people.count@town' at 'whole_town': no noise of that name"):
        replay(folder, tmp_path / "again", noise_of=unknown)


def unknown(_: object) -> object:
    raise ValueError("no noise of that name")


MEASUREMENTS: dict[str, tuple[Callable[[pa.Table], pa.Table], str]] = {
    "rows are missing": (lambda table: table.slice(1), "has 23 rows, expected 24"),
    "a column is missing": (lambda table: table.drop_columns(["sex"]), "has the columns level, area, kind, value"),
    "numbers are floats": (
        lambda table: with_column(table, "value", table.column("value").cast(pa.float64()).combine_chunks()),
        "of their types",
    ),
    "codes are exchanged": (
        lambda table: with_column(table, "sex", pa.array(table.column("sex").to_pylist()[::-1])),
        "column 'sex' at 'whole_town' holds other codes",
    ),
}


@pytest.mark.parametrize("kind", MEASUREMENTS)
def test_measurements_of_other_cells_are_refused(kind: str, folder: Path) -> None:
    change, sentence = MEASUREMENTS[kind]
    remeasured(folder, change)
    mended(folder)
    assert sentence in said(folder)["measurements"]


def test_a_cut_measurement_file_is_refused(folder: Path) -> None:
    path = folder / MEASURED
    path.write_bytes(path.read_bytes()[:-200])
    mended(folder)
    assert f"{MEASURED} is damaged" in said(folder)["measurements"]


def test_exact_totals_and_rules_are_looked_at_in_the_files(finished_homes: Path, tmp_path: Path) -> None:
    """One home more in one spot: the registered number, the sums and the people per home no longer hold."""
    for number, (file, row, expected) in enumerate(
        [("houses", 1, "the exact homes"), ("folk", 5, "the exact people"), ("houses", 20, "'houses'")]
    ):
        folder = tmp_path / str(number)
        shutil.copytree(finished_homes, folder)
        assert said(folder) == {}
        lines(folder, f"tables/{file}.csv", lambda rows, row=row: cell(row, "value", "77")(rows))  # type: ignore[misc]
        mended(folder)
        assert expected in said(folder)["promises"]


def test_a_changed_public_number_is_noticed_in_the_tables(finished_homes: Path, tmp_path: Path) -> None:
    folder = tmp_path / "release"
    shutil.copytree(finished_homes, folder)
    path = folder / "spec" / "register.csv"
    path.write_text(path.read_text(encoding="utf-8").replace("b,16", "b,17"), encoding="utf-8")
    mended(folder)
    assert "the exact people" in said(folder)["promises"]


def test_a_spec_with_mistakes_is_said_to_have_some(folder: Path) -> None:
    path = folder / "spec" / "spec.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("by: [sex, kind]", "by: [sox, kind]"), encoding="utf-8")
    mended(folder)
    found = said(folder)
    assert "'sox' is not an attribute of persons" in found["spec"]
    assert found["tables"] == "not looked at: an earlier check failed"


def test_an_edition_is_that_of_the_manifest(folder: Path) -> None:
    mended(folder, edition="2027")
    assert isinstance(read_manifest(folder), Manifest)
    assert said(folder) == {}
