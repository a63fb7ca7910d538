"""What a person at the terminal sees: lines, colours, and the sentence that says what to do."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import textwrap
import threading
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Self

from release_specs.diagnostics import Diagnostic, Severity, SpecError

if TYPE_CHECKING:
    from release_specs.load import Loaded

OK, NOT_SO, WRONG_INPUT, HELD = 0, 1, 2, 3
SHOWN_LETTERS = 6
LEAST_WIDTH, INDENT = 40, " " * 4

_COLOURS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.NOTE: "36"}


class UserError(Exception):
    """Something only the user can mend, said in one sentence."""


class NotSo(Exception):  # noqa: N818 - an answer, not a mistake of anybody's
    """What was asked for does not hold or could not be made, said in one sentence."""


def say(text: str) -> None:
    """Prints what was asked for."""
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")


def tell(text: str) -> None:
    """Prints something about the work, beside what was asked for."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def load_or_say(path: Path, nothing: str) -> Loaded | None:
    """The spec in a file; None after its mistakes were printed, with what therefore was not done."""
    from release_specs.load import load_spec

    try:
        return load_spec(path)
    except SpecError as fault:
        for item in fault.diagnostics:
            if item.severity is Severity.ERROR:
                say(shown(item))
    tell(f"{nothing}: mend the spec first (margrave check {path}).")
    return None


class Stages:
    """Names the stages of long work as they begin. A terminal also sees a sign that moves at one pace for any data."""

    SIGNS, PACE = "|/-\\", 0.2

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._thread = threading.Thread(target=self._move, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            sys.stderr.write("\r \r")
            sys.stderr.flush()

    def tell(self, stage: str) -> None:
        """A stage begins."""
        tell(f"\r{stage} ..." if self._thread is not None else f"{stage} ...")

    def _move(self) -> None:
        for sign in itertools.cycle(self.SIGNS):
            if self._ended.wait(self.PACE):
                return
            sys.stderr.write(f"\r{sign}")
            sys.stderr.flush()


def plainly(amount: Fraction) -> str:
    """An amount as people write it: whole, a short fraction, or a rounded decimal."""
    text = str(amount)
    return text if len(text) <= SHOWN_LETTERS else f"{float(amount):.8g}"


def ask(question: str, default: str) -> str:
    """Asks at the terminal; no answer is the default."""
    sys.stderr.write(f"{question} [Enter = {default}]: " if default else f"{question}: ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not sys.stdin.isatty():
        sys.stderr.write("\n")
    return answer.strip() or default


def shown(item: Diagnostic) -> str:
    """A diagnostic as a line, wrapped and coloured where a person looks."""
    text = wrapped(str(item))
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return text
    sign = f"{item.severity}[{item.code}]"
    return text.replace(sign, f"\033[1;{_COLOURS[item.severity]}m{sign}\033[0m", 1)


def wrapped(text: str) -> str:
    """A line broken between words at the terminal's width; unbroken where no person looks, for `grep` and the like."""
    if not sys.stdout.isatty():
        return text
    width = max(shutil.get_terminal_size().columns, LEAST_WIDTH)
    return textwrap.fill(text, width, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False)
