"""A thousand slips of the pen: whatever is done to a valid spec, `check` answers with diagnostics, and soon."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from release_specs.diagnostics import SpecError
from release_specs.load import Loaded, load_text, load_tree
from release_specs.reading.tree import Tree, parse_tree
from release_specs.write import write_spec

EXAMPLES = sorted((Path(__file__).parents[2] / "release_specs" / "examples").glob("*.yaml"))
MUTATIONS = int(os.environ.get("MARGRAVE_MUTATIONS", "2000"))
"""How many mutated specs are tried; `make test-slow` tries more."""

PATIENCE = 20.0
"""Seconds for one spec: far more than it needs, so that only a hang fails on a busy machine."""

ODD_TEXTS = (
    *("", " ", "0", "-1", "1e99", "1/0", "1/3", "200%", "NaN", "inf", "DECIDE", "rest", "none", "all", "edition"),
    *("..", "0..", "5..1", "1...2", "2025-02-30", "2025-01-01..", "NO", "null", "~", "true", "1,000", "٣", "é" * 50),
    *("a" * 5000, "{x}", "{{x}}", "%s", "\\", "'", "=HYPERLINK()", "<b>", "population", "persons", "age", "whole"),
    *("a / b", "a <= b", "x(y=z) = w", "file.csv", "file.csv:column", "../x.csv", "/etc/passwd", "last day of May"),
)
INSERTIONS = (
    "\t",
    ": ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    "'",
    '"',
    "#",
    "&a ",
    "*a",
    "!!x ",
    "\n",
    "|\n",
    "%",
    "@",
    "\u2028",
    "é",
)


def mutated_tree(data: Any, chance: random.Random) -> Any:
    """The tree with one to three things changed: deleted, renamed, replaced, copied elsewhere, moved."""
    for _ in range(chance.randint(1, 3)):
        holders = [node for node in _nodes(data) if isinstance(node, dict | list) and node]
        if not holders:
            return data
        holder = chance.choice(holders)
        key = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        other = chance.choice(list(_nodes(data)))
        act = chance.choice(("delete", "rename", "text", "nothing", "list", "mapping", "other", "wrap"))
        _change(holder, key, act, other, chance)
    return data


def _nodes(data: Any) -> list[Any]:
    if isinstance(data, dict):
        return [data, *(node for value in data.values() for node in _nodes(value))]
    return [data, *(node for value in data for node in _nodes(value))] if isinstance(data, list) else [data]


def _change(holder: Any, key: Any, act: str, other: Any, chance: random.Random) -> None:
    value = holder[key]
    if act == "delete":
        del holder[key]
    elif act == "rename" and isinstance(holder, dict):
        name = str(key)
        holder[chance.choice((name[:-1], name + "s", name.upper(), *ODD_TEXTS))] = holder.pop(key)
    elif act == "text":
        holder[key] = chance.choice(ODD_TEXTS)
    elif act == "nothing":
        holder[key] = None
    elif act == "list":
        holder[key] = [_copy(value), chance.choice(ODD_TEXTS)]
    elif act == "mapping":
        holder[key] = {chance.choice(ODD_TEXTS): _copy(value)}
    elif act == "other":
        holder[key] = _copy(other)
    else:
        holder[key] = [value]


def _copy(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _copy(value) for key, value in data.items()}
    return [_copy(value) for value in data] if isinstance(data, list) else data


def mutated_text(text: str, chance: random.Random) -> str:
    """The text with a few characters inserted, cut out or swapped, or a piece of it doubled."""
    for _ in range(chance.randint(1, 4)):
        at, length = chance.randrange(len(text) + 1), chance.choice((1, 1, 2, 5, 40, 400))
        act = chance.choice(("insert", "cut", "double", "swap"))
        if act == "insert":
            text = text[:at] + chance.choice(INSERTIONS) + text[at:]
        elif act == "cut":
            text = text[:at] + text[at + length :]
        elif act == "double":
            text = text[:at] + text[at : at + length] + text[at:]
        else:
            text = text[:at] + text[at : at + length][::-1] + text[at + length :]
    return text


@pytest.mark.parametrize("batch", range(10))
def test_a_mutated_spec_gets_diagnostics_and_never_a_traceback(batch: int) -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in EXAMPLES}
    trees = {path: parse_tree(text, path.name).data for path, text in texts.items()}
    for number in range(batch, MUTATIONS, 10):
        chance = random.Random(number)  # noqa: S311 - a seed, so that a failure can be repeated
        path = chance.choice(EXAMPLES)
        if number % 3:
            data = mutated_tree(_copy(trees[path]), chance)
            tree = Tree("mutated.yaml", data) if isinstance(data, dict) else parse_tree(str(data), "mutated.yaml")
            _check(partial(load_tree, tree, folder=path.parent), folder=path.parent, lines=1, number=number)
        else:
            text = mutated_text(texts[path], chance)
            load = partial(load_text, text, file="mutated.yaml", folder=path.parent)
            _check(load, folder=path.parent, lines=text.count("\n") + 2, number=number)


def _check(load: Callable[[], Loaded], *, folder: Path, lines: int, number: int) -> None:
    start = time.monotonic()
    try:
        loaded = load()
        diagnostics = loaded.diagnostics
        if number % 7 == 0:
            again = load_text(write_spec(loaded.spec), file="again.yaml", folder=folder)
            assert again.spec == loaded.spec, number
    except SpecError as fault:
        diagnostics = fault.diagnostics
        assert any(item.severity == "error" for item in diagnostics), number
    for item in diagnostics:
        assert item.message, (number, item)
        assert item.line >= 1, (number, item)
        assert item.column >= 1, (number, item)
        assert item.file != "mutated.yaml" or item.line <= lines, (number, item)
    assert time.monotonic() - start < PATIENCE, number
