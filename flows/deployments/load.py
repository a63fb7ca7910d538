"""A deployments file to `Deployment`s, or everything that is wrong with it at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from flows.datasets import with_files
from flows.deployments.language import Hook, Notify, Written
from flows.scheduling.calendar import Occurrence, occurrences, read_holidays, upcoming
from flows.terminal import UserError
from release_specs.diagnostics import Diagnostic, Path, Severity, SpecError, did_you_mean, dotted, nearest
from release_specs.language.publication import Schedule
from release_specs.language.values import shape_of
from release_specs.load import load_spec
from release_specs.reading.source import read_source
from release_specs.reading.tree import Tree, parse_tree, walk
from release_specs.spec import ReleaseSpec

VERSION = "1"
FORM = "margrave: 1 and deployments: {NAME: {spec: ..., data: ..., output: ...}}"
_SHAPES = {"model_type": "a mapping (key: value)", "model_attributes_type": "a mapping (key: value)"}

Told = tuple[Path, str, bool]
"""A mistake: its path, the sentence, and whether the key is meant instead of the value."""


class DeploymentsError(UserError):
    """A deployments file that cannot be used. Carries every mistake with its place."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(sorted(diagnostics, key=lambda item: (item.line, item.column)))
        super().__init__("\n".join(_line(item) for item in self.diagnostics))


def _line(item: Diagnostic) -> str:
    where = f"{item.path}: " if item.path else ""
    return f"{item.file}:{item.line}:{item.column}: {where}{item.message}"


@dataclass(frozen=True, slots=True)
class Deployment:
    """One spec that runs on its schedule. `data` names a private reference for each entity that has a file."""

    name: str
    file: FilePath
    spec_path: FilePath
    spec: ReleaseSpec
    schedule: Schedule
    holidays: frozenset[date]
    data: Mapping[str, str]
    ledger: str | None
    engine: str
    author: str | None
    output: FilePath
    max_lateness: timedelta
    notify: Notify

    @property
    def parameters(self) -> dict[str, str]:
        """What an orchestrator may store: where this file is, and which deployment of it is meant."""
        return {"deployments": str(self.file), "deployment": self.name}

    def occurrences(self, start: date, end: date) -> list[Occurrence]:
        """The occurrences with nominal days in `start <= day < end`."""
        return occurrences(self.schedule, holidays=self.holidays, start=start, end=end)

    def upcoming(self, now: datetime) -> list[Occurrence]:
        """The occurrences of the next two years that are not yet published."""
        return upcoming(self.schedule, holidays=self.holidays, now=now)

    def hooks(self, event: str) -> tuple[Hook, ...]:
        """Who is told of `failure`, `approval` or `publication`."""
        found: tuple[Hook, ...] = getattr(self.notify, event)
        return found


def load_deployments(path: FilePath) -> tuple[Deployment, ...]:
    """The deployments in a file, in the order written. Raises `DeploymentsError` with every mistake at once."""
    try:
        tree = parse_tree(read_source(path, shown_as=str(path)), str(path))
    except SpecError as fault:
        raise DeploymentsError(map(_about_deployments, fault.diagnostics)) from None
    told: list[Told] = list(_top_mistakes(tree.data))
    written = tree.data.get("deployments") if isinstance(tree.data, dict) else None
    found = []
    for name, data in (written if isinstance(written, dict) else {}).items():
        one = _read(name, data, path, told)
        if one is not None:
            found.append(one)
    told += _repeated(found)
    if told:
        raise DeploymentsError(_located(tree, told))
    return tuple(found)


def _about_deployments(item: Diagnostic) -> Diagnostic:
    """What the reader of YAML says of specs, said of a deployments file."""
    if item.code != "not-a-spec":
        return item
    message = f"{item.message.partition(';')[0]}; expected {FORM}"
    return Diagnostic(item.file, item.line, item.column, item.severity, item.code, item.path, message)


def _located(tree: Tree, told: Iterable[Told]) -> Iterator[Diagnostic]:
    for path, message, at_key in dict.fromkeys(told):
        line, column = tree.place(path, at_key=at_key)
        yield Diagnostic(tree.file, line, column, Severity.ERROR, "deployments", dotted(path), message)


def _top_mistakes(data: Any) -> Iterator[Told]:
    known = ("margrave", "deployments")
    for key in data:
        if key not in known:
            yield (key,), f"'{key}' is not a word of a deployments file; {did_you_mean(key, known)}", True
    version = data.get("margrave")
    if version is None:
        yield ("margrave",), f"'margrave' is missing; begin the file with margrave: {VERSION}", True
    elif version != VERSION:
        yield ("margrave",), f"found {shape_of(version)}; this Margrave reads version {VERSION}", False
    if not isinstance(data.get("deployments"), dict) or not data["deployments"]:
        found = shape_of(data.get("deployments")) if data.get("deployments") else "no deployment"
        yield (
            ("deployments",),
            f"found {found}; expected deployments: {{NAME: {{spec: ..., data: ..., output: ...}}}}",
            True,
        )


