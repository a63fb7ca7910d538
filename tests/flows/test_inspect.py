"""`margrave inspect`, as a custodian and as an operator meet it."""

from __future__ import annotations

import io
import json
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.cli import main
from flows.looks import changed_since, read_looks, record_look
from flows.terminal import Stages
from release_specs.load import load_text

SPEC = """
margrave: 1
release: {name: homes, title: Homes and people}
microdata:
  homes:
    key: home
    defaults: {outside: leave_out, missing: leave_out}
    columns: {kind: {codes: [H, F]}}
  people:
    key: id
    in: {homes: home}
    defaults: {outside: leave_out, missing: leave_out}
    columns:
      sex:  {codes: [f, m]}
      pay:  {integer: 0..9000, clip: 0..100}
privacy: {protect: homes, at_most: {people: 2}, neighbours: add-remove, budget: {rho: 1, delta: 1e-9}}
universes: {women: {of: people, where: {sex: f}}}
tables:
  by_sex: {count: people, by: [sex]}
  women:  {count: women}
  homes:  {count: homes, by: [kind]}
impossible: [{sex: f, pay: 50}]
rules: [homes >= by_sex]
"""
HOMES = "home,kind\nA,H\nB,F\nC,?\n"
PEOPLE = "home,id,sex,pay,name\nA,1,f,50,x\nA,2,m,20,x\nA,3,f,999,x\nB,4,zz,no,x\nD,5,f,1,x\nshort\nA,3,f,999,x\n"
Inspect = Callable[..., int]


@pytest.fixture
def inspect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inspect:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.yaml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "homes.csv").write_text(HOMES, encoding="utf-8")
    (tmp_path / "people.csv").write_text(PEOPLE, encoding="utf-8")
    return lambda *more: main(
        ["inspect", "spec.yaml", "--data", "homes=homes.csv", "--data", "people=people.csv", *more]
    )


def test_it_tells_the_operator_where_the_findings_are_and_nothing_else(
    inspect: Inspect, capsys: pytest.CaptureFixture[str]
) -> None:
    assert inspect("--findings", "out") == 0
    told = capsys.readouterr()
    place = "out/findings.md"
    assert told.out == f"The structure of every file holds. Confidential findings, for the custodian alone: {place}\n"
    assert told.err == "reading and counting ...\n"


def test_the_custodian_finds_everything_that_is_wrong(inspect: Inspect, tmp_path: Path) -> None:
    inspect("--findings", "out")
    found = json.loads((tmp_path / "out" / "findings.json").read_text(encoding="utf-8"))
    people = found["entities"]["people"]
    assert (people["rows"], people["invalid_lines"], people["counted"]) == (7, 1, 6)
    assert people["columns"]["sex"]["unknown"] == [["zz", 1]]
    assert people["columns"]["sex"]["states"] == {"valid": 5, "missing or unreadable": 1, "outside the codes": 1}
    assert people["columns"]["pay"]["states"] == {"valid": 5, "missing or unreadable": 2}
    assert people["columns"]["pay"]["unknown"] == [["no", 1]]
    assert people["columns"]["pay"]["beyond_clip"] == 2
    assert people["undeclared"] == ["name"]
    assert people["sizes"] == {"1": 2, "3": 1}
    assert people["without_group_row"] == 1
    assert found["entities"]["homes"]["groups_without_rows"] == 1
    assert found["entities"]["homes"]["columns"]["kind"]["unknown"] == [["?", 1]]
    assert found["universes"] == {"women": 3}
    assert found["dropped_by_cap"] == {"people": 1}
    assert found["impossible"] == [["{'sex': 'f', 'pay': '50'}", 1]]
    assert found["broken_rules"] == [["homes >= by_sex", "whole", 1, 1]]


def test_the_page_is_readable_and_marked(inspect: Inspect, tmp_path: Path) -> None:
    inspect("--findings", "out")
    page = (tmp_path / "out" / "findings.md").read_text(encoding="utf-8")
    assert "CONFIDENTIAL" in page.splitlines()[2]
    assert "| sex | valid 5, missing or unreadable 1, outside the codes 1 |  |" in page
    assert "- The cap leaves out 1 of the 6 people." in page
    assert "1 groups have more than 2 records, the cap." in page


