"""A spec back to YAML text, in one normal form: the same spec gives the same text, and the text gives the same spec."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from release_specs.spec import ReleaseSpec
from release_specs.starter.outline import WIDTH, quoted


def write_spec(spec: ReleaseSpec) -> str:
    """The normalised text of a spec: sections in the language's order, defaults left out, numbers exact."""
    data = spec.model_dump(by_alias=True, exclude_defaults=True)
    return "\n".join(_lines({"margrave": data.pop("margrave"), **data}, 0)) + "\n"


def _lines(data: dict[str, Any], indent: int) -> Iterator[str]:
    for key, value in data.items():
        lead = " " * indent + f"{quoted(str(key))}:"
        line = f"{lead} {_inline(value)}"
        if (len(line) <= WIDTH and indent > 0) or not isinstance(value, dict | list | tuple):
            yield line
        elif isinstance(value, dict):
            yield lead
            yield from _lines(value, indent + 2)
        else:
            yield lead
            yield from (" " * (indent + 2) + f"- {_inline(item)}" for item in value)


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(str(key))}: {_inline(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_inline(part) for part in value) + "]"
    return quoted(str(value))
