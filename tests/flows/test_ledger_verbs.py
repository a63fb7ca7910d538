"""`margrave ledger ...`, as persons of an office use it."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from flows.cli import main
from tests.flows.offices import AREAS, SPEC

Caught = pytest.CaptureFixture[str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a spec, where commands are typed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MARGRAVE_LEDGER", raising=False)
    (tmp_path / "town.yaml").write_text(SPEC)
    (tmp_path / "areas.csv").write_text(AREAS)
    return tmp_path


def founded(*persons: str) -> None:
    """Founds the ledger of these persons in the folder."""
    for person in persons:
        assert main(["ledger", "key", person, "--person", person.title()]) == 0
    named = [word for person in persons for word in ("--founder", f"{person}.pub")]
    assert main(["ledger", "init", "--office", "Town Office", *named]) == 0


def waiting(out: str) -> str:
    """The number under which something waits."""
    return out.split("margrave ledger approve ")[1].split(maxsplit=1)[0]


def test_keys_are_closed_and_never_overwritten(here: Path, capsys: Caught) -> None:
    assert main(["ledger", "key", "ada", "--person", "Ada Lind"]) == 0
    assert stat.S_IMODE((here / "ada").stat().st_mode) == 0o600
    assert json.loads((here / "ada.pub").read_text())["person"] == "Ada Lind"
    assert main(["ledger", "key", "ada", "--person", "Ada Lind"]) == 2
    assert "already" in capsys.readouterr().err


def test_a_ledger_with_approvals_needs_two_founders(here: Path, capsys: Caught) -> None:
    assert main(["ledger", "key", "ada", "--person", "Ada"]) == 0
    assert main(["ledger", "init", "--founder", "ada.pub"]) == 1
    assert "at least two persons" in capsys.readouterr().err
    assert not (here / "margrave.ledger").exists()


def test_a_ledger_is_founded_once_and_closed_to_others(here: Path, capsys: Caught) -> None:
    assert main(["ledger", "init", "--solo"]) == 0
    assert stat.S_IMODE((here / "margrave.ledger").stat().st_mode) == 0o600
    assert main(["ledger", "init", "--solo"]) == 1
    assert "already" in capsys.readouterr().err


def test_a_budget_is_open_when_two_persons_approved_it(here: Path, capsys: Caught) -> None:
    founded("ada", "ben", "cleo")
    grant = ["ledger", "grant", "town.yaml", "--cap", "1", "--to-spend", "1"]
    assert main(grant) == 3
    number = waiting(capsys.readouterr().out)
    assert main(["ledger", "approve", number, "--key", "ada"]) == 0
    assert "account 'town' may spend rho 1 in 'once'" in capsys.readouterr().out  # who signs sees what
    assert main(["ledger", "approve", number, "--key", "ada"]) == 2
    assert "has approved this already" in capsys.readouterr().err
    assert main(grant) == 3
    assert "given so far by Ada" in capsys.readouterr().out
    assert main(["ledger", "approve", number, "--key", "ben"]) == 0
    assert main(grant) == 0
    capsys.readouterr()
    assert main(["ledger", "show", "--json"]) == 0
    (account,) = json.loads(capsys.readouterr().out)["accounts"]
    assert (account["account"], account["cap"], account["left"]) == ("town", "1", "1")
    assert account["approvals"] == {"to_spend": 1, "to_publish": 0}


def test_persons_come_and_go_with_two_approvals(here: Path, capsys: Caught) -> None:
    founded("ada", "ben")
    assert main(["ledger", "key", "cleo", "--person", "Cleo"]) == 0
    capsys.readouterr()
    assert main(["ledger", "enrol", "cleo.pub"]) == 3
    number = waiting(capsys.readouterr().out)
    assert main(["ledger", "approve", number, "--key", "cleo"]) == 2  # not enrolled yet
    for person in ("ada", "ben"):
        assert main(["ledger", "approve", number, "--key", person]) == 0
    assert main(["ledger", "enrol", "cleo.pub"]) == 0
    key = json.loads((here / "ben.pub").read_text())["key"]
    capsys.readouterr()
    assert main(["ledger", "revoke", key[:12]]) == 3
    number = waiting(capsys.readouterr().out)
    for person in ("ada", "cleo"):
        assert main(["ledger", "approve", number, "--key", person]) == 0
    assert main(["ledger", "revoke", key[:12]]) == 0
    capsys.readouterr()
    assert main(["ledger", "show"]) == 0
    assert "Ben     reviewer  True" in capsys.readouterr().out


def test_verification_compares_with_a_published_anchor(here: Path, capsys: Caught) -> None:
    assert main(["ledger", "init", "--solo"]) == 0
    assert main(["ledger", "backup", "old"]) == 0
    assert main(["ledger", "grant", "town.yaml", "--cap", "1"]) == 0
    capsys.readouterr()
    assert main(["ledger", "anchor"]) == 0
    (here / "anchor.json").write_text(capsys.readouterr().out)
    assert main(["ledger", "verify", "--anchor", "anchor.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"]
    assert main(["ledger", "verify", "--ledger", "old", "--anchor", "anchor.json", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found["checks"] if not one["ok"]] == ["anchor 2"]


def test_a_copy_behind_an_anchor_is_used_only_with_two_approvals(here: Path, capsys: Caught) -> None:
    founded("ada", "ben")
    assert main(["ledger", "backup", "old"]) == 0
    assert main(["ledger", "grant", "town.yaml", "--cap", "1"]) == 3
    capsys.readouterr()
    main(["ledger", "anchor"])
    (here / "anchor.json").write_text(capsys.readouterr().out)
    restore = ["ledger", "restore", "old", "--ledger", "new", "--anchor", "anchor.json"]
    assert main(restore) == 1
    assert "entries ahead" in capsys.readouterr().err
    assert not (here / "new").exists()
    assert main([*restore, "--key", "ada", "--key", "ben"]) == 0
    assert main(["ledger", "verify", "--ledger", "new"]) == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["show"], "margrave ledger init"),
        (["show", "--ledger", "ftp://somewhere"], "is no kind of ledger"),
        (["approve", "abcd", "--key", "ada.pub"], "name the private one: --key ada"),
        (["init", "--founder", "missing.pub"], "cannot be read"),
        (["verify"], "margrave ledger init"),
    ],
)
def test_every_mistake_has_a_sentence_that_helps(here: Path, capsys: Caught, words: list[str], says: str) -> None:
    del here
    assert main(["ledger", *words]) == 2
    assert says in capsys.readouterr().err
