"""Reads a `prefect.yaml` on standard input as `prefect deploy` does and prints each deployment with its firings.

A script of its own, because Prefect reads its settings once per process. Nothing listens on a port.
"""

import asyncio
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect.cli.deploy._config import _load_deploy_configs_and_actions
from prefect.cli.deploy._schedules import _construct_schedules
from prefect.server.schemas.schedules import RRuleSchedule
from rich.console import Console

CONSOLE = Console(stderr=True)
SHOWN = ("name", "entrypoint", "parameters", "work_pool", "concurrency_limit")


def fired(schedule: Any) -> list[str]:
    """The moments of a schedule up to 2040."""
    start, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC)
    own = RRuleSchedule(rrule=schedule.rrule, timezone=schedule.timezone)
    return [moment.astimezone(UTC).isoformat() for moment in asyncio.run(own.get_dates(start=start, end=end))]


def told(config: dict[str, Any]) -> dict[str, Any]:
    """What Prefect understood of one deployment."""
    schedules = _construct_schedules(config, {}, console=CONSOLE, is_interactive=lambda: False)
    return {key: config[key] for key in SHOWN} | {"moments": [fired(one["schedule"]) for one in schedules]}


if __name__ == "__main__":
    file = Path("prefect.yaml")
    file.write_text(json.load(sys.stdin), encoding="utf-8")
    configs, actions = _load_deploy_configs_and_actions(file, console=CONSOLE)
    sys.stdout.write(json.dumps({"pull": actions["pull"], "deployments": [told(config) for config in configs]}))
