"""When releases run: tables of days, shifts, clocks and editions, and the laws that hold for every schedule."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from flows.scheduling.calendar import (
    Occurrence,
    is_working_day,
    occurrences,
    read_holidays,
    upcoming,
    years_without_holidays,
)
from flows.terminal import UserError
from release_specs.language.cron import read_cron
from release_specs.language.publication import Schedule
from release_specs.load import load_spec

EXAMPLES = Path("release_specs/examples")
CHRISTMAS = frozenset(map(date.fromisoformat, ("2026-12-25", "2026-12-26", "2026-12-28", "2027-01-01")))


def schedule(**words: str) -> Schedule:
    """A schedule in Vienna at six, but for what is said."""
    written: dict[str, Any] = {"day": "15th of every month", "time": "06:00", "timezone": "Europe/Vienna"} | words
    if "cron" in words:
        del written["day"], written["time"]
    return Schedule.model_validate(written)


def found(start: str, end: str, *, holidays: frozenset[date] = frozenset(), **words: str) -> list[Occurrence]:
    """The occurrences with nominal days from `start` to before `end`."""
    first, last = date.fromisoformat(start), date.fromisoformat(end)
    return occurrences(schedule(**words), holidays=holidays, start=first, end=last)


def only(nominal: str, **words: str) -> Occurrence:
    """The one occurrence of a nominal day."""
    first = date.fromisoformat(nominal)
    (one,) = occurrences(schedule(**words), holidays=CHRISTMAS, start=first, end=first + timedelta(days=1))
    return one


def at(text: str) -> datetime:
    """A moment in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("day", "nominal"),
    [
        ("15th of September", ["2026-09-15", "2027-09-15"]),
        ("10th of April and October", ["2026-04-10", "2026-10-10", "2027-04-10", "2027-10-10"]),
        ("second Tuesday of September", ["2026-09-08", "2027-09-14"]),
        ("first Monday of March", ["2026-03-02", "2027-03-01"]),
        ("fourth Friday of May", ["2026-05-22", "2027-05-28"]),
        ("last Friday of May", ["2026-05-29", "2027-05-28"]),
        ("last day of June and December", ["2026-06-30", "2026-12-31", "2027-06-30", "2027-12-31"]),
        ("1st of January", ["2026-01-01", "2027-01-01"]),
        ("31st of December", ["2026-12-31", "2027-12-31"]),
    ],
)
def test_a_day_in_words_comes_on_these_days_of_two_years(day: str, nominal: list[str]) -> None:
    assert [str(one.nominal) for one in found("2026-01-01", "2028-01-01", day=day)] == nominal


@pytest.mark.parametrize(
    ("day", "nominal"),
    [
        ("29th of February", ["2028-02-29"]),
        ("30th of February", []),
        ("last day of February", ["2026-02-28", "2027-02-28", "2028-02-29", "2029-02-28"]),
    ],
)
def test_a_month_without_the_day_has_no_occurrence(day: str, nominal: list[str]) -> None:
    assert [str(one.nominal) for one in found("2026-01-01", "2030-01-01", day=day)] == nominal


@pytest.mark.parametrize(
    ("cron", "nominal"),
    [
        ("0 6 15 9 *", ["2026-09-15"]),
        ("0 6 8-14 9 2", ["2026-09-08"]),  # both day fields must match: the second Tuesday
        ("0 6 * 9 7", ["2026-09-06", "2026-09-13", "2026-09-20", "2026-09-27"]),
        ("0 6 * 9 0", ["2026-09-06", "2026-09-13", "2026-09-20", "2026-09-27"]),
        ("0 6 1,20/5 8 *", ["2026-08-01", "2026-08-20", "2026-08-25", "2026-08-30"]),
        ("0 6 */15 1-2 *", ["2026-01-01", "2026-01-16", "2026-01-31", "2026-02-01", "2026-02-16"]),
        ("0 6 1-3 11 5-7", ["2026-11-01"]),
        ("0 6 1-7 11 1/2", ["2026-11-02", "2026-11-04", "2026-11-06"]),
        ("0 6 29 2 *", []),
    ],
)
def test_cron_comes_on_these_days_of_2026(cron: str, nominal: list[str]) -> None:
    ones = found("2026-01-01", "2027-01-01", cron=cron)
    assert [str(one.nominal) for one in ones] == nominal
    assert {one.publication.astimezone(ZoneInfo("Europe/Vienna")).strftime("%H:%M") for one in ones} <= {"06:00"}


