"""The dates of a deployment as Prefect is given them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from flows.deployments.load import Deployment
from flows.scheduling.rdates import horizon


@dataclass(frozen=True, slots=True)
class Dates:
    """When a deployment is measured, and when it is published where that is later."""

    measure: tuple[datetime, ...]
    publish: tuple[datetime, ...]

    def after(self, now: datetime) -> Dates:
        """Those that are still ahead."""
        return Dates(*(tuple(each for each in dates if each >= now) for dates in (self.measure, self.publish)))


def dates_of(one: Deployment, now: datetime) -> Dates:
    """The dates of a deployment from now on, as many as one list of Prefect's may hold."""
    found = one.upcoming(now)
    later = (each.publication for each in found if each.publication > each.measuring)
    return Dates(_ahead((each.measuring for each in found), now), _ahead(later, now))


def _ahead(moments: Iterable[datetime], now: datetime) -> tuple[datetime, ...]:
    return tuple(horizon(moments, now))
