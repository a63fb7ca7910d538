"""The cells of Parquet files as they come: each kind of dirt with what has to come of it."""

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tests.tabulation.dirty import AREA, PLACES, Dirty, check, codes, not_utf8, parquet, rows

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
NEXT_DAY = NEW_YEAR + 86400


def moments(kind: pa.DataType, *numbers: int | None) -> pa.Table:
    return pa.table({"x": pa.array(numbers, pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)})


TEXTS = (
    Dirty(
        "cells are null, empty or blank",
        pa.table({"x": ["a", None, "", " ", "NA", " b\t"]}),
        AB,
        {"x": {"a": 1, "b": 1, "gone": 3, "out": 1}},
    ),
    Dirty(
        "texts are in a dictionary",
        pa.table({"x": pa.array(["a", "b", None, "a", "q"]).dictionary_encode()}),
        AB,
        {"x": {"a": 2, "b": 1, "gone": 1, "out": 1}},
    ),
    Dirty(
        "texts are large",
        pa.table({"x": pa.array(["a", None, "q"], pa.large_string())}),
        AB,
        {"x": {"a": 1, "gone": 1, "out": 1}},
    ),
    Dirty(
        "texts are views",
        pa.table({"x": pa.array(["a", None, "q"], pa.string_view())}),
        AB,
        {"x": {"a": 1, "gone": 1, "out": 1}},
    ),
    Dirty(
        "a column has no values and no type",
        pa.table({"x": pa.nulls(3), "n": pa.nulls(3)}),
        rows(x=codes("a"), n=WHOLE),
        {"x": {"gone": 3}, "n": {"-": 3}},
    ),
    Dirty(
        "texts hold zero bytes, line breaks and look-alikes",
        pa.table({"x": ["a\0", "\0", "a\n", "\u0430", "a\u00a0", "a"]}),
        AB,
        {"x": {"out": 4, "a": 2}},
    ),
    Dirty(
        "texts of a code, a number and an id are no UTF-8",
        pa.table(
            {
                "id": not_utf8(b"\xff", b"\xff", b"1", b"1"),
                "x": not_utf8(b"a", b"b\xe4", None, None),
                "n": not_utf8(b"1", b"\xff1", b"2", b"2"),
            }
        ),
        rows("key: id", x=codes("a", "b"), n=WHOLE),
        {"x": {"a": 1, "gone": 2}, "n": {"1": 1, "-": 1, "2": 1}},
        plainly=False,
    ),
    Dirty(
        "large texts are no UTF-8",
        pa.table({"x": not_utf8(b"a", b"\xff", None, kind=pa.large_string())}),
        AB,
        {"x": {"a": 1, "gone": 2}},
        plainly=False,
    ),
    Dirty(
        "texts in a dictionary are no UTF-8",
        pa.table({"x": pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, None], pa.int8()), not_utf8(b"a", b"\xff"))}),
        AB,
        {"x": {"a": 1, "gone": 3}},
        plainly=False,
    ),
    Dirty(
        "texts of a partitioned folder are no UTF-8",
        parquet(
            ("p=01/1.parquet", pa.table({"x": not_utf8(b"a", b"\xff"), "d": pa.array([1, 2], pa.decimal128(4, 1))})),
            ("p=1/1.parquet", pa.table({"x": ["b"], "d": pa.array([3], pa.decimal128(4, 1))})),
        ),
        rows(x=codes("a", "b"), p=codes("1", "01"), d=WHOLE),
        {"x": {"a": 1, "gone": 1, "b": 1}, "p": {"01": 2, "1": 1}, "d": {"1": 1, "2": 1, "3": 1}},
        plainly=False,
    ),
    Dirty(
        "texts of an unused column are no UTF-8",
        pa.table({"name": not_utf8(b"Jane\xff", b"\xff"), "x": ["a", "b"]}),
        AB,
        {"x": {"a": 1, "b": 1}},
        plainly=False,
    ),
    Dirty(
        "areas are text, some with lost zeros",
        pa.table({"p": ["01", "1", "01 ", "AB", None, "1.0"]}),
        rows(p=AREA),
        {"p": {"01": 1, "AB": 1}},
    ),
    Dirty(
        "areas are plain numbers stored as such",
        pa.table({"p": [1.0, 2.0, 1.5, NO_NUMBER, None, 1e300]}),
        rows(p=AREA).replace(PLACES, PLAIN_AREAS),
        {"p": {"1": 1, "2": 1}},
    ),
    Dirty(
        "answers between separators hold a private character",
        pa.table({"x": ["a\ue001b", "a;b", "\ue000a"]}),
        rows(x="{codes: [a, b], up_to: 2, separator: ;}"),
        {"x": {"a": 1, "b": 1, "-": 2}},
    ),
    Dirty(
        "answers stand in whole numbers and in text",
        pa.table({"x1": [1, 2], "x2": ["2", None]}),
        rows(x=SEVERAL),
        {"x": {"1": 1, "2": 2}},
    ),
    Dirty(
        "answers stand in whole numbers and in nothing",
        pa.table({"x1": [1, 2], "x2": pa.nulls(2)}),
        rows(x=SEVERAL),
        {"x": {"1": 1, "2": 1}},
    ),
    Dirty(
        "answers stand in whole and in fractional numbers",
        pa.table({"x1": [1, 2], "x2": [2.0, None]}),
        rows(x=SEVERAL),
        {"x": {"1": 1, "2": 2}},
    ),
)

