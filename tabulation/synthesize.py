"""Fake microdata that satisfy a spec, for writing, planning and rehearsing a release before any record is opened.

Everything comes from the spec, its public files and a seed; the same three give the same bytes. The files are marked
as generated, which is what `plan`, `simulate` and `audit` ask of a file before they read it (law 11).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from os import getpid
from pathlib import Path

from release_specs.domain import Domain
from release_specs.reading.public_files import PublicFiles
from release_specs.spec import ReleaseSpec
from tabulation.synthetic.areas import Map, settle
from tabulation.synthetic.demands import demands_of, singles_entity
from tabulation.synthetic.drawing import Drawer
from tabulation.synthetic.errors import SynthesisError
from tabulation.synthetic.files import FORMATS, Writing, write_entity
from tabulation.synthetic.marking import Listed, Mark, hash_of, is_generated, listed_in, write_sidecar
from tabulation.synthetic.matches import Meanings
from tabulation.synthetic.nesting import nest
from tabulation.synthetic.population import Population
from tabulation.synthetic.repair import repair
from tabulation.synthetic.streams import Streams
from tabulation.synthetic.variables import variables_of


@dataclass(frozen=True, slots=True)
class GeneratedFile:
    """One file of generated microdata."""

    entity: str
    path: Path
    rows: int


def synthesize(  # noqa: PLR0913
    spec: ReleaseSpec,
    domain: Domain,
    *,
    records: int,
    seed: int,
    out: Path,
    form: str = "parquet",
    dirt: Fraction = Fraction(0),
    folder: Path | None = None,
) -> tuple[GeneratedFile, ...]:
    """Writes one file in `out` for each entity that has one, and `GENERATED.json` beside them.

    `records` is the number of rows of the innermost entities; `dirt` the share of cells to spoil; `folder` holds the
    public files of the spec. Raises `SynthesisError`, and leaves every file that was not generated as it is.
    """
    _check_wishes(records, seed, form, dirt)
    paths = {entity: out / f"{entity}.{form}" for entity, declared in spec.microdata.items() if not declared.built_from}
    _refuse_to_overwrite(out, paths.values())
    streams = Streams(seed)
    population = populate(spec, domain, records, streams, PublicFiles(folder) if folder is not None else None)
    writing = Writing(form, dirt, Mark(spec.release.name, seed, records, _version()), streams)
    try:
        return _write(population, paths, out, writing)
    except OSError as fault:
        reason = fault.strerror or type(fault).__name__
        raise SynthesisError(
            f"{out}: the files cannot be written: {reason}; free space or choose another folder"
        ) from None


def populate(
    spec: ReleaseSpec, domain: Domain, records: int, streams: Streams, files: PublicFiles | None
) -> Population:
    """A population that satisfies the spec."""
    meanings = Meanings(spec, domain, variables_of(spec, domain))
    demands = demands_of(meanings)
    population = Population(meanings, nest(spec, records, singles_entity(meanings), streams))
    settle(population.rows, Map(meanings, demands, files, streams))
    Drawer(population, demands, streams).draw_all()
    repair(population, demands, streams)
    return population


def _check_wishes(records: int, seed: int, form: str, dirt: Fraction) -> None:
    if records < 1:
        raise SynthesisError(f"{records} records were asked for; ask for at least 1")
    if seed < 0:
        raise SynthesisError(f"the seed is {seed}; choose a whole number of at least 0")
    if form not in FORMATS:
        raise SynthesisError(f"'{form}' is not a format of microdata; choose {' or '.join(FORMATS)}")
    if not 0 <= dirt <= 1:
        raise SynthesisError(f"the share of dirt is {dirt}; choose one from 0 to 1, such as 1/100")


def _refuse_to_overwrite(out: Path, paths: Iterable[Path]) -> None:
    if out.exists() and not out.is_dir():
        raise SynthesisError(f"{out} is a file; name a folder for the generated files")
    listed_in(out)
    for path in paths:
        if path.exists() and not is_generated(path):
            raise SynthesisError(
                f"{path} exists and is not marked as generated, so it may hold real records; "
                "move it away or choose another folder"
            )


def _write(population: Population, paths: dict[str, Path], out: Path, writing: Writing) -> tuple[GeneratedFile, ...]:
    """Writes all files aside, vouches for them, and only then moves them into place."""
    out.mkdir(parents=True, exist_ok=True)
    aside = {entity: path.with_name(f".{path.name}.{getpid()}") for entity, path in paths.items()}
    counts = {entity: population.rows[entity].count for entity in paths}
    try:
        for entity, path in aside.items():
            write_entity(population, entity, path, writing)
        before = [entry for entry in listed_in(out) if (out / entry.file).is_file()]
        fresh = [
            Listed(path.name, hash_of(aside[entity]), counts[entity], writing.mark.seed)
            for entity, path in paths.items()
        ]
        write_sidecar(out, writing.mark, (*before, *fresh))
        for entity, path in paths.items():
            aside[entity].replace(path)
        names = {entry.file for entry in fresh}
        write_sidecar(out, writing.mark, (*fresh, *(entry for entry in before if entry.file not in names)))
    finally:
        for path in aside.values():
            path.unlink(missing_ok=True)
    return tuple(GeneratedFile(entity, path, counts[entity]) for entity, path in paths.items())


def _version() -> str:
    try:
        return version("margrave")
    except PackageNotFoundError:
        return "unknown"


__all__ = ["GeneratedFile", "SynthesisError", "is_generated", "synthesize"]
