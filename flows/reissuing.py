"""A correction: new tables from the stored measurements. It costs nothing, and the old version is kept and marked.

Labels, notes, titles, formats and the version of the estimation may change; what was measured may not.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from flows.estimating import Tell, estimate, forget_candidate
from flows.job import Job
from flows.ledger.errors import Refused
from flows.plan import Plan, plan_release
from flows.publishing import Release, publish, target_of
from flows.terminal import UserError
from release_specs.load import load_spec
from reporting.manifest import mark_superseded
from reporting.spec_files import FOLDER, gather_spec, write_spec_files


def reissue(job: Job, *, reason: str, spec: Path | None, tell: Tell) -> Release:
    """Publishes the next version of a job's release, with another spec where one is given."""
    if not reason.strip():
        raise UserError("say why the release is corrected: --reason TEXT; readers of the old version will see it")
    if job.known.stored is None:
        raise Refused(f"run {job.run} has no stored measurements, so there is nothing to reissue")
    _finish_exchange(job)
    if spec is not None:
        _exchange_spec(job, spec)
        job = Job(job.place, job.order)
    before = target_of(job, len(job.known.versions)) if job.known.versions else None
    forget_candidate(job)
    estimate(job, tell=tell)
    made = publish(job, tell=tell, reason=reason)
    if before is not None and before.exists():
        mark_superseded(before, by=made.folder.name, reason=reason)
    return made


def _exchange_spec(job: Job, spec: Path) -> None:
    """Takes another spec for a job, if it asks for the same measurements."""
    new = plan_release(load_spec(spec), folder=spec.parent, edition=job.order.edition)
    if _measured(new) != _measured(job.plan):
        raise UserError(
            f"{spec} asks for other measurements than run {job.run} made; a reissue may change labels, titles, notes "
            "and the publish section. What is measured anew is a new release with a new charge"
        )
    shipped, aside = gather_spec(spec), job.folder / ".exchange"
    shutil.rmtree(aside, ignore_errors=True)
    write_spec_files(aside, shipped)
    job.spec.rename(aside / "before")
    (aside / FOLDER).rename(job.spec)
    shutil.rmtree(aside)


def _finish_exchange(job: Job) -> None:
    """Brings back the spec where a process was killed while it exchanged it."""
    before = job.folder / ".exchange" / "before"
    if before.exists() and not job.spec.exists():
        before.rename(job.spec)


def _measured(plan: Plan) -> tuple[object, ...]:
    data = plan.as_data()
    return data["queries"], data["exact"]
