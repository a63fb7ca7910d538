"""Whole releases, from made-up measurements to tables: what is published keeps every promise of its spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from estimation.errors import Infeasible
from estimation.measurement import Measurement
from estimation.release import Estimated, estimate_release
from estimation.settling import MOST_OFF
from release_specs.diagnostics import SpecError
from release_specs.tallies import Tally
from tests.estimation.made_up import Laplace, Normal, Truth, measured
from tests.estimation.promises import broken, rule_sides
from tests.estimation.releases import Release, example, housed, places_of, small
from tests.estimation.small_specs import AREAS, HOMES, HOUSES, ONE_AREA, REGISTER, SECTIONS, spec

pytestmark = pytest.mark.slow  # whole releases of every kind

EXAMPLES = ("acs", "births", "detailed_race", "households", "redistricting_2020", "schools")
NOISES = {"births": Laplace(2.0), "detailed_race": Normal(16.0)}
MAY_DIFFER = {
    "acs": (2, {"walking_thinking", "industry", "income", "income_by_sex", "marital_status", "education", "deciles"}),
    "schools": (1, {"chronic_absence"}),
}
"""Tables settled in a histogram whose own detail nobody measured, as their columns cross those of others."""


def truth_of(name: str, seed: int) -> Truth:
    return housed(example(name), seed, others=2000) if name == "households" else example(name).truth(seed)


def bytes_of(found: Estimated) -> list[bytes]:
    numbers = [(found.value(*place), found.estimate(*place)) for place in places_of(found)]
    return [np.ascontiguousarray(one).tobytes() for pair in numbers for one in pair]


@pytest.mark.parametrize("name", EXAMPLES)
def test_measurements_without_noise_give_back_the_truth(name: str) -> None:
    truth = truth_of(name, 4)
    found = example(name).estimate(truth, Normal(4.0), None)
    for tally, level in places_of(found):
        expected = truth[tally.name, level] if (tally.name, level) in truth else found.value(tally, level)
        assert np.abs(found.estimate(tally, level) - expected).max() < 1e-6, (tally.name, level)
        most, crossed = MAY_DIFFER.get(name, (0, set()))
        allowed = most if tally.table in crossed and tally.adds is None else 0
        assert np.abs(found.value(tally, level) - expected).max() <= allowed, (tally.name, level)


@pytest.mark.parametrize("name", EXAMPLES)
def test_with_noise_a_release_keeps_everything_it_promises(name: str) -> None:
    truth = truth_of(name, 5)
    found = example(name).estimate(truth, NOISES.get(name, Normal(9.0)), 6)
    assert broken(found, [*example(name).exact(truth), *example(name).problem.public]) == []


def test_the_checks_of_these_tests_see_a_number_that_is_off_by_one() -> None:
    found = example("births").estimate(truth_of("births", 5), Normal(9.0), 6)
    settled = next(one.settled for one in found.done if one.planned.population.name == "births")
    level, name = next(
        place for place in settled.whole if place[1].startswith("births_by_sex") and place[0] == "region"
    )
    settled.whole[level, name][0, 0] += 1
    sentences = broken(found)
    assert any("does not add up" in sentence for sentence in sentences)
    assert any("numbers of" in sentence and "off by 1" in sentence for sentence in sentences)


def test_a_rule_that_binds_in_many_areas_holds_in_all() -> None:
    release = example("households")
    found = release.estimate(housed(release, 7, others=200), Normal(100.0), 8)
    population, units = (release.tally(name) for name in ("population", "household_size"))
    people = found.estimate(population, "taz").sum(axis=1)
    homes = found.estimate(units, "taz").sum(axis=1)
    assert np.mean(people < homes) > 0.1  # left to themselves, the estimates would break it
    sides = {words: (left, right) for words, _, left, right in rule_sides(found)}
    left, right = sides["population >= household_size at taz"]
    assert np.mean(left == right) > 0.1
    assert (left >= right).all()
    assert broken(found, release.problem.public) == []


def test_adults_never_outnumber_persons_and_public_totals_hold() -> None:
    release = example("households")
    found = release.estimate(housed(release, 9, others=500), Normal(400.0), 10)
    for level in ("county", "district"):
        adults = found.value(release.tally("work"), level).sum(axis=1)
        assert (adults <= found.value(release.tally("population"), level).sum(axis=1)).all()
    (public,) = release.problem.public
    assert found.value(release.tally("household_size"), "county").sum() == public.numbers.sum()


def test_exact_state_totals_hold_in_every_table() -> None:
    release = example("redistricting_2020")
    truth = release.truth(11)
    found = release.estimate(truth, Normal(9.0), 12)
    states = truth["total.count@blocks", "state"].sum(axis=1)
    for tally in release.measured:
        assert np.array_equal(found.value(tally, "state").sum(axis=1), states)
        assert np.allclose(found.estimate(tally, "state").sum(axis=1), states)


def test_an_impossible_cell_is_zero_in_every_area() -> None:
    release = example("redistricting_2020")
    detailed = release.tally("detailed")
    found = release.estimate(release.truth(13), Normal(25.0), 14)
    for level in detailed.levels:
        cube = found.value(detailed, level).reshape(-1, *detailed.shape)
        assert (cube[:, 3, 0] == 0).all()  # no minors in nursing facilities
        assert np.abs(found.estimate(detailed, level).reshape(-1, *detailed.shape)[:, 3, 0]).max() < 1e-9


@pytest.mark.parametrize("name", ["households", "redistricting_2020", "schools"])
def test_workers_chunks_and_repetition_change_no_byte(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    release, truth = example(name), truth_of(name, 15)
    expected = bytes_of(release.estimate(truth, Normal(9.0), 16, workers=1))
    assert bytes_of(release.estimate(truth, Normal(9.0), 16, workers=1)) == expected
    assert bytes_of(release.estimate(truth, Normal(9.0), 16, workers=4)) == expected
    for most in (1, 30_000):
        monkeypatch.setattr("estimation.estimate.FAMILY_CELLS", most)
        monkeypatch.setattr("estimation.least_squares.FAMILY_CELLS", most)
        assert bytes_of(release.estimate(truth, Normal(9.0), 16, workers=3)) == expected


def test_other_noise_gives_other_numbers() -> None:
    release, truth = example("schools"), truth_of("schools", 15)
    assert bytes_of(release.estimate(truth, Normal(9.0), 1)) != bytes_of(release.estimate(truth, Normal(9.0), 2))


@pytest.mark.parametrize("name", ["births", "households", "redistricting_2020", "schools"])
def test_every_family_has_a_certificate_within_the_tolerance(name: str) -> None:
    found = example(name).estimate(truth_of(name, 17), Normal(9.0), 18)
    populations = {one.planned.population.name for one in found.done}
    assert {owner for owner, _ in found.certificates} == populations
    for _, certificate in found.certificates:
        assert (certificate.off < MOST_OFF).all()
        assert (certificate.moved >= 0).all()
        assert len(certificate.off) == len(certificate.sweeps) == len(certificate.moved)


def test_published_numbers_stay_near_the_unbiased_estimates() -> None:
    """Numbers that add up but have nothing to do with what was measured would keep every other promise."""
    for name in ("births", "redistricting_2020", "schools"):
        found = example(name).estimate(truth_of(name, 19), Normal(9.0), 20)
        for tally, level in places_of(found):
            away = np.abs(found.value(tally, level) - np.maximum(found.estimate(tally, level), 0.0))
            assert tally.adds is not None or away.max() < 40, (name, tally.name, level)


def test_progress_names_populations_and_levels() -> None:
    release: Release = example("schools")
    said: list[str] = []
    given = measured(truth_of("schools", 21), release.measured, Normal(4.0), None)
    estimate_release(release.problem, given, progress=said.append)
    assert said[0] == "schools"
    assert {"pupils", "region", "commune"} <= set(said)


def made(tables: dict[str, str], folder: Path, *, areas: str = AREAS, **more: Any) -> Release:
    return small(spec(tables, **more), folder, areas=areas, sections=SECTIONS)


def noisy(release: Release, seed: int = 1, *, rows: int = 60) -> Estimated:
    """A small release with more noise than numbers."""
    truth = release.truth(seed, rows=rows)
    found = release.estimate(truth, Normal(9.0), seed)
    assert broken(found, release.exact(truth)) == []
    return found


SHAPES = {
    "no geography": ({"one": "count: persons, by: [a, b]", "two": "count: adults, by: [work, a]"}, ""),
    "one cell": ({"all_of_them": "count: persons"}, ""),
    "one area": (
        {"one": "count: persons, by: [a, b], at: land", "two": "count: persons, by: [b, c], at: land"},
        "land",
    ),
    "one cell in one area": ({"all_of_them": "count: persons, at: land"}, "land"),
    "one level of several": (
        {"one": "count: persons, by: [a], at: spot", "two": "count: persons, at: spot"},
        "land, part, spot",
    ),
    "levels apart": (
        {"one": "count: persons, by: [a, c], at: land", "two": "count: persons, by: [a, b], at: spot"},
        "land, part, spot",
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_release_of_any_shape_keeps_its_promises(shape: str, tmp_path: Path) -> None:
    tables, levels = SHAPES[shape]
    release = made(tables, tmp_path, levels=levels, areas=ONE_AREA if levels == "land" else AREAS)
    noisy(release)
    truth = release.truth(2, rows=50)
    exact = release.estimate(truth, Normal(9.0), None)
    for tally, level in places_of(exact):
        assert np.array_equal(exact.value(tally, level), truth[tally.name, level])


def test_nobody_at_all_is_published_as_zeros(tmp_path: Path) -> None:
    release = made({"one": "count: persons, by: [a, b], at: all"}, tmp_path)
    found = release.estimate(release.truth(1, rows=0), Normal(9.0), None)
    assert all((found.value(*place) == 0).all() for place in places_of(found))


def test_an_only_child_is_its_parent(tmp_path: Path) -> None:
    release = made({"one": "count: persons, by: [a, b], at: all", "two": "count: adults, at: all"}, tmp_path)
    found = noisy(release)
    for name in ("one", "two"):
        tally = release.tally(name)
        assert np.array_equal(found.value(tally, "part")[1], found.value(tally, "spot")[2])
        assert np.allclose(found.estimate(tally, "part")[1], found.estimate(tally, "spot")[2])
        assert np.allclose(found.deviation(tally, "part")[1], found.deviation(tally, "spot")[2])


def test_two_spines_agree_on_the_whole_that_they_share(tmp_path: Path) -> None:
    tables = {
        "one": "count: persons, by: [a], at: [land, spot]",
        "two": "count: persons, by: [a, c], at: [ground, section]",
    }
    release = made(tables, tmp_path, sections=True)
    found = noisy(release)
    one, two = release.tally("one"), release.tally("two")
    cube = found.value(two, "section").sum(axis=0).reshape(two.shape)
    assert np.array_equal(found.value(one, "spot").sum(axis=0), cube.sum(axis=1))
    assert np.array_equal(found.value(one, "land")[0], cube.sum(axis=1))


def test_a_table_at_levels_of_two_spines_is_one_number_on_their_whole(tmp_path: Path) -> None:
    release = made({"one": "count: persons, by: [a], at: [land, part, ground, section]"}, tmp_path, sections=True)
    found = noisy(release)
    land, ground = (one for one in release.measured)
    assert np.array_equal(found.value(land, "land"), found.value(ground, "ground"))


def test_a_table_that_is_not_measured_is_read_off_finer_ones(tmp_path: Path) -> None:
    release = made(
        {"fine": "count: persons, by: [a, b], at: all", "coarse": "count: persons, by: [half], at: all"}, tmp_path
    )
    truth = release.truth(3, rows=60)
    fine, coarse = release.tally("fine"), release.tally("coarse")
    given = measured(truth, [fine], Normal(9.0), np.random.default_rng(4))
    found = release.from_measurements(given, truth)
    assert broken(found) == []
    for level in fine.levels:
        cube = found.value(fine, level).reshape(-1, *fine.shape).sum(axis=1)
        groups = np.stack([cube[:, 0], cube[:, 1:4].sum(axis=1), cube[:, 4]], axis=1)
        assert np.array_equal(found.value(coarse, level), groups)
        assert found.is_known(coarse, level)
        assert (found.deviation(coarse, level) > found.deviation(fine, level).min()).all()


def test_a_level_that_is_not_measured_is_summed_from_below(tmp_path: Path) -> None:
    release = made({"one": "count: persons, by: [a, b], at: all"}, tmp_path)
    truth = release.truth(5, rows=60)
    every = measured(truth, release.measured, Normal(9.0), np.random.default_rng(6))
    found = release.from_measurements([one for one in every if one.level == "spot"], truth)
    assert broken(found) == []
    one = release.tally("one")
    whole = sum(each.numbers for each in every if each.level == "spot").sum(axis=0)
    assert np.allclose(found.estimate(one, "land")[0], whole)


def test_sums_add_up_over_levels_and_are_negative_only_where_the_clip_is(tmp_path: Path) -> None:
    tables = {
        "gains": "sum: gain, of: persons, by: [a], at: all",
        "costs": "sum: cost, of: persons, by: [a, b], at: all",
        "more_costs": "sum: cost, of: persons, by: [b], at: all",
    }
    release = made(tables, tmp_path)
    truth = release.truth(7, rows=60)
    truth = {place: -numbers if place[0].startswith("gains") else numbers for place, numbers in truth.items()}
    exact = release.estimate(truth, Normal(9.0), None)
    for tally, level in places_of(exact):
        assert np.array_equal(exact.value(tally, level), truth[tally.name, level])
    found = release.estimate(truth, Normal(400.0), 8)
    assert broken(found) == []
    assert any((found.value(release.tally("gains"), level) < 0).any() for level in ("part", "spot"))
    assert any((found.estimate(release.tally("costs"), level) < 0).any() for level in ("part", "spot"))


def test_answers_of_which_a_row_has_several_need_not_add_to_the_rows(tmp_path: Path) -> None:
    tables = {
        "tongues": "count: persons, by: [tongue], at: all",
        "tongues_by_a": "count: persons, by: [tongue, a], at: all",
        "people": "count: persons, by: [a], at: all",
    }
    release = made(tables, tmp_path)
    truth = release.truth(9, rows=60)
    truth = {place: 2 * numbers if place[0].startswith("tongues") else numbers for place, numbers in truth.items()}
    exact = release.estimate(truth, Normal(9.0), None)
    for tally, level in places_of(exact):
        assert np.array_equal(exact.value(tally, level), truth[tally.name, level])
    found = release.estimate(truth, Normal(9.0), 10)
    assert broken(found) == []
    assert found.value(release.tally("tongues"), "land").sum() > found.value(release.tally("people"), "land").sum()


def test_a_randomised_response_has_a_cell_for_everyone_else(tmp_path: Path) -> None:
    tables = {
        "asked": "count: adults, by: [a], at: all, mechanism: randomised_response",
        "people": "count: persons, by: [a], at: all",
    }
    exact = "exact:\n  - {count: persons, at: [land, part, spot], from: microdata, because: Everyone is registered.}"
    release = made(tables, tmp_path, extra=exact)
    asked = release.tally("asked")
    assert (asked.cells, asked.elsewhere) == (4, True)
    found = noisy(release)
    assert found.value(asked, "spot").shape == (6, 4)
    assert (found.value(asked, "spot") >= 0).all()


def test_recodes_that_cross_agree_in_whole_numbers(tmp_path: Path) -> None:
    """Three ways to halve three codes: their first halves add to all, in numbers that noise alone would not give."""
    extra = "impossible:\n  - {a: 3, c: 2}"
    text = spec({"one": "count: persons, by: [r1], at: all", "two": "count: persons, by: [r2], at: all",
                 "three": "count: persons, by: [r3], at: all", "four": "count: persons, by: [a, c], at: land"}, extra=extra)  # fmt: skip  # noqa: E501
    recodes = "recodes:\n" + "".join(
        f"  r{n}: {{of: a, into: {{X: [{n}], Y: {[code for code in (1, 2, 3) if code != n]}}}}}\n" for n in (1, 2, 3)
    )
    release = small(text.replace("recodes:\n", recodes), tmp_path, areas=AREAS)
    found = noisy(release)
    for level in ("land", "part", "spot"):
        first = sum(found.value(release.tally(name), level)[:, 0] for name in ("one", "two", "three"))
        assert np.array_equal(first, found.value(release.tally("one"), level).sum(axis=1))


def homes(folder: Path, register: str = REGISTER) -> tuple[Release, Truth]:
    """A release of homes and people that keep the rule: two people in every home."""
    release = small(HOMES, folder, areas=AREAS, register=register)
    houses, folk = release.tally("houses"), release.tally("folk")
    spots, truth = np.array(HOUSES), Truth()
    for level, starts in (("land", [0]), ("part", [0, 2, 3]), ("spot", range(6))):
        truth[houses.name, level] = np.add.reduceat(spots, starts, axis=0)
        truth[folk.name, level] = np.repeat(truth[houses.name, level], 2, axis=1)
    (exact,) = (one for one in release.tallies if one.table == "exact")
    return release, truth | {
        (exact.name, level): truth[houses.name, level].sum(axis=1)[:, None] for level in exact.levels
    }


def test_a_rule_holds_code_by_code_beside_exact_totals(tmp_path: Path) -> None:
    release, truth = homes(tmp_path)
    exact = release.estimate(truth, Normal(9.0), None)
    for tally, level in (
        (release.tally(name), level) for name in ("houses", "folk") for level in ("land", "part", "spot")
    ):
        assert np.array_equal(exact.value(tally, level), truth[tally.name, level])
    bound = 0
    for seed in range(8):
        found = release.estimate(truth, Normal(50.0), seed)
        assert broken(found, [*release.exact(truth), *release.problem.public]) == []
        for words, _, left, right in rule_sides(found):
            assert left.shape == (left.shape[0], 2), words
            bound += int((left == right).sum())
    assert bound > 8


def test_exact_totals_that_contradict_each_other_are_refused_by_name(tmp_path: Path) -> None:
    release, truth = homes(tmp_path)
    (exact,) = (one for one in release.tallies if one.table == "exact")
    truth[exact.name, "land"] = truth[exact.name, "land"] + 1
    with pytest.raises(Infeasible, match=r"the exact total of homes.*contradict"):
        release.estimate(truth, Normal(4.0), 1)


def test_exact_totals_that_break_a_rule_are_refused(tmp_path: Path) -> None:
    release, truth = homes(tmp_path, REGISTER.replace("a,12", "a,5"))
    with pytest.raises(Infeasible, match="level 'part': rules and exact totals leave no number for some cells"):
        release.estimate(truth, Normal(4.0), 1)


def test_a_rule_that_exact_totals_leave_no_room_beside_holds_with_equality(tmp_path: Path) -> None:
    release, truth = homes(tmp_path, REGISTER.replace("12", "6").replace("16", "8"))  # as many people as homes
    for seed in range(4):
        found = release.estimate(truth, Normal(20.0), seed)
        assert broken(found, [*release.exact(truth), *release.problem.public]) == []
        assert all(np.array_equal(left, right) for _, _, left, right in rule_sides(found))


def test_a_rule_between_parts_of_the_same_rows_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    tables = {"one": "count: persons, by: [a], at: all", "two": "count: adults, at: all"}
    with pytest.raises(SpecError, match="rule-same-rows"):
        made(tables, tmp_path, extra="rules:\n  - one(a=1) >= two")


def test_a_table_in_which_everything_is_impossible_is_refused_by_its_columns(tmp_path: Path) -> None:
    tables = {"one": "count: persons, by: [a, c], at: all"}
    with pytest.raises(Infeasible, match="every combination of a, c is impossible"):
        made(tables, tmp_path, extra="impossible:\n  - {a: [1, 2, 3], c: [1, 2]}")


def test_areas_and_codes_in_another_order_give_the_same_numbers_in_that_order(tmp_path: Path) -> None:
    tables = {"one": "count: persons, by: [a, b], at: all", "two": "count: adults, by: [work, c], at: all",
              "three": "count: persons, by: [half, ages], at: [land, part]"}  # fmt: skip
    there, back = tmp_path / "there", tmp_path / "back"
    there.mkdir()
    back.mkdir()
    text = spec(tables)
    turned = text.replace("[1, 2, 3, 4], outside", "[3, 1, 4, 2], outside").replace(
        "[1, 2, 3], outside", "[2, 3, 1], outside"
    )
    header, *lines = AREAS.splitlines()
    first = small(text, there, areas=AREAS)
    other = small(turned, back, areas="\n".join([header, *reversed(lines), ""]))
    truth = first.truth(12, rows=200)
    given = measured(truth, first.measured, Normal(9.0), np.random.default_rng(13))
    mine = first.from_measurements(given, truth)
    again = [Measurement(other.tally(one.tally.name), one.level, _turned(one, other), one.noise) for one in given]
    theirs = other.from_measurements(again, truth)
    assert text != turned
    for tally, level in places_of(mine):
        twin = other.tally(tally.name)
        move = _order(tally, twin, level)
        assert np.array_equal(mine.value(tally, level)[move], theirs.value(twin, level))
        assert np.allclose(mine.estimate(tally, level)[move], theirs.estimate(twin, level), atol=1e-9)


def _turned(one: Measurement, other: Release) -> npt.NDArray[np.int64]:
    return one.numbers[_order(one.tally, other.tally(one.tally.name), one.level)]


def _order(tally: Tally, twin: Tally, level: str | None) -> tuple[npt.NDArray[np.int64], ...]:
    """Where the areas and cells of a twin are found in a table."""
    assert tally.spine is not None
    assert twin.spine is not None
    codes = [area.code for area in tally.spine.areas[level or ""]]
    areas = np.array([codes.index(area.code) for area in twin.spine.areas[level or ""]])
    cells = np.arange(tally.cells).reshape(tally.shape)
    for axis, (one, other) in enumerate(zip(tally.attributes, twin.attributes, strict=True)):
        known = [category.code for category in one.categories]
        places = [known.index(category.code) for category in other.categories] + [len(known)] * one.hidden
        cells = cells.take(places, axis=axis)
    return np.ix_(areas, cells.reshape(-1))
