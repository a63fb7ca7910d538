"""Statistics derived from unbiased estimates: means, proportions, ratios, comparisons and quantiles.

A quotient has Fieller's interval (Fieller 1954): the values t for which numerator - t * denominator may be zero. Where
the denominator's own interval reaches zero nothing is known of the quotient: its row stays, its numbers are not a
number. Quotients are compared from their intervals (Zou and Donner 2008; Donner and Zou 2012). Quantiles are read off
the cumulative sums of a measured histogram.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Self

import numpy as np
from scipy.optimize import isotonic_regression

from estimation.arrays import Flags, Floats, Integers
from release_specs.tallies import Summand

DUST = 1e-9
"""Two ranks that differ by no more than this part of the total are the same."""


@dataclass(frozen=True, eq=False)
class Derived:
    """Derived numbers with their intervals, and whether each is known; where it is not, it is not a number."""

    value: Floats = field(repr=False)
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)
    known: Flags = field(repr=False)


@dataclass(frozen=True, eq=False)
class Pair:
    """Unbiased estimates of two kinds, and how they err: the variance of each, and their covariance."""

    first: Floats = field(repr=False)
    second: Floats = field(repr=False)
    variances: tuple[Floats | float, Floats | float] = field(repr=False)
    covariance: Floats | float = field(repr=False, default=0.0)


def fieller(
    numerator: Floats,
    denominator: Floats,
    *,
    variances: tuple[Floats | float, Floats | float],
    covariance: Floats | float,
    quantile: Floats | float,
) -> Derived:
    """A quotient and Fieller's interval; unknown where the denominator's interval reaches zero or the set has no end.

    `quantile` is the multiplier of a deviation that makes a margin of error, for errors of numerator - t * denominator.
    The confidence is kept among known rows where most are known. Where noise drowns the denominator the few known rows
    are those that noise made large, and they miss more often.
    """
    top, bottom, of_top, of_bottom, both, times = _aligned(numerator, denominator, *variances, covariance, quantile)
    with np.errstate(all="ignore"):
        known = bottom - times * np.sqrt(of_bottom) > 0
        value, unit = top / bottom, (times / bottom) ** 2
        k, h, g = unit * of_top, unit * both, unit * of_bottom
        root = np.sqrt(np.maximum(k - 2 * value * h + value**2 * g - (k * g - h**2), 0.0))
        low, high = (value - h - root) / (1 - g), (value - h + root) / (1 - g)
    return _known(known, value, low, high)


def mean_of(summand: Summand, pair: Pair, *, quantile: Floats | float) -> Derived:
    """A mean in declared units, from centred sums and counts of usable values; within the clip, as every mean is."""
    found = _quotient(pair, quantile)
    unit, shift = float(summand.step / summand.factor), float(summand.shift * summand.step / summand.factor)
    moved = Derived(found.value * unit + shift, found.low * unit + shift, found.high * unit + shift, found.known)
    return _within(moved, float(summand.low * summand.step), float(summand.high * summand.step))


def proportion(pair: Pair, *, quantile: Floats | float) -> Derived:
    """A count of some over the count of all, between 0 and 1."""
    return _within(_quotient(pair, quantile), 0.0, 1.0)


def ratio(pair: Pair, *, quantile: Floats | float, signed: bool) -> Derived:
    """The first for each of the second; below zero only where the first is signed."""
    return _within(_quotient(pair, quantile), -np.inf if signed else 0.0, np.inf)


def percent(pair: Pair, *, quantile: Floats | float, signed: bool) -> Derived:
    """The first in percent of the second."""
    return in_percent(ratio(pair, quantile=quantile, signed=signed))


def difference(pair: Pair, *, quantile: Floats | float) -> Derived:
    """The first less the second; unknown where one of them was not measured."""
    first, second, of_first, of_second, both, times = _aligned(
        pair.first, pair.second, *pair.variances, pair.covariance, quantile
    )
    with np.errstate(all="ignore"):
        value = first - second
        moe = times * np.sqrt(np.maximum(of_first + of_second - 2 * both, 0.0))
    return _known(np.ones(value.shape, np.bool_), value, value - moe, value + moe)


def in_percent(found: Derived) -> Derived:
    """A ratio times a hundred."""
    return Derived(found.value * 100, found.low * 100, found.high * 100, found.known)


def difference_of(one: Derived, other: Derived, *, correlation: Floats | float = 0.0) -> Derived:
    """One derived number less another, as of two means: the ends lie as far off as both intervals say together.

    `correlation` is that of the two values' errors.
    """
    value = one.value - other.value
    below = _together(one.value - one.low, other.high - other.value, correlation)
    above = _together(one.high - one.value, other.value - other.low, correlation)
    return _known(one.known & other.known, value, value - below, value + above)


def ratio_of(one: Derived, other: Derived, *, correlation: Floats | float = 0.0) -> Derived:
    """One derived number for each of another: the values t for which one - t * other may be zero.

    Unknown where the interval of the other reaches zero.
    """
    known = one.known & other.known & (other.low > 0)
    with np.errstate(all="ignore"):
        low = _lower_end(one.value, one.value - one.low, other, correlation)
        high = -_lower_end(-one.value, one.high - one.value, other, -np.asarray(correlation))
        value = one.value / other.value
    return _known(known, value, low, high)


@dataclass(frozen=True, eq=False)
class Cumulative:
    """The cumulative sums of histograms on a grid, (row, grid point), and how they err.

    `with_total` is the covariance of each sum with the total, which is the last sum.
    """

    sums: Floats = field(repr=False)
    deviations: Floats = field(repr=False)
    with_total: Floats = field(repr=False)

    @classmethod
    def independent(cls, counts: Floats | Integers, variances: Floats) -> Self:
        """Of cells whose errors have nothing to do with each other, with the variance of each."""
        sums = np.cumsum(np.asarray(counts, np.float64), axis=-1)
        running = np.cumsum(np.broadcast_to(np.asarray(variances, np.float64), sums.shape), axis=-1)
        return cls(sums, np.sqrt(running), running)

    @classmethod
    def correlated(cls, counts: Floats | Integers, covariance: Floats) -> Self:
        """Of cells with this covariance matrix, one for all rows or one for each."""
        sums = np.cumsum(np.asarray(counts, np.float64), axis=-1)
        running = np.cumsum(np.cumsum(np.asarray(covariance, np.float64), axis=-1), axis=-2)
        deviations = np.sqrt(np.maximum(np.diagonal(running, axis1=-2, axis2=-1), 0.0))
        return cls(sums, np.broadcast_to(deviations, sums.shape), np.broadcast_to(running[..., -1], sums.shape))


def quantiles_of(
    grid_points: Floats, cumulative: Cumulative, *, at: Sequence[Fraction], quantile: Floats | float
) -> Derived:
    """Quantiles on a grid, (row, quantile): the grid point at which the cumulative share first reaches each.

    The values come from the nearest cumulative sums that never fall. The interval holds every grid point at which,
    given the noise, the share may reach the quantile and just before which it may not have: each is asked with its own
    margin, so the true one is missed no more often than the quantile's confidence says. Unknown where the interval of
    the total reaches zero.
    """
    points, times = np.asarray(grid_points, np.float64), np.asarray(quantile, np.float64)[..., None]
    total, deviation = cumulative.sums[..., -1], cumulative.deviations[..., -1]
    known = total - times[..., 0] * deviation > 0
    sums = np.where(known[..., None], cumulative.sums, 0.0)
    steady = np.clip(_never_falling(sums), 0.0, sums[..., -1:])
    read = [_reaches(steady, sums, times * _deviations(cumulative, float(share)), float(share)) for share in at]
    value, low, high = (points[np.stack(part, axis=-1)] for part in zip(*read, strict=True))
    return _known(np.broadcast_to(known[..., None], value.shape), value, low, high)


def _deviations(cumulative: Cumulative, share: float) -> Floats:
    """The deviation of each cumulative sum less a share of the total."""
    of_total = cumulative.deviations[..., -1:] ** 2
    variances = cumulative.deviations**2 - 2 * share * cumulative.with_total + share**2 * of_total
    found: Floats = np.sqrt(np.maximum(variances, 0.0))
    return found


def _reaches(steady: Floats, sums: Floats, margins: Floats, share: float) -> tuple[Integers, Integers, Integers]:
    """The grid point at which a share of the total is reached, and the first and last at which it may be."""
    total = sums[..., -1:]
    wanted = share * total - DUST * np.maximum(total, 1.0)
    value = np.argmax(steady >= wanted, axis=-1)
    first = np.argmax(sums + margins >= wanted, axis=-1)
    short = sums[..., :-1] - margins[..., :-1] < wanted
    may_be = np.concatenate([np.ones_like(short, shape=(*short.shape[:-1], 1)), short], axis=-1)
    last = may_be.shape[-1] - 1 - np.argmax(may_be[..., ::-1], axis=-1)
    return value, np.minimum(first, value), np.maximum(last, value)


def _never_falling(sums: Floats) -> Floats:
    """The nearest sums, row by row, that never fall: adjacent ones that do are pooled."""
    rows = sums.reshape(-1, sums.shape[-1])
    falls = np.flatnonzero((np.diff(rows, axis=-1) < 0).any(axis=-1))
    steady = rows.copy()
    for row in falls:
        steady[row] = isotonic_regression(rows[row]).x
    return steady.reshape(sums.shape)


def _lower_end(value: Floats, below: Floats, other: Derived, correlation: Floats | float) -> Floats:
    """The least t for which value - t * other may be zero, if `value` may be too large by `below`.

    It solves (value - t * other)^2 = below^2 + (t * width)^2 - 2 * correlation * below * t * width, where the width
    is how much too small the other may be for a positive t, and how much too large for a negative one.
    """
    width = np.where(value > below, other.high - other.value, other.value - other.low)
    a, c = other.value**2 - width**2, value**2 - below**2
    b = value * other.value - correlation * below * width
    root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
    found: Floats = np.where(value > below, c / (b + root), (b - root) / a)
    return found


def _together(one: Floats, other: Floats, correlation: Floats | float) -> Floats:
    found: Floats = np.sqrt(np.maximum(one**2 + other**2 - 2 * correlation * one * other, 0.0))
    return found


def _quotient(pair: Pair, quantile: Floats | float) -> Derived:
    return fieller(pair.first, pair.second, variances=pair.variances, covariance=pair.covariance, quantile=quantile)


def _within(found: Derived, least: float, most: float) -> Derived:
    value, low, high = (np.clip(part, least, most) for part in (found.value, found.low, found.high))
    return Derived(value, low, high, found.known)


def _known(known: Flags, value: Floats, low: Floats, high: Floats) -> Derived:
    """Only what is known and has two ends; the value is never outside its interval by a rounding error."""
    finite = known & np.isfinite(value) & np.isfinite(low) & np.isfinite(high)
    parts = (value, np.minimum(low, value), np.maximum(high, value))
    shown, least, most = (np.where(finite, part, np.nan) for part in parts)
    return Derived(shown, least, most, finite)


def _aligned(*parts: Floats | float) -> tuple[Floats, ...]:
    return np.broadcast_arrays(*(np.asarray(part, np.float64) for part in parts))
