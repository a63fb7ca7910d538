"""The tests notice planted faults: each mutant of `mutants.toml` is killed by the tests that it names.

A mutant is planted in a copy of the room and of its tests, never in the room itself. The quick suite plants some
mutants of every file, `make test-slow` all of them.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIST = tomllib.loads((HERE / "mutants.toml").read_text())
TESTS = "tests/mechanisms"
PATIENCE = 300
"""Seconds; a mutant that never ends is no mutant that a test noticed."""

TESTS_FAILED, WRONG_COPY = 1, 9

GUARD = f"""
import importlib
from pathlib import Path

import pytest
from hypothesis import settings

settings.load_profile("ci")  # the same examples every time, and no deadline


def pytest_collection_finish() -> None:
    module = importlib.import_module({{module!r}})
    if Path(module.__file__).resolve() != Path({{file!r}}).resolve():
        pytest.exit(f"{{{{module.__file__}}}} was imported: not the copy", returncode={WRONG_COPY})
"""
"""What stops a run that would test the installed room and not the copy beside it."""


@dataclass(frozen=True)
class Mutant:
    """One piece of text that stands in place of another, and the tests that notice or the reason why none can."""

    name: str
    file: str
    find: str
    replace: str
    killed_by: tuple[str, ...] = ()
    quick: bool = False
    reason: str = ""

    def planted(self, source: str) -> str:
        """The source with the fault."""
        return source.replace(self.find, self.replace)

    @property
    def killers(self) -> list[str]:
        """The tests that notice, from the top of the project."""
        return [f"{TESTS}/{test}" for test in self.killed_by]


def listed(kind: str) -> list[Mutant]:
    return [Mutant(**(held | {"killed_by": tuple(held.get("killed_by", ()))})) for held in LIST.get(kind, ())]


MUTANTS, SURVIVORS = listed("mutant"), listed("survivor")
KILLERS = sorted({killer for mutant in MUTANTS for killer in mutant.killers})
ROOM = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "mechanisms").rglob("*.py") if path.name != "__init__.py")
EACH = [pytest.param(mutant, id=mutant.name, marks=() if mutant.quick else pytest.mark.slow) for mutant in MUTANTS]


# The list.


def test_every_mutant_is_planted_in_exactly_one_place() -> None:
    places = {mutant.name: (ROOT / mutant.file).read_text().count(mutant.find) for mutant in (*MUTANTS, *SURVIVORS)}
    assert {name: count for name, count in places.items() if count != 1} == {}


def test_every_mutant_is_another_program_that_can_be_read() -> None:
    for mutant in (*MUTANTS, *SURVIVORS):
        source = (ROOT / mutant.file).read_text()
        assert ast.dump(ast.parse(mutant.planted(source))) != ast.dump(ast.parse(source)), mutant.name


def test_every_file_of_the_room_has_two_mutants_and_a_quick_one() -> None:
    planted, quick = (Counter(m.file for m in MUTANTS if m.quick or not only) for only in (False, True))
    assert [file for file in ROOM if planted[file] < 2 or not quick[file]] == []
    assert set(planted) <= set(ROOM)


def test_every_mutant_has_a_name_of_its_own_and_tests_that_kill_it() -> None:
    names = [mutant.name for mutant in (*MUTANTS, *SURVIVORS)]
    assert sorted(set(names)) == sorted(names)
    assert [mutant.name for mutant in MUTANTS if not mutant.killed_by or mutant.reason] == []
    assert [mutant.name for mutant in SURVIVORS if mutant.killed_by or not mutant.reason] == []


# The mutants themselves.


def copied(to: Path, mutant: Mutant | None = None) -> Path:
    """The room and its tests, with a guard that only this copy is tested, and with the mutant planted."""
    for folder in ("mechanisms", TESTS):
        shutil.copytree(ROOT / folder, to / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", to)
    file = to / (mutant.file if mutant else ROOM[0])
    module = ".".join(file.relative_to(to).with_suffix("").parts)
    (to / "conftest.py").write_text(GUARD.format(module=module, file=str(file)))
    if mutant:
        file.write_text(mutant.planted(file.read_text()))
    return to


def run_tests(folder: Path, tests: Iterable[str], *options: str) -> subprocess.CompletedProcess[str]:
    """pytest on these tests in a process of its own, as if the folder were the project."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "MARGRAVE"))}
    own = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *options, *tests]
    return subprocess.run(
        command, cwd=folder, env=kept | own, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def test_the_tests_that_kill_are_ordinary_quick_ones_and_pass_in_a_copy_without_a_fault(tmp_path: Path) -> None:
    said = run_tests(copied(tmp_path), KILLERS, "-m", "not slow", "-vv")
    assert said.returncode == 0, said.stdout + said.stderr
    passed = [line.partition(" PASSED")[0] for line in said.stdout.splitlines() if " PASSED" in line]
    assert [killer for killer in KILLERS if not any(is_of(killer, test) for test in passed)] == []


def is_of(killer: str, test: str) -> bool:
    """Whether a test is the killer, or one of its examples."""
    return test == killer or test.startswith(f"{killer}[")


def test_a_run_that_would_test_the_installed_room_is_noticed(tmp_path: Path) -> None:
    copied(tmp_path)
    (tmp_path / "mechanisms").rename(tmp_path / "elsewhere")
    said = run_tests(tmp_path, KILLERS[:1])
    assert said.returncode == WRONG_COPY, said.stdout + said.stderr


@pytest.mark.parametrize("mutant", EACH)
def test_a_planted_fault_is_noticed(mutant: Mutant, tmp_path: Path) -> None:
    said = run_tests(copied(tmp_path, mutant), mutant.killers)
    assert said.returncode == TESTS_FAILED, f"{mutant.file}: {mutant.name}\n{said.stdout}{said.stderr}"
