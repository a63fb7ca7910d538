"""What an engine must do for us. Everything else is one expression that every engine compiles to its own SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import ibis.expr.types as ir
import pyarrow as pa

from tabulation.sources import Source


class ReadAgain(Exception):  # noqa: N818 - a request, not an error
    """A cell stopped the engine's reader: all is to be read again, from the beginning and with care.

    Nothing of the first reading may be used: two readers need not spell the same value alike.
    """


class Engine(Protocol):
    """Runs expressions next to the records and hands back only what they return."""

    def cells(self, source: Source, columns: Sequence[str]) -> ir.Table:
        """The records of a source as a table with columns `c0`, `c1`, ..., one for each column asked for."""
        ...

    def lookup(self, columns: dict[str, Any]) -> ir.Table:
        """A small public table, made of columns of equal length, for joins."""
        ...

    def keep(self, table: ir.Table) -> ir.Table:
        """The rows of a table, computed once and kept in the engine, for several uses."""
        ...

    def fetch(self, table: ir.Table) -> pa.Table:
        """What an expression returns. Only aggregates over declared cells may be fetched."""
        ...
