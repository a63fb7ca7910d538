"""The same release written in another order: where each area and cell of one is found in the other."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from estimation.measurement import Measurement
from estimation.release import Estimated
from release_specs.tallies import Tally
from tests.estimation.releases import places_of

Places = tuple[npt.NDArray[np.int64], ...]


def codes_turned(text: str) -> str:
    """A spec with the codes of every column listed from the last to the first."""
    return re.sub(r"codes: \[(.*?)\]", lambda found: f"codes: [{', '.join(reversed(found[1].split(', ')))}]", text)


def areas_turned(text: str) -> str:
    """A file of areas from the last to the first."""
    header, *lines = text.splitlines()
    return "\n".join([header, *reversed(lines), ""])


def places_in(tally: Tally, twin: Tally, level: str | None) -> Places:
    """Where the areas and cells of a twin are found in a table."""
    areas = np.zeros(1, np.int64)
    if tally.spine is not None and twin.spine is not None:
        codes = [area.code for area in tally.spine.areas[level or ""]]
        areas = np.array([codes.index(area.code) for area in twin.spine.areas[level or ""]])
    cells = np.arange(tally.cells).reshape(tally.shape)
    for axis, (one, other) in enumerate(zip(tally.attributes, twin.attributes, strict=True)):
        known = [category.code for category in one.categories]
        places = [known.index(category.code) for category in other.categories] + [len(known)] * one.hidden
        cells = cells.take(places, axis=axis)
    return np.ix_(areas, cells.reshape(-1))


def moved(given: Sequence[Measurement], twins: Sequence[Tally]) -> list[Measurement]:
    """The same measurements in the order of twins, and of the twins' areas and cells."""
    known = {(one.tally.name, one.level): one for one in given}
    found = []
    for twin in twins:
        for level in twin.levels or (None,):
            one = known[twin.name, level]
            found.append(Measurement(twin, level, one.numbers[places_in(one.tally, twin, level)], one.noise))
    return found


def differing(mine: Estimated, theirs: Estimated) -> list[str]:
    """Where two releases that were written in different orders have different numbers."""
    twins = {tally.name: tally for tally in theirs.problem.tallies}
    found = []
    for tally, level in places_of(mine):
        twin = twins[tally.name]
        move = places_in(tally, twin, level)
        value, best = mine.value(tally, level)[move], mine.estimate(tally, level)[move]
        if not np.array_equal(value, theirs.value(twin, level)):
            found.append(f"numbers of {tally.name} at {level}")
        if not np.allclose(best, theirs.estimate(twin, level), atol=1e-9):
            found.append(f"estimates of {tally.name} at {level}")
    return found
