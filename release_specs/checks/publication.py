"""Checks of editions, calendar and translations."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from release_specs.checks.draft import Draft, needs
from release_specs.diagnostics import Finding, Path, did_you_mean, error, listed, warning
from release_specs.domain import MOST_CATEGORIES
from release_specs.language.phrases import MONTHS, ordinal

CLOCK_YEARS = range(2025, 2038)
"""The years whose clock changes are known to the time-zone tables."""

DAYS_IN_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@needs("privacy", "release")
def editions_divide_the_account(draft: Draft) -> Iterator[Finding]:
    """Editions share at most the whole budget, and this release is one of them."""
    account, edition = draft.spec.privacy.account, draft.spec.release.edition
    if account is None or account.editions is None:
        return
    path: Path = ("privacy", "account", "editions")
    total = sum(account.editions.values(), Fraction(0))
    if total > 1:
        shares = " + ".join(str(share) for share in account.editions.values())
        yield error("shares-exceed", path, f"{shares} = {total}, over by {total - 1}; lower some shares", at_key=True)
    if edition is not None and edition not in account.editions:
        message = f"'{edition}' is not an edition of the account; {did_you_mean(edition, account.editions)}"
        yield error("unknown-edition", ("release", "edition"), message)


@needs("privacy", "schedule")
def a_firing_publishes_an_edition_of_the_account(draft: Draft) -> Iterator[Finding]:
    """A schedule that names editions by period names them by the account's period."""
    schedule, account = draft.spec.schedule, draft.spec.privacy.account
    if schedule is None or schedule.edition is None or account is None or account.every is None:
        return
    which, period = schedule.edition.split()
    if period != account.every:
        message = f"the account has an edition every {account.every}; write {which} {account.every}"
        yield error("unknown-edition", ("schedule", "edition"), message)


@needs("schedule")
def the_calendar_has_such_a_day(draft: Draft) -> Iterator[Finding]:
    """The day of publication comes in every month it is promised for."""
    schedule = draft.spec.schedule
    if schedule is None or schedule.day is None or schedule.day.weekday is not None:
        return
    number, text = schedule.day.number, ordinal(schedule.day.number)
    short = [MONTHS[month - 1] for month in schedule.day.months if number > DAYS_IN_MONTH[month - 1]]
    if number == 29 and 2 in schedule.day.months:
        short = ["February in most years"]
    if short:
        message = f"{listed(short)} has no {text}; write 'last day of ...', or an earlier day"
        yield error("day-never-comes", ("schedule", "day"), message)


