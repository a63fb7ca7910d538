"""What a disk refuses in the tests: at a named point a call fails with the system's error, or no file may grow."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.flows.crashes.points import arm, wrap

ROOM = 100
"""Bytes that a file may have on the disk that is full: a longer write is cut short, the next one fails."""


@dataclass(frozen=True)
class Fault:
    """The point at which something fails, and how; without an error of its own the disk is full from there on."""

    point: str
    error: int | None = None
    nth: int = 1

    @property
    def why(self) -> str:
        """The system's words for it."""
        return os.strerror(self.error if self.error is not None else errno.EFBIG)

    def arm(self) -> None:
        """Makes it happen in this process."""
        arm(self.point, self.nth, self._fail)

    def _fail(self) -> None:
        if self.error is not None:
            raise OSError(self.error, self.why, "persons.csv, of person 4711")
        resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM))


FAULTS = {
    "no room for the reservation": Fault("before it is reserved"),
    "no room for the copy of the spec": Fault("after it is reserved"),
    "no room for the dataset's identity": Fault("stage, opening the microdata"),
    "no room for the charge": Fault("stage, paying"),
    "no room for the attempt": Fault("before it is attempted"),
    "no room for the measurements": Fault("the first random bit"),
    "no room for the hash of the measurements": Fault("the measurements linked"),
    "no room for the tables": Fault("stage, writing tables"),
    "no room for the release": Fault("stage, publishing"),
    "no room for the last entry": Fault("before it is published"),
    "the order fails to reach the disk": Fault("the order not yet on disk", errno.EIO),
    "the order cannot be put in place": Fault("the order not yet in place", errno.EROFS),
    "the note of the microdata fails to reach the disk": Fault("the microdata noted in part", errno.ENOSPC),
    "the measurements fail to reach the disk": Fault("the measurements not yet on disk", errno.EIO),
    "the measurements cannot be linked": Fault("the measurements not yet linked", errno.EIO),
    "the measurements' folder is read-only": Fault("the measurements not yet linked", errno.EROFS),
    "the measurements' folder fails to reach the disk": Fault("the measurements linked, not yet on disk", errno.EIO),
    "the note of the microdata cannot be removed": Fault("the microdata not yet forgotten", errno.EROFS),
    "the folder for tables is read-only": Fault("no folder for tables yet", errno.EROFS),
    "the tables fail to reach the disk": Fault("the tables not yet on disk", errno.EIO),
    "the tables cannot be put in place": Fault("tables not yet in place", errno.EACCES),
    "the folder of releases is read-only": Fault("no folder aside yet", errno.EROFS),
    "the disk of releases is full": Fault("the release copied in part", errno.EDQUOT),
    "the release fails to reach the disk": Fault("the release not yet on disk", errno.EIO),
    "the release cannot be renamed": Fault("the release not yet renamed", errno.EIO),
}


def without_unnamed_files() -> None:
    """From now on this process finds no file system that has unnamed files."""

    def refusing(function: Callable[..., int]) -> Callable[..., int]:
        def opened(path: str, flags: int, *rest: Any, **more: Any) -> int:
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
            return function(path, flags, *rest, **more)

        return opened

    wrap("os:open", refusing)
