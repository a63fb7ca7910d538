"""Every code that `check` can print is explained, and every explanation is true: its examples are run."""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import release_specs
from flows.cli import main
from release_specs.diagnostics import Diagnostic, Severity, SpecError
from release_specs.explain import EXPLANATIONS, explanations
from release_specs.load import load_text
from release_specs.reading.tree import parse_tree

SOURCE = Path(release_specs.__file__).parent
KNOWN = explanations()

# The place of the code among the arguments of what makes a finding. What passes a parameter on is found by reading.
CARRIERS = {"error": 0, "warning": 0, "note": 0, "mistake": 0, "Finding": 1, "Diagnostic": 4}

# Words with a hyphen that are no codes but words of the language.
OTHER_WORDS = {"add-remove", "half-year"}

BROKEN_YAML = {
    "bad-yaml",
    "duplicate-key",
    "key-not-text",
    "no-anchors",
    "no-tags",
    "not-a-spec",
    "several-documents",
    "tab-indent",
}
# Bytes that a fragment cannot hold, and texts too long to print.
TOLD_NOT_SHOWN = {
    "bad-character",
    "bad-encoding",
    "file-too-large",
    "file-unreadable",
    "too-deep",
    "too-many-values",
}
# Good to know, or a warning that stays where the error has gone.
STILL_SAID = {"exact-with-cap", "tables-agree"}

BASE = """
margrave: 1
release: {name: people, title: People}
microdata:
  households:
    key: household_id
    defaults: {outside: leave_out, missing: leave_out}
    columns:
      district: {area: zones}
      type: {codes: {1: Housing unit, 2: Institution}}
      cars: {integer: 0..6, clip: 0..6}
      income: {number: 0..10000000, step: 100, clip: 0..300000}
  persons:
    key: person_id
    in: {households: household_id}
    defaults: {outside: leave_out, missing: leave_out}
    columns:
      sex: {codes: {1: Male, 2: Female}}
      age: {integer: 0..99, outside: nearest}
      relate: {codes: {0: Reference person, 1: Partner, 2: Child, 3: Resident of an institution}}
      work: {codes: {1: Employed, 2: Unemployed, 3: Neither}}
geography:
  zones: {levels: [county, district], areas: {D1: North, D2: South}}
recodes:
  age_group: {of: age, into: {Under 18: 0..17, 18 to 64: 18..64, 65 and over: 65..}}
universes:
  adults: {of: persons, where: {age: 16..}}
privacy:
  protect: households
  at_most: {persons: 6}
  neighbours: add-remove
  budget: {rho: 1/2, delta: 1e-10}
tables:
  population: {count: persons, at: [county, district]}
"""

# How deep a fragment goes into the section of the base before it replaces what stands there.
DEPTH = {"microdata": 3, "geography": 1, "recodes": 1, "derive": 2, "universes": 1, "privacy": 1, "tables": 1}


def codes_in_source() -> set[str]:
    """Every code that the room can print, read off its source: what is handed on, and what looks like a code."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
    carriers = carriers_in(trees)
    handed = {code for path, tree in trees.items() for code in codes_handed(tree, path, carriers)}
    texts = {text for tree in trees.values() for node in ast.walk(tree) for text in constants(node)}
    return handed | {text for text in texts if re.fullmatch(r"[a-z]+(-[a-z]+)+", text)} - OTHER_WORDS


def carriers_in(trees: dict[Path, ast.Module]) -> dict[tuple[Path | None, str], int]:
    """Functions that take a code and hand it to another carrier, with the place of the code; found by repeating."""
    carriers: dict[tuple[Path | None, str], int] = {(None, name): place for name, place in CARRIERS.items()}
    for _ in range(5):
        for path, tree in trees.items():
            for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
                names = [argument.arg for argument in function.args.args if argument.arg != "self"]
                for handed in handed_codes(function, path, carriers):
                    if isinstance(handed, ast.Name) and handed.id in names and function.name not in CARRIERS:
                        shared = not function.name.startswith("_")
                        carriers[None if shared else path, function.name] = names.index(handed.id)
    return carriers


def handed_codes(node: ast.AST, path: Path, carriers: dict[tuple[Path | None, str], int]) -> Iterator[ast.expr]:
    """What stands in the place of the code wherever a carrier is called."""
    for call in (part for part in ast.walk(node) if isinstance(part, ast.Call)):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        place = carriers.get((path, name), carriers.get((None, name)))
        if place is not None and place < len(call.args):
            yield call.args[place]
        yield from (keyword.value for keyword in call.keywords if keyword.arg == "code" and place is not None)


def codes_handed(tree: ast.Module, path: Path, carriers: dict[tuple[Path | None, str], int]) -> Iterator[str]:
    """The codes that a module hands to a carrier, directly or by a local name."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for handed in handed_codes(function, path, carriers):
            for part in assigned(function, handed.id) if isinstance(handed, ast.Name) else [handed]:
                yield from constants(part)


