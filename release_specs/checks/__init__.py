"""What no single section can know: names, shares, caps, agreement, and what is legal but unwise.

Each check is one function, named as the rule it enforces, that looks at the whole draft and yields findings. `needs`
names the sections it reads: a check whose section could not be read is not run.
"""

from __future__ import annotations

from release_specs.checks import (
    agreement,
    columns,
    guarantee,
    microdata,
    promises,
    publication,
    refusals,
    spend,
    tables,
    unwise,
    vocabulary,
)
from release_specs.checks.draft import Draft, Needing
from release_specs.diagnostics import Finding, Severity

MISTAKES = (
    *microdata.CHECKS,
    *columns.CHECKS,
    *vocabulary.CHECKS,
    *tables.CHECKS,
    *guarantee.CHECKS,
    *refusals.CHECKS,
    *spend.CHECKS,
    *promises.CHECKS,
    *publication.CHECKS,
)
"""What must be mended."""

COUNSEL = (*spend.ADVICE, *agreement.CHECKS, *unwise.CHECKS)
"""Advice; while there are mistakes, most of it would be about those, so it waits."""


def find(draft: Draft) -> list[Finding]:
    """Everything the checks have to say about a draft."""
    findings = _run(draft, MISTAKES)
    whole = not draft.domain.unknown and not any(found.severity is Severity.ERROR for found in findings)
    return findings + (_run(draft, COUNSEL) if whole and not draft.files.findings else [])


def _run(draft: Draft, checks: tuple[Needing, ...]) -> list[Finding]:
    runnable = [needing for needing in checks if needing.sections <= draft.sections]
    return [found for needing in runnable for found in needing.check(draft)]
