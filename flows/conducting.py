"""Conducting a release from the terminal: the server, the two flows, and what is said at the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimation.errors import EstimationError
from flows import guard
from flows.foreseeing import as_data, as_lines, foresee_tables
from flows.job import Job
from flows.last_words import Ending, told
from flows.ledger.errors import HERE, Refused
from flows.plan import guarantee, plan_release
from flows.preparing import payer_of
from flows.publishing import published
from flows.scheduling.embargo import hour_of
from flows.server import enter, in_use, start_early
from flows.terminal import OK, NotSo, Stages, UserError, plainly, say, tell
from flows.workplace import Workplace
from reporting.errors import ReleaseFault
from tabulation.errors import MicrodataError

if TYPE_CHECKING:
    from flows.preparing import Order
    from release_specs.load import Loaded


DOCTOR = f"margrave ledger doctor{HERE}"
WHOLE, LAST = ("measure_release", "publish_release"), ("publish_release",)
"""The flows of a whole release, and of one that is measured already."""


def conduct(place: Workplace, prepare: Callable[[], Order], *, as_json: bool, flows: Sequence[str] = WHOLE) -> int:
    """Prepares a run while the server starts, then passes it through `flows` on Prefect."""
    early = start_early()
    try:
        job = Job.of(place.private, prepare().run)
    except KeyboardInterrupt:
        tell(place.hinted(f"Stopped before anything was opened. What is reserved is told by: {DOCTOR}"))
        raise
    if (done := published(job)) is not None:
        return told(job, Ending(str(done.folder), before=True), as_json=as_json)
    require_unended(job)
    with faults_told(job):
        return told(job, _through_prefect(job, early.wait(tell), flows, as_json=as_json), as_json=as_json)


def require_unended(job: Job) -> None:
    """Refuses to go on with a run that was given up."""
    known = job.known
    if known.state in ("released", "rejected"):
        why = f"was rejected ({known.rejected})" if known.rejected else "gave its reservation back"
        raise Refused(f"run {job.run} {why} and is never gone on with; begin a new one with: margrave run SPEC{HERE}")


@contextmanager
def faults_told(job: Job) -> Iterator[None]:
    """Says where a run stands when something ends it."""
    said: Exception
    try:
        yield
    except KeyboardInterrupt:
        tell(f"Stopped. {standing(job)}")
        raise
    except MicrodataError as fault:
        said = UserError(f"microdata refused [{fault.code}]: {str(fault).rstrip('.')}. {standing(job)}")
    except (EstimationError, ReleaseFault, guard.ReleaseFault) as fault:
        said = NotSo(f"{str(fault).rstrip('.')}. {standing(job)}")
    else:
        return
    raise said


def standing(job: Job) -> str:
    """Where a run that did not end stands, and what to do."""
    state, run, again = job.known.state, job.run, job.place.hinted(f"margrave resume {job.run}{HERE}")
    if state == "released":
        return "Nothing was charged and nothing is reserved: mend the files and run again."
    if state in ("reserved", "identified"):
        return f"Nothing was charged. Run {run} keeps its reservation; go on with: {again}"
    if state == "charged":
        return f"Run {run} is paid and its measurements are not stored yet; go on with: {again}"
    if state == "published":
        return f"Run {run} is published."
    return f"Run {run} is paid and its measurements are kept; go on with: {again}"


def _through_prefect(job: Job, api: Any, flows: Sequence[str], *, as_json: bool) -> Ending:
    """The release's folder, or what it is held for."""
    enter(api)
    from flows import release

    with in_use(api), Stages() as stages:
        token = release.telling.set((lambda _: None) if as_json else stages.tell)
        try:
            found: dict[str, Any] = {"held": None}
            for name in flows:
                if found["held"] is None:
                    found = getattr(release, name)(job.run, str(job.place.private.resolve()))
        finally:
            release.telling.reset(token)
    return Ending(found.get("release"), found["held"])


def rehearse(loaded: Loaded, place: Workplace, *, folder: Path, edition: str | None, as_json: bool) -> int:
    """What a run would cost and find in the ledger. Nothing is reserved, and no file is opened."""
    plan = plan_release(loaded, folder=folder, edition=edition)
    foreseen = foresee_tables(plan, folder)
    books = place.open_ledger().books()
    name = payer_of(plan)
    policy = books.policies.get(name)
    left = books.left(name) if policy is not None else None
    own = policy is None and books.solo and loaded.spec.privacy.account is None
    if as_json:
        amount = None if left is None else {"currency": plan.currency, "amount": str(left)}
        price = {"currency": plan.currency, "amount": str(plan.price)}
        answer = {"run": None, "release": None, "charged": price, "left": amount, "guarantee": guarantee(plan)}
        say(json.dumps({**answer, "tables": as_data(foreseen)}))
        return OK
    for line in as_lines(foreseen):
        say(line)
    say("The worst cell of each table, with the margin of error of its unbiased estimate.")
    cost = f"{plan.currency} {plainly(plan.price)}"
    hour = hour_of(loaded.spec, folder, plan.edition)
    say(f"{len(plan.queries)} queries cost {cost} of the {plainly(plan.budget)} that this edition may spend.")
    for warning in plan.warnings:
        say(f"warning: {warning}")
    if left is not None:
        say(f"Account '{name[0]}' has {plainly(left)} left for '{name[1]}'.")
    elif own:
        say(f"The release is an account of its own and may spend {plainly(plan.budget)}, once.")
    else:
        opening = f"margrave ledger grant SPEC --cap AMOUNT{HERE}"
        say(place.hinted(f"Account '{name[0]}' has no budget for '{name[1]}': open it with: {opening}"))
    if hour is not None and hour > datetime.now(UTC):
        say(f"The release is under embargo until {hour:%Y-%m-%d %H:%M} UTC, by the spec's schedule.")
    say("Nothing was reserved and no file was opened (--dry-run).")
    return OK
