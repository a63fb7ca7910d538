"""Specs that nobody wrote: whatever is declared, measured and drawn, a release keeps what it promises."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from estimation.problem import Planned, Problem, problem
from estimation.release import Estimated, estimate_release
from release_specs.load import load_text
from release_specs.tallies import Tally, tallies_of
from tests.estimation.made_up import Laplace, Normal, Truth, measured
from tests.estimation.plain_rows import HOMES, PEOPLE, Integers, PlainColumn, PlainTable, Town
from tests.estimation.promises import broken

pytestmark = pytest.mark.slow  # whole releases of every kind

LEVELS = ("town_whole", "quarter", "block_area")
some_specs = settings(
    max_examples=40, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


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
    """One to three levels of areas, every area with one to three parts."""
    levels, parents, above = LEVELS[: draw(st.integers(1, 3))], [(0,)], 1
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
        at = draw(st.lists(st.sampled_from(town.levels), min_size=1, unique=True))
        table = PlainTable(f"t{number}", universe, tuple(by), tuple(one for one in town.levels if one in at))
        found.setdefault((universe, frozenset(by)), table)
    return tuple(found.values())


def _rules(town: Town, tables: Sequence[PlainTable]) -> tuple[str, ...]:
    """People are at least as many as homes, where nobody is missing from the table of people."""
    everyone = [
        one for one in tables if one.universe == PEOPLE and all(town.column(name).applies is None for name in one.by)
    ]
    homes = [one for one in tables if one.universe == HOMES]
    return tuple(f"{a.name} >= {b.name}" for a in everyone for b in homes if set(a.at) & set(b.at))


def planned(town: Town) -> tuple[Problem, list[Tally]]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "areas.csv").write_text(town.areas_file())
        loaded = load_text(town.written(), file="town.yaml", folder=Path(folder))
    tallies = list(tallies_of(loaded.spec, loaded.domain))
    return problem(loaded.spec, loaded.domain, tallies), tallies


def kinds_of(town: Town) -> object:
    def cells_of(_: Planned, tallies: Sequence[Tally]) -> list[Integers]:
        return town.cells_of(tallies)

    return cells_of


def released(town: Town, seed: int, noise: Normal | Laplace, *, noisy: bool) -> tuple[Estimated, Truth]:
    rng = np.random.default_rng(seed)
    asked, tallies = planned(town)
    truth = town.count(tallies, town.draw(rng, homes=int(rng.integers(0, 40))))
    return estimate_release(asked, measured(truth, tallies, noise, rng if noisy else None)), truth


@some_specs
@given(towns(), st.integers(0, 1000), st.sampled_from([Normal(1.0), Normal(30.0), Normal(900.0), Laplace(3.0)]))
def test_whatever_the_spec_every_promise_about_published_tables_holds(
    town: Town, seed: int, noise: Normal | Laplace
) -> None:
    found, _ = released(town, seed, noise, noisy=True)
    assert broken(found, cells_of=kinds_of(town)) == []


@some_specs
@given(towns(), st.integers(0, 1000))
def test_whatever_the_spec_zero_noise_gives_back_the_truth(town: Town, seed: int) -> None:
    found, truth = released(town, seed, Normal(4.0), noisy=False)
    for tally in found.problem.tallies:
        for level in tally.levels:
            assert np.abs(found.estimate(tally, level) - truth[tally.name, level]).max() < 1e-6
            if _is_tree(found, tally):
                assert np.array_equal(found.value(tally, level), truth[tally.name, level])


def _is_tree(found: Estimated, tally: Tally) -> bool:
    """Whether every histogram has the columns of one table: none was merged because tables cross."""
    one = found.problem.of(tally)
    populations = one.design.populations
    tables = [populations.nodes_of(other) for other in one.population.tallies]
    return all(arranged.nodes in tables for arranged in one.arrangement.histograms)
