"""Coins with exactly the probability asked for, by comparing a lazily read uniform number with it.

A uniform number U in [0, 1) is an endless string of bits of which only as many are read as the comparison needs.
Arrays are decided by 31-bit fixed-point enclosures, all in integers; the few lanes that these cannot tell apart
(about one in 10^8) are settled one by one with as many bits as it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mechanisms.noise.exponentials import Enclosure, divided_up, exp_neg, product
from mechanisms.noise.integers import Integers
from mechanisms.randomness import Bits

Truths = NDArray[np.bool_]

UNIT = 1 << 31
"""Probabilities of arrays are multiples of 2^-31; exponents are multiples of 2^-32."""
REACH = 32
"""Exponents of REACH and more are taken as just below it: exp(-32) is less than one unit."""
ERROR = 6
"""`exp_below` falls short by less than this many units, see there."""
WORD = 64


def settle_below(prefix: int, width: int, *, value: Callable[[int], Enclosure], bits: Bits) -> bool:
    """Whether U < value, where `prefix` holds the first `width` bits of U and the rest is still unread."""
    while True:
        precision = width + WORD
        enclosure = value(precision)
        if (prefix + 1) << WORD <= enclosure.low:
            return True
        if prefix << WORD >= enclosure.high:
            return False
        prefix = (prefix << WORD) | bits.integer(WORD)
        width += WORD


def coin_exp(exponent: Fraction, bits: Bits) -> bool:
    """True with probability exp(-exponent)."""
    return _settle_exp(exponent, bits.integer(WORD), bits)


def _settle_exp(exponent: Fraction, prefix: int, bits: Bits) -> bool:
    return settle_below(prefix, WORD, value=lambda precision: exp_neg(exponent, precision), bits=bits)


@cache
def _steps() -> tuple[Integers, Integers]:
    """exp(-i/256) for i below 256 * REACH, and exp(-i/65536) for i below 256, in units, rounded down."""
    wholes = [exp_neg(Fraction(i), 95) for i in range(REACH)]
    parts = [exp_neg(Fraction(i, 256), 95) for i in range(256)]
    coarse = [product(whole, part, 95).low >> 64 for whole in wholes for part in parts]
    fine = [exp_neg(Fraction(i, 65536), 31).low for i in range(256)]
    return np.array(coarse, np.int64), np.array(fine, np.int64)


def exp_below(exponents: Integers) -> Integers:
    """A lower bound on exp(-exponent), in units, that is less than ERROR too low.

    With exponent = coarse + fine + r and r below 2^-16, exp(-r) lies between 1 - r and 1 - r + 2^-33. Rounding down
    costs, in units: each factor 1 and their product 1, the product with r 1, one more taken off for its rounding.
    """
    coarse, fine = _steps()
    held = np.minimum(exponents, (REACH << 32) - 1)
    power = (coarse.take(held >> 24) * fine.take((held >> 16) & 255)) >> 31
    return power - ((power * (held & 0xFFFF)) >> 32) - 1


def coins_exp(exponents: Integers, *, slack: int | Integers, exact: Callable[[int], Fraction], bits: Bits) -> Truths:
    """One coin for each lane, true with probability exp(-exact(lane)).

    `exponents` are multiples of 2^-32 that are at most the exact ones and at most `slack` too small.
    """
    uniform = bits.words(len(exponents), 64)
    lead = (uniform >> np.uint64(33)).astype(np.int64)
    below = exp_below(exponents)
    heads: Truths = lead < below - slack
    for lane in np.flatnonzero(~heads & (lead < below + ERROR)):
        heads[lane] = _settle_exp(exact(int(lane)), int(uniform[lane]), bits)
    return heads


def coins_exp_of_ratios(numerators: Integers, denominator: int, bits: Bits) -> Truths:
    """One coin for each lane, true with probability exp(-numerator / denominator)."""
    if denominator >= UNIT or (len(numerators) and int(numerators.max()) > 2**62):
        wide = numerators.astype(object)
        exponents = np.minimum((wide << 32) // denominator, REACH << 32).astype(np.int64)
    else:
        whole, rest = np.divmod(numerators, denominator)
        exponents = (np.minimum(whole, REACH) << 32) + ((rest << 32) // denominator)
    return coins_exp(exponents, slack=1, exact=lambda lane: Fraction(int(numerators[lane]), denominator), bits=bits)


def coins(probability: Fraction, count: int, bits: Bits) -> Truths:
    """`count` coins, each true with exactly this rational probability."""
    if not 0 <= probability <= 1:
        raise ValueError(f"a probability lies between 0 and 1, got {probability}")
    above, below = probability.numerator, probability.denominator

    def enclosed(precision: int) -> Enclosure:
        return Enclosure((above << precision) // below, divided_up(above << precision, below))

    cut = enclosed(WORD)
    uniform = bits.words(count, WORD)
    heads: Truths = uniform < np.uint64(min(cut.low, 2**WORD - 1))
    if cut.low == 2**WORD:
        heads[:] = True
    elif cut.low != cut.high:
        for lane in np.flatnonzero(uniform == np.uint64(cut.low)):
            heads[lane] = settle_below(int(uniform[lane]), WORD, value=enclosed, bits=bits)
    return heads


def uniform_below(limit: int, count: int, bits: Bits) -> Integers:
    """`count` integers, each of 0 .. limit-1 equally likely: words fall into `limit` equal parts or are redrawn."""
    if not 1 <= limit < 2**63:
        raise ValueError(f"a uniform draw needs at least one candidate and at most 2^63 - 1, got {limit}")
    part = np.uint64(min(2**WORD // limit, 2**WORD - 1))
    drawn = bits.words(count, WORD) // part
    while len(beyond := np.flatnonzero(drawn >= limit)):
        drawn[beyond] = bits.words(len(beyond), WORD) // part
    return drawn.astype(np.int64)


def permutation(count: int, bits: Bits) -> Integers:
    """A uniform order of `count` things: random words sorted, all drawn again in the rare case of a tie."""
    while True:
        words = bits.words(count, WORD)
        order = np.argsort(words)
        arranged = words[order]
        if not (arranged[1:] == arranged[:-1]).any():
            return order.astype(np.int64)
