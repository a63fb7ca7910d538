"""The JSON Schema of the language, for editors: generated from the models, so it cannot drift."""

from __future__ import annotations

from typing import Any

from release_specs.spec import ReleaseSpec

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def language_schema() -> dict[str, Any]:
    """The schema of a spec. It accepts `1` and `"1"` alike, because the language reads text."""
    schema = ReleaseSpec.model_json_schema(by_alias=True, mode="validation")
    schema = {"$schema": DIALECT, "title": "Margrave release spec", **{k: v for k, v in schema.items() if k != "title"}}
    return {key: _plain(value) for key, value in schema.items()}


def _plain(node: Any) -> Any:
    """Without machine-made titles, without null (a key is written or left out), and with shorthands allowed."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: _plain(value) for key, value in node.items() if key != "default" or value not in (None, [], {})}
    if isinstance(node.get("title"), str):
        node.pop("title")
    options = node.get("anyOf")
    if isinstance(options, list) and {"type": "null"} in options:
        rest = [option for option in options if option != {"type": "null"}]
        node.pop("anyOf")
        node = {**rest[0], **node} if len(rest) == 1 and "$ref" not in rest[0] else {**node, "anyOf": rest}
    return node
