"""Runs the product and the plain reference on the same files and compares them cell by cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from release_specs.load import Loaded
from release_specs.meanings import Meanings
from release_specs.tallies import Tally, tallies_of
from tabulation.count import count_tallies
from tabulation.counts import ExactCounts, ancestors
from tabulation.engines.duckdb import duckdb_engine
from tabulation.engines.engine import Engine
from tabulation.sources import open_sources
from tests.tabulation.reference import count_plainly

KEY = bytes(range(32))
Starts = Callable[[Path], AbstractContextManager[Engine]]
Cells = dict[tuple[int, int], int]


def counted(
    loaded: Loaded,
    places: Mapping[str, str | Path],
    folder: Path,
    *,
    edition: str | None = None,
    engine: Starts = duckdb_engine,
) -> dict[str, ExactCounts]:
    """What the product counts."""
    sources = open_sources(loaded.spec, {name: str(place) for name, place in places.items()})
    tallies = tallies_of(loaded.spec, loaded.domain)
    with engine(folder) as started:
        return count_tallies(Meanings(loaded.spec, loaded.domain, edition), started, sources, tallies, KEY)


def as_cells(counts: ExactCounts) -> Cells:
    """Counts as a dictionary: (area, cell) to number, zeros left out."""
    found = counts.smallest
    pairs = zip(found.keys.tolist(), found.values.tolist(), strict=True)
    return {divmod(key, counts.tally.cells): int(value) for key, value in pairs if value}


def plain_cells(tally: Tally, plain: Counter[tuple[Any, Any]]) -> Cells:
    """The reference's counts in the same form, added up to the smallest level of the tally."""
    found: Counter[tuple[int, int]] = Counter()
    places: dict[str, int] = {}
    if tally.spine is not None:
        leaf = tally.spine.smallest
        upwards = ancestors(tally.spine, leaf, tally.levels[-1])
        places = {area.code: int(upwards[index]) for index, area in enumerate(tally.spine.areas[leaf])}
    for (area, indices), number in plain.items():
        cell = 0
        for index, size in zip(indices, tally.shape, strict=False):
            cell = tally.cells - 1 if index == "elsewhere" else cell * size + index
        if indices == ("elsewhere",):
            cell = tally.cells - 1
        found[places[area] if area is not None else 0, cell] += number
    return {key: number for key, number in found.items() if number}


def differences(
    loaded: Loaded, files: Mapping[str, Path], found: Mapping[str, ExactCounts], *, edition: str | None = None
) -> dict[str, tuple[Cells, Cells]]:
    """The tallies on which product and reference differ, with what each says where they do."""
    plain = count_plainly(loaded, files, key=KEY, edition=edition)
    wrong: dict[str, tuple[Cells, Cells]] = {}
    for tally in tallies_of(loaded.spec, loaded.domain):
        ours, theirs = as_cells(found[tally.name]), plain_cells(tally, plain[tally.name])
        if ours != theirs:
            cells = [cell for cell in {*ours, *theirs} if ours.get(cell) != theirs.get(cell)]
            wrong[tally.name] = (
                {cell: ours.get(cell, 0) for cell in cells},
                {cell: theirs.get(cell, 0) for cell in cells},
            )
    return wrong
