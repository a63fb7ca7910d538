"""The door of this room: measurements in, tables out, with the error of every number.

`estimate_release` takes what was measured and nothing else of the microdata. What comes out is a pure function of the
measurements, the exact totals and the spec: the same bytes on every run, whatever the number of workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from estimation.arrays import Floats, Integers, Numbers
from estimation.estimate import WORKERS, Settled, Work, settle_population
from estimation.measurement import ExactNumbers, Measurement
from estimation.problem import Planned, Problem, work_for
from estimation.settling import Certificate
from estimation.variances import Place, cell_covariances, cell_variances, places
from release_specs.tallies import Tally

Progress = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Done:
    """One population with its numbers."""

    planned: Planned
    work: Work = field(repr=False)
    settled: Settled = field(repr=False)

    @cached_property
    def places(self) -> dict[str, Place]:
        """Every level with the covariances of its estimates."""
        return places(self.work.fit.whole)

    def published(self, tally: Tally, level: str | None, numbers: Numbers) -> Numbers:
        """Numbers in the order of a margin and of the tree, as published: (area, cell)."""
        name = self.planned.forest.name_of(tally.spine, level)
        turned = self.planned.design.margins[tally.name].from_margin(numbers)
        order = self.planned.forest.order[name]
        if (np.diff(order) == 1).all():
            return turned
        out = np.empty_like(turned)
        out[order] = turned
        return out


@dataclass(frozen=True, eq=False)
class Estimated:
    """The tables of a release: whole numbers that agree, unbiased estimates, and their standard deviations.

    Arrays are (area, cell) with areas and cells as published, hidden cells included.
    """

    problem: Problem
    done: tuple[Done, ...] = field(repr=False)

    def of(self, tally: Tally) -> Done:
        """The population of a tally."""
        return next(one for one in self.done if tally.name in one.planned.design.margins)

    def value(self, tally: Tally, level: str | None) -> Integers:
        """The published whole numbers."""
        one = self.of(tally)
        found = one.settled.whole[one.planned.forest.name_of(tally.spine, level), tally.name]
        return one.published(tally, level, found).astype(np.int64)

    def estimate(self, tally: Tally, level: str | None) -> Floats:
        """The unbiased estimates: what to add up over many cells or areas."""
        one = self.of(tally)
        return one.published(tally, level, one.settled.best[one.planned.forest.name_of(tally.spine, level), tally.name])

    def deviation(self, tally: Tally, level: str | None) -> Floats:
        """The standard deviations of the unbiased estimates, exact."""
        return np.sqrt(self.covariance(tally, tally, level))

    def covariance(self, tally: Tally, other: Tally, level: str | None) -> Floats:
        """The covariances of two tallies' estimates, cell by cell; zero for tallies of different populations.

        Both have the same attributes, such as the parts of a proportion.
        """
        one = self.of(tally)
        if self.of(other) is not one:
            return np.zeros((tally.areas(level), tally.cells))
        margins = [one.planned.design.margins[found.name].margin for found in (tally, other)]
        place = one.places[one.planned.forest.name_of(tally.spine, level)]
        coordinates = one.planned.design.coordinates
        spread = (
            cell_variances(coordinates, margins[0], place)
            if tally == other
            else cell_covariances(coordinates, margins[0], margins[1], place)
        )
        free = coordinates.cells(margins[0].free)
        return one.published(tally, level, np.repeat(spread[:, :, None], free, axis=2))

    def is_known(self, tally: Tally, level: str | None) -> bool:
        """Whether the measurements tell every cell of a tally at a level."""
        one = self.of(tally)
        stage = one.places[one.planned.forest.name_of(tally.spine, level)].stage
        return stage.spaces.hold(one.planned.design.coordinates, one.planned.design.margins[tally.name].margin)

    @property
    def certificates(self) -> list[tuple[str, Certificate]]:
        """How every family of every population was settled."""
        return [(one.planned.population.name, found) for one in self.done for found in one.settled.certificates]


def estimate_release(
    problem: Problem,
    measurements: Sequence[Measurement],
    exact: Sequence[ExactNumbers] = (),
    *,
    workers: int = WORKERS,
    progress: Progress | None = None,
) -> Estimated:
    """Tables from measurements and exact numbers of the microdata, one population after the other."""
    exact = [*exact, *problem.public]
    done: list[Done] = []
    for planned in problem.populations:
        if progress is not None:
            progress(planned.population.name)
        earlier = [(one.planned, one.settled) for one in done]
        work = work_for(problem, planned, (measurements, exact), earlier, workers)
        done.append(Done(planned, work, settle_population(work, workers=workers, progress=progress)))
    return Estimated(problem, tuple(done))
