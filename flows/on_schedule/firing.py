"""The two flows that fire on schedule: one measures an edition, one publishes it at its hour.

Their parameters are stored by Prefect, so they are references: the deployments file and a name in it. A firing reads
the file anew, finds the edition it stands for by the moment it was scheduled for, and asks the ledger how far that
edition is. Fired twice, late or after an outage it ends in "already done" and neither pays nor draws. The confidential
step is the very task of `flows.release`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import FlowRun, State
from prefect.flows import Flow
from prefect.runtime import flow_run as current
from prefect.states import Completed

from flows.ledger.books import Run
from flows.ledger.errors import Held
from flows.on_schedule.claims import Claim, Moment, claim_at, deployment_in, measuring, publication
from flows.on_schedule.duty import CRASHED, FAILED, HELD, MISSED, living
from flows.on_schedule.needs import SETTLED, missed_sentence
from flows.on_schedule.notify import notify
from flows.release import estimate, measure, publish
from flows.terminal import UserError, tell

MEASURE, PUBLISH = "measure-on-schedule", "publish-on-schedule"
TURN = 20.0
"""Seconds that a firing waits for another one that works on the same edition."""
EARLY = timedelta(minutes=1)
"""How long a publication that was started too early waits for its hour."""
PREFIX = "Flow run encountered an exception: "


@dataclass(frozen=True, slots=True)
class Ending:
    """How a firing ended, in a word and a sentence."""

    word: str
    sentence: str


def tell_failure(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Prefect's hook for failed and crashed firings. A crashed one is called in the process that serves."""
    words, reason = flow_run.parameters, (state.message or state.name or "").removeprefix(PREFIX)
    try:
        one = deployment_in(words["deployments"], words["deployment"])
        moment = flow_run.expected_start_time or datetime.now(UTC)
        claim = claim_at(one, moment, by=measuring if flow.name == MEASURE else publication)
        if state.is_crashed():
            reason = f"{claim.name}: its process was lost"
            claim.duty.note(claim.edition, CRASHED)
        elif claim.duty.outcome(claim.edition)[0] != MISSED:
            claim.duty.note(claim.edition, FAILED)
        known = claim.known()
        notify(claim, "failure", _about(claim, reason), run=known.id if known is not None else None, tell=tell)
    except Exception as fault:  # noqa: BLE001 - whoever fails to tell of a failure must not hide it
        tell(f"{words.get('deployment')}: nobody could be told of a failure ({type(fault).__name__})")
        return
    tell(_about(claim, reason))


def _about(claim: Claim, reason: str) -> str:
    kind, _, words = reason.partition(": ")
    plain = words if kind.isidentifier() else reason  # without the class of the error
    said = plain if plain.startswith(claim.name) else f"{claim.name}: {plain}"
    return claim.place.hinted_everywhere(said)


@flow(
    name=MEASURE,
    flow_run_name="{deployment}-measure",
    retries=0,
    persist_result=False,
    log_prints=False,
    on_failure=[tell_failure],
    on_crashed=[tell_failure],
)
def measure_on_schedule(deployments: str, deployment: str) -> State[None]:
    """Measures the edition that is due; publishes it too where its hour has come."""
    return _fired(deployments, deployment, by=measuring)


@flow(
    name=PUBLISH,
    flow_run_name="{deployment}-publish",
    retries=0,
    persist_result=False,
    log_prints=False,
    on_failure=[tell_failure],
    on_crashed=[tell_failure],
)
def publish_on_schedule(deployments: str, deployment: str) -> State[None]:
    """Publishes, at its hour, what was measured before. No record is read."""
    return _fired(deployments, deployment, by=publication)


def _fired(deployments: str, deployment: str, *, by: Moment) -> State[None]:
    one = deployment_in(deployments, deployment)
    claim = claim_at(one, current.scheduled_start_time or datetime.now(UTC), by=by)
    with living(claim.place.private, str(current.id)):
        try:
            with claim.duty.taken(claim.edition, TURN):
                ending = _measured(claim) if by is measuring else _published(claim)
        except TimeoutError:
            ending = Ending("Under way", f"{claim.name}: another firing works on it")
    tell(ending.sentence)
    return Completed(name=ending.word, message=ending.sentence)


