"""The words built on the microdata: areas, recodes, derived attributes and universes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Self

from pydantic import model_validator

from release_specs.language.conditions import ConditionText
from release_specs.language.model import SpecModel, read_csv_name, read_words, write_words
from release_specs.language.values import (
    TEXT_SCHEMA,
    Positive,
    Proportion,
    ShareText,
    Text,
    mistake,
    read_name,
    read_positive,
    read_text,
    shape_of,
    typed,
    write_number,
)


@dataclass(frozen=True, slots=True)
class AreaList:
    """The areas of a spine: a CSV file, or (code, label, the area it lies in) written out."""

    inline: tuple[tuple[str, str, str | None], ...] = ()
    file: str | None = None


def read_areas(value: object) -> AreaList:
    """`file.csv` or `{CODE: {label, in: CODE}}`."""
    if isinstance(value, AreaList):
        return value
    if isinstance(value, str):
        return AreaList(file=read_csv_name(value))
    if not isinstance(value, dict) or not value:
        raise mistake(
            "wrong-shape", f"found {shape_of(value)}; expected file.csv or {{code: {{label: ..., in: code}}}}"
        )
    return AreaList(tuple(_read_area(code, facts) for code, facts in value.items()))


def _read_area(code: str, facts: object) -> tuple[str, str, str | None]:
    if isinstance(facts, str):
        return code, read_text(facts), None
    if facts is None:
        return code, code, None
    if not isinstance(facts, dict) or set(facts) - {"label", "in"}:
        raise mistake("wrong-shape", f"area '{code}' has {shape_of(facts)}; expected {{label: ..., in: code}}")
    return code, read_text(facts.get("label", code)), read_text(facts["in"]) if "in" in facts else None


def write_areas(areas: AreaList) -> Any:
    """The areas as plain data."""
    if areas.file:
        return areas.file
    return {
        code: {"label": label, **({"in": parent} if parent is not None else {})} for code, label, parent in areas.inline
    }


AreasText = Annotated[
    AreaList,
    *typed(
        read_areas,
        write_areas,
        anyOf=[{"type": "string", "pattern": r"\.csv$"}, {"type": "object", "minProperties": 1}],
    ),
]


class WholeArea(SpecModel):
    """The one area of the first level, where the areas file has no column for it."""

    code: Text
    """Its code."""
    label: Text | None = None
    """Its label."""


def _read_levels(value: object) -> tuple[str, ...]:
    return tuple(read_name(level) for level in read_words(value))


class Spine(SpecModel):
    """A geography: its levels from the whole to the smallest, and every area there is."""

    levels: Annotated[tuple[str, ...], *typed(_read_levels, list, type="array", items={"type": "string"}, minItems=1)]
    """The levels, from the whole to the smallest."""
    areas: AreasText
    """One row for each smallest area, a column for each level; or the areas written out."""
    whole: WholeArea | None = None
    """The one area of the first level, where the file has no column for it."""


@dataclass(frozen=True, slots=True)
class EqualBins:
    """Bins of one width; everything from `to` upwards is one more bin."""

    every: Fraction
    to: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Categories:
    """Named categories with the codes or ranges they hold; nothing written means: the rest."""

    named: tuple[tuple[str, tuple[str, ...]], ...]


Into = EqualBins | Categories


def read_into(value: object) -> Into:
    """`{CATEGORY: RANGE | [CODES] | rest}` or `{every: 10, to: 80}`."""
    if isinstance(value, EqualBins | Categories):
        return value
    if not isinstance(value, dict) or not value:
        raise mistake("wrong-shape", f"found {shape_of(value)}; expected {{category: range or [codes]}}")
    if "every" in value and set(value) <= {"every", "to"}:
        to = read_positive(value["to"]) if "to" in value else None
        return EqualBins(read_positive(value["every"]), to)
    named = []
    for category, wanted in value.items():
        if isinstance(wanted, dict):
            raise mistake("wrong-shape", f"category '{category}' has a mapping; expected a range, [codes] or rest")
        words = read_words(wanted)
        named.append((category, () if words == ("rest",) else words))
    return Categories(tuple(named))


def write_into(into: Into) -> Any:
    """The bins or categories as plain data."""
    if isinstance(into, EqualBins):
        bins = {"every": write_number(into.every)}
        return bins if into.to is None else {**bins, "to": write_number(into.to)}
    return {category: write_words(wanted) if wanted else "rest" for category, wanted in into.named}


IntoText = Annotated[
    Into,
    *typed(
        read_into,
        write_into,
        type="object",
        minProperties=1,
        additionalProperties={"anyOf": [TEXT_SCHEMA, {"type": "array", "minItems": 1, "items": TEXT_SCHEMA}]},
    ),
]


class Recode(SpecModel):
    """A column in coarser categories."""

    of: Text
    """The column (or recode, or derived attribute) it is made of."""
    into: IntoText
    """`{CATEGORY: RANGE | [CODES] | rest}`, or bins of one width: `{every: 10, to: 80}`."""
    label: Text | None = None
    """What is printed instead of the name."""


class Derived(SpecModel):
    """An attribute of a group computed from its rows, before any cap."""

    number_of: Text | None = None
    """How many rows of this entity the group has."""
    any: Text | None = None
    """Whether the group has any row of this entity: yes or no."""
    value_of: Text | None = None
    """The value of this column in the one row that meets `where`; none or several are not stated."""
    where: ConditionText | None = None
    """Which rows are looked at."""
    into: IntoText | None = None
    """Categories of the result."""
    label: Text | None = None
    """What is printed instead of the name."""

    @model_validator(mode="after")
    def computes_one_thing(self) -> Self:
        """Exactly one of number_of, any and value_of."""
        found = [word for word in ("number_of", "any", "value_of") if getattr(self, word) is not None]
        if len(found) != 1:
            what = f"found {' and '.join(found)}" if found else "nothing to compute"
            raise mistake("derived-kind", f"{what}; expected exactly one of number_of, any, value_of")
        return self


class Universe(SpecModel):
    """Part of an entity, or of another universe: the rows that meet a condition."""

    of: Text
    """The entity or universe it is part of."""
    where: ConditionText
    """Which rows belong to it."""
    label: Text | None = None
    """What is printed instead of the name."""


class Landmark(SpecModel):
    """A cut-off bought before the tables that use it; part of the language, not yet offered."""

    quantile: Proportion
    """Which quantile: 1/2 is the median."""
    of: Text
    """The column."""
    among: Text
    """The entity or universe."""
    times: Positive | None = None
    """A multiple of the quantile."""
    share: ShareText
    """Its share of the budget."""
