"""What a firing does, on the shared server: each edition once, whatever fires twice; held, failed and lost ones."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from flows.datasets import write_dataset
from flows.ledger.books import Identity, Policy
from flows.ledger.errors import Held
from flows.ledger.keys import new_key, public_of
from flows.ledger.ledger import Ledger
from flows.on_schedule.duty import FAILED, lost
from flows.on_schedule.needs import needs_of
from flows.orchestration.home import DATABASE
from flows.server import Api
from tests.flows.served_offices import HIDDEN, Office, Wanted, found_office, minutes_ago

SCRIPT = Path(__file__).with_name("serve_flows.py")
ROOT = Path(__file__).parents[2]


class Hand:
    """A process that fires flows of ours when it is asked to."""

    def __init__(self, environ: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("w") as complaints:
            self.fired = subprocess.Popen(
                [sys.executable, str(SCRIPT)],
                env=environ | {"PYTHONPATH": str(ROOT), "MARGRAVE_PERSON": "release-desk"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
            )

    def ask(self, office: Office, name: str, deed: str) -> None:
        """Has something done."""
        self.fired.stdin.write(json.dumps([str(office.file), name, deed]) + "\n")
        self.fired.stdin.flush()

    def answer(self) -> tuple[str, str]:
        """How it ended: in a word, with a sentence."""
        said = self.fired.stdout.readline()
        assert said, self.log.read_text()
        assert HIDDEN not in said + self.log.read_text()
        word, sentence = json.loads(said)
        return word, sentence

    def fire(self, office: Office, name: str, deed: str = "measure") -> tuple[str, str]:
        """Has something done and waits for it."""
        self.ask(office, name, deed)
        return self.answer()

    def end(self) -> None:
        """It is needed no more."""
        self.fired.kill()
        self.fired.communicate()


@pytest.fixture(scope="module")
def hand(flow_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hand]:
    """One that all these tests share."""
    one = Hand(flow_environment, tmp_path_factory.mktemp("hand") / "log")
    yield one
    one.end()


@pytest.fixture
def other_hand(flow_environment: dict[str, str], tmp_path: Path) -> Iterator[Hand]:
    """One of its own."""
    one = Hand(flow_environment, tmp_path / "log")
    yield one
    one.end()


def everything_in(api: Api) -> bytes:
    """Every byte that the server keeps, its journals included; logs arrive a moment later."""
    time.sleep(3)
    return b"".join(path.read_bytes() for path in (api.home / DATABASE).parent.rglob("*") if path.is_file())


def state_of(api: Api, flow_run: str) -> str:
    """The state of a flow run, by the server's database."""
    with closing(sqlite3.connect(f"file:{api.home / DATABASE}?mode=ro", uri=True)) as database:
        (found,) = database.execute("SELECT state_name FROM flow_run WHERE id = ?", (flow_run,)).fetchone()
    return str(found)


def events(office: Office) -> list[str]:
    """The events that hooks were told of."""
    return [json.loads(line)["event"] for line in office.told]


def test_the_first_firing_publishes_and_a_second_one_pays_and_draws_nothing(tmp_path: Path, hand: Hand) -> None:
    hour = minutes_ago(5)
    office = found_office(tmp_path, {"twice": Wanted(hour)})
    first, second = hand.fire(office, "twice"), hand.fire(office, "twice")
    assert (first[0], second[0]) == ("Published", "Already done")
    assert "nothing was drawn or paid" in second[1]
    (run,) = office.runs("twice")
    assert (run.state, run.attempts, len(run.charged)) == ("published", 1, 1)
    assert run.asked.edition == hour.date().isoformat()  # the spec names no edition: the nominal day is it
    assert [json.loads(line) for line in office.told] == [
        {
            "deployment": "twice",
            "run": run.id,
            "edition": run.asked.edition,
            "event": "publication",
            "sentence": first[1],
        }
    ]
    assert (tmp_path / "releases" / f"twice-{run.asked.edition}" / "manifest.json").exists()


def test_two_firings_at_once_are_one_release(tmp_path: Path, hand: Hand, other_hand: Hand) -> None:
    office = found_office(tmp_path, {"double": Wanted(minutes_ago(5))})
    for one in (hand, other_hand):
        one.ask(office, "double", "measure")
    words = sorted(one.answer()[0] for one in (hand, other_hand))
    assert words in (["Already done", "Published"], ["Published", "Under way"])
    (run,) = office.runs("double")
    assert (run.attempts, len(run.charged)) == (1, 1)


def test_a_release_without_its_approval_is_held_told_once_and_published_after_it(tmp_path: Path, hand: Hand) -> None:
    office, keys = office_of_two(tmp_path)
    assert [hand.fire(office, "held", deed)[0] for deed in ("measure", "publish")] == ["Held", "Held"]
    (told,) = map(json.loads, office.told)
    (run,) = office.runs("held")
    assert (told["event"], told["run"], run.state) == ("approval", run.id, "stored")
    assert "needs 1 approval" in told["sentence"]
    one = office.deployment("held")
    assert run.asked.involved == ("Ben", "release-desk")
    approve(office, keys["Ben"])  # who wrote the spec
    assert needs_of(one, datetime.now(UTC)).publish == ()
    approve(office, keys["Ada"])
    (wanted,) = needs_of(one, datetime.now(UTC)).publish
    assert wanted.edition == run.asked.edition
    assert hand.fire(office, "held", "publish")[0] == "Published"
    assert events(office) == ["approval", "publication"]
    assert wanted.duty.outcome(wanted.edition)[0] == ""


