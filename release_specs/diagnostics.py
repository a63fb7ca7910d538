"""What `check` says: one finding is one mistake, warning or note, with its place and what to do about it.

Rooms raise no exceptions for a statistician's mistakes; they collect `Finding`s, so that a spec reports all of
them at once. A `Finding` knows the path inside the spec; a `Diagnostic` knows file, line and column too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

Path = tuple[str | int, ...]


class Severity(StrEnum):
    """How bad it is: an error stops everything, a warning is legal and unwise, a note is good to know."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to tell the author, at a path of the spec; `at_key` points at the key instead of its value.

    `place` is a file beside the spec with a line and a column, for mistakes that stand there.
    """

    severity: Severity
    code: str
    path: Path
    message: str
    at_key: bool = False
    place: tuple[str, int, int] | None = None


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding with its place in a file; line and column count from 1."""

    file: str
    line: int
    column: int
    severity: Severity
    code: str
    path: str
    message: str

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{self.file}:{self.line}:{self.column}: {self.severity}[{self.code}]: {where}{self.message}"

    def as_data(self) -> dict[str, str | int]:
        """The same as plain data, for `--json`."""
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "severity": str(self.severity),
            "code": self.code,
            "path": self.path,
            "message": self.message,
        }


class SpecError(Exception):
    """A spec that cannot be used. Carries every diagnostic, the harmless ones too."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(str(d) for d in self.diagnostics if d.severity is Severity.ERROR))


def error(
    code: str, path: Path, message: str, *, at_key: bool = False, place: tuple[str, int, int] | None = None
) -> Finding:
    """A mistake: the spec cannot be used until it is mended."""
    return Finding(Severity.ERROR, code, path, message, at_key, place)


def warning(code: str, path: Path, message: str, *, at_key: bool = False) -> Finding:
    """Legal, and probably not what the author wants."""
    return Finding(Severity.WARNING, code, path, message, at_key)


def note(code: str, path: Path, message: str) -> Finding:
    """Good to know."""
    return Finding(Severity.NOTE, code, path, message, at_key=True)


def dotted(path: Path) -> str:
    """`('tables', 'age', 'by', 1)` as the author would say it: `tables.age.by[1]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


MOST_COMPARED = 2_000
"""With more names than this, only a difference in case is looked for: comparing letters would take seconds."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    folded = {name.casefold(): name for name in known}
    if len(folded) > MOST_COMPARED:
        return folded.get(word.casefold())
    near = get_close_matches(word.casefold(), folded, n=1, cutoff=0.6)
    return folded[near[0]] if near else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence that ends a message about an unknown word: the near name, or the names there are."""
    names = list(dict.fromkeys(known))
    near = nearest(word, names)
    if near is not None:
        return f"did you mean '{near}'?"
    if not names:
        return "none are declared"
    return f"known: {listed(names)}"


def listed(words: Iterable[object], most: int = 12) -> str:
    """Words with commas between them, cut after a dozen."""
    texts = [str(word) for word in words]
    if len(texts) <= most:
        return ", ".join(texts)
    return ", ".join(texts[:most]) + f" and {len(texts) - most} more"
