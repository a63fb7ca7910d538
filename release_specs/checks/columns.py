"""Checks of columns: their ranges, steps and clips, to whom they apply, and how many answers they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction

from release_specs.checks.draft import Draft, condition_findings, needs
from release_specs.checks.microdata import value_findings
from release_specs.diagnostics import Finding, Path, did_you_mean, error, listed, warning
from release_specs.language.conditions import Condition
from release_specs.language.microdata import ClipBy, Column
from release_specs.language.values import Range, write_number
from release_specs.reading.resolve import members_of

MOST_STEPS = 10**12
NARROW = 100
"""A range this narrow needs no narrower clip."""


@needs("microdata")
def ranges_are_closed_and_stepped(draft: Draft) -> Iterator[Finding]:
    """A valid range has two ends, a number has a step, and a clip lies on the steps inside the range."""
    for _, _, name, column, path in draft.columns():
        valid = column.valid
        if valid is not None and (valid.low is None or valid.high is None):
            message = f"'{valid}' has an open end; a domain is declared whole: write both bounds"
            yield error("open-domain", (*path, column.type), message)
        if column.type == "number" and column.step is None:
            message = "a number is rounded before it is counted; add step, for example step: 1 or step: 0.01"
            yield error("step-missing", path, message, at_key=True)
        if column.step is not None and column.type in ("codes", "area", "date"):
            yield error("step-misplaced", (*path, "step"), f"'{name}' holds no numbers; delete step", at_key=True)
        if valid is not None and valid.dated is not (column.type == "date"):
            kind = "days, such as 2025-01-01..2025-12-31" if column.type == "date" else "numbers, such as 0..99"
            yield error("bad-range", (*path, column.type), f"'{valid}' does not fit; '{column.type}' wants {kind}")
        elif column.type == "integer" and not _is_whole(column):
            yield error(
                "bad-range", (*path, "integer"), "an integer has whole bounds and a whole step; write number instead"
            )
        elif column.clip is not None:
            yield from _clip_findings(name, column, path)


def _is_whole(column: Column) -> bool:
    ends = [end for end in (column.integer.low, column.integer.high) if end is not None] if column.integer else []
    return all(isinstance(end, Fraction) and end.denominator == 1 for end in [*ends, column.step or Fraction(1)])


def _clip_findings(name: str, column: Column, path: Path) -> Iterator[Finding]:
    at: Path = (*path, "clip")
    clip, valid, step = column.clip, column.valid, column.step or Fraction(1)
    if isinstance(clip, ClipBy):
        message = f"a clip that depends on '{clip.column}' is not offered yet; write one range for all"
        yield error("clip-by-not-offered", at, message, at_key=True)
    elif clip is None or valid is None or column.type == "date":
        yield error("clip-misplaced", at, f"'{name}' holds no numbers to clip; delete the line", at_key=True)
    elif clip.low is None or clip.high is None:
        yield error("open-domain", at, f"'{clip}' has an open end; a clip bounds influence from both sides")
    elif clip.dated:
        yield error("bad-range", at, f"'{clip}' does not fit; a clip wants numbers")
    else:
        for end in (clip.low, clip.high):
            if isinstance(end, Fraction) and (end / step).denominator != 1:
                below = write_number(end // step * step)
                above = write_number((end // step + 1) * step)
                message = (
                    f"{write_number(end)} is not a multiple of the step {write_number(step)}; write {below} or {above}"
                )
                yield error("clip-off-step", at, message)
        if clip.low == clip.high:
            message = f"the clip {clip} holds one value, so every record adds the same; write a range, or use a count"
            yield error("clip-empty", at, message)
        elif any(isinstance(end, Fraction) and abs(end / step) > MOST_STEPS for end in (clip.low, clip.high)):
            message = f"the clip {clip} is more than {MOST_STEPS:,} steps from zero, so a sum might not fit; narrow it"
            yield error("clip-beyond", at, message)
        elif valid.low is not None and valid.high is not None:
            yield from _clip_against_range(clip, valid, at)


def _clip_against_range(clip: Range, valid: Range, at: Path) -> Iterator[Finding]:
    if not valid.holds(clip):
        yield error("clip-beyond", at, f"the clip {clip} reaches beyond {valid}, the valid range; narrow it")
    elif clip == valid and isinstance(valid.low, Fraction) and isinstance(valid.high, Fraction):
        if valid.high - valid.low <= NARROW:
            return
        message = (
            f"the clip is the whole valid range {valid}: one record may move a sum by that much. "
            "A narrower clip loses the extremes and gains precision"
        )
        yield warning("clip-whole-range", at, message)


@needs("microdata")
def not_applicable_is_no_code(draft: Draft) -> Iterator[Finding]:
    """The not-applicable value is none of the codes, and `applies_to` looks at the row."""
    for entity, _, name, column, path in draft.columns():
        attribute = draft.domain.attribute(entity, name)
        for value in column.not_applicable or ():
            if column.valid is not None and not list(value_findings(column, value, path)):
                message = (
                    f"'{value}' lies in {column.valid}, so it is a valid value too; narrow the range, or use read_as"
                )
                yield error("not-applicable-is-a-code", (*path, "not_applicable"), message)
            elif attribute is not None and attribute.code_named(value) is not None:
                message = f"'{value}' is also a code of '{name}'; take it out of the codes: it is not published"
                yield error("not-applicable-is-a-code", (*path, "not_applicable"), message)
        if column.applies_to is not None:
            if name in column.applies_to.columns():
                message = f"'{name}' cannot decide whether it applies; look at another column"
                yield error("applies-to-itself", (*path, "applies_to"), message)
            else:
                yield from condition_findings(draft, entity, column.applies_to, (*path, "applies_to"))


Node = tuple[str, str]
"""An entity and a column or derived attribute of it."""


@needs("microdata", "derive", "recodes")
def columns_do_not_decide_about_each_other(draft: Draft) -> Iterator[Finding]:
    """Whether a column applies is decided by columns that are known before it, through derived attributes too."""
    looks_at = dict(_looks_at(draft))
    reach = {node: _reach(node, looks_at) for node in looks_at}
    for entity, _, name, column, path in draft.columns():
        node = (entity, name)
        circle = {other for other in reach[node] if node in reach.get(other, ())}
        columns = [other for other in circle if other[1] in draft.spec.microdata[other[0]].columns]
        if node in circle and node == min(columns) and name not in _columns_of(column.applies_to):
            others = listed(sorted(other for _, other in circle if other != name))
            message = f"'{name}' and {others} decide about each other; let one of them look at another column"
            if not others:
                message = f"'{name}' cannot decide whether it applies; look at another column"
            yield error("applies-to-itself", (*path, "applies_to"), message)
    for group, derived in draft.spec.derive.items():
        for name in derived:
            node = (group, name)
            if node in reach.get(node, ()) and not any(column in reach[node] for column in _column_nodes(draft)):
                message = f"'{name}' is derived from rows that are chosen by '{name}'; choose them by their own columns"
                yield error("cyclic-derived", ("derive", group, name), message, at_key=True)


def _column_nodes(draft: Draft) -> Iterator[Node]:
    return ((entity, name) for entity, _, name, column, _ in draft.columns() if column.applies_to is not None)


def _reach(node: Node, looks_at: Mapping[Node, set[Node]]) -> set[Node]:
    seen: set[Node] = set()
    ahead = looks_at[node]
    while ahead:
        seen |= ahead
        ahead = {further for other in ahead for further in looks_at.get(other, ())} - seen
    return seen


def _looks_at(draft: Draft) -> Iterator[tuple[Node, set[Node]]]:
    """For each column and derived attribute, what decides whether it applies or what it is."""
    for entity, facts in draft.spec.microdata.items():
        for name, column in facts.columns.items():
            yield (entity, name), {_node(draft, entity, other) for other in _columns_of(column.applies_to)}
    for group, derived in draft.spec.derive.items():
        rows = members_of(draft.spec, group)
        for name, made in derived.items():
            names = [*_columns_of(made.where), *([made.value_of] if made.value_of else [])]
            member = made.number_of or made.any or (rows[0] if rows else group)
            if group in draft.spec.microdata:
                yield (group, name), {_node(draft, member, other) for other in names}


def _columns_of(condition: Condition | None) -> frozenset[str]:
    return condition.columns() if condition is not None else frozenset()


def _node(draft: Draft, entity: str, name: str) -> Node:
    attribute = draft.domain.attribute(entity, name)
    return (attribute.owner, attribute.base) if attribute is not None else (entity, name)


@needs("microdata")
def several_answers_are_bounded(draft: Draft) -> Iterator[Finding]:
    """A multi-response column says how many answers a row may have and where they stand."""
    for entity, _, name, column, path in draft.columns():
        parts = [word for word in ("columns", "separator") if getattr(column, word) is not None]
        if column.up_to is None and not parts:
            continue
        if column.type != "codes":
            yield error(
                "answers-need-codes", path, f"'{name}' may have several answers, so it needs codes", at_key=True
            )
        elif column.up_to is None:
            message = f"'{parts[0]}' allows several answers; add up_to: the most that count for one row"
            yield error("answers-unbounded", path, message, at_key=True)
        elif len(parts) != 1:
            found = "found columns and separator" if parts else "it is not said where the answers stand"
            message = f"{found}; expected columns: [a, b] or separator: ';'"
            yield error("answers-nowhere", path, message, at_key=True)
        elif column.columns is not None and len(column.columns) < column.up_to:
            message = f"{len(column.columns)} columns cannot hold up to {column.up_to} answers; lower up_to"
            yield error("answers-unbounded", (*path, "up_to"), message)
        else:
            attribute = draft.domain.attribute(entity, name)
            if attribute is not None and column.up_to > len(attribute.coded):
                message = f"there are {len(attribute.coded)} codes, so no row has up to {column.up_to}; lower up_to"
                yield error("answers-unbounded", (*path, "up_to"), message)


@needs("microdata")
def codes_do_not_look_alike(draft: Draft) -> Iterator[Finding]:
    """Two codes that differ only in case, spaces or leading zeros are probably one."""
    for entity, _, name, _, path in draft.columns():
        attribute = draft.domain.attribute(entity, name)
        seen: dict[str, str] = {}
        for category in attribute.coded if attribute is not None else ():
            folded = re.sub(r"\s+", "", category.code).casefold().lstrip("0") or "0"
            other = seen.setdefault(folded, category.code)
            if other != category.code:
                message = (
                    f"codes '{other}' and '{category.code}' differ only in case, spaces or leading zeros; "
                    "if they are one, keep one and read the other as it with read_as"
                )
                yield warning("look-alike-codes", (*path, "codes"), message, at_key=True)


@needs("microdata")
def spellings_are_read_as_something_declared(draft: Draft) -> Iterator[Finding]:
    """A spelling is replaced by a declared value, the not-applicable one, or one that means: missing."""
    for entity, facts, name, column, path in draft.columns():
        attribute = draft.domain.attribute(entity, name)
        for spelling, value in (column.read_as or {}).items():
            if attribute is None or value in (*(column.not_applicable or ()), *facts.read.missing):
                continue
            if attribute.scale is not None:
                yield from value_findings(column, value, (*path, "read_as", spelling))
            elif attribute.code_named(value) is None:
                codes = [category.code for category in attribute.coded]
                message = f"'{value}' is not a code of '{name}'; {did_you_mean(value, codes)}"
                yield error("unknown-code", (*path, "read_as", spelling), message)


@needs("microdata")
def bounds_do_not_look_observed(draft: Draft) -> Iterator[Finding]:
    """A bound such as 1341187 was probably read off the data, and then it tells something about a record."""
    for _, _, _, column, path in draft.columns():
        for word in (column.type, "clip"):
            part = getattr(column, word)
            if not isinstance(part, Range) or column.type not in ("integer", "number"):
                continue
            odd = [end for end in (part.low, part.high) if isinstance(end, Fraction) and _looks_observed(end)]
            if odd:
                message = (
                    f"{write_number(odd[0])} looks like an extreme found in the data, which would tell something about "
                    "a record; bounds come from documentation or are decided beforehand (a round number will do)"
                )
                yield warning("observed-bounds", (*path, word), message)


def _looks_observed(bound: Fraction) -> bool:
    """Five digits or more that end in nothing round: nobody decides such a bound beforehand."""
    digits = write_number(abs(bound)).replace(".", "")
    if bound > 0 and (bound + 1).numerator.bit_count() == 1:
        return False
    return len(digits) >= 5 and not re.search(r"(00|99|95|50|25|75)\d?$|^(\d)\2+$", digits)


CHECKS = (
    ranges_are_closed_and_stepped,
    not_applicable_is_no_code,
    columns_do_not_decide_about_each_other,
    several_answers_are_bounded,
    codes_do_not_look_alike,
    spellings_are_read_as_something_declared,
    bounds_do_not_look_observed,
)
