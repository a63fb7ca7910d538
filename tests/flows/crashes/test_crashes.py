"""Killed at any point, a release is paid once, drawn once and published whole when the same command is called again."""

from __future__ import annotations

import os
import random
from itertools import cycle, islice

import pytest

from flows.job import Job
from flows.preparing import order_of
from flows.reissuing import reissue
from flows.stored import FILE
from flows.workplace import DATASET
from tabulation.tabulate import tell_nobody
from tests.flows.crashes.inquest import Inquest
from tests.flows.crashes.nursery import REFUSED, Nursery
from tests.flows.crashes.office import Office
from tests.flows.crashes.points import EARLY, LATE, POINTS

PAIRS = list(islice(zip(cycle(EARLY), cycle(LATE), strict=False), max(len(EARLY), len(LATE))))
"""Each named point once, at least: first one before the measurements are stored, then one after."""
MORE = int(os.environ.get("MARGRAVE_CRASHES", "0"))
"""Kills beyond those of every test run."""
ANYWHERE = 4 + MORE // 3
"""Releases that are killed twice, by chance, where a file is touched; half as many are killed twice at any moment."""
TOUCHES, SECONDS = 730, 1.0
"""About how often a release touches a file, and how long it takes in a process that is warm."""


def test_every_one_of_the_named_points_has_its_kill() -> None:
    assert {point for pair in PAIRS for point in pair} == set(POINTS)
    assert len(POINTS) > 60


@pytest.mark.parametrize(("early", "late"), PAIRS)
def test_a_release_that_was_killed_at_named_points_is_finished_by_the_same_command(
    nursery: Nursery, office: Office, inquest: Inquest, early: str, late: str
) -> None:
    assert nursery.release(office, point=early).killed
    inquest.look()
    assert inquest.seen == {}
    assert nursery.release(office, point=late).killed
    inquest.look()
    drawn, stored = inquest.draws, dict(inquest.seen)
    assert len(stored) == 1
    ended = nursery.release(office)
    assert ended.code == 0, ended.said
    inquest.finish()
    assert (inquest.draws, inquest.seen) == (drawn, stored)


@pytest.mark.parametrize("seed", range(ANYWHERE))
def test_a_release_that_was_killed_twice_where_a_file_is_touched_is_finished(
    nursery: Nursery, office: Office, inquest: Inquest, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - to be killed the same way again
    for _ in range(2):
        nursery.release(office, point="files", nth=chance.randint(1, TOUCHES))
        inquest.look()
    assert nursery.release(office).code == 0
    inquest.finish()


@pytest.mark.parametrize("seed", range(ANYWHERE // 2))
def test_a_release_that_was_killed_twice_at_any_moment_is_finished(
    nursery: Nursery, office: Office, inquest: Inquest, seed: int
) -> None:
    chance = random.Random(-seed)  # noqa: S311 - likewise
    for _ in range(2):
        nursery.release(office, delay=chance.uniform(0, SECONDS))
        inquest.look()
    assert nursery.release(office).code == 0
    inquest.finish()


def test_two_processes_do_not_work_on_one_run(nursery: Nursery, office: Office, inquest: Inquest) -> None:
    assert nursery.release(office, point="after it is charged").killed
    run = office.only_run().id
    with office.place.alone(run):
        busy = nursery.release(office)
    assert (busy.code, inquest.draws) == (REFUSED, 0)
    assert f"another process is at work on run {run}" in busy.said
    assert nursery.release(office).code == 0
    inquest.finish()


def test_a_spec_that_was_being_exchanged_when_a_reissue_was_killed_is_found_again(
    nursery: Nursery, office: Office, inquest: Inquest
) -> None:
    assert nursery.release(office).code == 0
    job = Job(*order_of(office.place.private, inquest.finish().id))
    aside = job.folder / ".exchange"
    aside.mkdir()
    job.spec.rename(aside / "before")
    made = reissue(job, reason="a label was wrong", spec=None, tell=tell_nobody)
    assert made.version == 2
    assert job.spec.exists()


@pytest.mark.parametrize("harm", ["another draw", "other measurements", "a leftover", "a half release"])
def test_the_inquest_would_notice(nursery: Nursery, office: Office, inquest: Inquest, harm: str) -> None:
    assert nursery.release(office).code == 0
    inquest.look()
    (folder,), (release,) = (office.place.private / "runs").iterdir(), office.out.iterdir()
    if harm == "another draw":
        office.draws.write_text("draw\n" * 2)
    elif harm == "other measurements":
        (folder / FILE).write_bytes((folder / FILE).read_bytes()[:-1] + b"!")
    elif harm == "a leftover":
        (folder / DATASET).touch()
    else:
        next((release / "tables").iterdir()).unlink()
    with pytest.raises(AssertionError):
        inquest.finish()


def test_a_release_that_is_finished_is_not_made_again(nursery: Nursery, office: Office, inquest: Inquest) -> None:
    for _ in range(3):
        assert nursery.release(office).code == 0
        inquest.look()
    assert inquest.finish().attempts == 1
