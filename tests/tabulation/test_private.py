"""Private folders: nobody else looks in, and nothing stays behind."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tabulation.private import LOCK, PREFIX, YOUNG, asked_to_end, private_folder

ROOT = Path(__file__).parents[2]
WAITING = """
import sys, time
from pathlib import Path
from tabulation.private import private_folder
with private_folder(Path(sys.argv[1])) as folder:
    (folder / "spill").write_text("confidential")
    print("ready", flush=True)
    time.sleep(60)
"""


def test_a_private_folder_is_closed_to_others_and_gone_afterwards(tmp_path: Path) -> None:
    with private_folder(tmp_path / "within") as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "spill").write_text("x", encoding="utf-8")
    assert list((tmp_path / "within").iterdir()) == []


def test_it_is_gone_after_a_failure(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), private_folder(tmp_path) as folder:
        (folder / "spill").write_text(str(1 / 0), encoding="utf-8")
    assert list(tmp_path.iterdir()) == []


def started(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_it_is_gone_after_a_signal(number: signal.Signals, tmp_path: Path) -> None:
    process = started(tmp_path)
    process.send_signal(number)
    process.communicate(timeout=30)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next_one_and_what_a_living_one_has_is_not(tmp_path: Path) -> None:
    killed, living = started(tmp_path), started(tmp_path)
    killed.kill()
    killed.communicate(timeout=30)
    assert len(list(tmp_path.glob(f"{PREFIX}*"))) == 2
    time.sleep(YOUNG)
    with private_folder(tmp_path) as folder:
        left = set(tmp_path.glob(f"{PREFIX}*")) - {folder}
        assert len(left) == 1
    living.terminate()
    living.communicate(timeout=30)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}other").mkdir()
    with private_folder(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [f"{PREFIX}other"]


def test_it_works_in_a_thread_and_leaves_the_signals_as_they_were(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen: list[bool] = []

    def work() -> None:
        with private_folder(tmp_path) as folder:
            seen.append((folder / LOCK).exists())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [True]
    with private_folder(tmp_path):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_end_that_was_asked_for_is_remembered_once(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), private_folder(tmp_path):
        os.kill(os.getpid(), signal.SIGINT)
    assert isinstance(asked_to_end(), KeyboardInterrupt)
    assert asked_to_end() is None
