"""Exact draws of integers x with probability proportional to exp(-h(|x|)), for any rational scale.

The integers are cut into boxes of 2^k (k = 0 below a scale of 64), so that any scale needs a few hundred boxes:

* a box is drawn with the least weight that its integers have, and a uniform integer inside it with k more bits;
* what the boxes leave out under the curve are the wedges: a wedge is drawn with the height of its step, a uniform
  integer inside it, and accepted where a uniform number lies under the curve; a rejected draw starts again;
* beyond the last box lies the tail, a geometric envelope over the unbounded rest, with exact coins.

Choosing an envelope sets the speed and nothing else: whatever `cells` and `tail_bits` are, the law is exact.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.noise.bernoulli import ERROR, UNIT, Truths, coin_exp, exp_below, settle_below
from mechanisms.noise.exponentials import Enclosure, divided_up, exp_neg, product
from mechanisms.noise.integers import LARGEST, Integers, saturated
from mechanisms.noise.inversion import LEAD, UNDECIDED, WORD, Inversion
from mechanisms.noise.laws import Law
from mechanisms.randomness import Bits

CHUNK = 1 << 16
"""Draws made at a time: their words and tables stay in the processor's cache."""
WEDGE, TAIL = UNDECIDED + 1, UNDECIDED + 2
"""Marks of the draws that need more than a box; every box has a mark above TAIL."""
NARROW = 46
"""Boxes of at most 2^46 are handled in 64-bit integers, wider ones in Python's."""
SLACK = 24
"""How far the fixed-point exponent of a wedge may be too small, in multiples of 2^-32, see `_exponents`."""


