"""Ids as they come: one person spelled in several ways, groups that are not there, and rows that are nobody."""

from pathlib import Path

import pyarrow as pa
import pytest

from tests.tabulation.dirty import HOMES, Counted, Dirty, check, codes, rows

KEYED = rows("key: id", x=codes("a", "b"))
ONE_HOME: Counted = {"sizes": {"Two": 1}, "sexes": {"m": 1, "f": 1}, "kinds": {"H": 2}}
INFINITE, NO_NUMBER = float("inf"), float("nan")


def people(homes: pa.Array, lines: pa.Array, sexes: str) -> pa.Table:
    return pa.table({"home": homes, "line": lines, "sex": list(sexes)})


def houses(homes: pa.Array, kinds: str) -> pa.Table:
    return pa.table({"home": homes, "kind": list(kinds)})


KINDS = (
    Dirty(
        "an id is spelled 101, 101.0 and 101 with blanks",
        "id,x\n101,a\n101.0,a\n 101,a\n101\t,a\n102,b\n",
        KEYED,
        {"x": {"a": 1, "b": 1}},
    ),
    Dirty(
        "ids have leading zeros or other decimals",
        "id,x\n101,a\n0101,a\n101.00,a\n+101,a\n1e2,a\n",
        KEYED,
        {"x": {"a": 5}},
    ),
    Dirty(
        "ids differ in what looks blank",
        "id,x\n101,a\n\x0b101,a\n101\u00a0,a\n101\u200b,a\n\uff11\uff10\uff11,a\n",
        KEYED,
        {"x": {"a": 4}},
    ),
    Dirty("rows have no id", "id,x\n,a\n,a\n ,a\n.0,a\n1,b\n1,b\n", KEYED, {"x": {"a": 4, "b": 1}}),
    Dirty(
        "ids are missing words",
        "id,x\nNA,a\nNA,a\n-9,a\n-9,a\n1,b\n1,b\n",
        rows('key: id\n    read: {missing: ["", NA, "-9"]}', x=codes("a", "b")),
        {"x": {"a": 4, "b": 1}},
    ),
    Dirty("lines without an id are too short", "id,x\n1\n1\n1,a\n1,a\n", KEYED, {"x": {"gone": 2, "a": 1}}),
    Dirty(
        "ids are whole numbers at the ends of 64 bits",
        pa.table({"id": [2**63 - 1, 2**63 - 1, -(2**63), -(2**63), 0, None, None], "x": list("aaaaabb")}),
        KEYED,
        {"x": {"a": 3, "b": 2}},
    ),
    Dirty(
        "ids are whole numbers beyond 63 bits",
        pa.table({"id": pa.array([2**64 - 1, 2**64 - 1, 2**64 - 2, 1], pa.uint64()), "x": list("aaab")}),
        KEYED,
        {"x": {"a": 2, "b": 1}},
    ),
    Dirty(
        "ids are fractional numbers that are whole",
        pa.table({"id": [101.0, 101.0, 102.0, -0.0, 0.0], "x": list("aaabb")}),
        KEYED,
        {"x": {"a": 2, "b": 1}},
    ),
    Dirty(
        "ids are no numbers",
        pa.table({"id": [NO_NUMBER, NO_NUMBER, None, 1.0, 1.0], "x": list("aaabb")}),
        KEYED,
        {"x": {"a": 3, "b": 1}},
    ),
    Dirty(
        "rows with one id hold no numbers",  # what Parquet says of the least and the most knows of no such thing
        pa.table({"id": [1, 1, 2], "n": [NO_NUMBER, NO_NUMBER, 1.5]}),
        rows("key: id", n="{integer: 0..9, outside: nearest}"),
        {"n": {"-": 1, "2": 1}},
    ),
    Dirty(
        "rows with one id hold no numbers and infinite ones",
        pa.table({"id": [1, 1, 2, 2, 3], "n": [NO_NUMBER, NO_NUMBER, INFINITE, INFINITE, 1.5]}),
        rows("key: id", n="{integer: 0..9, outside: nearest}"),
        {"n": {"-": 1, "9": 1, "2": 1}},
    ),
    Dirty(
        "ids are fractions and huge",
        pa.table({"id": [101.5, 101500000.0, 1e300, 1e301, 1e-9, 2e-9, INFINITE, -INFINITE], "x": list("aaaaaaaa")}),
        KEYED,
        {"x": {"a": 8}},
    ),
    Dirty(
        "ids are decimals",
        pa.table({"id": pa.array([101, 101, 102], pa.decimal128(9, 2)), "x": list("aab")}),
        KEYED,
        {"x": {"a": 1, "b": 1}},
    ),
    Dirty(
        "households and persons spell one id differently",
        {
            "homes": "home,kind\n101,H\n101.0,H\n 101,H\n0101,F\n",
            "people": "home,line,sex\n101,1,m\n101.0, 1,m\n101 ,1.0,m\n101,01,f\n0101,1,f\n",
        },
        HOMES,
        {"sizes": {"Two": 1, "One": 1}, "sexes": {"m": 1, "f": 2}, "kinds": {"H": 2, "F": 1}},
    ),
    Dirty(
        "households are text and persons whole numbers",
        {
            "homes": "home,kind\n101.0,H\n 102,F\n0103,H\n",
            "people": people(pa.array([101, 102, 103, 101]), pa.array([1, 1, 1, 1]), "mmmm"),
        },
        HOMES,
        {"sizes": {"One": 2, "None": 1}, "sexes": {"m": 3}, "kinds": {"H": 1, "F": 1, "-": 1}},
    ),
    Dirty(
        "households are fractional numbers and persons text",
        {
            "homes": houses(pa.array([101.0, 101.0, NO_NUMBER]), "HHF"),
            "people": "home,line,sex\n101,1,m\n 101.0,2,f\n101,2.0,f\n",
        },
        HOMES,
        {**ONE_HOME, "sizes": {"Two": 1, "None": 1}},
    ),
    Dirty(
        "households are small whole numbers and persons large ones",
        {
            "homes": houses(pa.array([101, 101], pa.int16()), "HH"),
            "people": people(pa.array([101, 101, 101]), pa.array([1, 2, 2], pa.int8()), "mff"),
        },
        HOMES,
        ONE_HOME,
    ),
    Dirty(
        "households are whole numbers beyond 63 bits",
        {
            "homes": houses(pa.array([2**64 - 1, 2**64 - 1], pa.uint64()), "HH"),
            "people": people(pa.array([2**64 - 1] * 3, pa.uint64()), pa.array([1, 2, 2]), "mff"),
        },
        HOMES,
        ONE_HOME,
    ),
    Dirty(
        "a household beyond 63 bits is larger than the cap",
        {
            "homes": houses(pa.array([2**64 - 1], pa.uint64()), "H"),
            "people": people(pa.array([2**64 - 1] * 5, pa.uint64()), pa.array([1, 2, 3, 4, 5]), "mmmmm"),
        },
        HOMES.replace("{people: 9}", "{people: 2}"),
        {"sizes": {"More": 1}, "sexes": {"m": 2}, "kinds": {"H": 2}},
    ),
    Dirty(
        "households are decimals and persons text",
        {"homes": houses(pa.array([101], pa.decimal128(9, 2)), "H"), "people": "home,line,sex\n101,1,m\n101.0,2,f\n"},
        HOMES,
        ONE_HOME,
    ),
    Dirty(
        "households are of text in a dictionary and persons of plain text",
        {
            "homes": houses(pa.array(["101.0", "101"]).dictionary_encode(), "HH"),
            "people": people(pa.array([" 101", "101", "101"]), pa.array([1, 2, 2]), "mff"),
        },
        HOMES,
        ONE_HOME,
    ),
    Dirty(
        "groups are missing, empty or null, ids are missing or shared by groups",
        {
            "homes": "home,kind\na,H\nb,F\nd,F\n,H\n",
            "people": "home,line,sex\nz,1,m\n,1,m\n,1,m\na,,f\na,,f\na,1,m\nd,1,m\nd,1,m\n",
        },
        HOMES,
        {"sizes": {"More": 1, "None": 2, "One": 1}, "sexes": {"m": 5, "f": 2}, "kinds": {"-": 3, "H": 3, "F": 1}},
    ),
    Dirty(
        "the same in Parquet",
        {
            "homes": houses(pa.array([1, 2, 4, None]), "HFFH"),
            "people": people(
                pa.array([9, None, None, 1, 1, 1, 4, 4]), pa.array([1, 1, 1, None, None, 1, 1, 1]), "mmmffmmm"
            ),
        },
        HOMES,
        {"sizes": {"More": 1, "None": 2, "One": 1}, "sexes": {"m": 5, "f": 2}, "kinds": {"-": 3, "H": 3, "F": 1}},
    ),
    Dirty(
        "bytes of a group's id are no text",
        {"homes": b"home,kind\n\xff,H\na,F\n", "people": b"home,line,sex\n\xff,1,m\n\xff,1,m\na,1,f\na\xff,1,f\n"},
        HOMES,
        {"sizes": {"None": 1, "One": 1}, "sexes": {"m": 2, "f": 2}, "kinds": {"-": 3, "F": 1}},
    ),
    Dirty(
        "ids are formulas, scripts and templates",
        {
            "homes": "home,kind\n=cmd(),H\n'; DROP TABLE homes; --,F\n{{7*7}},F\n",
            "people": "home,line,sex\n=cmd(),%s,m\n=cmd(),$1,f\n=cmd(),$1,f\n'; DROP TABLE homes; --,<script>,f\n",
        },
        HOMES,
        {"sizes": {"Two": 1, "One": 1, "None": 1}, "sexes": {"m": 1, "f": 2}, "kinds": {"H": 2, "F": 1}},
    ),
    Dirty(
        "a file has a header only",
        {"homes": "home,kind\n", "people": "home,line,sex\na,1,m\n"},
        HOMES,
        {"sizes": {}, "sexes": {"m": 1}, "kinds": {"-": 1}},
    ),
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_rows_are_one_where_their_ids_are_and_only_there(kind: Dirty, tmp_path: Path) -> None:
    check(kind, tmp_path)
