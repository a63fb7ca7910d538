"""Watches one run of the room and gathers every trace it leaves, so that canaries can be looked for in all of them.

Traces are: what is written to the file descriptors 1 and 2, the records of every logger at every level, warnings, what
Python's hooks for lost exceptions get, the exception with its texts, chain, notes, traceback and the variables of every
frame, the value that is returned, and every file that is left in the temporary, home, working and private folders.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import pytest

from tabulation.private import PREFIX
from tests.tabulation.canaries import Canary
from tests.tabulation.canary_search import files_below, found_in, found_in_files

TESTS = Path(__file__).parent
OWN_FRAMES = ("canar", "test_canar")
"""Only frames of the canaries' own files are left out of the search: they know the canaries because they plant them."""
LOOKS = Path(".margrave") / "looks.jsonl"
CONFIDENTIAL = "confidential"


@dataclass(frozen=True)
class Surroundings:
    """Fresh folders in which a run may leave something: all are searched, but for the findings."""

    root: Path

    @property
    def here(self) -> Path:
        """The working directory of the run."""
        return self.root / "here"

    @property
    def private(self) -> Path:
        """Where files spill."""
        return self.root / "private"

    @property
    def findings(self) -> Path:
        """The one place where the custodian reads of records."""
        return self.here / CONFIDENTIAL

    @property
    def environment(self) -> dict[str, str]:
        """What points a process at these folders."""
        return {"TMPDIR": str(self.root / "temporary"), "HOME": str(self.root / "home")}

    def leftovers(self) -> list[str]:
        """Every file that is left, but for the findings and the record of looks."""
        return [
            str(path.relative_to(self.root))
            for path in files_below(self.root)
            if not path.is_dir() and path != self.here / LOOKS and not path.is_relative_to(self.findings)
        ]

    def private_folders(self) -> list[Path]:
        """The private folders that there are now."""
        return [path for path in files_below(self.root) if path.name.startswith(PREFIX)]


def watching(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """A watch over this process, which is moved into fresh folders until the test ends."""
    (folder / "kept").mkdir()
    return Watch(surround(folder / "around", monkeypatch), folder / "kept")


def surround(root: Path, monkeypatch: pytest.MonkeyPatch) -> Surroundings:
    """Moves this process into fresh folders until the test ends."""
    around = Surroundings(root)
    for name in ("here", "temporary", "home", "private"):
        (root / name).mkdir(parents=True)
    for name, value in around.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(around.here)
    return around


@dataclass
class Seen:
    """What was seen of a run."""

    traces: dict[str, str] = field(default_factory=dict)
    value: Any = None
    fault: BaseException | None = None
    stages: list[str] = field(default_factory=list)
    modes: set[int] = field(default_factory=set)
    outside: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)


class Watch:
    """Watches runs in some surroundings; `kept` is a folder for what they print."""

    def __init__(self, around: Surroundings, kept: Path) -> None:
        self.around, self._kept = around, kept
        self.seen = Seen()

    def tell(self, stage: str) -> None:
        """Takes the name of a stage, and looks at the private folder while it is in use."""
        self.seen.stages.append(stage)
        private = self.around.private_folders()
        self.seen.modes |= {stat.S_IMODE(path.stat().st_mode) for path in private}
        self.seen.outside += [
            name for name in self.around.leftovers() if not any(one.name in Path(name).parts for one in private)
        ]

    def run(self, act: Callable[[], Any], canaries: tuple[Canary, ...]) -> Seen:
        """Runs something to its end, whatever that is, and searches every trace of it for the canaries."""
        self.seen = seen = Seen()
        with ExitStack() as stack:
            streams = stack.enter_context(_streams(self._kept))
            heard = stack.enter_context(_ears())
            lost = stack.enter_context(_lost())
            warned = stack.enter_context(warnings.catch_warnings(record=True))
            warnings.simplefilter("always")
            try:
                seen.value = act()
            except BaseException as fault:  # noqa: BLE001 - whatever it is, it is looked at
                seen.fault = fault
        seen.traces = {
            **streams(),
            "logging": "\n".join(heard),
            "lost exceptions": "\n".join(lost),
            "warnings": "\n".join(f"{one.message!r} {one.filename} {one.source!r}" for one in warned),
            "value": repr(seen.value),
        }
        if seen.fault is not None:
            seen.traces |= fault_traces(seen.fault)
        for channel, text in seen.traces.items():
            seen.leaks += [f"{channel}: {one}" for one in found_in(text.encode(errors="replace"), canaries)]
        spared = () if seen.value is None and seen.fault is not None else (self.around.findings,)
        seen.leaks += [f"file {one}" for one in found_in_files(self.around.root, canaries, spared=spared)]
        seen.leftovers = self.around.leftovers()
        return seen


