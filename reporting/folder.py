"""A release appears whole or not at all: written aside, verified by reading it back, renamed into place.

Aside is a hidden folder beside the target that nobody else may enter until all is well. It is locked for as long as its
process lives, so that what a killed process leaves behind is known for what it is.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from reporting.check_release import check_release
from reporting.errors import ReleaseFault
from reporting.manifest import Manifest, hashes_of, write_manifest

PREFIX = ".margrave-aside-"
YOUNG = 2.0
"""Seconds in which a folder may be made and not yet locked."""
FILE_MODE, FOLDER_MODE, ASIDE_MODE = 0o644, 0o755, 0o700

Sign = Callable[[bytes], Mapping[str, Any]]
"""A signature, as plain data, over the bytes of a manifest."""
Fill = Callable[[Path], None]
"""Writes the files of a release into the folder it is given."""


def write_release(target: Path, manifest: Manifest, *, fill: Fill, sign: Sign | None = None) -> Manifest:
    """Publishes a release in a folder that does not exist yet. Whatever goes wrong, no part of it appears.

    `fill` writes everything but the manifest, whose list of files is made from what it wrote.
    """
    _require_free(target)
    with _aside(target) as aside:
        fill(aside)
        manifest = replace(manifest, files=hashes_of(aside))
        if sign is not None:
            manifest = manifest.signed(sign(manifest.to_be_signed()))
        write_manifest(aside, manifest)
        _make_durable(aside)
        wrong = [f"{check.name}: {check.detail}" for check in check_release(aside) if not check.ok]
        if wrong:
            raise ReleaseFault(f"the release was not published, for what was written does not hold. {' '.join(wrong)}")
        _require_free(target)
        aside.chmod(FOLDER_MODE)
        aside.rename(target)
    _sync(target.parent)
    return manifest


def _require_free(target: Path) -> None:
    if os.path.lexists(target):
        raise ReleaseFault(
            f"{target.name} exists already in {target.parent.name}; a published release is never overwritten"
        )
    if not target.parent.is_dir():
        raise ReleaseFault(f"there is no folder {target.parent} to publish in; make it first")


@contextmanager
def _aside(target: Path) -> Iterator[Path]:
    """A hidden, locked folder beside a target; gone at the end unless it was renamed."""
    aside = target.parent / f"{PREFIX}{target.name}-{secrets.token_hex(4)}"
    aside.mkdir(mode=ASIDE_MODE)
    lock = os.open(aside, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        aside.chmod(ASIDE_MODE)
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        os.close(lock)


def _make_durable(folder: Path) -> None:
    """Every file and folder readable by all, whatever the process's mask, and on disk."""
    for base, folders, files in os.walk(folder, topdown=False):
        for name in files:
            (Path(base) / name).chmod(FILE_MODE)
        for name in folders:
            (Path(base) / name).chmod(FOLDER_MODE)
    sync_all(folder)


def sync_all(folder: Path) -> None:
    """Waits until every file and folder in a folder is on disk, and the folder itself."""
    for base, _, files in os.walk(folder, topdown=False):
        for name in files:
            _sync(Path(base) / name)
        _sync(Path(base))


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def sweep_aside(parent: Path, *, target: str = "") -> list[str]:
    """Removes what killed processes left aside in a folder of releases, and names it.

    What was to become `target` is removed however young it is: the caller knows that nobody else writes it.
    """
    removed = []
    for left in sorted(parent.glob(f"{PREFIX}*")):
        own = bool(target) and left.name.rpartition("-")[0] == f"{PREFIX}{target}"
        try:
            if left.is_symlink() or (not own and time.time() - left.stat().st_mtime < YOUNG):
                continue
            lock = os.open(left, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left)
            removed.append(left.name)
        except OSError:
            continue
        finally:
            os.close(lock)
    return removed
