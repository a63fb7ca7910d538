"""Instants as the text that Prefect's RRule schedules read: `DTSTART:...` and one `RDATE` list, in UTC.

No rule of that notation knows holidays or rolls over a month end, so the dates are listed one by one. They are written
in UTC and the schedule must say `timezone="UTC"` (`RDATES_ZONE`): Prefect puts the schedule's own zone on every listed
date, whatever stands behind it, and in UTC no clock change can move or double a date.

Prefect refuses a text of more than 6,500 characters, so `MOST_DATES` fit: 31 years of months, or a year of days. A list
ends, so whoever serves writes it anew from time to time: `horizon` says how far a list may reach.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

RDATES_ZONE = "UTC"
LONGEST = 6_500
"""Characters that Prefect accepts."""

_BEFORE, _EACH = len("DTSTART:20260101T000000Z\nRDATE:"), len("20260101T000000Z,")
MOST_DATES = (LONGEST - _BEFORE) // _EACH


def as_rdates(instants: Iterable[datetime]) -> str:
    """The text that fires at exactly these instants, each once.

    Raises `ValueError` for none, for more than `MOST_DATES`, and for a moment that is not a whole aware second.
    """
    moments = sorted(set(instants))
    if not 1 <= len(moments) <= MOST_DATES:
        raise ValueError(f"found {len(moments)} dates; expected 1 to {MOST_DATES}: choose the first of them")
    texts = [_text(moment) for moment in moments]
    return f"DTSTART:{texts[0]}\nRDATE:{','.join(texts)}"


def horizon(instants: Iterable[datetime], now: datetime) -> list[datetime]:
    """The instants from `now` on that fit into one list, each once, earliest first."""
    return sorted({moment for moment in instants if moment >= now})[:MOST_DATES]


def _text(moment: datetime) -> str:
    if moment.tzinfo is None or moment.microsecond:
        raise ValueError(f"found {moment.isoformat()}; expected a whole second with its time zone")
    return moment.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
