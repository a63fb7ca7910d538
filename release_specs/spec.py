"""`ReleaseSpec`: the whole language on one page. Each section answers one question; its words are in its own file.

A spec says everything a release promises and nothing about how it is computed. It is frozen, its numbers are exact,
and it is made by `load.load_spec`, which also checks what no single section can know.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from release_specs.language.conditions import ConditionText
from release_specs.language.microdata import Entity
from release_specs.language.model import SpecModel
from release_specs.language.phrases import RuleText
from release_specs.language.privacy import Privacy
from release_specs.language.publication import ExactTotal, Expect, Publish, Release, Schedule
from release_specs.language.tables import Spend, Table
from release_specs.language.values import Name, mistake, read_text, typed
from release_specs.language.vocabulary import Derived, Landmark, Recode, Spine, Universe

VERSIONS = ("1",)


def _read_version(value: object) -> str:
    text = read_text(value)
    if text not in VERSIONS:
        raise mistake(
            "unknown-version", f"version '{text}' of the language is not known; this Margrave reads version 1"
        )
    return text


class ReleaseSpec(SpecModel):
    """Everything a release promises, and nothing about how it is computed."""

    margrave: Annotated[str, *typed(_read_version, str, enum=[1, "1"])]
    """The version of the language: 1."""
    release: Release
    """What is the publication called?"""
    microdata: dict[Name, Entity] = Field(min_length=1)
    """What is in the confidential files?"""
    geography: dict[Name, Spine] = Field(default_factory=dict)
    """Which areas are there?"""
    recodes: dict[Name, Recode] = Field(default_factory=dict)
    """Which columns are tabulated in coarser categories?"""
    derive: dict[Name, dict[Name, Derived]] = Field(default_factory=dict)
    """What do groups inherit from their rows?"""
    universes: dict[Name, Universe] = Field(default_factory=dict)
    """Which parts of an entity have tables of their own?"""
    landmarks: dict[Name, Landmark] = Field(default_factory=dict)
    """Which cut-offs are bought first? Not yet offered."""
    privacy: Privacy
    """Who is protected, and how strongly?"""
    expect: Expect | None = None
    """What is public already? Used for planning only."""
    tables: dict[Name, Table] = Field(min_length=1)
    """What is published?"""
    spend: Spend = Spend()
    """How is the budget divided?"""
    exact: tuple[ExactTotal, ...] = ()
    """What is published without noise, and why?"""
    impossible: tuple[ConditionText, ...] = ()
    """Which combinations cannot occur?"""
    rules: tuple[RuleText, ...] = ()
    """What must hold between published tables?"""
    publish: Publish = Publish()
    """How do the tables look?"""
    schedule: Schedule | None = None
    """When are releases published?"""
