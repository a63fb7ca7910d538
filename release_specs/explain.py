"""A paragraph and an example for each code that `check` prints."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

EXPLANATIONS = Path(__file__).with_name("explanations.toml")


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a code means, why it matters, and how the mistake looks before and after."""

    code: str
    title: str
    why: str
    wrong: str
    right: str

    def __str__(self) -> str:
        wrong = "\n".join(f"    {line}" for line in self.wrong.strip().splitlines())
        right = "\n".join(f"    {line}" for line in self.right.strip().splitlines())
        return f"{self.code}: {self.title}\n\n{self.why.strip()}\n\nInstead of\n\n{wrong}\n\nwrite\n\n{right}\n"

    def as_data(self) -> dict[str, str]:
        """The same as plain data."""
        return {"code": self.code, "title": self.title, "why": self.why, "wrong": self.wrong, "right": self.right}


@lru_cache(maxsize=1)
def explanations() -> dict[str, Explanation]:
    """Every code with its explanation, in alphabetical order."""
    entries = tomllib.loads(EXPLANATIONS.read_text(encoding="utf-8"))
    return {code: Explanation(code, **facts) for code, facts in sorted(entries.items())}