def _read(name: str, data: Any, file: FilePath, told: list[Told]) -> Deployment | None:
    """One deployment, or None with its mistakes added to `told`."""
    path: Path = ("deployments", name)
    before = len(told)
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name):
        told.append((path, f"'{name}' cannot name a deployment; use small letters, digits, - and _", True))
    if not isinstance(data, dict):
        told.append((path, f"found {shape_of(data)}; expected spec, data and output", True))
        return None
    told += [
        ((*path, *inner), "nothing is written after the ':'; write a value or delete the line", True)
        for inner, value in walk(data)
        if value is None
    ]
    try:
        written = Written.model_validate(data)
    except ValidationError as fault:
        told += _faults(fault, path)
        return None
    if len(told) > before:
        return None
    return _resolve(name, written, file, told)


def _faults(fault: ValidationError, path: Path) -> Iterator[Told]:
    meant: set[Path] = set()
    for item in sorted(fault.errors(include_url=False), key=lambda item: item["type"] == "missing"):
        inner, kind = tuple(item["loc"]), item["type"]
        place: Path = (*path, *inner)
        model = Notify if inner[0] == "notify" else Written
        if kind == "extra_forbidden":
            advice = did_you_mean(str(inner[-1]), model.model_fields)
            meant.add((*inner[:-1], nearest(str(inner[-1]), model.model_fields) or ""))
            yield place, f"'{inner[-1]}' is not a word of a deployment; {advice}", True
        elif kind == "missing" and inner not in meant:
            meaning = model.model_fields[str(inner[-1])].description or ""
            yield place[:-1], f"'{inner[-1]}' is missing; add it: {meaning}", True
        elif kind in _SHAPES and item["input"] is not None:
            yield place, f"found {shape_of(item['input'])}; expected {_SHAPES[kind]}", False
        elif kind not in ("missing", "empty-value", *_SHAPES):
            yield place, item["msg"], False


def _resolve(name: str, written: Written, file: FilePath, told: list[Told]) -> Deployment | None:
    """Looks at the spec: a deployment whose spec cannot be run on schedule is a mistake of the file."""
    path, folder = ("deployments", name), file.resolve().parent
    spec_path = folder / written.spec
    try:
        spec = load_spec(spec_path).spec
    except SpecError as fault:
        told.append(((*path, "spec"), _about_spec(fault, written.spec), False))
        return None
    mistakes = [*_schedule_mistakes(spec, path), *_data_mistakes(spec, written.data, path)]
    told += mistakes
    if mistakes or spec.schedule is None:
        return None
    entities = with_files(spec)
    ledger = written.ledger
    return Deployment(
        name=name,
        file=file.resolve(),
        spec_path=spec_path,
        spec=spec,
        schedule=spec.schedule,
        holidays=read_holidays(spec.schedule, spec_path.parent),
        data=written.data if isinstance(written.data, dict) else dict.fromkeys(entities, written.data),
        ledger=ledger if ledger is None or ":" in ledger else str(folder / ledger),
        engine=written.engine,
        author=written.author,
        output=folder / written.output,
        max_lateness=written.max_lateness,
        notify=written.notify,
    )


def _about_spec(fault: SpecError, written: str) -> str:
    errors = [item for item in fault.diagnostics if item.severity is Severity.ERROR]
    if errors[0].code in ("file-missing", "file-unreadable"):
        return f"'{written}': {errors[0].message}"
    return f"'{written}' has {len(errors)} mistake(s); mend what 'margrave check' says about it"


def _schedule_mistakes(spec: ReleaseSpec, path: Path) -> Iterator[Told]:
    if spec.schedule is None:
        message = "the spec has no schedule; add one to it, or take the deployment out and use 'margrave run'"
        yield (*path, "spec"), message, False
    elif spec.schedule.edition is None and spec.privacy.account is not None:
        message = "the spec's schedule does not say which edition a firing publishes; add schedule.edition: this year"
        yield (*path, "spec"), message, False


def _data_mistakes(spec: ReleaseSpec, data: str | dict[str, str], path: Path) -> Iterator[Told]:
    if isinstance(data, str):
        return
    wanted = with_files(spec)
    strange = [entity for entity in data if entity not in wanted]
    for entity in strange:
        yield (*path, "data", entity), f"'{entity}' is no entity with a file; {did_you_mean(entity, wanted)}", True
    named = {*data, *(nearest(entity, wanted) for entity in strange)}
    if lacking := [entity for entity in wanted if entity not in named]:
        yield (*path, "data"), f"no reference for {', '.join(lacking)}; add {lacking[0]}: NAME", True


def _repeated(found: list[Deployment]) -> Iterator[Told]:
    """Two deployments of one release would claim each other's editions."""
    first: dict[str, str] = {}
    for one in found:
        other = first.setdefault(one.spec.release.name, one.name)
        if other != one.name:
            message = f"'{other}' publishes the release '{one.spec.release.name}' already; keep one of the two"
            yield ("deployments", one.name, "spec"), message, False
