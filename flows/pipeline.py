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
from flows.job import Job
from flows.measuring import Tell, measure
from flows.preparing import Order, Persons, prepare
from flows.publishing import Release, publish, published
from flows.workplace import Workplace
from tabulation.tabulate import tell_nobody


def release_once(
    spec: Path, place: Workplace, *, data: Mapping[str, str], out: Path, edition: str | None = None
) -> Release:
    """One release, from a written spec to published tables. A second call goes on where the first was interrupted."""
    me = getpass.getuser()
    asked = Order(run="", edition=edition, ledger=place.ledger, out=str(out.resolve()))
    return finish(Job(place, prepare(spec, place, asked, data=data, persons=Persons(me, me))))


def finish(job: Job, *, tell: Tell = tell_nobody) -> Release:
    """Every step after the reservation; none where the release was published already."""
    done = published(job)
    if done is not None:
        return done
    measure(job, tell=tell)
    estimate(job, tell=tell)
    return publish(job, tell=tell)
