"""Says, and later proves, that a file was generated.

A Parquet file carries the proof itself: its metadata hold the SHA-256 of every byte before the footer. A text file is
vouched for by `GENERATED.json` beside it. Either way an edited file is no longer a generated one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tabulation.synthetic.errors import SynthesisError

SIDECAR = "GENERATED.json"
METADATA_KEY = "margrave.generated"
SENTENCE = "Generated microdata: no record describes a real person."
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Mark:
    """Where generated microdata come from."""

    spec: str
    seed: int
    records: int
    version: str

    def as_metadata(self, data_sha256: str) -> dict[str, str]:
        """The metadata of a Parquet file whose data have this hash."""
        facts = {**asdict(self), "sentence": SENTENCE, "data_sha256": data_sha256}
        return {METADATA_KEY: json.dumps(facts, sort_keys=True)}


@dataclass(frozen=True, slots=True)
class Listed:
    """A file as the sidecar lists it."""

    file: str
    sha256: str
    rows: int
    seed: int


def is_generated(path: Path) -> bool:
    """Whether a file is, byte for byte, one that `synthesize` wrote."""
    if not path.is_file():
        return False
    if _is_listed(path):
        return True
    return path.suffix == ".parquet" and _carries_proof(path)


def hash_of(path: Path, *, upto: int | None = None) -> str:
    """The SHA-256 of a file, or of its first bytes."""
    digest = sha256()
    left = path.stat().st_size if upto is None else upto
    with path.open("rb") as handle:
        while left > 0 and (chunk := handle.read(min(CHUNK, left))):
            digest.update(chunk)
            left -= len(chunk)
    return digest.hexdigest()


def listed_in(folder: Path) -> tuple[Listed, ...]:
    """What the folder's sidecar lists; nothing where there is none. Raises `SynthesisError` for another's file."""
    path = folder / SIDECAR
    if not path.exists():
        return ()
    found = _read_sidecar(path)
    if found is None:
        raise SynthesisError(f"{path} exists and was not written by synthesize; move it away or choose another folder")
    return found


def write_sidecar(folder: Path, mark: Mark, files: Iterable[Listed]) -> None:
    """Writes `GENERATED.json` aside and moves it into place."""
    entries = [asdict(entry) for entry in sorted(set(files), key=lambda entry: (entry.file, entry.sha256))]
    content = {"sentence": SENTENCE, "spec": mark.spec, "version": mark.version, "files": entries}
    aside = folder / f".{SIDECAR}.{os.getpid()}"
    aside.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    aside.replace(folder / SIDECAR)


def _is_listed(path: Path) -> bool:
    sidecar = path.parent / SIDECAR
    listed = _read_sidecar(sidecar) if sidecar.is_file() else None
    hashes = {entry.sha256 for entry in listed or () if entry.file == path.name}
    return bool(hashes) and hash_of(path) in hashes


def _read_sidecar(path: Path) -> tuple[Listed, ...] | None:
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
        if content["sentence"] != SENTENCE:
            return None
        return tuple(Listed(str(e["file"]), str(e["sha256"]), int(e["rows"]), int(e["seed"])) for e in content["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _carries_proof(path: Path) -> bool:
    try:
        metadata = pq.read_metadata(path).metadata or {}
        facts: Any = json.loads(metadata.get(METADATA_KEY.encode(), b"null"))
        with path.open("rb") as handle:
            size = handle.seek(-8, os.SEEK_END)
            footer = int.from_bytes(handle.read(4), "little")
        return isinstance(facts, dict) and facts.get("data_sha256") == hash_of(path, upto=size - footer)
    except (OSError, ValueError, pa.ArrowException):
        return False
