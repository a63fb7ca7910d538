"""Which occurrences are to be run now, which are late, and which were missed.

An occurrence begins at its moment of measuring. Until then it is ahead. From then on it is due; after `PUNCTUAL` it is
late, still run and reported; when more than `max_lateness` has passed it is missed, not run, and reported for a person
to decide. Several occurrences may have one claim (a weekly schedule of monthly editions, two days rolled onto one):
the claim is run once. What is done is never due, late or missed again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from flows.scheduling.calendar import Occurrence

PUNCTUAL = timedelta(minutes=15)
"""An orchestrator polls and starts processes; within this time nobody would call it late."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The claims that have begun and are not done, each once, in the best class any of its occurrences has."""

    due: tuple[Occurrence, ...]
    late: tuple[Occurrence, ...]
    missed: tuple[Occurrence, ...]

    @property
    def to_run(self) -> tuple[Occurrence, ...]:
        """What may be run now: due or late, in the order of their beginning."""
        return tuple(sorted((*self.due, *self.late), key=_beginning))


def next_due(found: Iterable[Occurrence], now: datetime, *, done: Collection[str] = ()) -> Occurrence | None:
    """The occurrence that begins next, at `now` or later, whose claim is not done; None where the calendar ends."""
    _aware(now)
    ahead = (one for one in found if one.measuring >= now and one.claim not in done)
    return min(ahead, key=_beginning, default=None)


def standing(found: Iterable[Occurrence], now: datetime, *, done: Collection[str], max_lateness: timedelta) -> Standing:
    """The occurrences that have begun, sorted into due, late and missed; `done` holds the claims of finished ones."""
    _aware(now)
    classes: dict[str, dict[str, Occurrence]] = {"due": {}, "late": {}, "missed": {}}
    for one in sorted(found, key=_beginning):
        if one.measuring <= now and one.claim not in done:
            classes[_class(now - one.measuring, max_lateness)].setdefault(one.claim, one)
    late = {claim: one for claim, one in classes["late"].items() if claim not in classes["due"]}
    missed = {claim: one for claim, one in classes["missed"].items() if claim not in classes["due"] | late}
    return Standing(*(tuple(kind.values()) for kind in (classes["due"], late, missed)))


def missed(
    found: Iterable[Occurrence], now: datetime, *, done: Collection[str], max_lateness: timedelta
) -> tuple[Occurrence, ...]:
    """The occurrences that were not run in time and must be reported."""
    return standing(found, now, done=done, max_lateness=max_lateness).missed


def begun_at(found: Iterable[Occurrence], moment: datetime) -> list[Occurrence]:
    """The occurrences that begin at exactly this moment: what a firing of the orchestrator stands for."""
    _aware(moment)
    return [one for one in found if one.measuring == moment]


def _class(lateness: timedelta, max_lateness: timedelta) -> str:
    if lateness > max_lateness:
        return "missed"
    return "due" if lateness <= PUNCTUAL else "late"


def _beginning(one: Occurrence) -> tuple[datetime, date]:
    return one.measuring, one.nominal


def _aware(moment: datetime) -> None:
    if moment.tzinfo is None:
        raise ValueError("a moment without its time zone was given; expected an aware datetime, such as now in UTC")
