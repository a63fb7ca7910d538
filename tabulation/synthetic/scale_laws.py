"""How often numbers and days occur: age pyramids, skewed amounts, money with zeros, losses and a heavy tail."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from release_specs.language.microdata import ClipBy
from release_specs.language.values import Endpoint
from tabulation.synthetic.code_laws import table_of
from tabulation.synthetic.variables import Integers, Variable

Floats = npt.NDArray[np.float64]
ENTRIES = 16_384
MOST_LISTED = 4096
WIDE = 3
"""A valid range more than this many times as wide as the clip is one of money."""


def scale_tables(variable: Variable, archetypes: int, random: np.random.Generator) -> Integers:
    """A table of equally likely places for each archetype."""
    lean = random.normal(0, 1, archetypes)
    first, last = variable.span
    if variable.is_days:
        tables = [first + (last - first) * _chances() ** np.exp(0.1 * part - 0.2) for part in lean]
    elif is_age(variable):
        tables = [first + table_of(_pyramid(variable, part), ENTRIES) for part in lean]
    elif _is_money(variable):
        tables = [_money(variable, part) for part in lean]
    else:
        tables = [_body(variable, part) for part in lean]
    kind = np.int32 if last < 2**31 else np.int64
    rounded: Integers = np.clip(np.rint(np.stack(tables)), first, last).astype(kind)
    return rounded


def is_age(variable: Variable) -> bool:
    """Whether a range looks like ages: whole years from childhood or youth to 80 or more."""
    scale = variable.scale
    if scale is None or variable.column.integer is None or scale.step != 1:
        return False
    low, high = scale.low, scale.high
    return isinstance(low, Fraction) and isinstance(high, Fraction) and 0 <= low <= 18 and 80 <= high <= 130


def clip_span(variable: Variable) -> tuple[int, int]:
    """First and last place inside the clip; the valid ones where there is none."""
    clip, (first, last) = variable.column.clip, variable.span
    if clip is None or variable.scale is None:
        return first, last
    parts = [part for _, part in clip.ranges] if isinstance(clip, ClipBy) else [clip]
    lows = [first if part.low is None else _place(variable, part.low) for part in parts]
    highs = [last if part.high is None else _place(variable, part.high) for part in parts]
    return max(min(lows, default=first), first), min(max(highs, default=last), last)


def _place(variable: Variable, point: Endpoint) -> int:
    return variable.ruler.index(point)


def _is_money(variable: Variable) -> bool:
    (first, last), (low, high) = variable.span, clip_span(variable)
    return last - first > WIDE * (high - low) and high - max(low, -variable.origin) > 100


def _pyramid(variable: Variable, lean: float) -> Floats:
    """Ages: level up to sixty, then ever fewer; a lean neighbourhood is a young or an old one."""
    first, last = variable.span
    ages = np.arange(first, last + 1) + variable.origin
    waves = 1 + 0.15 * np.cos((ages - 30) / 27 * 2 * np.pi)
    alive: Floats = waves * np.exp(-np.exp((ages - 83) / 10)) * np.exp(0.5 * lean * (ages - 40) / 60)
    return alive


def _body(variable: Variable, lean: float) -> Floats:
    """One hump, low in the clip, with a long right tail; a few values beyond the clip where more is valid."""
    (first, last), (low, high) = variable.span, clip_span(variable)
    listed = last - first < MOST_LISTED
    points = np.arange(first, last + 1) if listed else np.linspace(first, last, MOST_LISTED)
    height = (points - low + 0.7) / (high - low + 1)
    rise = np.maximum(height, 0) ** 1.2 * np.exp(-np.maximum(height, 0) / (0.2 * np.exp(0.25 * lean)))
    shares = rise / rise.sum() + 0.01 / len(points)
    if listed:
        return points[table_of(shares, ENTRIES)].astype(np.float64)
    return np.interp(_chances(), np.cumsum(shares) / shares.sum(), points)


def _money(variable: Variable, lean: float) -> Floats:
    """Zeros, a few losses, a log-normal body scaled to the clip, and a Pareto tail beyond it."""
    (first, last), (_, high), zero = variable.span, clip_span(variable), -variable.origin
    floor = max(zero, first)
    body = 0.2 * (high - floor) * np.exp(0.3 * lean + 0.85 * _normal())
    knee = int(0.97 * ENTRIES)
    body[knee:] = body[knee] * ((1 - 0.97) / (1 - _chances()[knee:])) ** (1 / 1.9)
    beyond = body > last - floor
    body[beyond] = high - floor + body[beyond] % max(last - high, 1)
    values = floor + body
    if first <= zero:
        values[: ENTRIES // 12] = zero
    if first < zero:
        losses = ENTRIES // 100
        values[:losses] = zero - np.minimum(body[:: ENTRIES // losses][:losses] * 0.1 + 1, zero - first)
    return values


def _chances() -> Floats:
    return (np.arange(ENTRIES) + 0.5) / ENTRIES


@lru_cache(maxsize=1)
def _normal() -> Floats:
    law = NormalDist()
    return np.array([law.inv_cdf(chance) for chance in _chances().tolist()])
