"""The house itself: walls between rooms, file sizes, a clean lock file, and nothing that names one machine."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("release_specs", "tabulation", "mechanisms", "estimation", "reporting", "flows")
LOCK = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

# The rooms in which the privacy argument is made may use these packages and no others.
PACKAGES_ALLOWED = {
    "release_specs": {"pydantic", "pydantic_core", "ruamel"},
    "mechanisms": {"numpy", "cryptography"},
    "estimation": {"numpy", "numba", "scipy"},
}

# Taken apart, so that this file does not itself contain what it forbids.
INDEX_HOSTS = tuple(
    ".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("debian", "org"))
)
MACHINE_PATH = re.compile(r"(?<![\w.~}])/(?:work|root|home|Users|opt|mnt)/")

BREACHES = (
    ("tabulation", "mechanisms"),
    ("tabulation", "reporting"),
    ("mechanisms", "estimation"),
    ("mechanisms", "release_specs"),
    ("estimation", "tabulation"),
    ("estimation", "flows"),
    ("release_specs", "flows"),
    ("reporting", "tabulation"),
    ("reporting", "mechanisms"),
    ("release_specs", "pandas"),
    ("mechanisms", "pydantic"),
    ("estimation", "pandas"),
)


def room_files() -> list[Path]:
    """Every Python file of every room."""
    return [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def project_files() -> list[Path]:
    """The files that are, or are about to be, under version control."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: which files belong to the project is unknown")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def project_texts() -> Iterator[tuple[str, str]]:
    """Name and text of every text file of the project."""
    for path in project_files():
        try:
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def locked_requirements() -> list[str]:
    """The lock file's requirements, each with its continuation lines joined."""
    text = "\n".join(line for line in LOCK.splitlines() if not line.lstrip().startswith("#"))
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def locked_versions() -> dict[str, str]:
    """Version by canonical name."""
    pairs = (line.split()[0].split("==") for line in locked_requirements())
    return {canonicalize_name(name): version for name, version in pairs}


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Import-linter's verdict on the rooms in `folder`."""
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", code, "--no-logo", "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False, text=True)


def long_functions(path: Path, limit: int) -> list[str]:
    """The functions of a file that take more than `limit` lines."""
    functions = (
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return [f"{path.name}:{node.lineno} {node.name}" for node in functions if node.end_lineno - node.lineno >= limit]


def test_the_walls_between_the_rooms_hold() -> None:
    verdict = lint_imports(ROOT)
    assert verdict.returncode == 0, verdict.stdout + verdict.stderr


@pytest.mark.parametrize(("room", "imported"), BREACHES)
def test_a_breach_of_a_wall_is_named_with_file_and_line(room: str, imported: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name in ROOMS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / room / "breach.py").write_text(f"\nimport {imported}\n")
    verdict = lint_imports(tmp_path)
    assert verdict.returncode == 1
    assert re.search(rf"{room}\.breach -> {imported} \(l\.2\)", verdict.stdout)


@pytest.mark.parametrize("room", PACKAGES_ALLOWED)
def test_a_room_uses_only_the_packages_it_is_allowed(room: str) -> None:
    graph = grimp.build_graph(room, include_external_packages=True, cache_dir=None)
    imported = {
        target
        for module in {room} | graph.find_descendants(room)
        for target in graph.find_modules_directly_imported_by(module)
    }
    names = {target.partition(".")[0] for target in imported}
    assert names - sys.stdlib_module_names - set(ROOMS) <= PACKAGES_ALLOWED[room]


def test_no_file_of_a_room_is_longer_than_400_lines() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in room_files()}
    assert {name: length for name, length in lengths.items() if length > 400} == {}


def test_no_function_of_a_room_is_longer_than_50_lines() -> None:
    assert [found for path in room_files() for found in long_functions(path, 50)] == []


def test_every_room_is_a_typed_package_that_says_what_belongs_there() -> None:
    for room in ROOMS:
        assert ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text())), room
        assert (ROOT / room / "py.typed").exists(), room


def test_no_file_names_a_path_of_one_machine() -> None:
    assert MACHINE_PATH.search("see " + "/".join(("", "root", "notes")))
    assert [name for name, text in project_texts() if MACHINE_PATH.search(text)] == []


def test_no_file_names_a_package_index() -> None:
    assert [name for name, text in project_texts() if any(host in text.lower() for host in INDEX_HOSTS)] == []


def test_every_locked_requirement_is_pinned_and_hashed() -> None:
    assert len(locked_requirements()) > 50
    pinned = re.compile(r"[a-z0-9-]+==\S+ .*--hash=sha256:[0-9a-f]{64}")
    assert [line for line in locked_requirements() if not pinned.match(line)] == []


def test_the_lock_file_holds_no_address_and_says_how_it_was_made() -> None:
    assert "`make lock`" in LOCK.splitlines()[0]
    assert "://" not in LOCK
    assert [line for line in LOCK.splitlines() if line.startswith("-")] == []


def test_the_locked_versions_are_those_that_the_project_allows() -> None:
    extras = PROJECT["optional-dependencies"]
    wanted = [Requirement(text) for text in PROJECT["dependencies"] + extras["dev"]]
    locked = locked_versions()
    assert [str(need) for need in wanted if locked[canonicalize_name(need.name)] not in need.specifier] == []


def test_the_readme_shows_both_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme


def test_make_alone_lists_every_target() -> None:
    listed = subprocess.run(["make"], cwd=ROOT, capture_output=True, check=True, text=True).stdout  # noqa: S607
    for target in ("setup", "demo", "test", "test-slow", "check", "bench", "lock"):
        assert re.search(rf"make {target} +\S", listed), target
