"""Spec to normalised text to spec is the identity."""

from __future__ import annotations

from pathlib import Path

import pytest

from release_specs.load import load_spec, load_text
from release_specs.write import write_spec

ROOT = Path(__file__).parents[2]
SPECS = [*sorted((ROOT / "release_specs" / "examples").glob("*.yaml")), Path(__file__).parent / "base" / "spec.yaml"]


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_a_spec_survives_its_normal_form(path: Path) -> None:
    spec = load_spec(path).spec
    text = write_spec(spec)
    again = load_text(text, file="normal.yaml", folder=path.parent).spec
    assert again == spec
    assert write_spec(again) == text


def test_two_ways_of_writing_have_one_normal_form() -> None:
    path = Path(__file__).parent / "base" / "spec.yaml"
    text = path.read_text(encoding="utf-8")
    other = (
        text.replace("rents:      1/10", "rents:      {share: 10%}")
        .replace("at: town_whole, from", "at: [town_whole], from")
        .replace("confidence: 90%", "confidence: 0.9")
        .replace("if_weekend: next Monday", 'if_weekend: "next Monday"')
    )
    assert other != text
    specs = [load_text(version, file="x.yaml", folder=path.parent).spec for version in (text, other)]
    assert write_spec(specs[0]) == write_spec(specs[1])


def test_numbers_stay_exact() -> None:
    path = ROOT / "release_specs" / "examples" / "redistricting_2020.yaml"
    text = write_spec(load_spec(path).spec)
    assert "293764/114921" in text
    assert "1567/4102" in text
