"""The reference of the language and of its error codes, as Markdown: made from the models, so it cannot drift.

Docstrings, field descriptions, types and defaults come from the models; `reference.toml` has the words they do not
hold, `reference.yaml` one spec that shows every section. `python -m release_specs.reference` writes the pages.
"""

from __future__ import annotations

import re
import textwrap
import tomllib
import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, PlainValidator, WithJsonSchema
from pydantic.fields import FieldInfo

from release_specs.explain import explanations
from release_specs.language.model import NamedModel
from release_specs.language.values import RESERVED, write_number
from release_specs.spec import ReleaseSpec

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
MADE = "<!-- Made by `python -m release_specs.reference`. Do not edit by hand. -->\n"


@cache
def words() -> dict[str, Any]:
    """The words of the reference that the models do not hold."""
    return tomllib.loads((HERE / "reference.toml").read_text(encoding="utf-8"))


@cache
def shown_sections() -> dict[str, str]:
    """The text of each section of the spec that shows them all."""
    text = (HERE / "reference.yaml").read_text(encoding="utf-8")
    pieces = re.split(r"^(?=\w+:)", text, flags=re.MULTILINE)[1:]
    return {piece.partition(":")[0]: piece.rstrip() for piece in pieces}


@dataclass(frozen=True, slots=True)
class Part:
    """One model of the language at its path in a spec, so many models deep."""

    path: str
    model: type[BaseModel]
    depth: int

    @property
    def link(self) -> str:
        """A link to the heading of this part, showing its keys."""
        keys = [field.alias or name for name, field in self.model.model_fields.items()]
        if issubclass(self.model, NamedModel):
            keys.insert(0, words()["named"][self.model.__name__]["key"])
        inside = ", ".join(keys[:4]) + (", ..." if len(keys) > 4 else "")
        return f"[`{{{inside}}}`](#{anchor(self.path)})"


def anchor(heading: str) -> str:
    """How a heading is addressed within its page."""
    return re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")


def spec_reference() -> str:
    """The whole page: notations first, then every section with its keys."""
    said = words()
    sections = [_section(name, field) for name, field in ReleaseSpec.model_fields.items()]
    pieces = [
        MADE,
        "# Spec reference\n",
        said["intro"],
        "## The language on one page\n",
        _overview(),
        said["five_rules"],
        "## Notations\n",
        said["capitals"],
        *(_notation(name, facts) for name, facts in said["notations"].items()),
        *sections,
    ]
    return "\n".join(piece.strip("\n") + "\n" for piece in pieces)


def _overview() -> str:
    rows = []
    for name, field in ReleaseSpec.model_fields.items():
        needed = "required" if field.is_required() else ""
        rows.append((f"[`{name}`](#{anchor(name)})", _described(field), needed))
    return _table(("Section", "What it answers", ""), rows)


def _notation(name: str, facts: dict[str, Any]) -> str:
    forms = " &nbsp; ".join(f"`{form}`" for form in facts["forms"])
    reserved = ", ".join(f"`{word}`" for word in RESERVED)
    means = " ".join(facts["means"].replace("{reserved}", reserved).split())
    return f"### {name}\n\n{forms}\n\n{textwrap.fill(means, 120, break_long_words=False)}\n"


def _section(name: str, field: FieldInfo) -> str:
    """One section: its question, an example, and a table for each model in it."""
    pieces = [f"## {name}\n", _described(field)]
    if name in words()["remarks"]:
        pieces.append(words()["remarks"][name])
    if name in shown_sections():
        pieces.append(f"```yaml\n{shown_sections()[name]}\n```")
    outermost = _model_below(field.annotation, name)
    for part in _parts(field, name, 2 if outermost is None or outermost.path == name else 3):
        if part.path != name:
            pieces.append(f"{'#' * part.depth} {part.path}")
        pieces += [_docstring(part.model), _model_table(part)]
    if name in words()["more"]:
        pieces.append(words()["more"][name])
    return "\n\n".join(piece.strip("\n") for piece in pieces) + "\n"


def _parts(field: FieldInfo, path: str, depth: int) -> Iterator[Part]:
    """Every model at or below a field, outermost first."""
    found = _model_below(field.annotation, path, depth)
    if found is None:
        return
    yield found
    for name, inner in found.model.model_fields.items():
        yield from _parts(inner, f"{found.path}.{inner.alias or name}", depth + 1)
    if (own := _own_keys(found.model)) is not None:
        key = words()["named"][found.model.__name__]["key"]
        yield from _parts(FieldInfo(annotation=own), f"{found.path}.{key}", depth + 1)


