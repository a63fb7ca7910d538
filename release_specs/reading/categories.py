"""Recoding: categories laid over a coded attribute or a scale, with every gap and overlap found."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from itertools import pairwise

from pydantic_core import PydanticCustomError

from release_specs.diagnostics import Finding, Path, did_you_mean, error, listed
from release_specs.domain import Attribute, Category, Scale
from release_specs.language.values import Range, read_range, write_number
from release_specs.language.vocabulary import Categories, EqualBins, Into

MOST_BINS = 10_000


def recode(source: Attribute, into: Into, path: Path, findings: list[Finding]) -> tuple[Category, ...]:
    """The categories of `into` over `source`; empty, with findings at `path`, where they do not fit."""
    if isinstance(into, EqualBins):
        return _equal_bins(source, into, path, findings)
    if source.scale is not None:
        return _over_scale(source, source.scale, into, path, findings)
    return _over_codes(source, into, path, findings)


def _over_codes(source: Attribute, into: Categories, path: Path, findings: list[Finding]) -> tuple[Category, ...]:
    before = len(findings)
    held_by: dict[str, str] = {}
    for name, wanted in into.named:
        unknown = [code for code in wanted if source.code_named(code) is None]
        if unknown:
            findings.append(error("unknown-code", (*path, name), _unknown_codes(source, unknown)))
        for code in wanted:
            if code in unknown:
                continue
            if code in held_by:
                message = f"code '{code}' is in '{held_by[code]}' and in '{name}'; a code belongs to one category"
                findings.append(error("category-overlap", (*path, name), message))
            else:
                held_by[code] = name
    uncovered = [category.code for category in source.coded if category.code not in held_by]
    rest = _rest_of(into, path, findings)
    if uncovered and rest is None:
        which = f"code {uncovered[0]}" if len(uncovered) == 1 else f"codes {listed(uncovered)}"
        message = f"{which} of '{source.name}' in no category; add to one, or add a category with the word rest"
        findings.append(error("category-gap", path, message, at_key=True))
    if len(findings) > before:
        return ()
    return tuple(Category(name, name, tuple(_held(source, wanted or tuple(uncovered)))) for name, wanted in into.named)


def _unknown_codes(source: Attribute, unknown: list[str]) -> str:
    codes = [category.code for category in source.coded]
    if ".." in unknown[0]:
        return f"'{unknown[0]}' is a range, and '{source.name}' has codes; list them: [{listed(codes, 4)}]"
    if len(unknown) == 1:
        return f"'{unknown[0]}' is not a code of '{source.name}'; {did_you_mean(unknown[0], codes)}"
    return f"{listed(unknown, 6)} are not codes of '{source.name}'; {did_you_mean(unknown[0], codes)}"


def _held(source: Attribute, codes: tuple[str, ...]) -> Iterator[str | Range]:
    wanted = set(codes)
    for category in source.coded:
        if category.code in wanted:
            yield from category.holds


def _rest_of(into: Categories, path: Path, findings: list[Finding]) -> str | None:
    rests = [name for name, wanted in into.named if not wanted]
    for name in rests[1:]:
        message = f"'{rests[0]}' and '{name}' are both the rest; only one category can be"
        findings.append(error("category-overlap", (*path, name), message))
    return rests[0] if rests else None


def _over_scale(
    source: Attribute, scale: Scale, into: Categories, path: Path, findings: list[Finding]
) -> tuple[Category, ...]:
    before = len(findings)
    spans: list[tuple[int, int | None, str]] = []
    for name, wanted in into.named:
        for text in wanted:
            if (part := _range_on(source, scale, text, (*path, name), findings)) is not None:
                spans.append((*scale.span(part), name))
    rest = _rest_of(into, path, findings)
    if len(findings) == before:
        findings.extend(_overlaps(scale, spans, path))
    gaps = _gaps(scale, spans)
    if len(findings) == before and gaps and rest is None:
        findings.append(error("category-gap", path, _gap_message(source, scale, gaps), at_key=True))
    if len(findings) > before:
        return ()
    held: dict[str, list[Range]] = {name: [] for name, _ in into.named}
    for first, last, name in spans:
        held[name].append(_range_of(scale, first, last))
    if rest is not None:
        held[rest] = [_range_of(scale, first, last) for first, last in gaps]
    return tuple(Category(name, name, tuple(ranges)) for name, ranges in held.items())


def _range_on(source: Attribute, scale: Scale, text: str, path: Path, findings: list[Finding]) -> Range | None:
    try:
        part = read_range(text)
    except PydanticCustomError as fault:
        findings.append(error(fault.type, path, fault.message()))
        return None
    if not scale.fits(part):
        kind = "days" if isinstance(scale.low, date) else "numbers"
        findings.append(error("bad-range", path, f"'{text}' does not fit '{source.name}', which holds {kind}"))
        return None
    first, last = scale.span(part)
    beyond = first < 0 or (last is not None and scale.size is not None and last >= scale.size)
    if beyond or (last is not None and first > last):
        message = f"'{text}' reaches beyond {scale}, the valid range of '{source.name}'; an open end means that bound"
        findings.append(error("category-beyond", path, message))
        return None
    return part


def _overlaps(scale: Scale, spans: list[tuple[int, int | None, str]], path: Path) -> Iterator[Finding]:
    ordered = sorted(spans, key=lambda span: span[0])
    for (_, last, name), (first, _, other) in pairwise(ordered):
        if last is None or first <= last:
            value = _range_of(scale, first, first)
            message = f"{value} is in '{name}' and in '{other}'; a value belongs to one category"
            yield error("category-overlap", (*path, other), message)


def _gaps(scale: Scale, spans: list[tuple[int, int | None, str]]) -> list[tuple[int, int | None]]:
    gaps: list[tuple[int, int | None]] = []
    start = 0
    for first, last, _ in sorted(spans, key=lambda span: span[0]):
        if first > start:
            gaps.append((start, first - 1))
        if last is None:
            return gaps
        start = max(start, last + 1)
    if scale.size is None:
        gaps.append((start, None))
    elif start < scale.size:
        gaps.append((start, scale.size - 1))
    return gaps


def _gap_message(source: Attribute, scale: Scale, gaps: list[tuple[int, int | None]]) -> str:
    shown = listed((str(_range_of(scale, first, last)) for first, last in gaps), 4)
    counts = [last - first + 1 for first, last in gaps if last is not None]
    number = f"{sum(counts):,} value{'s' if sum(counts) != 1 else ''}" if len(counts) == len(gaps) else "values"
    step = f" at step {write_number(scale.step)}" if scale.step != 1 else ""
    return (
        f"{number} of '{source.name}'{step} in no category: {shown}; "
        "widen a range, or add a category with the word rest"
    )


def _range_of(scale: Scale, first: int, last: int | None) -> Range:
    return Range(scale.value(first), None if last is None else scale.value(last))


def _equal_bins(source: Attribute, into: EqualBins, path: Path, findings: list[Finding]) -> tuple[Category, ...]:
    scale = source.scale
    if scale is None or not isinstance(scale.low, Fraction):
        message = f"bins of one width need numbers; '{source.name}' has none: name the categories"
        findings.append(error("bins-need-numbers", path, message, at_key=True))
        return ()
    top = into.to if into.to is not None else scale.high
    if not isinstance(top, Fraction):
        message = f"'{source.name}' has no upper bound; say where the bins end, for example to: 10"
        findings.append(error("missing-key", path, message, at_key=True))
        return ()
    fault = _bins_fault(source.name, scale, scale.low, into, top)
    if fault is not None:
        code, word, message = fault
        findings.append(error(code, (*path, word), message))
        return ()
    return tuple(_bins(scale, scale.low, into, top))


def _bins_fault(name: str, scale: Scale, low: Fraction, into: EqualBins, top: Fraction) -> tuple[str, str, str] | None:
    every = write_number(into.every)
    if (into.every / scale.step).denominator != 1:
        return "bins-off-step", "every", f"the width {every} is not a multiple of the step {write_number(scale.step)}"
    if top <= low or (isinstance(scale.high, Fraction) and top > scale.high):
        return (
            "category-beyond",
            "to",
            f"the bins end at {write_number(top)}, outside {scale}, the valid range of '{name}'",
        )
    if into.to is not None and ((top - low) / into.every).denominator != 1:
        fitting = write_number(low + (top - low) // into.every * into.every)
        start = f"{write_number(top)} is not a whole number of bins of {every} above {write_number(low)}"
        return "bins-off-step", "to", f"{start}; write {fitting}"
    if (top - low) / into.every > MOST_BINS:
        return "table-too-large", "every", f"these are more than {MOST_BINS:,} bins; make them wider"
    return None


def _bins(scale: Scale, low: Fraction, into: EqualBins, top: Fraction) -> Iterator[Category]:
    edges = [low + index * into.every for index in range(int((top - low) / into.every) + 1)]
    for edge in edges:
        if into.to is not None and edge == edges[-1]:
            label, high = f"{write_number(edge)} and over", scale.high
        else:
            high = edge + into.every - scale.step
            high = min(high, scale.high) if isinstance(scale.high, Fraction) else high
            label = f"{write_number(edge)} to {write_number(high)}" if edge < high else write_number(edge)
        yield Category(label, label, (Range(edge, high),))
