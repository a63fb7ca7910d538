"""The same through the real flow, on a real Prefect server: `margrave run` is killed, and called again."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from flows.orchestration.home import DATABASE
from flows.server import Api
from tests.flows.crashes.command import NEVER
from tests.flows.crashes.inquest import Inquest
from tests.flows.crashes.nursery import ROOT, arguments

KILLS = (
    ("after it is reserved", "after it is charged", "the measurements linked"),
    ("the first random bit", "tables not yet in place", "the release renamed"),
)


def flow_runs(api: Api, run: str) -> list[str]:
    """The names of all flow runs that Prefect knows of a run."""
    with closing(sqlite3.connect(api.home / DATABASE)) as database:
        rows = database.execute("SELECT name FROM flow_run WHERE name LIKE ?", (f"%-{run}",)).fetchall()
    return [str(name) for (name,) in rows]


@pytest.mark.parametrize("points", KILLS)
def test_a_command_that_was_killed_in_the_flow_is_finished_when_it_is_called_again(
    inquest: Inquest, points: tuple[str, ...], prefect_api: Api, flow_environment: dict[str, str], tmp_path: Path
) -> None:
    office = inquest.office
    environment = {**flow_environment, "MARGRAVE_SERVER_HOME": str(tmp_path / "server")}

    def call(point: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tests.flows.crashes.command", str(office.folder), point, *arguments(office)]
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300
        )

    for point in points:
        done = call(point)
        assert done.returncode == -signal.SIGKILL, done.stderr
        inquest.look()
    done = call(NEVER)
    assert done.returncode == 0, done.stderr
    run = inquest.finish()
    reached = len([point for point in points if point != "after it is reserved"])
    names = flow_runs(prefect_api, run.id)
    assert names.count(f"measure-{run.id}") == reached + 1
    assert names.count(f"publish-{run.id}") >= 1
