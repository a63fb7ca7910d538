"""Table files: exact decimals, codes as declared, the same bytes each time, and fast for large tables."""

from __future__ import annotations

import csv
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimation.tables import NOT_KNOWN, Statistic
from release_specs.domain import Area, Attribute, Category
from release_specs.language.values import Range
from release_specs.load import Loaded, load_text
from reporting.decimals import as_floats, computed, decimals, in_units, read_computed, read_decimals
from reporting.errors import ReleaseFault
from reporting.hidden_cells import cell_codes, extended_codes, read_hidden
from reporting.layout import is_shown, parts_of
from reporting.table_files import NUMBERS, read_tables, write_tables
from tests.reporting.releases import Made, example, small

Floats = npt.NDArray[np.float64]
WIDE = """
margrave: 1
release: {{name: wide, title: Wide}}
microdata:
  persons:
    key: id
    columns:
      spot:  {{area: land, outside: {{count_as: "{first}"}}, missing: {{count_as: "{first}"}}}}
      level: {{codes: {{"a,b": One, 'say "x"': Two, =1+1: Three, "007": Four}}, outside: leave_out, missing: leave_out}}
      cost:  {{number: 0..100, clip: 0..50, step: {step}, outside: nearest, missing: {{count_as: 0}}}}
geography:
  land: {{levels: [land, spot], whole: {{code: L, label: Land}}, areas: areas.csv}}
privacy: {{protect: persons, neighbours: replace, budget: {{rho: 1, delta: 1e-10}}}}
tables:
  folk: {{count: persons, by: [level], at: all}}
  paid: {{sum: cost, of: persons, by: [level], at: [spot]}}
  both: {{sum: cost, mean: cost, of: persons, at: [land]}}
publish: {{reliability: {{"so, so": cv > 10%}}}}
"""


def wide(folder: Path, *, areas: int = 3, step: str = "0.25") -> Loaded:
    """A spec whose codes need quoting and whose attribute has a name of ours."""
    codes = [f"{number:06d}" for number in range(areas)]
    (folder / "areas.csv").write_text("spot\n" + "\n".join(codes) + "\n", encoding="utf-8")
    return load_text(WIDE.format(first=codes[0], step=step), file="wide.yaml", folder=folder)


def filled(loaded: Loaded, seed: int = 1, *, largest: float = 1e6) -> list[Statistic]:
    """Made-up statistics for every part of every table; one number in ten is not known."""
    rng = np.random.default_rng(seed)
    found = []
    for part in (part for parts in parts_of(loaded.spec, loaded.domain).values() for part in parts):
        known = rng.random(part.shape) > 0.1
        whole = rng.integers(0, int(largest), part.shape)
        tick = float(part.tick)
        estimate = (whole + rng.normal(0, 3, part.shape)) * tick
        moe = rng.random(part.shape) * 10 * tick
        ends = [np.rint((estimate + sign * moe) / tick) * tick for sign in (-1, 1)]
        numbers = [np.where(known, one, np.nan) for one in (estimate, estimate, moe, *ends)]
        flag = np.where(known, np.where(moe > 9 * tick, "so, so", ""), NOT_KNOWN)
        given_ = Statistic(
            part.table,
            part.statistic,
            part.column,
            part.level,
            part.attributes,
            part.areas,
            *numbers,
            known=known,
            flag=flag,
            tick=part.tick,
        )
        if part.tally is not None:
            given_ = replace(given_, whole=whole, value=whole * tick)
        found.append(given_)
    return found


def same(one: Statistic, other: Statistic) -> bool:
    """Whether a statistic was read back as it was written, but for the digits that are not written."""
    places = [(x.table, x.statistic, x.column, x.level, x.attributes, x.areas, x.tick) for x in (one, other)]
    off = float(one.tick) / 1900 if one.whole is not None else 1e-9
    near = [np.allclose(getattr(one, n), getattr(other, n), atol=off, rtol=1e-11, equal_nan=True) for n in NUMBERS]
    wholes = [None if x.whole is None else x.whole.tolist() for x in (one, other)]
    return places[0] == places[1] and all(near) and wholes[0] == wholes[1] and bool((one.flag == other.flag).all())


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return small(tmp_path_factory.mktemp("spec"))


