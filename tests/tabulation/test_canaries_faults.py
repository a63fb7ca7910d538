"""Whatever goes wrong beneath while canaries are in memory, nothing of it leaves the room but a coded error."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest

from flows.cli import STOPPED
from tabulation import findings_report
from tabulation.engines import duckdb as engine
from tabulation.errors import EngineError, MicrodataError
from tabulation.tabulate import dataset_fingerprint, open_dataset
from tests.tabulation import test_canaries
from tests.tabulation.canaries import Aviary, aviary
from tests.tabulation.canary_faults import CHATTY_BELOW, KINDS, OPENING, WARNING, WITHIN, Breaks
from tests.tabulation.canary_runs import COMMANDS, DOORS, KEY, STRUCTURAL, Places, counted
from tests.tabulation.canary_watch import Seen, Watch, watching

INNER = ("counting", "inspecting", "the command")
OUTER = ("opening", "a dry run")
REFUSED, UNFORESEEN = 2, 70


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    return watching(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("aviary")


def broken(flock: Aviary, door: str, watch: Watch, breaks: Breaks, places: Places | None = None) -> Seen:
    """Runs a door with something broken beneath it, and expects a coded error."""
    seen = watch.run(lambda: while_broken(flock, door, watch, breaks, places), flock.canaries)
    assert seen.leaks == []
    assert seen.leftovers == []
    assert watch.around.private_folders() == []
    if door in COMMANDS:
        assert seen.value == REFUSED
    else:
        assert isinstance(seen.fault, MicrodataError)
        assert (seen.fault.__cause__, seen.fault.__context__) == (None, None)
    return seen


def while_broken(flock: Aviary, door: str, watch: Watch, breaks: Breaks, places: Places | None = None) -> object:
    with pytest.MonkeyPatch.context() as patch:
        breaks(patch)
        return DOORS[door](flock, places or flock.places, watch)


def raising(kind: str) -> Breaks:
    def cells(*given: object) -> NoReturn:
        fault = KINDS[kind]()
        raise fault

    return lambda patch: patch.setattr(engine.DuckDB, "cells", cells)


@pytest.mark.parametrize("door", INNER)
@pytest.mark.parametrize("kind", KINDS)
def test_no_exception_takes_its_words_out_of_the_room(kind: str, door: str, base: Path, watch: Watch) -> None:
    seen = broken(aviary(base, "csv"), door, watch, raising(kind))
    assert door in COMMANDS or isinstance(seen.fault, EngineError)


@pytest.mark.parametrize("door", ["counting", "inspecting"])
@pytest.mark.parametrize("place", WITHIN)
def test_wherever_the_engine_fails_nothing_is_told_or_left(place: str, door: str, base: Path, watch: Watch) -> None:
    broken(aviary(base, "csv"), door, watch, WITHIN[place])


@pytest.mark.parametrize("door", OUTER)
@pytest.mark.parametrize("place", OPENING)
def test_opening_fails_without_a_word_of_a_library(place: str, door: str, base: Path, watch: Watch) -> None:
    broken(aviary(base, "parquet"), door, watch, OPENING[place])


def test_the_suite_sends_two_hundred_runs_through_the_room() -> None:
    faults = len(KINDS) * len(INNER) + len(WITHIN) * 2 + len(OPENING) * len(OUTER)
    assert len(test_canaries.PASSING) > 20
    assert len(STRUCTURAL) > 30
    assert len(test_canaries.PASSING) + len(test_canaries.FAILING) + faults >= 200


@pytest.mark.parametrize("breaks", [CHATTY_BELOW, WARNING], ids=["logs", "warns"])
def test_what_a_library_says_before_it_fails_is_not_heard(breaks: Breaks, base: Path, watch: Watch) -> None:
    broken(aviary(base, "csv"), "counting", watch, breaks)


@pytest.mark.parametrize("door", INNER)
@pytest.mark.parametrize("form", ["csv", "csv with breaks", "parquet"])
def test_a_file_that_vanishes_is_not_named(door: str, form: str, base: Path, tmp_path: Path, watch: Watch) -> None:
    flock = aviary(base, form)
    shutil.copytree(flock.folder, tmp_path / flock.folder.name)
    places = {name: str(tmp_path / flock.folder.name / Path(place).name) for name, place in flock.places.items()}
    plain = engine.DuckDB.cells

    def cells(self: engine.DuckDB, *given: object) -> object:
        shutil.rmtree(tmp_path / flock.folder.name, ignore_errors=True)
        return plain(self, *given)  # type: ignore[arg-type]

    broken(flock, door, watch, lambda patch: patch.setattr(engine.DuckDB, "cells", cells), places)


@pytest.mark.parametrize("door", INNER)
def test_a_parquet_file_with_broken_pages_is_not_quoted(door: str, base: Path, tmp_path: Path, watch: Watch) -> None:
    flock = aviary(base, "parquet")
    spoiled = tmp_path / flock.folder.name / Path(flock.places["people"]).name
    spoiled.parent.mkdir()
    content = bytearray(Path(flock.places["people"]).read_bytes())
    content[4:20_000] = bytes(reversed(content[4:20_000]))
    spoiled.write_bytes(content)
    broken(flock, door, watch, lambda patch: None, {**flock.places, "people": str(spoiled)})


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_fingerprint_that_fails_names_no_file(form: str, base: Path, tmp_path: Path, watch: Watch) -> None:
    flock = aviary(base, form)
    shutil.copytree(flock.folder, tmp_path / flock.folder.name)
    places = {name: str(tmp_path / flock.folder.name / Path(place).name) for name, place in flock.places.items()}
    sources = open_dataset(flock.loaded.spec, flock.loaded.domain, places)
    shutil.rmtree(tmp_path / flock.folder.name)
    seen = watch.run(lambda: dataset_fingerprint(sources, KEY), flock.canaries)
    assert isinstance(seen.fault, EngineError)
    assert seen.leaks == []


def test_findings_that_cannot_be_written_are_not_told_elsewhere(base: Path, watch: Watch) -> None:
    flock = aviary(base, "parquet")

    def write(path: Path, text: str) -> NoReturn:
        raise OSError(28, text, str(path))

    def breaks(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(findings_report, "_write", write)

    seen = watch.run(lambda: while_broken(flock, "the command", watch, breaks), flock.canaries)
    assert seen.value in (REFUSED, UNFORESEEN)
    assert (seen.leaks, seen.leftovers) == ([], [])


def interrupting(patch: pytest.MonkeyPatch) -> None:
    def fetch(*given: object) -> NoReturn:
        raise KeyboardInterrupt

    patch.setattr(engine.DuckDB, "fetch", fetch)


@pytest.mark.parametrize("door", ["counting", "inspecting"])
def test_a_person_who_stops_a_run_stops_it_and_nothing_is_left(door: str, base: Path, watch: Watch) -> None:
    flock = aviary(base, "parquet")
    seen = watch.run(lambda: while_broken(flock, door, watch, interrupting), flock.canaries)
    assert isinstance(seen.fault, KeyboardInterrupt)
    assert (seen.fault.args, seen.fault.__cause__, seen.fault.__context__) == ((), None, None)
    assert seen.modes == {0o700}
    assert (seen.leftovers, watch.around.private_folders()) == ([], [])
    assert [one for one in seen.leaks if not one.startswith("frames")] == []


def test_the_command_says_that_it_was_stopped_and_no_more(base: Path, watch: Watch) -> None:
    flock = aviary(base, "parquet")
    seen = watch.run(lambda: while_broken(flock, "the command", watch, interrupting), flock.canaries)
    assert (seen.value, seen.leaks, seen.leftovers) == (STOPPED, [], [])
    assert seen.traces["stderr"].endswith("margrave: stopped\n")


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit(143)], ids=["by hand", "by a signal"])
def test_a_run_that_is_stopped_while_lines_are_read_is_stopped(stop: BaseException, base: Path, watch: Watch) -> None:
    flock, plain = aviary(base, "csv"), engine.cut_lines

    def cut(path: Path) -> Iterator[pa.RecordBatch]:
        yield next(plain(path)).slice(0, 5)
        raise stop

    def breaks(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(engine, "cut_lines", cut)

    seen = watch.run(lambda: while_broken(flock, "counting", watch, breaks), flock.canaries)
    assert type(seen.fault) is type(stop)
    assert (seen.leftovers, watch.around.private_folders()) == ([], [])


def test_a_folder_that_no_process_holds_is_removed_by_the_next_one(base: Path, watch: Watch) -> None:
    flock = aviary(base, "parquet")
    left = watch.around.private / "margrave-private-left"
    left.mkdir(mode=0o700)
    shutil.copy(flock.places["people"], left / "spilled.parquet")
    os.close(os.open(left / "lock", os.O_CREAT | os.O_RDWR, 0o600))
    os.utime(left, (0, 0))
    seen = watch.run(lambda: counted(flock, flock.places, watch), flock.canaries)
    assert (seen.leaks, seen.leftovers) == ([], [])
