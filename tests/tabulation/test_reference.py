"""The reference itself, pinned by examples small enough to count by hand.

The key is 32 zero bytes. Whose SHA-256 is smaller was found with `sha256sum`; the digests stand in the tests.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from release_specs.load import load_text
from tests.tabulation.reference import count_plainly
from tests.tabulation.reference_values import digest, split_line

KEY = bytes(32)
NOT_STATED_OF_2 = (2,)

ROWS = """
margrave: 1
release: {name: small, title: Small, edition: 2026}
microdata:
  rows:
    READ
    defaults: {outside: leave_out, missing: leave_out}
    columns:
      COLUMNS
REST
privacy: {protect: rows, neighbours: NEIGHBOURS, budget: {epsilon: 1}}
tables:
  TABLES
"""

HOMES = """
margrave: 1
release: {name: small, title: Small}
microdata:
  homes:
    key: home
    defaults: {outside: leave_out, missing: leave_out}
    columns:
      kind:  {codes: [H, F], missing: {count_as: F}}
      rooms: {integer: 1..9, applies_to: {size: [Two, More]}}
  people:
    key: [home, line]
    in: {homes: home}
    defaults: {outside: leave_out, missing: leave_out}
    columns:
      sex: {codes: [m, f]}
      age: {integer: 0..99}
derive:
  homes:
    size:     {number_of: people, into: {None: 0, One: 1, Two: 2, More: 3..}}
    children: {any: people, where: {age: ..17}}
    head_sex: {value_of: sex, where: {age: 60..}}
universes:
  together: {of: people, where: {sex: m}}
privacy: {protect: homes, at_most: {people: 2}, neighbours: add-remove, budget: {epsilon: 1}}
tables:
  homes_by_size:     {count: homes, by: [size]}
  homes_by_children: {count: homes, by: [children]}
  homes_by_head:     {count: homes, by: [head_sex]}
  homes_by_rooms:    {count: homes, by: [rooms]}
  sex:               {count: people, by: [sex]}
  one_of_each:       {count: people, by: [sex], at_most: 1}
  ages:              {count: people, by: [age]}
  kind:              {count: together, by: [kind]}
  people_by_size:    {count: together, by: [size]}
"""

COUPLES = """
margrave: 1
release: {name: small, title: Small}
microdata:
  mothers:
    key: mother
    from: births
    defaults: {outside: leave_out, missing: leave_out}
    columns:
      place: {area: places, mixed: leave_out}
      age:   {integer: 10..60, outside: nearest, mixed: {count_as: 10}}
  births:
    key: birth
    in: {mothers: mother}
    defaults: {outside: leave_out, missing: leave_out}
    columns: {sex: {codes: [b, g]}, age: {integer: 10..60}}
geography: {places: {levels: [land, place], areas: {A: {}, B: {}}}}
recodes: {age_group: {of: age, into: {Young: ..29, Old: 30..}}}
privacy: {protect: mothers, at_most: {births: 3}, neighbours: add-remove, budget: {epsilon: 1}}
tables:
  mothers_by_place: {count: mothers, at: all}
  mothers_by_age:   {count: mothers, by: [age_group], at: all}
