"""The written pages: what they show is what happens, and their links lead somewhere."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from flows import authoring
from flows.cli import main
from release_specs.diagnostics import Severity
from release_specs.load import load_text

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
ROOMS = ("release_specs", "tabulation", "mechanisms", "estimation", "reporting", "flows")
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
        self.lines = [line for line in shown.splitlines() if ":" in line]
        self.said: list[str] = []

    def answer(self, question: str, default: str) -> str:
        """Types what stands after the question on the page; nothing typed is the default."""
        prompt = f"{question} [{default}]:" if default else f"{question}:"
        line = next((line for line in self.lines if line.startswith(prompt)), prompt)
        self.said.append(line)
        return line.removeprefix(prompt).strip() or default


class Reader:
    """Somebody who follows a page: writes its files and runs its commands in an empty folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.capsys, self.monkeypatch = folder, capsys, monkeypatch
        monkeypatch.chdir(folder)
        monkeypatch.setenv("NO_COLOR", "1")

    def write(self, block: Block) -> None:
        """Writes a file, or puts sections into a spec; a spec shown whole has to be what it has become."""
        path = self.folder / block.file
        if path.suffix == ".yaml" and path.exists():
            text = with_sections(path.read_text(encoding="utf-8"), block.text)
            if block.text.startswith("margrave:"):
                assert text == block.text
            path.write_text(text, encoding="utf-8")
        else:
            path.write_text(block.text, encoding="utf-8")

    def run(self, command: str, shown: str) -> str:
        """What a command prints, on both streams, in the order in which a page shows them."""
        words = shlex.split(command)
        if words[0] != "margrave":
            return subprocess.run(words, capture_output=True, check=True, text=True, cwd=self.folder).stdout
        person = Person(shown)
        self.monkeypatch.setattr(authoring, "ask", person.answer)
        main(words[1:])
        told = self.capsys.readouterr()
        first, *later = told.err.splitlines() if person.said else [*told.err.splitlines(), None]
        lines = [first, *person.said, *later, *told.out.splitlines()]
        return "".join(f"{line}\n" for line in lines if line is not None)


def test_every_command_of_the_tutorial_prints_what_the_page_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(tmp_path, capsys, monkeypatch)
    ran = 0
    for block in blocks(DOCS / "first_release_spec.md"):
        if block.file:
            reader.write(block)
        elif block.language == "console":
            for command, shown in commands(block.text):
                assert reader.run(command, shown) == shown, command
                ran += 1
    assert ran >= 10


def test_the_tutorial_ends_with_a_spec_without_mistakes(tmp_path: Path) -> None:
    final = [block for block in blocks(DOCS / "first_release_spec.md") if block.text.startswith("margrave:")][-1]
    found = load_text(final.text, file=final.file, folder=tmp_path).diagnostics
    assert {item.severity for item in found} <= {Severity.NOTE}


def test_the_spec_of_the_readme_has_no_mistake_and_no_warning(tmp_path: Path) -> None:
    (shown,) = (block for block in blocks(ROOT / "README.md") if block.language == "yaml")
    found = load_text(shown.text, file="README.md", folder=tmp_path).diagnostics
    assert {item.severity for item in found} <= {Severity.NOTE}
    assert len(shown.text.splitlines()) <= 40


def test_the_readme_names_every_room() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for room in ROOMS:
        assert f"| [`{room}`]({room}) |" in readme


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_every_link_of_a_page_leads_to_a_file_of_the_project(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_the_index_lists_every_page() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in DOCS.glob("*.md") if f"({page.name})" not in index and page.name != "README.md"] == []
