"""What keeps confidential text out of Prefect, logs and the terminal.

Prefect writes the text of every exception into its database, events and logs. So a function that sees records is
`guarded`: whatever goes wrong inside leaves as a fault of a closed list, raised anew, with no cause, context or notes
and no frame from inside. Five channels pass by any guard (threads, `__del__`, warnings, loggers of libraries, child
processes); `seal` closes those of a process, and a guarded function that runs in a child process seals it first.

The rule for child processes: every function that is given to one is itself guarded.

Not covered: variables in the frames of whoever called (so no crash reporter that shows them), what native code writes
to the terminal by itself, and that a fault happened at all.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import multiprocessing
import resource
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import wraps
from typing import Any, ParamSpec, Protocol, Self, TypeVar, cast

from flows.terminal import UserError
from release_specs.diagnostics import SpecError
from tabulation.errors import EngineError, MicrodataError

P = ParamSpec("P")
R = TypeVar("R")
WITHHELD = "its own words may quote records and are withheld"
EXIT = 70
ENDED_BY_SIGNAL = frozenset(128 + number for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM))
OWN_LOGGERS = ("prefect", "margrave")


class Kind(StrEnum):
    """All that is told of a fault that nobody foresaw."""

    MEMORY = "the memory did not suffice"
    TIMEOUT = "it took too long"
    IO = "reading or writing failed"
    ERROR = "it failed"


class ReleaseFault(Exception):  # noqa: N818 - an outcome, named as it is spoken of
    """A confidential step failed: where, by its code, and in which way, of a closed list."""

    def __init__(self, code: str, kind: Kind) -> None:
        super().__init__(code, kind)
        self.code, self.kind = code, kind

    def __str__(self) -> str:
        return f"{self.code}: {self.kind}; {WITHHELD}"

    def bare(self) -> Self:
        """The same fault without whatever was attached to it."""
        return type(self)(self.code, self.kind)


class Telling(Protocol):
    """An error whose words are free of data by construction; `bare` is the same one with nothing attached."""

    def bare(self) -> Exception:
        """The same error anew: no cause, context, notes or frames."""
        ...


def guarded(code: str, *, tells: tuple[type[Exception], ...] = ()) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Wraps a function that sees records; `code` names the step in whatever is told of a fault.

    Our own errors that are free of data keep their words, and so do those of the exact types `tells`, each with a
    method `bare`. Whoever stops the work (a signal, Ctrl-C, Prefect) still does, without words.
    """
    if mute := [kind.__name__ for kind in tells if not hasattr(kind, "bare")]:
        raise TypeError(f"{', '.join(mute)} cannot be told: it has no method 'bare'")

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(inspect.unwrap(function)):
            raise TypeError(f"{function.__qualname__} does its work after it has returned, where no guard stands")

        @wraps(function)
        def closed(*args: P.args, **kwargs: P.kwargs) -> R:
            if multiprocessing.parent_process() is not None:
                seal()
            try:
                return function(*args, **kwargs)
            except BaseException as fault:  # noqa: BLE001 - whatever it says may quote a record
                anew = _anew(fault, code, tells)
            del args, kwargs
            raise anew

        return closed

    return wrap


def _anew(fault: BaseException, code: str, tells: tuple[type[Exception], ...]) -> BaseException:
    """What may leave in place of a fault: made here, raised after the `except` block has ended."""
    try:
        return _stop(fault) or _known(fault, tells) or ReleaseFault(code, _kind(fault))
    except Exception:  # noqa: BLE001 - a fault that cannot even be looked at
        return ReleaseFault(code, Kind.ERROR)


def _stop(fault: BaseException) -> BaseException | None:
    """Whoever stops the work, without words: they are no faults."""
    if isinstance(fault, KeyboardInterrupt):
        return KeyboardInterrupt()
    if isinstance(fault, SystemExit):
        known = type(fault.code) is int and fault.code in ENDED_BY_SIGNAL
        return SystemExit(fault.code if known else EXIT)
    if isinstance(fault, asyncio.CancelledError):
        return asyncio.CancelledError()
    return _signal(fault) if "prefect.exceptions" in sys.modules else None


