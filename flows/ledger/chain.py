"""The chain: entries in one order, each sealed with the hash of all before it.

An entry's body is plain data written as canonical JSON; its hash is SHA-256 of its number, the hash before it and the
body. A reader of the bodies alone can compute every hash again, in any language, ten years from now.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from flows.ledger.errors import Broken, Refused

START = "0" * 64
"""What stands before the first entry."""
FORMAT = 2
"""How bodies are written. A later format is a new number in each of its entries; old entries keep theirs for ever."""
LAYOUT_OF = {1: 1, 2: 2}
"""For each format the first layout of the tables in which such entries are written."""
LONGEST = 64 * 2**20
"""No entry is longer; what claims to be is not one of ours."""

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger."""

    seq: int
    before: str
    text: str
    hash: str

    @property
    def body(self) -> Body:
        """What it says."""
        found = json.loads(self.text)
        if type(found) is not dict or canonical(found) != self.text:
            raise ValueError("it is not written as the ledger writes")
        return found


def canonical(data: object) -> str:
    """Plain data as text, the same text for the same data."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(data: object) -> str:
    """The hash of plain data."""
    return sha256(canonical(data).encode()).hexdigest()


def sealed(seq: int, before: str, text: str) -> str:
    """The hash of an entry."""
    return sha256(f"{seq}:{before}:{text}".encode()).hexdigest()


def entry_of(row: Sequence[object]) -> Entry:
    """The entry in a row of a table. Raises `Broken` where the row holds other kinds of values."""
    seq, before, text, hashed = row
    if type(seq) is int and type(before) is str and type(text) is str and type(hashed) is str:
        return Entry(seq, before, text, hashed)
    raise Broken("a row of the table of entries is no entry: the table was exchanged")


def entry_after(last: Entry | None, body: Body) -> Entry:
    """The next entry of a chain."""
    seq, before = (last.seq + 1, last.hash) if last is not None else (1, START)
    text = canonical(body)
    if len(text) > LONGEST:
        raise Refused(f"an entry is at most {LONGEST} letters long, this one would be {len(text)}")
    return Entry(seq, before, text, sealed(seq, before, text))


def linked(entries: Iterable[Entry], last: Entry | None = None) -> Iterator[Entry]:
    """The entries, each after it was found to fit the one before. Raises `Broken`."""
    for entry in entries:
        expected = (last.seq + 1, last.hash) if last is not None else (1, START)
        if (entry.seq, entry.before) != expected:
            raise Broken(
                f"entry {entry.seq} does not follow entry {expected[0] - 1}: entries were removed or exchanged"
            )
        if sealed(entry.seq, entry.before, entry.text) != entry.hash:
            raise Broken(f"entry {entry.seq} was changed: its text does not give its hash")
        yield entry
        last = entry
