"""Numbers as text and back: plain decimals, exact, the shortest that say what is meant, never with an exponent.

Counts and sums are whole numbers of a unit (a tick, or a thousandth of one). Numbers that are computed have at most
nine decimals and twelve significant digits. A number that is not known is empty.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estimation.arrays import Flags, Floats, Integers, Numbers
from reporting.errors import ReleaseFault

MOST_DIGITS = 18
"""Decimals of a unit that are written in full; a unit such as 1/3 has no end of them."""
ENDLESS_DIGITS = 9
SAFE = 2**49
"""Whole numbers below this survive being turned into floats in other units and back."""
MOST_DECIMALS, SIGNIFICANT = 9, 12
DECIMAL = r"^(?P<sign>-?)(?P<whole>0|[1-9][0-9]*)(?:\.(?P<part>[0-9]*[1-9]))?$"

Texts = Any
"""An Arrow array of text; Arrow ships no types."""


def decimals(numbers: Numbers, unit: Fraction) -> Texts:
    """The text of so many units, for each number."""
    digits, factor = _scale(unit)
    largest = int(np.abs(numbers.astype(object)).max()) if numbers.size and numbers.dtype == object else None
    largest = largest if largest is not None else int(np.abs(numbers).max(initial=0))
    if factor.denominator == 1 and largest * factor < 2**63 and digits <= MOST_DIGITS:
        return _points(numbers.astype(np.int64) * int(factor), digits)
    return pa.array([_point(round(int(number) * factor), digits) for number in numbers], pa.string())


def read_decimals(texts: Texts, unit: Fraction) -> Numbers:
    """How many units each text says. Raises `ReleaseFault` for what is no plain decimal or no whole number of units."""
    digits, factor = _scale(unit)
    found = pc.extract_regex(texts, DECIMAL)
    if found.null_count:
        text = texts.filter(pc.is_null(found))[0].as_py()
        raise ReleaseFault(f"found '{text}', expected a number written as a plain decimal")
    signs, wholes, parts = (pc.struct_field(found, name) for name in ("sign", "whole", "part"))
    if (pc.max(pc.binary_length(parts)).as_py() or 0) > digits:
        text = texts.filter(pc.greater(pc.binary_length(parts), digits))[0].as_py()
        raise ReleaseFault(f"found {text}, expected a whole number of {_said(unit)}")
    joined = pc.binary_join_element_wise(signs, wholes, pc.utf8_rpad(parts, digits, "0"), "")
    if (pc.max(pc.binary_length(joined)).as_py() or 0) <= MOST_DIGITS:
        scaled = pc.cast(joined, pa.int64()).to_numpy(zero_copy_only=False)
    else:
        scaled = np.array([int(text) for text in joined.to_pylist()], object)
    return _divided(scaled, factor, unit)


def _divided(scaled: Numbers, factor: Fraction, unit: Fraction) -> Numbers:
    if factor.denominator != 1:  # an endless unit is written rounded, so the nearest number of units is meant
        return _narrowed(np.array([round(int(number) / factor) for number in scaled], object))
    if factor == 1:
        return _narrowed(scaled)
    over = scaled % int(factor) != 0
    if over.any():
        text = _point(int(scaled[over][0]), _scale(unit)[0])
        raise ReleaseFault(f"found {text}, expected a whole number of {_said(unit)}")
    return _narrowed(scaled // int(factor))


def _narrowed(numbers: Numbers) -> Numbers:
    """As 64-bit integers, where all fit."""
    if numbers.dtype != object or any(abs(number) >= 2**63 for number in numbers):
        return numbers
    return numbers.astype(np.int64)


def in_units(numbers: Floats, unit: Fraction) -> Numbers:
    """Floats as whole numbers of a unit, the nearest."""
    rough = numbers * unit.denominator / unit.numerator
    if not np.isfinite(rough).all():
        raise ValueError("a number that is not finite cannot be published")
    if np.abs(rough).max(initial=0.0) < SAFE:
        found: Integers = np.rint(rough).astype(np.int64)
        return found
    return np.array([round(Fraction(float(number)) / unit) for number in numbers], object)


def as_floats(numbers: Numbers, unit: Fraction) -> Floats:
    """Whole numbers of a unit as floats, each the nearest to what is meant."""
    if numbers.dtype != object and np.abs(numbers).max(initial=0) < SAFE:
        found: Floats = numbers.astype(np.float64) * unit.numerator / unit.denominator
        return found
    return np.array([float(int(number) * unit) for number in numbers], np.float64)


def computed(numbers: Floats) -> Texts:
    """Numbers that are no whole number of anything: nine decimals at most, twelve significant digits at most."""
    if not np.isfinite(numbers).all():
        raise ValueError("a number that is not finite cannot be published")
    sizes = np.floor(np.log10(np.maximum(np.abs(numbers), 1e-300)))
    digits = np.clip(SIGNIFICANT - 1 - sizes, 0, MOST_DECIMALS).astype(np.int64)
    found = np.full(len(numbers), "", object)
    for one in np.unique(digits):
        here = digits == one
        unit = Fraction(1, 10 ** int(one))
        found[here] = np.array(decimals(in_units(numbers[here], unit), unit).to_pylist(), object)
    return pa.array(found, pa.string())


def read_computed(texts: Texts) -> Floats:
    """The numbers that `computed` wrote."""
    if pc.extract_regex(texts, DECIMAL).null_count:
        text = texts.filter(pc.invert(pc.match_substring_regex(texts, DECIMAL)))[0].as_py()
        raise ReleaseFault(f"found '{text}', expected a number written as a plain decimal")
    found: Floats = pc.cast(texts, pa.float64()).to_numpy(zero_copy_only=False)
    return found


def blank(texts: Texts, known: Flags) -> Texts:
    """Texts where something is known, and nothing elsewhere."""
    return texts if known.all() else pc.if_else(pa.array(known), texts, "")


def filled(texts: Texts) -> Texts:
    """Texts with a nought where there is nothing."""
    return pc.if_else(pc.equal(texts, ""), "0", texts)


def _scale(unit: Fraction) -> tuple[int, Fraction]:
    """How many decimals a unit is written with, and how many of the last decimal it is worth."""
    for digits in range(MOST_DIGITS + 4):
        if (unit * 10**digits).denominator == 1:
            return digits, unit * 10**digits
    return ENDLESS_DIGITS, unit * 10**ENDLESS_DIGITS


def _said(unit: Fraction) -> str:
    return "ones" if unit == 1 else f"steps of {unit}"


def _points(scaled: Integers, digits: int) -> Texts:
    """Whole numbers with a point before the last digits."""
    if digits == 0:
        return pc.cast(pa.array(scaled), pa.string())
    size = np.abs(scaled)
    whole, part = (pc.cast(pa.array(one), pa.string()) for one in np.divmod(size, 10**digits))
    texts = pc.binary_join_element_wise(whole, pc.utf8_lpad(part, digits, "0"), ".")
    trimmed = pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")
    return pc.binary_join_element_wise(pc.if_else(pa.array(scaled < 0), "-", ""), trimmed, "")


def _point(scaled: int, digits: int) -> str:
    whole, part = divmod(abs(scaled), 10**digits)
    text = f"{whole}.{part:0{digits}d}".rstrip("0").rstrip(".") if digits else str(whole)
    return f"-{text}" if scaled < 0 else text
