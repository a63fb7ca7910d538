"""The `margrave` command, as a person and as a script meet it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flows import authoring, cli
from flows.cli import main

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "release_specs" / "examples"
VERBS = (
    "check", "convert", "explain", "init", "inspect", "ledger", "publish", "reissue", "replay", "resume", "review",
    "run", "schema", "server", "synthesize", "verify",
)  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_teaches_with_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([verb, "--help"])
    assert caught.value.code == 0
    assert f"example:  margrave {verb}" in capsys.readouterr().out


def test_margrave_alone_lists_its_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert all(verb in shown for verb in VERBS)


def test_a_misspelt_verb_gets_a_near_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chek", "x"]) == 2
    assert "did you mean 'check'?" in capsys.readouterr().err


def test_a_good_spec_exits_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(EXAMPLES / "acs.yaml")]) == 0
    assert "ok, 0 warnings: " in capsys.readouterr().out


def test_check_lists_the_tables_that_will_agree(capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", str(EXAMPLES / "redistricting_2020.yaml")])
    assert "race, hispanic_by_race" in capsys.readouterr().out


def test_a_bad_spec_exits_with_2_and_points_to_explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("margrave: 7\n", encoding="utf-8")
    assert main(["check", str(path)]) == 2
    shown = capsys.readouterr().out
    assert f"{path}:1:11: error[unknown-version]: margrave: " in shown
    assert "'margrave explain unknown-version' tells more" in shown
    assert shown.endswith("Mend these and check again: some mistakes hide others.\n")


class Screen(io.StringIO):
    """Standard output that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_wraps_messages_between_words_and_a_pipe_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "bad.yaml"
    spec.write_text((EXAMPLES / "acs.yaml").read_text(encoding="utf-8") + "tabels: 1\n", encoding="utf-8")
    for file in EXAMPLES.glob("*.csv"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    for arguments in (["check", "bad.yaml"], ["check", "--json", "bad.yaml"]):
        assert main(arguments) == 2
        piped = capsys.readouterr().out
        with monkeypatch.context() as patch:
            screen = Screen()
            patch.setattr(sys, "stdout", screen)
            assert main(arguments) == 2
        if "--json" in arguments:
            assert screen.getvalue() == piped
            continue
        assert max(map(len, screen.getvalue().splitlines())) <= 60 < max(map(len, piped.splitlines()))
        assert screen.getvalue().replace("\n    ", " ") == piped


def test_colours_mark_the_code_of_a_wrapped_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.yaml").write_text("margrave: 7\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["check", "bad.yaml"]) == 2
    assert "bad.yaml:1:11: \033[1;31merror[unknown-version]\033[0m: " in screen.getvalue()
    assert "\n    " in screen.getvalue()


def test_check_as_json_has_the_promised_shape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("margrave: 7\n", encoding="utf-8")
    assert main(["check", "--json", str(path), str(EXAMPLES / "acs.yaml")]) == 2
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) == {"ok", "diagnostics"}
    assert answer["ok"] is False
    keys = {"file", "line", "column", "severity", "code", "path", "message"}
    assert all(set(item) == keys for item in answer["diagnostics"])
    assert {item["severity"] for item in answer["diagnostics"]} <= {"error", "warning", "note"}


