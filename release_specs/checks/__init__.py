"""What no single section can know: names, shares, caps, agreement, and what is legal but unwise.

Each check is one function, named as the rule it enforces, that looks at the whole draft and yields findings. `needs`
names the sections it reads: a check whose section could not be read is not run.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from release_specs.checks import (
    agreement,
    columns,
    computed,
    early,
    guarantee,
    microdata,
    precision,
    promises,
    publication,
    refusals,
    rules,
    settling,
    spend,
    tables,
    unwise,
    vocabulary,
)
from release_specs.checks.draft import Draft, Needing
from release_specs.diagnostics import Finding, Severity, listed

MISTAKES = (
    *microdata.CHECKS,
    *columns.CHECKS,
    *vocabulary.CHECKS,
    *tables.CHECKS,
    *computed.CHECKS,
    *precision.CHECKS,
    *guarantee.CHECKS,
    *early.CHECKS,
    *refusals.CHECKS,
    *spend.CHECKS,
    *promises.CHECKS,
    *rules.CHECKS,
    *publication.CHECKS,
)
"""What must be mended."""

COUNSEL = (
    *spend.ADVICE,
    *precision.ADVICE,
    *rules.ADVICE,
    *settling.CHECKS,
    *settling.ADVICE,
    *agreement.CHECKS,
    *unwise.CHECKS,
)
"""Advice; while there are mistakes, most of it would be about those, so it waits."""


def find(draft: Draft) -> list[Finding]:
    """Everything the checks have to say about a draft."""
    findings = _told_once(draft, _run(draft, MISTAKES))
    whole = not draft.domain.unknown and not any(found.severity is Severity.ERROR for found in findings)
    return findings + (_run(draft, COUNSEL) if whole and not draft.files.findings else [])


def _run(draft: Draft, checks: tuple[Needing, ...]) -> list[Finding]:
    runnable = [needing for needing in checks if needing.sections <= draft.sections]
    return [found for needing in runnable for found in needing.check(draft)]


def _told_once(draft: Draft, findings: list[Finding]) -> list[Finding]:
    """An unknown level is told where it first stands, with the other lines: a renamed level stands in many."""
    levels, lines = set(draft.levels()), defaultdict[str, list[tuple[int, Finding]]](list)
    for found in findings:
        name = found.message.partition("'")[2].partition("'")[0]
        if found.code == "unknown-level" and name not in levels:
            lines[name].append((draft.line(found.path), found))
    instead: dict[Finding, Finding | None] = {}
    for places in lines.values():
        (first, told), *others = sorted(places, key=lambda place: place[0])
        more = sorted({line for line, _ in others} - {first})
        where = f" (also in line{'s' if len(more) > 1 else ''} {listed(more)})" if more else ""
        instead |= dict.fromkeys(found for _, found in others)
        instead[told] = replace(told, message=told.message + where)
    return [kept for found in findings if (kept := instead.get(found, found)) is not None]
