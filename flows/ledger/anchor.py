"""An anchor: the head of a ledger at one moment, printed in every release, so that its past cannot be rewritten."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from mechanisms.plain_data import Found


@dataclass(frozen=True, slots=True)
class Anchor:
    """The number and hash of the last entry, and what was spent by then from each policy."""

    ledger: str
    seq: int
    hash: str
    spent: Mapping[str, Fraction]
    """By `account/period`."""

    def as_data(self) -> dict[str, Any]:
        """As plain data."""
        spent = {name: str(amount) for name, amount in self.spent.items()}
        return {"ledger": self.ledger, "seq": self.seq, "hash": self.hash, "spent": spent}

    @classmethod
    def from_data(cls, data: object) -> Self:
        """The anchor that `as_data` wrote."""
        found = Found("anchor", data)
        found.has_only("ledger", "seq", "hash", "spent")
        spent = found.part("spent")
        return cls(
            found.text("ledger"),
            found.whole("seq"),
            found.text("hash"),
            {name: spent.fraction(name) for name in spent.keys},
        )
