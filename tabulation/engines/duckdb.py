"""DuckDB in this process: the default engine. It works out of core and spills into the private folder only."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import ibis
import ibis.expr.types as ir
import pyarrow as pa

from tabulation.engines.careful import FILE, read_with_care
from tabulation.engines.engine import ReadAgain
from tabulation.engines.text import text_cells
from tabulation.lines import LINES, cut_lines
from tabulation.postgres import quoted
from tabulation.private import ask_to_end
from tabulation.sources import DatabaseTable, Kind, ParquetFiles, Source, TextFile

T = TypeVar("T")
STOPS = (
    duckdb.InvalidInputException,
    duckdb.ConversionException,
    duckdb.OutOfRangeException,
    duckdb.InternalException,
)
STORED = {
    Kind.TEXT: ("VARCHAR", "string"),
    Kind.WHOLE: ("BIGINT", "int64"),
    Kind.EXACT: ("VARCHAR", "string"),
    Kind.REAL: ("DOUBLE", "float64"),
    Kind.DAY: ("DATE", "date"),
    Kind.TRUTH: ("BOOLEAN", "boolean"),
}
DIALECT = ibis.duckdb
SHARE_OF_MEMORY = 0.6
"""Of the machine's memory, where nothing is said; the rest is for other people and for our own arrays."""
MEGABYTE = 1 << 20


class DuckDB:
    """An in-memory database that lives as long as one piece of work."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, careful: bool = False) -> None:
        self.connection = connection
        self._numbers = count()
        self._compiler = DIALECT.from_connection(connection)
        self._careful, self._reads_parquet = careful, False

    def cells(self, source: Source, columns: Sequence[str]) -> ir.Table:
        """The records of a source; those of text and PostgreSQL are read once and kept."""
        if isinstance(source, ParquetFiles):
            return self._parquet(source, columns)
        if isinstance(source, TextFile):
            return self.keep(self._text(source, columns))
        return self._database(source, columns)

    def _parquet(self, source: ParquetFiles, columns: Sequence[str]) -> ir.Table:
        self._reads_parquet = True
        name = self._name()
        if self._careful:
            raw, kept = self._name(), self._name()
            self.connection.register(raw, read_with_care(source, columns))
            self.connection.execute(f"CREATE TEMP TABLE {kept} AS FROM {raw}")
            self._view(name, source, columns, self._with_folders(kept, source))
            return self._table(name, source, columns)
        files = ", ".join(_literal(_escaped(str(path))) for path in source.files)
        options = f"union_by_name = {_flag(not source.alike)}, hive_partitioning = false"
        options += f", filename = '{FILE}'" if source.partitions else ""
        self._view(name, source, columns, self._with_folders(f"read_parquet([{files}], {options})", source))
        return self._table(name, source, columns)

    def _with_folders(self, scan: str, source: ParquetFiles) -> str:
        """Rows with the columns that stand in the names of their folders."""
        if not source.partitions:
            return scan
        parts = {name: [values[place] for values in source.values] for place, name in enumerate(source.partitions)}
        folders = self._name()
        self.connection.register(folders, pa.table({FILE: [str(path) for path in source.files], **parts}))
        return f"{scan} JOIN {folders} USING ({FILE})"

    def _view(self, name: str, source: Source, columns: Sequence[str], scan: str) -> None:
        cells = [f"{_stored(quoted(column), source.kinds[column])} AS c{index}" for index, column in enumerate(columns)]
        chosen = ", ".join(cells) or "1 AS one"
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT {chosen} FROM {scan}")  # noqa: S608 - quoted

    def _table(self, name: str, source: Source, columns: Sequence[str]) -> ir.Table:
        schema = {f"c{index}": STORED[source.kinds[column]][1] for index, column in enumerate(columns)}
        return ibis.table(schema or {"one": "int64"}, name=name)

    def _text(self, source: TextFile, columns: Sequence[str]) -> ir.Table:
        name = self._name()
        if source.read.quoted_newlines:
            return self._delimited(name, source, columns)
        reader = pa.RecordBatchReader.from_batches(LINES, _heard(cut_lines(source.path)))
        self.connection.register(name, reader)
        return text_cells(ibis.table({"line": "string"}, name=name), source, columns)

    def _delimited(self, name: str, source: TextFile, columns: Sequence[str]) -> ir.Table:
        """The engine's own reader, where the spec asks for line breaks inside quotes."""
        names = ", ".join(f"{_literal(column)}: 'VARCHAR'" for column in source.header.columns)
        encoding = "latin-1" if codecs.lookup(source.read.encoding).name == "iso8859-1" else "utf-8"
        options = (
            f"header = true, columns = {{{names}}}, delim = {_literal(source.read.delimiter)}, "
            f"encoding = '{encoding}', quote = '\"', escape = '\"', auto_detect = false, strict_mode = false, "
            "parallel = false, ignore_errors = true, null_padding = true"
        )
        self._view(name, source, columns, f"read_csv({_literal(str(source.path))}, {options})")
        return self._table(name, source, columns)

    def _database(self, source: DatabaseTable, columns: Sequence[str]) -> ir.Table:
        raw, name = self._name(), self._name()
        with source.table.rows(columns) as reader:
            self.connection.register(raw, reader)
            self._view(name, source, columns, raw)
            return self.keep(self._table(name, source, columns))

    def lookup(self, columns: dict[str, Any]) -> ir.Table:
        """A public table, registered where it lies."""
        table, name = pa.table(columns), self._name()
        self.connection.register(name, table)
        return ibis.table(ibis.Schema.from_pyarrow(table.schema), name=name)

    def keep(self, table: ir.Table) -> ir.Table:
        """A temporary table; it spills when memory is short."""
        name = self._name()
        statement = f"CREATE TEMP TABLE {name} AS {self._compiler.compile(table)}"
        self._hearing(lambda: self.connection.execute(statement))
        return ibis.table(table.schema(), name=name)

    def fetch(self, table: ir.Table) -> pa.Table:
        """The rows that an expression returns."""
        query = self._compiler.compile(table)
        return self._hearing(lambda: self.connection.sql(query).to_arrow_table())

    def _hearing(self, act: Callable[[], T]) -> T:
        """Runs a statement; Parquet texts that are no UTF-8 and days beyond its calendar stop DuckDB."""
        refused = False
        try:
            return act()
        except STOPS:
            refused = self._reads_parquet and not self._careful
            if not refused:
                raise
        raise ReadAgain

    def _name(self) -> str:
        return f"t{next(self._numbers)}"


