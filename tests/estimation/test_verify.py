"""Finished tables looked at once more: tables of the product hold, and every single wrong number is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from estimation.measurement import ExactNumbers, Measurement
from estimation.problem import Problem, problem
from estimation.release import estimate_release
from estimation.verify import MOST_OF_A_KIND, faults
from release_specs.load import Loaded, load_spec, load_text
from release_specs.tallies import EXACT, Tally, tallies_of
from tests.estimation.made_up import Normal, Truth, exact_numbers, measured

EXAMPLES = Path(__file__).resolve().parents[2] / "release_specs" / "examples"
NAMES = ("households", "births", "schools", "redistricting_2020", "acs")
Integers = npt.NDArray[np.int64]
Change = Callable[[Integers], None]

PARTS = "at least"
TINY = """
margrave: 1
release: {name: tiny, title: Tiny}
microdata:
  persons:
    key: id
    defaults: {outside: leave_out, missing: leave_out}
    columns:
      sex:   {codes: [1, 2], outside: {count_as: 1}, missing: {count_as: 1}}
      works: {codes: [yes, no]}
universes:
  workers: {of: persons, where: {works: yes}}
privacy: {protect: persons, neighbours: add-remove, budget: {epsilon: 1}}
tables:
  persons_by_sex: {count: persons, by: [sex]}
  workers_by_sex: {count: workers, by: [sex]}
