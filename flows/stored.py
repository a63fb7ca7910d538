"""The stored measurements of a run: one file for all of them, written once, read for ever.

The file is written without a name in the private folder, flushed to disk, and only then linked into place: a name that
exists is complete, and no second file can take it. Where a file system has no unnamed files, a named leftover of a
crash is removed before the next attempt.

Layout: one line of JSON that names every part with its shape, then the numbers, 64-bit little-endian, part after part.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from io import BufferedWriter
from pathlib import Path

import numpy as np
import numpy.typing as npt

from flows.ledger.chain import canonical
from flows.terminal import UserError

FILE, ASIDE = "measurements.bin", ".measurements.aside"
FORMAT, WORD = 1, np.dtype("<i8")
CHUNK = 1 << 22

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Part:
    """Numbers of one query at one level: (area, cell). `exact` ones are published without noise."""

    query: str
    areas: int
    cells: int
    exact: bool = False

    @property
    def bytes(self) -> int:
        """How long it is in the file."""
        return self.areas * self.cells * WORD.itemsize


class StoredError(UserError):
    """The stored measurements are not what was stored."""

    def bare(self) -> StoredError:
        """The same error anew, with nothing attached."""
        return type(self)(*self.args)


def write_stored(folder: Path, parts: Sequence[Part], blocks: Iterable[Integers]) -> str:
    """Writes the numbers of all parts, in their order, so that all or nothing is there; returns the file's SHA-256."""
    running = sha256()
    with _unnamed(folder) as file:
        for chunk in _chunks(parts, blocks):
            running.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return running.hexdigest()


def _chunks(parts: Sequence[Part], blocks: Iterable[Integers]) -> Iterator[bytes]:
    """The bytes of the file; refuses to end with more or fewer numbers than the parts have."""
    header = {"format": FORMAT, "parts": [[one.query, one.areas, one.cells, int(one.exact)] for one in parts]}
    yield f"{canonical(header)}\n".encode()
    left = sum(one.bytes for one in parts)
    for block in blocks:
        data = np.ascontiguousarray(block, WORD).tobytes()
        left -= len(data)
        yield data
    if left != 0:
        raise ValueError("the numbers to be stored are not as many as their parts have")


def sweep_stored(folder: Path) -> None:
    """Removes the name under which a killed process was writing, where the file system has no unnamed files."""
    (folder / ASIDE).unlink(missing_ok=True)


@contextmanager
def _unnamed(folder: Path) -> Iterator[BufferedWriter]:
    """A file that gets its name when it is whole and on disk."""
    sweep_stored(folder)
    aside, named = folder / ASIDE, False
    try:
        handle = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
    except OSError:  # the file system has no unnamed files
        handle, named = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), True
    with os.fdopen(handle, "wb") as file, _opened(folder) as inside:
        yield file
        source = aside if named else f"/proc/self/fd/{file.fileno()}"
        os.link(source, FILE, dst_dir_fd=inside, follow_symlinks=True)  # without a folder Python would not follow
        if named:
            aside.unlink()
        os.fsync(inside)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield handle
    finally:
        os.close(handle)


def hash_of(path: Path) -> str:
    """The SHA-256 of a file."""
    running = sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            running.update(chunk)
    return running.hexdigest()


def read_stored(folder: Path, parts: Sequence[Part], expected: str) -> dict[str, Integers]:
    """The numbers of every part by its query. Raises `StoredError` where the file is not the one that was stored."""
    path = folder / FILE
    try:
        found = hash_of(path)
        if found != expected:
            raise StoredError(
                f"the stored measurements {path} were changed: their hash is not the one in the ledger; "
                "bring the file back from a backup of the private folder"
            )
        return _read(path, parts)
    except OSError as fault:
        raise StoredError(f"the stored measurements {path} cannot be read: {fault.strerror}") from None


def _read(path: Path, parts: Sequence[Part]) -> dict[str, Integers]:
    with path.open("rb") as file:
        header = json.loads(file.readline())
        stated = [Part(name, areas, cells, bool(exact)) for name, areas, cells, exact in header["parts"]]
        if stated != list(parts):
            raise StoredError(f"{path} holds the measurements of another plan")
        return {
            one.query: np.fromfile(file, WORD, one.areas * one.cells).reshape(one.areas, one.cells) for one in parts
        }