def test_findings_and_the_record_are_closed_to_others(inspect: Inspect, tmp_path: Path) -> None:
    inspect()
    (folder,) = (tmp_path / "confidential").iterdir()
    closed = [tmp_path / "confidential", folder, tmp_path / ".margrave"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in closed] == [0o700] * 3
    files = [*folder.iterdir(), *(tmp_path / ".margrave").iterdir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_a_dry_run_reads_no_record_and_leaves_no_trace(
    inspect: Inspect, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert inspect("--dry-run") == 0
    assert capsys.readouterr().out == "The structure of every file holds. No record was read (--dry-run).\n"
    assert not (tmp_path / ".margrave").exists()
    assert not (tmp_path / "confidential").exists()


def test_a_structural_fault_exits_with_2_and_says_what_to_do(
    inspect: Inspect, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "people.csv").write_text("home,id,sex\nA,1,f\n", encoding="utf-8")
    assert inspect() == 2
    said = "the file of 'people' has no column 'pay'; add it, or mend the spec"
    assert capsys.readouterr().err == f"margrave: microdata refused [column-missing]: {said}. Nothing was charged.\n"
    assert inspect("--json") == 2
    answer = json.loads(capsys.readouterr().out)
    assert answer == {"structure": "refused", "code": "column-missing", "message": said}


def test_what_records_say_changes_neither_exit_code_nor_words(
    inspect: Inspect, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = []
    for people in (PEOPLE, "home,id,sex,pay\n", 'home,id,sex,pay\n"\n,,,\n\x00,\xff,"",9e99\n'):
        (tmp_path / "people.csv").write_text(people, encoding="latin-1")
        told.append((inspect("--findings", "out"), *capsys.readouterr()))
    assert told[0] == told[1] == told[2]


def test_looking_is_recorded_before_the_data_is_opened(inspect: Inspect, tmp_path: Path) -> None:
    inspect("--record", "looks")
    inspect("--record", "looks")
    entries = read_looks(tmp_path / "looks")
    assert [entry["kind"] for entry in entries] == ["inspect", "inspect"]
    assert entries[1]["before"] == entries[0]["hash"]
    assert "people.csv" not in (tmp_path / "looks" / "looks.jsonl").read_text(encoding="utf-8")


def test_a_later_run_can_say_which_parts_changed_after_the_look(tmp_path: Path) -> None:
    loaded = load_text(SPEC, file="spec.yaml", folder=tmp_path)
    entry = record_look(tmp_path / "looks", loaded.spec)
    assert changed_since(entry, loaded.spec) == []
    capped = load_text(SPEC.replace("people: 2", "people: 3"), file="spec.yaml", folder=tmp_path)
    clipped = load_text(SPEC.replace("clip: 0..100", "clip: 0..200"), file="spec.yaml", folder=tmp_path)
    assert changed_since(entry, capped.spec) == ["privacy"]
    assert changed_since(entry, clipped.spec) == ["microdata"]


def test_a_record_of_looks_that_was_changed_is_noticed(tmp_path: Path) -> None:
    loaded = load_text(SPEC, file="spec.yaml", folder=tmp_path)
    for _ in range(3):
        record_look(tmp_path, loaded.spec)
    path = tmp_path / "looks.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[1:]), encoding="utf-8")
    with pytest.raises(ValueError, match="entry 1 does not fit"):
        read_looks(tmp_path)


def test_a_terminal_sees_a_sign_that_moves_while_records_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    with Stages() as stages:
        stages.tell("counting")
        time.sleep(3 * Stages.PACE)
    shown = screen.getvalue()
    assert "\rcounting ...\n" in shown
    assert "\r|" in shown
    assert shown.endswith("\r \r")


@pytest.mark.parametrize("words", [["--data", "people"], ["--memory", "lots"], ["--engine", "abacus"]])
def test_a_slip_on_the_command_line_gets_a_sentence(
    words: list[str], inspect: Inspect, capsys: pytest.CaptureFixture[str]
) -> None:
    assert inspect(*words) == 2
    assert "margrave: argument" in capsys.readouterr().err


def test_an_edition_that_is_needed_and_not_named_is_asked_for(
    inspect: Inspect, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SPEC.replace(
        "    columns:\n      sex:",
        "    only: {year: edition}\n    columns:\n      year: {codes: [2025, 2026]}\n      sex:",
    )
    (tmp_path / "spec.yaml").write_text(text, encoding="utf-8")
    assert inspect() == 2
    assert "no edition is named; add --edition NAME" in capsys.readouterr().err
