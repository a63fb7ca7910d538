"""A finished release looked at once more, from its files alone: hashes, forms, sums, signs, totals, rules, errors.

Nothing is shared with how the numbers were made: tables are read back from their files, and what they promise is read
from the spec that was shipped with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from estimation.tables import NOT_KNOWN, Statistic
from release_specs.load import Loaded
from release_specs.measured import tallies_of_edition
from release_specs.tallies import EXACT
from reporting import spec_files
from reporting.check_numbers import broken_promises, error_faults, put_together
from reporting.errors import ReleaseFault
from reporting.hidden_cells import Hidden, read_hidden, whole_tallies
from reporting.layout import parts_of
from reporting.manifest import Manifest, check_hashes, read_manifest
from reporting.measurement_files import Key, Stored, read_measurements
from reporting.table_files import read_tables

MOST_TOLD = 5
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, and what was found."""

    name: str
    ok: bool
    detail: str


@dataclass
class _Looked:
    """What earlier checks read, for later ones."""

    folder: Path
    manifest: Manifest | None = None
    loaded: Loaded | None = None
    statistics: list[Statistic] | None = None
    hidden: Hidden | None = None
    stored: dict[Key, Stored] | None = None
    checks: list[Check] = field(default_factory=list)

    def look(self, name: str, see: Callable[[_Looked], Sequence[str]]) -> None:
        """One check; it fails with a sentence, also where what it needs could not be read."""
        try:
            wrong = list(see(self))
        except ReleaseFault as fault:
            wrong = [str(fault)]
        more = [f"and {len(wrong) - MOST_TOLD} more"] if len(wrong) > MOST_TOLD else []
        self.checks.append(Check(name, ok=not wrong, detail="; ".join([*wrong[:MOST_TOLD], *more])))


def check_release(folder: Path) -> list[Check]:
    """Everything that can be seen to hold from a release folder alone, one line for each thing looked at."""
    looked = _Looked(folder)
    looked.look("manifest", _manifest)
    looked.look("files", lambda found: check_hashes(found.folder))
    looked.look("spec", _spec)
    looked.look("tables", _tables)
    looked.look("errors", _errors)
    looked.look("measurements", _measurements)
    looked.look("promises", _promises)
    return looked.checks


def _manifest(looked: _Looked) -> Sequence[str]:
    looked.manifest = read_manifest(looked.folder)
    return []


def _spec(looked: _Looked) -> Sequence[str]:
    """The spec loads from its folder alone and is that of the manifest."""
    manifest = _there(looked.manifest)
    looked.loaded = spec_files.load_shipped(looked.folder, manifest.edition)
    release = looked.loaded.spec.release
    pairs = (("name", manifest.name, release.name), ("title", manifest.title, release.title))
    wrong = [f"the manifest's {what} is '{one}', the spec's '{other}'" for what, one, other in pairs if one != other]
    wanted = {spec_files.SPEC, *spec_files.public_files(looked.loaded.spec)}
    shipped = {path.removeprefix("spec/") for path in manifest.files if path.startswith("spec/")}
    return [*wrong, *(f"spec/{name} is named by the spec nowhere" for name in sorted(shipped - wanted))]


def _tables(looked: _Looked) -> Sequence[str]:
    loaded = _there(looked.loaded)
    looked.statistics = list(read_tables(looked.folder, loaded.spec, loaded.domain))
    looked.hidden = read_hidden(looked.folder, loaded.spec, loaded.domain)
    return []


def _errors(looked: _Looked) -> Sequence[str]:
    """Estimates lie in their intervals, margins are not negative, flags are known."""
    loaded, statistics = _there(looked.loaded), _there(looked.statistics)
    parts = [part for found in parts_of(loaded.spec, loaded.domain).values() for part in found]
    flags = ("", *loaded.spec.publish.reliability, NOT_KNOWN)
    pairs = zip(parts, statistics, strict=True)
    return [fault for part, one in pairs for fault in error_faults(one, flags, signed=part.is_signed)]


def _measurements(looked: _Looked) -> Sequence[str]:
    """Every measurement that the manifest names is there and whole, and no other."""
    loaded, manifest = _there(looked.loaded), _there(looked.manifest)
    stored = read_measurements(looked.folder, tallies_of_edition(loaded, looked.folder / spec_files.FOLDER))
    looked.stored = stored
    lacking = [key for key in manifest.measured if key not in stored]
    extra = [key for key in stored if key not in manifest.measured]
    exact = [key for key, one in stored.items() if one.is_exact is not (one.tally.table == EXACT)]
    return [
        *(f"the measurement of '{name}' at '{level}' is missing" for name, level in lacking),
        *(f"the measurement of '{name}' at '{level}' is not in the manifest" for name, level in extra),
        *(f"'{name}' at '{level}': exact totals have no noise, and nothing else is exact" for name, level in exact),
    ]


def _promises(looked: _Looked) -> Sequence[str]:
    """Whole, not negative, adding up, agreeing, nothing where nothing can be, exact totals met, rules kept."""
    loaded, exact = _there(looked.loaded), [one for one in _there(looked.stored).values() if one.is_exact]
    tallies = whole_tallies(loaded.spec, loaded.domain)
    published = put_together(tallies, _there(looked.statistics), _there(looked.hidden))
    return broken_promises(loaded, published, exact, public=looked.folder / spec_files.FOLDER)


def _there(found: T | None) -> T:
    """What an earlier check read."""
    if found is None:
        raise ReleaseFault("not looked at: an earlier check failed")
    return found
