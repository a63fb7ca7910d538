"""Parquet files as they come: each kind of dirt with what has to come of it, written by hand."""

import io
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tabulation.errors import EngineError
from tests.tabulation.dirty import AREA, PLACES, Dirty, Refused, called, check, codes, parquet, rows, run

AB = rows(x=codes("a", "b"))
WHOLE = "{integer: 0..9, outside: nearest}"
TENTHS = "{number: 0..9, step: 0.1, outside: nearest}"
DAYS = rows(x="{date: 2026-01-01..2026-01-03, outside: nearest}")
SEVERAL = "{codes: [1, 2], up_to: 2, columns: [x1, x2]}"
PLAIN_AREAS = PLACES.replace("{01: North, 02: South, AB: East}", "{1: North, 2: South}")
INFINITE, NO_NUMBER = float("inf"), float("nan")
FEW, MANY = codes("1", "02", "0"), codes("1", "02", "0", "a", "b", "c", "d", "7", "9", "11")
FLOATS = pa.table({"x": [1.0, 1.5, NO_NUMBER, INFINITE, -INFINITE, 1e300, None, 2.0, -0.0]})
OF_FLOATS = {"x": {"1": 1, "02": 1, "0": 1, "gone": 2, "out": 4}}
NEW_YEAR = 20454 * 86400
"""The first of January 2026, in seconds."""


