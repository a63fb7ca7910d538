"""Keys the language does not have: what was probably meant, and the keys there are."""

from __future__ import annotations

import types
import typing
from typing import Any

from pydantic import BaseModel

from release_specs.diagnostics import Finding, Path, error, nearest
from release_specs.spec import ReleaseSpec

_WEIGHTS = ("weight", "weights", "weighted")

_OTHER_WORDS = {
    "median": "a median is written quantiles: {column: {at: 1/2, every: 100}}",
    "percentile": "write quantiles: {column: {at: 9/10, every: 100}}",
    "percentiles": "write quantiles: {column: {at: [1/10, 9/10], every: 100}}",
    "average": "write mean: column",
    "total": "write count: entity, or sum: column",
    "group_by": "write by: [columns]",
    "groupby": "write by: [columns]",
    "percent": "write proportion: {column: code}, of: entity",
    "percentage": "write proportion: {column: code}, of: entity",
    "where": "declare the part you want under 'universes' and count that",
    "filter": "declare the part you want under 'universes' and count that",
    "multiple": "several answers are written up_to: 3, columns: [a, b, c]",
    "sum_of": "sums over a group are not offered; sum the column of the rows themselves",
    "values": "write codes: {1: label} or integer: 0..99",
    "categories": "write codes: {1: label}",
    "range": "write integer: 0..99 or number: 0..99 with a step",
    "min": "write integer: 0..99, both ends in one range",
    "max": "write integer: 0..99, both ends in one range",
    "epsilon": "write budget: {epsilon: 1}",
    "rho": "write budget: {rho: 1, delta: 1e-10}",
    "delta": "write it inside budget: {epsilon: 1, delta: 1e-10}",
}
"""Words of other systems, and how they are said here."""


def keys_at(path: Path) -> dict[str, str]:
    """The keys the language knows at a path, with what each means."""
    model = _model_at(path)
    if model is None:
        return {}
    return {field.alias or name: (field.description or "").strip() for name, field in model.model_fields.items()}


def explain_unknown_key(path: Path) -> Finding:
    """The finding for a key that is not part of the language."""
    key = str(path[-1])
    if key.lower() in _WEIGHTS:
        message = (
            "survey weights are not offered: a weight multiplies one record's influence, and no bound on it is proved. "
            "Delete the line; the tables then count records, unweighted"
        )
        return error("weights-not-offered", path, message, at_key=True)
    known = keys_at(path[:-1])
    near = meant_key(path)
    advice = f"did you mean '{near}'?" if near else _OTHER_WORDS.get(key.lower(), f"known: {', '.join(known)}")
    return error("unknown-key", path, f"'{key}' is not a word of the language here; {advice}", at_key=True)


def meant_key(path: Path) -> str | None:
    """The key that was misspelt; None for a word of another system, and where nothing is near."""
    return None if str(path[-1]).lower() in _OTHER_WORDS else nearest(str(path[-1]), keys_at(path[:-1]))


def _model_at(path: Path) -> type[BaseModel] | None:
    """The model that describes what stands at a path."""
    kind: Any = ReleaseSpec
    for part in path:
        kind = _inner(kind, str(part))
        if kind is None:
            return None
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _inner(kind: Any, part: str) -> Any:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            if part in (name, field.alias):
                return _plain(field.annotation)
        extras = typing.get_type_hints(kind).get("__pydantic_extra__")
        return _plain(typing.get_args(extras)[1]) if extras and typing.get_args(extras) else None
    arguments = typing.get_args(kind)
    return _plain(arguments[-1] if arguments[-1] is not Ellipsis else arguments[0]) if arguments else None


def _plain(kind: Any) -> Any:
    """A type without Optional and Annotated around it."""
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        return _plain(typing.get_args(kind)[0])
    if origin in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(kind) if member is not type(None)]
        return _plain(members[0])
    return kind
