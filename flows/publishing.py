"""The last step: tables that wait become a release, whole and signed, and the ledger knows it.

The folder appears first, complete and verified; then the tables that waited are removed; then comes the ledger's entry.
A crash before that leaves a release that the next call recognises as its own and enters: tables are made again from the
stored measurements, byte for byte. After the entry nothing is left to be done.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flows.code import versions
from flows.disk import on_disk
from flows.estimating import Tell, forget_candidate, tables_digest
from flows.job import KEPT, Job, step
from flows.ledger.errors import HERE, Embargoed, Refused
from flows.plan import Plan, guarantee
from flows.scheduling.embargo import hour_of
from flows.stored import hash_of
from flows.terminal import UserError
from reporting.errors import ReleaseFault
from reporting.folder import sweep_aside, write_release
from reporting.manifest import MANIFEST, Manifest, read_manifest

RELEASES = "releases"
"""Where releases go unless another folder is named: beside the spec."""


@dataclass(frozen=True, slots=True)
class Release:
    """A published release."""

    folder: Path
    version: int


def published(job: Job) -> Release | None:
    """What a job published last, if it has; then it no longer needs to know where its microdata are."""
    version = len(job.known.versions)
    if not version:
        return None
    job.place.forget_dataset(job.run)
    return Release(target_of(job, version), version)


@step("publishing")
def publish(job: Job, *, tell: Tell, reason: str = "", hour: datetime | None = None) -> Release:
    """Publishes the tables of a job; `reason` says why where an earlier version is corrected.

    Raises `Held` while approvals are missing, and `Embargoed` before the hour: `hour` where a calendar of deployments
    knows it, else that of the run's own copy of the spec. What was published already is published again only for a
    reason.
    """
    done = published(job)
    if done is not None and not reason:
        forget_candidate(job)
        return done
    require_tables(job)
    tables = tables_digest(job.candidate)
    job.ledger.require_approved_publication(job.run, tables)
    require_hour(job, hour or hour_of(job.plan.spec, job.spec, job.order.edition))
    version = len(job.known.versions) + 1
    target = target_of(job, version)
    _require_folder(target.parent)
    with on_disk(f"publishing (run {job.run})", target.parent, then=f"{KEPT}: margrave resume {job.run}{HERE}"):
        sweep_aside(target.parent, target=target.name)
        if not (target.exists() and _is_ours(target, job.run, version)):
            tell("publishing")
            _write(job, target=target, version=version, reason=reason)
    manifest = hash_of(target / MANIFEST)
    forget_candidate(job)
    job.ledger.publish(job.run, version=version, manifest=manifest, tables=tables)
    return Release(target, version)


def require_tables(job: Job) -> None:
    """Raises `Refused` where nothing waits for publication: to publish never measures."""
    if job.known.rejected is not None:
        raise Refused(f"run {job.run} was rejected ({job.known.rejected}) and is never published")
    if not job.known.versions and not job.candidate.exists():
        raise Refused(
            f"run {job.run} is {job.known.state} and has no tables that wait for publication; "
            f"go on with: margrave resume {job.run}{HERE}"
        )


def require_hour(job: Job, hour: datetime | None) -> None:
    """Raises `Embargoed` before the hour of a first version; what is public already may be corrected at any time."""
    if hour is not None and not job.known.versions and datetime.now(UTC) < hour:
        raise Embargoed(job.run, hour)


def target_of(job: Job, version: int) -> Path:
    """The folder of a version of a release: its name, its edition, and its version from the second on."""
    edition = f"-{job.order.edition}" if job.order.edition is not None else ""
    return Path(job.order.out) / f"{job.known.asked.release}{edition}{f'-v{version}' if version > 1 else ''}"


def _require_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise UserError(f"{folder} cannot be made: {fault.strerror}; choose another --out") from None
    if not os.access(folder, os.W_OK):
        raise UserError(f"{folder} cannot be written to; choose another --out")


def _is_ours(target: Path, run: str, version: int) -> bool:
    try:
        found = read_manifest(target)
    except ReleaseFault:
        return False
    return (found.run, found.version) == (run, version)


def _write(job: Job, *, target: Path, version: int, reason: str) -> None:
    release, books = job.plan.spec.release, job.ledger.books()
    manifest = Manifest(
        name=release.name,
        title=release.title,
        edition=job.plan.edition,
        version=version,
        run=job.run,
        published=datetime.now(UTC).isoformat(timespec="seconds"),
        code=versions(),
        plan={**job.plan.as_data(), "guarantee": guarantee(job.plan)},
        ledger=_account_of(job) | ({"reissued_because": reason} if reason else {}),
        measured=measured_in(job.plan),
    )

    def fill(aside: Path) -> None:
        for path in sorted(job.candidate.rglob("*")):  # one by one: the first that a disk refuses says why
            if path.is_file():
                copy = aside / path.relative_to(job.candidate)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)

    def sign(message: bytes) -> Mapping[str, Any]:
        return {"office": books.office, "key": books.office_key, "signature": job.ledger.office_signature(message)}

    write_release(target, manifest, fill=fill, sign=sign)


def measured_in(plan: Plan) -> tuple[tuple[str, str | None], ...]:
    """Every tally and level of which a release holds numbers."""
    noisy = [(one.tally.name, one.level) for one in plan.queries]
    return (*noisy, *((tally.name, level) for tally in plan.exact for level in tally.levels or (None,)))


def _account_of(job: Job) -> dict[str, Any]:
    """What the certificate says of the ledger: the account after this release, who approved, and the anchor."""
    books, known = job.ledger.books(), job.known
    name = known.asked.policy
    policy = books.policies[name]
    return {
        "anchor": job.ledger.anchor().as_data(),
        "account": known.asked.account,
        "period": known.asked.period,
        "currency": policy.currency,
        "cap": str(policy.cap),
        "charged": str(known.spent),
        "left": str(books.left(name)),
        "all_time": str(books.all_time(known.asked.account)),
        "attempts": known.attempts,
        "rejected": sum(run.rejected is not None for run in books.runs.values() if run.asked.account == name[0]),
        "dataset": known.dataset,
        "stored": known.stored.sha256 if known.stored is not None else None,
        "solo": books.solo,
        "approved_to_spend": list(known.approved_by),
        "exact_totals": list(known.totals),
        "looked_first": sum(one["release"] == known.asked.release for one in books.looks),
    }
