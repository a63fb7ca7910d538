"""Shapes of planned queries against the product's own counts: no neighbour moves a query further than it is charged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from flows.plan import Plan, plan_release
from flows.planning.shapes import attributes_of, sensitivity_of, shape_of, unit_of
from flows.terminal import UserError
from mechanisms.sensitivity import Counts, Decides, Relation, Rows, Sensitivity, Sums, Unit
from release_specs.load import load_text
from release_specs.meanings import Meanings
from release_specs.tallies import tallies_of
from tabulation.synthesize import synthesize
from tests.flows.plans import EXAMPLES, example, planned, small, small_spec
from tests.tabulation import small_towns
from tests.tabulation.many_towns import PARTS, Towns, counted, furthest
from tests.tabulation.neighbours import norms
from tests.tabulation.test_neighbours import Base
from tests.tabulation.wild_units import CHANGES, Change, Table, changed

TOWNS: dict[str, Callable[[], Towns]] = {
    "records without groups": small_towns.alone,
    "records in groups of which two count": lambda: small_towns.shared("at_most: {people: 2, keep_first: {x: b}}"),
    "groups of which two count": lambda: small_towns.homes("at_most: {people: 2, keep_first: {x: b, kind: F}}"),
    "groups beside singles": lambda: small_towns.homes_with_singles("at_most: {people: 2}"),
    "groups that are built from rows": lambda: small_towns.mothers(2),
    "records of which groups are built": lambda: small_towns.births(2),
}


def moved_further(towns: Towns, folder: Path, members: int | None = None) -> tuple[set[str], set[str]]:
    """Tallies that some unit moves further than the plan's shape allows, and those that one moves as far.

    A town is a release of its own: a query of one town has as many cells as a town has areas, times those of the tally.
    """
    loaded, outcome = counted(towns, folder)
    meanings = Meanings(loaded.spec, loaded.domain)
    unit = unit_of(loaded.spec) if members is None else Unit(members)
    tallies = {tally.name: tally for tally in tallies_of(loaded.spec, loaded.domain)}
    further, as_far = set(), set()
    for found in furthest(towns, loaded, outcome):
        tally = tallies[found.tally]
        shape = shape_of(meanings, tally, found.level)
        assert isinstance(shape, Counts | Sums)
        areas = len(PARTS) if found.level == "part" else 1
        allowed = replace(shape, one_cell=areas * tally.cells == 1).sensitivity(unit, found.relation)
        if found.moved[0] > allowed.l1 or found.moved[1] > allowed.l2_squared:
            further.add(found.tally)
        if found.moved == (allowed.l1, allowed.l2_squared):
            as_far.add(found.tally)
    return further, as_far


@pytest.mark.parametrize("name", TOWNS)
def test_over_all_small_towns_no_unit_moves_a_query_further_than_it_is_charged(name: str, tmp_path: Path) -> None:
    further, as_far = moved_further(TOWNS[name](), tmp_path)
    assert further == set()
    assert as_far


def test_a_shape_for_smaller_groups_would_be_noticed(tmp_path: Path) -> None:
    further, _ = moved_further(TOWNS["groups that are built from rows"](), tmp_path, members=1)
    assert {"births.count@towns", "births_by_age.count@towns"} <= further


@pytest.mark.parametrize(
    "name",
    ["households", "redistricting_2020", *(pytest.param(one, marks=pytest.mark.slow) for one in ("births", "schools"))],
)
def test_a_unit_that_says_anything_moves_no_query_of_an_example_further_than_it_is_charged(
    name: str, tmp_path: Path
) -> None:
    loaded, plan = example(name), planned(name)
    made = synthesize(
        loaded.spec,
        loaded.domain,
        out=tmp_path / "made",
        folder=EXAMPLES,
        records=150,
        seed=7,
        dirt=Fraction(3, 100),
        form="csv",
    )
    files = {one.entity: Table.read(one.path, loaded.spec.microdata[one.entity].read.delimiter) for one in made}
    base = Base(loaded, files, tmp_path, "csv")
    for seed, kind in enumerate(one for one in CHANGES if one != "odd line"):
        change = Change(kind, 7, seed)
        if change.exchanges and plan.charges[0].relation is Relation.ADD_REMOVE:
            continue
        other = base.run(changed(loaded, files, change), plan.counted)
        assert other.error is None
        for query in plan.queries:
            key = (query.tally.name, query.level)
            l1, l2_squared = norms(other.counts[key] - base.outcome.counts[key])
            assert l1 <= query.charge.sensitivity.l1, (query.name, kind)
            assert l2_squared <= query.charge.sensitivity.l2_squared, (query.name, kind)


def shapes(plan: Plan) -> dict[str, Counts | Sums]:
    found = {query.name: query.charge.shape for query in plan.queries}
    return {name: shape for name, shape in found.items() if isinstance(shape, Counts | Sums)}


def test_a_query_is_of_one_cell_only_where_the_whole_of_it_is_one(tmp_path: Path) -> None:
    found = {name for name, shape in shapes(small(tmp_path)).items() if shape.one_cell}
    assert found == {"total.count@land:land", "sums.sum(n)@land:land"}


def test_a_hidden_cell_is_a_cell() -> None:
    text = """
