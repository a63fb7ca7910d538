"""Canaries in every column, id, name and total of the files: no run of this room tells one to anybody.

Every run, whether it passes or fails, is watched as `canary_watch` describes. What fails in the engine beneath is in
`test_canaries_faults`, processes that are ended and Spark in `test_canaries_processes`; that the search and the watch
would notice is shown in `test_canary_watch`.
"""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from flows.cli import main
from flows.looks import read_looks
from tabulation.errors import MicrodataError
from tests.tabulation.canaries import FOLDER, FORMS, TEXTS, UNKNOWN, aviary
from tests.tabulation.canary_runs import (
    COMMANDS,
    DOORS,
    STRUCTURAL,
    STRUCTURE_DOORS,
    clean,
    command,
    commanded,
    header_only,
)
from tests.tabulation.canary_watch import CONFIDENTIAL, LOOKS, Watch, watching

SELDOM = {"counting without a folder": "csv", "the command in JSON": "parquet"}
PASSING = [(door, form) for door in DOORS for form in FORMS if door not in SELDOM or form == SELDOM[door]]
FAILING = [(door, kind) for door in STRUCTURE_DOORS for kind in STRUCTURAL]
REFUSED = 2


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    return watching(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("aviary")


def listing(folder: Path) -> list[tuple[str, int, int]]:
    return [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in sorted(folder.rglob("*"))]


@pytest.mark.parametrize(("door", "form"), PASSING)
def test_a_run_that_passes_tells_nothing_of_the_records(door: str, form: str, base: Path, watch: Watch) -> None:
    flock = aviary(base, form)
    before = listing(flock.folder)
    seen = watch.run(lambda: DOORS[door](flock, flock.places, watch), flock.canaries)
    assert seen.fault is None
    assert seen.leaks == []
    assert (seen.leftovers, seen.outside) == ([], [])
    assert seen.modes == ({0o700} if seen.stages else set())
    assert listing(flock.folder) == before
    assert door not in COMMANDS or seen.value == 0


@pytest.mark.parametrize(("door", "kind"), FAILING)
def test_a_structure_that_is_refused_is_told_without_a_value_or_a_path(
    door: str, kind: str, base: Path, tmp_path: Path, watch: Watch
) -> None:
    flock = aviary(base, "parquet")
    spoil, code = STRUCTURAL[kind]
    places = spoil(flock, tmp_path / FOLDER)
    seen = watch.run(lambda: DOORS[door](flock, places, watch), flock.canaries)
    assert seen.leaks == []
    assert (seen.leftovers, seen.stages) == ([], [])
    if door in COMMANDS:
        assert seen.value == REFUSED
        assert code in seen.traces["stdout"] + seen.traces["stderr"]
    else:
        assert isinstance(seen.fault, MicrodataError)
        assert seen.fault.code == code


def test_the_findings_tell_the_custodian_alone_what_the_terminal_does_not(base: Path, watch: Watch) -> None:
    flock = aviary(base, "csv")
    seen = watch.run(lambda: DOORS["the command"](flock, flock.places, watch), flock.canaries)
    assert seen.leaks == []
    (folder,) = watch.around.findings.iterdir()
    page, data = folder / "findings.md", folder / "findings.json"
    for name in UNKNOWN:
        assert TEXTS[name] in page.read_text(encoding="utf-8")
        assert TEXTS[name] in data.read_text(encoding="utf-8")
    assert json.loads(data.read_text(encoding="utf-8"))["entities"]["people"]["sizes"]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder.parent, folder, *folder.iterdir())}
    assert modes == {CONFIDENTIAL: 0o700, folder.name: 0o700, "findings.md": 0o600, "findings.json": 0o600}
    (entry,) = read_looks(watch.around.here / LOOKS.parent)
    assert set(entry) == {"kind", "release", "at", "parts", "before", "hash"}


def test_findings_that_are_written_again_are_closed_to_others(base: Path, watch: Watch) -> None:
    flock, folder = aviary(base, "parquet"), watch.around.findings
    folder.mkdir(mode=0o755)
    for name in ("findings.md", "findings.json"):
        (folder / name).write_text("of an earlier time", encoding="utf-8")
        (folder / name).chmod(0o644)
    door = commanded("--findings", str(folder))
    assert watch.run(lambda: door(flock, flock.places, watch), flock.canaries).value == 0
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert (stat.S_IMODE(folder.stat().st_mode), modes) == (0o700, {0o600})


def test_the_terminal_says_the_same_whatever_the_records_say(
    base: Path, tmp_path: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = aviary(base, "csv")
    contents = {
        "canaries": tuple(Path(flock.places[name]).read_bytes() for name in ("homes", "people")),
        "clean": clean(),
        "no sense": tuple(head + b'\xff"\n,,\n\0\n' + b"x" * 5000 + b'\n"",\n' for head in header_only()),
    }
    told = {}
    for name, files in contents.items():
        folder = tmp_path / name
        folder.mkdir()
        places = {entity: str(folder / f"{entity}.csv") for entity in ("homes", "people")}
        for place, content in zip(places.values(), files, strict=True):
            Path(place).write_bytes(content)
        door = commanded("--findings", "told")
        monkeypatch.chdir(folder)
        seen = watch.run(lambda door=door, places=places: door(flock, places, watch), flock.canaries)
        told[name] = (seen.value, seen.traces["stdout"].encode(), seen.traces["stderr"].encode(), seen.stages)
    assert told["canaries"][0] == 0
    assert [name for name, one in told.items() if one != told["canaries"]] == []


def test_an_option_that_is_misspelt_does_not_repeat_the_place_of_the_files(base: Path, watch: Watch) -> None:
    flock = aviary(base, "csv")
    words = [word.replace("--data", "--datum") for word in command(flock, flock.places)]
    seen = watch.run(lambda: main(words), flock.canaries)
    assert seen.value == REFUSED
    assert seen.leaks == []