@needs("schedule")
def the_clock_shows_such_a_time(draft: Draft) -> Iterator[Finding]:
    """The time of publication exists once on every day of the time zone."""
    schedule = draft.spec.schedule
    if schedule is None:
        return
    path: Path = ("schedule", "timezone")
    try:
        zone = ZoneInfo(schedule.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        advice = did_you_mean(schedule.timezone, sorted(available_timezones()))
        yield error(
            "unknown-timezone", path, f"'{schedule.timezone}' is not a time zone; {advice.split('; known')[0][:200]}"
        )
        return
    if schedule.time is not None:
        odd = _odd_day(schedule.timezone, schedule.time.hour, schedule.time.minute)
        if odd is not None:
            message = (
                f"clocks change in {zone.key}: on {odd} the time {schedule.time:%H:%M} comes twice or not at all; "
                "choose an hour outside the night, such as 06:00"
            )
            yield error("clock-change", ("schedule", "time"), message)


@lru_cache(maxsize=64)
def _odd_day(zone_name: str, hour: int, minute: int) -> date | None:
    """The first day on which a wall-clock time does not exist, or exists twice."""
    zone = ZoneInfo(zone_name)
    day = datetime(CLOCK_YEARS.start, 1, 1, hour, minute)  # noqa: DTZ001 - a wall-clock time, the zone is added below
    while day.year in CLOCK_YEARS:
        first, second = day.replace(tzinfo=zone), day.replace(tzinfo=zone, fold=1)
        if first.utcoffset() != second.utcoffset():
            return day.date()
        back = first.astimezone(UTC).astimezone(zone)
        if (back.hour, back.minute) != (hour, minute):
            return day.date()
        day += timedelta(days=1)
    return None


@needs("schedule")
def holidays_are_days(draft: Draft) -> Iterator[Finding]:
    """A holidays file has a column of dates, and shifting is asked for."""
    schedule = draft.spec.schedule
    if schedule is None or schedule.holidays is None:
        return
    path: Path = ("schedule", "holidays")
    if schedule.if_weekend == "keep":
        message = "holidays count as weekends, and if_weekend is 'keep', so the file changes nothing; write next Monday"
        yield warning("holidays-ignored", path, message)
    table = draft.files.table(schedule.holidays, path)
    if table is None or not draft.files.has_columns(table, ("date",), path):
        return
    for line, text in table.column("date"):
        try:
            date.fromisoformat(text)
        except ValueError:
            message = f"'{text}' is not a day of the calendar; write 2026-12-25"
            yield error("bad-date", path, message, place=(table.file, line, 1))
            return


@needs("publish", "tables", "microdata")
def translations_are_complete(draft: Draft) -> Iterator[Finding]:
    """A labels file translates every published code, and nothing that does not exist."""
    wanted, names = _wanted_labels(draft), _names(draft)
    for language, file in draft.spec.publish.languages.items():
        path: Path = ("publish", "languages", language)
        table = draft.files.table(file, path)
        if table is None or not draft.files.has_columns(table, ("name", "code", "label"), path):
            continue
        translated: set[tuple[str, str]] = set()
        strange: set[str] = set()
        columns = (table.column("name"), table.column("code"))
        for (line, name), (_, code) in zip(*columns, strict=True):
            if (name, code) in translated:
                message = f"'{name}' with code '{code}' stands here twice; keep one"
                yield error("code-twice", path, message, place=(file, line, 1))
            translated.add((name, code))
            if name in strange:
                continue
            if name not in names and name not in draft.domain.unknown:
                strange.add(name)
                message = f"'{name}' is nothing this release publishes; {did_you_mean(name, sorted(names))}"
                yield error("label-unknown", path, message, place=(file, line, 1))
            elif name in wanted and code not in wanted[name] and code:
                message = f"'{name}' has no code '{code}'; {did_you_mean(code, wanted[name])}"
                yield error("label-unknown", path, message, place=(file, line, 1))
        lacking = {name: [code for code in codes if (name, code) not in translated] for name, codes in wanted.items()}
        if any(lacking.values()):
            shown = listed(
                (
                    f"{name} ({listed((code or 'its title' for code in codes), 3)})"
                    for name, codes in lacking.items()
                    if codes
                ),
                6,
            )
            message = f"'{file}' has no label for {shown}; their own labels are printed there"
            yield warning("label-missing", path, message)


def _wanted_labels(draft: Draft) -> dict[str, list[str]]:
    """What wants a label in every language: published codes, and titles (an empty code); a scale speaks for itself."""
    wanted = {name: [""] for name, table in draft.spec.tables.items() if table.title is not None}
    for _, table, entity in draft.tables():
        for word in table.attributes:
            attribute = draft.domain.attribute(entity, word)
            if attribute is not None and attribute.scale is None and len(attribute.coded) < MOST_CATEGORIES:
                wanted[word] = [category.code for category in attribute.coded]
    return wanted


def _names(draft: Draft) -> set[str]:
    """Everything a labels file may name."""
    spec = draft.spec
    names = {"release", *spec.tables, *spec.recodes, *draft.levels(), *draft.universes()}
    for entity in spec.microdata.values():
        names |= set(entity.columns)
    return names.union(*spec.derive.values())


CHECKS = (
    editions_divide_the_account,
    a_firing_publishes_an_edition_of_the_account,
    the_calendar_has_such_a_day,
    the_clock_shows_such_a_time,
    holidays_are_days,
    translations_are_complete,
)