@pytest.mark.parametrize("cron", ["0 6 15 9", "0 6 15 9 * *", "60 6 15 9 *", "0 6 0 9 *", "0 6 15 9 8", "0 6 5-1 9 *"])
def test_what_is_not_cron_is_refused_with_the_order_of_its_fields(cron: str) -> None:
    with pytest.raises(ValidationError, match="is not cron; write minute, hour, day, month, weekday"):
        schedule(cron=cron)


@pytest.mark.parametrize("cron", ["* 6 15 9 *", "0 6,18 15 9 *", "*/20 6 15 9 *", "0 6-7 15 9 *"])
def test_cron_that_comes_several_times_a_day_is_refused_with_what_to_write(cron: str) -> None:
    with pytest.raises(ValidationError, match=r"several times a day.*write one minute and one hour: 0 6 15 9"):
        schedule(cron=cron)
    assert read_cron("0 6 15 9 *").time.hour == 6


@pytest.mark.parametrize(
    ("nominal", "if_weekend", "day"),
    [
        ("2026-08-15", "keep", "2026-08-15"),  # a Saturday
        ("2026-08-15", "next Monday", "2026-08-17"),
        ("2026-08-16", "next Monday", "2026-08-17"),
        ("2026-08-15", "previous Friday", "2026-08-14"),
        ("2026-08-16", "previous Friday", "2026-08-14"),
        ("2026-08-17", "next Monday", "2026-08-17"),
        ("2026-12-25", "keep", "2026-12-25"),  # a holiday on a Friday, the next ones on Saturday and Monday
        ("2026-12-25", "next Monday", "2026-12-29"),
        ("2026-12-28", "previous Friday", "2026-12-24"),
        ("2027-01-01", "next Monday", "2027-01-04"),
        ("2027-01-01", "previous Friday", "2026-12-31"),  # over the end of the year
        ("2026-02-28", "next Monday", "2026-03-02"),  # over the end of a month
        ("2026-08-01", "previous Friday", "2026-07-31"),
        ("2028-02-29", "next Monday", "2028-02-29"),
    ],
)
def test_a_weekend_or_holiday_shifts_the_day_to_a_working_day(nominal: str, if_weekend: str, day: str) -> None:
    one = only(nominal, cron="0 6 * * *", if_weekend=if_weekend)
    assert (str(one.nominal), str(one.day)) == (nominal, day)
    assert one.publication.date() == one.day


@pytest.mark.parametrize(
    ("nominal", "words", "edition"),
    [
        ("2026-09-15", "this year", "2026"),
        ("2026-09-15", "previous year", "2025"),
        ("2026-09-15", "this half-year", "2026-H2"),
        ("2026-06-30", "previous half-year", "2025-H2"),
        ("2026-04-30", "this term", "2026-T1"),
        ("2026-01-20", "previous term", "2025-T3"),
        ("2026-05-20", "previous term", "2026-T1"),
        ("2026-09-30", "this quarter", "2026-Q3"),
        ("2026-01-05", "previous quarter", "2025-Q4"),
        ("2026-08-31", "this month", "2026-08"),
        ("2026-01-25", "previous month", "2025-12"),
        ("2026-03-31", "previous month", "2026-02"),
    ],
)
def test_an_edition_is_named_by_its_period(nominal: str, words: str, edition: str) -> None:
    one = only(nominal, cron="0 6 * * *", edition=words)
    assert (one.edition, one.claim) == (edition, edition)


