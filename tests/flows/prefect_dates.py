"""Prints the instants at which Prefect's own schedule class fires, for texts and zones given as JSON on standard input.

A script of its own, because Prefect reads its settings once per process. Nothing listens on a port.
"""

import asyncio
import json
import sys
from datetime import UTC, datetime

from prefect.client.schemas.schedules import RRuleSchedule as ClientSchedule
from prefect.server.schemas.schedules import RRuleSchedule


def fired(text: str, zone: str) -> list[str]:
    """The instants of one schedule from 2025 to 2040; the client's class must accept the text too."""
    accepted = ClientSchedule(rrule=text, timezone=zone)
    schedule = RRuleSchedule(rrule=accepted.rrule, timezone=accepted.timezone or "")
    start, end = datetime(2025, 1, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC)
    dates = asyncio.run(schedule.get_dates(start=start, end=end))
    return [moment.astimezone(UTC).isoformat() for moment in dates]


if __name__ == "__main__":
    sys.stdout.write(json.dumps([fired(text, zone) for text, zone in json.load(sys.stdin)]))