def in_bytes(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def one_cut_off(folder: Path) -> Path:
    called("rows/2.parquet", in_bytes(pa.table({"x": ["a"]}))[:-9])(folder)
    return parquet(("1.parquet", pa.table({"x": ["a"]})))(folder)


def empty_folder(folder: Path) -> Path:
    (folder / "rows").mkdir()
    (folder / "rows" / "Jane.csv").write_text("x\na\n")
    return folder / "rows"


def bookkeeping_only(folder: Path) -> Path:
    return parquet(("_temporary/Jane.parquet", pa.table({"x": ["a"]})), (".Bob.parquet", pa.table({"x": ["a"]})))(
        folder
    )


def columns(*named: tuple[str, list[object]]) -> pa.Table:
    """A table in which a name may stand twice."""
    return pa.Table.from_arrays([pa.array(values) for _, values in named], names=[name for name, _ in named])


def spoiled(column: int) -> Callable[[Path], Path]:
    """A file in which every byte of a column's pages is 255; the footer is as it was."""

    def write(folder: Path) -> Path:
        path = folder / "rows.parquet"
        table = pa.table({"name": ["Jane Doe", "Bob Roe"], "x": ["a", "b"]})
        pq.write_table(table, path, use_dictionary=False, compression="none")
        chunk = pq.ParquetFile(path).metadata.row_group(0).column(column)
        data = bytearray(path.read_bytes())
        first, size = chunk.data_page_offset, chunk.total_compressed_size
        data[first : first + size] = b"\xff" * size
        path.write_bytes(data)
        return path

    return write


def beside_another(folder: Path) -> Path:
    """A file whose name, read as a pattern, fits its neighbour too."""
    called("rows2.parquet", pa.table({"x": ["b"]}))(folder)
    return called("rows*.parquet", pa.table({"x": ["a"]}))(folder)


def below_a_sign(folder: Path) -> Path:
    """A folder with partitions, itself below a folder that looks like one."""
    called("x=b/rows/y=1/part.parquet", pa.table({"x": ["a"]}))(folder)
    return folder / "x=b" / "rows"


STRUCTURE = (
    Dirty("a folder holds no Parquet file", empty_folder, AB, Refused("no-file"), secrets=("Jane",)),
    Dirty("a folder holds bookkeeping only", bookkeeping_only, AB, Refused("no-file"), secrets=("Jane", "Bob")),
    Dirty(
        "the end of the file is cut off",
        called("rows.parquet", in_bytes(pa.table({"x": ["Jane"]}))[:-20]),
        AB,
        Refused("wrong-format"),
        secrets=("Jane",),
    ),
    Dirty(
        "half of the file is cut off",
        called("rows.parquet", in_bytes(pa.table({"x": ["Jane"]}))[:200]),
        AB,
        Refused("wrong-format"),
        secrets=("Jane",),
    ),
    Dirty("the file is empty", called("rows.parquet", b""), AB, Refused("wrong-format")),
    Dirty(
        "CSV is called Parquet", called("rows.parquet", b"x\na\nJane\n"), AB, Refused("wrong-format"), secrets=("Jane",)
    ),
    Dirty("one file of a folder is cut off", one_cut_off, AB, Refused("wrong-format")),
    Dirty(
        "a declared column is missing", pa.table({"y": ["Jane"]}), AB, Refused("column-missing", "x"), secrets=("Jane",)
    ),
    Dirty("a column is named in capitals", pa.table({"X": ["a"]}), AB, Refused("column-missing", "x")),
    Dirty(
        "one file of a folder lacks a column",
        parquet(("1.parquet", pa.table({"x": ["a"]})), ("2.parquet", pa.table({"y": ["a"]}))),
        AB,
        Refused("column-missing", "x"),
    ),
    Dirty(
        "files of a folder store a column as text and as numbers",
        parquet(("1.parquet", pa.table({"x": ["1"]})), ("2.parquet", pa.table({"x": [1]}))),
        rows(x=FEW),
        Refused("column-type", "x"),
    ),
    Dirty(
        "a used column stands twice",
        called("rows.parquet", columns(("x", ["a"]), ("x", ["Jane"]))),
        AB,
        Refused("column-twice", "x"),
        secrets=("Jane",),
    ),
    Dirty(
        "areas with leading zeros are stored as whole numbers",
        pa.table({"p": [1, 77]}),
        rows(p=AREA),
        Refused("area-as-number", "p"),
        secrets=("77",),
    ),
    Dirty(
        "areas with leading zeros are stored as fractional numbers",
        pa.table({"p": [1.0]}),
        rows(p=AREA),
        Refused("area-as-number", "p"),
    ),
    Dirty(
        "days are stored as numbers", pa.table({"x": [20260101]}), DAYS, Refused("column-type", "x"), secrets=("2026",)
    ),
    Dirty("numbers are stored as true and false", pa.table({"x": [True]}), rows(x=WHOLE), Refused("column-type", "x")),
    Dirty(
        "codes are stored as days",
        pa.table({"x": [date(2026, 1, 1)]}),
        AB,
        Refused("column-type", "x"),
        secrets=("2026",),
    ),
    Dirty("codes are stored as lists", pa.table({"x": [["a"]]}), AB, Refused("column-type", "x")),
    Dirty("codes are stored as bytes", pa.table({"x": [b"Jane"]}), AB, Refused("column-type", "x"), secrets=("Jane",)),
)

FILES = (
    Dirty("there are no records", pa.table({"x": pa.array([], pa.string())}), AB, {"x": {}}),
    Dirty(
        "columns that identify people cannot be read",
        spoiled(0),
        AB,
        {"x": {"a": 1, "b": 1}},
        secrets=("Jane", "Bob"),
        plainly=False,
    ),
    Dirty(
        "an unused column stands twice",
        called("rows.parquet", columns(("y", [1]), ("x", ["a"]), ("y", ["Jane"]))),
        AB,
        {"x": {"a": 1}},
    ),
    Dirty(
        "an unused column has the name in capitals",
        pa.table({"X": ["b", "b"], "x": ["a", "a"]}),
        AB,
        Refused("column-twice", "x"),
    ),
    Dirty(
        "there are 500 columns",
        pa.table({**{f"c{n}": [n, n] for n in range(499)}, "x": ["a", "b"]}),
        AB,
        {"x": {"a": 1, "b": 1}},
    ),
    Dirty(
        "a folder has several files, one without records",
        parquet(
            *(
                (f"{n}.parquet", pa.table({"y": pa.array([n] * n, pa.int64()), "x": pa.array(["a"] * n, pa.string())}))
                for n in range(4)
            )
        ),
        AB,
        {"x": {"a": 6}},
    ),
    Dirty(
        "files of a folder have other orders of columns",
        parquet(("1.parquet", pa.table({"x": ["a"], "y": ["b"]})), ("2.parquet", pa.table({"y": ["b"], "x": ["a"]}))),
        AB,
        {"x": {"a": 2}},
    ),
    Dirty(
        "files of a folder have other widths of whole numbers",
        parquet(
            ("1.parquet", pa.table({"x": pa.array([1], pa.int32())})),
            ("2.parquet", pa.table({"x": [2**40, 2]})),
            ("3.parquet", pa.table({"x": pa.array([3], pa.uint8())})),
        ),
        rows(x=WHOLE),
        {"x": {"1": 1, "9": 1, "2": 1, "3": 1}},
    ),
    Dirty(
        "files of a folder store an unused column differently",
        parquet(("1.parquet", pa.table({"x": ["a"], "y": [1]})), ("2.parquet", pa.table({"x": ["b"], "y": ["Jane"]}))),
        AB,
        {"x": {"a": 1, "b": 1}},
    ),
    Dirty(
        "a column of one file of a folder has no values and no type",
        parquet(("1.parquet", pa.table({"x": pa.nulls(2)})), ("2.parquet", pa.table({"x": [1]}))),
        rows(x=WHOLE),
        {"x": {"-": 2, "1": 1}},
    ),
    Dirty(
        "a folder is partitioned",
        parquet(
            *(
                (f"year={year}/1.parquet", pa.table({"x": values}))
                for year, values in ((2026, ["a", "b"]), (2025, ["b"]), ("__HIVE_DEFAULT_PARTITION__", ["b"]))
            )
        ),
        rows("only: {year: edition}", x=codes("a", "b"), year="{integer: 2020..2030}"),
        {"x": {"a": 1, "b": 1}, "year": {"2026": 2}},
        plainly=False,
    ),
    Dirty(
        "partitions hold areas with leading zeros",
        parquet(
            ("p=01/1.parquet", pa.table({"x": ["a"]})),
            ("p=1/1.parquet", pa.table({"x": ["a"]})),
            ("p=AB/1.parquet", pa.table({"x": ["a"]})),
        ),
        rows(p=AREA),
        {"p": {"01": 1, "AB": 1}},
        plainly=False,
    ),
    Dirty("a partitioned folder lies below another partition", below_a_sign, AB, {"x": {"a": 1}}, plainly=False),
    Dirty(
        "folders of a folder are called Parquet",
        parquet(("2025.parquet/1.parquet", pa.table({"x": ["a"]})), ("2026.parquet/1.parquet", pa.table({"x": ["b"]}))),
        AB,
        {"x": {"a": 1, "b": 1}},
        plainly=False,
    ),
    Dirty(
        "a path holds quotes, spaces and signs",
        called('it\'s a "dir"; $1 {{7*7}} [1]/%s.parquet', pa.table({"x": ["a"]})),
        AB,
        {"x": {"a": 1}},
    ),
    Dirty("a file's name is a pattern that fits another file", beside_another, AB, {"x": {"a": 1}}),
)

ALL = (*STRUCTURE, *FILES)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_a_dirty_parquet_file_is_refused_by_its_structure_or_counted_to_the_last_record(
    kind: Dirty, tmp_path: Path
) -> None:
    check(kind, tmp_path)


def test_pages_that_cannot_be_read_stop_a_run_without_a_word_of_them(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught:
        run(Dirty("", spoiled(1), AB, {}), tmp_path)
    assert caught.value.code == "engine-failed"
    assert not [word for word in ("Jane", "Bob", str(tmp_path), "parquet") if word in str(caught.value)]
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
