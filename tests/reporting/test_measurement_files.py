"""Measurement files: all cells with what was done, the same bytes each time, and damage always a sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from reporting.errors import ReleaseFault
from reporting.measurement_files import read_measurements, write_measurements
from reporting.plain_json import canonical, indented, read_canonical
from tests.reporting.releases import Made, homes, small

PEOPLE = "measurements/people.count@town.parquet"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return small(tmp_path_factory.mktemp("spec"))


def test_measurements_are_read_back_with_what_was_done(release: Made, tmp_path: Path) -> None:
    write_measurements(tmp_path, release.measurements, described=release.described)
    read = read_measurements(tmp_path, release.tallies)
    assert list(read) == [(one.tally.name, one.level) for one in release.measurements]
    for one in release.measurements:
        found = read[one.tally.name, one.level]
        assert found.numbers.tolist() == one.numbers.tolist()
        assert found.described == {**release.described[one.tally.name, one.level], "variance": "50.0"}
        assert not found.is_exact


def test_exact_numbers_say_that_they_are_exact(tmp_path: Path) -> None:
    given = homes(tmp_path)
    write_measurements(tmp_path / "release", given.measurements, given.exact, described=given.described)
    read = read_measurements(tmp_path / "release", given.tallies)
    assert [key for key, one in read.items() if one.is_exact] == [
        ("exact.total1@land", "land"),
        ("exact.total1@land", "part"),
    ]
    assert read["exact.total1@land", "land"].numbers.tolist() == given.truth["exact.total1@land", "land"].tolist()


def test_pandas_sees_a_row_for_each_cell_hidden_ones_included(release: Made, tmp_path: Path) -> None:
    write_measurements(tmp_path, release.measurements, described=release.described)
    found = pd.read_parquet(tmp_path / PEOPLE)
    assert list(found.columns) == ["level", "area", "sex", "kind", "value"]
    assert len(found) == 6 + 3 * 6
    assert list(found["sex"].unique()) == ["1", "2", "not stated"]
    assert found["value"].dtype == np.int64


def test_two_writes_have_the_same_bytes_whatever_the_order(release: Made, tmp_path: Path) -> None:
    for name, given in (("one", release.measurements), ("other", release.measurements[::-1])):
        write_measurements(tmp_path / name, given, described=release.described)
    for path in (tmp_path / "one" / "measurements").iterdir():
        assert path.read_bytes() == (tmp_path / "other" / "measurements" / path.name).read_bytes()


def test_any_integer_of_64_bits_survives(release: Made, tmp_path: Path) -> None:
    first = release.measurements[0]
    numbers = np.full_like(first.numbers, 2**63 - 1)
    numbers[0, 0] = -(2**63)
    write_measurements(tmp_path, [replace(first, numbers=numbers)], described=release.described)
    read = read_measurements(tmp_path, release.tallies)
    assert read[first.tally.name, first.level].numbers.tolist() == numbers.tolist()


def test_a_tally_measured_twice_or_with_budgets_of_its_own_is_not_written(release: Made, tmp_path: Path) -> None:
    first = release.measurements[0]
    with pytest.raises(ValueError, match="measured twice"):
        write_measurements(tmp_path, [first, first], described=release.described)
    scaled = replace(first, scales=np.ones(len(first.numbers)))
    with pytest.raises(ValueError, match="budget of their own"):
        write_measurements(tmp_path / "other", [scaled], described=release.described)


def test_a_damaged_file_is_refused_with_a_sentence_or_holds_the_same_numbers(release: Made, tmp_path: Path) -> None:
    """Flipped bits and cut ends: never a wrong number, never another kind of error."""
    write_measurements(tmp_path, release.measurements, described=release.described)
    data, rng = (tmp_path / PEOPLE).read_bytes(), np.random.default_rng(1)
    told = [found_in(tmp_path, release, damaged(data, rng, cut=turn % 4 == 0)) for turn in range(400)]
    assert {PEOPLE in one for one in told if one} == {True}
    assert sum(bool(one) for one in told) > 300


def damaged(data: bytes, rng: np.random.Generator, *, cut: bool) -> bytes:
    """A copy with its end cut off, or with some bits flipped."""
    if cut:
        return data[: rng.integers(len(data))]
    found = bytearray(data)
    for place in rng.integers(len(data), size=rng.choice([1, 1, 2, 5])):
        found[place] ^= 1 << rng.integers(8)
    return bytes(found)


def found_in(folder: Path, release: Made, data: bytes) -> str:
    """The sentence that refuses a file; nothing where it holds the numbers that were written."""
    (folder / PEOPLE).write_bytes(data)
    try:
        read = read_measurements(folder, release.tallies)
    except ReleaseFault as fault:
        return str(fault)
    for one in release.measurements:
        assert read[one.tally.name, one.level].numbers.tolist() == one.numbers.tolist()
    return ""


@pytest.mark.parametrize("data", [0.5, {"a": [1.0]}, {1: "a"}, (1, 2), {"a": {1, 2}}, float("nan")])
def test_plain_data_hold_no_floats_and_no_other_kinds(data: object) -> None:
    with pytest.raises(TypeError, match="plain data"):
        canonical(data)


def test_plain_data_have_one_form() -> None:
    data = {"b": [1, True, None], "a": "é"}
    assert canonical(data) == '{"a":"é","b":[1,true,null]}'.encode()
    assert read_canonical(canonical(data), "here") == data
    assert read_canonical(indented(data), "here", is_indented=True) == data
    for text in (b'{"b":1,"a":2}', b'{"a":1,"a":1}', b'{"a": 1}', indented(data)):
        with pytest.raises(ReleaseFault, match="here is JSON in another form"):
            read_canonical(text, "here")
    for text in (b"", b"{", b'{"a":0.5}', b"\xff", b"[" * 50 + b"]" * 50):
        with pytest.raises(ReleaseFault, match="here is not JSON"):
            read_canonical(text, "here")