def _heard(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches; an end that was asked for while they are made is noted, because the engine swallows it."""
    try:
        yield from batches
    except (KeyboardInterrupt, SystemExit) as stop:
        ask_to_end(stop)
        raise


def _stored(column: str, kind: Kind) -> str:
    """A column in the type that we read it in.

    Decimal numbers lose zeros at their end; days are what stands before the time of day, which must not be rounded. A
    fractional number goes through a list, because DuckDB takes a Parquet file's word that nothing is "not a number".
    """
    if kind is Kind.EXACT:
        return f"regexp_replace(TRY_CAST({column} AS VARCHAR), '[.]0*$|([.][0-9]*[1-9])0+$', '\\1')"
    if kind is Kind.DAY:
        known = f"{column} >= '0001-01-01' AND {column} <= '9999-12-31 23:59:59.999999'"
        return f"CASE WHEN {known} THEN TRY_CAST(left(TRY_CAST({column} AS VARCHAR), 10) AS DATE) END"
    if kind is Kind.REAL:
        return f"list_extract([TRY_CAST({column} AS DOUBLE)], 1)"
    return f"TRY_CAST({column} AS {STORED[kind][0]})"


def _escaped(path: str) -> str:
    """A path in which nothing stands for other files."""
    return re.sub(r"([*?\[])", r"[\1]", path)


def _flag(value: bool) -> str:  # noqa: FBT001 - the value is what is written
    return "true" if value else "false"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def duckdb_engine(
    folder: Path, *, memory: int | None = None, threads: int | None = None, careful: bool = False
) -> Iterator[DuckDB]:
    """DuckDB with its spill files in `folder`, at most `memory` bytes, and nothing fetched from anywhere.

    `careful` reads Parquet through Arrow, cell by cell where it must: for when `ReadAgain` was raised.
    """
    spill = folder / "duckdb"
    spill.mkdir(mode=0o700, exist_ok=True)
    limit = memory or int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * SHARE_OF_MEMORY)
    config: dict[str, Any] = {
        "temp_directory": str(spill),
        "memory_limit": f"{max(limit // MEGABYTE, 64)}MB",
        "preserve_insertion_order": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "lambda_syntax": "ENABLE_SINGLE_ARROW",
    }
    if threads is not None:
        config["threads"] = str(threads)
    with closing(duckdb.connect(":memory:", config=config)) as connection:
        connection.execute("SET enable_progress_bar = false; SET TimeZone = 'UTC'")
        yield DuckDB(connection, careful=careful)