def office_of_two(folder: Path) -> tuple[Office, dict[str, Ed25519PrivateKey]]:
    """An office whose releases one of two persons must approve, and their keys; Ben wrote the spec."""
    hour = minutes_ago(5)
    wanted = Wanted(hour, lead="1 hour before", approvals="{to_publish: 1}")
    office = found_office(folder, {"held": wanted}, solo=False)
    office.file.write_text(office.file.read_text().replace("    data:", "    author: Ben\n    data:"))
    keys = {person: new_key() for person in ("Ada", "Ben")}
    founders = [{"person": name, "role": "reviewer", "key": public_of(key)} for name, key in keys.items()]
    ledger = Ledger.found(office.place.ledger, office="two persons", founders=founders)
    budget, identity = office.deployment("held").spec.privacy.budget, Identity("persons", "replace")
    policy = Policy("held", hour.date().isoformat(), "rho", budget.rho, budget.delta, identity, "", 0, 0)
    with pytest.raises(Held) as held:
        ledger.grant(policy)
    for key in keys.values():
        ledger.approve(held.value.pending.subject, key)
    ledger.grant(policy)
    return office, keys


def approve(office: Office, key: Ed25519PrivateKey) -> None:
    """Approves the publication that waits."""
    ledger = office.place.open_ledger()
    (subject,) = [subject for subject, (act, _) in ledger.books().proposals.items() if act.endswith("to publish")]
    ledger.approve(subject, key)


def test_a_release_whose_files_are_not_there_fails_and_says_so_without_their_place(
    tmp_path: Path, hand: Hand, prefect_api: Api
) -> None:
    office = found_office(tmp_path, {"absent": Wanted(minutes_ago(5))})
    write_dataset(office.place.private, "register-absent", {"persons": str(tmp_path / HIDDEN / "nowhere.parquet")})
    word, sentence = hand.fire(office, "absent")
    assert word == "Failed"
    assert "there is no file for 'persons' at the place given" in sentence
    (run,) = office.runs("absent")
    assert (run.state, run.charged) == ("released", [])
    (told,) = map(json.loads, office.told)
    assert (told["event"], told["edition"]) == ("failure", run.asked.edition)
    assert told["sentence"].startswith(f"absent, edition {run.asked.edition}: there is no file for 'persons'")
    (claim,) = needs_of(office.deployment("absent"), datetime.now(UTC), afresh=True).measure
    assert claim.duty.outcome(claim.edition)[0] == FAILED
    assert needs_of(claim.one, datetime.now(UTC)).measure == ()  # not by itself
    kept = everything_in(prefect_api)
    assert str(office.file).encode() in kept  # what is looked for would be found
    assert HIDDEN.encode() not in kept


def test_an_edition_that_is_too_late_is_told_as_missed_once_and_costs_nothing(tmp_path: Path, hand: Hand) -> None:
    office = found_office(tmp_path, {"late": Wanted(minutes_ago(150), lateness="1 hour")})
    first, second = hand.fire(office, "late"), hand.fire(office, "late")
    assert (first[0], second[0]) == ("Failed", "Missed")
    assert "is missed: nothing was measured or charged" in first[1]
    assert "margrave run late.yaml --edition" in first[1]
    assert events(office) == ["failure"]
    assert office.runs("late") == []


def test_a_killed_run_is_swept_and_the_next_firing_goes_on_with_it(
    tmp_path: Path, hand: Hand, other_hand: Hand, prefect_api: Api
) -> None:
    office = found_office(tmp_path, {"killed": Wanted(minutes_ago(5))})
    other_hand.ask(office, "killed", "measure")
    until = time.monotonic() + 120
    while not office.runs("killed") and time.monotonic() < until:
        time.sleep(0.1)
    other_hand.end()
    (before,) = office.runs("killed")
    assert before.state != "published"
    (flow_run,) = lost(office.place.private)
    assert state_of(prefect_api, flow_run) == "Running"
    found = needs_of(office.deployment("killed"), datetime.now(UTC))
    assert [claim.edition for claim in (*found.measure, *found.publish)] == [before.asked.edition]
    hand.fire(office, "killed", "sweep")
    assert state_of(prefect_api, flow_run) == "Crashed"
    assert lost(office.place.private) == []
    assert hand.fire(office, "killed")[0] == "Published"
    (run,) = office.runs("killed")
    assert (run.id, len(run.charged)) == (before.id, 1)
    assert run.attempts <= before.attempts + 1


def test_prefect_is_given_the_dates_and_those_of_a_deployment_that_left_the_file_are_taken_out(
    tmp_path: Path, hand: Hand
) -> None:
    hour = minutes_ago(5)
    office = found_office(tmp_path, {"stays": Wanted(hour), "leaves": Wanted(hour, lead="1 hour before")})
    found = json.loads(hand.fire(office, "stays", "register")[1])
    assert {name: len(schedules) for name, schedules in found.items()} == {
        "stays-measure": 1, "stays-publish": 0, "leaves-measure": 1, "leaves-publish": 1,
    }  # fmt: skip
    (schedule,) = found["stays-measure"]
    tomorrow = hour + timedelta(days=1)
    assert schedule.startswith(f"UTC DTSTART:{tomorrow:%Y%m%dT%H%M%S}Z\nRDATE:{tomorrow:%Y%m%dT%H%M%S}Z,")
    office.file.write_text(office.file.read_text().partition("  leaves:")[0])
    assert sorted(json.loads(hand.fire(office, "stays", "register")[1])) == ["stays-measure", "stays-publish"]
