"""What a disk refuses, said in one sentence: no traceback, and no path of a confidential file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flows.terminal import UserError


@contextmanager
def on_disk(doing: str, folder: Path, *, then: str) -> Iterator[None]:
    """Turns what the disk refuses while it lasts into a `UserError`: what was done, where, why, and what to do `then`.

    Of the system's error only its number is told: its text may name a confidential file.
    """
    try:
        yield
    except OSError as fault:
        why = os.strerror(fault.errno) if fault.errno is not None else "reading or writing failed"
        said = f"{doing} stopped: {why}, reading or writing {folder}. {then}"
    else:
        return
    raise UserError(said)
