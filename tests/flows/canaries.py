"""Faults that quote a record, in real flows on a real server; `test_guard` starts this and looks for what was quoted.

`python canaries.py bare` or `python canaries.py guarded`, with a word on standard input: each kind of fault quotes that
word and its own name. In the guarded run every function that sees the word is guarded, and the process is sealed. The
last flow is bare in both: once its sentinel is in the database, everything before it is there too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from flows.guard import guarded, seal
from tests.flows.faults import ENDING, KINDS, SENTINEL, TASKS, Fault, quoted, value_error

BARE: Callable[[Fault], Fault] = lambda fault: fault  # noqa: E731 - the other half of a pair
WRAPS = {"bare": BARE, "guarded": guarded("E-CANARY")}


def run_all(word: str, step: Callable[[Fault], Fault]) -> None:
    """Every kind of fault, in as few flows as will do; the last is caught by nobody."""
    from prefect import flow, task

    words = {kind: quoted(word, kind) for kind in (*KINDS, SENTINEL)}

    @flow(persist_result=True)
    def survived() -> None:
        for fault in TASKS:
            show(partial(task(step(fault), name=fault.__name__), words[fault.__name__]))
        task(step(value_error), persist_result=True)(words["value_error"], return_state=True)
        task(step(value_error), retries=1)(words["repeated"], return_state=True)
        task(step(value_error)).submit(words["submitted"]).wait()
        inner(return_state=True)

    @flow(persist_result=True)
    def inner() -> None:
        task(step(value_error))(words["subflow"])

    def ended_by(fault: Fault) -> Callable[[], None]:
        def ended() -> None:
            task(step(fault))(words[fault.__name__])

        return flow(ended)

    def body() -> None:
        step(value_error)(words["flow_body"])

    def last() -> None:
        task(value_error)(words[SENTINEL])

    for run in (survived, *map(ended_by, ENDING), flow(body), flow(last)):
        show(run)
    step(value_error)(words["uncaught"])


def show(run: Callable[[], Any]) -> None:
    """Runs a flow or a task and shows what comes out of it, as the interpreter would at the end."""
    try:
        run()
    except BaseException as fault:  # noqa: BLE001 - Ctrl-C, too, is one of the faults
        sys.excepthook(type(fault), fault, fault.__traceback__)


if __name__ == "__main__":
    if sys.argv[1] == "guarded":
        import prefect  # noqa: F401 - sealed after Prefect has set up its log, as in a flow's process

        seal()
    run_all(sys.stdin.read(), WRAPS[sys.argv[1]])