"""


def counted(folder: Path, text: str, *, edition: str | None = None, **files: str | bytes | Path) -> dict[str, Any]:
    """The counts of each tally; where there is no geography, by the cell alone."""
    for name, content in files.items():
        if isinstance(content, str | bytes):
            path = folder / f"{name}.csv"
            path.write_bytes(content.encode() if isinstance(content, str) else content)
            files[name] = path
    loaded = load_text(text, file="small.yaml", folder=folder)
    found = count_plainly(loaded, files, key=KEY, edition=edition)
    return {
        name: {cell if area is None else (area, *cell): n for (area, cell), n in found[name].items()} for name in found
    }


def rows_spec(*columns: str, tables: str, read: str = "", rest: str = "", neighbours: str = "add-remove") -> str:
    text = ROWS.replace("READ", read).replace("COLUMNS", "\n      ".join(columns)).replace("REST", rest)
    return text.replace("NEIGHBOURS", neighbours).replace("TABLES", tables)


def by_x(folder: Path, column: str, content: str | bytes | Path, read: str = "") -> dict[tuple[int, ...], int]:
    """How many rows have each place of a column x."""
    return counted(folder, rows_spec(column, tables="t: {count: rows, by: [x]}", read=read), rows=content)["t.count"]


def stored(folder: Path, kind: pa.DataType, values: list[Any]) -> Path:
    pq.write_table(pa.table({"x": pa.array(values, kind)}), folder / "rows.parquet")
    return folder / "rows.parquet"


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("a,b,", ["a", "b", ""]),
        ('"a,b",c', ["a,b", "c"]),
        ('"a""b",c', ['a"b', "c"]),
        ('"",x', ["", "x"]),
        ('a"b,"c', ["ab,c"]),
        ('""""', ['"']),
        ('a"b,c', ['a"b', "c"]),
        ('"a,b', ['"a', "b"]),
        ('"a,b",c"', ['"a', 'b"', 'c"']),
    ],
)
def test_quotes_bind_a_delimiter_only_where_their_number_is_even(line: str, fields: list[str]) -> None:
    assert split_line(line, ",") == fields


def test_what_is_hashed_is_the_key_and_each_text_with_its_length() -> None:
    assert digest(KEY, []) == "60e05bd1b195af2f94112fa7197a5c88289058840ce7c6df9693756bc6250f55"
    assert digest(KEY, ["h", None]) == "352e5a8c29081ad1c34a0064f1cc4c149b0a47bfd511e843ba37bce50f727e85"
    assert digest(KEY, [None, "nÃ¤"]) == "84a79bef5f721a5d07eccaec87f4655fa97859d7be471d3a68acd1974d48ddf0"


def test_blank_lines_and_repeated_headers_are_no_records(tmp_path: Path) -> None:
    assert by_x(tmp_path, "x: {codes: [a, b]}", "x,y\r\na,1\r\n\r\nx,y\r\n\nb,2\na,3") == {(0,): 2, (1,): 1}


def test_a_line_with_another_number_of_fields_is_one_record_without_values(tmp_path: Path) -> None:
    assert by_x(tmp_path, "x: {codes: [a, b]}", "x,y\na,1,1\nb\na,1\n") == {(0,): 1, NOT_STATED_OF_2: 2}


def test_bytes_that_are_not_valid_in_the_encoding_are_a_missing_value(tmp_path: Path) -> None:
    content = b"x,y\n\xe4,1\n\xc3\xa4,1\na,\xff\n"
    assert by_x(tmp_path, "x: {codes: [a, ä]}", content) == {NOT_STATED_OF_2: 1, (1,): 1, (0,): 1}
    latin = "read: {encoding: latin-1}"
    assert by_x(tmp_path, "x: {codes: [a, ä]}", content, latin) == {(1,): 1, NOT_STATED_OF_2: 1, (0,): 1}


def test_values_are_missing_where_nothing_is_written_or_a_spelling_says_so(tmp_path: Path) -> None:
    column = "x: {codes: [a, b], read_as: {B: b, none: NA}, missing: {count_as: a}}"
    content = "x,y\n,1\n \t,1\nNA,1\nnone,1\n B\t,1\nb ,1\nc,1\n"
    read = 'read: {missing: ["", NA]}'
    assert by_x(tmp_path, column, content, read) == {(0,): 4, (1,): 2, NOT_STATED_OF_2: 1}


def test_numbers_are_digits_with_a_sign_a_mark_and_an_exponent(tmp_path: Path) -> None:
    column = "x: {number: 0..3, step: 0.5}"
    content = "x\n1,5\n+1,5\n15e-1\n,5\n1,\n2,5E0\n1.5\n1 5\n--1\n,\ne5\n0x1\n1e999999999\n"
    read = 'read: {delimiter: ";", decimal: ","}'
    assert by_x(tmp_path, column, content, read) == {(3,): 3, (1,): 1, (2,): 1, (5,): 1, (7,): 7}