def _model_below(kind: Any, path: str, depth: int = 0) -> Part | None:
    """The model that a type holds, and its path: keys that the author chooses are written in capitals."""
    kind = _without_none(kind)
    origin = typing.get_origin(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return Part(path, kind, depth)
    if origin is dict:
        return _model_below(typing.get_args(kind)[1], f"{path}.{_key_word(path)}", depth)
    if origin is tuple:
        return _model_below(typing.get_args(kind)[0], path, depth)
    return None


def _key_word(path: str) -> str:
    last = path.rpartition(".")[2]
    return str(words()["keys"].get(last, "NAME"))


def _without_none(kind: Any) -> Any:
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(kind) if member is not types.NoneType]
        return members[0] if len(members) == 1 else kind
    return kind


def _own_keys(model: type[BaseModel]) -> Any:
    """The type of what stands under keys that the author chooses, where a model takes any."""
    if not issubclass(model, NamedModel):
        return None
    hints = typing.get_type_hints(model, include_extras=True)
    return typing.get_args(hints["__pydantic_extra__"])[1]


def _model_table(part: Part) -> str:
    """The keys of a model, one row each."""
    rows = []
    if (own := _own_keys(part.model)) is not None:
        named = words()["named"][part.model.__name__]
        rows.append((f"`{named['key']}`", _value(own, (), f"{part.path}.{named['key']}"), "", named["means"]))
    for name, field in part.model.model_fields.items():
        key = field.alias or name
        value = words()["values"].get(f"{part.model.__name__}.{name}")
        value = value or _value(field.annotation, tuple(field.metadata), f"{part.path}.{key}")
        rows.append((f"`{key}`", value, _left_out(field), _described(field)))
    return _table(("Key", "Value", "If left out", "Meaning"), rows)


def _value(kind: Any, metadata: tuple[Any, ...], path: str) -> str:
    """What may stand as a value, in the language's own words."""
    reader = next((part.func.__name__ for part in metadata if isinstance(part, PlainValidator)), None)
    if reader is not None:
        schema = next(part.json_schema for part in metadata if isinstance(part, WithJsonSchema))
        return _read_by(reader, schema or {})
    kind = _without_none(kind)
    if typing.get_origin(kind) is typing.Annotated:
        return _value(typing.get_args(kind)[0], typing.get_args(kind)[1:], path)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return Part(path, kind, 0).link
    if typing.get_origin(kind) is dict:
        key = _key_word(path)
        return f"{{`{key}`: {_value(typing.get_args(kind)[1], (), f'{path}.{key}')}}}"
    raise TypeError(f"{path}: the reference has no words for {kind}")


def _read_by(reader: str, schema: dict[str, Any]) -> str:
    """What a value is called that this function reads; a closed list of words is written out."""
    choices = schema.get("enum") or schema.get("items", {}).get("enum", ())
    listed = ", ".join(f"`{word}`" for word in choices)
    if reader == "read":
        return " or ".join(listed.rsplit(", ", maxsplit=1))
    return str(words()["readers"][reader]).replace("{choices}", listed)


def _left_out(field: FieldInfo) -> str:
    """What holds where a key is not written."""
    if field.is_required():
        return "**required**"
    default = field.get_default(call_default_factory=True)
    if default is None or default in ((), {}) or isinstance(default, BaseModel):
        return ""
    if isinstance(default, bool):
        return "`yes`" if default else "`no`"
    if isinstance(default, Fraction):
        return f"`{write_number(default * 100)}%`" if 0 < default < 1 else f"`{write_number(default)}`"
    if isinstance(default, tuple):
        return ", ".join(f"`{word}`" if word else '`""`' for word in default)
    return f"`{default}`"


def _described(field: FieldInfo) -> str:
    text = " ".join((field.description or "").split())
    return re.sub(r"^(TYPE|STATISTIC)\b", lambda found: f"*{found[1].capitalize()}*", text)


def _docstring(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split())


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; a bar inside a cell is escaped, as GitHub wants it even in code."""
    lines = [header, ["---"] * len(header), *rows]
    cells = [[re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in line] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in cells) + "\n"


def error_codes() -> str:
    """Every code with its explanation, as `margrave explain` prints it."""
    known = explanations()
    rows = [(f"[`{code}`](#{anchor(code)})", item.title) for code, item in known.items()]
    pieces = [
        MADE,
        "# Error codes",
        words()["error_codes"],
        _table(("Code", "What it says"), rows),
    ]
    for code, item in known.items():
        wrong, right = (f"```yaml\n{text.strip()}\n```" for text in (item.wrong, item.right))
        pieces.append(
            f"## {code}\n\n**{item.title}.**\n\n{item.why.strip()}\n\nInstead of\n\n{wrong}\n\nwrite\n\n{right}"
        )
    return "\n\n".join(piece.strip("\n") for piece in pieces) + "\n"


def pages() -> dict[str, str]:
    """The generated pages, by file name."""
    return {"spec_reference.md": spec_reference(), "error_codes.md": error_codes()}


def main(folder: Path = DOCS) -> None:
    """Writes the generated pages."""
    folder.mkdir(exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
