"""The door of the room: confidential files in, exact counts out, for a mechanism and nobody else.

Nothing that goes wrong in here is told in a library's words, and nothing stays behind: files that spill live in a
private folder that is removed in every case.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from release_specs.domain import Domain
from release_specs.meanings import Meanings
from release_specs.spec import ReleaseSpec
from release_specs.tallies import Tally, tallies_of
from tabulation.boundary import confidential
from tabulation.count import count_tallies
from tabulation.counts import ExactCounts
from tabulation.engines.engine import Engine, ReadAgain
from tabulation.errors import MicrodataError
from tabulation.private import private_folder
from tabulation.schema import check_structure
from tabulation.sources import Source, fingerprint, open_sources

T = TypeVar("T")
ENGINES = ("duckdb", "spark")
KEY_BYTES = 32

Tell = Callable[[str], None]
"""Told the name of each stage as it begins; a stage has no numbers."""


@dataclass(frozen=True, slots=True)
class Work:
    """Where the counting is done: the engine, the folder for spill files, the memory it may use, Spark's master."""

    engine: str = "duckdb"
    folder: Path | None = None
    memory: int | None = None
    master: str = "local[*]"

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise ValueError(f"'{self.engine}' is not an engine; choose {' or '.join(ENGINES)}")


def tell_nobody(stage: str) -> None:
    """For whoever does not want to be told."""
    del stage


def new_key() -> bytes:
    """The secret key that decides which rows a cap keeps: drawn once for a run and kept with it."""
    return secrets.token_bytes(KEY_BYTES)


@confidential("opening the microdata")
def open_dataset(spec: ReleaseSpec, domain: Domain, places: Mapping[str, str]) -> dict[str, Source]:
    """The files of a release, their structure checked and no record read. Raises `MicrodataError`."""
    sources = open_sources(spec, places)
    check_structure(spec, domain, sources)
    return sources


@confidential("fingerprinting the microdata")
def dataset_fingerprint(sources: Mapping[str, Source], key: bytes) -> bytes:
    """The keyed fingerprint of a dataset (law 12)."""
    return fingerprint(sources, key)


@confidential("counting")
def tabulate(  # noqa: PLR0913
    spec: ReleaseSpec,
    domain: Domain,
    sources: Mapping[str, Source],
    *,
    key: bytes,
    edition: str | None = None,
    tallies: Sequence[Tally] | None = None,
    work: Work | None = None,
    tell: Tell = tell_nobody,
) -> dict[str, ExactCounts]:
    """The exact counts of every tally by its name. Raises `MicrodataError`, which quotes no record."""
    if len(key) != KEY_BYTES:
        raise ValueError(f"the key has {KEY_BYTES} bytes")
    check_edition(spec, edition)
    wanted = tuple(tallies) if tallies is not None else tallies_of(spec, domain)
    meanings = Meanings(spec, domain, edition)
    return with_an_engine(work or Work(), tell, lambda engine: count_tallies(meanings, engine, sources, wanted, key))


def check_edition(spec: ReleaseSpec, edition: str | None) -> None:
    """Refuses a spec that selects the rows of an edition when none is named."""
    asks = any(
        "edition" in test.wanted
        for entity in spec.microdata.values()
        if entity.only is not None
        for _, test in entity.only.criteria()
    )
    if asks and edition is None and spec.release.edition is None:
        message = "'only' selects the rows of an edition, and no edition is named; add --edition NAME"
        raise MicrodataError("no-edition", "", message)


def with_an_engine(work: Work, tell: Tell, act: Callable[[Engine], T]) -> T:
    """What an engine answers; asked again from the beginning, with care, where a cell stopped its reader.

    Nobody is told that it was asked again: that depends on a record.
    """
    try:
        with started(work) as engine:
            tell("reading and counting")
            return act(engine)
    except ReadAgain:
        pass
    with started(work, careful=True) as engine:
        return act(engine)


@contextmanager
def started(work: Work, *, careful: bool = False) -> Iterator[Engine]:
    """The engine, with a private folder that ends with it."""
    with private_folder(work.folder) as folder:
        if work.engine == "spark":
            from tabulation.engines.spark import spark_engine  # noqa: PLC0415 - only who uses Spark installs it

            with spark_engine(folder, master=work.master, memory=work.memory) as spark:
                yield spark
        else:
            from tabulation.engines.duckdb import duckdb_engine  # noqa: PLC0415 - one engine is loaded, not both

            with duckdb_engine(folder, memory=work.memory, careful=careful) as duck:
                yield duck
