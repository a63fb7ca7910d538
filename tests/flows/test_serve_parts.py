"""What serving is made of: names for confidential files, what an office needs now, and who is told."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from flows.cli import main
from flows.datasets import DATASETS, place_in, write_dataset
from flows.deployments.language import Command, Notify, Url
from flows.deployments.prefect_yaml import FLOWS
from flows.on_schedule.claims import Claim, claim_at, measuring
from flows.on_schedule.dates import dates_of
from flows.on_schedule.duty import CRASHED, FAILED, HELD, MISSED, MOST_CRASHES, Duty, living, lost
from flows.on_schedule.needs import GRACE, needs_of
from flows.on_schedule.notify import notify
from flows.pipeline import release_once
from flows.terminal import UserError
from tests.flows.served_offices import HIDDEN, Office, Wanted, found_office, minutes_ago

ROOT = Path(__file__).parents[2]


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """An office with one release, due twenty minutes ago."""
    return found_office(tmp_path, {"daily": Wanted(minutes_ago(20))})


def test_a_dataset_is_kept_in_a_private_file_and_its_places_are_not_said(
    office: Office, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(office.folder)
    words = ["dataset", "survey", f"persons={HIDDEN}/p-{{edition}}.csv", "homes=homes.csv"]
    assert main([*words, "--ledger", "office.ledger"]) == 0
    assert capsys.readouterr().out == "Dataset 'survey' has a file for persons, homes.\n"
    path = office.place.private / DATASETS / "survey.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    found = place_in(office.place.private, "survey", "persons", edition="2026-03")
    assert found == str(office.folder / HIDDEN / "p-2026-03.csv")


def test_a_dataset_that_others_could_read_is_refused(office: Office) -> None:
    path = office.place.private / DATASETS / "register-daily.json"
    path.chmod(0o640)
    with pytest.raises(UserError, match="closed to others; mend it with: chmod 600") as fault:
        place_in(office.place.private, "register-daily", "persons", edition=None)
    assert HIDDEN not in str(fault.value)


@pytest.mark.parametrize(
    ("name", "entity", "says"),
    [
        ("nobody", "persons", "there is no dataset 'nobody' beside this ledger"),
        ("register-daily", "homes", "names no file for 'homes'"),
        ("../daily", "persons", "cannot name a dataset"),
    ],
)
def test_what_a_dataset_lacks_is_told(name: str, entity: str, says: str, office: Office) -> None:
    with pytest.raises(UserError, match=says) as fault:
        place_in(office.place.private, name, entity, edition=None)
    assert HIDDEN not in str(fault.value)


def test_a_dataset_for_each_edition_needs_an_edition(office: Office) -> None:
    write_dataset(office.place.private, "monthly", {"persons": "p-{edition}.csv"})
    with pytest.raises(UserError, match="no edition is named"):
        place_in(office.place.private, "monthly", "persons", edition=None)


def test_a_dataset_belongs_to_a_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MARGRAVE_LEDGER", raising=False)
    assert main(["dataset", "survey", "persons=p.csv"]) == 2
    assert not (tmp_path / "margrave.ledger.private").exists()


def test_a_firing_stands_for_the_edition_of_its_moment_and_a_strange_moment_for_the_last_one(office: Office) -> None:
    one, hour = office.deployment("daily"), minutes_ago(20)
    today, yesterday = hour.date(), hour.date() - timedelta(days=1)
    (exact,) = [each.measuring for each in one.occurrences(today, today + timedelta(days=1))]
    assert claim_at(one, exact, by=measuring).edition == today.isoformat()
    assert claim_at(one, exact + timedelta(minutes=7), by=measuring).edition == today.isoformat()
    assert claim_at(one, exact - timedelta(seconds=1), by=measuring).edition == yesterday.isoformat()


def test_what_is_due_is_wanted_until_it_is_published(office: Office) -> None:
    one, now = office.deployment("daily"), datetime.now(UTC)
    (claim,) = needs_of(one, now).measure
    data = {"persons": str(office.folder / HIDDEN / "daily" / "persons.parquet")}
    release_once(one.spec_path, office.place, data=data, out=office.folder / "releases", edition=claim.edition)
    found = needs_of(one, datetime.now(UTC), grace=timedelta(0), afresh=True)
    assert (found.measure, found.publish, found.missed) == ((), (), ())


def test_prefect_is_given_time_to_fire_by_itself(office: Office) -> None:
    one = office.deployment("daily")
    (moment,) = [claim.occurrence.measuring for claim in needs_of(one, datetime.now(UTC)).measure]
    assert needs_of(one, moment + GRACE - timedelta(seconds=1)).measure == ()
    assert len(needs_of(one, moment + GRACE).measure) == 1
    assert len(needs_of(one, moment, grace=timedelta(0)).measure) == 1


def test_what_failed_is_tried_again_on_a_start_only_and_what_crashed_a_few_times_by_itself(office: Office) -> None:
    one, now = office.deployment("daily"), datetime.now(UTC)
    (claim,) = needs_of(one, now).measure
    claim.duty.note(claim.edition, FAILED)
    assert needs_of(one, now).measure == ()
    assert len(needs_of(one, now, afresh=True).measure) == 1
    for _ in range(MOST_CRASHES - 1):
        claim.duty.note(claim.edition, CRASHED)
    assert len(needs_of(one, now).measure) == 1
    claim.duty.note(claim.edition, CRASHED)
    assert needs_of(one, now).measure == ()
    claim.duty.note(claim.edition, HELD)  # before it had a run: there is nothing to wait for
    assert len(needs_of(one, now).measure) == 1


def test_what_somebody_works_on_is_not_wanted(office: Office) -> None:
    one = office.deployment("daily")
    (claim,) = needs_of(one, datetime.now(UTC)).measure
    with claim.duty.taken(claim.edition, 0):
        assert needs_of(one, datetime.now(UTC), afresh=True).measure == ()


def test_missed_editions_are_those_since_the_deployment_was_first_served(tmp_path: Path) -> None:
    office = found_office(tmp_path, {"new": Wanted(minutes_ago(150), lateness="1 hour")})
    one, now = office.deployment("new"), datetime.now(UTC)
    assert needs_of(one, now).missed == ()  # what fell due before anybody served is nobody's
    later = needs_of(one, now + timedelta(days=3))
    assert len(later.missed) == 3
    for claim, sentence in later.missed:
        assert sentence.startswith(f"new, edition {claim.edition}, was due at ")
        assert f"margrave run new.yaml --edition {claim.edition} --data persons=PATH" in sentence


def test_a_lost_flow_run_is_one_whose_lock_is_free(office: Office) -> None:
    private = office.place.private
    with living(private, "a"):
        assert lost(private) == []
        (private / "serving" / "alive" / "b").touch()
        assert lost(private) == ["b"]
    assert lost(private) == ["b"]


def test_outcomes_are_counted_in_a_row(office: Office) -> None:
    duty = Duty.of(office.place, "daily")
    for word in (CRASHED, CRASHED, MISSED, CRASHED, CRASHED, CRASHED):
        duty.note("2026", word)
    assert duty.outcome("2026") == (CRASHED, 3)
    duty.forget("2026")
    assert duty.outcome("2026") == ("", 0)


def test_the_dates_of_a_deployment_are_those_ahead(office: Office) -> None:
    one, now = office.deployment("daily"), datetime.now(UTC)
    found = dates_of(one, now)
    assert found.measure[0] > now
    assert found.publish == ()  # measured and published at once
    assert found.after(found.measure[3]).measure == found.measure[3:]


class Listener(BaseHTTPRequestHandler):
    """Keeps what is posted; under /elsewhere it sends callers away."""

    heard: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        self.heard.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(302 if self.path == "/elsewhere" else 204)
        self.send_header("Location", "/news")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Silently."""


