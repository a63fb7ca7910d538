"""Deployments for Prefect's work pools: the text of a `prefect.yaml`, for `prefect deploy --all`.

Each deployment becomes two: `NAME-measure`, fired at the moments of measuring, and `NAME-publish`, fired at the moments
of publication where those lie later (otherwise whoever measures publishes). Parameters are references. Nothing is
pulled: workers have Margrave installed, and the specs beside the deployments file. The dates reach as far as one list
of Prefect's may be long, two years at most: write the file anew at least every year.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from flows.deployments.load import Deployment
from flows.scheduling.rdates import RDATES_ZONE, as_rdates, horizon


@dataclass(frozen=True, slots=True)
class Entrypoints:
    """The two flows, each as Prefect finds it: `package.module.flow`."""

    measure: str
    publish: str


FLOWS = Entrypoints("flows.on_schedule.firing.measure_on_schedule", "flows.on_schedule.firing.publish_on_schedule")
"""The flows that fire on schedule."""


def as_prefect_yaml(
    deployments: Iterable[Deployment], now: datetime, *, pool: str, entrypoints: Entrypoints = FLOWS
) -> str:
    """The text of a `prefect.yaml` whose schedules begin at `now`."""
    entries = [entry for one in deployments for entry in _entries(one, now, entrypoints, pool)]
    writer, text = YAML(), io.StringIO()
    writer.width = 120
    writer.dump({"name": "margrave", "pull": [], "deployments": entries}, text)
    return text.getvalue()


def _entries(one: Deployment, now: datetime, entrypoints: Entrypoints, pool: str) -> list[dict[str, Any]]:
    found = one.upcoming(now)
    measuring = horizon((ahead.measuring for ahead in found), now)
    publishing = horizon((ahead.publication for ahead in found if ahead.publication > ahead.measuring), now)
    return [
        {**_entry(one, "measure", entrypoints.measure, measuring), "work_pool": {"name": pool}},
        {**_entry(one, "publish", entrypoints.publish, publishing), "work_pool": {"name": pool}},
    ]


def _entry(one: Deployment, verb: str, entrypoint: str, instants: list[datetime]) -> dict[str, Any]:
    return {
        "name": f"{one.name}-{verb}",
        "entrypoint": entrypoint,
        "parameters": one.parameters,
        "concurrency_limit": {"limit": 1, "collision_strategy": "ENQUEUE"},
        "schedules": [_schedule(verb, instants)] if instants else [],
    }


def _schedule(verb: str, instants: list[datetime]) -> dict[str, Any]:
    return {"slug": verb, "timezone": RDATES_ZONE, "active": True, "rrule": LiteralScalarString(as_rdates(instants))}
