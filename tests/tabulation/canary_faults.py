"""What may go wrong beneath: exceptions that quote canaries in every way a library can, and places to raise them."""

from __future__ import annotations

import errno
import logging
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import duckdb
import pandas as pd
import pandera.pandas as pandera
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tabulation.tabulate
from tabulation import findings, private, schema, sources
from tabulation.engines import duckdb as engine
from tabulation.errors import EngineError, MicrodataError
from tests.tabulation.canaries import FILE, NUMBERS, TEXTS, totals

SECRET = " ".join([*TEXTS.values(), *NUMBERS.values(), *totals().values()])
"""Everything at once, as a message of a library might quote it."""


def _noted() -> Exception:
    fault = ValueError("see the notes")
    fault.add_note(SECRET)
    return fault


def _caused() -> Exception:
    fault = RuntimeError("see the cause")
    fault.__cause__ = ValueError(SECRET)
    fault.__context__ = KeyError(SECRET)
    return fault


def _marked() -> Exception:
    fault = RuntimeError("see the attributes")
    fault.row = SECRET  # type: ignore[attr-defined]
    return fault


def _of_pandera() -> Exception:
    rules = pandera.DataFrameSchema({"x": pandera.Column(int, pandera.Check.lt(0)), "y": pandera.Column(str)})
    try:
        rules.validate(pd.DataFrame({"x": [SECRET]}), lazy=True)
    except pandera.errors.SchemaErrors as found:
        return found.with_traceback(None)
    raise AssertionError("the frame was accepted")


def _of_pandera_once() -> Exception:
    rules = pandera.DataFrameSchema({"x": pandera.Column(str, pandera.Check.str_startswith("?"))})
    try:
        rules.validate(pd.DataFrame({"x": [SECRET]}))
    except pandera.errors.SchemaError as found:
        return found.with_traceback(None)
    raise AssertionError("the frame was accepted")


def _of_duckdb() -> Exception:
    try:
        duckdb.sql(f"SELECT CAST('{SECRET}' AS INTEGER)").fetchall()
    except duckdb.Error as found:
        return found.with_traceback(None)
    raise AssertionError("DuckDB took text for a number")


def _of_arrow() -> Exception:
    try:
        pa.array([SECRET]).cast(pa.int64())
    except pa.ArrowInvalid as found:
        return found.with_traceback(None)
    raise AssertionError("Arrow took text for a number")


KINDS: dict[str, Callable[[], Exception]] = {
    "DuckDB cannot convert": _of_duckdb,
    "DuckDB finds an input invalid": lambda: duckdb.InvalidInputException(SECRET),
    "DuckDB has no memory": lambda: duckdb.OutOfMemoryException(SECRET),
    "DuckDB cannot read": lambda: duckdb.IOException(SECRET),
    "DuckDB is broken": lambda: duckdb.InternalException(SECRET),
    "Arrow cannot convert": _of_arrow,
    "Arrow has no memory": lambda: pa.ArrowMemoryError(SECRET),
    "pandera lists its faults": _of_pandera,
    "pandera tells one fault": _of_pandera_once,
    "Python has no memory": lambda: MemoryError(SECRET),
    "Python is in too deep": lambda: RecursionError(SECRET),
    "a key is not known": lambda: KeyError(SECRET),
    "a text does not decode": lambda: UnicodeDecodeError("utf-8", SECRET.encode(), 0, 1, SECRET),
    "a text does not encode": lambda: UnicodeEncodeError("ascii", SECRET, 0, 1, SECRET),
    "the disk is full": lambda: OSError(errno.ENOSPC, SECRET, SECRET),
    "a file is gone": lambda: FileNotFoundError(errno.ENOENT, "no such file", SECRET),
    "several things fail at once": lambda: ExceptionGroup(SECRET, [ValueError(SECRET), _caused()]),
    "a note quotes": _noted,
    "a cause quotes": _caused,
    "an attribute quotes": _marked,
    "an iteration ends": lambda: StopIteration(SECRET),
    "a warning is an error": lambda: UserWarning(SECRET),
}


def _raises(fault: Callable[[], BaseException]) -> Callable[..., NoReturn]:
    def raise_it(*given: Any, **named: Any) -> NoReturn:
        row, value = SECRET, fault()
        raise value from ValueError(row)

    return raise_it


def _instead(place: object, name: str, fault: Callable[[], BaseException]) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(place, name, _raises(fault))


def _full(*given: Any, **named: Any) -> NoReturn:
    raise OSError(errno.ENOSPC, "No space left on device", SECRET)


