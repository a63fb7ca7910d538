"""The JSON Schema says the same as the loader, as far as a schema can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from flows.cli import main
from release_specs.json_schema import language_schema
from release_specs.reading.tree import parse_tree

EXAMPLES = sorted((Path(__file__).parents[2] / "release_specs" / "examples").glob("*.yaml"))


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = language_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_fit_the_schema_as_text_and_as_an_editor_reads_them(
    path: Path, validator: jsonschema.Draft202012Validator
) -> None:
    text = path.read_text(encoding="utf-8")
    as_text: Any = parse_tree(text, path.name).data
    as_typed = json.loads(json.dumps(YAML(typ="safe", pure=True).load(text), default=str))
    for data in (as_text, as_typed):
        assert [error.message for error in validator.iter_errors(data)] == []


def test_the_schema_notices_what_the_loader_would_refuse(validator: jsonschema.Draft202012Validator) -> None:
    data: Any = parse_tree(EXAMPLES[0].read_text(encoding="utf-8"), "x").data
    for change in (
        lambda spec: spec.pop("privacy"),
        lambda spec: spec["privacy"].update(neighbours="sideways"),
        lambda spec: spec.update(surprise="1"),
        lambda spec: spec["tables"].update(x={"count": ["persons"]}),
    ):
        spec = json.loads(json.dumps(data))
        change(spec)
        assert not validator.is_valid(spec)


def test_one_and_quoted_one_are_alike(validator: jsonschema.Draft202012Validator) -> None:
    data: Any = parse_tree(EXAMPLES[0].read_text(encoding="utf-8"), "x").data
    for version in (1, "1"):
        assert validator.is_valid({**data, "margrave": version})


def test_every_key_has_a_description() -> None:
    schema = language_schema()
    lacking = [
        f"{name}.{key}"
        for name, model in {**schema["$defs"], "spec": schema}.items()
        for key, facts in model.get("properties", {}).items()
        if not facts.get("description")
    ]
    assert lacking == []


def test_the_command_prints_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == language_schema()
