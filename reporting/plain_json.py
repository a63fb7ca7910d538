"""Plain data as JSON, in one form only: sorted keys, no floats, no spaces; read back only if it is in that form."""

from __future__ import annotations

import json
from typing import Any

from reporting.errors import ReleaseFault

DEEPEST = 40


def canonical(data: Any) -> bytes:
    """The one text of plain data: text, whole numbers, truths, nothing, lists and dictionaries of them."""
    _require_plain(data, 0)
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def indented(data: Any) -> bytes:
    """The same for people to read, a line for each value."""
    _require_plain(data, 0)
    return (json.dumps(data, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def read_canonical(text: bytes, where: str, *, is_indented: bool = False) -> Any:
    """The plain data of a text. Raises `ReleaseFault` unless the text is exactly what would be written for them."""
    try:
        data = json.loads(text.decode())
        written = indented(data) if is_indented else canonical(data)
    except (ValueError, RecursionError, TypeError):
        raise ReleaseFault(f"{where} is not JSON of text, whole numbers, lists and named values") from None
    if written != text:
        raise ReleaseFault(
            f"{where} is JSON in another form than is written here: a name twice, another order or spaces"
        )
    return data


def _require_plain(data: Any, depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError("plain data nested too deeply")
    if isinstance(data, dict):
        for key, value in data.items():
            if type(key) is not str:
                raise TypeError(f"a name in plain data is text, found {key!r}")
            _require_plain(value, depth + 1)
    elif isinstance(data, list):
        for value in data:
            _require_plain(value, depth + 1)
    elif data is not None and type(data) not in (str, int, bool):
        raise TypeError(f"plain data hold text, whole numbers, truths, lists and named values, found {data!r}")