def _unreachable(patch: pytest.MonkeyPatch, name: str) -> None:
    """The disk does not answer for the confidential files; others are as before."""
    plain = getattr(sources.Path, name)

    def asked(self: Path) -> bool:
        if FILE in self.name:
            raise OSError(errno.EIO, SECRET, str(self))
        return bool(plain(self))

    patch.setattr(sources.Path, name, asked)


def _while_reading(patch: pytest.MonkeyPatch) -> None:
    """The file ends in an error after some of its lines were handed on."""
    plain = engine.cut_lines

    def cut(path: Path) -> Iterator[pa.RecordBatch]:
        yield next(plain(path)).slice(0, 5)
        raise OSError(errno.EIO, SECRET, str(path))

    patch.setattr(engine, "cut_lines", cut)


def _when_fetched(patch: pytest.MonkeyPatch) -> None:
    """The engine fails after everything was computed."""
    plain = engine.DuckDB.fetch

    def fetch(self: engine.DuckDB, table: Any) -> pa.Table:
        rows = plain(self, table).to_pylist()
        raise RuntimeError(f"{SECRET} {rows}")

    patch.setattr(engine.DuckDB, "fetch", fetch)


def _after_counting(patch: pytest.MonkeyPatch) -> None:
    """Counting fails in the middle with records in its variables."""

    def count(*given: Any) -> NoReturn:
        frame = pd.DataFrame({"row": SECRET.split()})
        raise RecursionError(f"{frame.to_string()} {given!r}")

    patch.setattr(tabulation.tabulate, "count_tallies", count)
    patch.setattr(findings, "count_tallies", count)


def _chatty(patch: pytest.MonkeyPatch) -> None:
    """A library logs what it was given before it fails."""

    def cells(*given: Any) -> NoReturn:
        for name in ("ibis", "duckdb", "pandera", "py4j", "pyspark", "adbc"):
            logging.getLogger(name).error("failed on %s", SECRET)
        raise RuntimeError(SECRET)

    patch.setattr(engine.DuckDB, "cells", cells)


def _chatty_below(patch: pytest.MonkeyPatch) -> None:
    """A module of a library logs under its own name, as they do."""

    def cells(*given: Any) -> NoReturn:
        for name in ("ibis.backends.duckdb", "pandera.api", "py4j.clientserver", "sqlglot", "pyarrow.dataset"):
            logging.getLogger(name).error("failed on %s", SECRET)
        raise RuntimeError(SECRET)

    patch.setattr(engine.DuckDB, "cells", cells)


def _warning(patch: pytest.MonkeyPatch) -> None:
    """A library warns of what it was given before it fails."""

    def cells(*given: Any) -> NoReturn:
        warnings.warn(SECRET, UserWarning, stacklevel=1)
        raise RuntimeError("warned")

    patch.setattr(engine.DuckDB, "cells", cells)


Breaks = Callable[[pytest.MonkeyPatch], None]
WITHIN: dict[str, Breaks] = {
    "reading ends in an error": _while_reading,
    "fetching fails": _when_fetched,
    "counting fails in the middle": _after_counting,
    "a library logs and fails": _chatty,
    "the engine does not start": _instead(duckdb, "connect", lambda: duckdb.IOException(SECRET)),
    "a statement fails": _instead(engine.DuckDB, "_hearing", _of_duckdb),
    "rows cannot be kept": _instead(engine.DuckDB, "keep", lambda: duckdb.OutOfMemoryException(SECRET)),
    "the private folder cannot be made": lambda patch: patch.setattr(private.tempfile, "mkdtemp", _full),
    "the private folder cannot be locked": lambda patch: patch.setattr(private.fcntl, "flock", _full),
    "a known error has a cause": _instead(
        engine.DuckDB, "cells", lambda: MicrodataError("column-type", "people", "stored in another way")
    ),
    "a known error of the engine has a cause": _instead(
        engine.DuckDB, "cells", lambda: EngineError("engine-failed", "people", "stopped")
    ),
}
OPENING: dict[str, Breaks] = {
    "a footer fails": _instead(pq, "read_schema", lambda: RuntimeError(SECRET)),
    "a footer is refused": _instead(pq, "read_schema", _of_arrow),
    "a footer needs much memory": _instead(pq, "read_schema", lambda: MemoryError(SECRET)),
    "pandera fails otherwise": _instead(schema.pa.DataFrameSchema, "validate", _of_pandera_once),
    "pandera fails oddly": _instead(schema.pa.DataFrameSchema, "validate", lambda: AttributeError(SECRET)),
    "a file cannot be looked for": lambda patch: _unreachable(patch, "is_file"),
    "a folder cannot be looked into": lambda patch: _unreachable(patch, "is_dir"),
}
CHATTY_BELOW, WARNING = _chatty_below, _warning
