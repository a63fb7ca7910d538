"""The command line with its steps taken in place, without Prefect: the same steps in the same order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from flows.conducting import WHOLE
from flows.estimating import estimate
from flows.job import Job
from flows.last_words import Ending
from flows.ledger.errors import Embargoed, Held
from flows.measuring import measure
from flows.publishing import publish
from flows.terminal import Stages


def take_steps(job: Job, api: Any, flows: Sequence[str], *, as_json: bool) -> Ending:
    """What the flows of `flows.release` do, one after the other."""
    del api, as_json
    with Stages() as stages:
        try:
            if flows == WHOLE:
                measure(job, tell=stages.tell)
                estimate(job, tell=stages.tell)
            return Ending(str(publish(job, tell=stages.tell).folder))
        except (Held, Embargoed) as held:
            return Ending(None, str(held))


def no_server(wait: Callable[[], None] = lambda: None) -> SimpleNamespace:
    """In the place of a server that is being started; `wait` is called where somebody waits for it."""
    return SimpleNamespace(wait=lambda tell: wait())
