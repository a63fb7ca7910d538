"""`margrave serve` on a real server and a real schedule, through payment, draw and publication.

One office is served for two minutes. Two releases come a minute apart, and the server is stopped between them. One is
measured before and published at its hour; the process of one is killed; one fell due while nobody served.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flows.cli import main
from flows.on_schedule.duty import Duty
from flows.orchestration.home import DATABASE, PREFECT, read_running
from flows.orchestration.settings import Api
from flows.server import stop_server
from reporting.manifest import read_manifest
from tests.flows.conftest import Furnish
from tests.flows.served_offices import HIDDEN, Office, Wanted, found_office, minute_in, minutes_ago
from tests.flows.test_server import ask

ROOT = Path(__file__).parents[2]
PATIENCE = 200.0
FIRST, SECOND = "first", "second"


@dataclass(frozen=True)
class Seen:
    """What was left when the office was no longer served."""

    office: Office
    home: Path
    hour: datetime
    log: str
    code: int
    refused: int

    def firings(self, name: str) -> list[tuple[str, str, bool]]:
        """The flow runs of a deployment that did not stay ahead."""
        return firings(self.home, name)

    def told(self, name: str) -> list[dict[str, str]]:
        """What the hooks of a deployment were told."""
        return [told for told in map(json.loads, self.office.told) if told["deployment"] == name]


def firings(home: Path, name: str) -> list[tuple[str, str, bool]]:
    """State, time and origin of the flow runs of a deployment that began, earliest first."""
    query = "SELECT state_name, expected_start_time, auto_scheduled FROM flow_run WHERE name = ? ORDER BY start_time"
    with closing(sqlite3.connect(f"file:{home / DATABASE}?mode=ro", uri=True)) as database:
        return [(str(word), str(at)[:16], bool(auto)) for word, at, auto in database.execute(query, (name,))]


def has_ended(home: Path, name: str, word: str) -> bool:
    """Whether a flow run of a deployment ended in a state."""
    return any(found == word for found, _, _ in firings(home, name))


def wait_for(what: str, done: Callable[[], bool], log: Path) -> None:
    """Waits until something is so; what was said so far explains why it is not."""
    until = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < until, f"{what} did not come: {log.read_text()}"
        time.sleep(0.25)


def is_published(office: Office, name: str) -> bool:
    """Whether the ledger knows a published run of a release."""
    return any(run.state == "published" for run in office.runs(name))


def holder_of(folder: Path) -> int | None:
    """The process that has a lock in a folder open."""
    for links in Path("/proc").glob("[0-9]*/fd"):
        try:
            if any(str(link.readlink()).startswith(f"{folder}/") for link in links.iterdir()):
                return int(links.parent.name)
        except OSError:
            continue
    return None


@pytest.fixture
def seen(tmp_path: Path, furnish: Furnish) -> Iterator[Seen]:
    """Two minutes of an office."""
    home, log = tmp_path / "server", tmp_path / "log"
    furnish(home)
    hour = minute_in(40)
    wanted = {
        FIRST: Wanted(hour),
        SECOND: Wanted(hour + timedelta(minutes=1)),
        "early": Wanted(hour + timedelta(minutes=1), lead="1 hour before"),
        "killed": Wanted(minutes_ago(20)),
        "gone": Wanted(minutes_ago(150), lateness="1 hour"),
    }
    office = found_office(tmp_path / "office", wanted)
    Duty.of(office.place, "gone").since(datetime.now(UTC) - timedelta(days=2))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environ |= {"MARGRAVE_SERVER_HOME": str(home), "PYTHONPATH": str(ROOT)}
    with log.open("w") as said:
        command = [sys.executable, "-m", "flows.cli", "serve", str(office.file)]
        served = subprocess.Popen(command, env=environ, stderr=said, stdout=said, cwd=tmp_path)
    try:
        refused = watch(office, home, log)
        served.send_signal(signal.SIGTERM)
        code = served.wait(120)
        yield Seen(office, home, hour, log.read_text(), code, refused)
    finally:
        served.kill()
        served.wait()
        stop_server(home)


def watch(office: Office, home: Path, log: Path) -> int:
    """Kills, stops and doubles what is to be killed, stopped and doubled; the exit code of a second server."""
    wait_for("the run to be killed", lambda: bool(office.runs("killed")), log)
    victim = holder_of(office.place.private.resolve() / "serving" / "killed")
    assert victim is not None
    os.kill(victim, signal.SIGKILL)
    wait_for("the beginning", lambda: "Serving 5 deployments" in log.read_text(), log)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MARGRAVE_SERVER_HOME", str(home))
        patch.delenv("PREFECT_API_URL", raising=False)
        refused = main(["serve", str(office.file)])
    wait_for("the first release", lambda: has_ended(home, f"{FIRST}-measure", "Published"), log)
    stop_server(home)
    wait_for("the other releases", lambda: all(is_published(office, name) for name in (SECOND, "early", "killed")), log)
    fire_again(office, home)
    wait_for("the answer to the second firing", lambda: has_ended(home, f"{FIRST}-measure", "Already done"), log)
    wait_for("the end of its process", lambda: not fired_processes(home), log)
    return refused


def fired_processes(home: Path) -> list[int]:
    """The processes in which flows run on a server: to end one that has just finished would be told as cancelled."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command, environ = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
        except OSError:
            continue
        if b"prefect.engine" in command and str(home).encode() in environ:
            found.append(int(process.name))
    return found


