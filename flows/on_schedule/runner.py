"""The process that serves: it registers the dates with Prefect, starts what fires, and looks round once a minute.

`python -m flows.on_schedule.runner FILE [afresh]` is started by `supervising`, in an environment made for one server,
and ends when its standard input does. Every look reads the file anew: dates that changed, or that have come within
reach of Prefect's list, are written again.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from prefect import Flow, get_client
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import State, StateType
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import ObjectNotFound
from prefect.runner import Runner
from prefect.schedules import RRule
from prefect.states import Crashed, Scheduled
from prefect.types.entrypoint import EntrypointType

from flows.accounts import DONE, needed_next
from flows.deployments.load import Deployment, load_deployments
from flows.guard import seal
from flows.ledger.errors import LedgerError
from flows.on_schedule.claims import Claim, place_of
from flows.on_schedule.dates import Dates, dates_of
from flows.on_schedule.duty import MISSED, forget_lost, lost
from flows.on_schedule.firing import MEASURE, PUBLISH, measure_on_schedule, publish_on_schedule
from flows.on_schedule.needs import GRACE, Needs, needs_of
from flows.on_schedule.notify import notify
from flows.scheduling.rdates import RDATES_ZONE, as_rdates
from flows.terminal import UserError, tell

LOOK, POLL = 60.0, 5.0
"""Seconds between two looks round, and between two questions to Prefect."""
AT_ONCE = 4
"""How many flows run at the same time."""
AT_START = timedelta(0)
"""Who has just begun to serve knows that nobody else will fire what is due already."""
LOST = timedelta(minutes=5)
"""A firing that was handed out for so long and has not begun never will."""


@dataclass
class Served:
    """What is being served: the runner, the dates as registered, and what was told already."""

    file: Path
    runner: Runner
    dates: dict[str, Dates] = field(default_factory=dict)
    ids: dict[str, UUID] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)

    def tell_once(self, sentence: str) -> None:
        """Says something that stays true for more than one look."""
        if sentence not in self.told:
            self.told.add(sentence)
            tell(sentence)


async def serve(file: Path, *, afresh: bool) -> None:
    """Serves the deployments of a file until it is told to end."""
    deployments = load_deployments(file)
    served = Served(file, Runner(name="margrave", pause_on_shutdown=False, query_seconds=POLL, limit=AT_ONCE))
    await sweep(deployments)
    await register(served, deployments)
    if afresh:
        _report(deployments)
    for one in deployments:
        await _look_at(served, one, grace=AT_START, afresh=afresh)
    _say_next(served)
    await _until_told(served)


async def sweep(deployments: Iterable[Deployment]) -> None:
    """Marks as crashed what Prefect takes for running although its process is no more."""
    async with get_client() as client:
        for private in dict.fromkeys(place_of(one).private for one in deployments):
            for flow_run in lost(private):
                if await _force_crashed(client, UUID(flow_run)):
                    tell(f"E-RUN-LOST: flow run {flow_run} was lost with its process; Prefect now says so")
                forget_lost(private, flow_run)


async def _force_crashed(client: PrefectClient, flow_run: UUID) -> bool:
    try:
        found = await client.read_flow_run(flow_run)
    except ObjectNotFound:
        return False
    if found.state is None or not found.state.is_running():
        return False
    await client.set_flow_run_state(flow_run, Crashed(message="E-RUN-LOST: its process is gone"), force=True)
    return True


async def _sweep_unbegun(served: Served) -> None:
    """Marks as crashed what was handed to a runner that is gone and never began."""
    before = datetime.now(UTC) - LOST
    pending = FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.PENDING]))
    ours = FlowRunFilterDeploymentId(any_=list(served.ids.values()))
    async with get_client() as client:
        for found in await client.read_flow_runs(flow_run_filter=FlowRunFilter(state=pending, deployment_id=ours)):
            if found.state is not None and found.state.timestamp < before:
                gone: State[None] = Crashed(message="E-RUN-LOST: it never began")
                await client.set_flow_run_state(found.id, gone, force=True)


async def register(served: Served, deployments: Iterable[Deployment]) -> None:
    """Gives Prefect the dates of deployments that are new or changed; those that are no more are taken out."""
    now, wanted = datetime.now(UTC), set()
    for one in deployments:
        wanted.add(one.name)
        dates = dates_of(one, now)
        if one.name not in served.dates or served.dates[one.name].after(now) != dates:
            await _add(served, one, dates)
            served.dates[one.name] = dates
    for gone in set(served.dates) - wanted:
        del served.dates[gone]
    await _take_out(served)


async def _add(served: Served, one: Deployment, dates: Dates) -> None:
    for flow, verb, moments in (
        (measure_on_schedule, "measure", dates.measure),
        (publish_on_schedule, "publish", dates.publish),
    ):
        found: RunnerDeployment = await _deployment(flow, f"{one.name}-{verb}", one.parameters, moments)
        served.ids[found.name] = await served.runner.aadd_deployment(found)


async def _deployment(
    flow: Flow[[str, str], State[None]], name: str, parameters: dict[str, str], moments: tuple[datetime, ...]
) -> RunnerDeployment:
    return await flow.ato_deployment(
        name=name,
        parameters=parameters,
        schedules=[RRule(as_rdates(moments), timezone=RDATES_ZONE)] if moments else [],
        entrypoint_type=EntrypointType.MODULE_PATH,
    )


async def _take_out(served: Served) -> None:
    """Removes what Prefect still has of this file and the file no longer has."""
    kept = {f"{name}-{verb}" for name in served.dates for verb in ("measure", "publish")}
    async with get_client() as client:
        found = await client.read_deployments(flow_filter=FlowFilter(name=FlowFilterName(any_=[MEASURE, PUBLISH])))
        for one in found:
            if one.parameters.get("deployments") == str(served.file.resolve()) and one.name not in kept:
                await client.delete_deployment(one.id)
                tell(f"{one.parameters['deployment']} is no longer in {served.file.name}: its dates are taken out")


def _report(deployments: Iterable[Deployment]) -> None:
    """Says which runs of the ledgers are unfinished and what they need, as `margrave ledger doctor` does."""
    for place in dict.fromkeys(place_of(one) for one in deployments):
        books = place.open_ledger().books()
        for run in books.runs.values():
            if run.state not in DONE:
                name = f"{run.asked.release}, edition {run.asked.edition}"
                needed = place.hinted_everywhere(needed_next(books, run))
                tell(f"Unfinished: run {run.id} ({name}) is {run.state}: {needed}")


async def _look_at(served: Served, one: Deployment, *, grace: timedelta = GRACE, afresh: bool = False) -> None:
    """Fires what is due and was not fired, and reports what was missed."""
    try:
        needs = await asyncio.to_thread(needs_of, one, datetime.now(UTC), grace=grace, afresh=afresh)
        await asyncio.to_thread(_report_missed, needs, afresh=afresh)
        await _fire(served, needs)
    except (LedgerError, UserError, OSError) as fault:
        served.tell_once(f"{one.name}: {fault}")


def _report_missed(needs: Needs, *, afresh: bool) -> None:
    """Says on every start what a person must decide on; hooks are told once."""
    for claim, sentence in needs.missed:
        is_new = claim.duty.outcome(claim.edition)[0] != MISSED
        if is_new or afresh:
            tell(sentence)
        if is_new:
            claim.duty.note(claim.edition, MISSED)
            known = claim.known()
            notify(claim, "failure", sentence, run=known.id if known is not None else None, tell=tell)


async def _fire(served: Served, needs: Needs) -> None:
    async with get_client() as client:
        for claim in needs.measure:
            await _fire_one(client, served, claim, "measure")
        for claim in needs.publish:
            await _fire_one(client, served, claim, "publish")


async def _fire_one(client: PrefectClient, served: Served, claim: Claim, verb: str) -> None:
    moment = claim.occurrence.measuring if verb == "measure" else claim.occurrence.publication
    tell(f"{claim.name}, is due since {moment:%Y-%m-%d %H:%M} UTC: started now")
    state: State[None] = Scheduled(scheduled_time=moment)
    await client.create_flow_run_from_deployment(served.ids[f"{claim.one.name}-{verb}"], state=state)


def _say_next(served: Served) -> None:
    dates = [(moment, name) for name, found in served.dates.items() for moment in found.measure[:1]]
    first = min(dates, default=None)
    ahead = f"; next: {first[1]} at {first[0]:%Y-%m-%d %H:%M} UTC" if first is not None else ", none has a date ahead"
    tell(f"Serving {len(served.dates)} deployment{'s' if len(served.dates) != 1 else ''} of {served.file}{ahead}")


async def _until_told(served: Served) -> None:
    """Runs what fires and looks round, until a signal comes."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    serving = asyncio.create_task(served.runner.start())
    await asyncio.sleep(0)  # its first step takes the signal, which we want ourselves
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    looking = asyncio.create_task(_keep_looking(served))
    stopped = asyncio.create_task(told.wait())
    await asyncio.wait({serving, looking, stopped}, return_when=asyncio.FIRST_COMPLETED)
    looking.cancel()
    if served.runner.started:
        await served.runner.astop()
    await serving


async def _keep_looking(served: Served) -> None:
    while True:
        await asyncio.sleep(LOOK)
        try:
            await _look_round(served)
        except UserError as fault:
            served.tell_once(f"{fault}\nThe dates stay as they were until the file is mended.")
        except Exception as fault:  # noqa: BLE001 - a server that stumbles must not end the releases on their way
            tell(f"Looking round failed ({type(fault).__name__}); it is tried again in a minute")


async def _look_round(served: Served) -> None:
    deployments = await asyncio.to_thread(load_deployments, served.file)
    await register(served, deployments)
    await sweep(deployments)
    await _sweep_unbegun(served)
    for one in deployments:
        await _look_at(served, one)


def _end_with_parent() -> None:
    """Ends this process when whoever started it is gone."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main(file: Path, *, afresh: bool) -> int:
    """Serves until told to end."""
    seal()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        asyncio.run(serve(file, afresh=afresh))
    except (UserError, LedgerError) as fault:
        tell(f"margrave: {fault}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), afresh=sys.argv[2:] == ["afresh"]))
