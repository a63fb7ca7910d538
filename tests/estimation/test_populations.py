"""Which tallies count the same rows, what their columns tell apart, and what that makes of the least squares."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from estimation.design import Design, design
from release_specs.load import Loaded, load_spec, load_text
from release_specs.meanings import NOT_APPLICABLE, NOT_STATED
from release_specs.populations import Population, Populations
from release_specs.tallies import Tally, tallies_of

EXAMPLES = Path(__file__).resolve().parents[2] / "release_specs" / "examples"

CORES = {
    ("redistricting_2020", "persons"): (("hispanic", "cenrace"), 15),
    ("detailed_race", "persons"): (("group", "sex", "age"), 1),
    ("schools", "schools"): (("type", "rural", "surveyed"), 1),
    ("schools", "pupils"): (("sex", "rural", "type"), 15),
    ("births", "mothers"): (("delivery",), 6),
    ("births", "births"): (("gestation", "plurality", "sex"), 22),
    ("households", "households"): ((), 72),
    ("households", "persons"): (("relate", "race_id", "sex"), 8),
    ("acs", "persons"): (("DEAR", "DEYE", "DVET", "HISP", "RAC1P", "SEX"), 174),
}


@cache
def populations_of(example: str) -> Populations:
    loaded = load_spec(EXAMPLES / f"{example}.yaml")
    return from_loaded(loaded)


def from_loaded(loaded: Loaded) -> Populations:
    return Populations(loaded.spec, loaded.domain, tallies_of(loaded.spec, loaded.domain))


def population(example: str, name: str) -> Population:
    return next(one for one in populations_of(example).all if one.name == name)


def atoms(example: str, name: str, column: str) -> tuple[int, ...]:
    found = population(example, name).columns
    return next(one.atoms for node, one in found.items() if node[1] == column)


def tally(example: str, name: str, table: str) -> Tally:
    return next(one for one in population(example, name).tallies if one.name.partition("@")[0] == table)


def is_margin(example: str, name: str, coarse: str, fine: str) -> bool:
    found = population(example, name)
    tallies = tally(example, name, coarse), tally(example, name, fine)
    return populations_of(example).is_margin_of(found, *tallies)


def finest(example: str, name: str) -> list[str]:
    found = populations_of(example).finest(population(example, name))
    return [one.name.partition("@")[0] for one in found]


def test_a_column_has_an_atom_for_each_stretch_that_a_table_tells_apart() -> None:
    ages = atoms("households", "persons", "age")
    assert ages == (0, 16, 18, 65, NOT_STATED)  # 16 is where adults begin, 18 and 65 where age groups do


def test_a_column_that_does_not_apply_to_everyone_has_an_atom_for_those() -> None:
    assert atoms("households", "persons", "esr") == (0, 2, 5, NOT_STATED, NOT_APPLICABLE)


def test_a_column_without_left_out_values_has_no_hidden_atom() -> None:
    assert atoms("redistricting_2020", "persons", "hhgq") == tuple(range(8))
    assert len(atoms("redistricting_2020", "persons", "cenrace")) == 63


def test_a_proportion_cuts_a_scale_where_its_condition_does() -> None:
    assert atoms("schools", "pupils", "attendance") == (0, 170, NOT_STATED)  # 84.5 is place 169 in steps of a half


def test_counts_and_sums_of_the_same_rows_are_different_populations() -> None:
    assert [one.name for one in populations_of("schools").all] == ["schools", "pupils", "pupils, attendance"]


def test_answers_of_which_a_row_has_several_are_apart_from_their_recode() -> None:
    found = populations_of("detailed_race").all
    assert [sorted(one.key.several) for one in found] == [["group"], ["regional_group"]]


def test_every_tally_is_in_one_population() -> None:
    for example in ("acs", "births", "detailed_race", "households", "redistricting_2020", "schools"):
        found = populations_of(example)
        expected = [one.name for one in tallies_of(found.spec, found.domain)]
        assert sorted(one.name for each in found.all for one in each.tallies) == sorted(expected)


@pytest.mark.parametrize(
    ("coarse", "fine"),
    [
        ("population.count", "sex_by_age.count"),
        ("population.count", "race.count"),
        ("population.count", "relationship.count"),
    ],
)
def test_a_total_is_a_margin_of_every_table_of_its_rows(coarse: str, fine: str) -> None:
    assert is_margin("households", "persons", coarse, fine)
    assert not is_margin("households", "persons", fine, coarse)


def test_a_table_of_a_part_of_the_rows_is_no_margin_of_one_that_does_not_tell_that_part() -> None:
    assert not is_margin("households", "persons", "work.count", "sex_by_age.count")  # 16 lies inside an age group
    assert not is_margin("households", "persons", "population.count", "work.count")


def test_a_recode_is_a_margin_of_its_column_and_not_the_reverse() -> None:
    assert is_margin("redistricting_2020", "persons", "institutions.count", "group_quarters.count")
    assert not is_margin("redistricting_2020", "persons", "group_quarters.count", "institutions.count")


def test_a_count_of_usable_values_is_a_margin_of_their_grid_because_of_the_hidden_cell() -> None:
    assert is_margin("births", "births", "birth_weight.usable(weight)", "birth_weight.grid(weight)")
    assert not is_margin("births", "births", "low_weight.all", "birth_weight.usable(weight)")


def test_a_table_whose_column_does_not_apply_to_all_holds_no_total_of_all() -> None:
    assert not is_margin("acs", "persons", "population.count", "marital_status.count")


def test_every_margin_is_read_off_the_finest_tables() -> None:
    assert finest("redistricting_2020", "persons") == ["detailed.count"]
    assert finest("households", "persons") == ["race.count", "relationship.count", "sex_by_age.count", "work.count"]
    assert finest("births", "births") == [
        "birth_weight.grid(weight)", "births_by_sex.count", "weight_by_plurality.usable(weight)",
    ]  # fmt: skip


def test_every_tally_is_finest_or_a_margin_of_one_that_is() -> None:
    for example in ("acs", "births", "households", "schools"):
        found = populations_of(example)
        for one in found.all:
            kept = found.finest(one)
            for each in one.tallies:
                assert each in kept or any(found.is_margin_of(one, each, other) for other in kept)


@cache
def designed(example: str, name: str) -> Design:
    return design(populations_of(example), population(example, name))


@pytest.mark.parametrize(("example", "name"), CORES)
def test_columns_listed_in_full_are_free_and_the_core_is_what_is_left(example: str, name: str) -> None:
    found = designed(example, name)
    free, core = CORES[example, name]
    assert tuple(node[1] for node in found.free) == free
    assert found.core == core
    assert found.is_closed_form == (core == 1)


def test_an_impossible_combination_leaves_the_core() -> None:
    """Eight kinds of quarters by two ages, less minors in nursing facilities."""
    found = designed("redistricting_2020", "persons")
    detailed = found.margins["detailed.count@blocks"].margin
    assert np.linalg.matrix_rank(detailed.cells) == 15
    assert len(detailed.cells) == 16
    assert np.allclose(detailed.cells[3 * 2 + 0], 0)  # code 3 of hhgq, code 0 of votingage: in no coordinate


@pytest.mark.parametrize(("example", "name"), CORES)
def test_numbers_come_back_from_a_margin_as_they_went_in(example: str, name: str) -> None:
    for one in designed(example, name).margins.values():
        numbers = np.arange(2 * one.tally.cells).reshape(2, -1)
        there = one.to_margin(numbers)
        assert there.shape[:2] == (2, len(one.margin.cells))
        assert np.array_equal(one.from_margin(there), numbers)


CROSSED = """
margrave: 1
release: {name: crossed, title: Three ways to halve three codes}
microdata:
  persons:
    key: id
    columns: {c: {codes: [1, 2, 3], outside: {count_as: 1}, missing: {count_as: 1}}}
recodes:
  one:   {of: c, into: {X: [1], Y: [2, 3]}}
  two:   {of: c, into: {X: [2], Y: [1, 3]}}
  three: {of: c, into: {X: [3], Y: [1, 2]}}
privacy: {protect: persons, neighbours: add-remove, budget: {rho: 1, delta: 1e-10}}
tables:
  first:  {count: persons, by: [one]}
  second: {count: persons, by: [two]}
  third:  {count: persons, by: [three]}
spend: {by_table: {rest: optimal}}
publish: {confidence: 90%}
"""


def test_recodes_that_cross_tell_their_codes_apart_together(tmp_path: Path) -> None:
    found = from_loaded(load_text(CROSSED, file="crossed.yaml", folder=tmp_path))
    (one,) = found.all
    assert [len(column) for column in one.columns.values()] == [3]
    assert len(found.finest(one)) == 3
    made = design(found, one)
    assert (made.free, made.core) == ((), 3)
