"""Seeded randomness for generated microdata. It never reaches a mechanism: this room cannot import one."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

import numpy as np


@dataclass(frozen=True, slots=True)
class Streams:
    """One stream of random numbers for each purpose, so that a new column leaves the others as they were."""

    seed: int

    def of(self, *purpose: str) -> np.random.Generator:
        """The stream of a purpose, such as `("law", "persons", "age")`; the same one each time it is asked for."""
        words = np.frombuffer(sha256("\0".join(purpose).encode()).digest(), dtype=np.uint32)
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence([self.seed, *words.tolist()])))