def fault_traces(fault: BaseException) -> dict[str, str]:
    """Everything that an exception carries out of the room."""
    chain = list(_chain(fault, set()))
    own = [
        f"{one!s}\n{one!r}\n{one.args!r}\n{getattr(one, '__notes__', [])!r}\n{_attributes(one)}"
        for one in chain
        if one is not fault
    ]
    return {
        "exception": f"{fault!s}\n{fault!r}\n{fault.args!r}\n{getattr(fault, '__notes__', [])!r}\n{_attributes(fault)}",
        "exception's chain": "\n".join(own),
        "traceback": "".join(traceback.format_exception(fault)),
        "frames": "\n".join(text for one in chain for text in _variables(one.__traceback__)),
    }


def _chain(fault: BaseException | None, met: set[int]) -> Iterator[BaseException]:
    if fault is None or id(fault) in met:
        return
    met.add(id(fault))
    yield fault
    inner = fault.exceptions if isinstance(fault, BaseExceptionGroup) else ()
    for one in (fault.__cause__, fault.__context__, *inner):
        yield from _chain(one, met)


def _attributes(fault: BaseException) -> str:
    return repr({name: value for name, value in vars(fault).items() if name != "__notes__"})


def _variables(step: TracebackType | None) -> Iterator[str]:
    """The variables of every frame that is not of the canaries' own files."""
    for frame, _ in traceback.walk_tb(step):
        path = Path(frame.f_code.co_filename)
        if path.parent == TESTS and path.name.startswith(OWN_FRAMES):
            continue
        for name, value in frame.f_locals.items():
            yield f"{path.name} {frame.f_code.co_name} {name} = {_shown(value)}"


def _shown(value: object) -> str:
    try:
        return repr(value)
    except Exception as fault:  # noqa: BLE001 - what cannot be shown cannot leak here
        return f"no repr: {type(fault).__name__}"


@contextmanager
def _streams(kept: Path) -> Iterator[Callable[[], dict[str, str]]]:
    """Sends the file descriptors 1 and 2, and Python's streams upon them, to files that are no part of the search."""
    names, before = ("stdout", "stderr"), (sys.stdout, sys.stderr)
    for stream in before:
        stream.flush()
    doubled = [os.dup(number) for number in (1, 2)]
    files: list[TextIO] = [(kept / name).open("w", encoding="utf-8", errors="backslashreplace") for name in names]
    for number, file in zip((1, 2), files, strict=True):
        os.dup2(file.fileno(), number)
    sys.stdout, sys.stderr = files
    try:
        yield lambda: {name: (kept / name).read_text(encoding="utf-8", errors="replace") for name in names}
    finally:
        sys.stdout, sys.stderr = before
        for number, (file, old) in enumerate(zip(files, doubled, strict=True), start=1):
            file.close()
            os.dup2(old, number)
            os.close(old)


class _Ears(logging.Handler):
    """Keeps whatever any logger says, with everything that a formatter could get hold of."""

    def __init__(self, heard: list[str]) -> None:
        super().__init__(logging.NOTSET)
        self.heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(f"{record.name}: {record.getMessage()} {record.__dict__!r}")
        if record.exc_info and record.exc_info[1] is not None:
            self.heard += fault_traces(record.exc_info[1]).values()


@contextmanager
def _ears() -> Iterator[list[str]]:
    """Listens at every level to the root and to every logger that libraries have made, each by itself."""
    heard: list[str] = []
    ears = _Ears(heard)
    known = [logging.getLogger(name) for name in (*logging.root.manager.loggerDict, *LIBRARIES)]
    loggers = list(dict.fromkeys([logging.root, *known]))
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(ears)
        logger.setLevel(logging.DEBUG)
    try:
        yield heard
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(ears)
            logger.setLevel(level)


LIBRARIES = ("duckdb", "ibis", "pandera", "pyarrow", "pandas", "sqlglot", "py4j", "pyspark", "adbc_driver_manager")


@contextmanager
def _lost() -> Iterator[list[str]]:
    """What would be printed of exceptions that nobody catches, in destructors and in threads."""
    lost: list[str] = []
    before = sys.unraisablehook, threading.excepthook

    def keep(gone: Any) -> None:
        lost.append(f"{gone.exc_value!r} {getattr(gone, 'object', None)!r}")
        if gone.exc_value is not None:
            lost.extend(fault_traces(gone.exc_value).values())

    sys.unraisablehook, threading.excepthook = keep, keep
    try:
        yield lost
    finally:
        sys.unraisablehook, threading.excepthook = before