NUMBERS = (
    Dirty("a few codes are fractional numbers", FLOATS, rows(x=FEW), OF_FLOATS),
    Dirty("many codes are fractional numbers", FLOATS, rows(x=MANY), OF_FLOATS),
    Dirty(
        "numbers are infinite, huge or no numbers",
        FLOATS,
        rows(x=TENTHS),
        {"x": {"1": 1, "1.5": 1, "-": 2, "9": 2, "0": 2, "2": 1}},
    ),
    Dirty(
        "a number is none, and none is null or infinite",
        pa.table({"x": [NO_NUMBER, 1.0, 2.0]}),
        rows(x=TENTHS),
        {"x": {"-": 1, "1": 1, "2": 1}},
    ),
    Dirty(
        "a code is no number, and none is null or infinite",
        pa.table({"x": [NO_NUMBER, 1.0, 2.0], "y": [NO_NUMBER, 1.0, 2.0]}),
        rows(x=FEW, y=MANY),
        {"x": {"gone": 1, "1": 1, "02": 1}, "y": {"gone": 1, "1": 1, "02": 1}},
    ),
    Dirty(
        "numbers are halves and narrow",
        pa.table({"x": pa.array([1.0, 2.5, None], pa.float16()), "y": pa.array([0.5, 0.25, 1e30], pa.float32())}),
        rows(x=WHOLE, y=WHOLE),
        {"x": {"1": 1, "3": 1, "-": 1}, "y": {"1": 1, "0": 1, "9": 1}},
    ),
    Dirty(
        "whole numbers are at the ends of 64 bits",
        pa.table({"x": [2**63 - 1, -(2**63), 1, None], "y": [2**63 - 1, -(2**63), 1, None]}),
        rows(x=WHOLE, y=FEW),
        {"x": {"9": 1, "0": 1, "1": 1, "-": 1}, "y": {"out": 2, "1": 1, "gone": 1}},
    ),
    Dirty(
        "whole numbers are beyond 63 bits",
        pa.table(
            {
                "x": pa.array([2**64 - 1, 2**63, 1, None], pa.uint64()),
                "y": pa.array([2**64 - 1, 2**63, 1, None], pa.uint64()),
            }
        ),
        rows(x=WHOLE, y=FEW),
        {"x": {"9": 2, "1": 1, "-": 1}, "y": {"out": 2, "1": 1, "gone": 1}},
    ),
    Dirty(
        "numbers are decimals",
        pa.table(
            {
                "x": pa.array([10, 15, 19, None, 9990], pa.decimal128(9, 0)).cast(pa.decimal128(12, 3)),
                "y": pa.array([1, 2, 3, None, 4], pa.decimal128(38, 2)),
            }
        ),
        rows(x="{number: 0..100, step: 1, outside: nearest}", y=WHOLE),
        {"x": {"10": 1, "15": 1, "19": 1, "-": 1, "100": 1}, "y": {"1": 1, "2": 1, "3": 1, "-": 1, "4": 1}},
    ),
    Dirty(
        "codes are decimals that are whole",
        pa.table({"x": pa.array([1, 2, None, 3], pa.decimal128(6, 2))}),
        rows(x=FEW),
        {"x": {"1": 1, "02": 1, "gone": 1, "out": 1}},
    ),
    Dirty(
        "numbers are text of many kinds",
        pa.table({"x": ["1", " 2 ", "\uff11", "1,5", "1e0", "9" * 40, "NaN", None]}),
        rows(x=WHOLE),
        {"x": {"1": 2, "2": 1, "-": 4, "9": 1}},
    ),
    Dirty(
        "codes are true and false, respelled",
        pa.table({"x": [True, False, None, True]}),
        rows(x=codes("1", "2").replace("codes:", 'read_as: {"true": 1, "false": 2}, codes:')),
        {"x": {"1": 2, "2": 1, "gone": 1}},
    ),
    Dirty(
        "codes are true and false",
        pa.table({"x": [True, False, None]}),
        rows(x=codes("true", "false")),
        {"x": {"true": 1, "false": 1, "gone": 1}},
    ),
    Dirty(
        "whole numbers are respelled and codes have leading zeros",
        pa.table({"x": [1, 2, 9, 5]}),
        rows(x=codes("01", "02").replace("codes:", 'read_as: {"9": "02"}, codes:')),
        {"x": {"01": 1, "02": 2, "out": 1}},
    ),
    Dirty(
        "fractional numbers are respelled",
        pa.table({"x": [1.5, -1.0, 1.0, NO_NUMBER]}),
        rows(x=TENTHS.replace("number:", 'read_as: {"-1": "2"}, number:')),
        {"x": {"1.5": 1, "2": 1, "1": 1, "-": 1}},
    ),
    Dirty(
        "missing and not applicable are numbers",
        pa.table({"x": [-9, -8, 1, None], "y": [-9.0, -8.0, 1.0, None]}),
        rows(
            'read: {missing: ["", "-9"]}',
            x=WHOLE.replace("integer:", "not_applicable: -8, integer:"),
            y=FEW.replace("codes:", "not_applicable: -8, codes:"),
        ),
        {"x": {"1": 1, "-": 2}, "y": {"1": 1, "gone": 2}},
    ),
)

