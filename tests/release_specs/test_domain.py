"""The shape of the data: scales, categories that cover everything once, and hierarchies."""

from __future__ import annotations

import itertools
from datetime import date
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_specs.diagnostics import Finding, SpecError
from release_specs.domain import Attribute, Category, Scale
from release_specs.language.values import Range
from release_specs.language.vocabulary import Categories, EqualBins
from release_specs.load import load_spec, load_text
from release_specs.reading.categories import recode
from release_specs.reading.resolve import queries_of

BASE = Path(__file__).parent / "base"
EXAMPLES = Path(__file__).parents[2] / "release_specs" / "examples"


def ages(high: int = 110) -> Attribute:
    return Attribute("age", "Age", "people", "age", scale=Scale(Fraction(0), Fraction(high)))


def holders(categories: tuple[Category, ...], value: Fraction) -> list[str]:
    return [
        category.code
        for category in categories
        for part in category.holds
        if isinstance(part, Range) and part.holds(Range(value, value))
    ]


@given(st.lists(st.integers(1, 109), min_size=1, max_size=6, unique=True).map(sorted))
def test_bins_laid_end_to_end_hold_every_value_once(cuts: list[int]) -> None:
    edges = [0, *cuts, 111]
    named = tuple((f"bin {low}", (f"{low}..{high - 1}",)) for low, high in itertools.pairwise(edges))
    findings: list[Finding] = []
    categories = recode(ages(), Categories(named), ("recodes",), findings)
    assert findings == []
    assert all(len(holders(categories, Fraction(value))) == 1 for value in range(111))


@given(st.integers(0, 110), st.integers(0, 110))
def test_a_gap_is_found_exactly_when_a_value_is_in_no_bin(first: int, second: int) -> None:
    low, high = sorted((first, second))
    findings: list[Finding] = []
    recode(ages(), Categories((("a", (f"..{low}",)), ("b", (f"{high}..",)))), ("recodes",), findings)
    expected = [] if high == low + 1 else ["category-overlap"] if high == low else ["category-gap"]
    assert [found.code for found in findings] == expected


@given(st.integers(0, 100), st.integers(1, 9))
def test_the_rest_holds_what_no_other_bin_does(low: int, width: int) -> None:
    findings: list[Finding] = []
    into = Categories((("middle", (f"{low}..{low + width}",)), ("others", ())))
    categories = recode(ages(), into, ("recodes",), findings)
    assert findings == []
    for value in range(111):
        assert holders(categories, Fraction(value)) == ["middle" if low <= value <= low + width else "others"]


@given(st.integers(1, 30), st.integers(1, 8))
def test_bins_of_one_width_hold_every_value_once(width: int, number: int) -> None:
    findings: list[Finding] = []
    top = width * number
    categories = recode(ages(300), EqualBins(Fraction(width), Fraction(top)), ("recodes",), findings)
    assert findings == []
    assert len(categories) == number + 1
    assert all(len(holders(categories, Fraction(value))) == 1 for value in range(301))


def test_bins_at_a_fine_step_leave_nothing_between_them() -> None:
    source = Attribute("x", "x", "e", "x", scale=Scale(Fraction(0), Fraction(20), Fraction(1, 10)))
    findings: list[Finding] = []
    recode(source, Categories((("a", ("0..19",)), ("b", ("20",)))), ("recodes",), findings)
    assert findings[0].message.startswith("9 values of 'x' at step 0.1")


@pytest.mark.parametrize(("point", "index"), [("2.5", 3), ("2.4", 2), ("-2.5", -3), ("-2.4", -2), ("0", 0)])
def test_rounding_to_the_step_is_half_away_from_zero(point: str, index: int) -> None:
    assert Scale(Fraction(0), Fraction(10)).index(Fraction(point)) == index


def test_days_are_a_scale_too() -> None:
    scale = Scale(date(2024, 2, 28), date(2024, 3, 1))
    assert scale.size == 3
    assert scale.value(1) == date(2024, 2, 29)


def test_names_mean_what_the_row_has() -> None:
    """A row has its own columns, its group's, and the recodes and derived attributes of both."""
    domain = load_spec(BASE / "spec.yaml").domain
    people = domain.names("people")
    assert {"sex", "age", "age_group", "kind", "size", "children"} <= set(people)
    assert "sex" not in domain.names("homes")
    size = domain.attribute("people", "size")
    assert size is not None
    assert (size.owner, size.derived, size.size) == ("homes", True, 4)


def test_a_column_that_leaves_values_out_has_a_hidden_code() -> None:
    domain = load_spec(BASE / "spec.yaml").domain
    hidden = {name: domain.attribute("people", name) for name in ("role", "age_group", "sex")}
    assert {name: found.hidden for name, found in hidden.items() if found is not None} == {
        "role": True,
        "age_group": True,
        "sex": True,
    }


def test_every_area_lies_in_one_larger_area() -> None:
    tree = load_spec(BASE / "spec.yaml").domain.hierarchies["town"]
    assert [len(tree.areas[level]) for level in tree.levels] == [1, 2, 4]
    for level, larger in zip(tree.levels[1:], tree.levels, strict=False):
        assert {area.parent for area in tree.areas[level]} <= {area.code for area in tree.areas[larger]}
    assert tree.areas["town_whole"][0].label == "The town"
    assert [area.label for area in tree.areas["quarter"]] == ["North", "South"]


def test_every_declared_cell_is_counted() -> None:
    loaded = load_spec(BASE / "spec.yaml")
    cells = {(query.table, query.level): query.cells for query in queries_of(loaded.spec, loaded.domain)}
    assert cells["ages", "quarter"] == 2 * 2 * 3
    assert cells["population", "block_area"] == 4


def test_areas_may_be_written_out() -> None:
    loaded = load_spec(EXAMPLES / "births.yaml")
    tree = next(iter(loaded.domain.hierarchies.values()))
    assert all(tree.areas[level] for level in tree.levels)


def test_an_area_list_with_a_circle_is_refused() -> None:
    text = (BASE / "spec.yaml").read_text(encoding="utf-8")
    text = text.replace(
        "areas: areas.csv, whole: {code: T, label: The town}",
        "areas: {T: {label: Town}, N: {in: M}, M: {in: N}, B1: {in: N}}",
    )
    with pytest.raises(SpecError) as caught:
        load_text(text, file="x.yaml", folder=BASE)
    assert "area-row" in {item.code for item in caught.value.diagnostics}
