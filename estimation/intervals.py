"""Margins of error, intervals and reliability of unbiased estimates.

A margin of error is a multiplier times a standard deviation. The multiplier is the normal one where the noise is as
good as normal, the agencies' rounded one where the spec asks for it, and else comes from simulated errors. An interval
belongs to the unbiased estimate, never to the published whole number.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from estimation.arrays import Floats, Integers
from release_specs.language.phrases import Unreliable

NEAR, FURTHEST = 1e-6, 1e-3
"""What is so near to a whole number counts as that number: least squares leaves dust behind, more on large numbers."""
DUST = 1e-12
"""The dust of a large number, as a part of it."""
LARGEST = 2**62
"""No count or sum is larger: before the noise all are limited to this."""

Words = npt.NDArray[np.str_]


def normal_quantile(confidence: Fraction | float) -> float:
    """How many standard deviations a normal error stays within with this confidence."""
    return float(ndtri((1 + float(_checked(confidence))) / 2))


def agency_quantile(confidence: Fraction | float) -> float:
    """The statistical agencies' multiplier: the normal one in three decimals, so 1.645, 1.96 and 2.576."""
    return round(normal_quantile(confidence), 3)


def law_quantile(errors: Floats | Integers, deviation: Floats | float, *, confidence: Fraction | float) -> Floats:
    """How many deviations an error stays within with this confidence, read off a sample of simulated errors.

    The sample lies along the first axis; `deviation` has the shape of the rest. Of n errors the one of rank
    confidence * (n + 1), rounded up, is taken: a further error of the same law is then within the margin with at least
    this confidence, however small the sample and whatever the law. Where nothing errs the multiplier is 0.
    """
    rank = ceil(_checked(confidence) * (len(errors) + 1))
    if rank > len(errors):
        raise ValueError(f"{len(errors)} simulated errors are too few for a confidence of {float(confidence)}")
    within = np.partition(np.abs(np.asarray(errors, np.float64)), rank - 1, axis=0)[rank - 1]
    spread = np.broadcast_to(np.asarray(deviation, np.float64), within.shape)
    if np.any((spread <= 0) & (within > NEAR)):
        raise ValueError("a number without a deviation has simulated errors")
    found: Floats = np.divide(within, spread, out=np.zeros_like(within), where=spread > 0)
    return np.where(found * spread < within, np.nextafter(found, np.inf), found)


def count_interval(estimate: Floats, moe: Floats | float) -> tuple[Integers, Integers]:
    """The whole numbers, none below zero, within the margin of error of a count's estimate: the least and the most.

    Where there is none, both are the one nearest to the estimate.
    """
    return sum_interval(estimate, moe, signed=False)


def sum_interval(estimate: Floats, moe: Floats | float, *, signed: bool) -> tuple[Integers, Integers]:
    """The whole numbers within the margin of error of a sum's estimate; below zero only where sums are signed."""
    middle, margin = np.asarray(estimate, np.float64), np.asarray(moe, np.float64)
    if not np.isfinite(middle).all() or not np.all(margin >= 0):
        raise ValueError("an interval needs an estimate and a margin of error that is not negative")
    least = -LARGEST if signed else 0
    low = np.clip(np.ceil(_lowered(middle - margin)), least, LARGEST)
    high = np.clip(np.floor(-_lowered(-middle - margin)), least, LARGEST)
    nearest = np.clip(np.rint(middle), least, LARGEST)
    none = low > high
    return np.where(none, nearest, low).astype(np.int64), np.where(none, nearest, high).astype(np.int64)


def cv(estimate: Floats, deviation: Floats | float) -> Floats:
    """The coefficient of variation: the deviation as a part of the estimate, which counts as 1 where it is smaller."""
    found: Floats = np.asarray(deviation, np.float64) / np.maximum(np.asarray(estimate, np.float64), 1.0)
    return found


def reliability_class(
    estimate: Floats, deviation: Floats | float, *, moe: Floats | float, classes: Mapping[str, Unreliable]
) -> Words:
    """For each estimate the last class, as written, that it belongs to; empty where it belongs to none.

    Classes are written from the mildest to the worst.
    """
    middle = np.asarray(estimate, np.float64)
    measures = {"cv": cv(middle, deviation), "moe": np.asarray(moe, np.float64)}
    shape = np.broadcast_shapes(middle.shape, *(part.shape for part in measures.values()))
    limits = [middle if rule.above is None else float(rule.above) for rule in classes.values()]
    belongs = [
        np.broadcast_to(measures[rule.measure] > limit, shape)
        for rule, limit in zip(classes.values(), limits, strict=True)
    ]
    return np.select(belongs[::-1], list(classes)[::-1], default="") if classes else np.full(shape, "", np.str_)


def _checked(confidence: Fraction | float) -> Fraction:
    """A confidence as the fraction that was meant: 0.9 is 9/10."""
    found = Fraction(confidence).limit_denominator(10**9)
    if not 0 < found < 1:
        raise ValueError(f"a confidence lies between 0 and 1, got {confidence}")
    return found


def _lowered(end: Floats) -> Floats:
    """An end of an interval moved outward by what is too little to count."""
    found: Floats = end - np.minimum(NEAR + DUST * np.abs(end), FURTHEST)
    return found
