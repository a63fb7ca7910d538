"""Misuse of the ledger: none, a wrong one, one that is spent or closed, approvals that expired, strangers."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flows.ledger.ledger import Ledger
from tests.flows.desk import APPROVED, HELD, NOT_SO, OK, STOPPED, WRONG_INPUT, Desk, desk_in
from tests.flows.offices import ACCOUNT, SPEC, office

Made = Callable[..., Desk]
WITH_ACCOUNT = SPEC.replace("delta: 1e-10}}", f"delta: 1e-10}}, {ACCOUNT}}}")
LITTLE = "1/4"


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The desk of one person."""
    return desk_in(tmp_path, capsys, monkeypatch)


@pytest.fixture
def made(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Made:
    """Makes another desk."""
    return lambda **how: desk_in(tmp_path, capsys, monkeypatch, **how)


def test_without_a_ledger_nothing_begins_and_the_hint_founds_one(desk: Desk) -> None:
    Path(desk.ledger).unlink()
    before = set(desk.office.folder.rglob("*"))
    answer = desk.run()
    assert answer.code == WRONG_INPUT
    assert "there is no ledger at" in answer.err
    assert set(desk.office.folder.rglob("*")) == before
    assert desk.margrave(*answer.hint("ledger init")).code == OK
    assert desk.run().code == OK
    assert desk.stands("published", reserved=0, charged=1)


def test_the_ledger_beside_a_spec_is_named_in_the_hint_from_another_folder(desk: Desk) -> None:
    Path(desk.ledger).unlink()
    answer = desk.margrave("run", str(desk.office.spec), *desk.data)
    assert answer.code == WRONG_INPUT
    assert desk.margrave(*answer.hint("ledger init")).code == OK
    assert desk.margrave("run", str(desk.office.spec), *desk.data).code == OK


def _text(path: Path) -> None:
    path.write_text("the minutes of a meeting, and nothing about budgets\n" * 40)


def _empty(path: Path) -> None:
    path.touch()


def _database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE meetings(minutes TEXT)")
    connection.close()


def _newer(path: Path) -> None:
    Ledger.found(str(path), office="A later office", solo=True).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


@pytest.mark.parametrize(
    ("make", "code", "says"),
    [
        (_text, WRONG_INPUT, "is no ledger"),
        (_empty, WRONG_INPUT, "is no ledger"),
        (_database, WRONG_INPUT, "is no ledger"),
        (Path.mkdir, WRONG_INPUT, "is no ledger"),
        (_newer, NOT_SO, "newer version of Margrave"),
    ],
)
def test_what_is_no_ledger_of_this_version_is_left_as_it_is(
    desk: Desk, tmp_path: Path, make: Callable[[Path], None], code: int, says: str
) -> None:
    wrong = tmp_path / "wrong"
    make(wrong)
    before = wrong.read_bytes() if wrong.is_file() else b""
    answer = desk.run(ledger=str(wrong))
    assert (answer.code, says in answer.err) == (code, True), answer
    assert (wrong.read_bytes() if wrong.is_file() else b"") == before
    assert desk.runs() == []
    assert desk.published() == []
    assert desk.run().code == OK  # with the right one


def test_a_server_that_does_not_answer_is_one_sentence_without_the_password(desk: Desk) -> None:
    answer = desk.run(ledger="postgresql://ada:swordfish@127.0.0.1:1/margrave")
    assert answer.code == NOT_SO
    assert "cannot be used" in answer.err
    assert "swordfish" not in answer.said
    assert desk.runs() == []


def test_another_offices_ledger_knows_neither_the_run_nor_the_release(desk: Desk, tmp_path: Path) -> None:
    other = office(tmp_path / "other")
    assert desk.stopped_at("paying").code == STOPPED
    for verb in ("resume", "publish", "review"):
        answer = desk.margrave(verb, desk.only_run().id, "--ledger", other.place.ledger)
        assert (answer.code, "there is no run" in answer.err) == (WRONG_INPUT, True), answer
        assert desk.margrave(*answer.hint("ledger show")).code == OK
    assert desk.run().code == OK
    folder = str(desk.office.folder / "releases" / "town")
    assert desk.margrave("verify", folder, "--ledger", other.place.ledger).code == NOT_SO
    assert desk.margrave("verify", folder, "--ledger", desk.ledger).code == OK
    assert other.ledger().books().runs == {}


def test_an_account_without_a_budget_is_refused_and_the_hint_opens_it(made: Made) -> None:
    desk = made(text=WITH_ACCOUNT)
    answer = desk.run("--edition", "2025")
    assert (answer.code, "has no budget" in answer.err) == (NOT_SO, True), answer
    assert desk.runs() == []
    words = {"SPEC": str(desk.office.spec), "AMOUNT": "1"}
    assert (
        desk.margrave(*(words.get(word, word) for word in answer.hint("ledger grant")), "--edition", "2025").code == OK
    )
    assert desk.run("--edition", "2025").code == OK


def test_an_exhausted_budget_refuses_before_anything_is_reserved_and_a_raised_cap_lets_it_pass(made: Made) -> None:
    desk = made()
    desk.granted("--cap", LITTLE)
    answer = desk.run()
    assert (answer.code, f"has {LITTLE} left of {LITTLE}" in answer.err) == (NOT_SO, True), answer
    assert (desk.runs(), str(desk.left()), desk.notes(), desk.published()) == ([], LITTLE, [], [])
    words = {"SPEC": str(desk.office.spec), "AMOUNT": "1"}
    assert desk.margrave(*(words.get(word, word) for word in answer.hint("ledger grant"))).code == OK
    assert desk.run().code == OK
    assert desk.stands("published", reserved=0, charged=1)


def test_what_another_run_has_reserved_is_free_again_when_it_is_given_up(made: Made) -> None:
    desk = made(text=WITH_ACCOUNT)
    desk.granted("--cap", "1/2", "--edition", "2025")
    assert desk.stopped_at("opening the microdata", "--edition", "2025").code == STOPPED
    answer = desk.run("--edition", "2026")
    assert (answer.code, " reserved" in answer.err) == (NOT_SO, True), answer
    assert len(desk.runs()) == 1
    doctor = desk.margrave("ledger", "doctor", "--ledger", desk.ledger)
    assert desk.margrave(*doctor.hint("ledger release")).code == OK
    assert desk.notes() == []
    assert desk.run("--edition", "2026").code == OK


def test_a_closed_period_refuses_and_another_day_of_closing_lets_it_pass(desk: Desk) -> None:
    desk.granted("--cap", "1", "--closes", "2020-12-31")
    answer = desk.run()
    assert (answer.code, "closed on 2020-12-31" in answer.err) == (NOT_SO, True), answer
    assert (desk.runs(), desk.left()) == ([], 1)
    _open_until(desk, answer.hint("ledger grant"))
    assert desk.run().code == OK


def _open_until(desk: Desk, hint: list[str]) -> None:
    words = {"SPEC": str(desk.office.spec), "DATE": "2099-12-31"}
    assert desk.margrave(*(words.get(word, word) for word in hint)).code == OK


def test_a_period_that_closes_under_a_run_charges_nothing_and_keeps_its_reservation(desk: Desk) -> None:
    desk.granted("--cap", "1")
    assert desk.stopped_at("paying").code == STOPPED
    desk.granted("--cap", "1", "--closes", "2020-12-31")
    answer = desk.run()
    assert (answer.code, "closed on 2020-12-31" in answer.err) == (NOT_SO, True), answer
    assert desk.stands("identified", reserved=1, charged=0)
    assert desk.published() == []
    _open_until(desk, answer.hint("ledger grant"))
    assert desk.run().code == OK
    assert desk.stands("published", reserved=0, charged=1)


def test_an_edition_that_the_account_does_not_have_is_refused(made: Made) -> None:
    desk = made(text=WITH_ACCOUNT)
    desk.granted("--cap", "1", "--edition", "2025")
    before = desk.entries()
    for words in (["--edition", "2031"], []):
        answer = desk.run(*words)
        assert (answer.code, "2025" in answer.said) == (WRONG_INPUT, True), answer  # it says which there are
    assert (desk.entries(), desk.notes()) == (before, [])
    assert desk.run("--edition", "2025").code == OK


def test_an_edition_that_was_invented_buys_no_second_release(desk: Desk) -> None:
    assert desk.run().code == OK
    answer = desk.run("--edition", "2031")
    assert answer.code != OK
    assert desk.stands("published", reserved=0, charged=1)


def test_an_expired_approval_no_longer_counts_and_may_be_given_again(made: Made) -> None:
    desk = made(persons=("Ada", "Ben", "Rita"), text=APPROVED)
    desk.granted("--cap", "1")
    held = desk.run("--as", "Rita")
    assert held.code == HELD
    ledger = desk.office.ledger()
    ledger.approve(held.hint("ledger approve")[2], desk.office.keys["Ada"], days=0)
    expires, until = ledger.books().approvals[-1].expires, time.monotonic() + 10
    while datetime.now(UTC).replace(microsecond=0) <= expires and time.monotonic() < until:
        time.sleep(0.1)
    answer = desk.margrave(*held.hint("resume"))
    assert (answer.code, "expired or revoked: Ada" in answer.out) == (HELD, True), answer
    assert desk.stands("identified", reserved=1, charged=0)
    doctor = desk.margrave("ledger", "doctor", "--ledger", desk.ledger)
    assert "waits for 1 more approval" in doctor.out
    desk.approve(doctor, "Ada")
    assert desk.margrave(*doctor.hint("resume")).code == OK
    assert desk.stands("published", reserved=0, charged=1)


def test_the_doctor_says_who_approved_who_is_missing_and_what_to_type(made: Made) -> None:
    desk = made(persons=("Ada", "Ben", "Cleo", "Rita"), text=APPROVED.replace("to_spend: 1", "to_spend: 2"))
    desk.granted("--cap", "1")
    held = desk.run("--as", "Rita", "--author", "Cleo")
    desk.approve(held, "Ada")
    doctor = desk.margrave("ledger", "doctor", "--ledger", desk.ledger)
    assert "waits for 1 more approval" in doctor.out
    assert "given so far by Ada; Cleo and Rita may not approve it" in doctor.out
    desk.approve(doctor, "Ben")
    doctor = desk.margrave("ledger", "doctor", "--ledger", desk.ledger)
    assert "approved by Ada, Ben" in doctor.out
    assert desk.margrave(*doctor.hint("resume")).code == OK
    assert "No run is unfinished" in desk.margrave("ledger", "doctor", "--ledger", desk.ledger).out


@pytest.mark.parametrize("words", [(), ("--as", "Zoe")])
def test_an_office_of_several_wants_to_know_who_starts_a_run(made: Made, words: tuple[str, ...]) -> None:
    desk = made(persons=("Ada", "Ben", "Rita"), text=APPROVED)
    desk.granted("--cap", "1")
    before = desk.entries()
    answer = desk.run(*words)
    assert (answer.code, "Ada, Ben, Rita" in answer.err) == (WRONG_INPUT, True), answer
    assert (desk.entries(), desk.notes()) == (before, [])
    desk.patch.setenv("MARGRAVE_PERSON", "rita")
    held = desk.run()
    assert held.code == HELD
    assert desk.only_run().asked.started_by == "Rita"
    answer = desk.margrave(*(desk.key("Rita") if word == "KEY" else word for word in held.hint("ledger approve")))
    assert (answer.code, "may not approve it" in answer.err) == (WRONG_INPUT, True)


def test_what_ledger_show_shows_is_explained(desk: Desk) -> None:
    assert desk.run().code == OK
    shown = desk.margrave("ledger", "show", "--ledger", desk.ledger).out
    for word in ("reserved", "identified", "charged", "stored", "published", "released", "rejected", "attempts"):
        assert word in shown.split("cap: ")[1], word
