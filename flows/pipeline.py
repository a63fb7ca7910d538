"""A release without Prefect: the same steps in the same order, for benchmarks, simulation and tests.

    place = Workplace.chosen(ledger="office.ledger", beside=Path("."))
    release = release_once(Path("release.yaml"), place, data={"persons": "persons.parquet"}, out=Path("releases"))

The flows of `flows.release` call the very same steps, each as a task.
"""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from pathlib import Path

from flows.estimating import estimate
from flows.measuring import Tell, measure
from flows.preparing import Order, Persons, order_of, planned, prepare
from flows.publishing import Release, publish
from flows.workplace import Workplace
from tabulation.tabulate import Work, tell_nobody


def release_once(
    spec: Path, place: Workplace, *, data: Mapping[str, str], out: Path, edition: str | None = None
) -> Release:
    """One release, from a written spec to published tables. A second call goes on where the first was interrupted."""
    me = getpass.getuser()
    asked = Order(run="", edition=edition, ledger=place.ledger, out=str(out.resolve()))
    order = prepare(spec, place, asked, data=data, persons=Persons(me, me))
    return finish(place, order)


def finish(place: Workplace, order: Order, *, tell: Tell = tell_nobody) -> Release:
    """Every step after the reservation."""
    measure_run(place, order, tell=tell)
    ledger = place.open_ledger()
    estimate(place, ledger, order, tell=tell)
    return publish(place, ledger, order, tell=tell)


def measure_run(place: Workplace, order: Order, *, tell: Tell) -> None:
    """The confidential step of a run."""
    _, plan = planned(place, order)
    spill = Path(order.spill) if order.spill is not None else None
    work = Work(order.engine, spill, order.memory, order.master)
    measure(place, place.open_ledger(), order.run, plan, work=work, tell=tell)


def order_from(private: str, run: str) -> tuple[Workplace, Order]:
    """The order of a run, from the references that a flow is given."""
    return order_of(Path(private), run)