"""


@dataclass(frozen=True, eq=False)
class Example:
    """An example spec with what is counted for it, exact numbers of made-up rows, and tables from the product."""

    loaded: Loaded
    tallies: tuple[Tally, ...]
    truth: Truth
    exact: tuple[ExactNumbers, ...]
    rng: np.random.Generator

    def faults(self, tables: Truth) -> list[str]:
        return faults(self.loaded.spec, self.loaded.domain, self.tallies, tables, self.exact)

    def tally(self, table: str) -> Tally:
        return next(tally for tally in self.tallies if tally.table == table)


@cache
def planned(name: str) -> tuple[Loaded, tuple[Tally, ...], Problem]:
    loaded = load_spec(EXAMPLES / f"{name}.yaml")
    tallies = tallies_of(loaded.spec, loaded.domain)
    if name == "households":  # its exact total has a public source, which is counted for no table
        sized = next(tally for tally in tallies if tally.table == "household_size")
        tallies += (replace(sized, table=EXACT, statistic="total1", attributes=(), levels=("county",)),)
    return loaded, tallies, problem(loaded.spec, loaded.domain, tallies)


@cache
def example(name: str) -> Example:
    loaded, tallies, plan = planned(name)
    rng = np.random.default_rng(3)
    truth = exact_numbers(plan, rng, rows=3000)
    known = [tally for tally in tallies if tally.table == EXACT]
    exact = tuple(ExactNumbers(one, level, truth[one.name, level]) for one in known for level in one.levels)
    return Example(loaded, tallies, truth, exact, rng)


@cache
def published(name: str) -> Truth:
    found, (_, tallies, plan) = example(name), planned(name)
    counted = [tally for tally in tallies if tally.table != EXACT]
    measurements = measured(found.truth, counted, Normal(4.0), found.rng)
    made = estimate_release(plan, measurements, found.exact)
    return {(tally.name, level): made.value(tally, level) for tally in counted for level in tally.levels or (None,)}


def sound(name: str) -> Truth:
    """Tables without a fault: those of the product where they have none, otherwise the exact numbers."""
    return published(name) if name in ("households", "births", "redistricting_2020") else example(name).truth


def changed(tables: Truth, tally: Tally, level: str | None, change: Change) -> Truth:
    numbers = tables[tally.name, level].copy()
    change(numbers)
    return {**tables, (tally.name, level): numbers}


def add(area: int, cell: int, number: int = 1) -> Change:
    def change(numbers: Integers) -> None:
        numbers[area, cell] += number

    return change


def swap(one: int, other: int) -> Change:
    def change(numbers: Integers) -> None:
        numbers[[one, other]] = numbers[[other, one]]

    return change


def cell_of(tally: Tally, **codes: str) -> int:
    """The cell with the given codes; the first code of every other attribute."""
    place = 0
    for attribute, size in zip(tally.attributes, tally.shape, strict=True):
        known = [category.code for category in attribute.categories]
        place = place * size + (known.index(codes[attribute.name]) if attribute.name in codes else 0)
    return place


@pytest.mark.parametrize("name", [*NAMES, "detailed_race"])
def test_exact_counts_of_rows_have_no_fault(name: str) -> None:
    found = example(name)
    spec = found.loaded.spec.model_copy(update={"rules": ()})  # made-up rows obey no rule
    assert faults(spec, found.loaded.domain, found.tallies, found.truth, found.exact) == []


@pytest.mark.parametrize("name", NAMES)
def test_tables_of_the_product_keep_every_promise_of_equality(name: str) -> None:
    told = example(name).faults(published(name))
    assert all(PARTS in sentence or sentence.startswith("and ") for sentence in told)


@pytest.mark.parametrize("name", NAMES)
def test_tables_of_the_product_have_no_fault(name: str) -> None:
    assert example(name).faults(published(name)) == []


def test_the_product_never_publishes_a_part_that_exceeds_its_whole() -> None:
    loaded = load_text(TINY, file="tiny.yaml", folder=EXAMPLES)
    tallies = tallies_of(loaded.spec, loaded.domain)
    seen = {"persons_by_sex": [[10, 10]], "workers_by_sex": [[15, 3]]}
    noisy = [Measurement(tally, None, np.array(seen[tally.table]), Normal(4.0)) for tally in tallies]
    made = estimate_release(problem(loaded.spec, loaded.domain, tallies), noisy)
    tables: Truth = {(tally.name, None): made.value(tally, None) for tally in tallies}
    assert faults(loaded.spec, loaded.domain, tallies, tables) == []


@pytest.mark.parametrize("name", NAMES)
def test_one_more_in_any_cell_is_found(name: str) -> None:
    rng, found = np.random.default_rng(7), example(name)
    obeyed = found.loaded.spec.model_copy(update={"rules": ()})
    counted = [tally for tally in found.tallies if tally.table != EXACT]
    for place in rng.permutation(len(counted))[:7]:
        tally = counted[place]
        level = rng.choice(tally.levels)
        area, cell = int(rng.integers(tally.areas(level))), int(rng.integers(tally.cells))
        tables = changed(found.truth, tally, str(level), add(area, cell))
        told = faults(obeyed, found.loaded.domain, found.tallies, tables, found.exact)
        assert any(f"'{tally.table}'" in sentence for sentence in told), (tally.name, level, area, cell)


@pytest.mark.parametrize("name", NAMES)
def test_two_areas_that_changed_places_are_found(name: str) -> None:
    found, tables = example(name), sound(name)
    tally = max(found.tallies, key=lambda one: (len(one.levels), one.cells))
    level = tally.levels[-1]
    assert tally.spine is not None
    areas, numbers = tally.spine.areas[level], tables[tally.name, level]
    pairs = combinations(range(len(areas)), 2)  # within one parent nothing tells which is which
    one, other = next((a, b) for a, b in pairs if areas[a].parent != areas[b].parent and any(numbers[a] != numbers[b]))
    told = found.faults(changed(tables, tally, level, swap(one, other)))
    assert any(f"table '{tally.table}'" in sentence for sentence in told)


def test_a_sentence_names_table_level_area_codes_what_was_found_and_what_was_expected() -> None:
    found, tables = example("households"), published("households")
    tally = found.tally("sex_by_age")
    cell = cell_of(tally, sex="2", age_group="18 to 64")
    assert tally.spine is not None
    area = tally.spine.areas["taz"][3]
    told = found.faults(changed(tables, tally, "taz", add(3, cell)))
    assert any(sentence.startswith(f"table 'population' at taz, area {area.code}: found ") for sentence in told)
    where = f"table 'sex_by_age' at district, area {area.parent}, sex 2, age_group 18 to 64: found "
    (below,) = [sentence for sentence in told if sentence.startswith(where)]
    districts = [district.code for district in tally.spine.areas["district"]]
    total = tables[tally.name, "district"][districts.index(str(area.parent)), cell]
    assert below == f"{where}{total}, expected exactly {total + 1}, the sum over taz"


def test_a_broken_rule_is_found_where_all_else_holds() -> None:
    found, tables = example("households"), published("households")
    tally = found.tally("relationship")
    head, spouse = cell_of(tally, relate="0"), cell_of(tally, relate="1")
    district = int(np.argmax(tables[tally.name, "district"][:, head]))
    for level, area in (("district", district), ("county", 0)):
        tables = changed(tables, tally, level, add(area, head, -1))
        tables = changed(tables, tally, level, add(area, spouse))
    told = found.faults(tables)
    assert len(told) == 2
    assert all("by rule 'relationship(relate=0) = household_size'" in sentence for sentence in told)
    assert all(sentence.startswith("table 'relationship' at ") for sentence in told)


def test_a_rule_between_whole_tables_is_checked_in_every_area() -> None:
    found, tables = example("households"), published("households")
    tally = found.tally("population")
    told = found.faults({**tables, (tally.name, "taz"): tables[tally.name, "taz"] * 0})
    broken = [sentence for sentence in told if "by rule 'population >= household_size'" in sentence]
    assert broken
    assert all(sentence.startswith("table 'population' at taz, area ") for sentence in broken)


@pytest.mark.parametrize(
    ("name", "table", "codes"),
    [
        ("households", "household_size", {"size": "None", "children": "yes"}),
        ("redistricting_2020", "detailed", {"hhgq": "3", "votingage": "0"}),
        ("acs", "poverty_status", None),
    ],
)
def test_a_number_where_nothing_can_be_is_found(name: str, table: str, codes: dict[str, str] | None) -> None:
    found, tables = example(name), sound(name)
    tally = found.tally(table)
    cell = cell_of(tally, **codes) if codes is not None else tally.cells - tally.shape[-1]  # poverty is not stated
    told = found.faults(changed(tables, tally, tally.levels[0], add(0, cell)))
    (sentence,) = [sentence for sentence in told if "no row has these codes" in sentence]
    assert sentence.startswith(f"table '{table}' at {tally.levels[0]}, area ")
    assert "found 1, expected exactly 0" in sentence


@pytest.mark.parametrize("name", NAMES)
def test_a_negative_count_is_found(name: str) -> None:
    found, tables = example(name), sound(name)
    for tally in found.tallies[::3]:
        if tally.adds is None and tally.table != EXACT:
            level = tally.levels[-1]
            told = found.faults(changed(tables, tally, level, lambda numbers: numbers.__setitem__((0, 0), -1)))
            assert any(f"'{tally.table}'" in one and "found -1, expected at least 0" in one for one in told)


def test_sums_of_distances_from_the_middle_may_be_negative_and_plain_sums_may_not() -> None:
    found, tables = example("households"), published("households")
    for table, allowed in (("income", True), ("vehicles", False)):
        tally = next(one for one in found.tallies if one.table == table and one.adds is not None)
        lower = {
            (tally.name, level): tables[tally.name, level] - 10**6 * tally.areas("district") for level in tally.levels
        }
        lower[tally.name, "county"] = lower[tally.name, "district"].sum(axis=0, keepdims=True)
        told = found.faults({**tables, **lower})
        assert any("at least 0" in sentence for sentence in told) is not allowed


@pytest.mark.parametrize(("name", "table"), [("households", "household_size"), ("redistricting_2020", "total")])
def test_a_broken_exact_total_is_found(name: str, table: str) -> None:
    found, tables = example(name), published(name)
    more = tuple(ExactNumbers(one.tally, one.level, one.numbers + 1) for one in found.exact)
    told = faults(found.loaded.spec, found.loaded.domain, found.tallies, tables, more)
    universe = found.exact[0].tally.universe
    assert any(f"table '{table}' at " in one and f"as in the exact {universe}" in one for one in told)


def test_a_part_that_exceeds_its_whole_is_found() -> None:
    found, tables = example("households"), published("households")
    tally = found.tally("work")
    for level in tally.levels:
        tables = changed(tables, tally, level, lambda numbers: numbers.__imul__(1000))
    told = found.faults(tables)
    assert any("table 'population' at county" in one and "at least" in one and "table 'work'" in one for one in told)


def test_recodes_of_one_column_are_compared_in_the_groups_they_share() -> None:
    found, tables = example("schools"), example("schools").truth
    tally = found.tally("pupils_by_grade")
    tables = changed(tables, tally, "north", add(0, cell_of(tally, grade="B1")))
    tables = changed(tables, tally, "north", add(0, cell_of(tally, grade="M1"), -1))  # the total stays
    told = found.faults(tables)
    assert any("cycle Grades 1 to 4" in one and "table 'pupils_by_grade'" in one for one in told)
    tables = changed(tables, tally, "north", add(0, cell_of(tally, grade="B2"), -1))
    tables = changed(tables, tally, "north", add(0, cell_of(tally, grade="M1")))
    assert found.faults(tables) == []  # nothing else is by grade, so within a cycle nothing can be told


def test_many_faults_of_a_kind_are_counted_and_not_all_told() -> None:
    found, tables = example("households"), published("households")
    tally = found.tally("race")
    told = found.faults(changed(tables, tally, "taz", lambda numbers: numbers.__isub__(10**6)))
    negative = [sentence for sentence in told if "expected at least 0" in sentence]
    assert len(negative) == MOST_OF_A_KIND
    assert f"and {tally.areas('taz') * tally.cells - MOST_OF_A_KIND} more negative numbers" in told


def test_tables_that_are_missing_or_have_another_shape_are_found() -> None:
    found, tables = example("births"), published("births")
    tally = found.tally("maternities")
    without = {key: numbers for key, numbers in tables.items() if key != (tally.name, "region")}
    cut = {**tables, (tally.name, "region"): tables[tally.name, "region"][1:]}
    for broken in (without, cut):
        (sentence,) = found.faults(broken)
        assert sentence == "table 'maternities' at region: found no such numbers, expected 7 areas of 1 cells"


def test_numbers_that_are_not_whole_are_found() -> None:
    found, tables = example("births"), published("births")
    tally = found.tally("deliveries")
    halves = tables[tally.name, "region"] + np.array([0.5, -0.5, 0.0])
    told = found.faults({**tables, (tally.name, "region"): halves})
    assert any("table 'deliveries' at region" in one and "a whole number" in one for one in told)
