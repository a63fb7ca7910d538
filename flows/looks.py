"""The record of looking first: who inspects the records before a release leaves an entry, written before the look.

If caps, clips, codes or shares change afterwards, the later run can say so: an entry holds a digest of each part of the
spec. Entries are appended, each with the hash of the one before, and flushed to disk before the data is opened. They
hold nothing about the data.
"""

from __future__ import annotations

import fcntl
import json
import os
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from release_specs.spec import ReleaseSpec

LOOKS = "looks.jsonl"
PARTS = ("microdata", "geography", "recodes", "derive", "universes", "privacy", "tables", "spend", "exact", "rules")
START = "0" * 64


def record_look(folder: Path, spec: ReleaseSpec) -> dict[str, Any]:
    """Appends an entry that this spec's files are about to be looked at, durably; returns it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder / LOOKS, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(handle, "r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        lines = file.read().splitlines()
        before = json.loads(lines[-1])["hash"] if lines else START
        entry = {
            "kind": "inspect",
            "release": spec.release.name,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "parts": digests(spec),
            "before": before,
        }
        entry["hash"] = _hash(entry)
        file.write(json.dumps(entry, sort_keys=True) + "\n")
        file.flush()
        os.fsync(file.fileno())
    return entry


def read_looks(folder: Path) -> list[dict[str, Any]]:
    """All entries, oldest first. Raises `ValueError` where the chain is broken."""
    path = folder / LOOKS
    found: list[dict[str, Any]] = []
    before = START
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        entry = json.loads(line)
        stated = entry.pop("hash")
        if entry["before"] != before or _hash(entry) != stated:
            raise ValueError(f"the record of looks in {folder} was changed: entry {len(found) + 1} does not fit")
        before = stated
        found.append({**entry, "hash": stated})
    return found


def changed_since(entry: dict[str, Any], spec: ReleaseSpec) -> list[str]:
    """The parts of a spec that are not as they were at a look."""
    now = digests(spec)
    return [part for part in PARTS if entry["parts"].get(part) != now[part]]


def digests(spec: ReleaseSpec) -> dict[str, str]:
    """A digest of each part of a spec that decides what is measured."""
    data = spec.model_dump(mode="json", by_alias=True)
    return {part: sha256(json.dumps(data.get(part), sort_keys=True).encode()).hexdigest() for part in PARTS}


def _hash(entry: dict[str, Any]) -> str:
    return sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()
