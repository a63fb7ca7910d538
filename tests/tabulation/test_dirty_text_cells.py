"""The cells of text files as they come: each kind of dirt with what has to come of it."""

from pathlib import Path

import pytest

from tests.tabulation.dirty import AREA, Dirty, Refused, called, check, codes, rows

AB = rows(x=codes("a", "b"))
WHOLE = "{integer: 0..9, outside: nearest}"
HALVES = "{number: -5..100, step: 0.5, outside: nearest}"
FINE = "{number: 0..2, step: 0.01, outside: nearest}"
NINE = "{integer: 0..9, outside: nearest, not_applicable: -9}"
NINE_AND_A_HALF = "{number: 0..9, step: 0.5, outside: nearest, not_applicable: -9.5}"
SEMICOLONS = 'read: {delimiter: ";"}'
LATIN, WINDOWS = "read: {encoding: latin-1}", "read: {encoding: windows-1252}"

NO_NUMBERS = [
    "abc",
    "twelve",
    "1a",
    "a1",
    "0x1",
    "inf",
    "-inf",
    "Infinity",
    "NaN",
    "nan",
    "--1",
    "+",
    ".",
    "e5",
    "1e",
    "5%",
    "$5",
    "1/2",
    "1\t2",
    "1.2.3",
]
NO_DAYS = ["2026-1-2", "20260102", "02.01.2026", "2026-02-30", "2026-01-02T00:00:00", "0000-00-00"]


def lines(*wanted: str) -> str:
    return "".join(f"{line}\n" for line in wanted)


BYTES = (
    Dirty(
        "bytes of a code, a number and an id are no UTF-8",
        b"id,x,n\n1,a\xff,1\n2,\xe4,\xff2\n\xff,b,3\n\xff,b,3\n3,a,\xc3\n",
        rows("key: id", x=codes("a", "b"), n=WHOLE),
        {"x": {"gone": 2, "b": 2, "a": 1}, "n": {"1": 1, "-": 2, "3": 2}},
    ),
    Dirty(
        "UTF-8 is overlong, cut short, of a surrogate or beyond the last character",
        b"x,y\n\xc1\xa1,\n\xe4\xbd,\n\xed\xa0\x80,\n\xf4\x90\x80\x80,\n\xf0\x80\x81\xa1,\n"
        b"\xf4\x8f\xbf\xbf,\n\xc3\xa4,\n",
        rows(x=codes("a", "ä")),
        {"x": {"gone": 5, "out": 1, "ä": 1}},
    ),
    Dirty(
        "a Latin-1 file is read as Latin-1",
        b"x\n\xe4\n\xff\n\xc3\xa4\n",
        rows(LATIN, x=codes("ä")),
        {"x": {"ä": 1, "out": 2}},
    ),
    Dirty(
        "a Latin-1 file is read as UTF-8", b"x\n\xe4\n\xff\n\xc3\xa4\n", rows(x=codes("ä")), {"x": {"gone": 2, "ä": 1}}
    ),
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
        "white space around a cell is neither spaces nor tabs",
        "x,n\na\x0b,1\n\x0ca,1\x0b\na\r,1\r\x0c\n\r,\x0b\na,1\n",
        rows(x=codes("a"), n=WHOLE),
        {"x": {"gone": 1, "a": 4}, "n": {"1": 4, "-": 1}},
    ),
    Dirty(
        "area codes have lost or gained something",
        'p,y\n01,\n"01",\n1,\n01 ,\n 01,\n01.0,\nab,\nAB,\n,\n',
        rows(p=AREA),
        {"p": {"01": 2, "AB": 1}},
    ),
)

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
    Dirty(
        "some rows have decimal commas and points are declared",
        "n;m\n1.5;\n1,5;\n2;\n",
        rows(SEMICOLONS, n=HALVES),
        {"n": {"1.5": 1, "-": 1, "2": 1}},
    ),
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
    Dirty(
        "numbers have exponents",
        "n,m\n1e2,\n1E+2,\n10e-1,\n1.5e1,\n-1e9,\n",
        rows(n=HALVES),
        {"n": {"100": 2, "1": 1, "15": 1, "-5": 1}},
    ),
    Dirty(
        "exponents are huge",
        "n,m\n1e300,\n-1e300,\n1e-300,\n0e999,\n1e99999999999,\n",
        rows(n=FINE),
        {"n": {"-": 5}},
    ),
    Dirty(
        "a number with an exponent lies on the edge of a step",
        "n,m\n1.005e0,\n1005e-3,\n1.005,\n",
        rows(n=FINE),
        {"n": {"1": 2, "1.01": 1}},
    ),
    Dirty(
        "text stands where numbers are declared",
        lines("n,m", *(f"{word}," for word in NO_NUMBERS), "1,"),
        rows(n=HALVES),
        {"n": {"-": 20, "1": 1}},
    ),
    Dirty(
        "the not-applicable number has several spellings",
        "n,m\n-9,-9.5\n-9.0,-9.50\n-09,-09.5\n-9.,-9.500\n1,1\n",
        rows(n=NINE, m=NINE_AND_A_HALF),
        {"n": {"1": 1}, "m": {"1": 1}},
    ),
    Dirty("the not-applicable number has an exponent", "n,m\n-9e0,\n-90e-1,\n1,\n", rows(n=NINE), {"n": {"1": 1}}),
    Dirty(
        "days have other spellings",
        lines("d,y", "2026-01-02,", " 2026-01-02 ,", *(f"{word}," for word in NO_DAYS), "9999-12-31,", "0001-01-01,"),
        rows(d="{date: 2026-01-01..2026-01-03, outside: nearest}"),
        {"d": {"2026-01-02": 2, "-": 6, "2026-01-03": 1, "2026-01-01": 1}},
    ),
    Dirty(
        "several answers are too many, doubled, empty or unknown",
        "x,y\na;b;c,\n;;a,\na; b,\na;a,\na;q;b,\n,\nq,\n ; ,\nb;,\n",
        rows(x="{codes: [a, b, c], up_to: 2, separator: ;}"),
        {"x": {"a": 4, "b": 3, "-": 4}},
    ),
    Dirty(
        "of several answers one is wanted",
        "x,y\na;b,\nb,\n;a,\nq;a,\n",
        rows(x="{codes: [a, b], up_to: 1, separator: ;}"),
        {"x": {"a": 1, "b": 1, "-": 2}},
    ),
    Dirty(
        "of several columns one answer is wanted",
        "x1,x2\na,b\n,b\nq,a\n,\n",
        rows(x="{codes: [a, b], up_to: 1, columns: [x1, x2]}"),
        {"x": {"a": 2, "b": 1, "-": 1}},
    ),
)

