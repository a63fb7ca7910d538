"""Somebody who follows a written page: writes its files, runs its commands, and sees what they print.

A fenced block with a file's name is that file, or sections of the spec that is there already. A `console` block holds
commands, each with its output. `python -m tests.follow_tutorial` writes what they print today into the pages.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from flows.cli import main

DOCS = Path(__file__).resolve().parent.parent / "docs"
TUTORIAL = DOCS / "first_release_spec.md"
FOLLOWED = (TUTORIAL, DOCS / "starting_files.md")
FENCE = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"^(?=\w+:)", flags=re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, the file it is (part of), and its text."""

    language: str
    file: str
    text: str


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [Block(*found) for found in FENCE.findall(page.read_text(encoding="utf-8"))]


def with_sections(old: str, new: str) -> str:
    """A spec in which sections are replaced where they stand, and new ones are added at the end."""
    sections = {part.partition(":")[0]: part.strip() for part in SECTION.split(old) if part.strip()}
    sections |= {part.partition(":")[0]: part.strip() for part in SECTION.split(new) if part.strip()}
    return "\n\n".join(sections.values()) + "\n"


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with the output that the page shows."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


class Person:
    """Somebody at the terminal who answers as the page shows."""

    def __init__(self, shown: str) -> None:
        self.lines = shown.splitlines()
        self.said: list[str] = []

    def answer(self, question: str, default: str) -> str:
        """Types what stands after the question on the page; nothing typed is the default."""
        prompt = f"{question} [Enter = {default}]:" if default else f"{question}:"
        line = next((line for line in self.lines if line.startswith(prompt)), prompt)
        self.said.append(line)
        return line.removeprefix(prompt).strip() or default


class Reader:
    """Follows a page in an empty folder, which has to be the current one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, block: Block) -> None:
        """Writes a file, or puts sections into a spec that is there already."""
        path = self.folder / block.file
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(with_sections(old, block.text) if old else block.text, encoding="utf-8")

    def run(self, command: str, shown: str) -> str:
        """What a command prints, questions and answers included."""
        words = shlex.split(command)
        if words[0] != "margrave":
            return subprocess.run(words, capture_output=True, check=True, text=True, cwd=self.folder).stdout
        person, out, err = Person(shown), io.StringIO(), io.StringIO()
        asking = patch("flows.authoring.ask", person.answer)
        with asking, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(words[1:])
        told = err.getvalue().splitlines()
        greeting = told[:1] if person.said else []
        lines = [*greeting, *person.said, *told[len(greeting) :], *out.getvalue().splitlines()]
        return "".join(f"{line}\n" for line in lines)


def follow(page: Path, folder: Path) -> Iterator[tuple[Block, str]]:
    """Every block of a page with what it should hold: files as they are, commands with what they print now."""
    reader = Reader(folder)
    for block in blocks(page):
        text = block.text
        if block.file:
            reader.write(block)
        elif block.language == "console":
            text = "".join(f"$ {command}\n{reader.run(command, shown)}" for command, shown in commands(text))
        yield block, text


def rewrite(page: Path) -> None:
    """Puts what the commands print now into the page."""
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        texts = iter([text for _, text in follow(page, Path(name))])
        os.chdir(page.parent)
    old = page.read_text(encoding="utf-8")
    page.write_text(FENCE.sub(lambda found: found[0].replace(found[3], next(texts), 1), old), encoding="utf-8")


if __name__ == "__main__":
    for followed in FOLLOWED:
        rewrite(followed)
