"""The command as a process of its own, ended in every way, and Spark: nothing of the canaries is told or left."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tabulation.engines import spark
from tabulation.errors import EngineError
from tabulation.findings import inspect
from tabulation.tabulate import Work, open_dataset, tabulate
from tests.tabulation.canaries import Aviary, aviary
from tests.tabulation.canary_runs import KEY, STRUCTURAL, Places, command
from tests.tabulation.canary_search import found_in, found_in_files
from tests.tabulation.canary_watch import Seen, Surroundings, Watch, surround, watching

ROOT = Path(__file__).parents[2]
PLAINLY = ["-m", "flows.cli"]
PAUSED = """
import sys, time
from pathlib import Path
from flows.cli import main
from tabulation.engines.duckdb import DuckDB
def fetch(self, table):
    spill = Path(self.connection.execute("SELECT current_setting('temp_directory')").fetchone()[0])
    kept = self.connection.execute("SELECT table_name FROM duckdb_tables()").fetchone()[0]
    self.connection.execute(f"COPY {kept} TO '{spill / 'part'}' (FORMAT parquet)")
    (spill / "part").rename(spill / "spilled")
    time.sleep(60)
DuckDB.fetch = fetch
sys.exit(main(sys.argv[1:]))
"""
"""The command, which stops for a minute once records are kept, with some of them in a file of the private folder."""
STOPPED, ENDED, PATIENCE = 130, 128 + signal.SIGTERM, 60.0


@pytest.fixture
def around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Surroundings:
    return surround(tmp_path / "around", monkeypatch)


@pytest.fixture(scope="module")
def flock(tmp_path_factory: pytest.TempPathFactory) -> Aviary:
    return aviary(tmp_path_factory.mktemp("aviary"), "parquet of text")


def start(flock: Aviary, around: Surroundings, how: list[str], places: Places | None = None) -> subprocess.Popen[bytes]:
    """Starts the command in the surroundings."""
    words = command(flock, places or flock.places, "--private", str(around.private))
    environment = {**os.environ, **around.environment, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, *how, *words], cwd=around.here, env=environment, stdout=pipe, stderr=pipe)


def finish(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    """Its exit code and everything it printed."""
    try:
        told, complained = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    return process.returncode, told + complained


def spilled(around: Surroundings, process: subprocess.Popen[bytes]) -> Path:
    """Waits until records lie in a file of the private folder."""
    begun = time.monotonic()
    while process.poll() is None and time.monotonic() - begun < PATIENCE:
        for path in around.private.rglob("spilled"):
            return path
        time.sleep(0.02)
    raise AssertionError(f"nothing was spilled: {finish(process)}")


def ended(flock: Aviary, around: Surroundings, number: signal.Signals) -> tuple[int, bytes]:
    """The command, stopped by a signal while records lie in its private folder."""
    process = start(flock, around, ["-c", PAUSED])
    try:
        path = spilled(around, process)
        assert found_in(path.read_bytes(), flock.canaries)
        (private,) = around.private_folders()
        inside = [private, *(below for below in private.rglob("*") if below.is_dir())]
        assert {stat.S_IMODE(folder.stat().st_mode) for folder in inside} == {0o700}
        process.send_signal(number)
    except BaseException:
        process.kill()
        raise
    return finish(process)


def test_a_process_that_passes_tells_nothing_and_leaves_its_findings(flock: Aviary, around: Surroundings) -> None:
    code, told = finish(start(flock, around, PLAINLY))
    assert code == 0, told
    assert found_in(told, flock.canaries) == []
    assert found_in_files(around.root, flock.canaries, spared=[around.findings]) == []
    assert found_in_files(around.findings, flock.canaries)
    assert around.leftovers() == []


@pytest.mark.parametrize("kind", ["the first line is a record"])
def test_a_process_that_is_refused_its_files_names_none(
    kind: str, flock: Aviary, around: Surroundings, tmp_path: Path
) -> None:
    spoil, reason = STRUCTURAL[kind]
    code, told = finish(start(flock, around, PLAINLY, spoil(flock, tmp_path / flock.folder.name)))
    assert code == 2
    assert reason.encode() in told
    assert found_in(told, flock.canaries) == []
    assert (around.leftovers(), found_in_files(around.root, flock.canaries)) == ([], [])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, ENDED), (signal.SIGINT, STOPPED)])
def test_a_process_that_is_asked_to_end_clears_up_and_says_nothing_of_the_records(
    number: signal.Signals, code: int, flock: Aviary, around: Surroundings
) -> None:
    found, told = ended(flock, around, number)
    assert found == code
    assert b"Traceback" not in told
    assert found_in(told, flock.canaries) == []
    assert (around.leftovers(), found_in_files(around.root, flock.canaries)) == ([], [])


def test_what_a_killed_process_leaves_is_swept_by_the_next_one(flock: Aviary, around: Surroundings) -> None:
    code, told = ended(flock, around, signal.SIGKILL)
    assert (code, found_in(told, flock.canaries)) == (-signal.SIGKILL, [])
    (left,) = around.private_folders()
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    assert found_in_files(left, flock.canaries)
    outside = [left, around.findings]
    assert found_in_files(around.root, flock.canaries, spared=outside) == []
    code, told = finish(start(flock, around, PLAINLY))
    assert (code, found_in(told, flock.canaries)) == (0, []), told
    assert (around.leftovers(), around.private_folders()) == ([], [])


STOPPED_WITHIN = """
import os, sys, time
from flows.cli import main
from tabulation.engines import duckdb
plain = duckdb.cut_lines
def cut(path):
    (batch,) = plain(path)
    yield batch.slice(0, 5)
    os.kill(os.getpid(), int(sys.argv[1]))
    time.sleep(0.5)
    yield batch.slice(5)
