"""The base of every spec model, and the small readers that several of them share."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from release_specs.language.values import TEXT_SCHEMA, mistake, read_text, shape_of, typed


class SpecModel(BaseModel):
    """Frozen, and deaf to nothing: an unknown key is a mistake, not a comment."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, use_attribute_docstrings=True)


class NamedModel(SpecModel):
    """A model whose further keys are names the author chose: tables, levels, entities."""

    model_config = ConfigDict(extra="allow")

    @model_serializer(mode="wrap")
    def in_written_order(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The author's own keys first, then the language's, as people write them."""
        data: dict[str, Any] = handler(self)
        return {**{key: data[key] for key in self.named if key in data}, **data}

    @property
    def named(self) -> dict[str, Any]:
        """The author's own keys and what stands under them, in the order written."""
        return dict(self.__pydantic_extra__ or {})


def read_words(value: object) -> tuple[str, ...]:
    """One word or a list of words."""
    if isinstance(value, tuple):
        return value
    if isinstance(value, list):
        if not value:
            raise mistake("wrong-shape", "the list is empty; name at least one, or delete the line")
        return tuple(read_text(word) for word in value)
    if isinstance(value, dict):
        raise mistake("wrong-shape", f"found {shape_of(value)}; expected one word or a [list, of, words]")
    return (read_text(value),)


def write_words(words: tuple[str, ...]) -> Any:
    """One word as itself, several as a list."""
    return words[0] if len(words) == 1 else list(words)


Words = Annotated[
    tuple[str, ...],
    *typed(read_words, write_words, anyOf=[TEXT_SCHEMA, {"type": "array", "minItems": 1, "items": TEXT_SCHEMA}]),
]


def read_list(value: object) -> tuple[str, ...]:
    """A list of words; one word alone is taken as a list of one. May be empty."""
    return () if value == [] else read_words(value)


WordList = Annotated[
    tuple[str, ...],
    *typed(read_list, list, anyOf=[TEXT_SCHEMA, {"type": "array", "items": TEXT_SCHEMA}]),
]


def read_csv_name(value: object) -> str:
    """The name of a CSV file beside the spec."""
    text = read_text(value).strip()
    if not text.endswith(".csv"):
        raise mistake("bad-file-name", f"'{text}' is not the name of a CSV file; write something.csv, beside the spec")
    if text.startswith(("/", "~")) or ".." in re.split(r"[\\/]", text) or re.match(r"[A-Za-z]:|\w+://", text):
        raise mistake("bad-file-name", f"'{text}' leads out of the spec's folder; put the file beside the spec")
    return text


CsvName = Annotated[str, *typed(read_csv_name, str, type="string", pattern=r"\.csv$")]
