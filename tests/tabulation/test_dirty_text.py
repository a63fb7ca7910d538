"""Text files as they come, their structure and their lines: each kind of dirt with what has to come of it."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tabulation.errors import MicrodataError
from tests.tabulation.dirty import Dirty, Refused, called, check, codes, rows, run

AB = rows(x=codes("a", "b"))
WHOLE = "{integer: 0..9, outside: nearest}"
HALVES = "{number: -5..100, step: 0.5, outside: nearest}"
QUOTED_BREAKS = "read: {quoted_newlines: yes}"

BIRTHS = """
margrave: 1
release: {name: dirty, title: Dirty}
microdata:
  mothers:
    key: mother
    from: births
    defaults: {outside: leave_out, missing: leave_out}
    columns: {age: {integer: 10..60, mixed: leave_out}}
  births:
    key: birth
    in: {mothers: mother}
    defaults: {outside: leave_out, missing: leave_out}
    columns: {sex: {codes: [b, g]}}
privacy: {protect: mothers, at_most: {births: 3}, neighbours: add-remove, budget: {epsilon: 1}}
tables: {ages: {count: mothers, by: [age]}}
"""


def nowhere(folder: Path) -> Path:
    return folder / "nothing.csv"


def pointing_nowhere(folder: Path) -> Path:
    (folder / "rows.csv").symlink_to(folder / "nothing.csv")
    return folder / "rows.csv"


STRUCTURE = (
    Dirty("there is no such file", nowhere, AB, Refused("no-file"), secrets=("nothing",)),
    Dirty("a link points at nothing", pointing_nowhere, AB, Refused("no-file"), secrets=("nothing",)),
    Dirty("a declared column is missing", "y,z\nJane,1\n", AB, Refused("column-missing", "x"), secrets=("Jane",)),
    Dirty("the key is missing", "x\na\n", rows("key: id", x=codes("a")), Refused("column-missing", "id")),
    Dirty("the file has no header", "a,Jane\nb,Bob\n", AB, Refused("column-missing", "x"), secrets=("Jane", "Bob")),
    Dirty("semicolons stand for commas", "x;y\na;Jane\n", AB, Refused("column-missing", "x"), secrets=("Jane",)),
    Dirty(
        "lines end in carriage returns alone", "y,x\rJane,a\r", AB, Refused("column-missing", "x"), secrets=("Jane",)
    ),
    Dirty("a column is named with a look-alike letter", "\u0445\na\n", AB, Refused("column-missing", "x")),
    Dirty("a used column stands twice", "x,y,x\na,Jane,b\n", AB, Refused("column-twice", "x"), secrets=("Jane",)),
    Dirty(
        "the key stands twice",
        "id,x,id\n1,a,Jane\n",
        rows("key: id", x=codes("a")),
        Refused("column-twice", "id"),
        secrets=("Jane",),
    ),
    Dirty(
        "a column of groups that are built from the rows stands twice",
        {"births": "birth,mother,age,sex,age\n1,Jane,20,b,30\n"},
        BIRTHS,
        Refused("column-twice", "age", "births"),
        secrets=("Jane",),
    ),
    Dirty("the file is empty", "", AB, Refused("bad-header")),
    Dirty("the file holds a byte order mark alone", b"\xef\xbb\xbf", AB, Refused("bad-header")),
    Dirty("the first line is blank", " \r\nx\na\n", AB, Refused("bad-header")),
    Dirty("the header is not in the encoding", b"x,\xe4\na,1\n", AB, Refused("bad-header")),
    Dirty("the file is UTF-16 with a mark", "x\na\n".encode("utf-16"), AB, Refused("bad-header")),
    Dirty("the file is big-endian UTF-16", b"\xfe\xff" + "x\na\n".encode("utf-16-be"), AB, Refused("bad-header")),
    Dirty("the file is UTF-16 without a mark", "x\na\n".encode("utf-16-le"), AB, Refused("bad-header")),
    Dirty("there are no lines at all", "x," + "Jane," * 300_000, AB, Refused("bad-header"), secrets=("Jane",)),
    Dirty("Parquet is called CSV", called("rows.csv", pa.table({"x": ["Jane"]})), AB, Refused("wrong-format")),
)

LINES = (
    Dirty("there is a header only", "x,y\n", AB, {"x": {}}),
    Dirty("there is a header without a line feed", "x", AB, {"x": {}}),
    Dirty("the header has a byte order mark", b"\xef\xbb\xbfx,y\na,1\nb,1\n", AB, {"x": {"a": 1, "b": 1}}),
    Dirty("a quoted header has a byte order mark", b'\xef\xbb\xbf"x","y"\n"a",1\n', AB, {"x": {"a": 1}}),
    Dirty("an unused column stands twice", "y,x,y\n1,a,2\n1,b,2\n", AB, {"x": {"a": 1, "b": 1}}),
    Dirty(
        "columns identify people",
        "name,passport,x,email\nJane Doe,AX-7781,a,jane@example.org\nBob Roe,AX-7782,b,bob@example.org\n",
        AB,
        {"x": {"a": 1, "b": 1}},
        secrets=("Jane", "Bob", "AX-778", "example.org", "passport", "email"),
    ),
    Dirty(
        "the header is repeated in the middle",
        b"x,y\na,1\nx,y\nb,1\r\nx,y\r\n\xef\xbb\xbfx,y\na,1\nX,y\n",
        AB,
        {"x": {"a": 2, "b": 1, "out": 1}},  # in capitals it is a record
        plainly=False,
    ),
    Dirty("lines end in CRLF, some are blank", "x,y\r\n\r\na,1\r\n\r\n\nb,2\r\n\r\n", AB, {"x": {"a": 1, "b": 1}}),
    Dirty("the last line has no line feed", "x,y\na,1\nb,2", AB, {"x": {"a": 1, "b": 1}}),
    Dirty("the last line has a carriage return alone", "y,x\n1,a\n2,b\r", AB, {"x": {"a": 1, "b": 1}}),
    Dirty("lines hold blanks or delimiters only", "x,y\n \n,\n , \n\t,\t\na,1\n", AB, {"x": {"gone": 4, "a": 1}}),
    Dirty(
        "lines have too few or too many fields",
        "x,y,z\na,1\nb\na,1,2,3\nb,1,2\na,1,2,\n",
        AB,
        {"x": {"gone": 4, "b": 1}},
    ),
    Dirty(
        "characters look like line ends to other readers",
        "x,y\na,1\x0b2\nb,1\x0c2\na,1\u20282\nb,1\u00852\na,1\x1c2\nb,1\r2\n",
        AB,
        {"x": {"a": 3, "b": 3}},
    ),
    Dirty(
        "a quote is astray",
        'x,y\na,5" pipe\nb,2\n"a,1\na",1\nb,"\n',
        AB,
        {"x": {"a": 1, "b": 2, "out": 2}},
    ),
    Dirty(
        "delimiters are quoted",
        'x,y\n"a,b",1\na,"1,2"\n"a",",,"\n',
        rows(x=codes("a", "a,b")),
        {"x": {"a,b": 1, "a": 2}},
    ),
    Dirty(
        "quotes are doubled",
        'x,y\n"a""b",1\n"""a""",1\n"",1\n"""",1\na,"say ""hi, you"""\n',
        rows(x=codes("a", 'a"b', '"a"', '"')),
        {"x": {'a"b': 1, '"a"': 1, "gone": 1, '"': 1, "a": 1}},
    ),
    Dirty(
        "a quote is left open over what looks like several lines",
        'x,y\nb,0\n"a,1\nb,2\na",3\nb,4\n',
        AB,
        {"x": {"b": 3, "out": 2}},
    ),
    Dirty(
        "line breaks are quoted, and the spec says so",
        'y,x\n"1\n2",a\n"3\r\n4",b\n"5\n\n\n6","a"\n7,"a\nb"\n',
        rows(QUOTED_BREAKS, x=codes("a", "b")),
        {"x": {"a": 2, "b": 1, "out": 1}},
    ),
    Dirty(
        "line breaks are quoted and the delimiter is not a comma",
        'y;x;n\n"1\n2";a;1,5\n3;;x\n',
        rows('read: {quoted_newlines: yes, delimiter: ";", decimal: ","}', x=codes("a"), n=HALVES),
        {"x": {"a": 1, "gone": 1}, "n": {"1.5": 1, "-": 1}},
    ),
    Dirty(
        "a cell is 5 MB long",
        f"y,x,n\n{'z' * 5_000_000},a,1\n1,{'a' * 5_000_000},{'9' * 5_000_000}\n2,b,2\n",
        rows(x=codes("a", "b"), n=WHOLE),
        {"x": {"a": 1, "out": 1, "b": 1}, "n": {"1": 1, "9": 1, "2": 1}},
        plainly=False,
    ),
    Dirty(
        "there are 500 columns",
        "".join(
            f"{first}{''.join(f',{word}{number}' for number in range(498))},{last}\n"
            for first, word, last in (("y", "c", "x"), ("1", "v", "a"), ("2", "v", "b"))
        ),
        AB,
        {"x": {"a": 1, "b": 1}},
    ),
)

ALL = (*STRUCTURE, *LINES)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_a_dirty_text_file_is_refused_by_its_structure_or_counted_to_the_last_record(
    kind: Dirty, tmp_path: Path
) -> None:
    check(kind, tmp_path)


def unreadable(name: str) -> Callable[[Path], Path]:
    """A file that is there and gives no byte: the first page of a process's memory."""

    def write(folder: Path) -> Path:
        (folder / name).symlink_to("/proc/self/mem")
        return folder / name

    return write


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux")
@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_a_file_that_cannot_be_read_is_refused_and_its_entity_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(MicrodataError) as caught:
        run(Dirty(name, unreadable(name), AB, {}), tmp_path)
    assert (caught.value.entity, "'rows'" in str(caught.value)) == ("rows", True)
    assert str(tmp_path) not in str(caught.value)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