duckdb.cut_lines = cut
sys.exit(main(sys.argv[2:]))
"""
"""The command, which gets a signal while the engine reads lines."""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, ENDED), (signal.SIGINT, STOPPED)])
def test_a_process_that_is_asked_to_end_while_the_engine_works_ends_as_asked(
    number: signal.Signals, code: int, around: Surroundings, tmp_path: Path
) -> None:
    flock = aviary(tmp_path / "aviary", "csv")
    found, told = finish(start(flock, around, ["-c", STOPPED_WITHIN, str(int(number))]))
    assert (found_in(told, flock.canaries), around.leftovers()) == ([], [])
    assert found == code


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    return watching(tmp_path, monkeypatch)


def on_spark(flock: Aviary, watch: Watch, act: Callable[..., object]) -> object:
    loaded = flock.loaded
    sources = open_dataset(loaded.spec, loaded.domain, flock.places)
    work = Work(engine="spark", folder=watch.around.private, master="local[2]")
    return act(loaded.spec, loaded.domain, sources, work=work, tell=watch.tell)


@pytest.mark.slow
def test_spark_counts_without_telling_or_leaving_anything(flock: Aviary, watch: Watch) -> None:
    pytest.importorskip("pyspark")
    seen = watch.run(lambda: on_spark(flock, watch, lambda *a, **n: tabulate(*a, key=KEY, **n)), flock.canaries)
    assert seen.fault is None
    check_spark(seen, flock)


@pytest.mark.slow
def test_spark_fails_without_telling_or_leaving_anything(
    flock: Aviary, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")

    def fetch(self: spark.Spark, table: object) -> pa.Table:
        self.session.conf.set("spark.sql.ansi.enabled", "true")
        name = self._kept[-1] if self._kept else self.session.table(self.session.catalog.listTables()[0].name)
        cells = name.selectExpr(*(f"cast(cast({column} as string) as int)" for column in name.columns))
        return cells.toArrow()

    monkeypatch.setattr(spark.Spark, "fetch", fetch)
    seen = watch.run(lambda: on_spark(flock, watch, inspect), flock.canaries)
    assert isinstance(seen.fault, EngineError)
    check_spark(seen, flock)


def check_spark(seen: Seen, flock: Aviary) -> None:
    assert (seen.leftovers, seen.outside, seen.modes) == ([], [], {0o700})
    assert traces_of_java(flock) == []
    assert seen.leaks == []


def traces_of_java(flock: Aviary) -> list[str]:
    """What Java's processes write about themselves where no setting reaches."""
    return [one for folder in Path("/tmp").glob("hsperfdata_*") for one in found_in_files(folder, flock.canaries)]  # noqa: S108
