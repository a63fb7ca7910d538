"""What a run says at its end: where the release is, what it cost and guarantees, or what it is held for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.job import Job
from flows.ledger.errors import HERE
from flows.plan import guarantee
from flows.terminal import HELD, OK, plainly, say
from reporting.manifest import MANIFEST, read_manifest

if TYPE_CHECKING:
    from flows.plan import Plan


@dataclass(frozen=True, slots=True)
class Ending:
    """How far a run came: to a release, now or before, or as far as it is held."""

    release: str | None
    held: str | None = None
    before: bool = False


def told(job: Job, ending: Ending, *, as_json: bool) -> int:
    """The last words of a run."""
    if as_json:
        say(json.dumps(_as_data(job, ending)))
    else:
        for line in _held(job, ending.held) if ending.held is not None else _lines(job, ending):
            say(line)
    return OK if ending.held is None else HELD


def _as_data(job: Job, ending: Ending) -> dict[str, Any]:
    books, known = job.ledger.books(), job.known
    currency = books.policies[known.asked.policy].currency
    answer = {
        "run": job.run,
        "release": ending.release,
        "charged": {"currency": currency, "amount": str(known.spent)},
        "left": {"currency": currency, "amount": str(books.left(known.asked.policy))},
        "guarantee": _guarantee(job.plan, ending.release),
    }
    if ending.held is not None:
        answer["held"] = job.place.hinted(ending.held)
    return answer | ({"already": True} if ending.before else {})


def _held(job: Job, held: str) -> list[str]:
    lines = [job.place.hinted(f"Held: {held}")]
    if "margrave ledger approve" in held:
        lines.append(job.place.hinted(f"Then go on with: margrave resume {job.run}{HERE}"))
    return lines


def _lines(job: Job, ending: Ending) -> list[str]:
    books, known, plan, release = job.ledger.books(), job.known, job.plan, ending.release
    policy = books.policies[known.asked.policy]
    found = _guarantee(plan, release)
    delta = f" at delta {float(plan.delta):g}" if plan.delta is not None else ""
    again = f", drawn again {known.attempts - 1} times after a crash" if known.attempts > 1 else ""
    left = f"{plainly(books.left(policy.name))} of {plainly(policy.cap)} left"
    paid = f"{policy.currency} {plainly(known.spent)} to '{policy.account}' ({policy.period}){again}; {left}"
    lines = (
        [f"Already released, by run {job.run}: {release}", f"  nothing was charged now; its run had charged {paid}"]
        if ending.before
        else [f"Released: {release}", f"  charged   {paid}"]
    )
    lines += [f"  guarantee epsilon {found['epsilon']}{delta} for {found['protects']} ({found['conversion']})"]
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
