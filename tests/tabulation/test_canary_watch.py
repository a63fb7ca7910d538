"""The search finds a canary however it is written, and the watch notices every leak: else both prove nothing."""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NoReturn

import pytest

import tabulation.tabulate
from tabulation import boundary
from tabulation.errors import EngineError, MicrodataError
from tabulation.tabulate import open_dataset, tabulate
from tests.tabulation.canaries import FILE, TEXTS, Aviary, Canary, aviary
from tests.tabulation.canary_runs import DOORS, KEY
from tests.tabulation.canary_search import UNPACKERS, found_in, found_in_files, packed
from tests.tabulation.canary_watch import Watch, fault_traces, watching

TOKEN, NUMBER, DATE = Canary("code", "Ck7vRxq3w"), Canary("total", "7351946", is_number=True), "1807-03-29"
SECRET = TEXTS["name of a person"]
WRITTEN = list(packed("x"))


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    return watching(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def flock(tmp_path_factory: pytest.TempPathFactory) -> Aviary:
    return aviary(tmp_path_factory.mktemp("aviary"), "parquet")


@pytest.mark.parametrize("canary", [TOKEN, NUMBER, Canary("day", DATE, is_number=True)], ids=["text", "number", "day"])
@pytest.mark.parametrize("how", WRITTEN)
def test_the_search_finds_a_canary_however_it_is_written(how: str, canary: Canary) -> None:
    found = found_in(packed(canary.text)[how], (canary,))
    assert found
    packing = how.split(maxsplit=1)[0]
    assert packing not in UNPACKERS or any(f" in {packing}" in one for one in found)


def test_the_search_finds_nothing_where_nothing_is() -> None:
    for data in packed("another text 12345678").values():
        assert found_in(data, (TOKEN, NUMBER)) == []
    assert found_in(os.urandom(1 << 16), (TOKEN,)) == []


@pytest.mark.parametrize("text", ["7,351,946", "rows=7351946", "(7351946)", "7_351_946", "7351946.0", '{"n":7351946}'])
def test_the_search_finds_a_total_however_it_is_printed(text: str) -> None:
    assert found_in(text.encode(), (NUMBER,))


@pytest.mark.parametrize("text", ["17351946", "73519461", "a7351946f", "735194"])
def test_the_search_takes_no_part_of_a_number_for_it(text: str) -> None:
    assert found_in(text.encode(), (NUMBER,)) == []


def test_the_search_reads_names_and_links_of_files(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / f"x-{TOKEN.text}").touch()
    assert found_in_files(tmp_path, (TOKEN,))
    assert found_in_files(tmp_path, (TOKEN,), spared=[tmp_path / "a"]) == []
    (tmp_path / "link").symlink_to(f"nowhere/{TOKEN.text}")
    assert found_in_files(tmp_path, (TOKEN,), spared=[tmp_path / "a"])


def test_every_canary_is_found_in_the_files_it_was_planted_in(tmp_path: Path) -> None:
    planted = aviary(tmp_path, "csv")
    data = b"\n".join(Path(place).read_bytes() + place.encode() for place in planted.places.values())
    found = {one.split(" (")[0] for one in found_in(data, planted.canaries)}
    assert {name for name in TEXTS if name not in found} == set()


# Leaks that are put into the product on purpose.

Leaks = Callable[[Watch], None]


def _print(watch: Watch) -> None:
    sys.stdout.write(SECRET)


def _complain(watch: Watch) -> None:
    sys.stderr.write(SECRET)


def _write_below_python(watch: Watch) -> None:
    os.write(1, SECRET.encode())


def _log(watch: Watch) -> None:
    logging.getLogger("tabulation.count").debug("%s", SECRET)


def _log_apart(watch: Watch) -> None:
    """A logger that tells the root nothing and was there before."""
    logging.getLogger("canaries.apart").debug("row", extra={"row": SECRET})


def _warn(watch: Watch) -> None:
    warnings.warn(SECRET, DeprecationWarning, stacklevel=1)


def _lose(watch: Watch) -> None:
    thread = threading.Thread(target=lambda: int(SECRET))
    thread.start()
    thread.join()


def _leave(folder: str) -> Leaks:
    return lambda watch: _write(watch.around.root / folder / "left.tmp")


def _write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SECRET, encoding="utf-16")


