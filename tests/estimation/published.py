"""A small release for tests, and every published statistic computed once more, in plain Python, from exact numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import product
from pathlib import Path

import numpy as np

from estimation.measurement import ExactNumbers, Measurement
from estimation.problem import Problem, problem
from estimation.release import Estimated, estimate_release
from estimation.tables import Statistic
from release_specs.domain import Attribute, Domain
from release_specs.language.tables import Table
from release_specs.load import Loaded, load_spec, load_text
from release_specs.spec import ReleaseSpec
from release_specs.tallies import EXACT, Tally, extended_size, tallies_of
from tests.estimation.made_up import Laplace, Normal, Truth, exact_numbers, measured

EXAMPLES = Path(__file__).parents[2] / "release_specs" / "examples"
SMALL = """
margrave: 1
release: {name: small, title: A small release}
microdata:
  persons:
    key: person_id
    defaults: {outside: leave_out, missing: leave_out}
    columns:
      block:  {area: town, outside: {count_as: A1}, missing: {count_as: A1}}
      sex:    {codes: {1: Male, 2: Female}}
      kind:   {codes: {A: First, B: Second}, outside: {count_as: A}, missing: {count_as: A}}
      age:    {integer: 0..89, outside: nearest, missing: {count_as: 0}}
      income: {unit: dollars, number: -20..100, step: 0.1, clip: 0..60.5}
geography:
  town:
    levels: [whole_town, block]
    whole: {code: T, label: Town}
    areas: {A1: {label: One}, A2: {label: Two}, A3: {label: Three}}
recodes:
  age_group: {of: age, into: {Young: 0..29, Middle: 30..59, Old: 60..}}
privacy:
  protect: persons
  neighbours: add-remove
  budget: {rho: 1, delta: 1e-9}
tables:
  people:    {count: persons, by: [sex, kind], at: all}
  ages:      {count: persons, by: [age_group, sex], at: all}
  helper:    {count: persons, by: [kind], at: all, publish: no}
  income:    {mean: income, quantiles: {income: {at: [1/4, 1/2], every: 5.5}}, of: persons, by: [sex], at: all}
  pay:       {mean: income, of: persons, by: [kind, sex], at: all}
  poor:      {proportion: {income: ..21.9}, of: persons, by: [kind], at: all}
  earned:    {sum: income, of: persons, by: [kind], at: all}
  each:      {ratio: earned / people, by: [kind], at: all}
  part_old:  {ratio: ages / people, at: whole_town}
  pay_each:  {ratio: pay / people, at: block}
  gap:       {compare: {sex: [2, 1]}, of: pay, as: percent, at: all}
  gap_kinds: {compare: {sex: [2, 1]}, of: pay, as: difference, by: [kind], at: all}
  more:      {compare: {sex: [1, 2]}, of: people, as: difference, by: [kind], at: block}
  times:     {compare: {age_group: [Old, Young]}, of: ages, as: ratio, by: [sex], at: all}