@pytest.mark.parametrize(
    ("nominal", "if_weekend", "words", "day", "edition"),
    [
        ("2026-01-31", "next Monday", "this month", "2026-02-02", "2026-01"),
        ("2026-08-01", "previous Friday", "previous month", "2026-07-31", "2026-07"),
        ("2027-01-01", "previous Friday", "this year", "2026-12-31", "2027"),
        ("2028-12-31", "next Monday", "this quarter", "2029-01-01", "2028-Q4"),
    ],
)
def test_a_shifted_day_keeps_its_edition(nominal: str, if_weekend: str, words: str, day: str, edition: str) -> None:
    one = only(nominal, cron="0 6 * * *", if_weekend=if_weekend, edition=words)
    assert (str(one.day), one.edition) == (day, edition)


def test_without_an_edition_the_nominal_day_is_claimed() -> None:
    one = only("2026-08-15", cron="0 6 * * *", if_weekend="next Monday")
    assert (one.edition, one.claim) == (None, "2026-08-15")


@pytest.mark.parametrize(
    ("zone", "day", "time", "moment"),
    [
        ("Europe/Vienna", "2026-03-28", "06:00", "2026-03-28T05:00"),
        ("Europe/Vienna", "2026-03-29", "06:00", "2026-03-29T04:00"),  # clocks go forward
        ("Europe/Vienna", "2026-10-24", "06:00", "2026-10-24T04:00"),
        ("Europe/Vienna", "2026-10-25", "06:00", "2026-10-25T05:00"),  # clocks go back
        ("America/Detroit", "2026-03-08", "06:00", "2026-03-08T10:00"),
        ("America/Detroit", "2026-11-01", "06:00", "2026-11-01T11:00"),
        ("Australia/Lord_Howe", "2026-04-05", "06:00", "2026-04-04T19:30"),  # by half an hour
        ("Australia/Lord_Howe", "2026-10-04", "06:00", "2026-10-03T19:00"),
        ("Asia/Kathmandu", "2026-03-29", "06:00", "2026-03-29T00:15"),
        ("UTC", "2026-03-29", "06:00", "2026-03-29T06:00"),
    ],
)
def test_the_wall_clock_time_is_kept_through_clock_changes(zone: str, day: str, time: str, moment: str) -> None:
    hour, minute = time.split(":")
    assert only(day, cron=f"{minute} {hour} * * *", timezone=zone).publication == at(moment)


@pytest.mark.parametrize(
    ("zone", "day", "time", "moment"),
    [
        ("Europe/Vienna", "2026-03-29", "02:00", "2026-03-29T01:00"),  # skipped: the first moment after the gap, 03:00
        ("Europe/Vienna", "2026-03-29", "02:30", "2026-03-29T01:00"),
        ("Europe/Vienna", "2026-03-29", "02:59", "2026-03-29T01:00"),
        ("Europe/Vienna", "2026-03-29", "03:00", "2026-03-29T01:00"),
        ("Europe/Vienna", "2026-10-25", "02:30", "2026-10-25T00:30"),  # twice: the first
        ("Europe/Vienna", "2026-10-25", "03:00", "2026-10-25T02:00"),
        ("America/Detroit", "2026-03-08", "02:15", "2026-03-08T07:00"),
        ("America/Detroit", "2026-11-01", "01:15", "2026-11-01T05:15"),
        ("Australia/Lord_Howe", "2026-10-04", "02:15", "2026-10-03T15:30"),
        ("Australia/Lord_Howe", "2026-04-05", "01:45", "2026-04-04T14:45"),
        ("Pacific/Apia", "2011-12-30", "06:00", "2011-12-30T10:00"),  # a day that never came
    ],
)
def test_a_time_the_clock_skips_or_repeats_follows_one_rule(zone: str, day: str, time: str, moment: str) -> None:
    hour, minute = time.split(":")
    assert only(day, cron=f"{minute} {hour} * * *", timezone=zone).publication == at(moment)


