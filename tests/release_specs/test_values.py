"""Text typed by the language: exact, and with advice for the likely slips."""

from __future__ import annotations

from datetime import date
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from release_specs.language.conditions import Condition, Criterion, read_condition, write_condition
from release_specs.language.phrases import read_day, read_rule
from release_specs.language.values import Range, read_number, read_range, read_share, write_number


@given(st.fractions())
def test_a_number_survives_being_written(number: Fraction) -> None:
    text = write_number(number)
    if len(text) <= 60:
        assert read_number(text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("3/8", Fraction(3, 8)),
        ("0.375", Fraction(3, 8)),
        ("37.5%", Fraction(3, 8)),
        ("1e-10", Fraction(1, 10**10)),
        ("-59999", Fraction(-59999)),
        ("01", Fraction(1)),
    ],
)
def test_numbers_are_exact(text: str, number: Fraction) -> None:
    assert read_number(text) == number


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("1,000", "leave out the separators: 1000"),
        ("1 000 000", "leave out the separators: 1000000"),
        ("0,5", "the decimal mark is a point: 0.5"),
        ("1/0", "the part below the line is zero"),
        ("1e999", "an exponent of at most two digits"),
        ("ten", "write it like 12"),
        ("nan", "write it like 12"),
        ("9" * 100, "at most 60 characters"),
    ],
)
def test_a_bad_number_gets_advice(text: str, advice: str) -> None:
    with pytest.raises(PydanticCustomError, match=advice.replace("(", r"\(")):
        read_number(text)


@given(st.integers(-1000, 1000), st.integers(0, 1000))
def test_a_range_survives_being_written(low: int, width: int) -> None:
    part = Range(Fraction(low), Fraction(low + width))
    assert read_range(str(part)) == part


def test_ranges_have_open_ends_and_days() -> None:
    assert read_range("65..") == Range(Fraction(65), None)
    assert read_range("..17") == Range(None, Fraction(17))
    assert read_range("-9..-1") == Range(Fraction(-9), Fraction(-1))
    assert read_range("2025-01-01..2025-12-31") == Range(date(2025, 1, 1), date(2025, 12, 31))


@pytest.mark.parametrize("text", ["0", "-1/2", "3/2", "120%"])
def test_a_share_is_a_part_of_a_whole(text: str) -> None:
    with pytest.raises(PydanticCustomError):
        read_share(text)


codes = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=5)
tests = st.builds(Criterion, codes, st.lists(codes, min_size=1, max_size=3).map(tuple), st.booleans())
clauses = st.lists(tests, min_size=1, max_size=3, unique_by=lambda test: test.column).map(tuple)


@given(st.lists(clauses, min_size=1, max_size=3).map(tuple))
def test_a_condition_survives_being_written(any_of: tuple[tuple[Criterion, ...], ...]) -> None:
    condition = Condition(any_of)
    assert read_condition(write_condition(condition)) == condition


@pytest.mark.parametrize(
    "text",
    [
        "15th of September",
        "10th of April and October",
        "second Tuesday of every month",
        "last day of March",
        "last Friday of May",
    ],
)
def test_a_day_of_the_calendar_survives_being_written(text: str) -> None:
    assert str(read_day(text)) == text


@pytest.mark.parametrize("text", ["a >= b", "a(x=1, y=2) = b", "a <= file.csv:column", "a(x=<=3) >= b"])
def test_a_rule_survives_being_written(text: str) -> None:
    assert str(read_rule(text)) == text
