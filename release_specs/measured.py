"""Every tally of a spec with the levels at which it is published or measured: a table may be measured where it is not
printed, to help others.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from release_specs.checks.draft import Draft
from release_specs.checks.spend import measured_levels
from release_specs.domain import Domain
from release_specs.load import Loaded
from release_specs.reading.public_files import PublicFiles
from release_specs.spec import ReleaseSpec
from release_specs.tallies import EXACT, Tally, tallies_of


def draft_of(spec: ReleaseSpec, domain: Domain, *, folder: Path, edition: str | None) -> Draft:
    """The spec of one edition beside its public files: what checks look at, and the plan too."""
    release = spec.release.model_copy(update={"edition": edition})
    of_edition = spec.model_copy(update={"release": release})
    return Draft(of_edition, domain, PublicFiles(folder), frozenset(), lambda _: 0)


def tallies_at_all_levels(draft: Draft) -> list[Tally]:
    """Every tally, with the levels at which it is published or measured, from the whole down."""
    return [
        tally if tally.table == EXACT else _with_measured_levels(draft, tally)
        for tally in tallies_of(draft.spec, draft.domain)
    ]


def tallies_of_edition(loaded: Loaded, folder: Path) -> list[Tally]:
    """The same for a spec that names its edition, with its public files in a folder."""
    edition = loaded.spec.release.edition
    return tallies_at_all_levels(draft_of(loaded.spec, loaded.domain, folder=folder, edition=edition))


def _with_measured_levels(draft: Draft, tally: Tally) -> Tally:
    if tally.spine is None:
        return tally
    wanted = {*tally.levels, *measured_levels(draft, tally.table)}
    return replace(tally, levels=tuple(level for level in tally.spine.levels if level in wanted))