@pytest.mark.parametrize(
    ("nominal", "measure", "moment"),
    [
        ("2026-03-30", "2 days before", "2026-03-28T05:00"),  # 06:00 in winter, though 06:00 is 04:00 UTC on the 30th
        ("2026-03-30", "48 hours before", "2026-03-28T04:00"),
        ("2026-10-26", "2 days before", "2026-10-24T04:00"),
        ("2026-10-26", "48 hours before", "2026-10-24T05:00"),
        ("2026-03-30", "1 week before", "2026-03-23T05:00"),
        ("2026-03-02", "2 days before", "2026-02-28T05:00"),
        ("2027-01-01", "6 hours before", "2026-12-31T23:00"),
    ],
)
def test_days_before_keep_the_wall_clock_and_hours_before_are_hours(nominal: str, measure: str, moment: str) -> None:
    assert only(nominal, cron="0 6 * * *", measure=measure).measuring == at(moment)


def test_a_day_of_measuring_whose_time_is_skipped_begins_after_the_gap() -> None:
    one = only("2026-03-31", cron="30 2 * * *", measure="2 days before")
    assert (one.measuring, one.publication) == (at("2026-03-29T01:00"), at("2026-03-31T00:30"))


def test_measuring_is_counted_from_the_shifted_day() -> None:
    one = only("2026-08-15", cron="0 6 * * *", measure="3 days before", if_weekend="next Monday")
    assert (str(one.day), one.measuring) == ("2026-08-17", at("2026-08-14T04:00"))


def test_without_a_lead_measuring_and_publication_are_one_moment() -> None:
    one = only("2026-08-14", cron="0 6 * * *")
    assert one.measuring == one.publication


def test_every_example_spec_has_the_calendar_it_tells() -> None:
    births, schools = (load_spec(EXAMPLES / f"{name}.yaml").spec.schedule for name in ("births", "schools"))
    assert births is not None
    assert schools is not None
    holidays = read_holidays(births, EXAMPLES)
    year = {"start": date(2026, 1, 1), "end": date(2027, 1, 1)}
    monthly = occurrences(births, holidays=holidays, **year)
    assert [one.edition for one in monthly] == ["2025-12", *(f"2026-{month:02}" for month in range(1, 12))]
    assert [str(one.day) for one in monthly if one.day != one.nominal] == [
        "2026-01-26", "2026-04-27", "2026-05-26", "2026-07-27", "2026-10-26", "2026-12-28",
    ]  # fmt: skip
    assert [one.edition for one in occurrences(schools, holidays=(), **year)] == ["2025-T3", "2026-T1", "2026-T2"]
    assert read_holidays(schools, EXAMPLES) == frozenset()


def test_years_that_the_holidays_file_does_not_know_are_named() -> None:
    ones = found("2026-06-01", "2029-02-01", holidays=CHRISTMAS, if_weekend="next Monday")
    assert years_without_holidays(ones, CHRISTMAS) == [2028, 2029]
    assert years_without_holidays(ones, frozenset()) == []


def test_what_is_not_yet_published_is_upcoming_though_it_is_measured() -> None:
    monthly = schedule(measure="2 days before")
    ahead = upcoming(monthly, holidays=(), now=at("2026-09-14T12:00"))
    assert [str(one.nominal) for one in ahead[:2]] == ["2026-09-15", "2026-10-15"]
    assert str(ahead[-1].nominal) == "2028-08-15"
    assert upcoming(monthly, holidays=(), now=at("2026-09-15T04:01"))[0].nominal == date(2026, 10, 15)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("day\n2026-12-25\n", "'holidays.csv' has no column 'date' in its first line"),
        ("date\n2026-12-25\n25 Dec\n", "holidays.csv:3: '25 Dec' is not a day of the calendar; write 2026-12-25"),
        (None, "'holidays.csv': there is no such file"),
    ],
)
def test_a_holidays_file_that_cannot_be_used_is_told(text: str | None, said: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "holidays.csv").write_text(text)
    with pytest.raises(UserError) as fault:
        read_holidays(schedule(holidays="holidays.csv"), tmp_path)
    assert said in str(fault.value)


