"""Checks of editions, calendar and translations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from release_specs.checks.draft import Draft, needs
from release_specs.diagnostics import Finding, Path, did_you_mean, error, listed, nearest, warning
from release_specs.domain import MOST_CATEGORIES
from release_specs.language.phrases import MONTHS, CalendarDay, ordinal
from release_specs.language.publication import Schedule
from release_specs.reading.public_files import PublicTable

CLOCK_YEARS = range(2025, 2038)
"""The years whose clock changes are known to the time-zone tables."""

CRON_YEARS = range(2024, 2064)
"""Long enough for every date to have met every weekday, the 29th of February too."""

FARTHEST_SHIFT = 3
"""How many days a weekend, or a holiday beside it, may shift a publication."""

LABEL_COLUMNS = ("name", "code", "label")
MOST_WRONG_LABELS = 5
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
    elif total < 1:
        message = f"{1 - total} of the account's budget belongs to no edition; raise the shares, or add an edition"
        yield warning("budget-unspent", path, message, at_key=True)
    if edition is not None and edition not in account.editions:
        message = f"'{edition}' is not an edition of the account; {did_you_mean(edition, account.editions)}"
        yield error("unknown-edition", ("release", "edition"), message)


@needs("privacy", "schedule")
def a_firing_publishes_an_edition_of_the_account(draft: Draft) -> Iterator[Finding]:
    """A schedule that names editions by period names them by the account's period."""
    schedule, account = draft.spec.schedule, draft.spec.privacy.account
    if schedule is None or schedule.edition is None or account is None:
        return
    which, period = schedule.edition.split()
    yearly = bool(account.editions) and all(re.fullmatch(r"(19|20)\d\d", name) for name in account.editions or ())
    wanted = account.every or ("year" if yearly else period)
    if period != wanted:
        found = f"has an edition every {wanted}" if account.every else f"names its editions by {wanted}"
        message = f"the account {found}; write {which} {wanted}"
        yield error("unknown-edition", ("schedule", "edition"), message)


@needs("schedule")
def the_calendar_has_such_a_day(draft: Draft) -> Iterator[Finding]:
    """The day of publication comes in every month it is promised for; cron's at all."""
    schedule = draft.spec.schedule
    if schedule is None:
        return
    if schedule.day is None:
        if not any(schedule.rule.falls_on(day) for day in _days(CRON_YEARS)):
            message = f"no day is as '{schedule.cron}' says; choose a day that the month has"
            yield error("day-never-comes", ("schedule", "cron"), message)
        return
    if schedule.day.weekday is None:
        yield from _months_without(schedule.day)


def _months_without(day: CalendarDay) -> Iterator[Finding]:
    text = ordinal(day.number)
    short = [MONTHS[month - 1] for month in day.months if day.number > DAYS_IN_MONTH[month - 1]]
    if day.number == 29 and 2 in day.months:
        short = ["February in most years"]
    if short:
        have = "have" if len(short) > 1 else "has"
        message = f"{listed(short)} {have} no {text}; write 'last day of ...', or an earlier day"
        yield error("day-never-comes", ("schedule", "day"), message)


def _days(years: range) -> Iterator[date]:
    first = date(years.start, 1, 1)
    return (first + timedelta(days=number) for number in range((date(years.stop, 1, 1) - first).days))


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
        known = sorted(available_timezones())
        last = schedule.timezone.split("/")[-1].casefold()
        same = [name for name in known if name.split("/")[-1].casefold() == last]
        near = same[0] if same else nearest(schedule.timezone, known)
        advice = f"did you mean '{near}'?" if near else "write a place, such as Europe/Paris or America/Santiago"
        yield error("unknown-timezone", path, f"'{schedule.timezone}' is not a time zone; {advice}")
        return
    hour, minute = schedule.clock.hour, schedule.clock.minute
    odd = next((day for day in _odd_days(schedule.timezone, hour, minute) if _may_fall_on(schedule, day)), None)
    if odd is not None:
        message = (
            f"clocks change in {zone.key}: on {odd} the time {hour:02}:{minute:02} comes twice or not at all; "
            "choose an hour outside the night, such as 06:00"
        )
        yield error("clock-change", ("schedule", "time" if schedule.cron is None else "cron"), message)


