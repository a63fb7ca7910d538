"""Conducting a release from the terminal: the server, the two flows, and what is said at the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimation.errors import EstimationError
from flows import guard
from flows.job import Job
from flows.plan import guarantee, plan_release
from flows.preparing import payer_of
from flows.publishing import published
from flows.server import enter, in_use, start_early
from flows.terminal import HELD, NOT_SO, OK, Stages, UserError, plainly, say, tell
from flows.workplace import Workplace
from reporting.errors import ReleaseFault
from reporting.manifest import MANIFEST, read_manifest
from tabulation.errors import MicrodataError

if TYPE_CHECKING:
    from flows.plan import Plan
    from flows.preparing import Order
    from release_specs.load import Loaded


def conduct(place: Workplace, prepare: Callable[[], Order], *, as_json: bool) -> int:
    """Prepares a run while the server starts, then measures and publishes it on Prefect."""
    early = start_early()
    job = Job.of(place.private, prepare().run)
    if (done := published(job)) is not None:
        return _told(job, release=str(done.folder), held=None, as_json=as_json)
    try:
        release, held = _through_prefect(job, early.wait(tell), as_json=as_json)
    except KeyboardInterrupt:
        tell(f"Stopped. {standing(job)}")
        raise
    except MicrodataError as fault:
        raise UserError(f"microdata refused [{fault.code}]: {fault}. {standing(job)}") from None
    except (EstimationError, ReleaseFault, guard.ReleaseFault) as fault:
        tell(f"margrave: {fault}. {standing(job)}")
        return NOT_SO
    return _told(job, release=release, held=held, as_json=as_json)


def standing(job: Job) -> str:
    """Where a run that did not end stands, and what to do."""
    state, run, again = job.known.state, job.run, f"margrave resume {job.run}{job.place.option}"
    if state == "released":
        return "Nothing was charged: mend the files and run again."
    if state in ("reserved", "identified"):
        return f"Nothing was charged. Run {run} keeps its reservation; go on with: {again}"
    if state == "charged":
        return f"Run {run} is paid and its measurements are not stored yet; go on with: {again}"
    return f"Run {run} is paid and its measurements are kept; go on with: {again}"


def _through_prefect(job: Job, api: Any, *, as_json: bool) -> tuple[str | None, str | None]:
    """The release's folder, or what it is held for."""
    enter(api)
    from flows.release import measure_release, publish_release, telling

    with in_use(api), Stages() as stages:
        token = telling.set((lambda _: None) if as_json else stages.tell)
        try:
            private = str(job.place.private.resolve())
            found = measure_release(job.run, private)
            if found["held"] is None:
                found = publish_release(job.run, private)
        finally:
            telling.reset(token)
    return found.get("release"), found["held"]


def _told(job: Job, *, release: str | None, held: str | None, as_json: bool) -> int:
    """The last words of a run."""
    books, known = job.ledger.books(), job.known
    left = {"currency": books.policies[known.asked.policy].currency, "amount": str(books.left(known.asked.policy))}
    charged = {"currency": left["currency"], "amount": str(known.spent)}
    if as_json:
        promised = _guarantee(job.plan, release)
        answer = {"run": job.run, "release": release, "charged": charged, "left": left, "guarantee": promised}
        say(json.dumps(answer if held is None else {**answer, "held": held}))
    else:
        for line in _lines(job, release=release, held=held):
            say(line)
    return OK if held is None else HELD


def _lines(job: Job, *, release: str | None, held: str | None) -> list[str]:
    books, known, plan = job.ledger.books(), job.known, job.plan
    policy = books.policies[known.asked.policy]
    if held is not None:
        return [f"Held: {held}{job.place.option}", f"Then go on with: margrave resume {job.run}{job.place.option}"]
    found = _guarantee(plan, release)
    delta = f" at delta {float(plan.delta):g}" if plan.delta is not None else ""
    again = f", drawn again {known.attempts - 1} times after a crash" if known.attempts > 1 else ""
    left = f"{plainly(books.left(policy.name))} of {plainly(policy.cap)} left"
    lines = [
        f"Released: {release}",
        f"  charged   {policy.currency} {plainly(known.spent)} to '{policy.account}' ({policy.period}){again}; {left}",
        f"  guarantee epsilon {found['epsilon']}{delta} for {found['protects']} ({found['conversion']})",
    ]
    if release is not None:
        lines += least_reliable(Path(release))
    return lines


def _guarantee(plan: Plan, release: str | None) -> dict[str, Any]:
    """What a release guarantees: as it says itself, where there is one."""
    if release is not None and (Path(release) / MANIFEST).exists():
        return dict(read_manifest(Path(release)).plan["guarantee"])
    return guarantee(plan)


def least_reliable(release: Path, most: int = 5) -> list[str]:
    """The tables whose numbers are least sure, by the median of margin over estimate."""
    import pandas as pd

    found = []
    for file in sorted((release / "tables").glob("*.csv")):
        table = pd.read_csv(file, usecols=["level", "estimate", "moe"], dtype={"level": str})
        table["level"] = table["level"].fillna("")
        for level in table["level"].unique():
            rows = table[table["level"] == level]
            sure = (rows["moe"] / rows["estimate"].abs().clip(lower=1)).median()
            found.append((float(sure), file.stem, f" at {level}" if level else ""))
    worst = sorted(found, reverse=True)[:most]
    if not worst:
        return []
    return [
        "  least sure (the typical margin of error beside its estimate):",
        *(f"    {share:>6.0%}  {name}{place}" for share, name, place in worst),
    ]


def rehearse(loaded: Loaded, place: Workplace, *, folder: Path, edition: str | None, as_json: bool) -> int:
    """What a run would cost and find in the ledger. Nothing is reserved, and no file is opened."""
    plan = plan_release(loaded, folder=folder, edition=edition)
    books = place.open_ledger().books()
    name = payer_of(plan)
    policy = books.policies.get(name)
    left = books.left(name) if policy is not None else None
    own = policy is None and books.solo and loaded.spec.privacy.account is None
    if as_json:
        amount = None if left is None else {"currency": plan.currency, "amount": str(left)}
        price = {"currency": plan.currency, "amount": str(plan.price)}
        answer = {"run": None, "release": None, "charged": price, "left": amount, "guarantee": guarantee(plan)}
        say(json.dumps(answer))
        return OK
    cost = f"{plan.currency} {plainly(plan.price)}"
    say(f"{len(plan.queries)} queries cost {cost} of the {plainly(plan.budget)} that this edition may spend.")
    for warning in plan.warnings:
        say(f"warning: {warning}")
    if left is not None:
        say(f"Account '{name[0]}' has {plainly(left)} left for '{name[1]}'.")
    elif own:
        say(f"The release is an account of its own and may spend {plainly(plan.budget)}, once.")
    else:
        say(f"Account '{name[0]}' has no budget for '{name[1]}': open it with margrave ledger grant.")
    say("Nothing was reserved and no file was opened (--dry-run).")
    return OK
