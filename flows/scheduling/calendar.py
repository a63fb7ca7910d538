"""From a spec's schedule to its occurrences: pure arithmetic on days, no orchestrator, no clock read.

A nominal day is the day the schedule's own words name. It decides the edition and is the identity of a run. The day
of publication is the nominal one, or, where `if_weekend` asks for it, the nearest working day after (`next Monday`)
or before it (`previous Friday`): Saturdays, Sundays and the days of the holidays file are stepped over one by one, so
a holiday on a Monday leads to Tuesday, and a step may cross the end of a month or year. `keep` never shifts.

A month without the day (a 30th of February) has no occurrence; `check` refuses a spec that promises one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from flows.scheduling.clock import before, instant
from flows.scheduling.editions import edition_of
from flows.terminal import UserError
from release_specs.language.publication import Schedule
from release_specs.reading.public_files import PublicFiles

MOST_ROLLED = 60
"""Days in a row that may be holidays."""

STEPS = {"next Monday": timedelta(days=1), "previous Friday": timedelta(days=-1)}


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One firing of a schedule: the day it is named by, the day it is published, and both moments in UTC."""

    nominal: date
    day: date
    measuring: datetime
    publication: datetime
    edition: str | None

    @property
    def claim(self) -> str:
        """What the ledger lets only one release have: the edition, or the nominal day where no edition is named."""
        return self.edition if self.edition is not None else self.nominal.isoformat()


def occurrences(schedule: Schedule, *, holidays: Collection[date], start: date, end: date) -> list[Occurrence]:
    """The occurrences whose nominal days lie in `start <= day < end`, earliest first, each nominal day once."""
    zone, rule = _zone(schedule), schedule.rule
    days = (start + timedelta(days=number) for number in range((end - start).days))
    return [
        _occurrence(schedule, day, _rolled(day, schedule.if_weekend, holidays), zone)
        for day in days
        if rule.falls_on(day)
    ]


def upcoming(schedule: Schedule, *, holidays: Collection[date], now: datetime, years: int = 2) -> list[Occurrence]:
    """The occurrences to be published at `now` or later whose nominal days lie within so many years."""
    today, reach = now.astimezone(UTC).date(), timedelta(days=MOST_ROLLED + 2)
    found = occurrences(schedule, holidays=holidays, start=today - reach, end=today + timedelta(days=366 * years))
    return [one for one in found if one.publication >= now]


def _occurrence(schedule: Schedule, nominal: date, day: date, zone: ZoneInfo) -> Occurrence:
    publication = instant(day, schedule.clock, zone)
    measuring = before(schedule.measure, publication, zone=zone)
    edition = edition_of(schedule.edition, nominal) if schedule.edition is not None else None
    return Occurrence(nominal, day, measuring, publication, edition)


def _zone(schedule: Schedule) -> ZoneInfo:
    try:
        return ZoneInfo(schedule.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UserError(
            f"schedule.timezone: '{schedule.timezone}' is not a time zone; write a place, such as Europe/Paris"
        ) from None


def is_working_day(day: date, holidays: Collection[date]) -> bool:
    """Whether a day is neither a Saturday, a Sunday nor a holiday."""
    return day.weekday() < 5 and day not in holidays


def _rolled(nominal: date, if_weekend: str, holidays: Collection[date]) -> date:
    if if_weekend == "keep":
        return nominal
    for number in range(MOST_ROLLED + 1):
        day = nominal + number * STEPS[if_weekend]
        if is_working_day(day, holidays):
            return day
    raise UserError(
        f"schedule.holidays: {MOST_ROLLED} days in a row beside {nominal} are weekends or holidays, so '{if_weekend}' "
        "finds no day; take some days out of the holidays file"
    )


def read_holidays(schedule: Schedule, folder: Path) -> frozenset[date]:
    """The days of the schedule's holidays file, beside the spec in `folder`; none where it names no file."""
    if schedule.holidays is None:
        return frozenset()
    files, path = PublicFiles(folder), ("schedule", "holidays")
    table = files.table(schedule.holidays, path)
    if table is None or not files.has_columns(table, ("date",), path):
        raise UserError(f"schedule.holidays: {files.findings[0].message}")
    return frozenset(_holiday(text, f"{schedule.holidays}:{line}") for line, text in table.column("date"))


def _holiday(text: str, place: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UserError(f"{place}: '{text}' is not a day of the calendar; write 2026-12-25") from None


def years_without_holidays(found: Iterable[Occurrence], holidays: Collection[date]) -> list[int]:
    """The years in which something is published and of which the holidays file, where there is one, says nothing."""
    known = {day.year for day in holidays}
    return sorted({one.day.year for one in found} - known) if known else []
