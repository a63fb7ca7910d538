"""YAML text to plain dicts, lists and text, with the place of every key and value.

Only the parser's events are used: nothing is constructed, resolved or expanded. Every scalar stays the text that
was written, so `NO`, `01`, `9:30` and `1e-10` reach the language untouched. Anchors, tags, merge keys and several
documents are not part of the language and are refused with a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from release_specs.diagnostics import Diagnostic, Path, Severity, SpecError, dotted

Data = dict[str, Any] | list[Any] | str | None
"""A tree as written: mappings, lists, text, and None where nothing was written."""

DEEPEST = 40
MOST_VALUES = 20_000
LONGEST_LINE = 1_024


@dataclass(slots=True)
class Tree:
    """What was written, and where: the position of each key and of each value by its path."""

    file: str
    data: Data = None
    values: dict[Path, tuple[int, int]] = field(default_factory=dict)
    keys: dict[Path, tuple[int, int]] = field(default_factory=dict)

    def place(self, path: Path, *, at_key: bool = False) -> tuple[int, int]:
        """Line and column of a path: its scalar, else its key, else the nearest thing that encloses it."""
        for end in range(len(path), 0, -1):
            part = path[:end]
            if end == len(path) and not at_key and part in self.values:
                return self.values[part]
            if end < len(path) and part in self.values:
                return self.values[part]
            if part in self.keys:
                return self.keys[part]
            if part in self.values:
                return self.values[part]
        return 1, 1

    def line(self, path: Path) -> int:
        """The line of a path's key."""
        return self.place(path, at_key=True)[0]


def parse_tree(text: str, file: str) -> Tree:
    """The tree of one YAML document. Raises `SpecError` when the text is not one."""
    builder = _Builder(file)
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            builder.take(event)
    except MarkedYAMLError as fault:
        raise _syntax_error(fault, text, file) from None
    except (YAMLError, ValueError, OverflowError):
        raise SpecError([Diagnostic(file, 1, 1, Severity.ERROR, "bad-yaml", "", "this is not YAML text")]) from None
    return builder.finish()


@dataclass(slots=True)
class _Open:
    """A mapping or list that is still being filled."""

    path: Path
    into: dict[str, Any] | list[Any]
    key: str | None = None


class _Builder:
    """Takes parser events one by one and grows the tree, refusing what the language does not have."""

    def __init__(self, file: str) -> None:
        self.tree = Tree(file)
        self.stack: list[_Open] = []
        self.faults: list[Diagnostic] = []
        self.documents = 0
        self.count = 0

    def take(self, event: Any) -> None:
        if isinstance(event, DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                self._stop(event, "several-documents", "a second document starts here ('---'); a spec is one document")
        elif isinstance(event, MappingEndEvent | SequenceEndEvent):
            self.stack.pop()
        elif isinstance(event, NodeEvent):
            self._node(event)

    def finish(self) -> Tree:
        if self.documents and not self.faults and isinstance(self.tree.data, dict):
            return self.tree
        if not self.faults:
            data = self.tree.data
            found = "a list" if isinstance(data, list) else "plain text" if isinstance(data, str) else "nothing"
            message = (
                f"found {found}; a spec has named sections and begins with 'margrave: 1'. 'margrave init' writes one"
            )
            self.faults.append(Diagnostic(self.tree.file, 1, 1, Severity.ERROR, "not-a-spec", "", message))
        raise SpecError(self.faults)

    def _node(self, event: Any) -> None:
        self.count += 1
        if self.count > MOST_VALUES:
            self._stop(
                event,
                "too-many-values",
                f"more than {MOST_VALUES:,} values; put long code lists and areas in CSV files beside the spec",
            )
        if isinstance(event, AliasEvent) or event.anchor is not None:
            self._stop(
                event, "no-anchors", "anchors and aliases (& and *) are not part of the language; write the text out"
            )
        if event.tag is not None and not (isinstance(event, ScalarEvent) and str(event.tag) == "!"):
            tag = str(event.tag).replace("tag:yaml.org,2002:", "!!")
            self._stop(event, "no-tags", f"the tag '{tag}' is not part of the language; leave it out")
        if self._awaits_key():
            self._key(event)
            return
        path = self._place_value(event)
        if isinstance(event, MappingStartEvent | SequenceStartEvent):
            if len(self.stack) >= DEEPEST:
                self._stop(event, "too-deep", f"nested more than {DEEPEST} deep; no part of the language is")
            into: dict[str, Any] | list[Any] = {} if isinstance(event, MappingStartEvent) else []
            self._attach(into)
            self.stack.append(_Open(path, into))
        else:
            plain_nothing = event.value == "" and event.implicit[0]
            self._attach(None if plain_nothing else event.value)

    def _awaits_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].into, dict) and self.stack[-1].key is None

    def _key(self, event: Any) -> None:
        top = self.stack[-1]
        if not isinstance(event, ScalarEvent):
            self._stop(event, "key-not-text", "a key must be plain text, not a list or a mapping; check the braces")
        elif event.value == "<<" and event.implicit[0]:
            self._stop(event, "no-anchors", "merge keys ('<<') are not part of the language; write the text out")
        key = event.value
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        path = (*top.path, key)
        if key in top.into:
            first = self.tree.keys[path][0]
            message = f"'{key}' stands here twice, first in line {first}; keep one"
            self.faults.append(
                Diagnostic(self.tree.file, line, column, Severity.ERROR, "duplicate-key", dotted(path), message)
            )
        else:
            self.tree.keys[path] = (line, column)
        top.key = key

    def _place_value(self, event: Any) -> Path:
        path: Path = ()
        if self.stack:
            top = self.stack[-1]
            path = (*top.path, top.key if isinstance(top.into, dict) and top.key is not None else len(top.into))
        is_scalar = isinstance(event, ScalarEvent) and bool(event.value or not event.implicit[0])
        in_list = bool(self.stack) and isinstance(self.stack[-1].into, list)
        if is_scalar or in_list or not self.stack:
            self.tree.values[path] = (event.start_mark.line + 1, event.start_mark.column + 1)
        return path

    def _attach(self, value: Data) -> None:
        if not self.stack:
            self.tree.data = value
            return
        top = self.stack[-1]
        if isinstance(top.into, list):
            top.into.append(value)
        elif top.key is not None:
            top.into[top.key] = value
            top.key = None

    def _stop(self, event: Any, code: str, message: str) -> None:
        mark = event.start_mark
        path = dotted(self.stack[-1].path) if self.stack else ""
        fault = Diagnostic(self.tree.file, mark.line + 1, mark.column + 1, Severity.ERROR, code, path, message)
        raise SpecError([*self.faults, fault])


