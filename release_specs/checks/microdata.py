"""Checks of entities: what a row is, how its file is read, and what happens to values that are not in the domain."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping

from pydantic_core import PydanticCustomError

from release_specs.checks.draft import Draft, condition_findings, needs, unknown_name
from release_specs.diagnostics import Finding, Path, did_you_mean, error, listed
from release_specs.domain import Attribute
from release_specs.language.microdata import Column, ReadOptions, Treatment
from release_specs.language.values import read_range
from release_specs.reading.resolve import members_of


@needs("microdata")
def groups_are_declared(draft: Draft) -> Iterator[Finding]:
    """Rows are nested in one declared group, and groups in nothing."""
    spec = draft.spec
    for name, entity in spec.microdata.items():
        path: Path = ("microdata", name)
        groups = list(entity.group or ())
        if len(groups) > 1:
            yield error(
                "several-groups", (*path, "in"), f"rows of {name} are nested in {len(groups)} groups; choose one"
            )
        for group in groups[:1]:
            yield from unknown_name(draft, "unknown-entity", group, spec.microdata, (*path, "in", group), "an entity")
            if group == name or (group in spec.microdata and spec.microdata[group].group):
                message = f"'{group}' is itself nested: groups inside groups have no proved bound; leave one out"
                yield error("nested-groups", (*path, "in", group), message)
        if entity.key is None and (members_of(spec, name) or entity.built_from is not None):
            message = (
                f"rows of {listed(members_of(spec, name)) or 'others'} are nested in {name} by its key; add key: column"
            )
            yield error("missing-key", path, message, at_key=True)
        if entity.built_from is not None:
            yield from _built_from_its_rows(draft, name, entity.built_from, (*path, "from"))
        if entity.only is not None:
            yield from condition_findings(draft, name, entity.only, (*path, "only"), edition=True)


def _built_from_its_rows(draft: Draft, name: str, rows: str, path: Path) -> Iterator[Finding]:
    yield from unknown_name(draft, "unknown-entity", rows, draft.spec.microdata, path, "an entity")
    if rows in draft.spec.microdata and rows not in members_of(draft.spec, name):
        yield error("not-nested", path, f"'{name}' is built from '{rows}', so '{rows}' needs in: {{{name}: column}}")


@needs("microdata")
def areas_are_of_a_spine(draft: Draft) -> Iterator[Finding]:
    """An area column names its spine, and an entity carries each spine once."""
    carried: dict[tuple[str, str], str] = {}
    for entity, _, name, column, path in draft.columns():
        if column.area is None:
            continue
        known = draft.spec.geography
        if column.applies_to is not None or column.not_applicable is not None:
            word = "applies_to" if column.applies_to is not None else "not_applicable"
            message = "every row lies in some area; say what happens to the others with outside and missing"
            yield error("area-always-applies", (*path, word), message, at_key=True)
        yield from unknown_name(draft, "unknown-spine", column.area, known, (*path, "area"), "a spine of 'geography'")
        first = carried.setdefault((entity, column.area), name)
        if first != name:
            message = f"'{first}' and '{name}' of {entity} both carry the spine '{column.area}'; declare a second spine"
            yield error("spine-twice", (*path, "area"), message)


@needs("microdata")
def every_value_has_a_treatment(draft: Draft) -> Iterator[Finding]:
    """What happens to values outside the domain and to missing ones is stated, and makes sense for the type."""
    silent: dict[tuple[str, str], list[str]] = {}
    for entity, facts, name, column, path in draft.columns():
        for word in ("outside", "missing"):
            own: Treatment | None = getattr(column, word)
            rule = own or getattr(facts.defaults, word)
            at: Path = (*path, word) if own else path
            if rule is None:
                silent.setdefault((entity, name), []).append(word)
            elif rule.kind == "nearest" and (word == "missing" or column.type in ("codes", "area")):
                what = "areas" if column.type == "area" else "codes"
                reason = "a missing value has no nearest one" if word == "missing" else f"{what} have no order"
                message = f"{reason}; write {word}: leave_out or {word}: {{count_as: CODE}}"
                yield error("nearest-needs-order", at, message, at_key=own is None)
            elif rule.kind == "count_as":
                yield from _counted_as(draft.domain.attribute(entity, name), draft, column, rule.code or "", at)
    yield from _told_together(silent)


def _told_together(silent: Mapping[tuple[str, str], list[str]]) -> Iterator[Finding]:
    """One finding for all columns of an entity that lack the same treatments."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (entity, name), words in silent.items():
        groups.setdefault((entity, tuple(words)), []).append(name)
    called = {"outside": "values outside the domain", "missing": "missing values"}
    for (entity, lacking), names in groups.items():
        what = " and to ".join(called[word] for word in lacking)
        defaults = ", ".join(f"{word}: leave_out" for word in lacking)
        path: Path = ("microdata", entity, "columns", names[0]) if len(names) == 1 else ("microdata", entity)
        message = (
            f"{listed(names)}: what happens to {what} is not stated; "
            f"add defaults: {{{defaults}}} to {entity}, or decide column by column"
        )
        yield error("treatment-missing", path, message, at_key=True)


