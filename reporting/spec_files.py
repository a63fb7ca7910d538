"""The spec as it is shipped with a release: its text and every public file it names, under `spec/`.

From this folder alone a reader rebuilds which cells, areas and codes there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from release_specs.diagnostics import Severity, SpecError
from release_specs.language.phrases import FileColumn
from release_specs.load import Loaded, load_spec
from release_specs.spec import ReleaseSpec
from reporting.errors import ReleaseFault

FOLDER = "spec"
SPEC = "spec.yaml"


def public_files(spec: ReleaseSpec) -> list[str]:
    """The names of all public files a spec names, each once."""
    return list(dict.fromkeys(name for name in _named(spec) if name is not None))


def _named(spec: ReleaseSpec) -> Iterator[str | None]:
    for entity in spec.microdata.values():
        yield from (column.codes.file for column in entity.columns.values() if column.codes is not None)
    yield from (spine.areas.file for spine in spec.geography.values())
    yield spec.expect.areas.file if spec.expect is not None and spec.expect.areas is not None else None
    yield from (total.source.file for total in spec.exact if isinstance(total.source, FileColumn))
    yield from (rule.right.file for rule in spec.rules if isinstance(rule.right, FileColumn))
    yield from spec.publish.languages.values()
    yield spec.schedule.holidays if spec.schedule is not None else None


def gather_spec(path: Path) -> dict[str, bytes]:
    """What is shipped of the spec in a file: its own bytes and those of its public files, by their names."""
    loaded = load_spec(path)
    return {SPEC: path.read_bytes(), **{name: (path.parent / name).read_bytes() for name in public_files(loaded.spec)}}


def write_spec_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes what `gather_spec` gathered under `spec/`."""
    for name, data in files.items():
        path = folder / FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(data)


def load_shipped(folder: Path, edition: str | None) -> Loaded:
    """The spec of a release for its edition, from `spec/` alone. Raises `ReleaseFault` where it has mistakes."""
    try:
        loaded = load_spec(folder / FOLDER / SPEC)
    except SpecError as fault:
        mistakes = [item for item in fault.diagnostics if item.severity is Severity.ERROR]
        raise ReleaseFault(f"{FOLDER}/{SPEC} has mistakes; the first: {mistakes[0].message}") from None
    release = loaded.spec.release.model_copy(update={"edition": edition})
    return Loaded(loaded.spec.model_copy(update={"release": release}), loaded.domain, loaded.diagnostics)