@pytest.mark.parametrize("name", ["small", "births", "schools"])
def test_tables_are_read_back_as_they_were_written(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "spec"
    folder.mkdir()
    given_ = small(folder) if name == "small" else example(name, folder)
    given_.tables.write(tmp_path)
    loaded, written = given_.loaded, list(given_.tables.statistics)
    read = list(read_tables(tmp_path, loaded.spec, loaded.domain))
    assert [same(one, other) for one, other in zip(written, read, strict=True)] == [True] * len(written)
    for (tally, level), numbers in read_hidden(tmp_path, loaded.spec, loaded.domain).items():
        (mine,) = [one for one in given_.tallies if one.name == tally]
        assert numbers.tolist() == given_.tables.estimated.value(mine, level)[:, ~is_shown(mine)].tolist()


@pytest.mark.parametrize("step", ["1", "0.25", "0.001", "1/3"])
def test_codes_and_numbers_survive_whatever_they_look_like(step: str, tmp_path: Path) -> None:
    loaded = wide(tmp_path, step=step)
    statistics = filled(loaded, largest=1e12)
    write_tables(tmp_path, statistics)
    read = list(read_tables(tmp_path, loaded.spec, loaded.domain))
    assert [same(one, other) for one, other in zip(statistics, read, strict=True)] == [True] * len(statistics)
    with (tmp_path / "tables" / "folk.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = list(csv.reader(file))
    assert header == ["level", "area", "level_", *NUMBERS, "flag"]
    assert [row[:3] for row in rows[4:6]] == [["spot", "000000", "a,b"], ["spot", "000000", 'say "x"']]
    assert {row[2] for row in rows} == {"a,b", 'say "x"', "=1+1", "007"}
    with (tmp_path / "tables" / "both.csv").open(encoding="utf-8", newline="") as file:
        assert [row[2] for row in csv.reader(file)] == ["statistic", "sum of cost", "mean of cost"]


def test_pandas_reads_a_table_as_the_documentation_says(release: Made, tmp_path: Path) -> None:
    release.tables.write(tmp_path)
    numbers = ["value", "estimate", "moe", "low", "high"]
    path = tmp_path / "tables" / "people.csv"
    texts = pd.read_csv(path, dtype=str, keep_default_na=False)
    found = texts.assign(**{name: pd.to_numeric(texts[name]) for name in numbers})
    blocks = found[found["level"] == "block"]
    assert blocks["value"].sum() == found[found["level"] == "whole_town"]["value"].sum()
    assert set(blocks["area"]) == {"A1", "A2", "A3"}


def test_a_table_of_a_hundred_thousand_rows_is_written_and_read_in_seconds(tmp_path: Path) -> None:
    loaded = wide(tmp_path, areas=25_000)
    statistics = filled(loaded)
    assert max(one.value.size for one in statistics) == 100_000
    started = time.perf_counter()
    write_tables(tmp_path, statistics)
    read = list(read_tables(tmp_path, loaded.spec, loaded.domain))
    assert time.perf_counter() - started < 20
    assert all(same(one, other) for one, other in zip(statistics, read, strict=True))
    again = tmp_path / "again"
    write_tables(again, read)
    for name in ("folk", "paid", "both"):
        assert (again / "tables" / f"{name}.csv").read_bytes() == (tmp_path / "tables" / f"{name}.csv").read_bytes()


@given(
    numbers=st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=8),
    unit=st.sampled_from(
        [Fraction(1), Fraction(1, 4), Fraction(1, 1000), Fraction(100), Fraction(3, 8), Fraction(1, 3)]
    ),
)
def test_whole_numbers_of_a_unit_are_written_exactly_however_large(numbers: list[int], unit: Fraction) -> None:
    texts = decimals(np.array(numbers, np.int64), unit).to_pylist()
    for text, number in zip(texts, numbers, strict=True):
        assert abs(Fraction(text) - number * unit) <= (0 if unit.denominator != 3 else Fraction(1, 10**9))
        assert "e" not in text.lower()
        assert text == "0" or not text.startswith(("-0.0000000000", "+", "."))
    assert read_decimals(pa.array(texts), unit).tolist() == numbers


@given(st.lists(st.floats(-1e18, 1e18), min_size=1, max_size=8))
def test_computed_numbers_are_written_to_nine_decimals_and_twelve_digits(numbers: list[float]) -> None:
    texts = computed(np.array(numbers))
    for text, number in zip(texts.to_pylist(), numbers, strict=True):
        assert abs(float(text) - number) <= max(0.51e-9, abs(number) * 1e-11)
        assert len(text.partition(".")[2]) <= 9
    assert computed(read_computed(texts)).to_pylist() == texts.to_pylist()


@given(st.lists(st.floats(-(2.0**60), 2.0**60), min_size=1, max_size=8), st.sampled_from(["1", "1/1000", "1/40000"]))
def test_floats_in_units_come_back_as_the_same_number_of_units(numbers: list[float], unit: str) -> None:
    worth = Fraction(unit)
    first = in_units(np.array(numbers), worth)
    assert in_units(as_floats(first, worth), worth).tolist() == first.tolist()
    assert [abs(Fraction(x) - int(n) * worth) <= worth for x, n in zip(numbers, first, strict=True)] == [True] * len(
        numbers
    )


@pytest.mark.parametrize(
    "text", ["1e3", "+1", "01", "1.", "1.50", ".5", "NaN", "inf", " 1", "1 ", "--1", "0x1", "1,0", "", "٣"]
)
def test_what_is_not_a_plain_decimal_is_refused(text: str) -> None:
    for read in (read_computed, lambda texts: read_decimals(texts, Fraction(1, 10))):
        with pytest.raises(ReleaseFault, match="expected a number written as a plain decimal"):
            read(pa.array([text]))


def test_a_number_that_is_not_finite_is_not_published() -> None:
    for number in (np.inf, -np.inf, np.nan):
        with pytest.raises(ValueError, match="not finite"):
            computed(np.array([number]))
        with pytest.raises(ValueError, match="not finite"):
            in_units(np.array([number]), Fraction(1))


def test_not_stated_is_spelled_out_and_never_taken_for_a_code() -> None:
    coded = tuple(Category(code, code, (code,)) for code in ("a", "not stated"))
    attribute = Attribute("x", "x", "persons", "x", coded, hidden=True)
    assert extended_codes(attribute) == ["a", "not stated", "(not stated)"]
    assert extended_codes(replace(attribute, hidden=False)) == ["a", "not stated"]


def test_every_cell_of_a_tally_has_its_codes_in_order(release: Made) -> None:
    tally = next(one for one in release.tallies if one.name == "people.count@town")
    assert cell_codes(tally) == [(sex, kind) for sex in ("1", "2", "not stated") for kind in ("A", "B")]
    assert is_shown(tally).tolist() == [True] * 4 + [False] * 2
    rest = replace(tally, elsewhere=True)
    assert cell_codes(rest)[-1] == ("elsewhere", "elsewhere")
    assert is_shown(rest).tolist() == [True] * 4 + [False] * 3


def test_a_table_without_geography_has_empty_areas(tmp_path: Path) -> None:
    attribute = Attribute("x", "x", "persons", "x", (Category("1", "1", (Range(Fraction(1), Fraction(1)),)),))
    nothing: Floats = np.full((1, 1), 2.0)
    one = Statistic("t", "count", None, None, (attribute,), (), *[nothing] * 5, nothing > 0, np.array([[""]]))
    write_tables(tmp_path, [replace(one, whole=np.array([[2**62]]))])
    expected = "level,area,x,value,estimate,moe,low,high,flag\n,,1,4611686018427387904,2,2,2,2,\n"
    assert (tmp_path / "tables" / "t.csv").read_bytes() == expected.encode()
    assert Area("a", "a", None) not in one.areas