class Sampler:
    """All draws from one law; made once for each scale, then used from any thread."""

    def __init__(self, law: Law, *, cells: int = 32, tail_bits: int = 22) -> None:
        self._law = law
        self._box_bits = law.box_bits(cells)
        self._box = 1 << self._box_bits
        self._boxes = max(2, divided_up(law.reach(tail_bits), self._box))
        self._is_narrow = self._box_bits <= NARROW
        furthest = self._boxes << self._box_bits
        self._kind = np.int16 if furthest < 2**15 else np.int32 if furthest < 2**31 else np.int64
        self._place_width = next((width for width in (8, 16, 32, 64) if self._box_bits <= width), WORD)
        wedge = [WEDGE] if self._box > 1 else []
        self._top = Inversion(self._running_weights, [*range(-self._boxes, self._boxes), *wedge, TAIL])
        if self._box > 1:
            self._steps = Inversion(self._running_steps, range(self._boxes))
            self._prepare_wedges()

    def _prepare_wedges(self) -> None:
        """Fixed-point numbers for the wedge test: each box's floor, and how the exponent grows across it.

        The exponent is a quadratic, so across box j it grows by z * (slope + 2 j bend + bend z), z the fraction
        crossed. Floors are in units of 2^-31, slopes in units of 2^-30, all rounded down.
        """
        heights = self._heights(128)
        floors = [(end.low << 31) // start.high for start, end in pairwise(heights)]
        first, second = (self._law.exponent(j * self._box) for j in (1, 2))
        bend = (second - 2 * first) / 2
        slopes = _floors(first - bend, 2 * bend, self._boxes)
        if slopes[-1] + int(bend * 2**30) >= 2**32:
            raise ValueError("the boxes are too wide for the wedge test; ask for more cells")
        self._floor = np.array(floors, np.int64)
        self._slope = np.array(slopes, np.uint64)
        self._bend = np.uint64(int(bend * 2**30))

    def _heights(self, precision: int) -> list[Enclosure]:
        """exp(-h) at the start of each box and at the end of the last, each from the one before.

        h is a quadratic in the box number, so the ratio of neighbouring heights has a constant ratio itself.
        """
        first, second = (self._law.exponent(j * self._box) for j in (1, 2))
        ratio = exp_neg(first, precision)
        change = exp_neg(second - 2 * first, precision)
        height = Enclosure(1 << precision, 1 << precision)
        heights = [height]
        for _ in range(self._boxes):
            height = product(height, ratio, precision)
            ratio = product(ratio, change, precision)
            heights.append(height)
        return heights

    def _running_weights(self, precision: int) -> list[Enclosure]:
        """Boxes from left to right, then all wedges together, then both tails: cumulative weights."""
        heights, box = self._heights(precision), self._box
        last = heights[-1]
        if box == 1:  # a box is one integer: its weight is its height, and zero is counted once
            weights = [*reversed(heights[1:]), *heights[:-1]]
        else:
            lower = [Enclosure(box * height.low, box * height.high) for height in heights[1:]]
            steps = Enclosure(2 * box * (heights[0].low - last.high), 2 * box * (heights[0].high - last.low))
            weights = [*reversed(lower), *lower, steps]
        decay = exp_neg(self._law.slope(self._boxes * box), precision)
        one = 1 << precision
        tails = Enclosure(
            (2 * last.low << precision) // (one - decay.low),
            divided_up(2 * last.high << precision, max(1, one - decay.high)),
        )
        return _running([*weights, tails])

    def _running_steps(self, precision: int) -> list[Enclosure]:
        """The steps between heights add up to one minus the height reached."""
        one = 1 << precision
        return [Enclosure(one - height.high, one - height.low) for height in self._heights(precision)[1:]]

    def draw(self, count: int, bits: Bits) -> Integers:
        """`count` independent draws, held at the limits of 64 bits.

        One look into the guide decides nearly all of them; the rest are drawn together, and rejected ones start again.
        """
        drawn = np.empty(count, np.int64)
        places, leads = [], []
        for start in range(0, count, CHUNK):
            chunk = drawn[start : start + CHUNK]
            words = bits.words(len(chunk), LEAD)
            rest = self._fill(chunk, words, bits)
            places.append(rest + start)
            leads.append(words[rest])
        rest = np.concatenate(places) if places else np.empty(0, np.int64)
        lead = np.concatenate(leads) if leads else np.empty(0, np.uint16)
        while len(rest):
            drawn[rest], accepted = self._draw_slowly(lead, bits)
            rest = rest[~accepted]
            lead = bits.words(len(rest), LEAD)
        return drawn

    def _fill(self, drawn: Integers, leads: NDArray[np.uint16], bits: Bits) -> Integers:
        """Fills in what the first 16 bits decide and says which draws they leave open."""
        marks = self._top.guide.take(leads, mode="clip")
        if self._box == 1:
            drawn[:] = marks
        elif self._is_narrow:
            near = np.left_shift(marks, self._box_bits, dtype=self._kind)
            near += self._within(len(drawn), bits)
            drawn[:] = near
        else:
            drawn[:] = saturated((marks.astype(object) << self._box_bits) + self._within(len(drawn), bits))
        return np.flatnonzero(marks <= TAIL)

    def _within(self, count: int, bits: Bits) -> NDArray[Any]:
        """Uniform places inside a box."""
        if not self._is_narrow:
            return np.array([bits.integer(self._box_bits) for _ in range(count)], object)
        width = self._place_width
        words = bits.words(count, width)
        places: NDArray[Any] = words >> words.dtype.type(width - self._box_bits)
        return places.view(np.int64) if width == WORD else places  # numpy would add unsigned 64-bit words as floats

    def _draw_slowly(self, leads: NDArray[np.uint16], bits: Bits) -> tuple[Integers, Truths]:
        """Draws that the first look did not decide, and whether each is accepted."""
        marks = self._top.guide.take(leads, mode="clip")
        undecided = np.flatnonzero(marks == UNDECIDED)
        if len(undecided):
            marks[undecided] = self._top.settle(leads[undecided], bits)
        accepted = np.ones(len(marks), np.bool_)
        values: NDArray[Any] = marks.astype(np.int64 if self._is_narrow else object)
        if self._box > 1:
            values = (values << self._box_bits) + self._within(len(marks), bits)
            wedges = np.flatnonzero(marks == WEDGE)
            if len(wedges):
                values[wedges], accepted[wedges] = self._draw_in_wedges(len(wedges), bits)
        if not self._is_narrow:
            values = saturated(values)
        for lane in np.flatnonzero(marks == TAIL):
            values[lane], accepted[lane] = self._draw_in_tail(bits)
        return values, accepted

    def _draw_in_wedges(self, count: int, bits: Bits) -> tuple[NDArray[Any], Truths]:
        """Points of the wedges, and whether each lies under the curve.

        On the left a box holds its far end and not its near one, so the distance from its near end is one more.
        """
        steps = self._steps.draw(count, bits)
        within = self._within(count, bits)
        left = (bits.words(count, 8) >> np.uint8(7)).astype(np.int64)
        distances = within + left
        accepted = self._accept(steps, distances, bits)
        ends = steps if self._is_narrow else steps.astype(object)
        values = (ends << self._box_bits) + distances
        return np.where(left == 1, -values, values), accepted

    def _exponents(self, steps: Integers, distances: NDArray[Any]) -> Integers:
        """The exponent's growth from the start of the box, a multiple of 2^-32, at most SLACK too small.

        In units of 2^-30: the rounded slope and bend cost 1 each, the product of bend and z 1, z itself at most 1, the
        last product 1.
        """
        k = self._box_bits
        z = (distances >> max(0, k - 32)).astype(np.uint64) << np.uint64(max(0, 32 - k))
        slopes = self._slope[steps] + ((self._bend * z) >> np.uint64(32))
        whole = z >> np.uint64(32)  # z is 1 at the far end, where a product of two 32-bit words would not fit
        risen = ((slopes * (z - (whole << np.uint64(32)))) >> np.uint64(32)) + slopes * whole
        return np.asarray(risen << np.uint64(2), np.int64)

    def _accept(self, steps: Integers, distances: NDArray[Any], bits: Bits) -> Truths:
        """Whether a uniform height in each wedge lies under the curve: U * (1 - floor) + floor < exp(-exponent).

        In units of 2^-31 the left side, rounded down, is at most 4 too small: 1 for the rounding, 2 for U and for
        1 - floor, 1 for the floor.
        """
        uniform = bits.words(len(steps), WORD)
        floors = self._floor[steps]
        height = (((uniform >> np.uint64(32)).astype(np.int64) * (UNIT - floors - 1)) >> 32) + floors
        below = exp_below(self._exponents(steps, distances))
        accepted: Truths = height + 4 < below - SLACK
        for lane in np.flatnonzero(~accepted & (height < below + ERROR)):
            accepted[lane] = self._settle_wedge(int(steps[lane]), int(distances[lane]), int(uniform[lane]), bits)
        return accepted

    def _settle_wedge(self, step: int, distance: int, prefix: int, bits: Bits) -> bool:
        """The same comparison with as many bits as it takes: U < (exp(-exponent) - floor) / (1 - floor)."""
        start = step * self._box
        base = self._law.exponent(start)
        exponent = self._law.exponent(start + distance) - base
        drop = self._law.exponent(start + self._box) - base
        if exponent == drop:
            return False  # the foot of the wedge

        def value(precision: int) -> Enclosure:
            finer = precision + WORD
            curve, floor, one = exp_neg(exponent, finer), exp_neg(drop, finer), 1 << finer
            return Enclosure(
                (max(0, curve.low - floor.high) << precision) // (one - floor.low),
                divided_up((curve.high - floor.low) << precision, one - floor.high),
            )

        return settle_below(prefix, WORD, value=value, bits=bits)

    def _draw_in_tail(self, bits: Bits) -> tuple[int, bool]:
        """A point of the geometric envelope beyond the last box, and whether it lies under the curve."""
        edge = self._boxes * self._box
        slope = self._law.slope(edge)
        left = bits.integer(1)
        steps = _draw_geometric(slope, bits)
        distance = edge + steps + left
        over = self._law.exponent(distance) - self._law.exponent(edge) - slope * steps
        value = min(distance, LARGEST)
        return (-value if left else value), coin_exp(over, bits)


def _floors(start: Fraction, step: Fraction, count: int) -> list[int]:
    """start + j * step for every j below `count`, in multiples of 2^-30, rounded down."""
    common = start.denominator * step.denominator
    first, by = start.numerator * step.denominator << 30, step.numerator * start.denominator << 30
    return [(first + j * by) // common for j in range(count)]


def _running(weights: list[Enclosure]) -> list[Enclosure]:
    low = high = 0
    sums = []
    for weight in weights:
        low, high = low + weight.low, high + weight.high
        sums.append(Enclosure(low, high))
    return sums


def _draw_geometric(rate: Fraction, bits: Bits) -> int:
    """k with probability proportional to exp(-rate * k).

    The binary digits of k are independent: digit i is one with odds exp(-rate * 2^i). The digits from `low_digits` on
    are drawn together as a count of successes, each with probability exp(-rate * 2^low_digits).
    """
    low_digits = int(1 / rate).bit_length()
    value = 0
    while coin_exp(rate * 2**low_digits, bits):
        value += 1
    for i in reversed(range(low_digits)):
        value = 2 * value + _draw_digit(rate * 2**i, bits)
    return value


def _draw_digit(exponent: Fraction, bits: Bits) -> int:
    """1 with odds exp(-exponent) to 1: a fair coin proposes, and a proposed one is kept with that probability."""
    while bits.integer(1):
        if coin_exp(exponent, bits):
            return 1
    return 0
