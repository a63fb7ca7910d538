"""Fires scheduled flows, or sweeps, in a process of its own; the tests of `serve` start it and feed it.

Each line of standard input is a JSON list, `[FILE, NAME, "measure"|"publish"|"sweep"|"register"]`; each is answered
with a line: the name and the message of the state that the flow ended in.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from prefect import get_client
from prefect.runner import Runner

from flows.deployments.load import load_deployments
from flows.on_schedule.firing import measure_on_schedule, publish_on_schedule
from flows.on_schedule.runner import Served, register, sweep

FLOWS = {"measure": measure_on_schedule, "publish": publish_on_schedule}


async def registered(file: Path) -> dict[str, list[str]]:
    """The schedules of every deployment that Prefect has of a file once its dates were given."""
    await register(Served(file, Runner(pause_on_shutdown=False)), load_deployments(file))
    async with get_client() as client:
        ours = [one for one in await client.read_deployments() if one.parameters.get("deployments") == str(file)]
    return {one.name: [f"{each.schedule.timezone} {each.schedule.rrule}" for each in one.schedules] for one in ours}


def done(file: str, name: str, deed: str) -> list[str]:
    """How a deed ended."""
    if deed == "sweep":
        asyncio.run(sweep(load_deployments(Path(file))))
        return ["Swept", ""]
    if deed == "register":
        return ["Registered", json.dumps(asyncio.run(registered(Path(file))))]
    state = FLOWS[deed](file, name, return_state=True)
    return [state.name, state.message]


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(done(*json.loads(line))) + "\n")
        sys.stdout.flush()
