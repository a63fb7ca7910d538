"""After the noise: stored measurements become tables that agree, in a folder that waits to be published.

Nothing here reads a record: the step sees the spec's copies and the stored measurements. It can be done again at any
time, with the same bytes, and costs nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from estimation.measurement import ExactNumbers, Measurement
from estimation.problem import problem
from flows.job import Job, step
from flows.ledger.chain import digest
from flows.ledger.errors import HERE, Refused
from flows.measuring import exact_name, parts_of
from flows.plan import Plan
from flows.stored import read_stored
from flows.workplace import CANDIDATE
from reporting.folder import sync_all
from reporting.manifest import hashes_of
from reporting.replay import MadeTables, make_tables

Tell = Callable[[str], None]


@step("making tables")
def estimate(job: Job, *, tell: Tell) -> str:
    """Makes the tables of a job beside its measurements; returns the digest of every file, which approvals sign."""
    if not job.candidate.exists():
        aside = job.folder / f".{CANDIDATE}"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(mode=0o700)
        tell("estimating")
        made = tables_of(job)
        tell("writing tables")
        _write(aside, job.spec, job.plan, made)
        sync_all(aside)
        aside.replace(job.candidate)
    return tables_digest(job.candidate)


def tables_of(job: Job) -> MadeTables:
    """The tables of a job, from its stored measurements."""
    plan, stored = job.plan, job.known.stored
    if stored is None:
        raise Refused(f"run {job.run} has no stored measurements; go on with: margrave resume {job.run}{HERE}")
    numbers = read_stored(job.folder, parts_of(plan), stored.sha256)
    measurements = [Measurement(one.tally, one.level, numbers[one.name], one.noise) for one in plan.queries]
    exact = [
        ExactNumbers(tally, level, numbers[exact_name(tally, level)])
        for tally in plan.exact
        for level in tally.levels or (None,)
    ]
    found = problem(plan.spec, plan.domain, list(plan.tallies), folder=job.spec)
    return make_tables(found, plan.domain, measurements=measurements, exact=exact)


def tables_digest(folder: Path) -> str:
    """The digest of a candidate: every file by its hash."""
    return digest({name: found for name, (found, _) in hashes_of(folder).items()})


def _write(out: Path, spec: Path, plan: Plan, made: MadeTables) -> None:
    described = {(one.tally.name, one.level): _described(one.charge.as_data()) for one in plan.queries}
    shipped = {path.relative_to(spec).as_posix(): path.read_bytes() for path in spec.rglob("*") if path.is_file()}
    made.write_release(out, spec=shipped, described=described)


def _described(charge: dict[str, Any]) -> dict[str, Any]:
    mechanism = charge["mechanism"]
    return {"mechanism": mechanism["name"], "parameters": mechanism["parameters"], "charge": charge}


def forget_candidate(job: Job) -> None:
    """Removes the tables that waited; at no time is there a part of them that looks like all."""
    aside = job.folder / f".{CANDIDATE}"
    shutil.rmtree(aside, ignore_errors=True)
    if job.candidate.exists():
        job.candidate.replace(aside)
        shutil.rmtree(aside, ignore_errors=True)