def _measured(claim: Claim) -> Ending:
    """From the claim as far as the hour allows."""
    known = claim.known()
    if known is not None and known.state in SETTLED:
        return _already(claim, known.id, known.state)
    due = claim.occurrence.measuring
    if (known is None or known.stored is None) and claim.is_too_late(due, datetime.now(UTC)):
        return _missed(claim)
    _begin(claim)
    run, private = claim.order().run, str(claim.place.private)
    with _holding(claim, run) as held:
        measure(run, private)
        estimate(run, private)
    if held:
        return Ending("Held", held[0])
    claim.duty.forget(claim.edition)
    hour = claim.occurrence.publication
    if datetime.now(UTC) < hour:
        sentence = f"{claim.name}: run {run} is measured and waits for its hour, {hour:%Y-%m-%d %H:%M} UTC"
        return Ending("Measured", sentence)
    return _out(claim, run)


def _published(claim: Claim) -> Ending:
    """What was measured, at its hour."""
    known = claim.known()
    if known is not None and known.state in SETTLED:
        return _already(claim, known.id, known.state)
    if known is None or known.stored is None:
        return _unmeasured(claim, known)
    ahead = claim.occurrence.publication - datetime.now(UTC)
    if ahead > EARLY:
        return Ending("Embargoed", f"{claim.name}: run {known.id} is not published before its hour")
    time.sleep(max(ahead.total_seconds(), 0))
    if claim.is_too_late(claim.occurrence.publication, datetime.now(UTC)):
        return _missed(claim)
    _begin(claim)
    with _holding(claim, known.id) as held:
        estimate(known.id, str(claim.place.private))
    return Ending("Held", held[0]) if held else _out(claim, known.id)


def _unmeasured(claim: Claim, known: Run | None) -> Ending:
    """There is nothing to publish: a fault, unless somebody is waited for."""
    state = f"run {known.id} is {known.state}" if known is not None else "it has no run"
    sentence = f"{claim.name}: there is nothing to publish, because it was not measured: {state}"
    if claim.duty.outcome(claim.edition)[0] == HELD:
        return Ending("Held", f"{sentence} and waits for approval")
    raise UserError(sentence)


def _out(claim: Claim, run: str) -> Ending:
    """Publishes, or says what is waited for."""
    folder = ""
    with _holding(claim, run) as held:
        folder = publish(run, str(claim.place.private), claim.occurrence.publication)
    if held:
        return Ending("Held", held[0])
    claim.duty.forget(claim.edition)
    sentence = f"{claim.name}: run {run} is published in {folder}"
    notify(claim, "publication", sentence, run=run, tell=tell)
    return Ending("Published", sentence)


@contextmanager
def _holding(claim: Claim, run: str) -> Iterator[list[str]]:
    """What a step is held for, told once, instead of an error."""
    held: list[str] = []
    try:
        yield held
    except Held as fault:
        held.append(claim.place.hinted_everywhere(f"{claim.name}: held. {fault}"))
        told_before = claim.duty.outcome(claim.edition)[0] == HELD
        claim.duty.note(claim.edition, HELD)
        if not told_before:
            notify(claim, "approval", held[0], run=run, tell=tell)


def _begin(claim: Claim) -> None:
    """A person who let a missed edition run after all has decided."""
    if claim.duty.outcome(claim.edition)[0] == MISSED:
        claim.duty.forget(claim.edition)


def _already(claim: Claim, run: str, state: str) -> Ending:
    return Ending("Already done", f"{claim.name}: already done, run {run} is {state}; nothing was drawn or paid")


def _missed(claim: Claim) -> Ending:
    """Reported once; the failure of the first firing tells the hooks."""
    sentence = missed_sentence(claim, claim.known())
    if claim.duty.outcome(claim.edition)[0] == MISSED:
        return Ending("Missed", sentence)
    claim.duty.note(claim.edition, MISSED)
    raise UserError(sentence)
