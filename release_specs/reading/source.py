"""Bytes on disk to text, or one clear sentence why not."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from release_specs.diagnostics import Diagnostic, Severity, SpecError

LARGEST_SPEC = 200_000
"""Bytes. A spec is written by hand; long code lists and areas belong in CSV files beside it."""

LARGEST_PUBLIC_FILE = 2_000_000_000

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def read_source(path: Path, *, shown_as: str, largest: int = LARGEST_SPEC) -> str:
    """The text of a UTF-8 file, without its byte-order mark. Raises `SpecError` with one diagnostic."""
    try:
        if path.is_dir():
            raise _fault(shown_as, "file-unreadable", "this is a folder; give the file inside it")
        facts = path.stat()
        size = facts.st_size
        if not stat.S_ISREG(facts.st_mode):
            raise _fault(shown_as, "file-unreadable", "this is a device or a pipe; give a file")
        if size > largest:
            raise _fault(
                shown_as,
                "file-too-large",
                f"the file has {size:,} bytes; at most {largest:,} are read. "
                "Long code lists and areas belong in CSV files beside the spec, named in it",
            )
        data = path.read_bytes()
    except FileNotFoundError:
        raise _fault(shown_as, "file-missing", "there is no such file; check the spelling and the folder") from None
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or "the name cannot be used"
        raise _fault(shown_as, "file-unreadable", f"the file cannot be read: {reason}") from None
    return _without_control_characters(_decode(data, shown_as), shown_as)


def _decode(data: bytes, shown_as: str) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\x00" in data[:4]:
        raise _fault(shown_as, "bad-encoding", "the file looks like UTF-16 or UTF-32; save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        before = data[: fault.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        raise _fault(
            shown_as,
            "bad-encoding",
            f"byte 0x{data[fault.start]:02x} is not UTF-8 (the file may be Latin-1 or Windows-1252); save it as UTF-8",
            line=line,
            column=column,
        ) from None


def _without_control_characters(text: str, shown_as: str) -> str:
    found = _CONTROL.search(text)
    if found is None:
        return text
    at = found.start()
    raise _fault(
        shown_as,
        "bad-character",
        f"an invisible control character (U+{ord(text[at]):04X}) stands here; delete it",
        line=text.count("\n", 0, at) + 1,
        column=at - text.rfind("\n", 0, at),
    )


def _fault(file: str, code: str, message: str, *, line: int = 1, column: int = 1) -> SpecError:
    return SpecError([Diagnostic(file, line, column, Severity.ERROR, code, "", message)])