@pytest.fixture
def listener() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """An address on loopback, and what it heard."""
    heard: list[tuple[str, bytes]] = []
    server = HTTPServer(("127.0.0.1", 0), type("One", (Listener,), {"heard": heard}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", heard
    server.shutdown()
    server.server_close()


def claim_with(office: Office, *hooks: Command | Url) -> Claim:
    """A claim of a deployment with these hooks for a publication."""
    one = replace(office.deployment("daily"), notify=Notify.model_construct(failure=(), approval=(), publication=hooks))
    return Claim(one, one.upcoming(datetime.now(UTC))[0])


def test_an_address_and_a_command_are_told_the_same(
    office: Office, listener: tuple[str, list[tuple[str, bytes]]]
) -> None:
    address, heard = listener
    said: list[str] = []
    claim = claim_with(office, Url(f"{address}/news"), Command((sys.executable, "write_down.py", "told.txt")))
    notify(claim, "publication", "It is out.", run="7f3a", tell=said.append)
    ((path, data),) = heard
    assert (path, said) == ("/news", [])
    assert [json.loads(line) for line in office.told] == [json.loads(data)]
    assert json.loads(data) == {
        "deployment": "daily",
        "run": "7f3a",
        "edition": claim.edition,
        "event": "publication",
        "sentence": "It is out.",
    }


def test_a_hook_that_fails_is_said_and_the_others_are_told(
    office: Office, listener: tuple[str, list[tuple[str, bytes]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.on_schedule.notify.COMMAND_SECONDS", 0.5)
    address, heard = listener
    hooks = (
        Command((sys.executable, "-c", "raise SystemExit(3)")),
        Command(("no-such-program-anywhere",)),
        Command((sys.executable, "-c", "import time; time.sleep(60)")),
        Url("http://127.0.0.1:1/nobody"),
        Url(f"{address}/elsewhere"),
        Url(f"{address}/news"),
    )
    said: list[str] = []
    notify(claim_with(office, *hooks), "publication", "It is out.", run=None, tell=said.append)
    assert [path for path, _ in heard] == ["/elsewhere", "/news"]  # nobody followed to where it was sent
    assert len(said) == 5
    for sentence, words in zip(
        said, ("exit code 3", "No such file", "was ended", "could not be reached", "could not be reached"), strict=True
    ):
        assert words in sentence
        assert sentence.endswith("the release is not concerned")


def test_a_work_pool_gets_a_file_that_names_flows_which_exist(
    office: Office, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["serve", str(office.file), "--work-pool", "pool"]) == 0
    text = capsys.readouterr().out
    assert text.count(f"entrypoint: {FLOWS.measure}\n") == text.count(f"entrypoint: {FLOWS.publish}\n") == 1
    code = (
        "import sys; from prefect import Flow; from prefect.utilities.importtools import import_object\n"
        "sys.exit(not all(isinstance(import_object(name), Flow) for name in sys.argv[1:]))"
    )
    environ = {"PREFECT_HOME": str(tmp_path / "prefect"), "PYTHONPATH": str(ROOT), "PATH": ""}
    found = subprocess.run([sys.executable, "-c", code, FLOWS.measure, FLOWS.publish], check=False, env=environ)
    assert found.returncode == 0


def test_a_file_with_mistakes_or_without_its_ledger_is_not_served(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    office.file.write_text(office.file.read_text().replace("office.ledger", "nowhere.ledger"))
    assert main(["serve", str(office.file)]) == 2
    assert "there is no ledger" in capsys.readouterr().err
    office.file.write_text("margrave: 1\ndeployments: {}\n")
    assert main(["serve", str(office.file)]) == 2
    assert "found no deployment" in capsys.readouterr().err
