"""The hour before which an edition is not published, as its spec's schedule says.

An edition has an hour if a firing of the schedule publishes it: the earliest such firing's. An edition that no firing
publishes (another name, a year before the schedule's words reach) has none, and neither has a spec without a schedule.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from pathlib import Path

from flows.scheduling.calendar import occurrences, read_holidays
from release_specs.spec import ReleaseSpec

YEAR = re.compile(r"(\d{4})(-|$)")
"""How every edition begins that a firing can publish."""
LATEST = 9990


def hour_of(spec: ReleaseSpec, folder: Path, edition: str | None) -> datetime | None:
    """When an edition of a spec may be published, in UTC; `folder` has the spec's public files."""
    schedule, year = spec.schedule, YEAR.match(edition or "")
    if schedule is None or year is None or not 1 < int(year[1]) < LATEST:
        return None
    start = int(year[1])  # 'previous year' is published in the year after
    found = occurrences(
        schedule, holidays=read_holidays(schedule, folder), start=date(start, 1, 1), end=date(start + 2, 1, 1)
    )
    return min((one.publication for one in found if one.claim == edition), default=None)
