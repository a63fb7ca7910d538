"""Keys the language does not have: what was probably meant, and the keys there are."""

from __future__ import annotations

import types
import typing
from typing import Any

from pydantic import BaseModel

from release_specs.diagnostics import Finding, Path, did_you_mean, error
from release_specs.spec import ReleaseSpec

_WEIGHTS = ("weight", "weights", "weighted")


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
    return error(
        "unknown-key", path, f"'{key}' is not a word of the language here; {did_you_mean(key, known)}", at_key=True
    )


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