_PLAIN_WORDS = (
    ("mapping values are not allowed", "a second ': ' in one line; put quotes around the text, or start a new line"),
    ("cannot start any token", "a value may not begin with this character; put quotes around it"),
    ("found unexpected end of stream", "a quoted text is never closed; add the missing quote"),
    ("'<stream end>'", "a bracket is never closed; add the missing ']' or '}'"),
    ("expected ',' or ", "a comma or a closing bracket is missing before this, or a text with ': ' in it needs quotes"),
    ("expected <block end>", "this does not line up with the lines above; check the indentation and the quotes"),
    ("could not find expected ':'", "a ':' is missing after this key"),
    ("unknown escape character", "a backslash in double quotes starts an escape; use single quotes"),
    ("alphabetic or numeric", "'*' and '&' mean aliases in YAML; put quotes around the text"),
)


def _syntax_error(fault: MarkedYAMLError, text: str, file: str) -> SpecError:
    problem = " ".join(str(part) for part in (fault.problem, fault.context) if part)
    mark = fault.problem_mark or fault.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    lines = text.splitlines()
    written = lines[line - 1] if line <= len(lines) else ""
    if "\t" in written[: len(written) - len(written.lstrip())]:
        message = "a tab is used for indentation; YAML wants spaces"
        return SpecError([Diagnostic(file, line, 1, Severity.ERROR, "tab-indent", "", message)])
    if len(written) > LONGEST_LINE:
        message = f"this line has {len(written):,} characters, and a key may have at most 1,024; break it into lines"
        return SpecError([Diagnostic(file, line, 1, Severity.ERROR, "bad-yaml", "", message)])
    if "mapping values are not allowed" in problem and (slip := _slip_above(lines, line)) is not None:
        (line, column), message = slip
        return SpecError([Diagnostic(file, line, column, Severity.ERROR, "bad-yaml", "", message)])
    advice = next((words for sign, words in _PLAIN_WORDS if sign in problem), f"this is not YAML: {problem}")
    return SpecError([Diagnostic(file, line, column, Severity.ERROR, "bad-yaml", "", advice)])


def _slip_above(lines: list[str], line: int) -> tuple[tuple[int, int], str] | None:
    """A key in the line above that lacks its space or its colon: YAML then reads both lines as one text."""
    above = next((number for number in range(line - 1, 0, -1) if lines[number - 1].strip()), None)
    if above is None or line > len(lines):
        return None
    written, here = lines[above - 1], lines[line - 1]
    indent = len(written) - len(written.lstrip())
    if indent != len(here) - len(here.lstrip()):
        return None
    stuck = re.match(r"\s*([\w-]+):(?=\S)", written)
    if stuck:
        return (above, stuck.end() + 1), f"a space is missing after '{stuck[1]}:'"
    bare = re.match(r"\s*([\w-]+) +\S", written)
    return ((above, indent + len(bare[1]) + 1), f"a ':' is missing after '{bare[1]}'") if bare else None


def walk(data: Data, path: Path = ()) -> Iterator[tuple[Path, Data]]:
    """Every value of a tree with its path, outermost first."""
    yield path, data
    if isinstance(data, dict):
        for key, value in data.items():
            yield from walk(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from walk(value, (*path, index))
