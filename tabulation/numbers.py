"""Numbers and days, from a cell to a place on a scale: exactly, and alike on every engine.

A cell that holds a number becomes its place, `BELOW` or `ABOVE` where it lies outside the valid range, or null where it
is no number at all. Whole numbers and texts are read in integers. Fractional types are read in the engine's double
precision by the same few operations everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from math import ceil, floor

import ibis
import ibis.expr.types as ir

from release_specs.domain import Scale
from release_specs.meanings import Base
from tabulation.logic import NOTHING
from tabulation.sources import Kind

BELOW, ABOVE = -3, -4
MOST_DIGITS = 17
"""A text with more digits before its decimal mark lies outside every range that `too_fine` lets pass."""
EXACT = 2**52
SHORT = 15
"""Whole numbers of so many digits need no care."""


@dataclass(frozen=True, slots=True)
class Ruler:
    """A scale of numbers in steps of p / q, with its valid ends."""

    low: Fraction
    high: Fraction
    step: Fraction
    origin: int
    last: int
    decimals: int

    @classmethod
    def of(cls, base: Base, scale: Scale) -> Ruler:
        """The ruler of a base whose scale holds numbers."""
        if not isinstance(scale.low, Fraction) or not isinstance(scale.high, Fraction):
            raise TypeError(f"'{base.node[1]}' holds no numbers")
        exact = (scale.low, scale.high, scale.step / 2)
        decimals = next((d for d in range(12) if all((one * 10**d).denominator == 1 for one in exact)), 12)
        return cls(scale.low, scale.high, scale.step, base.origin, (scale.size or 1) - 1, decimals)

    @property
    def too_fine(self) -> bool:
        """Whether numbers of this range and step have more digits than are carried exactly."""
        widest = max(abs(self.low), abs(self.high), self.step)
        return widest * 10 ** (self.decimals + 1) >= 10**MOST_DIGITS or widest / self.step >= EXACT


def whole_place(value: ir.IntegerColumn, ruler: Ruler) -> ir.IntegerColumn:
    """The place of a whole number."""
    low, high = ceil(ruler.low), floor(ruler.high)
    inside = held(value, low, high)
    if ruler.step == 1:
        return _sided(value, low, high, inside - ruler.origin)
    p, q = ruler.step.numerator, ruler.step.denominator
    ticks = _divided(inside.abs() * (2 * q) + p, 2 * p, most=max(abs(low), abs(high)) * 2 * q + p)
    return _sided(value, low, high, _signed(value, ticks) - ruler.origin)


def real_place(value: ir.FloatingColumn, ruler: Ruler) -> ir.IntegerColumn:
    """The place of a number of double precision; null for "not a number"."""
    low, high = float(ruler.low), float(ruler.high)
    size = held(value, low, high).abs()
    p, q = ruler.step.numerator, ruler.step.denominator
    size = size * float(q) if q != 1 else size
    size = size / float(p) if p != 1 else size
    tick = _signed(value, (size + 0.5).floor().cast("int64"))
    place = held(tick - ruler.origin, 0, ruler.last)
    return value.isnan().ifelse(NOTHING, _sided(value, low, high, place))


def text_parts(text: ir.StringColumn, ruler: Ruler, mark: str) -> tuple[ir.Value, ...]:
    """A text that spells a number, as a whole number, in the units of `scaled`, or in double precision; else nulls.

    A number is digits with at most one decimal mark, a sign, and perhaps an exponent.
    """
    digits = f"([0-9]+[{mark}]?[0-9]*|[{mark}][0-9]+)"
    short = text.re_search(f"^[+-]?[0-9]{{1,{SHORT}}}$").ifelse(text, ibis.null("string"))
    longer = text.re_search(f"^[+-]?([0-9]*[{mark}][0-9]*|[0-9]{{{SHORT + 1},}})$") & text.re_search("[0-9]")
    exponent = text.re_search(f"^[+-]?{digits}[eE][+-]?[0-9]{{1,2}}$").ifelse(text, ibis.null("string"))
    pointed = exponent.replace(mark, ".") if mark != "." else exponent
    return (
        short.replace("+", "").try_cast("int64"),
        longer.ifelse(_in_units(text, ruler, mark), NOTHING),
        pointed.replace("+", "").try_cast("float64"),
    )


def text_place(
    whole: ir.IntegerColumn, units: ir.IntegerColumn, real: ir.FloatingColumn, ruler: Ruler
) -> ir.IntegerColumn:
    """The place of a number out of its `text_parts`."""
    return ibis.cases(
        (whole.notnull(), whole_place(whole, ruler)),
        (units.notnull(), _unit_place(units, ruler)),
        (real.notnull(), real_place(real, ruler)),
        else_=NOTHING,
    )


def _in_units(text: ir.StringColumn, ruler: Ruler, mark: str) -> ir.IntegerColumn:
    """A decimal number in units of one more decimal than the ruler needs.

    All edges (valid ends and the middles between ticks) are multiples of the last decimal but one; the last one says
    whether anything follows, which is all that matters for comparisons with edges.
    """
    decimals = ruler.decimals
    before = text.re_extract("^[+-]?0*([0-9]*)", 1)
    after = text.re_extract(f"[{mark}]([0-9]*)$", 1)
    kept = "0" + before
    kept = kept + after.substr(0, decimals).rpad(decimals, "0") if decimals else kept
    more = after.substr(decimals).re_search("[1-9]").ifelse(1, 0)
    huge = before.length() > MOST_DIGITS - decimals - 1
    size = huge.ifelse(ibis.literal(10**MOST_DIGITS, "int64"), kept.try_cast("int64") * 10 + more)
    return text.startswith("-").ifelse(-size, size)


def _unit_place(value: ir.IntegerColumn, ruler: Ruler) -> ir.IntegerColumn:
    unit = 10 ** (ruler.decimals + 1)
    low, high, half = ceil(ruler.low * unit), floor(ruler.high * unit), round(ruler.step * unit / 2)
    inside = held(value, low, high)
    ticks = _divided(inside.abs() + half, 2 * half, most=max(abs(low), abs(high)) + half)
    return _sided(value, low, high, _signed(value, ticks) - ruler.origin)


def held(value: ir.NumericColumn, low: float, high: float) -> ir.NumericColumn:
    """A number held between two ends, so that nothing that follows can overflow."""
    return ibis.cases((value < low, low), (value > high, high), else_=value)


def _sided(value: ir.NumericColumn, low: float, high: float, place: ir.IntegerColumn) -> ir.IntegerColumn:
    return ibis.cases((value < low, BELOW), (value > high, ABOVE), else_=place)


def _signed(value: ir.NumericColumn, size: ir.IntegerColumn) -> ir.IntegerColumn:
    return (value < 0).ifelse(-size, size)


def _divided(value: ir.IntegerColumn, by: int, *, most: int) -> ir.IntegerColumn:
    """The whole part of a quotient of non-negative integers up to `most`.

    Below 2^52 a quotient in double precision never reaches the next whole number; above, it may be off by one.
    """
    near = (value.cast("float64") / float(by)).floor().cast("int64")
    if most < EXACT:
        return near
    left = value - near * by
    return ibis.cases((left < 0, near - 1), (left >= by, near + 1), else_=near)


def day_place(days: ir.IntegerColumn, base: Base) -> ir.IntegerColumn:
    """The place of a day, counted from the first of January 1970."""
    scale = base.scale
    size = scale.size if scale is not None else None
    if size is None:
        raise TypeError(f"'{base.node[1]}' holds no days")
    return _sided(days, base.origin, base.origin + size - 1, days - base.origin)


def days_of(cell: ir.Value, kind: Kind) -> ir.IntegerColumn:
    """Days since the first of January 1970; null for what is no day."""
    first = ibis.date(1970, 1, 1)
    if kind is Kind.DAY:
        return cell.delta(first, unit="day").cast("int64")
    day = (
        cell.re_search("^([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{2}-[0-9]{2}$")
        .ifelse(cell, ibis.null("string"))
        .try_cast("date")
    )
    return day.delta(first, unit="day").cast("int64")


def number_at(text: str) -> Fraction | None:
    """The number that a declared text spells; None where it spells none."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def is_days(scale: Scale) -> bool:
    """Whether a scale is of days."""
    return isinstance(scale.low, date)
