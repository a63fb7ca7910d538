"""The release on Prefect: two flows, with the approval between them in our own ledger.

A flow's parameters are stored, so they are references: the run, and the private folder in which its order lies. The
confidential step is one task without retries, caching or stored results; whatever goes wrong inside leaves without the
words of a library. Suspending a flow for approval would enter it again from the top; here the first flow ends, and the
second starts from stored measurements.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run as current

from flows import estimating, measuring, publishing
from flows.guard import guarded, seal
from flows.job import Job
from flows.ledger.errors import Broken, Embargoed, Held, LedgerError, NoLedger, Refused
from flows.on_schedule.duty import living
from flows.stored import StoredError
from tabulation.tabulate import tell_nobody

TELLS = (LedgerError, NoLedger, Refused, Held, Broken, StoredError)
"""Errors whose words are free of data."""

telling: ContextVar[Callable[[str], None]] = ContextVar("telling", default=tell_nobody)
"""Who is told the names of the stages."""

seal()


@task(name="measure", retries=0, cache_policy=NO_CACHE, persist_result=False, log_prints=False)
@guarded("measuring", tells=TELLS)
def measure(run: str, private: str) -> None:
    """Records come in, noise goes on, stored measurements stay; nothing else leaves."""
    measuring.measure(Job.of(Path(private), run), tell=telling.get())


@task(name="estimate", retries=0, cache_policy=NO_CACHE, persist_result=False, log_prints=False)
def estimate(run: str, private: str) -> None:
    """Stored measurements become tables that agree."""
    estimating.estimate(Job.of(Path(private), run), tell=telling.get())


@task(name="publish", retries=0, cache_policy=NO_CACHE, persist_result=False, log_prints=False)
def publish(run: str, private: str, hour: datetime | None = None) -> str:
    """Tables become a release, whole and verified; returns its folder. A calendar of deployments names its `hour`."""
    return str(publishing.publish(Job.of(Path(private), run), tell=telling.get(), hour=hour).folder)


@flow(name="measure-release", flow_run_name="measure-{run}", retries=0, persist_result=False, log_prints=False)
def measure_release(run: str, private: str) -> dict[str, Any]:
    """From the reservation to tables that wait for publication."""
    with living(Path(private), str(current.id)):
        try:
            measure(run, private)
        except Held as held:
            return {"held": str(held)}
        estimate(run, private)
        return {"held": None}


@flow(name="publish-release", flow_run_name="publish-{run}", retries=0, persist_result=False, log_prints=False)
def publish_release(run: str, private: str) -> dict[str, Any]:
    """From tables that wait to a release."""
    with living(Path(private), str(current.id)):
        try:
            return {"held": None, "release": publish(run, private)}
        except (Held, Embargoed) as held:
            return {"held": str(held), "release": None}
