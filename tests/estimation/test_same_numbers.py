"""The same measurements give the same numbers: whatever the workers, the chunks and the order of what is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from estimation.release import Estimated
from tests.estimation.made_up import Normal, Truth, measured
from tests.estimation.releases import Release, backwards, example, made, places_of, small, truth_of
from tests.estimation.reordered import areas_turned, codes_turned, differing, moved
from tests.estimation.small_specs import AREAS, spec

TABLES = {
    "one": "count: persons, by: [a, b], at: all",
    "two": "count: adults, by: [work, c], at: all",
    "three": "count: persons, by: [half, ages], at: [land, part]",
    "four": "sum: cost, of: persons, by: [c], at: all",
}


def bytes_of(found: Estimated) -> list[bytes]:
    numbers = [(found.value(*place), found.estimate(*place)) for place in places_of(found)]
    return [np.ascontiguousarray(one).tobytes() for pair in numbers for one in pair]


def same_bytes(release: Release, truth: Truth, chunks: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = bytes_of(release.estimate(truth, Normal(9.0), 16, workers=1))
    assert bytes_of(release.estimate(truth, Normal(9.0), 16, workers=1)) == expected
    assert bytes_of(release.estimate(truth, Normal(9.0), 16, workers=4)) == expected
    for most in chunks:
        monkeypatch.setattr("estimation.estimate.FAMILY_CELLS", most)
        monkeypatch.setattr("estimation.least_squares.FAMILY_CELLS", most)
        assert bytes_of(release.estimate(truth, Normal(9.0), 16, workers=3)) == expected


@pytest.mark.parametrize(
    "name",
    ["households", "schools", *(pytest.param(name, marks=pytest.mark.slow) for name in ("acs", "redistricting_2020"))],
)
def test_workers_chunks_and_repetition_change_no_byte(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    same_bytes(example(name), truth_of(name, 15), (1, 30_000), monkeypatch)


def test_a_chunk_of_any_size_changes_no_byte_of_a_small_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = made(TABLES, tmp_path)
    same_bytes(release, release.truth(15, rows=200), (1, 50, 120, 200, 300), monkeypatch)


def test_other_noise_gives_other_numbers() -> None:
    release, truth = example("schools"), truth_of("schools", 15)
    assert bytes_of(release.estimate(truth, Normal(9.0), 1)) != bytes_of(release.estimate(truth, Normal(9.0), 2))


@pytest.mark.parametrize("what", ["areas", "codes", "tables", "all of them"])
def test_another_order_of_writing_gives_the_same_numbers_in_that_order(what: str, tmp_path: Path) -> None:
    there, back = tmp_path / "there", tmp_path / "back"
    there.mkdir()
    back.mkdir()
    text = spec(TABLES)
    turned = spec(dict(reversed(TABLES.items()))) if what in {"tables", "all of them"} else text
    turned = codes_turned(turned) if what in {"codes", "all of them"} else turned
    areas = areas_turned(AREAS) if what in {"areas", "all of them"} else AREAS
    assert (text, AREAS) != (turned, areas)
    first, other = small(text, there, areas=AREAS), small(turned, back, areas=areas)
    for seed in range(4):
        truth = first.truth(seed, rows=200)
        given = measured(truth, first.measured, Normal(9.0), np.random.default_rng(seed))
        theirs = other.from_measurements(moved(given, other.measured), truth)
        assert differing(first.from_measurements(given, truth), theirs) == []


@pytest.mark.parametrize("name", ["births", "detailed_race", "households", "redistricting_2020", "schools"])
def test_without_noise_tables_in_the_opposite_order_give_back_the_truth(name: str) -> None:
    truth = truth_of(name, 4)
    found = backwards(name).estimate(truth, Normal(4.0), None)
    wrong = [
        (tally.name, level)
        for tally, level in places_of(found)
        if (tally.name, level) in truth and not np.array_equal(found.value(tally, level), truth[tally.name, level])
    ]
    assert wrong == []
