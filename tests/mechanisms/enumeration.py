"""Every string of random bits at once: the exact law of whatever reads them.

A scripted `Tape` answers each request for a word. `law_of` follows all possible words as intervals: it bisects the
values of the next word until all values of an interval behave alike, and goes on with one of them. Behaving alike is
judged from outside: the same result at once, or the same results and the same number of words read under a few common
continuations. What comes out is a rational probability for every result and the probability left unexplored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

from mechanisms.randomness import Bits

CONTINUATIONS = 4
Word = tuple[int, int]
"""Value and width."""


class TapeEndError(Exception):
    """The tape has been read to its end and more was asked for."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.width = width


class Tape(Bits):
    """Scripted words; what lies beyond the script comes from `then`, or ends the tape."""

    def __init__(self, script: tuple[Word, ...] = (), then: Random | None = None) -> None:
        self._script = list(script)[::-1]
        self._then = then
        self.read_words = 0

    def _next(self, width: int) -> int:
        self.read_words += 1
        if self._script:
            value, scripted = self._script.pop()
            assert scripted == width, f"the script has {scripted} bits where {width} are read"
            return value
        if self._then is None:
            raise TapeEndError(width)
        return self._then.getrandbits(width)

    def read(self, size: int) -> bytes:
        return self._next(8 * size).to_bytes(size, "little")

    def words(self, count: int, width: int) -> np.ndarray[Any, Any]:
        return np.array([self._next(width) for _ in range(count)], f"<u{width // 8}")


Run = Callable[[Bits], Hashable]


@dataclass
class Enumerated:
    """The probability of each result, and what was left unexplored."""

    probabilities: dict[Hashable, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    remainder: Fraction = Fraction(0)


@dataclass
class _Explorer:
    run: Run
    least: Fraction
    found: Enumerated = field(default_factory=Enumerated)

    def explore(self, script: tuple[Word, ...], probability: Fraction) -> None:
        if probability < self.least:
            self.found.remainder += probability
            return
        try:
            self.found.probabilities[self.run(Tape(script))] += probability
        except TapeEndError as end:
            width = end.width
        else:
            return
        for low, high in self._intervals(script, width):
            self.explore((*script, (low, width)), probability * Fraction(high - low, 2**width))

    def _intervals(self, script: tuple[Word, ...], width: int) -> list[tuple[int, int]]:
        """Neighbouring intervals of values that behave alike, first to last."""
        seen: dict[int, Hashable] = {}

        def behaviour(value: int) -> Hashable:
            if value not in seen:
                seen[value] = self._behaviour((*script, (value, width)))
            return seen[value]

        done: list[tuple[int, int]] = []
        open_ones = [(0, 2**width)]
        while open_ones:
            low, high = open_ones.pop()
            middle = (low + high) // 2
            looks = {low, high - 1, middle, (3 * low + high) // 4, (low + 3 * high) // 4}
            if len({behaviour(value) for value in looks}) == 1:
                if done and behaviour(done[-1][0]) == behaviour(low):
                    done[-1] = (done[-1][0], high)
                else:
                    done.append((low, high))
            else:
                open_ones += [(middle, high), (low, middle)]
        return done

    def _behaviour(self, script: tuple[Word, ...]) -> Hashable:
        try:
            return "at once", self.run(Tape(script))
        except TapeEndError:
            pass
        looks = []
        for seed in range(CONTINUATIONS):
            tape = Tape(script, Random(f"{len(script)} {seed}"))  # noqa: S311 (a continuation, not noise)
            looks.append((self.run(tape), tape.read_words))
        return tuple(looks)


def law_of(run: Run, *, least: Fraction) -> Enumerated:
    """The law of `run`; paths less likely than `least` are left unexplored and counted in the remainder."""
    explorer = _Explorer(run, least)
    explorer.explore((), Fraction(1))
    return explorer.found