def _may_fall_on(schedule: Schedule, day: date) -> bool:
    """Whether a schedule may fire on a day: on its own days, or where a weekend shifts them."""
    reach = 0 if schedule.if_weekend == "keep" else FARTHEST_SHIFT
    near = [day + timedelta(days=shift) for shift in range(-reach, reach + 1)]
    return any(schedule.rule.falls_on(other) for other in near)


@lru_cache(maxsize=64)
def _odd_days(zone_name: str, hour: int, minute: int) -> tuple[date, ...]:
    """The days on which a wall-clock time does not exist, or exists twice."""
    zone = ZoneInfo(zone_name)
    day = datetime(CLOCK_YEARS.start, 1, 1, hour, minute)  # noqa: DTZ001 - a wall-clock time, the zone is added below
    found = []
    while day.year in CLOCK_YEARS:
        first, second = day.replace(tzinfo=zone), day.replace(tzinfo=zone, fold=1)
        back = first.astimezone(UTC).astimezone(zone)
        if first.utcoffset() != second.utcoffset() or (back.hour, back.minute) != (hour, minute):
            found.append(day.date())
        day += timedelta(days=1)
    return tuple(found)


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
        if not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", language):
            message = f"'{language}' is no tag of a language; write fr, es or de-AT"
            yield error("bad-name", path, message, at_key=True)
        table = draft.files.table(file, path)
        if table is None:
            continue
        if lacking := [word for word in LABEL_COLUMNS if word not in table.header]:
            message = f"the first line of '{file}' lacks {listed(lacking)}; begin the file with name,code,label"
            yield error("file-column", path, message)
            continue
        wrong = list(_wrong_labels(draft, table, wanted, names))
        for line, code, message in wrong[:MOST_WRONG_LABELS]:
            yield error(code, path, message, place=(file, line, 1))
        if len(wrong) > MOST_WRONG_LABELS:
            message = f"{len(wrong) - MOST_WRONG_LABELS} more lines of '{file}' are wrong in the same ways"
            yield error("label-unknown", path, message)
        yield from _missing_labels(table, wanted, path)


def _wrong_labels(
    draft: Draft, table: PublicTable, wanted: Mapping[str, Mapping[str, None]], names: set[str]
) -> Iterator[tuple[int, str, str]]:
    """Lines of a labels file that translate something twice, or what is not there: line, code, sentence."""
    translated: set[tuple[str, str]] = set()
    strange: set[str] = set()
    for (line, name), (_, code) in zip(table.column("name"), table.column("code"), strict=True):
        if (name, code) in translated:
            yield line, "code-twice", f"'{name}' with code '{code}' stands here twice; keep one"
        translated.add((name, code))
        if name in strange or name in draft.domain.unknown:
            continue
        if name not in names:
            strange.add(name)
            message = f"'{name}' is nothing this release publishes; {did_you_mean(name, sorted(names))}"
            yield line, "label-unknown", message
        elif name in wanted and code not in wanted[name] and code:
            yield line, "label-unknown", f"'{name}' has no code '{code}'; {did_you_mean(code, wanted[name])}"


def _missing_labels(table: PublicTable, wanted: Mapping[str, Mapping[str, None]], path: Path) -> Iterator[Finding]:
    columns = (table.column("name"), table.column("code"))
    translated = {(name, code) for (_, name), (_, code) in zip(*columns, strict=True)}
    lacking = {name: [code for code in codes if (name, code) not in translated] for name, codes in wanted.items()}
    shown = [
        f"{name} ({listed((code or 'its title' for code in codes), 3)})" for name, codes in lacking.items() if codes
    ]
    if shown:
        message = f"'{table.file}' has no label for {listed(shown, 6)}; their own labels are printed there"
        yield warning("label-missing", path, message)


def _wanted_labels(draft: Draft) -> dict[str, dict[str, None]]:
    """What wants a label in every language: published codes, and titles (an empty code); a scale speaks for itself."""
    titled = [name for name, table in draft.spec.tables.items() if table.title is not None]
    wanted: dict[str, dict[str, None]] = {name: {"": None} for name in titled}
    for _, table, entity in draft.tables():
        for word in table.attributes:
            attribute = draft.domain.attribute(entity, word)
            if attribute is not None and attribute.scale is None and len(attribute.coded) < MOST_CATEGORIES:
                wanted[word] = dict.fromkeys(category.code for category in attribute.coded)
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
