"""What can be read of a spec that has mistakes: faulty parts are set aside, and the rest is taken as it stands.

A misspelt key is read as what was meant, so that nothing else complains about it. A part that cannot be read is left
out and its name remembered: it exists, but nothing more is known about it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from release_specs.diagnostics import Finding, Path, error
from release_specs.language.values import UNDECIDED, shape_of
from release_specs.reading.tree import walk
from release_specs.reading.unknown_keys import explain_unknown_key, keys_at, meant_key
from release_specs.spec import ReleaseSpec

MOST_ROUNDS = 60


@dataclass(slots=True)
class Salvage:
    """What could be read. `sections` are those that are there, `unknown` the names of things that could not be read.

    `nesting` says whether every entity's key and group could be read.
    """

    rest: dict[str, Any]
    findings: list[Finding] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    repaired: set[Path] = field(default_factory=set)
    nesting: bool = True

    @property
    def sections(self) -> frozenset[str]:
        """The sections that could be read, or may be left out and are."""
        absent = {name for name, facts in ReleaseSpec.model_fields.items() if facts.is_required()} - set(self.rest)
        return frozenset(ReleaseSpec.model_fields) - self.lost - absent

    def spec(self) -> ReleaseSpec:
        """A spec of what holds, with stand-ins for lost sections: no check looks at those."""
        spec = ReleaseSpec.model_validate({**_STAND_INS, **self.rest})
        return spec.model_copy(update={name: {} for name in ("microdata", "tables") if name not in self.sections})


_STAND_INS: dict[str, Any] = {
    "margrave": "1",
    "release": {"name": "nameless", "title": "Nameless"},
    "microdata": {"nothing": {}},
    "privacy": {"protect": "nobody", "neighbours": "replace", "budget": {"epsilon": "1"}},
    "tables": {"nothing": {"count": "nothing"}},
}


def salvage(data: Any) -> Salvage:
    """Validates, mends or sets aside what is faulty, and validates what is left, until it holds."""
    found = Salvage(_copy(data))
    for path, value in walk(data):
        if value is None and path and path[2:3] != ("areas",):
            found.findings.append(_nothing_written(path, data))
            _set_aside(found, path)
    for _ in range(MOST_ROUNDS):
        details = _faults(found.rest)
        for item in details:
            if item["type"] == "extra_forbidden":
                _mend_key(found, _plain_path(item))
        for item in details:
            _tell(found, item)
        if all(item["type"] == "missing" and len(item["loc"]) == 1 for item in details):
            return found
    raise RuntimeError("setting faulty parts aside came to no end")


def _nothing_written(path: Path, data: Any) -> Finding:
    """A key without a value, or what a comma made of a number or of a list without brackets."""
    holder, key = _holder(data, path) or {}, str(path[-1])
    before = dict(zip(list(holder)[1:], holder.items(), strict=False)).get(path[-1])
    advice = "nothing is written after the ':'; write a value or delete the line"
    if before is not None and isinstance(before[1], str):
        name, value = before
        if key.isdecimal() and value[-1:].isdecimal():
            number = f"{value}{key}" if len(key) == 3 else f"{value}.{key}"
            advice = f"'{value},{key}' has a comma in it; write {name}: {number}"
        elif ":" not in key and name in _LISTS:
            advice = f"several words need brackets; write {name}: [{value}, {key}]"
    return error("empty-value", path, advice, at_key=True)


_LISTS = ("by", "at", "levels", "columns", "formats", "notes", "key", "not_applicable", "areas", "codes", "missing")


def _faults(rest: dict[str, Any]) -> list[ErrorDetails]:
    try:
        ReleaseSpec.model_validate(rest)
    except ValidationError as fault:
        return fault.errors(include_url=False, include_input=True)
    return []


def _mend_key(found: Salvage, path: Path) -> None:
    """Reads a misspelt key as the one that was meant, where that one is not there too."""
    holder = _holder(found.rest, path)
    meant = meant_key(path)
    if holder is not None and meant is not None and meant not in holder:
        holder[meant] = holder.pop(path[-1])
        found.repaired.add((*path[:-1], meant))


def _tell(found: Salvage, item: ErrorDetails) -> None:
    path = _plain_path(item)
    if item["type"] == "missing":
        if path not in found.repaired and not (len(path) == 1 and str(path[0]) in found.lost):
            _add(found, _missing_key(path))
        if path not in found.repaired:
            _set_aside(found, path)
        return
    _add(found, _finding(item, path))
    if item["type"] != "extra_forbidden" or path[-1] in (_holder(found.rest, path) or ()):
        _set_aside(found, path)


def _add(found: Salvage, finding: Finding) -> None:
    if finding not in found.findings:
        found.findings.append(finding)


def _copy(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _copy(value) for key, value in data.items()}
    return [_copy(value) for value in data] if isinstance(data, list) else data


def _plain_path(item: ErrorDetails) -> Path:
    return tuple(part for part in item["loc"] if part != "[key]")


def _holder(rest: Any, path: Path) -> dict[Any, Any] | None:
    """The mapping that holds the last key of a path."""
    holder = rest
    for part in path[:-1]:
        if isinstance(holder, list) and isinstance(part, int) and part < len(holder):
            holder = holder[part]
        else:
            holder = holder.get(part) if isinstance(holder, dict) else None
    return holder if isinstance(holder, dict) else None


_ITEM_DEPTH = {"geography": 2, "recodes": 2, "universes": 2, "landmarks": 2, "tables": 2, "derive": 3}


def _set_aside(found: Salvage, path: Path) -> None:
    """Removes the smallest named thing that holds the fault: a column, a table, a recode; else the section."""
    section = str(path[0]) if path else ""
    item = _entity_part(found, path) if section == "microdata" else path[: _ITEM_DEPTH.get(section, 1)]
    holder = _holder(found.rest, item)
    if not item or holder is None or item[-1] not in holder:
        return
    removed = holder.pop(item[-1])
    found.unknown.add(str(item[-1]))
    if item[2:] == ("defaults",):
        holder["defaults"] = {"outside": "leave_out", "missing": "leave_out"}
    if len(item) == 1 and isinstance(removed, dict):
        found.unknown.update(removed)
    if len(item) == 1 or (len(item) == 2 and not holder):
        found.lost.add(section)
        found.rest.pop(section, None)


def _entity_part(found: Salvage, path: Path) -> Path:
    """A column, or one key of an entity; without its key or group it is unclear what is nested in what."""
    if len(path) > 3 and path[2] == "columns":
        return path[:4]
    if len(path) < 3 or path[2] in ("in", "from", "key"):
        found.nesting = False
    return path[:3]


def _finding(item: ErrorDetails, path: Path) -> Finding:
    kind = item["type"]
    if kind == "extra_forbidden":
        return explain_unknown_key(path)
    if kind == "wrong-shape" and path[-2:] == ("precision", "moe"):
        return error(kind, path, f"a promise is for a level; write {_FORMS['precision']}", at_key=True)
    if kind in _SHAPES:
        return _wrong_shape(path, item["input"], _SHAPES[kind])
    if kind == "too_short":
        return error("empty-value", path, "nothing is declared here; declare at least one", at_key=True)
    return error(kind, path, item["msg"], at_key="[key]" in item["loc"])


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
    form = _FORMS.get(str(path[-1]))
    expected = f"write {form}" if form is not None else f"expected {wanted}"
    return error("wrong-shape", path, f"found {shape_of(value)}; {expected}")


_FORMS = {
    "precision": "precision: {LEVEL: {moe: 50}}",
    "quantiles": "quantiles: {COLUMN: {at: 1/2, every: 100}}",
    "in": "in: {GROUP: column}",
    "budget": "budget: {epsilon: 1} or budget: {rho: 1, delta: 1e-10}",
    "at_most": "at_most: {ENTITY: 6}",
    "languages": "languages: {fr: labels_fr.csv}",
    "editions": "editions: {2026: 1/2, 2027: 1/2}",
    "account": "account: {name: NAME, editions: {2026: 1/2, 2027: 1/2}}",
    "columns": "columns: {COLUMN: {codes: {1: label}}}",
    "defaults": "defaults: {outside: leave_out, missing: leave_out}",
    "read": "read: {delimiter: ;}",
    "approvals": "approvals: {to_spend: 2, to_publish: 1}",
    "importance": "importance: {TABLE: 2}",
    "reliability": "reliability: {caution: cv > 20%}",
    "compare": "compare: {COLUMN: [CODE, CODE]}",
    "read_as": "read_as: {SPELLING: CODE}",
    "by_table": "by_table: {TABLE: 1/2, rest: optimal}",
    "by_level": "by_level: {LEVEL: 1/2, rest: optimal}",
    "release": "release: {name: my-release, title: My release}",
    "schedule": "schedule: {day: 15th of September, time: 06:00, timezone: Europe/Paris}",
}
"""How a part of the language is written, where its shape is often mistaken."""
