"""Small releases, each written for one question: odd shapes, spines, sums, answers, recodes, unmeasured tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimation.errors import Infeasible
from tests.estimation.made_up import Normal, measured
from tests.estimation.promises import broken
from tests.estimation.releases import gives_back, made, noisy, places_of, small
from tests.estimation.small_specs import AREAS, ONE_AREA, spec

SHAPES: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "no geography": ({"one": "count: persons, by: [a, b]", "two": "count: adults, by: [work, a]"}, {"levels": ""}),
    "one cell": ({"all_of_them": "count: persons"}, {"levels": ""}),
    "one area": (
        {"one": "count: persons, by: [a, b], at: land", "two": "count: persons, by: [b, c], at: land"},
        {"levels": "land", "areas": ONE_AREA},
    ),
    "one cell in one area": ({"all_of_them": "count: persons, at: land"}, {"levels": "land", "areas": ONE_AREA}),
    "one level of several": ({"one": "count: persons, by: [a], at: spot", "two": "count: persons, at: spot"}, {}),
    "levels apart": (
        {"one": "count: persons, by: [a, c], at: land", "two": "count: persons, by: [a, b], at: spot"},
        {},
    ),
    "a part below its whole": ({"one": "count: persons, at: land", "two": "count: adults, at: all"}, {}),
    "a part below its whole by one column": (
        {"one": "count: persons, by: [a], at: land", "two": "count: adults, by: [a], at: all"},
        {},
    ),
    "only children all the way down": (
        {"one": "count: persons, by: [a, b], at: all", "two": "count: adults, by: [a], at: spot"},
        {"areas": "land,part,spot\nL,a,a1\n"},
    ),
    "many parts of which all but one hold one area": (
        {"one": "count: persons, by: [a], at: all", "two": "count: persons, by: [c], at: [land, spot]"},
        {"areas": "land,part,spot\nL,a,a1\nL,b,b1\nL,c,c1\nL,d,d1\nL,d,d2\nL,d,d3\nL,d,d4\n"},
    ),
    "spines of unequal depth below one whole": (
        {
            "one": "count: persons, by: [a], at: [land, part, spot]",
            "two": "count: persons, by: [a, c], at: [ground, section]",
            "three": "count: persons, by: [c], at: ground",
        },
        {"sections": True},
    ),
    "spines that meet in nothing but their whole": (
        {"one": "count: persons, by: [a], at: spot", "two": "count: persons, by: [c], at: section"},
        {"sections": True},
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_release_of_any_shape_keeps_its_promises(shape: str, tmp_path: Path) -> None:
    tables, written = SHAPES[shape]
    release = made(tables, tmp_path, **written)
    for seed in range(4):
        noisy(release, seed)
        truth = release.truth(seed, rows=50)
        gives_back(release, truth)


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


@pytest.mark.parametrize("tables", [("grown_ups", "everyone"), ("everyone", "grown_ups")])
def test_a_total_is_published_beside_a_part_of_it_whichever_is_written_first(
    tables: tuple[str, str], tmp_path: Path
) -> None:
    """They share no column: the total is all that the histograms of both have in common."""
    written = {"grown_ups": "count: adults, at: all", "everyone": "count: persons, at: all"}
    release = made({name: written[name] for name in tables}, tmp_path)
    truth = release.truth(1, rows=60)
    gives_back(release, truth)
    for seed in range(5):
        noisy(release, seed)


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
    gives_back(release, truth)
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
    gives_back(release, truth)
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


def test_a_table_in_which_everything_is_impossible_is_refused_by_its_columns(tmp_path: Path) -> None:
    tables = {"one": "count: persons, by: [a, c], at: all"}
    with pytest.raises(Infeasible, match="every combination of a, c is impossible"):
        made(tables, tmp_path, extra="impossible:\n  - {a: [1, 2, 3], c: [1, 2]}")
