"""Which editions of a deployment want something now: to be measured, published, or decided on by a person.

Prefect fires at the listed dates. This is the second pair of eyes: what fired and was lost, what never fired because
nobody served, what was held and has been approved since. What failed with an answer is not tried again by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from flows.accounts import needed_next
from flows.deployments.load import Deployment
from flows.estimating import tables_digest
from flows.ledger.books import Books, Run
from flows.ledger.rules import pending_attempts, pending_to_publish, pending_to_spend
from flows.on_schedule.claims import Claim, around, place_of, run_of
from flows.on_schedule.duty import CRASHED, FAILED, HELD, MISSED, MOST_CRASHES, Duty
from flows.scheduling.calendar import Occurrence
from flows.scheduling.due import standing
from flows.workplace import CANDIDATE, Workplace

GRACE = timedelta(minutes=2)
"""How long Prefect is given to fire by itself."""
SETTLED = ("published", "rejected")


@dataclass(frozen=True, slots=True)
class Needs:
    """What is to be fired, and what needs a person, each with the sentence that says so."""

    measure: tuple[Claim, ...]
    publish: tuple[Claim, ...]
    missed: tuple[tuple[Claim, str], ...]


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at a deployment."""

    one: Deployment
    now: datetime
    grace: timedelta
    afresh: bool
    books: Books
    place: Workplace
    duty: Duty

    def run(self, claim: str) -> Run | None:
        return run_of(self.books, self.one, claim)


def needs_of(one: Deployment, now: datetime, *, grace: timedelta = GRACE, afresh: bool = False) -> Needs:
    """What a deployment needs. `grace` is for Prefect to fire by itself; `afresh`: what failed is tried once more."""
    place = place_of(one)
    look = _Look(one, now, grace, afresh, place.open_ledger().books(), place, Duty.of(place, one.name))
    earliest = look.duty.since(now) - one.max_lateness
    begun = [each for each in around(one, now) if earliest <= each.measuring <= now]
    runs = {each.claim: look.run(each.claim) for each in begun}
    settled = {claim for claim, run in runs.items() if run is not None and run.state in SETTLED}
    stored = {claim for claim, run in runs.items() if run is not None and run.stored is not None} - settled
    found = standing(begun, now, done=settled | stored, max_lateness=one.max_lateness)
    tables = {each.claim: each for each in reversed(begun) if each.claim in stored and each.publication <= now}
    late = [each for each in tables.values() if now - each.publication > one.max_lateness]
    return Needs(
        tuple(Claim(one, each) for each in found.to_run if _wants(look, each, each.measuring)),
        tuple(
            Claim(one, each) for each in tables.values() if each not in late and _wants(look, each, each.publication)
        ),
        tuple(_missed(Claim(one, each), runs[each.claim]) for each in (*found.missed, *late)),
    )


def _wants(look: _Look, each: Occurrence, moment: datetime) -> bool:
    """Whether an edition is to be fired now, and not by Prefect alone."""
    word, times = look.duty.outcome(each.claim)
    if look.duty.is_taken(each.claim) or look.now - moment < look.grace:
        return False
    if word == HELD:
        return _is_approved(look, look.run(each.claim))
    if word in (FAILED, MISSED):
        return look.afresh
    return word != CRASHED or look.afresh or times < MOST_CRASHES


def _is_approved(look: _Look, run: Run | None) -> bool:
    """Whether what a run was held for has been approved since."""
    if run is None:
        return True
    if run.stored is not None:
        candidate = look.place.run_folder(run.id) / CANDIDATE
        return not candidate.exists() or pending_to_publish(look.books, run, tables_digest(candidate)).is_met
    return (pending_attempts if run.charged else pending_to_spend)(look.books, run).is_met


def _missed(claim: Claim, run: Run | None) -> tuple[Claim, str]:
    return claim, missed_sentence(claim, run)


def _next(claim: Claim, run: Run) -> str:
    return claim.place.hinted_everywhere(needed_next(claim.place.open_ledger().books(), run))


def missed_sentence(claim: Claim, run: Run | None) -> str:
    """What became of an edition that was not begun or published in time, and what a person may do."""
    one, due = claim.one, f"{claim.name}, was due at {claim.occurrence.measuring:%Y-%m-%d %H:%M} UTC"
    if run is not None and run.stored is not None:
        return f"{claim.name}, was not published in time: {_next(claim, run)}"
    if run is not None and run.state != "released":
        return f"{due} and was not finished in time. Run {run.id} is {run.state}: {_next(claim, run)}"
    data = " ".join(f"--data {entity}=PATH" for entity in one.data)
    ledger = f" --ledger {one.ledger}" if one.ledger is not None else ""
    return (
        f"{due} and is missed: nothing was measured or charged. If it is still wanted, run it by hand: "
        f"margrave run {one.spec_path.name} --edition {claim.edition} {data}{ledger} --out {one.output}"
    )
