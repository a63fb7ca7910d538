"""The error of every unbiased estimate before any data is opened: from the spec and the noise that is planned.

What least squares makes of measurements does not depend on their numbers, so blank ones serve as well. The tables that
`foresee` gives have standard deviations, covariances and margins of error; their numbers are blanks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from estimation.arrays import Floats, Integers
from estimation.design import Design, design
from estimation.estimate import Settled, Work
from estimation.forest import Forest, forest
from estimation.least_squares import Fit
from estimation.measurement import ExactNumbers, Measurement, Noise
from estimation.observations import Observation
from estimation.problem import Planned, Problem, observed_of, wanted_of
from estimation.release import Done, Estimated
from estimation.stages import stages
from estimation.variances import cell_variances
from estimation.worth import Goal, Seen, Worth
from release_specs.checks.draft import Draft
from release_specs.populations import Populations
from release_specs.public_totals import public_totals
from release_specs.tallies import EXACT, Tally


def blank_measurement(tally: Tally, level: str | None, noise: Noise) -> Measurement:
    """A measurement that is planned: its noise is known, its numbers are not."""
    return Measurement(tally, level, _blanks(tally, level), noise)


def foresee(problem: Problem, measurements: Sequence[Measurement], exact: Sequence[Tally] = ()) -> Estimated:
    """The errors of all tables, given planned measurements and the exact totals that the microdata will tell."""
    sure = [ExactNumbers(tally, level, _blanks(tally, level)) for tally in exact for level in tally.levels or (None,)]
    known = (measurements, [*sure, *problem.public])
    return Estimated(problem, tuple(_foreseen(planned, known) for planned in problem.populations))


def deviations(estimated: Estimated, tally: Tally, level: str | None) -> Floats:
    """The standard deviations of a table's estimates, (area, kind of cell): cells that err alike are told once."""
    done = estimated.of(tally)
    place = done.places[done.planned.forest.name_of(tally.spine, level)]
    design = done.planned.design
    spread = cell_variances(design.coordinates, design.margins[tally.name].margin, place)
    found = np.empty_like(spread)
    found[done.planned.forest.order[place.stage.name]] = np.sqrt(spread)
    return found


def _blanks(tally: Tally, level: str | None) -> Integers:
    """As many zeros as a tally has cells, in no memory."""
    return np.broadcast_to(np.int64(0), (tally.areas(level), tally.cells))


def _foreseen(planned: Planned, known: tuple[Sequence[Measurement], Sequence[ExactNumbers]]) -> Done:
    design = planned.design
    seen = observed_of(planned, *known)
    whole = stages(planned.forest.tree, seen, coordinates=design.coordinates, core=design.core)
    fit = Fit(design.coordinates, design.core, whole, {}, {})
    wanted = wanted_of(planned)
    work = Work(design, planned.forest, fit, planned.histograms, (), {}, wanted)
    areas = {name: place.stage.areas for name, place in Done(planned, work, Settled()).places.items()}
    best = {
        (level, name): np.broadcast_to(np.float64(0), (areas[level], design.margins[name].tally.cells))
        for level, names in wanted.items()
        for name in names
    }
    return Done(planned, work, Settled(best=best))


TallyAt = tuple[Tally, str | None]
"""A tally at one of its levels."""


@dataclass(frozen=True, eq=False)
class Outlook:
    """A population before anything is measured: what its measurements would be worth, and how they are called."""

    worth: Worth
    forest: Forest
    tallies: frozenset[str]

    def seen(self, tally: Tally, level: str | None) -> Seen:
        """How a tally at a level is called among the measurements."""
        return self.forest.name_of(tally.spine, level), tally.name


def outlooks(
    draft: Draft, tallies: Sequence[Tally], *, measured: Sequence[TallyAt], goals: Sequence[TallyAt]
) -> list[tuple[Outlook, list[TallyAt]]]:
    """Every population with the goals it serves, in their order."""
    spec, domain = draft.spec, draft.domain
    public = public_totals(spec, domain, draft.files)
    exact = [(one.tally, one.level) for one in public]
    exact += [(tally, level) for tally in tallies if tally.table == EXACT for level in tally.levels or (None,)]
    populations = Populations(spec, domain, [*tallies, *{one.tally.name: one.tally for one in public}.values()])
    found = []
    for population in populations.all:
        made, tree = design(populations, population), forest(population.tallies)
        mine = [one for one in goals if one[0].name in made.margins]
        seen = [_sight(made, tree, one, 1.0) for one in measured if one[0].name in made.margins]
        seen += [_sight(made, tree, one, 0.0) for one in exact if one[0].name in made.margins]
        wanted = [Goal(made.margins[tally.name].margin, tree.name_of(tally.spine, level)) for tally, level in mine]
        worth = Worth.of(made.coordinates, made.core, tree=tree.tree, seen=seen, goals=wanted)
        found.append((Outlook(worth, tree, frozenset(made.margins)), mine))
    return found


def _sight(made: Design, tree: Forest, what: TallyAt, variance: float) -> Observation:
    """A measurement without numbers."""
    tally, level = what
    name = tree.name_of(tally.spine, level)
    return Observation(made.margins[tally.name].margin, name, np.zeros((tree.tree.levels[name], 0, 0)), variance)
