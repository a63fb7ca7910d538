"""Tables made once more from what is published: `spec/` and `measurements/` alone, with the microdata gone.

`make_tables` is how tables are made the first time too, so that a replay can give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from estimation.error import Margins
from estimation.errors import EstimationError
from estimation.measurement import ExactNumbers, Measurement, Noise
from estimation.problem import Problem, problem
from estimation.release import Estimated, Progress, estimate_release
from estimation.tables import Statistic, published_statistics
from release_specs.domain import Domain
from release_specs.load import Loaded
from release_specs.measured import tallies_of_edition
from release_specs.spec import ReleaseSpec
from reporting import hidden_cells, measurement_files, spec_files, table_files
from reporting.errors import ReleaseFault
from reporting.manifest import read_manifest

MADE = (table_files.FOLDER, hidden_cells.FOLDER)
"""The folders that follow from the measurements."""

NoiseOf = Callable[[Mapping[str, Any]], Noise]
"""The law of the noise of a mechanism, from `mechanism` and `parameters` as they are written in measurement files."""


@dataclass(frozen=True, eq=False)
class MadeTables:
    """The tables of a release, with what they were made from."""

    spec: ReleaseSpec
    domain: Domain
    measurements: tuple[Measurement, ...] = field(repr=False)
    exact: tuple[ExactNumbers, ...] = field(repr=False)
    estimated: Estimated = field(repr=False)
    margins: Margins = field(repr=False)

    @property
    def statistics(self) -> Iterator[Statistic]:
        """Every published number, as the tables' files want them."""
        return published_statistics(self.estimated, self.margins, self.spec, self.domain)

    @property
    def measured(self) -> tuple[tuple[str, str | None], ...]:
        """Every tally by name, and level, of which there are numbers."""
        noisy = [(one.tally.name, one.level) for one in self.measurements]
        return (*noisy, *((one.tally.name, one.level) for one in self.exact))

    def write_release(self, folder: Path, *, spec: Mapping[str, bytes], described: measurement_files.Described) -> None:
        """Writes everything that a release holds but its manifest."""
        spec_files.write_spec_files(folder, spec)
        self.write(folder)
        measurement_files.write_measurements(folder, self.measurements, self.exact, described=described)

    def write(self, folder: Path) -> None:
        """Writes `tables/` and `not_stated/`."""
        table_files.write_tables(folder, self.statistics)
        hidden_cells.write_hidden(folder, self.estimated, spec=self.spec, domain=self.domain)


def make_tables(
    found: Problem,
    domain: Domain,
    *,
    measurements: Sequence[Measurement],
    exact: Sequence[ExactNumbers] = (),
    progress: Progress | None = None,
) -> MadeTables:
    """Tables from measurements, whatever order these come in."""
    spec = found.spec
    places = [(tally.name, level) for tally in found.tallies for level in tally.levels or (None,)]
    place = {key: number for number, key in enumerate(places)}
    ordered = sorted(measurements, key=lambda one: place[one.tally.name, one.level])
    sure = sorted(exact, key=lambda one: place[one.tally.name, one.level])
    estimated = estimate_release(found, ordered, sure, progress=progress)
    margins = Margins(estimated, ordered, confidence=spec.publish.confidence, rule=spec.publish.moe_rule)
    return MadeTables(spec, domain, tuple(ordered), tuple(sure), estimated, margins)


def replay(folder: Path, out: Path, *, noise_of: NoiseOf) -> list[str]:
    """Makes the tables of a release once more in `out`, an empty folder, and compares them byte for byte.

    Gives the paths of all files that differ, are missing or are too many. Raises `ReleaseFault` where the release does
    not hold what tables are made from.
    """
    loaded = spec_files.load_shipped(folder, read_manifest(folder).edition)
    measurements, exact = stored_numbers(folder, loaded, noise_of)
    tallies = tallies_of_edition(loaded, folder / spec_files.FOLDER)
    try:
        found = problem(loaded.spec, loaded.domain, tallies, folder=folder / spec_files.FOLDER)
        made = make_tables(found, loaded.domain, measurements=measurements, exact=exact)
    except EstimationError as fault:
        raise ReleaseFault(f"tables cannot be made from the measurements: {fault}") from None
    made.write(out)
    return _different(folder, out)


def stored_numbers(folder: Path, loaded: Loaded, noise_of: NoiseOf) -> tuple[list[Measurement], list[ExactNumbers]]:
    """The measurements and exact numbers of a release folder."""
    tallies = tallies_of_edition(loaded, folder / spec_files.FOLDER)
    stored = measurement_files.read_measurements(folder, tallies).values()
    measured = []
    for one in (one for one in stored if not one.is_exact):
        try:
            noise = noise_of(one.described)
        except ValueError as fault:
            raise ReleaseFault(f"{measurement_files.FOLDER}: '{one.tally.name}' at '{one.level}': {fault}") from None
        measured.append(Measurement(one.tally, one.level, one.numbers, noise))
    return measured, [ExactNumbers(one.tally, one.level, one.numbers) for one in stored if one.is_exact]


def _different(folder: Path, out: Path) -> list[str]:
    files = [{path.relative_to(base).as_posix() for path in _made(base)} for base in (folder, out)]
    shared = sorted(files[0] & files[1])
    changed = [path for path in shared if (folder / path).read_bytes() != (out / path).read_bytes()]
    return sorted([*changed, *(files[0] ^ files[1])])


def _made(base: Path) -> Iterator[Path]:
    for name in MADE:
        yield from (path for path in (base / name).rglob("*") if not path.is_dir())