SPEECH = (
    "=cmd()",
    "<script>alert(1)</script>",
    "{{7*7}}",
    "%s",
    "'; DROP TABLE rows; --",
    "$1",
    "\\",
    "${HOME}",
    "a|b",
)
LABELS = ", ".join(f'"{word}": "{word}"' for word in SPEECH[:6])
SPOKEN = "x,y\n" + "".join(f"{word},1\n" for word in SPEECH) + "=cmd(),1\n'; DROP TABLE,1\n"

CODE_IN_CELLS = (
    Dirty("cells hold formulas, scripts and templates", SPOKEN, AB, {"x": {"out": 11}}),
    Dirty(
        "a few codes and labels are formulas, scripts and templates",
        SPOKEN,
        rows(x=f'{{codes: {{{LABELS}}}, label: "=1+1", outside: leave_out, missing: leave_out}}'),
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
            x=codes("%s").replace("codes:", 'read_as: {"$1": "%s", "\'; DROP TABLE": "{{7*7}}"}, codes:'),
        ),
        {"x": {"%s": 2, "gone": 2}},
    ),
    Dirty(
        "a path holds quotes, spaces and signs",
        called('it\'s a "dir"; $1 {{7*7}} [1]/%s *.csv', b"x\na\n"),
        AB,
        {"x": {"a": 1}},
    ),
    Dirty(
        "the refused path says something",
        called("Jane's [1]/Bob's *.csv", b""),
        AB,
        Refused("bad-header"),
        secrets=("Jane", "Bob"),
    ),
)

ALL = (*BYTES, *VALUES, *CODE_IN_CELLS)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_a_dirty_cell_spoils_nothing_but_itself(kind: Dirty, tmp_path: Path) -> None:
    check(kind, tmp_path)
