"""The manifest of a release, `manifest.json`: what the release is, how it was made, and the hash of every other file.

A signature, where an office has a key, is over the manifest without the signature, in its canonical form; through the
hashes it covers every byte of the release.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from reporting.csv_rows import read_bytes
from reporting.errors import ReleaseFault
from reporting.plain_json import canonical, indented, read_canonical

MANIFEST = "manifest.json"
SUPERSEDED = "superseded.json"
"""The one file that is added to a release after its publication: which version took its place, and why."""
FORMAT = 1
DIGEST = re.compile(r"[0-9a-f]{64}")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)")
AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Manifest:
    """What a release says of itself. `plan`, `ledger` and `signature` are plain data that this room does not read."""

    name: str
    title: str
    edition: str | None
    version: int
    run: str
    published: str
    """The one clock time of a release, in ISO form with its offset."""
    code: Mapping[str, str]
    """The versions of what made it: margrave, python, numpy."""
    plan: Mapping[str, Any] = field(repr=False)
    ledger: Mapping[str, Any] = field(repr=False)
    measured: tuple[tuple[str, str | None], ...] = field(repr=False, default=())
    """Every tally by name, and level, that has a measurement or an exact number in this folder."""
    files: Mapping[str, tuple[str, int]] = field(repr=False, default_factory=dict)
    """For each other file its SHA-256 and its size in bytes."""
    signature: Mapping[str, Any] | None = field(repr=False, default=None)

    def __post_init__(self) -> None:
        if self.version < 1 or not MOMENT.fullmatch(self.published):
            raise ValueError(
                f"a version counts from 1 and a moment is in ISO form, got {self.version}, {self.published}"
            )
        for path in self.files:
            _require_inside(path)

    def as_data(self) -> dict[str, Any]:
        """The manifest as plain data."""
        return {
            "format": FORMAT,
            "release": {"name": self.name, "title": self.title, "edition": self.edition, "version": self.version},
            "run": self.run,
            "published": self.published,
            "code": dict(self.code),
            "plan": dict(self.plan),
            "ledger": dict(self.ledger),
            "measured": [[name, level] for name, level in self.measured],
            "files": {path: {"sha256": digest, "bytes": size} for path, (digest, size) in self.files.items()},
            "signature": None if self.signature is None else dict(self.signature),
        }

    def to_be_signed(self) -> bytes:
        """The bytes a signature is over: the manifest without it."""
        data = self.as_data()
        del data["signature"]
        return canonical(data)

    def signed(self, signature: Mapping[str, Any]) -> Manifest:
        """The same manifest with its signature."""
        return replace(self, signature=signature)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes `manifest.json`."""
    with (folder / MANIFEST).open("xb") as file:
        file.write(indented(manifest.as_data()))


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a release folder. Raises `ReleaseFault` where it is not exactly as one is written."""
    data = read_canonical(read_bytes(folder / MANIFEST, MANIFEST), MANIFEST, is_indented=True)
    try:
        if data.pop("format") != FORMAT:
            raise ReleaseFault(f"{MANIFEST} has another format; this Margrave reads format {FORMAT}")
        release = data.pop("release")
        data["measured"] = tuple((name, level) for name, level in data["measured"])
        data["files"] = {path: _file(data["files"][path]) for path in data["files"]}
        found = Manifest(**release, **data)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ReleaseFault(f"{MANIFEST} lacks a value, has one too many, or one of another kind") from None
    _require_kinds(found)
    return found


def _file(facts: Any) -> tuple[str, int]:
    digest, size = facts["sha256"], facts["bytes"]
    if len(facts) != 2 or not DIGEST.fullmatch(digest) or type(size) is not int or size < 0:
        raise ValueError("not a hash and a size")
    return digest, size


def _require_kinds(found: Manifest) -> None:
    plain = [found.code, found.plan, found.ledger, {} if found.signature is None else found.signature]
    texts = [found.name, found.title, found.run, *(name for name, _ in found.measured)]
    texts += found.code.values() if isinstance(found.code, dict) else []
    maybe = [found.edition, *(level for _, level in found.measured)]
    if (
        type(found.version) is not int
        or not all(isinstance(text, str) for text in texts)
        or not all(text is None or isinstance(text, str) for text in maybe)
        or not all(isinstance(one, dict) for one in plain)
    ):
        raise ReleaseFault(f"{MANIFEST} has a value of another kind than is written there")


def _require_inside(path: str) -> None:
    """A path is relative, written one way, and stays in the folder."""
    parts = PurePosixPath(path).parts
    if not path or path == MANIFEST or "\\" in path or "\0" in path or str(PurePosixPath(path)) != path:
        raise ValueError(f"'{path}' is not the path of a file of a release")
    if path.startswith("/") or ".." in parts or "." in parts:
        raise ValueError(f"'{path}' leads out of the release")


def mark_superseded(folder: Path, *, by: str, reason: str) -> None:
    """Marks a release that a later version takes the place of; its own files stay as they are."""
    aside = folder.parent / f".{folder.name}.{SUPERSEDED}"
    aside.write_bytes(indented({"by": by, "reason": reason}))
    aside.replace(folder / SUPERSEDED)


def hashes_of(folder: Path) -> dict[str, tuple[str, int]]:
    """Hash and size of every file in a folder but the manifest, by path. Raises `ReleaseFault` for what is no file."""
    found = {}
    for path, fault in _walked(folder, ""):
        if fault is not None:
            raise ReleaseFault(fault)
        if path != MANIFEST:
            found[path] = _hash(folder / path)
    return dict(sorted(found.items()))


def check_hashes(folder: Path) -> list[str]:
    """What differs between a folder and its manifest, in sentences: missing, changed and extra files, links."""
    manifest = read_manifest(folder)
    faults, present = [], set()
    for path, fault in _walked(folder, ""):
        present.add(path)
        if fault is not None:
            faults.append(fault)
        elif path in (MANIFEST, SUPERSEDED):
            continue
        elif path not in manifest.files:
            faults.append(f"{path} is not in the manifest; it was added after publication")
        elif (found := _hash(folder / path)) != manifest.files[path]:
            faults.append(_changed(path, found, manifest.files[path]))
    faults += [f"{path} is in the manifest and not in the folder" for path in manifest.files if path not in present]
    return faults


def _changed(path: str, found: tuple[str, int], expected: tuple[str, int]) -> str:
    if found[1] != expected[1]:
        return f"{path} has {found[1]} bytes, the manifest says {expected[1]}"
    return f"{path} has the hash {found[0][:12]}..., the manifest says {expected[0][:12]}...: it was changed"


def _walked(folder: Path, within: str) -> Iterator[tuple[str, str | None]]:
    """Every entry below a folder by path, with a sentence where it is neither a file nor a folder."""
    try:
        entries = sorted(os.scandir(folder / within), key=lambda entry: entry.name)
    except OSError as fault:
        raise ReleaseFault(f"{within or 'the folder'} cannot be read: {fault.strerror}") from None
    for entry in entries:
        path = f"{within}/{entry.name}" if within else entry.name
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            yield from _walked(folder, path)
        elif stat.S_ISREG(mode):
            yield path, None
        elif stat.S_ISLNK(mode):
            yield path, f"{path} is a link; a release holds files only"
        else:
            yield path, f"{path} is neither a file nor a folder"


def _hash(path: Path) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while piece := file.read(AT_ONCE):
                digest.update(piece)
                size += len(piece)
    except OSError as fault:
        raise ReleaseFault(f"{path.name} cannot be read: {fault.strerror}") from None
    return digest.hexdigest(), size
