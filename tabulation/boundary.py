"""The one door: whatever goes wrong in this room leaves as a coded error that quotes nothing.

Libraries quote values, rows and paths in their exceptions, and a traceback carries the variables of every frame. So a
public function of this room is wrapped in `confidential`: the fault is caught, its kind noted, and a new error is
raised after the `except` block has ended, with no cause, no context and no frame from inside.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from tabulation.errors import EngineError, MicrodataError
from tabulation.private import asked_to_end

P = ParamSpec("P")
R = TypeVar("R")


def confidential(stage: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Wraps a function that sees records; `stage` is all that is told of a fault that is not a structural one."""

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            fault: BaseException
            asked_to_end()
            try:
                with silence():
                    return function(*args, **kwargs)
            except MicrodataError as known:
                fault = known.bare()
            except MemoryError:
                fault = EngineError("out-of-memory", "", f"{stage}: the memory did not suffice; {MORE_MEMORY}")
            except Exception as unknown:  # noqa: BLE001 - whatever it says may quote a record
                fault = asked_to_end() or _withheld(stage, unknown)
            del args, kwargs
            raise fault

        return guarded

    return wrap


MORE_MEMORY = "give more of it, or choose a private folder on a disk with more space"


def _withheld(stage: str, fault: Exception) -> MicrodataError:
    """An error that names the stage and the kind of fault; the kind is a class of a library, not of the data."""
    kind = type(fault).__name__
    if "OutOfMemory" in kind:
        return EngineError("out-of-memory", "", f"{stage}: the memory did not suffice; {MORE_MEMORY}")
    message = (
        f"{stage}: the engine stopped ({kind}). Its own words may quote records and are withheld. Nothing was charged; "
        "check that the files can be read and that the disk has space, then run again"
    )
    return EngineError("engine-failed", "", message)


@contextmanager
def silence() -> Iterator[None]:
    """While it lasts nobody logs or warns: libraries quote what they were given. Stages are told another way.

    Several threads may be silent at once: the first turns logging and warnings off, the last turns them on again.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


_lock = threading.Lock()
_silent: list[tuple[int, list[Any]]] = []
"""What logging and warnings were like before, once for each that is silent."""


def _enter() -> None:
    with _lock:
        _silent.append((logging.root.manager.disable, list(warnings.filters)))
        if len(_silent) == 1:
            logging.disable(logging.CRITICAL)
            warnings.simplefilter("ignore")


def _leave() -> None:
    with _lock:
        level, filters = _silent[0]
        _silent.pop()
        if not _silent:
            logging.disable(level)
            warnings.filters[:] = filters  # type: ignore[index]
