"""Seeded bits for simulation only: the same seed gives the same draws on every machine.

They are for `simulate` and `audit` on public or generated data and for error reports around published tables.
Whoever knows the seed knows the noise, so they are no `Randomness` and no mechanism measures with them.
"""

from __future__ import annotations

import hashlib
from itertools import count

from mechanisms.randomness import CipherBits


class SeededBits(CipherBits):
    """A keystream whose keys follow from the seed. Not for release."""

    def __init__(self, seed: str | int) -> None:
        numbers = count()
        super().__init__(lambda: hashlib.sha256(f"not for release: {seed!r}, key {next(numbers)}".encode()).digest())
