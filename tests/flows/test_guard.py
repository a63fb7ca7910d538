"""The guard: what goes wrong among records leaves no word of them in Prefect, in a log or on the terminal."""

from __future__ import annotations

import base64
import json
import pickle
import secrets
import signal
import sqlite3
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from flows.guard import EXIT, Kind, ReleaseFault, guarded
from flows.orchestration.home import DATABASE
from flows.server import Api
from flows.terminal import UserError
from release_specs.diagnostics import Diagnostic, Severity, SpecError
from tabulation.errors import EngineError, MicrodataError
from tests.flows import faults
from tests.flows.faults import ENDING, KINDS, SENTINEL, TASKS, Fault, quoted

ROOT = Path(__file__).parents[2]
CONSOLE_ONLY = {
    "in_a_thread", "put_away", "warned", "logged", "logged_badly", "logged_by_a_name", "in_a_child", "interrupt",
    "system_exit", "uncaught",
}  # fmt: skip
"""Faults that Prefect does not write down; all others must be found in its database when nothing guards them."""
CHANNELS = {"in_a_thread", "put_away", "warned", "logged", "logged_badly", "logged_by_a_name", "in_a_child"}
"""Faults that raise nothing: they pass by the guard, and the seal stops them."""


@dataclass(frozen=True)
class Searched:
    """What a run of the canaries left behind, by place: everything in which a word could stand."""

    word: str
    places: dict[str, bytes]

    def found(self, kind: str) -> set[str]:
        """The places that quote this kind's word."""
        return {place for place, content in self.places.items() if quoted(self.word, kind).encode() in content}