def _counted_as(attribute: Attribute | None, draft: Draft, column: Column, code: str, path: Path) -> Iterator[Finding]:
    if column.type == "area":
        tree = draft.domain.hierarchies.get(column.area or "")
        if tree is not None and code not in {area.code for area in tree.areas[tree.smallest]}:
            yield error("unknown-area", path, f"'{code}' is not a {tree.smallest} of '{tree.name}'")
        return
    if column.type != "codes":
        yield from value_findings(column, code, path)
    elif attribute is not None and attribute.code_named(code) is None:
        known = [category.code for category in attribute.coded]
        yield error("unknown-code", path, f"'{code}' is not a code of '{attribute.name}'; {did_you_mean(code, known)}")


def value_findings(column: Column, code: str, path: Path) -> Iterator[Finding]:
    """What is wrong with a text that should be one valid number or day of a column."""
    valid = column.valid
    if valid is None or valid.low is None or valid.high is None or valid.dated is not (column.type == "date"):
        return
    try:
        point = read_range(code)
    except PydanticCustomError as fault:
        yield error(fault.type, path, fault.message())
        return
    if point.low is None or point.low != point.high or not valid.holds(point):
        yield error("unknown-code", path, f"'{code}' is not one value of {valid}, the valid range")


def _keeps_lines(encoding: str) -> bool:
    """Whether bytes can be cut into lines and fields before they are decoded: UTF-8, or one byte a character."""
    try:
        name = codecs.lookup(encoding).name
        single = "".join(map(chr, range(128))).encode(encoding) == bytes(range(128))
        sizes = {len(bytes([byte]).decode(encoding, "replace")) for byte in range(128, 256)}
        pairs = {len(bytes([byte, 65]).decode(encoding, "replace")) for byte in range(128, 256)}
    except (LookupError, UnicodeError, TypeError, ValueError):
        return False
    return name in ("utf-8", "utf-8-sig", "ascii") or (single and sizes == {1} and pairs == {2})


@needs("microdata")
def keys_fit_their_groups(draft: Draft) -> Iterator[Finding]:
    """A row's key is not its group's, and a group built from rows is known by the column that names it there."""
    for name, entity in draft.spec.microdata.items():
        path: Path = ("microdata", name)
        for group, column in (entity.group or {}).items():
            facts = draft.spec.microdata.get(group)
            if entity.key == (column,):
                message = f"'{column}' is the key of {group}; the key of {name} is the column that tells its rows apart"
                yield error("key-of-group", (*path, "key"), message)
            if facts is None or facts.key is None:
                continue
            if len(facts.key) != 1:
                message = f"{name} name their {group} by one column, so the key of {group} is one column"
                yield error("key-of-group", ("microdata", group, "key"), message, at_key=True)
            elif facts.built_from == name and facts.key != (column,):
                message = f"{group} are built from {name}, whose rows name them in '{column}'; write key: {column}"
                yield error("key-of-group", ("microdata", group, "key"), message)
        if entity.built_from is not None and entity.read != ReadOptions():
            message = f"{name} have no file of their own; say how the file of {entity.built_from} is read"
            yield error("no-file", (*path, "read"), message, at_key=True)


@needs("microdata")
def mixed_is_for_groups_built_from_rows(draft: Draft) -> Iterator[Finding]:
    """`mixed` is stated exactly for the columns of groups that are built from their rows."""
    for entity, facts, name, column, path in draft.columns():
        if facts.built_from is None:
            if column.mixed is not None:
                message = f"'mixed' is for groups built from rows; {entity} has a file of its own: delete the line"
                yield error("mixed-misplaced", (*path, "mixed"), message, at_key=True)
        elif column.mixed is None:
            message = f"rows of one of {entity} may disagree on '{name}'; add mixed: leave_out or {{count_as: CODE}}"
            yield error("mixed-missing", path, message, at_key=True)
        elif column.mixed.kind == "nearest":
            message = "rows that disagree have no nearest value; write leave_out or {count_as: CODE}"
            yield error("nearest-needs-order", (*path, "mixed"), message)
        elif column.mixed.kind == "count_as":
            attribute = draft.domain.attribute(entity, name)
            yield from _counted_as(attribute, draft, column, column.mixed.code or "", (*path, "mixed"))


@needs("microdata")
def text_files_can_be_read(draft: Draft) -> Iterator[Finding]:
    """The encoding exists, the delimiter is one character, and no key column is named twice."""
    for name, entity in draft.spec.microdata.items():
        path: Path = ("microdata", name)
        if not _keeps_lines(entity.read.encoding):
            message = f"'{entity.read.encoding}' cannot be read line by line; write utf-8, latin-1 or windows-1252"
            yield error("bad-choice", (*path, "read", "encoding"), message)
        delimiter = entity.read.delimiter
        if len(delimiter) != 1 or delimiter in "\"'\r\n":
            message = f"'{delimiter}' cannot stand between fields; write one character, such as ; or |"
            yield error("bad-choice", (*path, "read", "delimiter"), message)
        elif delimiter == entity.read.decimal:
            message = f"'{delimiter}' is both the decimal mark and what stands between fields; write delimiter: ;"
            yield error("bad-choice", (*path, "read", "decimal"), message)
        for column_name, column in entity.columns.items():
            if column.separator == delimiter:
                message = f"'{delimiter}' stands between fields already; the answers need another separator"
                yield error("bad-choice", (*path, "columns", column_name, "separator"), message)
        if entity.key is not None and len(set(entity.key)) < len(entity.key):
            yield error("listed-twice", (*path, "key"), "a column is listed twice in the key; keep one", at_key=True)


CHECKS = (
    groups_are_declared,
    areas_are_of_a_spine,
    every_value_has_a_treatment,
    keys_fit_their_groups,
    mixed_is_for_groups_built_from_rows,
    text_files_can_be_read,
)
