"""Asks Prefect in a process of its own, with a home that the test throws away and no server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def ask_prefect(script: str, given: object, folder: Path) -> Any:
    """What a script beside this file answers, as JSON; its error text is the message when it fails."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    ours = {
        "PREFECT_HOME": str(folder / "prefect"),
        "PREFECT_LOGGING_LEVEL": "ERROR",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    finished = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(script))],
        capture_output=True,
        check=False,
        cwd=folder,
        env=inherited | ours,
        input=json.dumps(given),
        text=True,
        timeout=120,
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    return json.loads(finished.stdout)