def _signal(fault: BaseException) -> BaseException | None:
    """Prefect's own signals, without words: they steer the run."""
    from prefect.exceptions import Abort, Pause, TerminationSignal

    if type(fault) is TerminationSignal:
        return TerminationSignal(signal.Signals(fault.signal))
    if type(fault) is Pause:
        return Pause(state=fault.state)
    return Abort() if type(fault) is Abort else None


def _known(fault: BaseException, tells: tuple[type[Exception], ...]) -> Exception | None:
    """Our own errors that are free of data, made anew. Of exactly these types: a name of a class can quote, too."""
    if type(fault) in (MicrodataError, EngineError, ReleaseFault, *tells):
        return cast(Telling, fault).bare()
    if type(fault) is SpecError:
        return SpecError(fault.diagnostics)
    if type(fault) is UserError and all(type(word) is str for word in fault.args):
        return UserError(*fault.args)
    return None


def _kind(fault: BaseException) -> Kind:
    if isinstance(fault, MemoryError):
        return Kind.MEMORY
    if isinstance(fault, TimeoutError):
        return Kind.TIMEOUT
    return Kind.IO if isinstance(fault, OSError) else Kind.ERROR


def seal() -> None:
    """Closes this process's side channels: from now on no library's words reach the terminal or a log.

    For every process in which a flow runs, once Prefect is imported; calling it again does no harm.
    """
    sys.excepthook = _uncaught
    threading.excepthook = _in_a_thread
    sys.unraisablehook = _in_passing
    warnings.showwarning = _unshown
    logging.raiseExceptions = False  # a line that cannot be formatted would be shown with its arguments
    logging.setLogRecordFactory(Withheld)
    if "prefect" in sys.modules:
        _set_up_prefects_log()
    logging.root.addHandler(_SILENT)  # so that no line falls to the handler of last resort
    for handler in _handlers():
        handler.addFilter(_is_own)
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))  # what was drawn and not stored is seen by nobody


_SILENT = logging.NullHandler()


def _set_up_prefects_log() -> None:
    """Now rather than at the first flow, which would replace the handlers."""
    from prefect.logging.configuration import ensure_logging_setup

    ensure_logging_setup()


class Withheld(logging.LogRecord):
    """A line of a log; of one that is neither ours nor Prefect's only the level is kept, whichever handler gets it."""

    def __init__(self, name: str, level: int, *rest: Any, **more: Any) -> None:
        if _own(name):
            super().__init__(name, level, *rest, **more)
        else:
            super().__init__("withheld", level, "", 0, "(a library's words are withheld)", (), None)


def _own(name: str) -> bool:
    return name.partition(".")[0] in OWN_LOGGERS


def _is_own(record: logging.LogRecord) -> bool:
    return _own(record.name)


def _handlers() -> Iterator[logging.Handler]:
    for logger in (logging.root, *logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            yield from logger.handlers


def _uncaught(kind: type[BaseException], fault: BaseException, _: object) -> None:
    if issubclass(kind, KeyboardInterrupt):
        _say("stopped")
    elif kind in (UserError, SpecError, MicrodataError, EngineError, ReleaseFault):
        _say(str(fault))
    else:
        _say(f"internal error: {WITHHELD}")


def _in_a_thread(args: threading.ExceptHookArgs) -> None:
    if not issubclass(args.exc_type, SystemExit):
        _say(f"an error in a thread: {WITHHELD}")


def _in_passing(_: object) -> None:
    _say(f"an error while something was put away: {WITHHELD}")


def _unshown(*warning: object, **more: object) -> None:
    """Nothing: a warning may quote a record, and asks nobody to do anything."""


def _say(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"margrave: {text}\n")