def test_a_not_applicable_value_takes_the_row_out_and_numbers_are_compared_as_numbers(tmp_path: Path) -> None:
    assert by_x(tmp_path, "x: {integer: 0..2, not_applicable: [-9, N]}", "x\n-9\n-9.0\nN\n-8\n1\n") == {
        (3,): 1,
        (1,): 1,
    }


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("nearest", {(0,): 2, (1,): 1, (2,): 2}),
        ("leave_out", {(0,): 1, (1,): 1, (2,): 1, (3,): 2}),
        ("{count_as: 2}", {(0,): 1, (1,): 2 + 1, (2,): 1}),
    ],
)
def test_values_outside_the_range_follow_their_rule_before_rounding(
    rule: str, expected: dict[tuple[int, ...], int], tmp_path: Path
) -> None:
    column = f"x: {{integer: 1..3, outside: {rule}}}"
    assert by_x(tmp_path, column, "x\n0.9\n1\n2\n3\n3.1\n") == expected


def test_halves_are_rounded_away_from_zero(tmp_path: Path) -> None:
    column = "x: {number: -2..2, step: 1}"  # places: -2 is 0, 0 is 2, 2 is 4
    content = "x\n0.5\n-0.5\n1.5\n-1.5\n0.49\n-0.49\n2\n2.4\n"
    assert by_x(tmp_path, column, content) == {(3,): 1, (1,): 1, (4,): 2, (0,): 1, (2,): 2, (5,): 1}


def test_text_is_rounded_exactly_and_floats_as_floats(tmp_path: Path) -> None:
    column = "x: {number: 0..2, step: 0.01, outside: nearest}"
    assert by_x(tmp_path, column, "x\n1.005\n") == {(101,): 1}
    values = [1.005, float("nan"), float("inf"), -float("inf"), 1.0, None, 0.375]
    parquet = stored(tmp_path, pa.float64(), values)  # as a float 1.005 * 100 is 100.49999999999999
    assert by_x(tmp_path, column, parquet) == {(100,): 2, (201,): 2, (200,): 1, (0,): 1, (38,): 1}


def test_days_have_one_spelling_and_a_nearest_end(tmp_path: Path) -> None:
    column = "x: {date: 2026-01-01..2026-01-03, outside: nearest}"
    content = "x\n2026-01-02\n2025-12-31\n2027-01-01\n2026-02-30\n20260102\n2026-1-2\n"
    assert by_x(tmp_path, column, content) == {(1,): 1, (0,): 1, (2,): 1, (3,): 3}


def test_stored_numbers_are_compared_with_codes_by_value(tmp_path: Path) -> None:
    column = "x: {codes: [01, 02], not_applicable: 09}"
    assert by_x(tmp_path, column, stored(tmp_path, pa.int64(), [1, 2, 3, 9, None])) == {(0,): 1, (1,): 1, (2,): 2}
    assert by_x(tmp_path, column, stored(tmp_path, pa.float64(), [1.0, 1.5])) == {(0,): 1, (2,): 1}
    assert by_x(tmp_path, column, "x\n1\n01\n2.0\n") == {(0,): 1, (2,): 2}
    assert by_x(tmp_path, "x: {codes: [true, false]}", stored(tmp_path, pa.bool_(), [True, False])) == {
        (0,): 1,
        (1,): 1,
    }


