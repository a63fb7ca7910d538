"""One column of a description as it stands in a spec: an entry, or a remark that says why it is left out."""

from __future__ import annotations

import re
from fractions import Fraction

from release_specs.language.values import UNDECIDED, Range, read_range, write_number
from release_specs.starter.areas import MOST_INLINE, csv_text, spines_of
from release_specs.starter.description import DescribedColumn, DescribedFile, Description
from release_specs.starter.outline import Block, Entry, Remark, Undecided, Value, inline, quoted

MOST_EXAMPLE_CODES = 20


def column_entries(file: DescribedFile, known: Description) -> tuple[Entry | Remark, ...]:
    """The columns of a file, in its order; identifiers are keys and groups, not columns."""
    return tuple(_column(column, file, known) for column in file.columns if column.kind not in ("id", "skip"))


def example_column(file: DescribedFile) -> str | None:
    """The first column that a small example table may be counted by: coded, and everyone has it."""
    for column in file.columns:
        short = 2 <= len(column.codes) <= MOST_EXAMPLE_CODES
        if column.kind == "categorical" and short and not column.not_applicable and re.fullmatch(r"\w+", column.name):
            return column.name
    return None


def code_files(known: Description) -> dict[str, str]:
    """The code lists that are too long to stand in the spec."""
    return {
        _codes_file(column, file): csv_text(("code", "label"), list(column.codes))
        for file in known.files
        for column in file.columns
        if column.kind == "categorical" and len(column.codes) > MOST_INLINE
    }


def _column(column: DescribedColumn, file: DescribedFile, known: Description) -> Entry | Remark:
    facts = _facts(column, file, known)
    if column.kind == "weight":
        return Remark(
            f"{column.name} ({column.label}) looks like a survey weight, and weights are not offered: tables count "
            "records. If it is something else, delete the # of the next line.",
            (_in_one_line(column, facts),),
        )
    if column.kind == "categorical" and column.open_list is not None:
        why = f" ({column.open_list})" if column.open_list else ""
        return Remark(
            f"{column.name} needs a code list{why}: write {_codes_file(column, file)} (code,label) from the "
            "documentation and delete the # of the next line.",
            (_in_one_line(column, facts),),
        )
    if column.kind == "geography" and (file.name, column.name) not in spines_of(known):
        return Remark(f"{column.name} is left out: the areas of this file come from another column of the same list.")
    if column.kind is not None and column.kind.startswith("other: "):
        kind = column.kind.removeprefix("other: ")
        return Remark(
            f"{column.name} is left out: columns of kind '{kind}' are not tabulated. Declare it as codes, integer, "
            "number or date if it is one of these."
        )
    return Entry(column.name, Block(facts, fit=True), above=column.note and f"{column.name}: {column.note}")


def _in_one_line(column: DescribedColumn, facts: tuple[Entry, ...]) -> str:
    return f"{quoted(column.name)}: {inline(Block(facts))}"


def _facts(column: DescribedColumn, file: DescribedFile, known: Description) -> tuple[Entry, ...]:
    facts = [Entry("label", column.label)] if column.label and column.label != column.name else []
    facts += _type_of(column, file, known)
    if column.clip and not known.source:
        facts.append(Entry("clip", column.clip))
    elif column.kind == "money" or column.clip:
        what = "bounds one record's influence on sums and means"
        facts.append(Entry("clip", Undecided(what, column.clip, known.source)))
    if column.not_applicable == (UNDECIDED,):
        facts.append(Entry("not_applicable", Undecided("the code of rows that have no value; or delete this key")))
    elif column.not_applicable and column.kind != "geography":
        none = column.not_applicable
        beside = f"none for: {column.not_applicable_to}" if column.not_applicable_to else ""
        facts.append(Entry("not_applicable", none[0] if len(none) == 1 else none, beside=beside))
    return tuple(facts)


_RANGES = {
    "integer": "the valid whole numbers, such as 0..99",
    "number": "the valid numbers, such as 0..100",
    "date": "the valid days, such as 2025-01-01..2025-12-31",
}


def _type_of(column: DescribedColumn, file: DescribedFile, known: Description) -> list[Entry]:
    word = {"money": "number", "weight": "integer"}.get(column.kind or "", column.kind)
    if word in _RANGES:
        step = column.step or Undecided("values are rounded to multiples of this", _step(column))
        return [Entry(word, _range(column, _RANGES[word]))] + ([Entry("step", step)] if word == "number" else [])
    if word == "geography":
        spine = spines_of(known).get((file.name, column.name))
        return [Entry("area", spine.name)] if spine else []
    if word is None:
        return [
            Entry("codes", Undecided("{code: label}, [codes] or file.csv; or instead: integer, number, date, area"))
        ]
    return [Entry("codes", _codes(column, file))]


def _range(column: DescribedColumn, what: str) -> Value:
    known = column.valid and read_range(column.valid)
    if isinstance(known, Range) and known.low is not None and known.high is not None:
        return column.valid
    return Undecided(f"{what}; both ends are needed")


def _step(column: DescribedColumn) -> str:
    """The coarsest power of ten that every known bound is a multiple of, and at most 1."""
    ranges = [read_range(text) for text in (column.valid, column.clip) if text]
    ends = [end for part in ranges for end in (part.low, part.high) if isinstance(end, Fraction)]
    step = Fraction(1)
    while any((end / step).denominator != 1 for end in ends) and step > Fraction(1, 10**6):
        step /= 10
    return write_number(step)


def _codes(column: DescribedColumn, file: DescribedFile) -> Value:
    if column.codes_file or column.open_list is not None or len(column.codes) > MOST_INLINE:
        return column.codes_file or _codes_file(column, file)
    if not column.codes:
        return Undecided("{code: label}, [codes] or file.csv, from the documentation")
    if all(code == label for code, label in column.codes):
        return tuple(code for code, _ in column.codes)
    return Block(tuple(Entry(code, label) for code, label in column.codes), fit=True, aligned=True)


def _codes_file(column: DescribedColumn, file: DescribedFile) -> str:
    return f"{file.name}_{re.sub(r'[^A-Za-z0-9_-]+', '_', column.name).lower()}.csv"
