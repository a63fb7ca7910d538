"""Exact draws from a table of weights by lazy inversion.

A draw is the box into which a uniform number U falls. The first 16 bits of U decide it by one look into a guide; where
an edge between boxes lies inside that 16-bit cell, 64 bits are compared with the edges rounded down; and where an edge
lies inside the 64-bit cell, big integers decide with as many more bits as it takes. The weights are known as
enclosures of any precision, so the law of the draw is exactly the target.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.noise.exponentials import Enclosure
from mechanisms.noise.integers import Integers
from mechanisms.randomness import Bits

UNDECIDED = -(2**15)
"""What the guide says where 16 bits do not decide."""
LEAD, WORD = 16, 64

Cumulative = Callable[[int], Sequence[Enclosure]]
"""The running sums of the weights at a precision; the last is the total."""


class Inversion:
    """Draws box i with probability weight_i / total; a box is named by its mark, a 16-bit integer."""

    def __init__(self, cumulative: Cumulative, marks: Sequence[int]) -> None:
        self._cumulative = cumulative
        self.marks = np.array(marks, np.int16)
        self._edges = np.array(self._floors(), np.uint64)
        cells = (self._edges >> np.uint64(WORD - LEAD)).astype(np.int64)
        edges_in_cell = np.bincount(cells, minlength=2**LEAD)
        boxes_before = np.cumsum(edges_in_cell) - edges_in_cell
        self.guide = np.where(edges_in_cell == 0, self.marks[boxes_before], UNDECIDED).astype(np.int16)

    def _floors(self) -> list[int]:
        """Every inner edge times 2^64, rounded down; precision grows until all are certain."""
        precision = 128
        while True:
            low, high = self._edge_bounds(precision, WORD)
            if low == high:
                return low
            precision *= 2

    def _edge_bounds(self, precision: int, width: int) -> tuple[list[int], list[int]]:
        """The inner edges times 2^width, rounded down from below and from above; every inner edge is below 1."""
        *inner, total = self._cumulative(precision)
        last = (1 << width) - 1
        low = [min(last, (edge.low << width) // total.high) for edge in inner]
        high = [min(last, (edge.high << width) // total.low) for edge in inner]
        return low, high

    def settle(self, leads: NDArray[np.uint16], bits: Bits) -> NDArray[np.int16]:
        """The marks of draws whose first 16 bits are `leads` and do not decide."""
        words = bits.words(len(leads), WORD) >> np.uint64(LEAD)
        words |= leads.astype(np.uint64) << np.uint64(WORD - LEAD)
        boxes = np.searchsorted(self._edges, words, "right")
        for lane in np.flatnonzero(self._edges.take(boxes - 1, mode="clip") == words):
            boxes[lane] = self._settle_on_an_edge(int(words[lane]), bits)
        return self.marks[boxes]

    def _settle_on_an_edge(self, prefix: int, bits: Bits) -> int:
        """The box of a draw whose first 64 bits are those of an edge."""
        width = WORD
        while True:
            prefix = (prefix << WORD) | bits.integer(WORD)
            width += WORD
            low, high = self._edge_bounds(width + 2 * WORD, width)
            box = bisect_left(high, prefix)  # edges that are at most U for certain
            if box == bisect_right(low, prefix):  # and none that may lie among the bits still unread
                return box

    def draw(self, count: int, bits: Bits) -> Integers:
        """The marks of `count` independent draws."""
        leads = bits.words(count, LEAD)
        marks = self.guide.take(leads, mode="clip")
        undecided = np.flatnonzero(marks == UNDECIDED)
        marks[undecided] = self.settle(leads[undecided], bits)
        return marks.astype(np.int64)
