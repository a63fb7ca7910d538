"""Specs that nobody wrote: whatever is declared, measured and drawn, a release keeps what it promises."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from estimation.measurement import Measurement
from estimation.problem import Planned, Problem, problem
from estimation.release import Estimated, estimate_release
from release_specs.load import load_text
from release_specs.tallies import Tally, tallies_of
from tests.estimation.made_up import Laplace, Normal, Truth, measured
from tests.estimation.plain_rows import HOMES, PEOPLE, Integers, PlainColumn, PlainTable, Town
from tests.estimation.promises import broken
from tests.estimation.releases import places_of
from tests.estimation.reordered import areas_turned, codes_turned, differing, moved

LEVELS = ("town_whole", "quarter", "block_area")
few = settings(
    max_examples=25,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # the slow tests of the same laws make small what they find
)
many = settings(few, max_examples=200, phases=[Phase.generate, Phase.shrink])
seeds = st.integers(0, 1000)
noises = st.sampled_from([Normal(1.0), Normal(30.0), Normal(900.0), Laplace(3.0)])


@st.composite
def column_lists(draw: st.DrawFn, *, with_homes: bool) -> tuple[PlainColumn, ...]:
    """Two to four columns; the last may apply to some people only."""
    found = []
    for number in range(draw(st.integers(2, 4))):
        owner = HOMES if with_homes and number == 0 else PEOPLE
        found.append(PlainColumn(f"c{number}", owner, draw(st.integers(2, 5)), draw(st.booleans())))
    if len(found) > 2 and draw(st.booleans()):
        first, last = found[1], found[-1]
        wanted = tuple(range(1, draw(st.integers(1, first.codes - 1)) + 1))
        if first.name != last.name:
            found[-1] = PlainColumn(last.name, PEOPLE, last.codes, last.hidden, (first.name, wanted))
    return tuple(found)


@st.composite
def trees(draw: st.DrawFn) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    """No areas, or one to three levels of them, every area with one to three parts."""
    levels, parents, above = LEVELS[: draw(st.sampled_from([3, 2, 1, 0]))], [(0,)], 1
    if not levels:
        return (), ()
    for _ in levels[1:]:
        parts = draw(st.lists(st.integers(1, 3), min_size=above, max_size=above))
        parents.append(tuple(np.repeat(np.arange(above), parts).tolist()))
        above = sum(parts)
    return levels, tuple(parents)


@st.composite
def towns(draw: st.DrawFn) -> Town:
    """A town with a recode into groups of unequal size, a universe, and tables over any of its attributes."""
    with_homes = draw(st.booleans())
    columns = draw(column_lists(with_homes=with_homes))
    levels, parents = draw(trees())
    recodes = {}
    if (wide := next((one for one in columns if one.codes > 2), None)) is not None:
        split = draw(st.integers(1, wide.codes - 1))
        codes = tuple(range(1, wide.codes + 1))
        recodes["r"] = (wide.name, (codes[split:], codes[:split]))
    asked = draw(st.sampled_from([one for one in columns if one.applies is None]))
    wanted = tuple(range(1, draw(st.integers(1, asked.codes - 1)) + 1))
    universes = {"some": (PEOPLE, asked.name, wanted)}
    impossible = ()
    plain = [one for one in columns if one.applies is None and one.owner == PEOPLE]
    if len(plain) > 1 and draw(st.booleans()):
        impossible = (((plain[0].name, 1), (plain[1].name, 2)),)
    town = Town(columns, (), parents, levels, recodes, universes, impossible)
    tables = draw(table_lists(town))
    return Town(columns, tables, parents, levels, recodes, universes, impossible, _rules(town, tables))


@st.composite
def table_lists(draw: st.DrawFn, town: Town) -> tuple[PlainTable, ...]:
    """One to five tables of people, of some of them, or of homes."""
    found: dict[tuple[object, ...], PlainTable] = {}
    for number in range(draw(st.integers(1, 5))):
        universe = draw(st.sampled_from([PEOPLE, PEOPLE, "some", *([HOMES] if town.has_homes else [])]))
        names = [one.name for one in town.columns if town.entity(universe) == PEOPLE or one.owner == HOMES]
        names += [name for name, (of, _) in town.recodes.items() if of in names]
        by = draw(st.lists(st.sampled_from(names), max_size=3, unique_by=lambda name: town.column(name).name))
        at = draw(st.lists(st.sampled_from(town.levels), min_size=1, unique=True)) if town.levels else []
        table = PlainTable(f"t{number}", universe, tuple(by), tuple(one for one in town.levels if one in at))
        found.setdefault((universe, frozenset(by)), table)
    return tuple(found.values())


def _rules(town: Town, tables: Sequence[PlainTable]) -> tuple[str, ...]:
    """People are at least as many as homes, where nobody is missing from the table of people."""
    everyone = [
        one for one in tables if one.universe == PEOPLE and all(town.column(name).applies is None for name in one.by)
    ]
    homes = [one for one in tables if one.universe == HOMES]
    return tuple(f"{a.name} >= {b.name}" for a in everyone for b in homes if set(a.at) & set(b.at) or not town.levels)


def planned(town: Town, *, turned: bool = False) -> tuple[Problem, list[Tally]]:
    """A town as a problem of estimation; turned: with tables, codes and areas listed from the last to the first."""
    text = codes_turned(replace(town, tables=town.tables[::-1]).written()) if turned else town.written()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "areas.csv").write_text(areas_turned(town.areas_file()) if turned else town.areas_file())
        loaded = load_text(text, file="town.yaml", folder=Path(folder))
    tallies = list(tallies_of(loaded.spec, loaded.domain))
    return problem(loaded.spec, loaded.domain, tallies), tallies


def kinds_of(town: Town) -> Callable[[Planned, Sequence[Tally]], list[Integers]]:
    def cells_of(_: Planned, tallies: Sequence[Tally]) -> list[Integers]:
        return town.cells_of(tallies)

    return cells_of


def drawn(town: Town, tallies: list[Tally], seed: int, noise: Normal | Laplace) -> tuple[list[Measurement], Truth]:
    """Noisy measurements of a made-up town, and its exact numbers."""
    rng = np.random.default_rng(seed)
    truth = town.count(tallies, town.draw(rng, homes=int(rng.integers(0, 40))))
    return measured(truth, tallies, noise, rng), truth


def keeps_its_promises(town: Town, seed: int, noise: Normal | Laplace) -> None:
    asked, tallies = planned(town)
    found = estimate_release(asked, drawn(town, tallies, seed, noise)[0])
    assert broken(found, cells_of=kinds_of(town)) == []


def gives_back_the_truth(town: Town, seed: int) -> None:
    asked, tallies = planned(town)
    _, truth = drawn(town, tallies, seed, Normal(4.0))
    found = estimate_release(asked, measured(truth, tallies, Normal(4.0), None))
    for tally, level in places_of(found):
        assert np.abs(found.estimate(tally, level) - truth[tally.name, level]).max() < 1e-6
        away = np.abs(found.value(tally, level) - truth[tally.name, level]).max(initial=0)
        assert away <= (0 if _is_sure(found, tally) else 3), (tally.name, level)


def _is_sure(found: Estimated, tally: Tally) -> bool:
    """Whether nothing is left to rounding: every pass has a measurement of its own groups, or none at all."""
    return all(
        any(aim.is_own for aim in one.aims) or not one.aims
        for ways in found.of(tally).work.ways().values()
        for _, passes in ways
        for one in passes
    )


def does_not_depend_on_the_order(town: Town, seed: int, noise: Normal | Laplace) -> None:
    asked, tallies = planned(town)
    other, twins = planned(town, turned=True)
    given, _ = drawn(town, tallies, seed, noise)
    assert differing(estimate_release(asked, given), estimate_release(other, moved(given, twins))) == []


def does_not_depend_on_workers_and_chunks(town: Town, seed: int, noise: Normal | Laplace) -> None:
    asked, tallies = planned(town)
    given, _ = drawn(town, tallies, seed, noise)
    found = estimate_release(asked, given, workers=1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("estimation.estimate.FAMILY_CELLS", 1)
        patched.setattr("estimation.least_squares.FAMILY_CELLS", 1)
        again = estimate_release(asked, given, workers=3)
    for place in places_of(found):
        assert found.value(*place).tobytes() == again.value(*place).tobytes()
        assert found.estimate(*place).tobytes() == again.estimate(*place).tobytes()


@few
@given(towns(), seeds, noises)
def test_whatever_the_spec_every_promise_about_published_tables_holds(
    town: Town, seed: int, noise: Normal | Laplace
) -> None:
    keeps_its_promises(town, seed, noise)


@pytest.mark.slow
@many
@given(towns(), seeds, noises)
def test_of_many_specs_every_promise_about_published_tables_holds(
    town: Town, seed: int, noise: Normal | Laplace
) -> None:
    keeps_its_promises(town, seed, noise)


@few
@given(towns(), seeds)
def test_whatever_the_spec_zero_noise_gives_back_the_truth(town: Town, seed: int) -> None:
    gives_back_the_truth(town, seed)


@pytest.mark.slow
@many
@given(towns(), seeds)
def test_of_many_specs_zero_noise_gives_back_the_truth(town: Town, seed: int) -> None:
    gives_back_the_truth(town, seed)


@few
@given(towns(), seeds, noises)
def test_whatever_the_spec_workers_and_chunks_change_no_byte(town: Town, seed: int, noise: Normal | Laplace) -> None:
    does_not_depend_on_workers_and_chunks(town, seed, noise)


@few
@given(towns(), seeds, noises)
def test_whatever_the_spec_another_order_of_writing_changes_no_number(
    town: Town, seed: int, noise: Normal | Laplace
) -> None:
    does_not_depend_on_the_order(town, seed, noise)


@pytest.mark.slow
@many
@given(towns(), seeds, noises)
def test_of_many_specs_another_order_of_writing_changes_no_number(
    town: Town, seed: int, noise: Normal | Laplace
) -> None:
    does_not_depend_on_the_order(town, seed, noise)