def assigned(function: ast.FunctionDef, name: str) -> Iterator[ast.expr]:
    """What is assigned to a local name."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and any(
            isinstance(part, ast.Name) and part.id == name for part in node.targets
        ):
            yield node.value


def constants(node: ast.AST) -> Iterator[str]:
    """The texts an expression may come to: itself, or either branch of a choice."""
    if isinstance(node, ast.IfExp):
        yield from constants(node.body)
        yield from constants(node.orelse)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def merged(base: Any, fragment: Any, depth: int) -> Any:
    """The base with the fragment laid over it, `depth` keys deep."""
    if depth == 0 or not isinstance(base, dict) or not isinstance(fragment, dict):
        return fragment
    return {**base, **{key: merged(base.get(key), part, depth - 1) for key, part in fragment.items()}}


@cache
def tree_of(text: str) -> dict[str, Any]:
    """The sections of a fragment."""
    data = parse_tree(text, "fragment").data
    assert isinstance(data, dict)
    return data


def completed(fragment: dict[str, Any]) -> dict[str, Any]:
    """A whole spec made of a fragment: what it does not say is said by the base."""
    if {"margrave", "tables"} <= fragment.keys():
        return fragment
    whole = dict(tree_of(BASE))
    for section, part in fragment.items():
        complete = section == "privacy" and isinstance(part, dict) and "protect" in part
        whole[section] = part if complete else merged(whole.get(section), part, DEPTH.get(section, 0))
    return whole


def as_yaml(value: Any) -> str:
    """A tree as YAML text on one line; None is what stands where nothing was written."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {as_yaml(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(as_yaml(part) for part in value) + "]"
    return "" if value is None else json.dumps(value)


def put_files(fragment: str, folder: Path) -> None:
    """Writes the files that a fragment shows in its comments."""
    for name, lines in re.findall(r"^# (\S+\.csv)\n((?:#   .*\n)+)", fragment, flags=re.MULTILINE):
        (folder / name).write_text(re.sub(r"^#   ", "", lines, flags=re.MULTILINE), encoding="utf-8")


def check(text: str, folder: Path) -> tuple[Diagnostic, ...]:
    """What `check` says about a spec."""
    try:
        return load_text(text, file="spec.yaml", folder=folder).diagnostics
    except SpecError as fault:
        return fault.diagnostics


def check_fragment(fragment: str, folder: Path) -> tuple[Diagnostic, ...]:
    """What `check` says about a spec that a fragment is part of."""
    put_files(fragment, folder)
    try:
        sections = tree_of(fragment)
    except SpecError as fault:
        return fault.diagnostics
    return check(as_yaml(completed(sections)), folder)


@cache
def check_base() -> tuple[Diagnostic, ...]:
    """What `check` says about the base alone, which needs no files."""
    return check(BASE, SOURCE)


def places(code: str, found: tuple[Diagnostic, ...]) -> set[str]:
    """The paths at which a code is found."""
    return {one.path or "the whole text" for one in found if one.code == code}


def test_every_code_is_explained_and_every_explanation_has_a_code() -> None:
    assert codes_in_source() == set(KNOWN)


def test_the_codes_are_read_off_every_way_of_making_a_finding() -> None:
    found = codes_in_source()
    through = {
        "error": "shares-exceed",
        "warning": "never-used",
        "note": "tables-agree",
        "mistake": "bad-number",
        "unknown_name": "unknown-spine",
        "Diagnostic": "not-a-spec",
        "_fault": "bad-encoding",
        "_stop": "no-tags",
    }
    assert {way: code for way, code in through.items() if code not in found} == {}


def test_explanations_stand_in_the_order_of_the_alphabet() -> None:
    codes = list(tomllib.loads(EXPLANATIONS.read_text(encoding="utf-8")))
    assert codes == sorted(codes)


def test_a_title_is_one_short_sentence_without_its_period() -> None:
    titles = {code: item.title for code, item in KNOWN.items()}
    assert {code: title for code, title in titles.items() if not re.fullmatch(r"[A-Z][^.!?\n]{10,79}", title)} == {}
    assert len(set(titles.values())) == len(titles)


def test_a_reason_is_one_calm_paragraph_that_fits_a_terminal() -> None:
    for code, item in KNOWN.items():
        why = item.why.strip()
        assert re.fullmatch(r"[A-Z`][^!]{90,1200}\.", why), code
        assert "\n\n" not in why, code
        assert max(map(len, why.splitlines())) <= 80, code


def test_examples_are_yaml_unless_they_are_about_yaml() -> None:
    for code, item in KNOWN.items():
        assert tree_of(item.right), code
        if code in BROKEN_YAML:
            with pytest.raises(SpecError):
                parse_tree(item.wrong, code)
        else:
            assert tree_of(item.wrong), code


def test_the_base_of_the_examples_has_no_mistake() -> None:
    assert not [found for found in check_base() if found.severity is Severity.ERROR]


@pytest.mark.parametrize("code", [code for code in KNOWN if code not in TOLD_NOT_SHOWN])
def test_the_wrong_example_provokes_its_code_and_the_right_one_passes(code: str, tmp_path: Path) -> None:
    wrong = check_fragment(KNOWN[code].wrong, tmp_path)
    assert places(code, wrong)
    assert {found.code for found in wrong} <= set(KNOWN)
    right = check_fragment(KNOWN[code].right, tmp_path)
    assert [str(found) for found in right if found.severity is Severity.ERROR] == []
    if code not in STILL_SAID:
        assert places(code, right) <= places(code, check_base())
        assert places(code, wrong) - places(code, right)


def test_explain_prints_title_reason_and_both_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "category-gap"]) == 0
    said = capsys.readouterr().out
    item = KNOWN["category-gap"]
    assert said.startswith(f"category-gap: {item.title}\n")
    assert item.why.strip() in said
    for line in (item.wrong + item.right).strip().splitlines():
        assert f"    {line}\n" in said


def test_explain_takes_the_code_with_its_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "[shares-exceed]"]) == 0
    assert capsys.readouterr().out.startswith("shares-exceed: ")


def test_explain_alone_lists_every_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(KNOWN)


def test_explain_speaks_json_to_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "unpaid", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == KNOWN["unpaid"].as_data()


def test_an_unknown_code_gets_a_near_name_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "categry-gap"]) == 2
    assert "did you mean 'category-gap'?" in capsys.readouterr().err
