"""Which code makes a release: its version, and a hash of every file of ours that takes part."""

from __future__ import annotations

import platform
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOMS = ("release_specs", "tabulation", "mechanisms", "estimation", "reporting", "flows")
LIBRARIES = ("numpy", "scipy", "numba", "pandas", "pyarrow", "duckdb", "cryptography", "prefect")


@cache
def code_digest() -> str:
    """The hash of all our source files."""
    base, running = Path(__file__).resolve().parents[1], sha256()
    for room in ROOMS:
        for path in sorted((base / room).rglob("*.py")):
            running.update(f"{path.relative_to(base).as_posix()}\0".encode())
            running.update(sha256(path.read_bytes()).digest())
    return running.hexdigest()


def versions() -> dict[str, str]:
    """The versions of everything that decides a release's numbers."""
    found = {"margrave": _version("margrave"), "code": code_digest(), "python": platform.python_version()}
    return found | {name: _version(name) for name in LIBRARIES}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
