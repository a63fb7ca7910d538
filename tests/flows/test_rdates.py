"""The dates handed to Prefect: it fires at exactly our instants, in every zone and through every clock change."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from dateutil.rrule import rrulestr

from flows.scheduling.calendar import occurrences
from flows.scheduling.rdates import LONGEST, MOST_DATES, RDATES_ZONE, as_rdates, horizon
from release_specs.language.publication import Schedule
from tests.flows.prefect_alone import ask_prefect

ZONES = ("Europe/Vienna", "America/Detroit", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC")
START = datetime(2026, 1, 1, tzinfo=UTC)


def twelve_years(zone: str) -> tuple[list[datetime], list[datetime]]:
    """The moments of measuring and of publication, monthly on the last Sunday, when many clocks change."""
    written = {"day": "last Sunday of every month", "time": "06:00", "measure": "5 hours before", "timezone": zone}
    found = occurrences(Schedule.model_validate(written), holidays=(), start=date(2026, 1, 1), end=date(2038, 1, 1))
    return [one.measuring for one in found], [one.publication for one in found]


def daily_around_clock_changes(zone: str) -> list[datetime]:
    """Every day of 2026 at 02:30, which some clocks skip or show twice."""
    rule = Schedule.model_validate({"cron": "30 2 * * *", "timezone": zone})
    return [one.publication for one in occurrences(rule, holidays=(), start=date(2026, 1, 1), end=date(2027, 1, 1))]


def test_prefect_fires_at_exactly_our_instants_from_2026_to_2037(tmp_path: Path) -> None:
    ours = [moments for zone in ZONES for moments in (*twelve_years(zone), daily_around_clock_changes(zone))]
    assert [len(moments) for moments in ours] == [144, 144, 365] * len(ZONES)
    fired = ask_prefect("prefect_dates.py", [[as_rdates(moments), RDATES_ZONE] for moments in ours], tmp_path)
    assert fired == [[moment.isoformat() for moment in moments] for moments in ours]


def test_a_local_zone_on_the_schedule_would_move_the_dates(tmp_path: Path) -> None:
    moments = twelve_years("Europe/Vienna")[1]
    (fired,) = ask_prefect("prefect_dates.py", [[as_rdates(moments), "Europe/Vienna"]], tmp_path)
    assert fired[0] != moments[0].isoformat()


@pytest.mark.parametrize("zone", ZONES)
def test_dateutil_reads_the_same_instants(zone: str) -> None:
    moments = twelve_years(zone)[1]
    assert list(rrulestr(as_rdates(moments))) == moments


def test_the_text_is_a_start_and_a_list_in_utc() -> None:
    text = as_rdates([datetime(2026, 9, 15, 4, tzinfo=UTC), datetime(2026, 3, 15, 5, tzinfo=UTC)])
    assert text == "DTSTART:20260315T050000Z\nRDATE:20260315T050000Z,20260915T040000Z"


def test_a_moment_given_twice_fires_once() -> None:
    assert as_rdates([START, START]) == as_rdates([START])


def test_the_longest_list_is_one_that_prefect_accepts(tmp_path: Path) -> None:
    moments = [START + timedelta(days=number) for number in range(MOST_DATES)]
    text = as_rdates(moments)
    assert LONGEST - 17 < len(text) <= LONGEST
    (fired,) = ask_prefect("prefect_dates.py", [[text, RDATES_ZONE]], tmp_path)
    assert len(fired) == MOST_DATES
    with pytest.raises(ValueError, match=f"found {MOST_DATES + 1} dates; expected 1 to {MOST_DATES}"):
        as_rdates([*moments, START + timedelta(days=MOST_DATES)])


@pytest.mark.parametrize(
    ("moments", "said"),
    [
        ([], "found 0 dates"),
        ([datetime(2026, 1, 1)], "with its time zone"),  # noqa: DTZ001 - what is refused
        ([START + timedelta(microseconds=1)], "a whole second"),
    ],
)
def test_what_cannot_be_listed_is_refused(moments: list[datetime], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        as_rdates(moments)


def test_the_horizon_is_what_is_ahead_and_fits() -> None:
    moments = [START + timedelta(hours=number) for number in range(1000)]
    ahead = horizon([*moments, *moments], START + timedelta(hours=10))
    assert ahead == moments[10 : 10 + MOST_DATES]