def test_holidays_without_end_are_refused() -> None:
    summer = frozenset(date(2026, 6, 1) + timedelta(days=number) for number in range(100))
    with pytest.raises(UserError, match=r"60 days in a row beside 2026-06-15 .*take some days out"):
        found("2026-06-01", "2026-07-01", holidays=summer, if_weekend="next Monday")


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(UserError, match=r"'Europe/Vieena' is not a time zone; write a place"):
        found("2026-06-01", "2026-07-01", timezone="Europe/Vieena")


DAYS = st.dates(date(2024, 1, 1), date(2037, 12, 31))
SCHEDULES = st.builds(
    schedule,
    day=st.sampled_from(
        ["15th of every month", "last day of every month", "second Tuesday of every month", "31st of January and July"]
    ),
    time=st.sampled_from(["00:00", "02:30", "06:00", "23:59"]),
    timezone=st.sampled_from(["Europe/Vienna", "America/Detroit", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"]),
    if_weekend=st.sampled_from(["keep", "next Monday", "previous Friday"]),
    measure=st.sampled_from(["1 hour before", "2 days before", "3 weeks before"]),
    edition=st.sampled_from(["this month", "previous quarter", "this year"]),
) | st.builds(
    schedule,
    cron=st.sampled_from(["30 2 * * *", "0 6 */3 * *", "0 6 * * 6,0", "0 6 1-7 * 1"]),
    if_weekend=st.sampled_from(["keep", "next Monday", "previous Friday"]),
)
HOLIDAYS = st.frozensets(DAYS, max_size=20)


@settings(deadline=None, max_examples=60)
@given(SCHEDULES, HOLIDAYS, DAYS, st.integers(0, 500), st.integers(0, 500))
def test_the_occurrences_of_two_ranges_are_those_of_the_whole(
    rule: Schedule, holidays: frozenset[date], start: date, first: int, second: int
) -> None:
    middle = start + timedelta(days=first)
    end = middle + timedelta(days=second)
    parts = [
        occurrences(rule, holidays=holidays, start=begin, end=stop) for begin, stop in ((start, middle), (middle, end))
    ]
    assert parts[0] + parts[1] == occurrences(rule, holidays=holidays, start=start, end=end)


@settings(deadline=None, max_examples=60)
@given(SCHEDULES, HOLIDAYS, DAYS)
def test_nominal_days_increase_and_publications_never_go_back(
    rule: Schedule, holidays: frozenset[date], start: date
) -> None:
    ones = occurrences(rule, holidays=holidays, start=start, end=start + timedelta(days=800))
    for one, following in itertools.pairwise(ones):
        assert one.nominal < following.nominal
        assert one.publication <= following.publication
        assert one.measuring <= following.measuring
        assert (one.publication < following.publication) is (one.day < following.day)
    assert all(one.measuring <= one.publication for one in ones)


@settings(deadline=None, max_examples=60)
@given(SCHEDULES, HOLIDAYS, DAYS)
def test_who_asks_for_shifting_never_publishes_on_a_weekend_or_holiday(
    rule: Schedule, holidays: frozenset[date], start: date
) -> None:
    for one in occurrences(rule, holidays=holidays, start=start, end=start + timedelta(days=400)):
        if rule.if_weekend == "keep" or is_working_day(one.nominal, holidays):
            assert one.day == one.nominal
        else:
            assert is_working_day(one.day, holidays)
            between = sorted((one.nominal, one.day))
            passed = [between[0] + timedelta(days=number) for number in range((between[1] - between[0]).days + 1)]
            assert [day for day in passed if is_working_day(day, holidays)] == [one.day]


@settings(deadline=None, max_examples=60)
@given(SCHEDULES, DAYS)
def test_clocks_show_the_time_of_publication_wherever_it_exists(rule: Schedule, start: date) -> None:
    zone = ZoneInfo(rule.timezone)
    for one in occurrences(rule, holidays=(), start=start, end=start + timedelta(days=400)):
        shown = one.publication.astimezone(zone)
        assert shown.date() == one.day
        assert shown.time() == rule.clock or rule.clock.hour == 2
        assert one.publication.utcoffset() == timedelta(0)
