"""Wall-clock times of a place as instants, and instants some time before others.

`check` refuses a time of publication that comes twice or not at all on a day the schedule may fall on. What it cannot
foresee (a long row of holidays, clocks changed by a later law, a day of measuring) follows one rule, so that nothing
is lost or doubled: a time that the clock skips becomes the first moment after the gap, and of a time that comes twice
the first one counts.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from release_specs.language.phrases import Lead


def instant(day: date, clock: time, zone: ZoneInfo) -> datetime:
    """The moment at which clocks in a zone show a time on a day, in UTC."""
    wall = datetime.combine(day, clock)
    found = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    return found if _shown(found, zone) == wall else _end_of_gap(found, zone)


def before(lead: Lead | None, moment: datetime, *, zone: ZoneInfo) -> datetime:
    """A moment that lies some time before another.

    Hours are counted as they pass. Days and weeks keep the wall-clock time, so `2 days before` 06:00 is 06:00 even
    where the clocks change in between. Without a lead it is the moment itself.
    """
    if lead is None:
        return moment
    if lead.unit == "hour":
        return moment - timedelta(hours=lead.amount)
    wall = _shown(moment, zone) - timedelta(days=lead.amount * (7 if lead.unit == "week" else 1))
    return instant(wall.date(), wall.time(), zone)


def _shown(moment: datetime, zone: ZoneInfo) -> datetime:
    """What clocks in a zone show."""
    return moment.astimezone(zone).replace(tzinfo=None)


def _end_of_gap(after: datetime, zone: ZoneInfo) -> datetime:
    """The moment the clocks were put forward, looked for in the day before `after`, which lies behind it."""
    low, high = int((after - timedelta(days=1)).timestamp()), int(after.timestamp())
    new = after.astimezone(zone).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == new:
            high = middle
        else:
            low = middle
    return datetime.fromtimestamp(high, UTC)
