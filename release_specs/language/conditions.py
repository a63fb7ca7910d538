"""Conditions: which rows are meant. `{age: 16.., sex: 1}`; several columns mean *and*, a list of them means *or*."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from release_specs.diagnostics import Path
from release_specs.language.values import mistake, read_text, shape_of, typed


@dataclass(frozen=True, slots=True)
class Criterion:
    """One column against the codes or ranges wanted of it, still as text: the column's type gives them meaning."""

    column: str
    wanted: tuple[str, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """Any of several clauses, each of which is all of its tests."""

    any_of: tuple[tuple[Criterion, ...], ...]

    def criteria(self, path: Path = ()) -> Iterator[tuple[Path, Criterion]]:
        """Every test with its path below `path`, as it was written."""
        for index, clause in enumerate(self.any_of):
            below = path if len(self.any_of) == 1 else (*path, index)
            for test in clause:
                yield (*below, test.column), test

    def columns(self) -> frozenset[str]:
        """The names it looks at."""
        return frozenset(test.column for clause in self.any_of for test in clause)


def read_condition(value: object) -> Condition:
    """A mapping, or a list of mappings."""
    if isinstance(value, Condition):
        return value
    clauses = value if isinstance(value, list) else [value]
    if not clauses:
        raise mistake("bad-condition", "an empty list meets no row; write {column: code} or {column: 16..}")
    return Condition(tuple(_read_clause(clause) for clause in clauses))


def _read_clause(value: object) -> tuple[Criterion, ...]:
    if not isinstance(value, dict) or not value:
        raise mistake("bad-condition", f"found {shape_of(value)}; expected {{column: code}} or {{column: 16..}}")
    return tuple(_read_test(column, wanted) for column, wanted in value.items())


def _read_test(column: str, value: object, *, negated: bool = False) -> Criterion:
    if isinstance(value, dict):
        if set(value) != {"not"} or negated:
            raise mistake("bad-condition", f"'{column}' has a mapping; the only one a condition knows is {{not: code}}")
        return _read_test(column, value["not"], negated=True)
    wanted = value if isinstance(value, list) else [value]
    if not wanted:
        raise mistake("bad-condition", f"'{column}' lists no code; write at least one")
    return Criterion(column, tuple(read_text(code) for code in wanted), negated)


def write_condition(condition: Condition) -> Any:
    """The condition as plain data, as an author would write it."""
    clauses = [{test.column: _write_test(test) for test in clause} for clause in condition.any_of]
    return clauses[0] if len(clauses) == 1 else clauses


def _write_test(test: Criterion) -> Any:
    wanted: Any = test.wanted[0] if len(test.wanted) == 1 else list(test.wanted)
    return {"not": wanted} if test.negated else wanted


_CLAUSE_SCHEMA = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {
        "anyOf": [
            {"type": ["string", "number", "boolean"]},
            {"type": "array", "minItems": 1, "items": {"type": ["string", "number", "boolean"]}},
            {"type": "object", "required": ["not"], "maxProperties": 1},
        ]
    },
}

ConditionText = Annotated[
    Condition,
    *typed(
        read_condition,
        write_condition,
        anyOf=[_CLAUSE_SCHEMA, {"type": "array", "minItems": 1, "items": _CLAUSE_SCHEMA}],
    ),
]
