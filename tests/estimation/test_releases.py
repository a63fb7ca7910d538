"""Whole releases of the examples, from made-up measurements to tables: what is published keeps every promise."""

from __future__ import annotations

import numpy as np
import pytest

from estimation.release import estimate_release
from estimation.settling import MOST_OFF
from tests.estimation.made_up import Laplace, Normal, measured
from tests.estimation.promises import broken, rule_sides
from tests.estimation.releases import NAMES, Release, example, housed, places_of, truth_of

NOISES = {"births": Laplace(2.0), "detailed_race": Normal(16.0)}
MAY_DIFFER = {"acs": (2, {"walking_thinking", "industry", "income", "income_by_sex"})}
"""Tables settled in a histogram whose own detail nobody measured, as their columns cross those of others."""


@pytest.mark.parametrize("name", NAMES)
def test_measurements_without_noise_give_back_the_truth(name: str) -> None:
    truth = truth_of(name, 4)
    found = example(name).estimate(truth, Normal(4.0), None)
    for tally, level in places_of(found):
        expected = truth[tally.name, level] if (tally.name, level) in truth else found.value(tally, level)
        assert np.abs(found.estimate(tally, level) - expected).max() < 1e-6, (tally.name, level)
        most, crossed = MAY_DIFFER.get(name, (0, set()))
        allowed = most if tally.table in crossed and tally.adds is None else 0
        assert np.abs(found.value(tally, level) - expected).max() <= allowed, (tally.name, level)


@pytest.mark.parametrize("name", NAMES)
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


def test_a_region_of_one_canton_is_that_canton() -> None:
    found = example("births").estimate(truth_of("births", 15), Laplace(2.0), 16)
    tally = example("births").tally("maternities")
    assert tally.spine is not None
    regions, cantons = ([area.code for area in tally.spine.areas[level]] for level in ("region", "canton"))
    for region, canton in (("R4", "ZH"), ("R7", "TI")):
        for read in (found.value, found.estimate):
            above, below = read(tally, "region")[regions.index(region)], read(tally, "canton")[cantons.index(canton)]
            assert np.allclose(above, below)


def test_an_impossible_cell_is_zero_in_every_area() -> None:
    release = example("redistricting_2020")
    detailed = release.tally("detailed")
    found = release.estimate(release.truth(13), Normal(25.0), 14)
    for level in detailed.levels:
        cube = found.value(detailed, level).reshape(-1, *detailed.shape)
        assert (cube[:, 3, 0] == 0).all()  # no minors in nursing facilities
        assert np.abs(found.estimate(detailed, level).reshape(-1, *detailed.shape)[:, 3, 0]).max() < 1e-9


@pytest.mark.parametrize("name", ["births", "households", "redistricting_2020", "schools"])
def test_every_family_has_a_certificate_within_the_tolerance(name: str) -> None:
    found = example(name).estimate(truth_of(name, 17), Normal(9.0), 18)
    populations = {one.planned.population.name for one in found.done}
    assert {owner for owner, _ in found.certificates} == populations
    for _, certificate in found.certificates:
        assert (certificate.off < MOST_OFF).all()
        assert (certificate.moved >= 0).all()
        assert len(certificate.off) == len(certificate.sweeps) == len(certificate.moved)


@pytest.mark.parametrize("name", NAMES)
def test_published_numbers_stay_near_the_unbiased_estimates(name: str) -> None:
    """Numbers that add up but have nothing to do with what was measured would keep every other promise."""
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
