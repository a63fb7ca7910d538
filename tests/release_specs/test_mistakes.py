"""The golden mistakes: what a statistician is told, word for word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.release_specs.golden import BASE, Mistake, diagnostics_of, read_mistakes

MISTAKES = read_mistakes()


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_told_word_for_word(mistake: Mistake, tmp_path: Path) -> None:
    assert diagnostics_of(mistake, tmp_path) == mistake.says


def test_the_base_spec_has_nothing_wrong_with_it(tmp_path: Path) -> None:
    assert diagnostics_of(Mistake("none", (), (), None, ()), tmp_path) == ()
    assert (BASE / "spec.yaml").exists()


def test_every_golden_mistake_is_found() -> None:
    assert [mistake.name for mistake in MISTAKES if not mistake.says] == []


def test_there_are_many_mistakes_and_many_codes() -> None:
    codes = {code for mistake in MISTAKES for line in mistake.says for code in re.findall(r"\[([a-z-]+)\]: ", line)[:1]}
    assert len(MISTAKES) >= 60
    assert len(codes) >= 100


def test_a_mistake_does_not_set_off_an_avalanche() -> None:
    """One slip may be told in a few places, not in a dozen."""
    assert {mistake.name: len(mistake.says) for mistake in MISTAKES if len(mistake.says) > 4} == {
        "a group built from rows that are not nested in it": 8
    }
