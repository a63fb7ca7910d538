"""The named points at which a process of the tests kills itself: functions of the product, wrapped before it starts.

The product knows nothing of this. A point is a function and a side of it (before, after, or between two parts of what
it yields); a stage is a point too, and so is the n-th time that a file is touched at all.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from flows.stored import FILE
from reporting.folder import PREFIX

Reached = Callable[[], None]
When = Callable[..., bool]


@dataclass(frozen=True)
class Point:
    """A side of a function. `when` sees its arguments; it is the n-th such call that counts."""

    function: str
    side: str
    when: When = lambda *_, **__: True
    nth: int = 1


def _kind(kind: str) -> When:
    return lambda ledger, entered, *_, **__: entered == kind


def _entry(kind: str) -> When:
    return lambda writing, entry: json.loads(entry.text)["kind"] == kind


def _named(start: str) -> When:
    return lambda path, *_, **__: Path(path).name.startswith(start)


def _opened(part: str) -> When:
    """What a file's number stands for has this in its path."""
    return lambda number, *_, **__: part in str(Path(f"/proc/self/fd/{number}").readlink())


def _run_folder(number: int) -> bool:
    """The number is that of a run's folder, in which the measurements have their name."""
    path = Path(f"/proc/self/fd/{number}").readlink()
    return path.parent.name == "runs" and (path / FILE).exists()


def _inside(part: str) -> When:
    return lambda name, *, dir_fd=None, **__: dir_fd is not None and _opened(part)(dir_fd)


EARLY_KINDS, LATE_KINDS = ("granted", "reserved", "identified", "charged", "attempted"), ("stored", "published")
EARLY_STAGES = ("opening the microdata", "reading and counting", "paying", "drawing and storing")
LATE_STAGES = ("estimating", "writing tables", "publishing")


def _entries(kinds: tuple[str, ...]) -> dict[str, Point]:
    """Around every entry of the ledger, and inside its transaction."""
    enter, append = "flows.ledger.ledger:Ledger._enter", "flows.ledger.sqlite_store:_Writing.append"
    return {
        **{f"before it is {kind}": Point(enter, "before", _kind(kind)) for kind in kinds},
        **{f"in the transaction, {kind}": Point(append, "after", _entry(kind)) for kind in kinds},
        **{f"after it is {kind}": Point(enter, "after", _kind(kind)) for kind in kinds},
    }


def _stages(stages: tuple[str, ...]) -> dict[str, Point]:
    return {f"stage, {stage}": Point("stage", "before", partial(str.__eq__, stage)) for stage in stages}


EARLY: dict[str, Point] = {
    **_entries(EARLY_KINDS),
    **_stages(EARLY_STAGES),
    "the spec copied in part": Point("flows.preparing:write_spec_files", "after"),
    "the order not yet on disk": Point("os:fsync", "before", _opened(".order.json")),
    "the order not yet in place": Point("pathlib:Path.replace", "before", _named(".order")),
    "the order in place": Point("pathlib:Path.replace", "after", _named(".order")),
    "the microdata noted in part": Point("os:fsync", "before", _opened(".dataset.json")),
    "the microdata noted": Point("flows.workplace:Workplace.note_dataset", "after"),
    "the fingerprint taken": Point("flows.measuring:dataset_fingerprint", "after"),
    "the records counted": Point("flows.measuring:tabulate", "after"),
    "the first random bit": Point("mechanisms.randomness:CipherBits._rekey", "before"),
    "the second query's first bit": Point("mechanisms.randomness:CipherBits._rekey", "before", nth=2),
    "the measurements written in part": Point("flows.stored:_chunks", "between", nth=2),
    "the measurements not yet on disk": Point("os:fsync", "before", _opened("(deleted)")),
    "the measurements not yet linked": Point("os:link", "before"),
}
"""Until the measurements have their name: a process that is killed here draws again, or for the first time."""