def start(mode: str, environ: dict[str, str], folder: Path) -> tuple[str, subprocess.Popen[str]]:
    """Starts the canaries in a process of their own, with a loud console."""
    word = f"{mode}{secrets.token_hex(4)}"
    temporary = folder / "tmp"
    temporary.mkdir(parents=True)
    loud = {"PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO", "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(ROOT / "tests" / "flows" / "canaries.py"), mode]
    with (folder / "console").open("w") as console:
        running = subprocess.Popen(
            command, env=environ | loud, cwd=folder, stdin=subprocess.PIPE, stdout=console, stderr=console, text=True
        )
    assert running.stdin is not None
    running.stdin.write(word)
    running.stdin.close()
    return word, running


def tables(database: Path) -> dict[str, bytes]:
    """All that the database holds, table by table."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as opened:
        opened.text_factory = bytes
        names = [name.decode() for (name,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = {name: opened.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}  # noqa: S608
    return {f"table {name}": b"\n".join(_plain(cell) for row in rows[name] for cell in row) for name in names}


def _plain(cell: Any) -> bytes:
    return cell if isinstance(cell, bytes) else str(cell).encode()


def files(*folders: Path) -> dict[str, bytes]:
    """Every file in these folders as it is; a result file also as what it was made from."""
    found = {}
    for base, path in ((folder, path) for folder in folders for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(base)
        found[f"file {name}"] = path.read_bytes()
        try:
            found[f"result {name}"] = base64.b64decode(json.loads(path.read_text())["result"])
        except (ValueError, KeyError, TypeError):
            continue
    return found


def search(api: Api, word: str, folder: Path) -> Searched:
    """All places, once everything that was sent has been written."""
    sentinel = quoted(word, SENTINEL).encode()
    wanted = ("table events", "table log", "table task_run_state")
    until = time.monotonic() + 30
    while True:
        found = tables(api.home / DATABASE)
        if all(sentinel in found[name] for name in wanted):
            return Searched(word, found | files(api.home, folder))
        assert time.monotonic() < until, [name for name in wanted if sentinel not in found[name]]
        time.sleep(0.5)


def searched(api: Api, environ: dict[str, str], folder: Path) -> dict[str, Searched]:
    """Both runs of all kinds of faults, side by side on one server, and all places searched."""
    runs = {mode: start(mode, environ, folder / mode) for mode in ("bare", "guarded")}
    for mode, (_, running) in runs.items():
        assert running.wait(120) == 1, (folder / mode / "console").read_text()[-3000:]
    return {mode: search(api, word, folder / mode) for mode, (word, _) in runs.items()}


def test_a_fault_is_quoted_everywhere_without_the_guard_and_nowhere_behind_it(
    prefect_api: Api, flow_environment: dict[str, str], tmp_path: Path
) -> None:
    canaries = searched(prefect_api, flow_environment, tmp_path)
    assert len(KINDS) >= 24
    assert_all_is_quoted(canaries["bare"])
    assert {kind: places for kind in KINDS if (places := canaries["guarded"].found(kind))} == {}
    assert_no_part_is_left(canaries["guarded"])
    assert_what_is_free_of_data_is_told(canaries["guarded"])


def assert_all_is_quoted(bare: Searched) -> None:
    """The search finds what is there: without the guard, every fault on the console and nearly all in the database."""
    places = {kind: bare.found(kind) for kind in KINDS}
    assert {kind for kind, found in places.items() if "file console" not in found} == set()
    in_database = {kind for kind, found in places.items() if any(place.startswith("table ") for place in found)}
    assert set(KINDS) - in_database == CONSOLE_ONLY
    seen = set().union(*places.values())
    assert {"table events", "table log", "table task_run_state", "table flow_run_state"} <= seen
    assert any(place.startswith("result ") for place in seen)
    assert any(place.startswith("file prefect/prefect.db") for place in seen)


def assert_no_part_is_left(hidden: Searched) -> None:
    """Beside the sentinel, which is bare, no place knows the word that all faults of this run quote."""
    sentinel = quoted(hidden.word, SENTINEL).encode()
    rest = {place: content.replace(sentinel, b"") for place, content in hidden.places.items()}
    assert [place for place, content in rest.items() if hidden.word.encode() in content] == []


def assert_what_is_free_of_data_is_told(hidden: Searched) -> None:
    """Nobody is left without a word."""
    states = hidden.places["table task_run_state"]
    for told in (b"the disk is full", b"there is no column 'age'", b"E-CANARY: the memory did not suffice"):
        assert told in states
    console = hidden.places["file console"].decode()
    assert IN_A_THREAD in console
    assert console.endswith("margrave: E-CANARY: it failed; its own words may quote records and are withheld\n")


def raised(work: Callable[[], object]) -> BaseException:
    """What comes out of a call."""
    try:
        work()
    except BaseException as fault:  # noqa: BLE001 - all of them are looked at
        return fault
    pytest.fail("nothing was raised")


@pytest.mark.parametrize("fault", [fault for fault in (*TASKS, *ENDING) if fault.__name__ not in CHANNELS])
def test_nothing_is_attached_to_what_leaves_the_guard(fault: Fault) -> None:
    bare, told = raised(partial(fault, "Q7word")), raised(partial(guarded("E-1")(fault), "Q7word"))
    assert "Q7word" in "".join(traceback.format_exception(bare)) + repr(bare)
    assert (told.__cause__, told.__context__, getattr(told, "__notes__", [])) == (None, None, [])
    assert "Q7word" not in "".join(traceback.format_exception(told)) + repr(told) + repr(vars(told)) + repr(told.args)
    frames = [frame for frame, _ in traceback.walk_tb(told.__traceback__)][1:]
    assert [frame.f_code.co_name for frame in frames] == ["closed"]
    assert [name for frame in frames for name, value in frame.f_locals.items() if "Q7word" in repr(value)] == []
    assert b"Q7word" not in pickle.dumps(told)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (MemoryError(), Kind.MEMORY),
        (TimeoutError(), Kind.TIMEOUT),
        (FileNotFoundError(), Kind.IO),
        (ValueError(), Kind.ERROR),
        (type("Odd", (BaseException,), {})(), Kind.ERROR),
        (type("Known", (UserError,), {})("x"), Kind.ERROR),
    ],
)
def test_a_fault_is_told_as_one_of_a_closed_list(fault: BaseException, kind: Kind) -> None:
    told = raised(guarded("E-1")(partial(_raise, fault)))
    assert isinstance(told, ReleaseFault)
    assert (told.code, told.kind) == ("E-1", kind)
    again = pickle.loads(pickle.dumps(told))  # noqa: S301 - our own: it crosses from a child process
    assert str(again) == str(told) == f"E-1: {kind}; its own words may quote records and are withheld"


def _raise(fault: BaseException) -> None:
    raise fault


def test_the_guard_of_the_inner_step_is_the_one_that_is_told() -> None:
    told = raised(guarded("E-OUTER")(guarded("E-INNER")(partial(faults.memory, "x"))))
    assert isinstance(told, ReleaseFault)
    assert (told.code, told.kind) == ("E-INNER", Kind.MEMORY)


@pytest.mark.parametrize(
    "known",
    [
        UserError("choose another folder"),
        MicrodataError("no-column", "persons", "no column", column="age"),
        EngineError("engine-failed", "", "the engine stopped"),
        SpecError([Diagnostic("a.yaml", 1, 2, Severity.ERROR, "code", "tables", "message")]),
    ],
)
def test_an_error_that_is_free_of_data_keeps_its_words(known: Exception) -> None:
    known.add_note("Q7word")
    told = raised(guarded("E-1")(partial(_raise, known)))
    assert told is not known
    assert (type(told), str(told), told.args, getattr(told, "__notes__", [])) == (
        type(known),
        str(known),
        known.args,
        [],
    )
    attached = vars(known).copy()
    del attached["__notes__"]
    assert vars(told) == attached


class RefusedError(Exception):
    """An error of another room that is free of data."""

    def bare(self) -> RefusedError:
        return RefusedError(*self.args)


def test_another_rooms_error_is_told_where_it_is_named() -> None:
    assert str(raised(guarded("E-1", tells=(RefusedError,))(partial(_raise, RefusedError("the budget is spent"))))) == (
        "the budget is spent"
    )
    assert isinstance(raised(guarded("E-1")(partial(_raise, RefusedError("the budget is spent")))), ReleaseFault)
    with pytest.raises(TypeError, match="OSError cannot be told: it has no method 'bare'"):
        guarded("E-1", tells=(OSError,))


@pytest.mark.parametrize(
    ("code", "left"),
    [("text", EXIT), (None, EXIT), (12345, EXIT), (True, EXIT), (128 + signal.SIGTERM, 143), (130, 130)],
)
def test_an_exit_keeps_its_code_only_where_a_signal_called_for_it(code: object, left: int) -> None:
    told = raised(guarded("E-1")(partial(_raise, SystemExit(code))))
    assert isinstance(told, SystemExit)
    assert told.code == left


def test_signals_of_prefect_pass_without_words() -> None:
    from prefect.exceptions import Abort, Pause, TerminationSignal

    ended = raised(guarded("E-1")(partial(_raise, TerminationSignal(signal.SIGTERM))))
    assert isinstance(ended, TerminationSignal)
    assert ended.signal == signal.SIGTERM
    for kind in (Abort, Pause):
        told = raised(guarded("E-1")(partial(_raise, kind("Q7word"))))
        assert (type(told), told.args) == (kind, ())


def test_work_that_outlives_the_call_cannot_be_guarded() -> None:
    async def later() -> None: ...

    def bit_by_bit() -> Any:
        yield

    for function in (later, bit_by_bit):
        with pytest.raises(TypeError, match="does its work after it has returned"):
            guarded("E-1")(function)


def test_a_guarded_function_gives_back_what_it_is_given_to_give() -> None:
    @guarded("E-1")
    def added(first: int, *, second: int) -> int:
        """Adds."""
        return first + second

    assert added(1, second=2) == 3
    assert (added.__name__, added.__doc__) == ("added", "Adds.")


SEALED = """
import logging, resource, sys, threading, warnings
from flows.guard import seal
from flows.terminal import UserError
from tests.flows import faults
if "basic" in sys.argv:
    logging.basicConfig()
resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
seal()
seal()
for channel in (faults.warned, faults.logged, faults.logged_badly, faults.put_away, faults.in_a_thread):
    channel("Q7word")
late = logging.StreamHandler()
late.setFormatter(logging.Formatter("%(name)s %(pathname)s %(message)s"))
logging.getLogger("somelibrary").addHandler(late)
faults.logged("Q7word")
logging.getLogger("somelibrary").removeHandler(late)
logging.getLogger("margrave.stages").warning("counting")
logging.getLogger("margrave.stages").warning("%d", "Q7word")
assert resource.getrlimit(resource.RLIMIT_CORE)[0] == 0
threading.Thread(target=sys.exit, args=("Q7word",)).start()
{"quote": faults.value_error, "stop": faults.interrupt, "tell": faults.user_error}[sys.argv[1]]("Q7word")
"""
IN_PASSING = "margrave: an error while something was put away: its own words may quote records and are withheld\n"
IN_A_THREAD = "margrave: an error in a thread: its own words may quote records and are withheld\n"


@pytest.mark.parametrize(
    ("last", "told"),
    [
        ("quote", "margrave: internal error: its own words may quote records and are withheld\n"),
        ("stop", "margrave: stopped\n"),
        ("tell", "margrave: the disk is full\n"),
    ],
)
@pytest.mark.parametrize("log", ["basic", "none"])
def test_a_sealed_process_speaks_only_its_own_words(last: str, told: str, log: str) -> None:
    environ = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", SEALED, last, log], env=environ, capture_output=True, check=False, text=True, timeout=60
    )
    own = "WARNING:margrave.stages:counting\n" if log == "basic" else ""
    late = "withheld  (a library's words are withheld)\n"
    assert done.stderr == IN_PASSING + IN_A_THREAD + late + own + told
    assert done.returncode != 0
