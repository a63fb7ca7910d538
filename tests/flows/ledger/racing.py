"""One of many processes that want the same budget at the same moment."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier

from flows.ledger.errors import LedgerError, Refused
from flows.ledger.ledger import Ledger
from tests.flows.ledger.offices import IDENTITY, Clock, asked, charges

PROCESSES, RUNS_EACH, FITTING = 32, 2, 20
PATIENCE = 120
"""Seconds after which a process that still waits for the others gives up."""


def race(url: str, number: int, start: Barrier, results: Queue[tuple[str, str]]) -> None:
    """Claims one edition, draws for one run and pays for its own runs; reports what was accepted and refused."""
    ledger = Ledger.open(url, now=Clock())
    start.wait(PATIENCE)
    _tell(results, "claim", lambda: ledger.reserve(f"claim-{number}", asked(0, price=asked().price / 1000), IDENTITY))
    _tell(results, "draw", lambda: ledger.attempt("shared"))
    for turn in range(RUNS_EACH):
        _tell(results, "pay", lambda turn=turn: _pay(ledger, number * RUNS_EACH + turn))
    ledger.close()


def _pay(ledger: Ledger, number: int) -> None:
    what = asked(number + 100, price=asked().price / 5)
    ledger.reserve(f"run-{number}", what, IDENTITY)
    ledger.identify(f"run-{number}", b"microdata")
    ledger.charge(f"run-{number}", charges(what.price), price=what.price)


def _tell(results: Queue[tuple[str, str]], what: str, act: Callable[[], object]) -> None:
    try:
        act()
    except Refused:
        results.put((what, "refused"))
    except LedgerError as fault:
        results.put((what, str(fault)))
    else:
        results.put((what, "accepted"))
