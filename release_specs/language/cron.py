"""Cron: the five fields of system administrators, read as the days and the one time of a release.

Both day fields must match: `0 6 8-14 9 2` is the second Tuesday of September. (Many schedulers fire where either
matches, which makes that every Tuesday and the whole week too.) A release is published once a day at most, so minute
and hour are one number each. Sunday is 0 or 7.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, time

from release_specs.language.values import mistake

_FIELDS = ((0, 59, 59), (0, 23, 23), (1, 31, 31), (1, 12, 12), (0, 6, 7))
"""The least number, the last one where a span is open, and the largest that may be written."""


@dataclass(frozen=True, slots=True)
class Cron:
    """The time of day, and the days it comes on; weekdays as cron counts them, Sunday is 0."""

    time: time
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]

    def falls_on(self, day: date) -> bool:
        """Whether month, day of the month and weekday all match."""
        return day.month in self.months and day.day in self.days and day.isoweekday() % 7 in self.weekdays


def read_cron(text: str) -> Cron:
    """`0 6 15 9 *`: minute, hour, day, month, weekday. Raises a mistake that says what to write."""
    fields = text.split()
    sets = [_values(field, *bounds) for field, bounds in zip(fields, _FIELDS, strict=False)]
    if len(fields) != len(_FIELDS) or not all(sets):
        raise mistake("bad-schedule", f"'{text}' is not cron; write minute, hour, day, month, weekday: 0 6 15 9 *")
    minutes, hours, days, months, weekdays = sets
    if len(minutes) > 1 or len(hours) > 1:
        days_alone = " ".join(fields[2:])
        raise mistake(
            "bad-schedule",
            f"'{text}' comes several times a day, and a release is published once a day at most; "
            f"write one minute and one hour: {min(minutes)} {min(hours)} {days_alone}",
        )
    return Cron(time(min(hours), min(minutes)), days, months, frozenset(number % 7 for number in weekdays))


def _values(text: str, least: int, last: int, most: int) -> frozenset[int]:
    """The numbers a field stands for; none where it is not a field."""
    found: set[int] = set()
    for part in text.split(","):
        shape = re.fullmatch(r"(?:(\*)|(\d{1,2})(?:-(\d{1,2}))?)(/[1-9]\d?)?", part, re.ASCII)
        if shape is None:
            return frozenset()
        star, low, high, step = shape.groups()
        begin = least if star else int(low)
        end = int(high) if high else last if star or step else begin
        if not least <= begin <= end <= most:
            return frozenset()
        found.update(range(begin, end + 1, int(step[1:]) if step else 1))
    return frozenset(found)
