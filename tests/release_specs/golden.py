"""The golden mistakes: each is a small change to one base spec, with the exact diagnostics it must get.

`python -m tests.release_specs.golden` writes the diagnostics of today into `mistakes.yaml`: read the difference aloud
before committing it.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from release_specs.diagnostics import Severity, SpecError
from release_specs.load import load_spec

HERE = Path(__file__).parent
BASE = HERE / "base"
MISTAKES = HERE / "mistakes.yaml"


@dataclass(frozen=True, slots=True)
class Mistake:
    """A slip a person might make, as a change to the base spec or as a text of its own, and what `check` says."""

    name: str
    change: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, str], ...]
    text: str | None
    says: tuple[str, ...]

    def written_to(self, folder: Path) -> Path:
        """The mistaken spec with its public files, in a folder."""
        shutil.copytree(BASE, folder, dirs_exist_ok=True)
        text = self.text
        if text is None:
            text = (BASE / "spec.yaml").read_text(encoding="utf-8")
            for old, new in self.change:
                if text.count(old) != 1:
                    raise ValueError(f"{self.name}: '{old}' stands {text.count(old)} times in the base spec")
                text = text.replace(old, new)
        for name, content in self.files:
            (folder / name).write_text(content, encoding="utf-8")
        (folder / "spec.yaml").write_text(text, encoding="utf-8")
        return folder / "spec.yaml"


def read_mistakes() -> list[Mistake]:
    """Every golden mistake."""
    entries = YAML(typ="safe", pure=True).load(MISTAKES.read_text(encoding="utf-8"))
    return [
        Mistake(
            entry["name"],
            tuple((old, new) for old, new in entry.get("change", [])),
            tuple(entry.get("files", {}).items()),
            entry.get("text"),
            tuple(entry.get("says", ())),
        )
        for entry in entries
    ]


def diagnostics_of(mistake: Mistake, folder: Path) -> tuple[str, ...]:
    """What `check` says about a mistake, as lines without the folder; notes are left out."""
    path = mistake.written_to(folder)
    try:
        found = load_spec(path).diagnostics
    except SpecError as fault:
        found = fault.diagnostics
    return tuple(str(item).replace(f"{folder}/", "") for item in found if item.severity is not Severity.NOTE)


def _rewrite() -> None:
    yaml = YAML()
    yaml.width = 10_000
    entries: list[Any] = yaml.load(MISTAKES.read_text(encoding="utf-8"))
    for entry, mistake in zip(entries, read_mistakes(), strict=True):
        with tempfile.TemporaryDirectory() as folder:
            entry["says"] = [DoubleQuotedScalarString(line) for line in diagnostics_of(mistake, Path(folder))]
    with MISTAKES.open("w", encoding="utf-8") as file:
        yaml.dump(entries, file)


if __name__ == "__main__":
    _rewrite()
