"""How large a release is, before any data is opened: memory and time of estimation, and by which way it is reconciled.

The figures are upper estimates from counts of areas and cells. A release that this machine cannot hold is refused with
what would make it fit.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from estimation.errors import TooLarge
from estimation.estimate import WORKERS
from estimation.least_squares import FAMILY_CELLS
from estimation.problem import Planned, Problem
from release_specs.tallies import Tally

NUMBER = 8
PUBLISHED = NUMBER + 4 + 8
"""Bytes of a published cell: its estimate, its whole number, and the measurement it came from."""
SECONDS = 150e-9
"""Of one worker, for a cell of an area: settling it, with everything that goes before."""
MULTIPLY = 2e-9
"""Seconds for one multiplication in the inverse of a matrix."""
BASE = 250 * 2**20
"""Bytes of the process before anything is loaded."""


@dataclass(frozen=True, slots=True)
class PopulationSize:
    """One population: how it is reconciled, how many cells it has over all areas, and what that takes."""

    name: str
    way: str
    cells: int
    histograms: int
    crossing: tuple[str, ...]
    memory: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Size:
    """A release: its populations one after the other."""

    populations: tuple[PopulationSize, ...]

    @property
    def memory(self) -> int:
        """Bytes at most: every population's tables are kept until all are done."""
        return BASE + sum(one.memory for one in self.populations)

    @property
    def seconds(self) -> float:
        """About how long it takes."""
        return sum(one.seconds for one in self.populations)


def size_of(problem: Problem) -> Size:
    """What estimating a release will take."""
    return Size(tuple(_size(planned) for planned in problem.populations))


def _size(planned: Planned) -> PopulationSize:
    design, levels = planned.design, planned.forest.tree.levels
    published = sum(_cells(tally) for tally in planned.population.tallies)
    coordinates = design.core * design.coordinates.length
    cells = sum(histogram.cells for histogram in planned.histograms)
    inner = sum(levels.values()) - max(levels.values()) + 1
    matrices = 4 * inner * len(design.coordinates.parts) * design.core**2 if design.core > 1 else 4 * inner
    work = WORKERS * 12 * min(FAMILY_CELLS, sum(levels.values()) * (coordinates + cells))
    memory = PUBLISHED * published + NUMBER * (inner * (2 * coordinates + cells) + matrices + work)
    settled = sum(levels.values()) * cells
    inverses = inner * len(design.coordinates.parts) * design.core**3
    seconds = (SECONDS * (settled + published) + MULTIPLY * inverses) / WORKERS + 0.01
    return PopulationSize(
        planned.population.name,
        "in closed form" if design.is_closed_form else f"with blocks of {design.core} coordinates",
        settled,
        len(planned.histograms),
        tuple(node[1] for node in planned.arrangement.crossing),
        memory,
        seconds,
    )


def _cells(tally: Tally) -> int:
    return sum(tally.areas(level) * tally.cells for level in tally.levels or (None,))


def memory_of_machine() -> int:
    """Bytes of memory that this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def require_room(size: Size, available: int | None = None) -> None:
    """Refuses a release that does not fit into memory."""
    room = memory_of_machine() if available is None else available
    if size.memory > room:
        worst = max(size.populations, key=lambda one: one.memory)
        raise TooLarge(
            f"estimating this release takes about {size.memory / 2**30:,.1f} GB and the machine has "
            f"{room / 2**30:,.1f} GB; most of it is for {worst.name}, {worst.cells:,} cells over all areas. Publish "
            "its largest table at fewer levels, or use fewer categories"
        )
