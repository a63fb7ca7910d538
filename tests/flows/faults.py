"""Kinds of faults that quote a record. Each takes the word that it quotes; none imports Prefect before it is called."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from pydantic import TypeAdapter

from flows.guard import guarded
from flows.terminal import UserError
from tabulation.errors import MicrodataError

Fault = Callable[[str], None]


def value_error(word: str) -> None:
    raise ValueError(word)


def chained(word: str) -> None:
    try:
        value_error(word)
    except ValueError as fault:
        raise RuntimeError("plain") from fault


def in_context(word: str) -> None:
    try:
        value_error(word)
    finally:
        raise RuntimeError("plain")


def with_notes(word: str) -> None:
    fault = ValueError("plain")
    fault.add_note(word)
    raise fault


def group(word: str) -> None:
    raise ExceptionGroup("plain", [ValueError(word), KeyError(word)])


def class_name(word: str) -> None:
    raise type(word, (ValueError,), {})("plain")


def memory(word: str) -> None:
    raise MemoryError(word)


def undecoded(word: str) -> None:
    (word.encode() + b"\xff").decode("utf-8")


def sql(word: str) -> None:
    import duckdb

    duckdb.sql(f"SELECT CAST('{word}' AS INTEGER)").fetchall()


def missing_key(word: str) -> None:
    raise KeyError(word)


def no_file(word: str) -> None:
    raise FileNotFoundError(2, "not there", word)


def too_long(word: str) -> None:
    raise TimeoutError(word)


def broken_rule(word: str) -> None:
    assert word == "", word


def ended_iteration(word: str) -> None:
    raise StopIteration(word)


def not_a_number(word: str) -> None:
    int(word)


def validation(word: str) -> None:
    TypeAdapter(int).validate_python(word)


def user_error(word: str) -> None:
    try:
        value_error(word)
    except ValueError as fault:
        raise UserError("the disk is full") from fault


def microdata_error(word: str) -> None:
    fault = MicrodataError("no-column", "persons", "there is no column 'age'")
    fault.__cause__ = ValueError(word)
    raise fault


def odd_user_error(word: str) -> None:
    raise UserError(ValueError(word))


def unprintable(word: str) -> None:
    class UnprintableError(Exception):
        def __str__(self) -> str:
            raise ValueError(word)

        def bare(self) -> Exception:
            raise ValueError(word)

    raise UnprintableError(word)


def base_exception(word: str) -> None:
    raise type("Odd", (BaseException,), {})(word)


def cancelled(word: str) -> None:
    raise asyncio.CancelledError(word)


def interrupt(word: str) -> None:
    raise KeyboardInterrupt(word)


def system_exit(word: str) -> None:
    raise SystemExit(word)


def aborted(word: str) -> None:
    from prefect.exceptions import Abort

    raise Abort(word)


def in_a_thread(word: str) -> None:
    thread = threading.Thread(target=value_error, args=(word,))
    thread.start()
    thread.join()


def put_away(word: str) -> None:
    class Guilty:
        def __del__(self) -> None:
            raise ValueError(word)

    Guilty()


def warned(word: str) -> None:
    warnings.warn(word, stacklevel=1)


def logged(word: str) -> None:
    logging.getLogger("somelibrary.parser").error("cannot parse %s", word)


def logged_badly(word: str) -> None:
    logging.getLogger("somelibrary.parser").error("%d", word)


def logged_by_a_name(word: str) -> None:
    own = logging.getLogger(word)
    own.addHandler(logging.StreamHandler())
    own.propagate = False
    try:
        value_error(word)
    except ValueError:
        own.exception("plain")


def in_a_child(word: str) -> None:
    child = multiprocessing.get_context("spawn").Process(target=child_work, args=(word,))
    child.start()
    child.join()


def in_a_pool(word: str) -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(child_work, word).result()


def child_work(word: str) -> None:
    """What a child process is given: guarded wherever the run is."""
    (child_loud_guarded if word.startswith("guarded") else child_loud)(word)


def child_loud(word: str) -> None:
    warned(word)
    logged(word)
    in_a_thread(word)
    value_error(word)


child_loud_guarded = guarded("E-CHILD")(child_loud)

TASKS: tuple[Fault, ...] = (
    chained,
    in_context,
    with_notes,
    group,
    class_name,
    memory,
    undecoded,
    sql,
    missing_key,
    no_file,
    too_long,
    broken_rule,
    ended_iteration,
    not_a_number,
    validation,
    user_error,
    microdata_error,
    odd_user_error,
    in_a_thread,
    put_away,
    warned,
    logged,
    logged_badly,
    logged_by_a_name,
    in_a_child,
    in_a_pool,
    unprintable,
    cancelled,
    system_exit,
    aborted,
)
"""Faults that a flow may survive."""
ENDING: tuple[Fault, ...] = (base_exception, interrupt)
"""Faults that end their flow."""
OTHERS = ("value_error", "repeated", "submitted", "subflow", "flow_body", "uncaught")
"""Where else in a flow a plain fault may happen."""
SENTINEL = "sentinel"
KINDS = (*(fault.__name__ for fault in (*TASKS, *ENDING)), *OTHERS)


def quoted(word: str, kind: str) -> str:
    """The word that a kind of fault quotes, fit to be the name of a class."""
    return f"{word}{kind.replace('_', '')}"
