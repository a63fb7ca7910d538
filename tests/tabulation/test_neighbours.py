"""Neighbours of generated files: one unit comes, goes or is exchanged, and says whatever a file can say.

Nothing public may differ between them, and no count may move further than the law declares. `MARGRAVE_NEIGHBOURS` is
the number of changes that are tried for each spec and format.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mechanisms.sensitivity import Unit
from release_specs.load import Loaded, load_spec, load_text
from release_specs.tallies import Tally, tallies_of
from tabulation.errors import EngineError
from tabulation.synthesize import synthesize
from tests.tabulation import neighbours
from tests.tabulation.neighbours import ADD_REMOVE, REPLACE, Outcome, faults, outcome_of
from tests.tabulation.town import TOWN, ZONES
from tests.tabulation.wild_units import CHANGES, SIZES, Change, Files, Table, changed, crowd

EXAMPLES = Path("release_specs/examples")
TRIES = int(os.environ.get("MARGRAVE_NEIGHBOURS", "3"))
RECORDS, DIRT, EDITION = 150, Fraction(3, 100), "2026"
MOST_TALLIES = 5

MORE_TABLES = """  tongues:    {count: people, by: [tongue], at: all}
  skills:     {count: people, by: [skills, sex], at: [town]}
  incomes:    {mean: income, of: people, by: [sex], at: [town, quarter]}
  all_income: {sum: income, of: people, at: [town]}
  grid:       {quantiles: {income: {at: 1/2, every: 1000}}, of: people, at: [town]}
  rents:      {sum: rent, of: homes, at: [town, quarter]}
  rooms:      {mean: rooms, of: dwellings, by: [kind], at: all}
  weddings:   {count: people, by: [marital, rich], at: [quarter]}
  by_head:    {count: dwellings, by: [head_sex, staff], at: [town]}
  lodging:    {count: at_home, by: [size, lodgers], at: all}
  eras:       {count: dwellings, by: [era, side], at: [town]}
  born:       {most_common: born, of: people, at: [town]}
  german:     {proportion: {tongue: de}, of: people, at: all}
  two_each:   {count: people, by: [sex, side], at: [town], at_most: 2}
impossible:"""
RICH_TOWN = (
    TOWN.replace("impossible:", MORE_TABLES)
    .replace("universes:", "universes:\n  at_home: {of: people, where: {place: {not: inmate}}}")
    .replace("recodes:", "recodes:\n  era: {of: built, into: {Old: ..1950-12-31, New: 1951-01-01..}}")
)
SPECS = ("town", "households", "births", "redistricting_2020")


@dataclass
class Base:
    """A generated dataset, what the product makes of it, and what it made of neighbours with one unit more."""

    loaded: Loaded
    files: Files
    folder: Path
    suffix: str
    outcome: Outcome = field(init=False)
    grown: list[Outcome] = field(default_factory=list)
    numbers: count[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.outcome = self.run(self.files)

    @property
    def tallies(self) -> tuple[Tally, ...]:
        return tallies_of(self.loaded.spec, self.loaded.domain)

    def run(self, files: Files, tallies: Sequence[Tally] | None = None) -> Outcome:
        """What the product makes of files."""
        folder = self.folder / str(next(self.numbers))
        folder.mkdir()
        places = {entity: folder / f"{entity}.{self.suffix}" for entity in files}
        for entity, table in files.items():
            table.write(places[entity])
        return outcome_of(self.loaded, places, edition=EDITION, tallies=tallies)

    def wrongs(self, change: Change, tallies: Sequence[Tally], unit: Unit | None = None) -> list[str]:
        """What the law forbids between this dataset, its neighbour, and neighbours that grew from it likewise."""
        other = self.run(changed(self.loaded, self.files, change), tallies)
        relation = REPLACE if change.exchanges else ADD_REMOVE
        found = list(faults(self.loaded, self.outcome.of(other), other, relation, unit=unit))
        if change.kind in ("add", "single", "odd line"):
            for earlier in self.grown:
                found += faults(self.loaded, earlier.of(other), other.of(earlier), REPLACE, unit=unit)
            self.grown.append(other)
        return found


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> object:
    @cache
    def make(name: str, suffix: str) -> Base:
        folder = tmp_path_factory.mktemp(f"{name}-{suffix}")
        (folder / "zones.csv").write_text(ZONES, encoding="utf-8")
        public = folder if name == "town" else EXAMPLES
        loaded = load_text(RICH_TOWN, file="town.yaml", folder=folder) if name == "town" else load_spec(EXAMPLES / f"{name}.yaml")
        made = synthesize(
            loaded.spec, loaded.domain, records=RECORDS, seed=7, out=folder / "made", form=suffix, dirt=DIRT, folder=public
        )
        files = {one.entity: Table.read(one.path, loaded.spec.microdata[one.entity].read.delimiter) for one in made}
        return Base(loaded, files, folder, suffix)

    return make


changes = st.builds(Change, st.sampled_from(CHANGES), st.sampled_from(SIZES), st.integers(0, 10**6))
tried = settings(
    max_examples=TRIES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("name", SPECS)
def test_one_unit_changes_nothing_public_and_no_count_beyond_its_sensitivity(name, suffix, bases) -> None:
    base: Base = bases(name, suffix)

    @tried
    @given(changes, st.lists(st.sampled_from(base.tallies), min_size=1, max_size=MOST_TALLIES, unique_by=lambda t: t.name))
    def holds(change: Change, tallies: list[Tally]) -> None:
        assert base.wrongs(change, tallies) == []

    assert base.outcome.error is None
    holds()
