"""How far off a number may be: margins of error and intervals of every unbiased estimate.

A margin of error belongs to the unbiased estimate, not to the published whole number. Where an estimate is one
measurement its margin is that of the measurement's own law. Where it is made of several it is the normal multiple of
its deviation if their noise is Gaussian, and else that of a simulated sample of its errors: noise around nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from estimation.arrays import Floats, Integers
from estimation.intervals import (
    Words,
    agency_quantile,
    law_quantile,
    normal_quantile,
    reliability_class,
    sum_interval,
)
from estimation.measurement import Measurement
from estimation.redraw import errors_of_estimates, seed_of
from estimation.release import Done, Estimated
from release_specs.language.phrases import Unreliable
from release_specs.tallies import Tally

SAMPLE = 20_000
"""So many simulated errors of a table at a level, over its cells and areas, tell the quantile of their law."""
MOST_DRAWS, LEAST_DRAWS = 1_000, 40
MOST_CELLS = 200_000_000
"""No more numbers than these are drawn in all, as long as there are enough draws at all."""


@dataclass(frozen=True, eq=False)
class TableError:
    """The error of a table's unbiased estimates at one level, (area, cell)."""

    deviation: Floats = field(repr=False)
    moe: Floats = field(repr=False)
    low: Integers = field(repr=False)
    high: Integers = field(repr=False)
    flag: Words = field(repr=False)


class Margins:
    """Margins of error of a release's estimates at one confidence."""

    def __init__(
        self, estimated: Estimated, measurements: Sequence[Measurement], *, confidence: Fraction, rule: str = "exact"
    ) -> None:
        self.estimated, self.measurements, self.confidence, self.rule = estimated, measurements, confidence, rule
        self._simulated: dict[int, dict[tuple[str, str], float]] = {}

    def of(self, tally: Tally, level: str | None, *, classes: Mapping[str, Unreliable] | None = None) -> TableError:
        """The error of a table at a level."""
        estimate, deviation = self.estimated.estimate(tally, level), self.estimated.deviation(tally, level)
        moe = self.moe(tally, level, deviation)
        signed = tally.adds is not None and tally.adds.bounds[0] < 0
        low, high = sum_interval(estimate, moe, signed=signed)
        flag = reliability_class(estimate, deviation, moe=moe, classes=classes or {})
        return TableError(deviation, moe, low, high, flag)

    def moe(self, tally: Tally, level: str | None, deviation: Floats) -> Floats:
        """The margin of error of every estimate."""
        if self.rule == "agency":
            return agency_quantile(self.confidence) * deviation
        own = self._only(tally, level)
        if own is not None:
            return np.where(deviation > 0, float(own.noise.margin(self.confidence)), 0.0)
        return self.multiplier(tally, level) * deviation

    def multiplier(self, tally: Tally, level: str | None) -> float:
        """How many deviations make a margin of error, for estimates that are made of several measurements."""
        done = self.estimated.of(tally)
        if all(one.noise.is_gaussian for one in self._measured(done)):
            return normal_quantile(self.confidence)
        if id(done) not in self._simulated:
            self._simulated[id(done)] = self._simulate(done)
        return self._simulated[id(done)][done.planned.forest.name_of(tally.spine, level), tally.name]

    def _measured(self, done: Done) -> list[Measurement]:
        return [one for one in self.measurements if one.tally.name in done.planned.design.margins]

    def _only(self, tally: Tally, level: str | None) -> Measurement | None:
        """The one measurement that an estimate is, where no other tells anything about it."""
        if len(self._measured(self.estimated.of(tally))) > 1:
            return None
        own = [one for one in self.measurements if one.tally.name == tally.name and one.level == level]
        return own[0] if own and own[0].scales is None else None

    def _simulate(self, done: Done) -> dict[tuple[str, str], float]:
        """For each level and tally the quantile of |error| / deviation, from draws of noise around nothing."""
        sizes = {key: numbers.size for key, numbers in done.settled.best.items()}
        enough = max(min(MOST_DRAWS, SAMPLE // size + 1) for size in sizes.values())
        draws = max(LEAST_DRAWS, min(enough, MOST_CELLS // max(sum(sizes.values()), 1)))
        deviations = {key: self.estimated.deviation(*self._published(done, *key)).ravel() for key in done.settled.best}
        samples: dict[tuple[str, str], list[Floats]] = {key: [] for key in sizes}
        seed = seed_of(self.measurements)
        for draw in range(draws):
            rng = np.random.Generator(np.random.PCG64([seed, draw]))
            for key, errors in errors_of_estimates(done, self.measurements, rng).items():
                if draw * sizes[key] < SAMPLE:
                    tally, level = self._published(done, *key)
                    turned = done.published(tally, level, errors).ravel()
                    spread = deviations[key]
                    samples[key].append(np.abs(turned[spread > 0]) / spread[spread > 0])
        return {key: self._quantile(np.concatenate(found)) for key, found in samples.items()}

    def _quantile(self, sample: Floats) -> float:
        if len(sample) < 1 / (1 - self.confidence):
            return normal_quantile(self.confidence)
        return float(law_quantile(sample, 1.0, confidence=self.confidence))

    def _published(self, done: Done, level: str, name: str) -> tuple[Tally, str | None]:
        """A tally and its own name for a level of the tree."""
        tally = done.planned.design.margins[name].tally
        for own in tally.levels or (None,):
            if done.planned.forest.name_of(tally.spine, own) == level:
                return tally, own
        raise KeyError(f"'{name}' is not published at '{level}'")
