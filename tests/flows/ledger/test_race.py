"""32 processes at one budget, on both stores: accepted is exactly what fits."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from dataclasses import replace
from fractions import Fraction

from flows.ledger.ledger import Ledger
from tests.flows.ledger.offices import NAME, POLICY, asked, failed, found, go
from tests.flows.ledger.racing import FITTING, PATIENCE, PROCESSES, RUNS_EACH, race


def test_32_processes_spend_one_budget_exactly(url: str) -> None:
    price = asked().price
    cap = price + price / 1000 + FITTING * price / 5
    ledger = found(url, policy=replace(POLICY, cap=cap))
    go(ledger, "shared", asked(1), to="charged")
    ledger.close()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.flows.ledger.racing", "adbc_driver_postgresql.dbapi"])
    start, results = context.Barrier(PROCESSES), context.Queue()
    racers = [context.Process(target=race, args=(url, number, start, results)) for number in range(PROCESSES)]
    for one in racers:
        one.start()
    told = Counter(results.get(timeout=PATIENCE) for _ in range(PROCESSES * (2 + RUNS_EACH)))
    for one in racers:
        one.join(PATIENCE)
    assert [one.exitcode for one in racers] == [0] * PROCESSES
    drawn = Ledger.open(url).books().runs["shared"].attempts
    assert 1 <= drawn <= 3
    assert told == {
        ("claim", "accepted"): 1,
        ("claim", "refused"): PROCESSES - 1,
        ("draw", "accepted"): drawn,
        ("draw", "refused"): PROCESSES - drawn,
        ("pay", "accepted"): FITTING,
        ("pay", "refused"): PROCESSES * RUNS_EACH - FITTING,
    }
    books = Ledger.open(url).books()
    assert (books.left(NAME), books.spent(NAME)) == (Fraction(0), cap - price / 1000)
    assert failed(url) == {}