MOMENTS = (
    Dirty(
        "days are far away",
        pa.table({"x": [date(2026, 1, 2), date(9999, 12, 31), date(1, 1, 1), None]}),
        DAYS,
        {"x": {"2026-01-02": 1, "2026-01-03": 1, "2026-01-01": 1, "-": 1}},
    ),
    Dirty(
        "moments stand for days",
        moments(pa.timestamp("us"), NEW_YEAR * 10**6, NEXT_DAY * 10**6 - 1, NEXT_DAY * 10**6, -1, None),
        DAYS,
        {"x": {"2026-01-01": 3, "2026-01-02": 1, "-": 1}},
    ),
    Dirty(
        "moments are in milliseconds",
        moments(pa.timestamp("ms"), NEW_YEAR * 10**3, NEXT_DAY * 10**3 - 1),
        DAYS,
        {"x": {"2026-01-01": 2}},
    ),
    Dirty(
        "moments are in nanoseconds",
        moments(pa.timestamp("ns"), NEW_YEAR * 10**9, NEXT_DAY * 10**9 - 1),
        DAYS,
        {"x": {"2026-01-01": 2}},
    ),
    Dirty(
        "moments know that they are in UTC",
        pa.table({"x": [datetime(2026, 1, 1, 23, 59, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)]}),
        DAYS,
        {"x": {"2026-01-01": 1, "2026-01-02": 1}},
    ),
    Dirty(
        "moments in milliseconds lie beyond every calendar",
        moments(pa.timestamp("ms"), NEW_YEAR * 10**3, 2**63 - 1, -(2**63) + 1),
        DAYS,
        {"x": {"2026-01-01": 1, "-": 2}},
        plainly=False,
    ),
    Dirty(
        "moments in microseconds lie beyond every calendar",
        moments(pa.timestamp("us"), NEW_YEAR * 10**6, 2**63 - 1, -(2**63) + 1),
        DAYS,
        {"x": {"2026-01-01": 1, "-": 2}},
        plainly=False,
    ),
)

ALL = (*TEXTS, *NUMBERS, *MOMENTS)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_a_dirty_cell_spoils_nothing_but_itself(kind: Dirty, tmp_path: Path) -> None:
    check(kind, tmp_path)
