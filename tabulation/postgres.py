"""Tables of PostgreSQL as a source of records, read in one stream as columns."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import pyarrow as pa

from tabulation.errors import MicrodataError

ADDRESS = ("postgresql://", "postgres://")
WIDTH = 2**256


@dataclass(frozen=True, slots=True)
class PostgresTable:
    """A table or view: the server's address (never shown), the quoted name, and its columns."""

    address: str = field(repr=False)
    name: str
    schema: pa.Schema

    @contextmanager
    def rows(self, columns: Sequence[str]) -> Iterator[pa.RecordBatchReader]:
        """The rows as a stream of batches, within one read-only transaction."""
        with _cursor(self.address) as cursor:
            cursor.execute(f"SELECT {', '.join(map(quoted, columns)) or '1 AS one'} FROM {self.name}")  # noqa: S608
            yield cursor.fetch_record_batch()

    def digest(self, key: bytes) -> bytes:
        """A keyed digest of all rows whatever their order: the sum of the digests of each."""
        total = 0
        with self.rows(self.schema.names) as reader:
            for batch in reader:
                for row in batch.to_pylist():
                    text = "".join(f"{len(str(value))}:{value}" for value in row.values())
                    total += int.from_bytes(hmac.digest(key, text.encode(), "sha256"))
        return sha256((total % WIDTH).to_bytes(32)).digest()


def quoted(name: str) -> str:
    """An identifier for SQL."""
    return '"' + name.replace('"', '""') + '"'


def open_table(entity: str, place: str) -> PostgresTable:
    """The table at `postgresql://host/database#schema.table`. Raises `MicrodataError`."""
    address, _, name = place.partition("#")
    if not re.fullmatch(r"[^.\s]+(\.[^.\s]+)?", name):
        message = (
            f"the address for '{entity}' names no table; write postgresql://host/database#schema.table "
            "(user and password come from the environment or the password file)"
        )
        raise MicrodataError("no-table", entity, message)
    qualified = ".".join(map(quoted, name.split(".")))
    schema = _catalogue(address, qualified)
    if schema is None:
        message = f"the table for '{entity}' cannot be opened; check the address, the rights and that it exists"
        raise MicrodataError("no-table", entity, message)
    return PostgresTable(address, qualified, schema)


def _catalogue(address: str, name: str) -> pa.Schema | None:
    try:
        with _cursor(address) as cursor:
            cursor.execute(f"SELECT * FROM {name} LIMIT 0")  # noqa: S608 - the name is quoted
            schema: pa.Schema = cursor.fetch_record_batch().schema
            return schema
    except MicrodataError:
        raise
    except Exception:  # noqa: BLE001 - the server's words may hold the address
        return None


@contextmanager
def _cursor(address: str) -> Iterator[Any]:
    try:
        from adbc_driver_postgresql import dbapi  # noqa: PLC0415 - only offices with PostgreSQL install it
    except ImportError:
        dbapi = None
    if dbapi is None:
        message = "tables of PostgreSQL need one more package: install margrave[postgres]"
        raise MicrodataError("no-driver", "", message)
    with dbapi.connect(address) as connection, connection.cursor() as cursor:
        yield cursor
