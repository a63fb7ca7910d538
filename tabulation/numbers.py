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
from tabulation.bases import Base
from tabulation.logic import FALSE, NOTHING
from tabulation.sources import Kind

BELOW, ABOVE = -3, -4
MOST_DIGITS = 17
"""A text with more digits before its decimal mark lies outside every range that `too_fine` lets pass."""
SHORT = 15
"""Whole numbers of so many digits need no care."""


@dataclass(frozen=True, slots=True)
class Ruler:
    """A scale of numbers in steps of p / q, with its valid ends."""

    low: Fraction
    high: Fraction
    step: Fraction
    origin: int
    decimals: int

    @classmethod
    def of(cls, base: Base, scale: Scale) -> Ruler:
        """The ruler of a base whose scale holds numbers."""
        if not isinstance(scale.low, Fraction) or not isinstance(scale.high, Fraction):
            raise TypeError(f"'{base.node[1]}' holds no numbers")
        exact = (scale.low, scale.high, scale.step / 2)
        decimals = next((d for d in range(12) if all((one * 10**d).denominator == 1 for one in exact)), 12)
        return cls(scale.low, scale.high, scale.step, base.origin, decimals)

    @property
    def too_fine(self) -> bool:
        """Whether numbers of this range and step have more digits than are carried exactly."""
        widest = max(abs(self.low), abs(self.high), self.step)
        return widest * 10 ** (self.decimals + 1) >= 10**MOST_DIGITS or widest / self.step >= 2**52


def whole_place(value: ir.IntegerColumn, ruler: Ruler) -> ir.IntegerColumn:
    """The place of a whole number."""
    low, high = ceil(ruler.low), floor(ruler.high)
    inside = held(value, low, high)
    p, q = ruler.step.numerator, ruler.step.denominator
    tick = inside if ruler.step == 1 else _signed(inside, _divided(inside.abs() * (2 * q) + p, 2 * p))
    return _sided(value, low, high, tick - ruler.origin)


def real_place(value: ir.FloatingColumn, ruler: Ruler) -> ir.IntegerColumn:
    """The place of a number of double precision; null for "not a number"."""
    low, high = float(ruler.low), float(ruler.high)
    size = held(value, low, high).abs()
    p, q = ruler.step.numerator, ruler.step.denominator
    size = size * float(q) if q != 1 else size
    size = size / float(p) if p != 1 else size
    tick = _signed(value, (size + 0.5).floor().cast("int64"))
    return value.isnan().ifelse(NOTHING, _sided(value, low, high, tick - ruler.origin))


def text_place(text: ir.StringColumn, ruler: Ruler, mark: str) -> ir.IntegerColumn:
    """The place of a number written as digits with at most one decimal mark, or with an exponent."""
    digits = f"([0-9]+[{mark}]?[0-9]*|[{mark}][0-9]+)"
    short = text.re_search(f"^[+-]?[0-9]{{1,{SHORT}}}$")
    simple = whole_place(text.replace("+", "").try_cast("int64"), ruler)
    plain = _plain_place(text, ruler, mark)
    double = text.replace(mark, ".") if mark != "." else text
    scientific = real_place(double.replace("+", "").try_cast("float64"), ruler)
    return ibis.cases(
        (short, simple),
        (text.re_search(f"^[+-]?{digits}$"), plain),
        (text.re_search(f"^[+-]?{digits}[eE][+-]?[0-9]{{1,2}}$"), scientific),
        else_=NOTHING,
    )


def _plain_place(text: ir.StringColumn, ruler: Ruler, mark: str) -> ir.IntegerColumn:
    """The place of a decimal number, in units of one more decimal than the ruler needs.

    All edges (valid ends and the middles between ticks) are multiples of the last decimal but one; the last one says
    whether anything follows, which is all that matters for comparisons with edges.
    """
    decimals, unit = ruler.decimals, 10 ** (ruler.decimals + 1)
    before = text.re_extract("^[+-]?0*([0-9]*)", 1)
    after = text.re_extract(f"[{mark}]([0-9]*)$", 1)
    kept = ibis.literal("0") + before + after.substr(0, decimals).rpad(decimals, "0") if decimals else "0" + before
    more = after.substr(decimals).re_search("[1-9]").fill_null(FALSE)
    huge = before.length() > MOST_DIGITS - decimals - 1
    size = huge.ifelse(ibis.literal("0"), kept).try_cast("int64") * 10 + more.ifelse(1, 0)
    size = huge.ifelse(ibis.literal(10**MOST_DIGITS, "int64"), size)
    value = text.startswith("-").ifelse(-size, size)
    low, high, half = ceil(ruler.low * unit), floor(ruler.high * unit), round(ruler.step * unit / 2)
    inside = held(value, low, high)
    return _sided(value, low, high, _signed(inside, _divided(inside.abs() + half, 2 * half)) - ruler.origin)


def held(value: ir.NumericColumn, low: float, high: float) -> ir.NumericColumn:
    """A number held between two ends, so that nothing that follows can overflow."""
    return ibis.cases((value < low, low), (value > high, high), else_=value)


def _sided(value: ir.NumericColumn, low: float, high: float, place: ir.IntegerColumn) -> ir.IntegerColumn:
    return ibis.cases((value < low, BELOW), (value > high, ABOVE), else_=place)


def _signed(value: ir.NumericColumn, size: ir.IntegerColumn) -> ir.IntegerColumn:
    return (value < 0).ifelse(-size, size)


def _divided(value: ir.IntegerColumn, by: int) -> ir.IntegerColumn:
    """The whole part of a quotient of non-negative integers: a double may be off by one, so it is set right."""
    near = (value.cast("float64") / float(by)).floor().cast("int64")
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
    day = cell.re_search("^[0-9]{4}-[0-9]{2}-[0-9]{2}$").ifelse(cell, ibis.null("string")).try_cast("date")
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