LEAKS: dict[str, tuple[Leaks, str]] = {
    "prints": (_print, "stdout"),
    "complains": (_complain, "stderr"),
    "prints below Python": (_write_below_python, "stdout"),
    "logs": (_log, "logging"),
    "logs apart": (_log_apart, "logging"),
    "warns": (_warn, "warnings"),
    "loses an exception": (_lose, "lost exceptions"),
    "leaves a file in the working directory": (_leave("here"), "file here/left.tmp"),
    "leaves a file in the home folder": (_leave("home/.duckdb"), "file home/.duckdb/left.tmp"),
    "leaves a file in the temporary folder": (_leave("temporary"), "file temporary/left.tmp"),
    "leaves a file in the private folder": (_leave("private"), "file private/left.tmp"),
    "leaves a warehouse": (_leave("here/spark-warehouse"), "file here/spark-warehouse/left.tmp"),
    "writes to the record of looks": (lambda watch: _write(watch.around.here / ".margrave" / "looks.jsonl"), "file"),
}


@pytest.mark.parametrize("kind", LEAKS)
def test_the_watch_notices_a_product_that_leaks(
    kind: str, flock: Aviary, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    leak, channel = LEAKS[kind]
    apart = logging.getLogger("canaries.apart")
    monkeypatch.setattr(apart, "propagate", False)
    monkeypatch.setattr(boundary, "silence", nullcontext)
    monkeypatch.setattr(tabulation.tabulate, "count_tallies", lambda *given: leak(watch) or {})
    seen = watch.run(lambda: DOORS["counting"](flock, flock.places, watch), flock.canaries)
    assert seen.fault is None
    assert seen.leaks
    assert all(one.startswith(channel) for one in seen.leaks)


def test_the_watch_notices_an_error_that_quotes(flock: Aviary, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundary, "_withheld", lambda stage, fault: EngineError("engine-failed", "", str(fault)))
    monkeypatch.setattr(tabulation.tabulate, "count_tallies", _raise)
    seen = watch.run(lambda: DOORS["counting"](flock, flock.places, watch), flock.canaries)
    assert {one.split(":")[0] for one in seen.leaks} >= {"exception", "traceback"}


def test_the_watch_notices_a_door_without_its_guard(
    flock: Aviary, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tabulation.tabulate, "count_tallies", _raise)
    sources = open_dataset(flock.loaded.spec, flock.loaded.domain, flock.places)
    unguarded: Callable[..., Any] = tabulate.__wrapped__  # type: ignore[attr-defined]
    loaded = flock.loaded
    seen = watch.run(lambda: unguarded(loaded.spec, loaded.domain, sources, key=KEY), flock.canaries)
    channels = {one.split(":")[0] for one in seen.leaks}
    assert channels == {"exception", "exception's chain", "traceback"}


def _raise(*given: object) -> NoReturn:
    raise ValueError(f"near {SECRET}") from KeyError(SECRET)


def test_the_watch_reads_notes_attributes_and_groups_of_exceptions() -> None:
    noted = ValueError("x")
    noted.add_note(SECRET)
    assert SECRET in fault_traces(noted)["exception"]
    assert SECRET in fault_traces(MicrodataError("x", "x", "x", column=SECRET))["exception"]
    assert SECRET in fault_traces(ExceptionGroup("x", [ValueError(SECRET)]))["exception's chain"]
    hidden = ValueError("x")
    hidden.__context__, hidden.__suppress_context__ = ValueError(SECRET), True
    assert SECRET in fault_traces(hidden)["exception's chain"]


def test_the_watch_notices_a_private_folder_that_others_may_enter(
    flock: Aviary, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_up(*given: object) -> dict[str, object]:
        for folder in watch.around.private_folders():
            folder.chmod(0o755)
        watch.tell("later")
        return {}

    monkeypatch.setattr(tabulation.tabulate, "count_tallies", open_up)
    seen = watch.run(lambda: DOORS["counting"](flock, flock.places, watch), flock.canaries)
    assert seen.modes == {0o700, 0o755}


def test_the_watch_notices_that_the_name_of_a_file_is_returned(flock: Aviary, watch: Watch) -> None:
    seen = watch.run(lambda: {"place": Path(FILE)}, flock.canaries)
    assert seen.leaks == ["value: name of the file (raw)"]