publish: {confidence: 90%, reliability: {caution: cv > 20%, unreliable: moe > estimate}}
"""


@dataclass(frozen=True)
class Released:
    """A spec without rules (made-up rows obey none), and exact numbers of all that it counts."""

    spec: ReleaseSpec
    domain: Domain
    problem: Problem
    truth: Truth

    @property
    def tallies(self) -> list[Tally]:
        """All that is measured."""
        return [tally for tally in self.problem.tallies if tally.table != EXACT]

    @cached_property
    def exact(self) -> list[ExactNumbers]:
        """All that is exact."""
        totals = [tally for tally in self.problem.tallies if tally.table == EXACT]
        return [
            ExactNumbers(tally, level, self.truth[tally.name, level])
            for tally in totals
            for level in tally.levels or (None,)
        ]

    def estimated(
        self, noise: Normal | Laplace, rng: np.random.Generator | None
    ) -> tuple[Estimated, list[Measurement]]:
        """The release with noise, or without where there is no generator; and what was measured."""
        found = measured(self.truth, self.tallies, noise, rng)
        return estimate_release(self.problem, found, self.exact), found


def released(loaded: Loaded, *, rows: int, seed: int = 3) -> Released:
    """A spec with made-up rows."""
    spec = loaded.spec.model_copy(update={"rules": ()})
    made = problem(spec, loaded.domain, list(tallies_of(spec, loaded.domain)))
    return Released(spec, loaded.domain, made, exact_numbers(made, np.random.default_rng(seed), rows=rows))


def example(name: str) -> Released:
    """An example spec with made-up rows."""
    return released(load_spec(EXAMPLES / f"{name}.yaml"), rows=2000)


def small(*, rows: int = 3000) -> Released:
    """The small release."""
    return released(load_text(SMALL, file="small.yaml", folder=EXAMPLES), rows=rows)


Wanted = Mapping[str, str]
"""For each attribute that is held fixed its code; the others are summed."""


@dataclass(frozen=True)
class Oracle:
    """What is published, from exact numbers, one cell after the other."""

    release: Released

    def numbers(self, found: Statistic) -> list[list[Fraction | None]]:
        """The numbers of a statistic: a row for each area; None where there is nothing to divide by."""
        areas = range(max(len(found.areas), 1))
        return [[self._number(found, area, wanted) for wanted in combinations(found.attributes)] for area in areas]

    def _number(self, found: Statistic, area: int, wanted: Wanted) -> Fraction | None:
        table = self.release.spec.tables[found.table]
        if found.statistic.startswith("quantile"):
            share = Fraction(found.statistic.removeprefix("quantile "))
            return self._quantile(found, self._tally(found, f"grid({found.column})"), area, wanted, share)
        if not table.is_free:
            return self._figure(found.table, found.statistic, found.level, area, wanted)
        one, other = self._sides(table, found.level, area, wanted)
        if one is None or other is None:
            return None
        if found.statistic == "difference":
            return one - other
        return (one / other * (100 if found.statistic == "percent" else 1)) if other > 0 else None

    def _sides(self, table: Table, level: str | None, area: int, wanted: Wanted) -> list[Fraction | None]:
        if table.ratio is not None:
            asked = [(table.ratio.numerator, {}), (table.ratio.denominator, {})]
        else:
            ((column, codes),) = (table.compare or {}).items()
            asked = [(table.of or "", {column: code}) for code in codes]
        tables = self.release.spec.tables
        return [self._figure(name, tables[name].statistics[0], level, area, {**wanted, **more}) for name, more in asked]

    def _figure(self, table: str, statistic: str, level: str | None, area: int, wanted: Wanted) -> Fraction | None:
        def of(kind: str) -> tuple[Tally, Fraction]:
            tally = next(
                one
                for one in self.release.tallies
                if (one.table, one.statistic.partition("(")[0]) == (table, kind) and level in (one.levels or (None,))
            )
            return tally, Fraction(self._sum(tally, level, area, wanted))

        if statistic == "count":
            return of("count")[1]
        if statistic == "sum":
            tally, ticks = of("sum")
            return ticks * tally.adds.step
        (tally, top), (_, bottom) = (of("centred"), of("usable")) if statistic == "mean" else (of("part"), of("all"))
        if bottom <= 0:
            return None
        if statistic == "proportion":
            return top / bottom
        middle = Fraction(tally.adds.low + tally.adds.high, 2) * tally.adds.step
        return middle + top / bottom * tally.adds.step / tally.adds.factor

    def _quantile(self, found: Statistic, tally: Tally, area: int, wanted: Wanted, share: Fraction) -> Fraction | None:
        grid = tally.attributes[-1]
        codes = [category.code for category in grid.categories]
        held = [self._sum(tally, found.level, area, {**wanted, grid.name: code}) for code in codes]
        if sum(held) == 0:
            return None
        running = 0
        for code, number in zip(codes, held, strict=True):
            running += number
            if running >= share * sum(held):
                return Fraction(code)
        raise AssertionError

    def _tally(self, found: Statistic, statistic: str) -> Tally:
        return next(one for one in self.release.tallies if (one.table, one.statistic) == (found.table, statistic))

    def _sum(self, tally: Tally, level: str | None, area: int, wanted: Wanted) -> int:
        """The sum of all cells with the wanted codes, those that are never printed included."""
        total = 0
        for cell, number in zip(
            cells(tally.attributes), self.release.truth[tally.name, level][area].tolist(), strict=False
        ):
            if all(cell[name] == code for name, code in wanted.items()):
                total += number
        return total


def combinations(attributes: tuple[Attribute, ...]) -> Iterator[Wanted]:
    """Every published cell, as the codes of its attributes."""
    names = [attribute.name for attribute in attributes]
    for codes in product(*([category.code for category in one.categories] for one in attributes)):
        yield dict(zip(names, codes, strict=True))


@cache
def cells(attributes: tuple[Attribute, ...]) -> tuple[Mapping[str, str | None], ...]:
    """Every cell of a tally by some attributes, as the codes of its attributes; None stands for "not stated"."""
    names = [attribute.name for attribute in attributes]
    lists = [
        [*(category.code for category in one.categories), *[None] * (extended_size(one) - len(one.categories))]
        for one in attributes
    ]
    return tuple(dict(zip(names, codes, strict=True)) for codes in product(*lists))