LATE: dict[str, Point] = {
    **_entries(LATE_KINDS),
    **_stages(LATE_STAGES),
    "the measurements linked": Point("os:link", "after"),
    "the measurements linked, not yet on disk": Point("os:fsync", "before", _run_folder),
    "the measurements stored, not entered": Point("flows.measuring:write_stored", "after"),
    "the microdata not yet forgotten": Point("flows.workplace:Workplace.forget_dataset", "before"),
    "the microdata forgotten": Point("flows.workplace:Workplace.forget_dataset", "after"),
    "no folder for tables yet": Point("pathlib:Path.mkdir", "before", _named(".candidate")),
    "a folder for tables made": Point("pathlib:Path.mkdir", "after", _named(".candidate")),
    "tables written": Point("reporting.replay:MadeTables.write", "after"),
    "the tables not yet on disk": Point("os:fsync", "before", _opened("/.candidate/"), nth=2),
    "tables not yet in place": Point("pathlib:Path.replace", "before", _named(".candidate")),
    "tables in place": Point("pathlib:Path.replace", "after", _named(".candidate")),
    "no folder aside yet": Point("pathlib:Path.mkdir", "before", _named(PREFIX)),
    "a folder aside made": Point("pathlib:Path.mkdir", "after", _named(PREFIX)),
    "the release copied in part": Point("shutil:copyfile", "after", nth=2),
    "the manifest not yet written": Point("reporting.folder:write_manifest", "before"),
    "the manifest written": Point("reporting.folder:write_manifest", "after"),
    "the release not yet on disk": Point("os:fsync", "before", _opened(f"/{PREFIX}")),
    "the release verified aside": Point("reporting.folder:check_release", "after"),
    "the release not yet renamed": Point("pathlib:Path.rename", "before", _named(PREFIX)),
    "the release renamed": Point("pathlib:Path.rename", "after", _named(PREFIX)),
    "the tables put aside": Point("pathlib:Path.replace", "after", _named("candidate")),
    "the tables removed in part": Point("os:unlink", "after", _inside(".candidate")),
}
"""From then on: whatever is killed here, nothing is drawn again."""

POINTS = EARLY | LATE


def arm(name: str, nth: int, act: Callable[[], object]) -> None:
    """Calls `act` when a point is reached, or, for the name 'files', at the n-th time that a file is touched."""
    if name == "files":
        _at_files(nth, act)
        return
    point = POINTS[name]
    reached = _counted(point.nth + nth - 1, act)
    if point.function == "stage":
        _at_stage(point, reached)
    else:
        wrap(point.function, partial(_sided, point, reached))


def die() -> None:
    """Ends this process as nothing can prevent."""
    os.kill(os.getpid(), signal.SIGKILL)


def wrap(function: str, wrapper: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Puts something in the place of a function that is named as 'module:path'."""
    place, _, name = function.replace(":", ".").rpartition(".")
    owner = resolve_name(place)
    setattr(owner, name, wrapper(getattr(owner, name)))


def _sided(point: Point, reached: Reached, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def wrapped(*args: Any, **more: Any) -> Any:
        if point.side == "between":
            return _between(function(*args, **more), reached)
        counts = point.when(*args, **more)
        if counts and point.side == "before":
            reached()
        found = function(*args, **more)
        if counts and point.side == "after":
            reached()
        return found

    return wrapped


def _between(parts: Iterator[Any], reached: Reached) -> Iterator[Any]:
    for part in parts:
        yield part
        reached()


def _at_stage(point: Point, reached: Reached) -> None:
    from flows import pipeline, terminal

    def tell(stage: str) -> None:
        if point.when(stage):
            reached()

    pipeline.finish = partial(pipeline.finish, tell=tell)
    terminal.Stages.tell = lambda _, stage: tell(stage)


def _counted(nth: int, act: Callable[[], object]) -> Reached:
    left = [nth]

    def reached() -> None:
        left[0] -= 1
        if left[0] == 0:
            act()

    return reached


def _at_files(nth: int, act: Callable[[], object]) -> None:
    touched = _counted(nth, act)

    def hook(event: str, _: object) -> None:
        if event == "open" or event.startswith(("os.", "sqlite3.", "shutil.")):
            touched()

    sys.addaudithook(hook)