def fire_again(office: Office, home: Path) -> None:
    """Has Prefect fire the first release once more, for the same moment."""
    running = read_running(home)
    assert running is not None
    api = Api(running.url, running.auth, started=False, home=home)
    _, found = ask(api, "deployments/filter", auth=running.auth)
    (deployment,) = [one["id"] for one in found if one["name"] == f"{FIRST}-measure"]
    hour = office.deployment(FIRST).upcoming(datetime.now(UTC) - timedelta(hours=1))[0]
    state = {"type": "SCHEDULED", "state_details": {"scheduled_time": hour.measuring.isoformat()}}
    path, statuses = f"deployments/{deployment}/create_flow_run", []
    while 201 not in statuses and len(statuses) < 20:  # a busy database answers 503
        statuses.append(ask(api, path, auth=running.auth, body={"state": state})[0])
        time.sleep(1)
    assert statuses[-1] == 201


def prefect_fires_at_the_listed_moment_and_a_release_comes_of_it(seen: Seen) -> None:
    (run,) = seen.office.runs(FIRST)
    assert (run.state, run.attempts, len(run.charged)) == ("published", 1, 1)
    assert seen.firings(f"{FIRST}-measure")[0] == ("Published", f"{seen.hour:%Y-%m-%d %H:%M}", True)
    folder = seen.office.folder / "releases" / f"{FIRST}-{run.asked.edition}"
    assert main(["verify", str(folder), "--ledger", seen.office.place.ledger]) == 0


def a_second_firing_for_the_same_moment_is_already_done(seen: Seen) -> None:
    words = [word for word, _, _ in seen.firings(f"{FIRST}-measure")]
    assert words[0] == "Published"
    assert set(words[1:]) == {"Already done"}
    assert [told["event"] for told in seen.told(FIRST)] == ["publication"]


def a_server_that_restarts_between_two_firings_loses_none_and_doubles_none(seen: Seen) -> None:
    assert "The server or its runner is gone" in seen.log
    (run,) = seen.office.runs(SECOND)
    assert (run.state, run.attempts, len(run.charged)) == ("published", 1, 1)
    assert [told["event"] for told in seen.told(SECOND)] == ["publication"]


def what_is_measured_before_is_published_at_its_hour_by_a_flow_of_its_own(seen: Seen) -> None:
    (run,) = seen.office.runs("early")
    assert seen.firings("early-measure")[0][0] == "Measured"
    hour = seen.hour + timedelta(minutes=1)
    assert "Published" in [word for word, at, _ in seen.firings("early-publish") if at == f"{hour:%Y-%m-%d %H:%M}"]
    manifest = read_manifest(seen.office.folder / "releases" / f"early-{run.asked.edition}")
    assert datetime.fromisoformat(manifest.published) >= hour
    assert (run.attempts, len(run.charged)) == (1, 1)


def a_run_whose_process_is_killed_is_told_and_finished_as_the_same_run(seen: Seen) -> None:
    (run,) = seen.office.runs("killed")
    assert (run.state, len(run.charged)) == ("published", 1)
    assert ("Crashed", f"{minute_of(seen, 'killed'):%Y-%m-%d %H:%M}", False) in seen.firings("killed-measure")
    assert [told["event"] for told in seen.told("killed")] == ["failure", "publication"]
    assert seen.told("killed")[0] == {
        "deployment": "killed",
        "run": run.id,
        "edition": run.asked.edition,
        "event": "failure",
        "sentence": f"killed, edition {run.asked.edition}: its process was lost",
    }


def minute_of(seen: Seen, name: str) -> datetime:
    """When the edition of a release was due."""
    (run,) = seen.office.runs(name)
    found = seen.office.deployment(name).occurrences(
        seen.hour.date() - timedelta(days=2), seen.hour.date() + timedelta(days=2)
    )
    return next(one.measuring for one in found if one.claim == run.asked.edition)


def what_fell_due_while_nobody_served_is_reported_and_not_run(seen: Seen) -> None:
    assert len(re.findall(r"gone, edition \S+, was due at .* and is missed", seen.log)) >= 2
    assert {told["event"] for told in seen.told("gone")} == {"failure"}
    assert len({told["edition"] for told in seen.told("gone")}) == len(seen.told("gone")) >= 2
    assert seen.office.runs("gone") == []


def the_places_of_the_confidential_files_are_known_to_nobody(seen: Seen) -> None:
    kept = b"".join(path.read_bytes() for path in (seen.home / PREFECT).rglob("*") if path.is_file())
    assert str(seen.office.file).encode() in kept  # what is looked for would be found
    assert HIDDEN.encode() not in kept
    assert HIDDEN not in seen.log + "".join(seen.office.told)
    assert HIDDEN.encode() not in Path(seen.office.place.ledger).read_bytes()


def a_file_is_served_by_one_process(seen: Seen) -> None:
    assert seen.refused == 2


def it_ends_with_a_sentence_when_it_is_told_to(seen: Seen) -> None:
    assert seen.code == 0
    assert seen.log.splitlines()[-1].startswith("Stopped serving")
    assert "Traceback" not in seen.log


PROMISES = (
    prefect_fires_at_the_listed_moment_and_a_release_comes_of_it,
    a_second_firing_for_the_same_moment_is_already_done,
    a_server_that_restarts_between_two_firings_loses_none_and_doubles_none,
    what_is_measured_before_is_published_at_its_hour_by_a_flow_of_its_own,
    a_run_whose_process_is_killed_is_told_and_finished_as_the_same_run,
    what_fell_due_while_nobody_served_is_reported_and_not_run,
    the_places_of_the_confidential_files_are_known_to_nobody,
    a_file_is_served_by_one_process,
    it_ends_with_a_sentence_when_it_is_told_to,
)


def test_an_office_is_served_on_schedule_as_promised(seen: Seen) -> None:
    """One test for all of it: two minutes of an office are not to be had for each."""
    for promise in PROMISES:
        promise(seen)
