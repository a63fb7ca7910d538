"""A disk that is full, read-only or failing stops a release with a clear sentence; nothing is lost or paid twice."""

from __future__ import annotations

import os
import random

import pytest

from flows.stored import ASIDE
from flows.terminal import NOT_SO, WRONG_INPUT
from tests.flows.crashes.disk_faults import FAULTS
from tests.flows.crashes.inquest import Inquest
from tests.flows.crashes.nursery import Ended, Nursery
from tests.flows.crashes.office import Office

MORE = int(os.environ.get("MARGRAVE_CRASHES", "0")) // 8
SQLITES = ("database or disk is full", "disk I/O error")
"""How SQLite says that a file could not grow."""


def is_clear(ended: Ended, why: str) -> bool:
    """Whether a command failed with one sentence that tells what happened, and nothing from inside."""
    last = ended.said.strip().splitlines()[-1]
    told = any(words in last for words in (why, *SQLITES))
    silent = not any(word in ended.said for word in ("Traceback", "internal error", "Errno", "4711"))
    return ended.code in (NOT_SO, WRONG_INPUT) and last.startswith("margrave: ") and told and silent


@pytest.mark.parametrize("fault", list(FAULTS)[:: 1 if MORE else 2])
def test_what_a_disk_refuses_is_said_clearly_and_the_next_call_succeeds(
    nursery: Nursery, office: Office, inquest: Inquest, fault: str
) -> None:
    ended = nursery.release(office, fault=fault, cli=True)
    assert is_clear(ended, FAULTS[fault].why), ended
    inquest.look()
    again = nursery.release(office, cli=True)
    assert again.code == 0, again.said
    inquest.finish()


@pytest.mark.parametrize("seed", range(1 + MORE))
def test_a_disk_that_refuses_twice_does_no_more_harm(
    nursery: Nursery, office: Office, inquest: Inquest, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - to fail the same way again
    for fault in chance.choices(list(FAULTS), k=2):
        nursery.release(office, fault=fault, cli=True)
        inquest.look()
    assert nursery.release(office, cli=True).code == 0
    inquest.finish()


@pytest.mark.parametrize("point", ["the measurements written in part", "the measurements linked"])
def test_a_file_system_without_unnamed_files_leaves_nothing_half_written(
    nursery: Nursery, office: Office, inquest: Inquest, point: str
) -> None:
    assert nursery.release(office, point=point, named=True).killed
    left = list(office.place.private.rglob(ASIDE))
    assert len(left) == 1
    inquest.look()
    assert nursery.release(office, named=True).code == 0
    inquest.finish()
