"""An outline: the text of a spec that a person still has to finish, written as careful, aligned YAML.

An outline is a tree of blocks. What a person must decide is an `Undecided`: it is written as the word DECIDE, with a
comment that says what to decide and what is suggested. Comments never carry meaning; every text is quoted where YAML
would otherwise read something else into it.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from release_specs.language.values import UNDECIDED

WIDTH = 116
_PLAIN = re.compile(r"(?:[^\W_]|[-+](?=\d))(?:[\w ()./+%&$'-]*[\w()./+%&$'-])?")


@dataclass(frozen=True, slots=True)
class Undecided:
    """A choice that is left to a person: what to decide and, where someone suggests something, what and who."""

    what: str
    suggestion: str = ""
    suggested_by: str = ""

    @property
    def comment(self) -> str:
        """What stands behind the word DECIDE."""
        if not self.suggestion:
            return self.what
        said = f"{self.suggested_by} suggests" if self.suggested_by else "for example"
        return f"{self.what}; {said} {self.suggestion}"


@dataclass(frozen=True, slots=True)
class Remark:
    """Comment lines between the entries of a block. What stands in `lines` is kept; `text` is wrapped."""

    text: str = ""
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """A key and its value; `above` is a comment on lines of its own, `beside` one at the end of the line."""

    key: str
    value: Value
    beside: str = ""
    above: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A mapping. One that may `fit` stands in one line where there is room; `aligned` ones align their values."""

    entries: tuple[Entry | Remark, ...]
    fit: bool = False
    aligned: bool = False


Value = str | tuple[str | Undecided, ...] | Undecided | Block


def quoted(text: str) -> str:
    """The text as one YAML scalar, as plain as it may be: it reads back as the same text as key and as value."""
    if _PLAIN.fullmatch(text):
        return text
    if not text.isprintable():
        return '"' + "".join(map(_escaped, text)) + '"'
    if '"' in text or "\\" in text:
        return "'" + text.replace("'", "''") + "'"
    return f'"{text}"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def written(outline: Block) -> str:
    """The outline as YAML text; a blank line before every section that has a comment above it."""
    lines: list[str] = []
    for entry in outline.entries:
        part = list(_aligned_comments(_block_lines(Block((entry,)), 0)))
        if lines and part and part[0].startswith("#"):
            lines.append("")
        lines += part
    return "\n".join(lines) + "\n"


def inline(value: Value) -> str:
    """The value in one line."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Undecided):
        return UNDECIDED
    if isinstance(value, tuple):
        return f"[{', '.join(map(inline, value))}]"
    return f"{{{', '.join(f'{quoted(entry.key)}: {inline(entry.value)}' for entry in _entries(value))}}}"


def comment_text(text: str) -> str:
    """Any text as one line that may stand in a comment."""
    return "".join(character if character.isprintable() else " " for character in " ".join(text.split()))


Line = tuple[str, str]
"""The text of a line, and the comment at its end."""


def _block_lines(block: Block, indent: int) -> Iterator[Line]:
    short = [entry for entry in block.entries if isinstance(entry, Entry) and _fits(entry, indent)]
    width = max((len(quoted(entry.key)) for entry in short), default=0) if block.aligned else 0
    for entry in block.entries:
        if isinstance(entry, Remark):
            yield from _comment_lines(entry, indent)
            continue
        yield from _comment_lines(Remark(entry.above), indent)
        lead = " " * indent + f"{quoted(entry.key)}:"
        if entry in short:
            yield lead.ljust(indent + width + 1) + " " + inline(entry.value), "; ".join(_comments(entry))
        elif isinstance(entry.value, Block):
            yield lead, comment_text(entry.beside)
            yield from _block_lines(entry.value, indent + 2)


def _fits(entry: Entry, indent: int) -> bool:
    """Whether an entry stands in one line: there is room, and at most one comment inside it."""
    if not isinstance(entry.value, Block):
        return True
    text, comments = inline(entry.value), _comments(entry)
    room = WIDTH - indent - len(quoted(entry.key)) - sum(map(len, comments))
    return _may_close(entry.value) and len(comments) <= 1 and len(text) <= room


def _may_close(block: Block) -> bool:
    """Whether the block, and all within it, may be written between braces."""
    if not block.fit or any(isinstance(entry, Remark) or entry.above for entry in block.entries):
        return False
    return all(_may_close(entry.value) for entry in _entries(block) if isinstance(entry.value, Block))


def _entries(block: Block) -> list[Entry]:
    return [entry for entry in block.entries if isinstance(entry, Entry)]


def _comments(entry: Entry) -> list[str]:
    """What has to be said beside an entry and all within it."""
    found = [comment_text(entry.beside)] if entry.beside else []
    if isinstance(entry.value, Block):
        return found + [comment for inner in _entries(entry.value) for comment in _comments(inner)]
    parts = entry.value if isinstance(entry.value, tuple) else (entry.value,)
    return found + [comment_text(part.comment) for part in parts if isinstance(part, Undecided)]


def _comment_lines(remark: Remark, indent: int) -> Iterator[Line]:
    lead = " " * indent + "# "
    for line in textwrap.wrap(
        comment_text(remark.text), WIDTH - len(lead), break_long_words=False, break_on_hyphens=False
    ):
        yield lead + line, ""
    for line in remark.lines:
        yield lead + comment_text(line), ""


def _aligned_comments(lines: Iterator[Line]) -> Iterator[str]:
    """Comments at the ends of neighbouring lines start in the same column."""
    run: list[Line] = []
    for line in (*lines, ("", "")):
        if line[1]:
            run.append(line)
            continue
        width = max((len(text) for text, _ in run), default=0)
        width = width if width <= WIDTH // 2 else 0
        yield from (f"{text.ljust(width)}   # {comment}" for text, comment in run)
        run = []
        if line[0]:
            yield line[0]
