"""What is due, late or missed: nothing is doubled, and nothing is silently skipped."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.scheduling.calendar import Occurrence, occurrences
from flows.scheduling.due import PUNCTUAL, begun_at, missed, next_due, standing
from release_specs.language.publication import Schedule

SIX_HOURS = timedelta(hours=6)
NEVER = frozenset[str]()


def year() -> list[Occurrence]:
    """The occurrences of 2026: monthly in UTC at 06:00, measured two days before."""
    written = {"day": "15th of every month", "time": "06:00", "timezone": "UTC", "measure": "2 days before"}
    rule = Schedule.model_validate(written | {"edition": "previous month"})
    return occurrences(rule, holidays=(), start=date(2026, 1, 1), end=date(2027, 1, 1))


def year_by_cron(**words: str) -> list[Occurrence]:
    """Daily firings of 2026 without an edition, weekends shifted."""
    rule = Schedule.model_validate({"cron": "0 6 * * *", "timezone": "UTC", "if_weekend": "next Monday"} | words)
    return occurrences(rule, holidays=(), start=date(2026, 1, 1), end=date(2027, 1, 1))


def at(text: str) -> datetime:
    """A moment of 2026 in UTC."""
    return datetime.fromisoformat(f"2026-{text}").replace(tzinfo=UTC)


DONE = frozenset({"2025-12", "2026-01"})


@pytest.mark.parametrize(
    ("now", "due", "late", "lost"),
    [
        ("03-13T05:59:59", [], [], []),
        ("03-13T06:00", ["2026-02"], [], []),
        ("03-13T06:15", ["2026-02"], [], []),
        ("03-13T06:15:01", [], ["2026-02"], []),
        ("03-13T12:00", [], ["2026-02"], []),
        ("03-13T12:00:01", [], [], ["2026-02"]),
        ("04-13T06:01", ["2026-03"], [], ["2026-02"]),
        ("05-20T00:00", [], [], ["2026-02", "2026-03", "2026-04"]),
    ],
)
def test_a_firing_is_due_then_late_then_missed(now: str, due: list[str], late: list[str], lost: list[str]) -> None:
    found = standing(year(), at(now), done=DONE, max_lateness=SIX_HOURS)
    assert [[one.claim for one in kind] for kind in (found.due, found.late, found.missed)] == [due, late, lost]
    assert [one.claim for one in found.to_run] == due + late
    assert missed(year(), at(now), done=DONE, max_lateness=SIX_HOURS) == found.missed


def test_what_is_done_is_never_due_late_or_missed() -> None:
    everything = {one.claim for one in year()}
    found = standing(year(), at("12-31T00:00"), done=everything, max_lateness=SIX_HOURS)
    assert (found.due, found.late, found.missed) == ((), (), ())


def test_a_claim_of_several_firings_is_run_once_and_by_its_best_one() -> None:
    weekly = year_by_cron(cron="0 6 * 3 1", edition="this year")
    assert len(weekly) == 5
    third = weekly[2].measuring
    found = standing(weekly, third + timedelta(minutes=1), done=NEVER, max_lateness=SIX_HOURS)
    assert (found.due, found.late, found.missed) == ((weekly[2],), (), ())
    later = standing(weekly, third + timedelta(days=1), done=NEVER, max_lateness=SIX_HOURS)
    assert (later.due, later.late, later.missed) == ((), (), (weekly[0],))


def test_one_moment_may_stand_for_several_nominal_days() -> None:
    monday = at("08-17T06:00")
    together = begun_at(year_by_cron(), monday)
    assert [one.claim for one in together] == ["2026-08-15", "2026-08-16", "2026-08-17"]
    assert standing(year_by_cron(), monday, done=NEVER, max_lateness=SIX_HOURS).due == tuple(together)


@pytest.mark.parametrize(
    ("now", "edition"),
    [("01-01T00:00", "2025-12"), ("01-13T06:00", "2025-12"), ("01-13T06:00:01", "2026-01"), ("12-14T00:00", None)],
)
def test_the_next_firing_is_the_first_that_has_not_begun(now: str, edition: str | None) -> None:
    ahead = next_due(year(), at(now))
    assert (ahead.edition if ahead else None) == edition


def test_a_firing_whose_claim_is_done_is_not_next() -> None:
    ahead = next_due(year(), at("01-01T00:00"), done=DONE)
    assert ahead is not None
    assert ahead.edition == "2026-02"


def test_a_moment_without_its_zone_is_refused() -> None:
    naive = datetime(2026, 1, 1)  # noqa: DTZ001 - what is refused
    with pytest.raises(ValueError, match="without its time zone"):
        next_due(year(), naive)
    with pytest.raises(ValueError, match="without its time zone"):
        standing(year(), naive, done=NEVER, max_lateness=SIX_HOURS)


@settings(deadline=None, max_examples=80)
@given(
    st.integers(0, 400 * 24),
    st.frozensets(st.sampled_from([one.claim for one in year_by_cron(edition="this month")])),
    st.integers(1, 24 * 40),
)
def test_every_claim_that_has_begun_is_done_due_late_or_missed_and_only_one_of_them(
    hours: int, done: frozenset[str], lateness: int
) -> None:
    firings, now = year_by_cron(edition="this month"), at("01-01T00:00") + timedelta(hours=hours)
    found = standing(firings, now, done=done, max_lateness=timedelta(hours=lateness))
    told = [one.claim for kind in (found.due, found.late, found.missed) for one in kind]
    assert sorted(told) == sorted({one.claim for one in firings if one.measuring <= now} - done)
    for one in found.due:
        assert now - one.measuring <= PUNCTUAL
    for one in found.missed:
        assert now - one.measuring > timedelta(hours=lateness)
