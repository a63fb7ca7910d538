"""Conditions compared with each other, against counting the rows one by one."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from release_specs.checks.draft import Draft
from release_specs.checks.rows import excludes, implies
from release_specs.language.conditions import Condition, Criterion
from release_specs.load import load_spec
from release_specs.reading.public_files import PublicFiles

BASE = Path(__file__).parent / "base"
LOADED = load_spec(BASE / "spec.yaml")
DRAFT = Draft(LOADED.spec, LOADED.domain, PublicFiles(BASE), frozenset(), lambda _: 1)
ROLES, AGES = ("0", "1", "2", "3", "9"), range(111)


def ranges() -> st.SearchStrategy[str]:
    ends = st.tuples(st.integers(0, 110), st.integers(0, 110)).map(sorted)
    return ends.map(lambda pair: f"{pair[0]}..{pair[1]}")


roles = st.builds(
    Criterion, st.just("role"), st.lists(st.sampled_from(ROLES), min_size=1, unique=True).map(tuple), st.booleans()
)
spans = st.builds(Criterion, st.just("age"), st.lists(ranges(), min_size=1, max_size=2).map(tuple), st.booleans())
clauses = st.lists(roles | spans, min_size=1, max_size=2, unique_by=lambda test: test.column).map(tuple)
conditions = st.lists(clauses, min_size=1, max_size=2).map(lambda found: Condition(tuple(found)))


def meets(test: Criterion, role: str, age: int) -> bool:
    if test.column == "role":
        held = role in test.wanted
    else:
        held = any(int(text.split("..")[0]) <= age <= int(text.split("..")[1]) for text in test.wanted)
    return held is not test.negated


def rows(condition: Condition) -> set[tuple[str, int]]:
    return {
        (role, age)
        for role in ROLES
        for age in AGES
        if any(all(meets(test, role, age) for test in clause) for clause in condition.any_of)
    }


@given(conditions, conditions)
def test_what_is_said_to_be_inside_is_inside(held: Condition, wanted: Condition) -> None:
    if implies(DRAFT, "people", [held], wanted):
        assert rows(held) <= rows(wanted)


@given(conditions, conditions)
def test_what_is_said_to_be_apart_is_apart(held: Condition, other: Condition) -> None:
    if excludes(DRAFT, "people", [held], other):
        assert not rows(held) & rows(other)


def test_the_plain_cases_are_noticed() -> None:
    adults, older = Condition(((Criterion("age", ("16..110",)),),)), Condition(((Criterion("age", ("65..110",)),),))
    family, residents = (
        Condition(((Criterion("role", ("9",), negated=True),),)),
        Condition(((Criterion("role", ("9",)),),)),
    )
    assert implies(DRAFT, "people", [older], adults)
    assert not implies(DRAFT, "people", [adults], older)
    assert excludes(DRAFT, "people", [family], residents)
    assert not excludes(DRAFT, "people", [adults], residents)
