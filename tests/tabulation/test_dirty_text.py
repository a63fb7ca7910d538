"""Text files as they come: each kind of dirt with what has to come of it, written by hand."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tabulation.errors import MicrodataError
from tests.tabulation.dirty import AREA, Dirty, Refused, called, check, codes, rows, run

AB = rows(x=codes("a", "b"))
WHOLE = "{integer: 0..9, outside: nearest}"
HALVES = "{number: -5..100, step: 0.5, outside: nearest}"
FINE = "{number: 0..2, step: 0.01, outside: nearest}"
SEMICOLONS = 'read: {delimiter: ";"}'
LATIN, WINDOWS = "read: {encoding: latin-1}", "read: {encoding: windows-1252}"
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
    Dirty("lines end in carriage returns alone", "y,x\rJane,a\r", AB, Refused("column-missing", "x"), secrets=("Jane",)),
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
    Dirty("delimiters are quoted", 'x,y\n"a,b",1\na,"1,2"\n"a",",,"\n', rows(x=codes("a", "a,b")), {"x": {"a,b": 1, "a": 2}}),
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
    Dirty("a cell is 5 MB long", f"y,x,n\n{'z' * 5_000_000},a,1\n1,{'a' * 5_000_000},{'9' * 5_000_000}\n2,b,2\n",
          rows(x=codes("a", "b"), n=WHOLE), {"x": {"a": 1, "out": 1, "b": 1}, "n": {"1": 1, "9": 1, "2": 1}}, plainly=False),
    Dirty(
        "there are 500 columns",
        "".join(f"{first}{''.join(f',{word}{number}' for number in range(498))},{last}\n"
                for first, word, last in (("y", "c", "x"), ("1", "v", "a"), ("2", "v", "b"))),
        AB,
        {"x": {"a": 1, "b": 1}},
    ),
)  # fmt: skip

BYTES = (
    Dirty(
        "bytes of a code, a number and an id are no UTF-8",
        b"id,x,n\n1,a\xff,1\n2,\xe4,\xff2\n\xff,b,3\n\xff,b,3\n3,a,\xc3\n",
        rows("key: id", x=codes("a", "b"), n=WHOLE),
        {"x": {"gone": 2, "b": 2, "a": 1}, "n": {"1": 1, "-": 2, "3": 2}},
    ),
    Dirty(
        "UTF-8 is overlong, cut short, of a surrogate or beyond the last character",
        b"x,y\n\xc1\xa1,\n\xe4\xbd,\n\xed\xa0\x80,\n\xf4\x90\x80\x80,\n\xf0\x80\x81\xa1,\n\xf4\x8f\xbf\xbf,\n\xc3\xa4,\n",
        rows(x=codes("a", "ä")),
        {"x": {"gone": 5, "out": 1, "ä": 1}},
    ),
    Dirty("a Latin-1 file is read as Latin-1", b"x\n\xe4\n\xff\n\xc3\xa4\n", rows(LATIN, x=codes("ä")), {"x": {"ä": 1, "out": 2}}),
    Dirty("a Latin-1 file is read as UTF-8", b"x\n\xe4\n\xff\n\xc3\xa4\n", rows(x=codes("ä")), {"x": {"gone": 2, "ä": 1}}),
    Dirty(
        "a byte is undefined in Windows-1252",
        b"x,n\n\x80,1\n\x81,1\n\x8d\x80,1\n\xe4,\x81\n",
        rows(WINDOWS, x=codes("€", "ä"), n=WHOLE),
        {"x": {"€": 1, "gone": 2, "ä": 1}, "n": {"1": 3, "-": 1}},
    ),
    Dirty(
        "the last byte of a letter is a blank elsewhere",
        "x,y\nvoilà,1\nÅ,2\n Å\t,1\n",
        rows(x=codes("voilà", "Å")),
        {"x": {"voilà": 1, "Å": 2}},
    ),
    Dirty(
        "letters and digits are look-alikes",
        "x,n\n\u0430,\uff11\n\uff41,1\u00a0\na\u00a0,\u200b1\na\u200b,\u0661\n\ufeffa,\u22121\ne\u0301,1\n\u00e9,1\n",
        rows(x=codes("a", "\u00e9"), n=WHOLE),
        {"x": {"out": 6, "\u00e9": 1}, "n": {"-": 5, "1": 2}},
    ),
    Dirty(
        "a cell holds zero bytes",
        b"y,x,n\n\0,a\0,1\n1,\0,1\0\n2,a,\0\n3,b,2\n",
        rows(x=codes("a", "b"), n=WHOLE),
        {"x": {"a": 1, "out": 2, "b": 1}, "n": {"1": 1, "-": 2, "2": 1}},
    ),
    Dirty("blanks around a cell are spaces and tabs", "x,y\n \ta\t ,1\na,2\n", AB, {"x": {"a": 2}}),
    Dirty(
        "blanks around a cell are neither spaces nor tabs",
        "x,n\na\x0b,1\n\x0ca,1\x0b\na\r,1\r\x0c\n\r,\x0b\na,1\n",
        rows(x=codes("a"), n=WHOLE),
        {"x": {"out": 4, "a": 1}, "n": {"1": 2, "-": 3}},
    ),
    Dirty(
        "area codes have lost or gained something",
        'p,y\n01,\n"01",\n1,\n01 ,\n 01,\n01.0,\nab,\nAB,\n,\n',
        rows(p=AREA),
        {"p": {"01": 2, "AB": 1}},
    ),
)  # fmt: skip

SPELLINGS = "x,n\n,\nNA,NA\nN/A,N/A\nnull,null\n.,.\n-,-\nna,na\na,1\n"

VALUES = (
    Dirty(
        "six spellings of missing are declared",
        SPELLINGS,
        rows('read: {missing: ["", NA, N/A, "null", ".", "-"]}', x=codes("a"), n=WHOLE),
        {"x": {"gone": 6, "out": 1, "a": 1}, "n": {"-": 7, "1": 1}},
    ),
    Dirty(
        "six spellings of missing are not declared",
        SPELLINGS,
        rows(x=codes("a"), n=WHOLE),
        {"x": {"gone": 1, "out": 6, "a": 1}, "n": {"-": 7, "1": 1}},
    ),
    Dirty(
        "some rows have decimal commas",
        "n;m\n1.5;1.5\n1,5;1,5\n2;2\n",
        rows('read: {delimiter: ";", decimal: ","}', n=HALVES, m=HALVES),
        {"n": {"1.5": 1, "-": 1, "2": 1}, "m": {"1.5": 1, "-": 1, "2": 1}},
    ),
    Dirty("some rows have decimal commas and points are declared", "n;m\n1.5;\n1,5;\n2;\n", rows(SEMICOLONS, n=HALVES), {"n": {"1.5": 1, "-": 1, "2": 1}}),
    Dirty(
        "thousands are separated",
        "n;m\n1,000;\n1 000;\n1'000;\n1_000;\n1\u00a0000;\n1.000;\n",
        rows(SEMICOLONS, n=HALVES),
        {"n": {"-": 5, "1": 1}},
    ),
    Dirty(
        "numbers have signs, zeros and marks to spare",
        f"n,m\n+7,\n007,\n7.,\n.5,\n+.5,\n-0,\n-0.0,\n{'0' * 40}3,\n3.{'0' * 40},\n",
        rows(n=HALVES),
        {"n": {"7": 3, "0.5": 2, "0": 2, "3": 2}},
    ),
    Dirty(
        "numbers have forty digits",
        f"n,m\n{'9' * 40},\n-{'9' * 40},\n2.25{'0' * 40}1,\n2.24{'9' * 40},\n-2.25,\n100.{'0' * 40}1,\n",
        rows(n=HALVES),
        {"n": {"100": 2, "-5": 1, "2.5": 1, "2": 1, "-2.5": 1}},
    ),
    Dirty("numbers have exponents", "n,m\n1e2,\n1E+2,\n10e-1,\n1.5e1,\n-1e9,\n", rows(n=HALVES), {"n": {"100": 2, "1": 1, "15": 1, "-5": 1}}),
    Dirty(
        "exponents are huge",
        "n,m\n1e300,\n-1e300,\n1e-300,\n0e999,\n1e99999999999,\n",
        rows(n=FINE),
        {"n": {"2": 2, "0": 3}},
    ),
    Dirty("a number with an exponent lies on the edge of a step", "n,m\n1.005e0,\n1005e-3,\n1.005,\n", rows(n=FINE), {"n": {"1.01": 3}}),
    Dirty(
        "text stands where numbers are declared",
        "n,m\nabc,\ntwelve,\n1a,\na1,\n0x1,\ninf,\n-inf,\nInfinity,\nNaN,\nnan,\n--1,\n+,\n.,\ne5,\n1e,\n5%,\n$5,\n1/2,\n1 2,\n1.2.3,\n1,\n",
        rows(n=HALVES),
        {"n": {"-": 20, "1": 1}},
    ),
    Dirty(
        "the not-applicable number has several spellings",
        "n,m\n-9,-9.5\n-9.0,-9.50\n-09,-09.5\n-9.,-9.500\n1,1\n",
        rows(n="{integer: 0..9, outside: nearest, not_applicable: -9}", m="{number: 0..9, step: 0.5, outside: nearest, not_applicable: -9.5}"),
        {"n": {"1": 1}, "m": {"1": 1}},
    ),
    Dirty("the not-applicable number has an exponent", "n,m\n-9e0,\n-90e-1,\n1,\n", rows(n="{integer: 0..9, outside: nearest, not_applicable: -9}"), {"n": {"1": 1}}),
    Dirty(
        "days have other spellings",
        "d,y\n2026-01-02,\n 2026-01-02 ,\n2026-1-2,\n20260102,\n02.01.2026,\n2026-02-30,\n2026-01-02T00:00:00,\n0000-00-00,\n9999-12-31,\n0001-01-01,\n",
        rows(d="{date: 2026-01-01..2026-01-03, outside: nearest}"),
        {"d": {"2026-01-02": 2, "-": 6, "2026-01-03": 1, "2026-01-01": 1}},
    ),
    Dirty(
        "several answers are too many, doubled, empty or unknown",
        "x,y\na;b;c,\n;;a,\na; b,\na;a,\na;q;b,\n,\nq,\n ; ,\nb;,\n",
        rows(x="{codes: [a, b, c], up_to: 2, separator: ;}"),
        {"x": {"a": 4, "b": 3, "-": 4}},
    ),
    Dirty("of several answers one is wanted", "x,y\na;b,\nb,\n;a,\nq;a,\n", rows(x="{codes: [a, b], up_to: 1, separator: ;}"), {"x": {"a": 1, "b": 1, "-": 2}}),
    Dirty(
        "of several columns one answer is wanted",
        "x1,x2\na,b\n,b\nq,a\n,\n",
        rows(x="{codes: [a, b], up_to: 1, columns: [x1, x2]}"),
        {"x": {"a": 2, "b": 1, "-": 1}},
    ),
)  # fmt: skip

SPEECH = ("=cmd()", "<script>alert(1)</script>", "{{7*7}}", "%s", "'; DROP TABLE rows; --", "$1", "\\", "${HOME}", "a|b")
LABELS = ", ".join(f'"{word}": "{word}"' for word in SPEECH[:6])
SPOKEN = "x,y\n" + "".join(f"{word},1\n" for word in SPEECH) + "=cmd(),1\n'; DROP TABLE,1\n"

CODE_IN_CELLS = (
    Dirty("cells hold formulas, scripts and templates", SPOKEN, AB, {"x": {"out": 11}}),
    Dirty(
        "a few codes and labels are formulas, scripts and templates",
        SPOKEN,
        rows(x=f"{{codes: {{{LABELS}}}, label: \"=1+1\", outside: leave_out, missing: leave_out}}"),
        {"x": {"=cmd()": 2, **dict.fromkeys(SPEECH[1:6], 1), "-": 4}},
    ),
    Dirty(
        "many codes are formulas, scripts and templates",
        SPOKEN,
        rows(x=codes(*SPEECH)),
        {"x": {"=cmd()": 2, **dict.fromkeys(SPEECH[1:], 1), "out": 1}},
    ),
    Dirty(
        "spellings and missing words are templates",
        "x,y\n$1,1\n{{7*7}},1\n'; DROP TABLE,1\n%s,1\n",
        rows(
            'read: {missing: ["", "{{7*7}}"]}',
            x=codes("%s").replace("codes:", "read_as: {\"$1\": \"%s\", \"'; DROP TABLE\": \"{{7*7}}\"}, codes:"),
        ),
        {"x": {"%s": 2, "gone": 2}},
    ),
    Dirty("a path holds quotes, spaces and signs", called("it's a \"dir\"; $1 {{7*7}} [1]/%s *.csv", b"x\na\n"), AB, {"x": {"a": 1}}),
    Dirty("the refused path says something", called("Jane's [1]/Bob's *.csv", b""), AB, Refused("bad-header"), secrets=("Jane", "Bob")),
)  # fmt: skip

ALL = (*STRUCTURE, *LINES, *BYTES, *VALUES, *CODE_IN_CELLS)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_a_dirty_text_file_is_refused_by_its_structure_or_counted_to_the_last_record(kind: Dirty, tmp_path: Path) -> None:
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