margrave: 1
release: {name: small, title: Small}
microdata: {rows: {columns: {x: {codes: [a], outside: leave_out, missing: leave_out}}}}
privacy: {protect: rows, neighbours: replace, budget: {rho: 1, delta: 1e-9}}
tables: {t: {count: rows, by: [x]}, u: {count: rows}}
"""
    plan = plan_release(load_text(text, file="small.yaml", folder=Path()), folder=Path())
    found = shapes(plan)
    assert {name: shape.one_cell for name, shape in found.items()} == {"t.count:whole": False, "u.count:whole": True}
    assert plan.charges[0].sensitivity == Sensitivity(Fraction(2), Fraction(2))
    assert plan.charges[1].sensitivity == Sensitivity(Fraction(1), Fraction(1))


def test_sums_are_priced_by_their_clip_in_ticks_whatever_is_valid(tmp_path: Path) -> None:
    found = shapes(small(tmp_path))["sums.sum(n)@land:part"]
    assert found == Sums(0, 20)  # the clip 0..10 in halves


def test_several_answers_are_as_many_cells_as_a_row_may_be_in() -> None:
    found = shapes(planned("detailed_race"))
    assert {shape.answers for shape in found.values() if isinstance(shape, Counts)} == {9}


def test_what_belongs_to_the_group_or_is_derived_from_members_is_told_from_the_rows_own() -> None:
    found = {**shapes(planned("households")), **shapes(planned("schools"))}
    own = found["income.usable(hincp)@zones:county"]
    assert (own.of, own.by, own.cap) == (Rows.GROUPS, Decides.OWN, None)
    derived = found["household_size.count@zones:taz"]
    assert (derived.of, derived.by) == (Rows.GROUPS, Decides.MEMBERS)
    inherited = found["pupils_by_type.count@communes:north"]
    assert (inherited.of, inherited.by, inherited.cap) == (Rows.RECORDS, Decides.GROUP, 60)
    births = shapes(planned("births"))["maternities.count@cantons:canton"]
    assert births.by is Decides.MEMBERS  # the canton of a mother is read off her births


def test_a_table_with_singles_is_priced_as_one_of_groups() -> None:
    (charge,) = [one for one in planned("households").charges if one.query == "population.count@zones:taz"]
    assert charge.unit == Unit(members=6)
    assert charge.sensitivity == Sensitivity(Fraction(6), Fraction(36))


def test_whoever_is_protected_a_table_has_the_same_shape(tmp_path: Path) -> None:
    towns = small_towns.shared("at_most: {people: 2}")
    (tmp_path / "areas.csv").write_text("part,town\nA,T\n", encoding="utf-8")
    found = []
    for protected in ("people", "homes"):
        text = towns.spec.replace("protect: people", f"protect: {protected}")
        loaded = load_text(text, file="small.yaml", folder=tmp_path)
        meanings = Meanings(loaded.spec, loaded.domain)
        tallies = tallies_of(loaded.spec, loaded.domain)
        found.append([shape_of(meanings, tally, level) for tally in tallies for level in tally.levels])
    assert found[0] == found[1]


def test_every_column_that_has_a_say_is_among_the_attributes_of_a_charge() -> None:
    loaded = example("households")
    tallies = {tally.table: tally for tally in tallies_of(loaded.spec, loaded.domain)}
    meanings = Meanings(loaded.spec, loaded.domain)
    assert attributes_of(meanings, tallies["household_size"]) == {
        "households.type",
        "households.size",
        "households.children",
        "persons.age",
        "persons.relate",
    }
    assert attributes_of(meanings, tallies["work"]) == {"persons.esr", "persons.age", "persons.sex", "persons.relate"}


def test_a_table_that_the_law_has_no_line_for_is_refused_by_name(tmp_path: Path) -> None:
    loaded = small_spec(tmp_path)
    tally = next(one for one in tallies_of(loaded.spec, loaded.domain) if one.table == "sums")
    beside_a_cap = Sums(0, 20, cap=3)
    with pytest.raises(UserError, match=r"tables\.sums: sum\(n\) has no proved bound on one of persons"):
        sensitivity_of(beside_a_cap, loaded.spec, tally=tally)
    meanings = Meanings(loaded.spec, loaded.domain)
    assert tally.adds is not None
    zeros = replace(tally, adds=replace(tally.adds, low=0, high=0))
    with pytest.raises(UserError, match=r"tables\.sums: sum\(n\) has no price: a sum of zeros"):
        shape_of(meanings, zeros, "land")
    with pytest.raises(UserError, match="are not tied to persons"):
        shape_of(meanings, replace(tally, entity="others"), "land")
