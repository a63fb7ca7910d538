"""The one door: what libraries say stays inside, in every thread, and nothing is left switched off."""

from __future__ import annotations

import logging
import threading
import warnings
from pathlib import Path

import pytest

from release_specs.language.microdata import ReadOptions
from tabulation.boundary import confidential, silence
from tabulation.errors import EngineError, MicrodataError
from tabulation.lines import Header
from tabulation.sources import Kind, ParquetFiles, TextFile


def test_a_fault_is_told_by_its_stage_and_kind_alone() -> None:
    @confidential("counting")
    def work(secret: str) -> None:
        raise KeyError(secret)

    with pytest.raises(EngineError) as caught:
        work("canary")
    assert caught.value.code == "engine-failed"
    assert "counting: the engine stopped (KeyError)" in str(caught.value)
    assert "canary" not in str(caught.value)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_a_structural_fault_keeps_its_words_and_loses_its_frames() -> None:
    @confidential("opening")
    def work() -> None:
        canary = "canary"
        raise MicrodataError("column-missing", "people", "no column 'age'", column=canary[:0] or "age")

    with pytest.raises(MicrodataError) as caught:
        work()
    frames = []
    step = caught.value.__traceback__
    while step is not None:
        frames.append(step.tb_frame.f_code.co_name)
        step = step.tb_next
    assert (str(caught.value), caught.value.column) == ("no column 'age'", "age")
    assert "work" not in frames


def test_memory_that_did_not_suffice_is_told() -> None:
    @confidential("counting")
    def work() -> None:
        raise MemoryError

    with pytest.raises(EngineError) as caught:
        work()
    assert caught.value.code == "out-of-memory"


def test_silence_in_two_threads_ends_with_the_last_of_them(caplog: pytest.LogCaptureFixture) -> None:
    entered, leave, left = threading.Event(), threading.Event(), threading.Event()

    def other() -> None:
        with silence():
            entered.set()
            leave.wait(10)
        left.set()

    filters = list(warnings.filters)
    thread = threading.Thread(target=other)
    with silence():
        thread.start()
        entered.wait(10)
    logging.getLogger("library").error("while the other is silent")
    leave.set()
    thread.join()
    logging.getLogger("library").error("afterwards")
    assert left.is_set()
    assert caplog.messages == ["afterwards"]
    assert logging.root.manager.disable == 0
    assert list(warnings.filters) == filters


def test_sources_do_not_show_where_they_are() -> None:
    secret = Path("canary") / "file.csv"
    assert "canary" not in repr(TextFile(secret, Header("a", ("a",)), ReadOptions()))
    assert "canary" not in repr(ParquetFiles((secret,), {"a": Kind.TEXT}, ("p",), (("canary",),)))
