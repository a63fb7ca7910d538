"""YAML text to a frozen `ReleaseSpec`, or one plain list of everything that is wrong with it.

A section that cannot be read does not silence the others: the faulty part is set aside, its name is remembered so
that nothing complains about it twice, and the rest is checked as if it stood there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from release_specs.checks import find
from release_specs.checks.draft import Draft
from release_specs.diagnostics import Diagnostic, Finding, Path, Severity, SpecError, dotted, error
from release_specs.domain import Domain
from release_specs.language.values import UNDECIDED, shape_of
from release_specs.reading.public_files import PublicFiles
from release_specs.reading.resolve import build_domain, unique
from release_specs.reading.source import read_source
from release_specs.reading.tree import Tree, parse_tree, walk
from release_specs.reading.unknown_keys import explain_unknown_key, keys_at
from release_specs.spec import ReleaseSpec

MOST_ROUNDS = 60


@dataclass(frozen=True, slots=True)
class Loaded:
    """A spec without mistakes, its domain, and the warnings and notes about it."""

    spec: ReleaseSpec
    domain: Domain
    diagnostics: tuple[Diagnostic, ...]


def load_spec(path: FilePath) -> Loaded:
    """The spec in a file. Raises `SpecError` with every mistake at once."""
    return load_text(read_source(path, shown_as=str(path)), file=str(path), folder=path.parent)


def load_text(text: str, *, file: str, folder: FilePath) -> Loaded:
    """The spec in a text, with its public files in `folder`. Raises `SpecError` with every mistake at once."""
    tree = parse_tree(text, file)
    reading = _read(tree.data)
    files = PublicFiles(folder)
    findings = list(reading.findings)
    domain = Domain(unknown=reading.unknown)
    if "microdata" in reading.sections:
        domain = build_domain(reading.spec, files, reading.unknown)
    findings += unique(files.findings)
    already = len(files.findings)
    findings += find(
        Draft(reading.spec, domain, files, reading.sections, lambda path: tree.place(path, at_key=True)[0])
    )
    findings += files.findings[already:]
    diagnostics = _located(findings, tree, folder)
    if any(found.severity is Severity.ERROR for found in diagnostics):
        raise SpecError(diagnostics)
    return Loaded(reading.spec, domain, diagnostics)


def _located(findings: list[Finding], tree: Tree, folder: FilePath) -> tuple[Diagnostic, ...]:
    located = []
    for found in dict.fromkeys(findings):
        file, (line, column) = tree.file, tree.place(found.path, at_key=found.at_key)
        if found.place is not None:
            file, line, column = str(folder / found.place[0]), found.place[1], found.place[2]
        located.append(Diagnostic(file, line, column, found.severity, found.code, dotted(found.path), found.message))
    return tuple(sorted(located, key=lambda item: (item.severity is Severity.NOTE, item.file != tree.file, item.line)))


@dataclass(frozen=True, slots=True)
class _Reading:
    """What could be read of a spec: `sections` are those that are whole, `unknown` the names of what is not."""

    spec: ReleaseSpec
    sections: frozenset[str]
    unknown: set[str]
    findings: tuple[Finding, ...]


def _read(data: Any) -> _Reading:
    """Validates, sets faulty parts aside, and validates what is left, until it holds."""
    findings: list[Finding] = []
    unknown: set[str] = set()
    lost: set[str] = set()
    rest = _copy(data)
    for path, value in walk(data):
        if value is None and path and path[2:3] != ("areas",):
            message = "nothing is written after the ':'; write a value or delete the line"
            findings.append(error("empty-value", path, message, at_key=True))
            _set_aside(rest, path, unknown, lost)
    for _ in range(MOST_ROUNDS):
        try:
            spec = ReleaseSpec.model_validate(rest)
            return _Reading(spec, frozenset(ReleaseSpec.model_fields) - lost, unknown, tuple(findings))
        except ValidationError as fault:
            details = fault.errors(include_url=False, include_input=True)
        fresh = [found for item in details for found in _findings_of(item, lost)]
        findings += [found for found in _without_misspelt(fresh) if found not in findings]
        for item in details:
            _set_aside(rest, _plain_path(item), unknown, lost)
        if all(item["type"] == "missing" and len(item["loc"]) == 1 for item in details):
            break
    lost |= {name for name, field in ReleaseSpec.model_fields.items() if field.is_required() and name not in rest}
    return _Reading(_whatever_holds(rest, lost), frozenset(ReleaseSpec.model_fields) - lost, unknown, tuple(findings))


def _whatever_holds(rest: dict[str, Any], lost: set[str]) -> ReleaseSpec:
    """A spec of the sections that hold, with stand-ins for the lost ones: no check looks at those."""
    spec = ReleaseSpec.model_validate({**_STAND_INS, **rest})
    return spec.model_copy(update={name: {} for name in ("microdata", "tables") if name in lost})


_STAND_INS: dict[str, Any] = {
    "margrave": "1",
    "release": {"name": "nameless", "title": "Nameless"},
    "microdata": {"nothing": {}},
    "privacy": {"protect": "nobody", "neighbours": "replace", "budget": {"epsilon": "1"}},
    "tables": {"nothing": {"count": "nothing"}},
}


def _copy(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _copy(value) for key, value in data.items()}
    return [_copy(value) for value in data] if isinstance(data, list) else data


def _plain_path(item: ErrorDetails) -> Path:
    return tuple(part for part in item["loc"] if part != "[key]")


_ITEM_DEPTH = {"geography": 2, "recodes": 2, "universes": 2, "landmarks": 2, "tables": 2, "derive": 3}


def _set_aside(rest: dict[str, Any], path: Path, unknown: set[str], lost: set[str]) -> None:
    """Removes the smallest named thing that holds the fault: a column, a table, a recode; else the section."""
    section = str(path[0]) if path else ""
    depth = _ITEM_DEPTH.get(section, 1)
    if section == "microdata":
        depth = 4 if len(path) >= 4 and path[2] == "columns" else 2
    item = path[: depth if len(path) >= depth else len(path)]
    holder: Any = rest
    for part in item[:-1]:
        holder = holder.get(part) if isinstance(holder, dict) else None
    if isinstance(holder, dict) and item and item[-1] in holder:
        removed = holder.pop(item[-1])
        unknown.add(str(item[-1]))
        if len(item) == 1 and isinstance(removed, dict):
            unknown.update(removed)
        if section == "microdata" and depth == 2 and isinstance(removed, dict):
            columns = removed.get("columns")
            unknown.update(columns if isinstance(columns, dict) else ())
        if len(item) == 1 or (not holder and len(item) == 2):
            lost.add(section)
            rest.pop(section, None)


def _without_misspelt(findings: list[Finding]) -> list[Finding]:
    """Without the keys that are missing only because they are misspelt beside."""
    meant = {
        (*found.path[:-1], known)
        for found in findings
        if found.code == "unknown-key"
        for known in keys_at(found.path[:-1])
        if f"did you mean '{known}'?" in found.message
    }
    lacking = [(*found.path, found.message.split("'")[1]) if found.code == "missing-key" else () for found in findings]
    return [found for found, key in zip(findings, lacking, strict=True) if key not in meant]


def _findings_of(item: ErrorDetails, lost: set[str]) -> list[Finding]:
    path, kind = _plain_path(item), item["type"]
    if kind == "missing":
        return [] if len(path) == 1 and str(path[0]) in lost else [_missing_key(path)]
    if kind == "extra_forbidden":
        return [explain_unknown_key(path)]
    if kind in _SHAPES:
        return [_wrong_shape(path, item["input"], _SHAPES[kind])]
    if kind == "too_short":
        return [error("empty-value", path, "nothing is declared here; declare at least one", at_key=True)]
    return [error(kind, path, item["msg"], at_key="[key]" in item["loc"])]


_SHAPES = {
    "model_type": "a mapping (key: value)",
    "model_attributes_type": "a mapping (key: value)",
    "dict_type": "a mapping (key: value)",
    "tuple_type": "a list",
    "list_type": "a list",
}


def _missing_key(path: Path) -> Finding:
    description = keys_at(path[:-1]).get(str(path[-1]), "")
    message = f"'{path[-1]}' is missing; add it" + (f": {description}" if description else "")
    return error("missing-key", path[:-1], message, at_key=True)


def _wrong_shape(path: Path, value: object, wanted: str) -> Finding:
    if value == UNDECIDED:
        return error("undecided", path, f"'{UNDECIDED}' marks a choice a person must make; write the value here")
    return error("wrong-shape", path, f"found {shape_of(value)}; expected {wanted}")