def test_a_folder_of_parquet_files_is_one_file(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    for number in (1, 2):
        pq.write_table(pa.table({"y": [0], "x": [number]}), tmp_path / "rows" / f"{number}.parquet")
    assert by_x(tmp_path, "x: {integer: 0..2}", tmp_path / "rows") == {(1,): 1, (2,): 1}


def test_applies_to_decides_whatever_is_written(tmp_path: Path) -> None:
    columns = ("age: {integer: 0..99}", "x: {codes: [a, b], applies_to: {age: 16..}, not_applicable: N}")
    text = rows_spec(
        *columns, tables="t: {count: adults, by: [x]}", rest="universes: {adults: {of: rows, where: {age: 16..}}}"
    )
    content = "age,x\n15,a\n16,a\n16,N\n16,\n,b\n15.5,b\n"  # 15.5 is 16
    assert counted(tmp_path, text, rows=content)["t.count"] == {(0,): 1, NOT_STATED_OF_2: 2, (1,): 1}


def test_a_condition_and_its_not_are_false_without_a_value(tmp_path: Path) -> None:
    columns = ("a: {codes: [1, 2], not_applicable: 9}", "x: {codes: [p, q, r], up_to: 2, separator: ;}")
    tables = "a: {proportion: {a: 1}, of: rows}\n  b: {proportion: {a: {not: 1}}, of: rows}\n  "
    tables += "c: {proportion: {x: p}, of: rows}\n  d: {proportion: {x: {not: p}}, of: rows}"
    content = "a,x\n1,p;q\n2,q\n9,q;r\n,\n3,z\n"
    found = counted(tmp_path, rows_spec(*columns, tables=tables), rows=content)
    assert found["a.all"] == {(): 5}
    assert [found[f"{table}.part"] for table in "abcd"] == [{(): 1}, {(): 1}, {(): 1}, {(): 2}]


def test_several_answers_count_once_in_each_of_their_cells(tmp_path: Path) -> None:
    columns = ("x: {codes: [a, b, c], up_to: 2, columns: [x1, x2, x3], not_applicable: N}", "s: {codes: [m, f]}")
    tables = "t: {count: rows, by: [x]}\n  g: {count: rows, by: [group, s]}"
    text = rows_spec(*columns, tables=tables, rest="recodes: {group: {of: x, into: {AB: [a, b], C: c}}}")
    lines = ["x1,x2,x3,s", "a,b,c,m", "a,,c,f", "z,a,a,m", "N,,,m", "N,b,,f", ",N,,f", "z,,,m"]
    found = counted(tmp_path, text, rows="\n".join(lines))
    assert found["t.count"] == {(0,): 3, (1,): 2, (2,): 1, (3,): 2}
    assert found["g.count"] == {(0, 0): 2, (0, 1): 2, (1, 1): 1, (2, 1): 1, (2, 0): 1}


def test_of_separated_answers_the_first_parts_are_read(tmp_path: Path) -> None:
    column = "x: {codes: [a, b, c], up_to: 2, separator: ;, outside: {count_as: c}}"
    assert by_x(tmp_path, column, "x\na; b;c\na;a;b\n;a;b\nq;z\n;\n") == {(0,): 3, (1,): 1, (2,): 1, (3,): 1}


def test_sums_are_of_clipped_ticks_and_means_of_distances_from_the_middle(tmp_path: Path) -> None:
    columns = ("x: {number: -100..100, step: 0.5, clip: -1..2.5, not_applicable: N}", "s: {codes: [m, f]}")
    tables = "t: {sum: x, of: rows, by: [s]}\n  u: {mean: x, of: rows}\n  "
    tables += "q: {quantiles: {x: {at: 1/2, every: 0.5}}, of: rows}"
    content = "x,s\n2,m\n50,m\n-9,m\n-0.3,f\n0,f\n,f\nN,\n101,f\n"  # ticks 4, 5 (clipped), -2 (clipped), -1, 0
    found = counted(tmp_path, rows_spec(*columns, tables=tables), rows=content)
    assert found["t.sum(x)"] == {(0,): 7, (1,): -1}
    assert found["u.centred(x)"] == {(): 5 + 7 - 7 - 5 - 3}  # the middle is 1.5 ticks: 3 half ticks
    assert found["u.usable(x)"] == {(): 5}
    assert found["q.grid(x)"] == {(6,): 1, (7,): 1, (0,): 1, (1,): 1, (2,): 1, (8,): 2}


def test_a_row_whose_area_is_left_out_is_in_no_table_of_that_geography(tmp_path: Path) -> None:
    columns = ("p: {area: places}", "q: {area: parts, outside: {count_as: 1}}")
    rest = "geography:\n  places: {levels: [land, place], areas: {A: {}, B: {}}}\n"
    rest += "  parts: {levels: [whole_of_it, part], areas: {1: {}, 2: {}}}"
    text = rows_spec(*columns, tables="t: {count: rows, at: all}", rest=rest)
    found = counted(tmp_path, text, rows="p,q\nA,1\nA ,2\n,7\nB,\n")
    assert found == {"t.count@places": {("A",): 1, ("B",): 1}, "t.count@parts": {("1",): 2, ("2",): 1}}


def test_only_the_rows_of_the_edition_are_counted(tmp_path: Path) -> None:
    columns = ("year: {integer: 2020..2030}", "x: {codes: [a, b]}")
    text = rows_spec(*columns, tables="t: {count: rows, by: [x]}", read="only: {year: edition}")
    content = "year,x\n2026,a\n2025,b\n,a\n2026,\n"
    assert counted(tmp_path, text, rows=content)["t.count"] == {(0,): 1, NOT_STATED_OF_2: 1}
    assert counted(tmp_path, text, rows=content, edition="2025")["t.count"] == {(1,): 1}


def test_only_may_look_at_the_groups_own_row(tmp_path: Path) -> None:
    text = HOMES.replace("in: {homes: home}", "in: {homes: home}\n    only: {kind: H}")
    found = counted(
        tmp_path, text, homes="home,kind,rooms\na,H,\nb,F,\n", people="home,line,sex,age\na,1,m,\nb,1,f,\nc,1,f,\n"
    )
    assert found["sex.count"] == {(0,): 1}  # the kind of the home that has no row counts as F
    assert found["homes_by_size.count"] == {(1,): 1, (0,): 1}


def test_everybody_answers_randomised_response(tmp_path: Path) -> None:
    columns = ("age: {integer: 0..99}", "x: {codes: [a, b], applies_to: {age: 16..}}")
    rest = "universes: {old: {of: rows, where: {age: 60..}}}\n"
    rest += "exact: [{count: rows, from: microdata, because: The number of rows is known.}]"
    tables = "t: {count: old, by: [x], mechanism: randomised_response}"
    text = rows_spec(*columns, tables=tables, rest=rest, neighbours="replace")
    found = counted(tmp_path, text, rows="age,x\n60,a\n61,\n59,b\n3,\n,a\n")
    assert found["t.count"] == {(0,): 1, (2,): 1, ("elsewhere",): 3}
    assert found["exact.total1"] == {(): 5}


LINES = ("h,1,m,10", "h,2,f,20", "h,3,m,30", "h,4,f,60")  # ranked 2 (73dd), 3 (ab7d), 1 (abec), 4 (cce5)


def test_groups_are_described_by_all_their_rows_and_the_cap_keeps_some(tmp_path: Path) -> None:
    people = "\n".join(("home,line,sex,age", *LINES, "k,1,f,70", "k,2,m,80"))
    found = counted(tmp_path, HOMES, homes="home,kind,rooms\nh,H,3\nk,H,\nn,F,2\n", people=people)
    assert found["homes_by_size.count"] == {(3,): 1, (2,): 1, (0,): 1}
    assert found["homes_by_children.count"] == {(0,): 1, (1,): 2}
    assert found["homes_by_head.count"] == {(1,): 1, NOT_STATED_OF_2: 2}
    assert found["homes_by_rooms.count"] == {(2,): 1, (9,): 1}
    assert found["ages.count"] == {(20,): 1, (30,): 1, (70,): 1, (80,): 1}
    assert found["one_of_each.count"] == {(1,): 2}  # of k the first is 1 (984a), not 2 (d498)
    assert found["people_by_size.count"] == {(3,): 1, (2,): 1}


def test_some_rows_are_kept_first(tmp_path: Path) -> None:
    text = HOMES.replace("{people: 2}", "{people: 2, keep_first: {sex: f}}")
    found = counted(tmp_path, text, homes="home,kind,rooms\nh,H,\n", people="\n".join(("home,line,sex,age", *LINES)))
    assert found["ages.count"] == {(20,): 1, (60,): 1}
    assert found["one_of_each.count"] == {(1,): 1}


def test_rows_without_an_id_are_ranked_by_their_columns(tmp_path: Path) -> None:
    people = "home,line,sex,age\nh,2,m,1\nh,,m,41\nh, ,f,40\nh,,m,40\n"  # 215d f40, 6e9e m40, f794 m41; null before 2
    found = counted(tmp_path, HOMES, homes="home,kind,rooms\nh,H,\n", people=people)
    assert found["ages.count"] == {(40,): 2}
    assert found["one_of_each.count"] == {(1,): 1}


def test_singles_are_in_no_group_and_always_kept(tmp_path: Path) -> None:
    text = HOMES.replace("protect: homes", "protect: homes, singles: {sex: f}")
    found = counted(tmp_path, text, homes="home,kind,rooms\nh,H,\n", people="\n".join(("home,line,sex,age", *LINES)))
    assert found["homes_by_size.count"] == {(2,): 1}
    assert found["ages.count"] == {(10,): 1, (20,): 1, (30,): 1, (60,): 1}
    assert found["homes_by_head.count"] == {NOT_STATED_OF_2: 1}


def test_one_row_is_kept_of_those_with_one_identity(tmp_path: Path) -> None:
    homes = "home,kind,rooms\nh,F,5\n h.0,H,5\n"  # F and 5 are f163, H and 5 are 6040
    lines = ["home,line,sex,age", "h,1,m,40", "h.0, 1.0,f,40", "h,1,f,41", "h,2,m,50"]  # 6e9e, 215d and ac20
    lines += ["k,1,m,40", ",1,m,40", ",1,m,40"]
    found = counted(tmp_path, HOMES, homes=homes, people="\n".join(lines))
    assert found["homes_by_size.count"] == {(2,): 1}
    assert found["ages.count"] == {(40,): 4, (50,): 1}
    assert found["sex.count"] == {(1,): 1, (0,): 4}
    assert found["kind.count"] == {(0,): 1, (1,): 3}


def test_records_without_a_group_or_its_row_have_missing_values_there(tmp_path: Path) -> None:
    people = "home,line,sex,age\nk,1,m,40\nk,2,m,40\n,3,m,40\n,3,m,41\nh,4,m,40\n"
    found = counted(tmp_path, HOMES, homes="home,kind,rooms\nh,H,\n,H,\n", people=people)
    assert found["kind.count"] == {(1,): 4, (0,): 1}
    assert found["people_by_size.count"] == {(2,): 2, (1,): 3}
    assert found["homes_by_size.count"] == {(1,): 1, (0,): 1}


def test_groups_without_a_file_say_what_all_their_rows_say(tmp_path: Path) -> None:
    lines = ["birth,mother,place,age,sex", "1,a,A,20,b", "2,a,A,20.2,g", "3,b,A,40,b", "4,b,B,40,b"]
    lines += ["5,c,B,40,b", "6,c,B,41,b", "7,d,B,70,g", "8,d,B,60,g", "9,,A,20,b", "10,e,B,,b"]
    found = counted(tmp_path, COUPLES, births="\n".join(lines))
    assert found["mothers_by_place.count@places"] == {("A",): 1, ("B",): 3}  # b is mixed
    assert found["mothers_by_age.count@places"] == {("A", 0): 1, ("B", 0): 1, ("B", 1): 1, ("B", 2): 1}
