"""What the upper bounds in pyproject.toml protect: each test fails when its package is let past the bound."""

import os
import subprocess
import sys
from pathlib import Path

import ibis
import pandas as pd
import pytest

SCHEDULER_SCRIPT = Path(__file__).with_name("prefect_scheduler.py")


@pytest.fixture
def prefect_environment(tmp_path: Path) -> dict[str, str]:
    """Our environment with a throw-away Prefect home, no server address and nothing sent anywhere."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    return inherited | {
        "PREFECT_HOME": str(tmp_path / "prefect"),
        "PREFECT_LOGGING_LEVEL": "ERROR",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }


def run_python(*arguments: str, environment: dict[str, str], folder: Path) -> str:
    """What a new interpreter prints; its error text is the assertion's message when it fails."""
    finished = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        check=False,
        cwd=folder,
        env=environment,
        text=True,
        timeout=120,
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    return finished.stdout.strip()


def test_the_prefect_server_can_be_built_with_the_locked_fastapi(
    prefect_environment: dict[str, str], tmp_path: Path
) -> None:
    code = "from prefect.server.api.server import create_app; print(create_app().title)"
    assert run_python("-c", code, environment=prefect_environment, folder=tmp_path) == "Prefect Server"


def test_a_schedule_creates_runs_with_the_locked_sqlalchemy(
    prefect_environment: dict[str, str], tmp_path: Path
) -> None:
    assert int(run_python(str(SCHEDULER_SCRIPT), environment=prefect_environment, folder=tmp_path)) > 0


def test_ibis_creates_and_drops_a_duckdb_table_with_the_locked_sqlglot() -> None:
    backend = ibis.duckdb.connect()
    backend.create_table("persons", pd.DataFrame({"household": [1, 1, 2]}))
    assert backend.table("persons").count().execute() == 3
    backend.drop_table("persons")
    assert backend.con.execute("SELECT table_name FROM duckdb_tables()").fetchall() == []
