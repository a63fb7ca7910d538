"""The same release drawn again around given numbers: what noise does to estimates, and to published tables.

Seeded noise around numbers that are published already, or around nothing at all, costs no budget: it looks at nothing
that is not public. The seed comes from the measurements, so the error report is the same on every run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from estimation.arrays import Floats, Numbers
from estimation.estimate import Settled, Work, settle_population, unbiased
from estimation.least_squares import refitted
from estimation.limits import handed_on, pushed_up
from estimation.measurement import ExactNumbers, Measurement
from estimation.observations import Observation
from estimation.problem import Planned, limits_of
from estimation.release import Done, Estimated
from release_specs.tallies import Tally

SIZES = ((0, 0), (1, 2), (3, 9), (10, 49), (50, None))
"""Cells are told apart by these sizes, from first to last, in reports of bias."""


def seed_of(measurements: Sequence[Measurement]) -> int:
    """A seed that depends on what was measured and on nothing else."""
    digest = hashlib.sha256()
    for one in sorted(measurements, key=lambda one: (one.tally.name, one.level or "")):
        digest.update(f"{one.tally.name}\\0{one.level}\\0".encode())
        digest.update(np.ascontiguousarray(one.numbers, np.int64).tobytes())
    return int.from_bytes(digest.digest()[:16], "big")


def _noise_of(planned: Planned, measurements: Sequence[Measurement]) -> dict[tuple[str, str], Measurement]:
    return {
        (planned.forest.name_of(one.tally.spine, one.level), one.tally.name): one
        for one in measurements
        if one.tally.name in planned.design.margins
    }


def _redrawn(
    planned: Planned,
    measurements: Sequence[Measurement],
    rng: np.random.Generator,
    around: Callable[[Observation], Numbers],
) -> Callable[[Observation], Numbers]:
    """Numbers of each observation with fresh noise; exact ones stay exact."""
    noises = _noise_of(planned, measurements)

    def draw(one: Observation) -> Numbers:
        base = around(one)
        if one.is_exact:
            return base
        measured = noises[one.level, one.margin.name]
        fresh = measured.noise.draw(base.size, rng).reshape(base.shape)
        if measured.scales is None:
            return base + fresh
        scales = measured.scales[planned.forest.order[one.level]]
        factors = np.sqrt(np.where(np.isinf(scales), 0.0, scales)).reshape(-1, *([1] * (base.ndim - 1)))
        return base + np.rint(fresh * factors).astype(np.int64)

    return draw


def errors_of_estimates(
    done: Done, measurements: Sequence[Measurement], rng: np.random.Generator
) -> dict[tuple[str, str], Floats]:
    """One draw of the errors of a population's unbiased estimates, for each level and tally: noise around nothing."""
    draw = _redrawn(done.planned, measurements, rng, lambda one: np.zeros(one.numbers.shape, np.int64))
    return unbiased(replace(done.work, fit=refitted(done.work.fit, draw)))


@dataclass(slots=True)
class SimulatedError:
    """How far published numbers are off around known ones, over all draws: sums, from which means are read."""

    cells: int = 0
    absolute: float = 0.0
    squared: float = 0.0
    phantom: float = 0.0
    by_size: dict[tuple[int, int | None], tuple[int, float]] = field(default_factory=dict)

    @property
    def mean_absolute(self) -> float:
        """The expected absolute error of a cell."""
        return self.absolute / max(self.cells, 1)

    @property
    def root_mean_square(self) -> float:
        """The root of the expected squared error of a cell."""
        return float(np.sqrt(self.squared / max(self.cells, 1)))

    def bias(self, size: tuple[int, int | None]) -> float:
        """The mean error of cells of a size; the phantom population is what empty cells hold."""
        cells, total = self.by_size.get(size, (0, 0.0))
        return total / max(cells, 1)

    def add(self, truth: Numbers, found: Numbers) -> None:
        """One more draw."""
        error = found.astype(np.float64) - truth
        self.cells += error.size
        self.absolute += float(np.abs(error).sum())
        self.squared += float((error**2).sum())
        self.phantom += float(error[truth == 0].sum())
        for first, last in SIZES:
            inside = (truth >= first) & (truth <= (np.inf if last is None else last))
            cells, total = self.by_size.get((first, last), (0, 0.0))
            self.by_size[first, last] = cells + int(inside.sum()), total + float(error[inside].sum())


def simulate_published(
    estimated: Estimated,
    measurements: Sequence[Measurement],
    exact: Sequence[ExactNumbers] = (),
    *,
    draws: int,
    progress: Callable[[str], None] | None = None,
) -> Mapping[tuple[str, str | None], SimulatedError]:
    """The error of published numbers, by tally and level: noise is drawn again around the published tables.

    Everything is done again with it, non-negativity and rounding included.
    """
    errors: dict[tuple[str, str | None], SimulatedError] = {}
    exact = [*exact, *estimated.problem.public]
    for draw in range(draws):
        rng = np.random.Generator(np.random.PCG64([seed_of(measurements), draw]))
        if progress is not None:
            progress(f"draw {draw + 1} of {draws}")
        again = _once_more(estimated, measurements, exact, rng)
        for tally in estimated.problem.tallies:
            for level in tally.levels or (None,):
                errors.setdefault((tally.name, level), SimulatedError()).add(
                    estimated.value(tally, level), again.value(tally, level)
                )
    return errors


def _once_more(
    estimated: Estimated,
    measurements: Sequence[Measurement],
    exact: Sequence[ExactNumbers],
    rng: np.random.Generator,
) -> Estimated:
    """The release measured and settled again, around its own published numbers."""
    done: list[Done] = []
    tallies = {tally.name: tally for tally in estimated.problem.tallies}
    for one in estimated.done:
        draw = _redrawn(one.planned, measurements, rng, _published_around(one, tallies))
        earlier: list[tuple[Planned, Settled]] = [(before.planned, before.settled) for before in done]
        limited = [
            pushed_up(found, one.planned.forest.tree)
            for found in limits_of(estimated.problem, one.planned, exact, earlier)
        ]
        work: Work = replace(
            one.work,
            fit=refitted(one.work.fit, draw),
            limited=tuple(handed_on(limited, one.planned.histograms)),
        )
        done.append(Done(one.planned, work, settle_population(work)))
    return Estimated(estimated.problem, tuple(done))


def _published_around(one: Done, tallies: Mapping[str, Tally]) -> Callable[[Observation], Numbers]:
    """The published numbers of each observation, where they are published; the exact ones otherwise."""

    def numbers(seen: Observation) -> Numbers:
        found = one.settled.whole[seen.level, tallies[seen.margin.name].name]
        return found.reshape(seen.numbers.shape).astype(np.int64)

    return numbers