def test_quiet_says_nothing_about_a_good_spec(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--quiet", str(EXAMPLES / "acs.yaml")]) == 0
    assert capsys.readouterr().out == ""


def test_the_normal_form_can_be_checked_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--quiet", "--normalised", str(EXAMPLES / "schools.yaml")]) == 0
    text = capsys.readouterr().out
    for file in EXAMPLES.glob("*.csv"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "again.yaml").write_text(text, encoding="utf-8")
    assert main(["check", "--quiet", "--normalised", str(tmp_path / "again.yaml")]) == 0
    assert capsys.readouterr().out == text


def test_what_nobody_foresaw_is_one_sentence_without_its_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> int:
        raise RuntimeError("the secret of record 4711")

    monkeypatch.setattr(authoring, "_schema", fail)
    assert main(["schema"]) == cli.INTERNAL
    shown = capsys.readouterr()
    assert "internal error: RuntimeError in test_cli.py" in shown.err
    assert "4711" not in shown.err + shown.out
    assert "Traceback" not in shown.err


def test_start_up_of_check_imports_neither_prefect_nor_pandas() -> None:
    code = (
        "import sys; from flows.cli import main; "
        f"main(['check', '--quiet', {str(EXAMPLES / 'households.yaml')!r}]); "
        "print(sorted({name.split('.')[0] for name in sys.modules} & "
        "{'prefect', 'pandas', 'numpy', 'pyarrow', 'duckdb', 'ibis', 'pandera'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_the_schema_allows_one_quantile_without_brackets_as_check_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    at = json.loads(capsys.readouterr().out)["$defs"]["Quantiles"]["properties"]["at"]
    assert [form["type"] == "array" for form in at["anyOf"]] == [False, True]


def test_the_installed_command_knows_its_version() -> None:
    command = Path(sys.executable).parent / "margrave"
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("margrave 0.")


def test_a_terminal_that_knows_only_ascii_gets_its_message(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text("margrave: é\n", encoding="utf-8")
    command = Path(sys.executable).parent / "margrave"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([command, "check", path], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2
    assert "unknown-version" in done.stdout


def test_a_closed_pipe_is_no_fault() -> None:
    command = Path(sys.executable).parent / "margrave"
    piped = f"'{command}' schema | head -1"
    done = subprocess.run(["bash", "-c", piped], capture_output=True, text=True, check=True)  # noqa: S607
    assert done.stderr == ""


def test_init_writes_a_spec_that_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "release.yaml"
    assert main(["init", "--out", str(path)]) == 0
    assert main(["check", str(path)]) == 0
    assert "error" not in capsys.readouterr().out


def test_init_never_overwrites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "release.yaml"
    path.write_text("mine", encoding="utf-8")
    assert main(["init", "--out", str(path)]) == 2
    assert path.read_text(encoding="utf-8") == "mine"
    assert "is not overwritten" in capsys.readouterr().err


def test_init_from_a_header_reads_no_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The canary stands in the first record; only the first line may be read."""
    data, answers, out = tmp_path / "persons.csv", tmp_path / "answers.json", tmp_path / "release.yaml"
    data.write_text("person_id,sex,age\nCANARY-ID,CANARY-SEX,4711\n", encoding="utf-8")
    answers.write_text('{"person_id": {"type": "id"}, "sex": {"type": "codes", "codes": {"1": "M"}}}', encoding="utf-8")
    assert main(["init", "--header", str(data), "--answers", str(answers), "--out", str(out)]) == 0
    shown = capsys.readouterr()
    everything = shown.out + shown.err + out.read_text(encoding="utf-8")
    assert "CANARY" not in everything
    assert "4711" not in everything
    assert "DECIDE" in everything


def test_init_asks_and_says_what_enter_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = tmp_path / "persons.csv", tmp_path / "release.yaml"
    data.write_text("Person ID\n", encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.StringIO("idd\n\n\n"))
    assert main(["init", "--header", str(data), "--out", str(out)]) == 0
    asked = capsys.readouterr().err
    assert asked.startswith("1 column; if there are more, say what parts them: --delimiter. Answer ? to decide later")
    assert "\n'idd' is not a type; did you mean 'id'?\nPerson ID: type (" in asked
    assert "or ? to decide later) [Enter = id]: " in asked
    assert "such as households [Enter = row]: " in asked
    assert "key: Person ID" in out.read_text(encoding="utf-8")


def test_help_says_where_the_formats_stand_and_what_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    for verb, words in (("init", "docs/starting_files.md"), ("synthesize", "rows of the innermost file: persons, not")):
        with pytest.raises(SystemExit):
            main([verb, "--help"])
        assert words in capsys.readouterr().out


def test_init_tells_what_is_wrong_with_its_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--dictionary", str(tmp_path / "none.json")]) == 2
    assert main(["init", "--answers", "x.json"]) == 2
    shown = capsys.readouterr().err
    assert "Traceback" not in shown
    assert "go with --header" in shown


def test_synthesize_writes_marked_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = str(EXAMPLES / "households.yaml")
    assert main(["synthesize", spec, "--records", "500", "--seed", "3", "--out", str(tmp_path / "generated")]) == 0
    assert "500 persons" in capsys.readouterr().out
    marked = json.loads((tmp_path / "generated" / "GENERATED.json").read_text(encoding="utf-8"))
    assert "no record describes a real person" in json.dumps(marked)


@pytest.mark.parametrize("arguments", [["--records", "0"], ["--records", "many"], ["--records", "9", "--dirt", "2"]])
def test_synthesize_tells_what_is_wrong_with_its_options(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = str(EXAMPLES / "households.yaml")
    assert main(["synthesize", spec, "--out", str(tmp_path), *arguments]) == 2
    assert "; write " in capsys.readouterr().err


def test_synthesize_refuses_a_spec_with_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("margrave: 7\n", encoding="utf-8")
    assert main(["synthesize", str(path), "--records", "5", "--out", str(tmp_path / "x")]) == 2
    assert "unknown-version" in capsys.readouterr().out
    assert not (tmp_path / "x").exists()
