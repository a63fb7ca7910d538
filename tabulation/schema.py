"""The schema of the confidential files, generated from the spec in pandera's words.

Its structure (columns and how they are stored) is checked against every file before a record is read, on a frame
without rows. Its record rules are the documented form of what the counting expressions do: a test compares the two on
small frames of text. They are not run on the files themselves, and never stop a run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from fractions import Fraction
from functools import partial

import pandas as pd
import pandera.pandas as pa
from pandera.errors import SchemaErrors

from release_specs.domain import Domain, Scale
from release_specs.language.microdata import Column, Entity
from release_specs.meanings import Base, Meanings
from release_specs.spec import ReleaseSpec
from tabulation.errors import MicrodataError
from tabulation.numbers import Ruler, is_days
from tabulation.sources import Kind, Source, file_columns, key_columns

NUMBERS = (Kind.WHOLE, Kind.EXACT, Kind.REAL)
STORED_AS = {
    "codes": (Kind.TEXT, *NUMBERS, Kind.TRUTH),
    "integer": (Kind.TEXT, *NUMBERS),
    "number": (Kind.TEXT, *NUMBERS),
    "date": (Kind.TEXT, Kind.DAY),
    "area": (Kind.TEXT, *NUMBERS),
    "key": (Kind.TEXT, *NUMBERS, Kind.DAY, Kind.TRUTH),
}
DTYPES: Mapping[Kind, str] = {
    Kind.TEXT: "object",
    Kind.WHOLE: "int64",
    Kind.EXACT: "uint64",
    Kind.REAL: "float64",
    Kind.DAY: "datetime64[s]",
    Kind.TRUTH: "bool",
    Kind.OTHER: "complex128",
}
"""A dtype for each way of storing, so that pandera can tell them apart on a frame without rows."""


def structure_schema(spec: ReleaseSpec, entity: str) -> pa.DataFrameSchema:
    """The columns that the file of an entity must have and how they may be stored; further columns are ignored."""
    return pa.DataFrameSchema(
        {
            column: pa.Column(checks=[_stored_as(kinds)], required=True)
            for column, kinds in _wanted(spec, entity).items()
        },
        strict=False,
        name=entity,
    )


def _wanted(spec: ReleaseSpec, entity: str) -> dict[str, tuple[Kind, ...]]:
    """Every column of the file that is read, with the ways in which it may be stored."""
    found: dict[str, tuple[Kind, ...]] = {}
    for owner, declared in spec.microdata.items():
        if entity in (owner, declared.built_from):
            for name, column in declared.columns.items():
                for part in file_columns(declared, name):
                    found[part] = STORED_AS[column.type]
    for name in key_columns(spec.microdata[entity]):
        found.setdefault(name, STORED_AS["key"])
    return found


def _stored_as(kinds: tuple[Kind, ...]) -> pa.Check:
    allowed = {str(pd.Series(dtype=DTYPES[kind]).dtype) for kind in kinds}
    return pa.Check(lambda column: str(column.dtype) in allowed, name="stored_as")


def check_structure(spec: ReleaseSpec, domain: Domain, sources: Mapping[str, Source]) -> None:
    """Compares what footers, headers and catalogues say with the spec. Raises `MicrodataError`."""
    meanings = Meanings(spec, domain)
    for entity, source in sources.items():
        _columns_fit(spec, entity, source)
        for owner, declared in spec.microdata.items():
            if entity in (owner, declared.built_from):
                for name in declared.columns:
                    _values_fit(meanings.base((owner, name)), declared, source, entity)


def _columns_fit(spec: ReleaseSpec, entity: str, source: Source) -> None:
    frame = pd.DataFrame({name: pd.Series(dtype=DTYPES[kind]) for name, kind in source.kinds.items()})
    faults: list[tuple[str, str]] = []
    try:
        structure_schema(spec, entity).validate(frame, lazy=True)
    except SchemaErrors as found:
        faults = [
            (error.reason_code.name, str(error.failure_cases if _is_absence(error) else error.schema.name))
            for error in found.schema_errors
        ]
    for code, column in faults:
        if "COLUMN_NOT_IN_DATAFRAME" in code:
            message = (
                f"the file of '{entity}' has no column '{column}'{_wanted_by(spec, column)}; add it, or mend the spec"
            )
            raise MicrodataError("column-missing", entity, message, column=column)
        stored = source.kinds[column]
        *others, last = (kind.value for kind in _wanted(spec, entity)[column])
        expected = f"{', '.join(others)} or {last}"
        message = f"column '{column}' of '{entity}' is stored as {stored.value}; the spec needs {expected}"
        raise MicrodataError("column-type", entity, message, column=column)


def _is_absence(error: pa.errors.SchemaError) -> bool:
    return "COLUMN_NOT_IN_DATAFRAME" in error.reason_code.name


def _wanted_by(spec: ReleaseSpec, column: str) -> str:
    """Which table or key first needs a column, for the reader of the error."""
    tables = [name for name, table in spec.tables.items() if column in (*table.attributes, table.sum, table.mean)]
    return f" (needed by tables.{tables[0]})" if tables else ""


def _values_fit(base: Base, declared: Entity, source: Source, entity: str) -> None:
    """Numbers cannot hold area codes with leading zeros; a range needs digits that are carried exactly."""
    name = base.node[1]
    column = declared.columns[name]
    if column.area is not None and source.kinds[name] in NUMBERS:
        lost = [code for code in base.codes if not code.isdecimal() or str(int(code)) != code]
        if lost:
            message = (
                f"column '{name}' of '{entity}' is stored as {source.kinds[name].value}, and areas such as "
                f"'{lost[0]}' are no plain numbers (leading zeros are lost); store it as text"
            )
            raise MicrodataError("area-as-number", entity, message, column=name)
    if base.scale is not None and not is_days(base.scale) and Ruler.of(base, base.scale).too_fine:
        message = f"the range of '{name}' of '{entity}' has too many steps to be counted exactly; widen its step"
        raise MicrodataError("range-too-fine", entity, message, column=name)


def record_schema(spec: ReleaseSpec, domain: Domain, entity: str) -> pa.DataFrameSchema:
    """The record rules of an entity for frames of text: each value is stated, and lies in its domain.

    Columns with several answers, and who a column applies to, are not part of it: they are no rules on one value.
    """
    meanings, declared = Meanings(spec, domain), spec.microdata[entity]
    columns = {
        name: pa.Column(
            object,
            nullable=True,
            checks=[
                pa.Check(partial(_every, _is_stated, meanings.base((entity, name)), declared), name="stated"),
                pa.Check(partial(_every, _is_in_domain, meanings.base((entity, name)), declared), name="in_domain"),
            ],
        )
        for name, column in declared.columns.items()
        if column.up_to is None
    }
    return pa.DataFrameSchema(columns, strict=False, name=entity)


Rule = Callable[[str | None, Base, Column, Entity], bool]


def _every(rule: Rule, base: Base, declared: Entity, values: pd.Series) -> pd.Series:
    column = declared.columns[base.node[1]]
    return pd.Series([rule(_text(value, column), base, column, declared) for value in values], values.index, dtype=bool)


def _text(value: object, column: Column) -> str | None:
    if not isinstance(value, str):
        return None
    text = value if column.area is not None else value.strip()
    return (column.read_as or {}).get(text, text)


def _is_stated(text: str | None, base: Base, column: Column, declared: Entity) -> bool:
    """Whether a value is there and can be read; the not-applicable code counts as such."""
    if text is not None and _is_not_applicable(text, base, column, declared):
        return True
    if text is None or text == "" or text in declared.read.missing:
        return False
    return base.scale is None or _point(text, base.scale, declared) is not None


def _is_in_domain(text: str | None, base: Base, column: Column, declared: Entity) -> bool:
    """Whether a stated value is one of the codes or lies in the valid range."""
    if text is None or not _is_stated(text, base, column, declared):
        return True
    if _is_not_applicable(text, base, column, declared):
        return True
    if base.scale is None:
        return text in base.place_of
    point, valid = _point(text, base.scale, declared), column.valid
    low, high = (valid.low, valid.high) if valid is not None else (None, None)
    return point is not None and low is not None and high is not None and low <= point <= high  # type: ignore[operator]


def _is_not_applicable(text: str, base: Base, column: Column, declared: Entity) -> bool:
    words = column.not_applicable or ()
    if text in words or base.scale is None or is_days(base.scale):
        return text in words
    point = _point(text, base.scale, declared)
    return any(point == Fraction(word) for word in words if _is_number(word))


def _is_number(text: str) -> bool:
    return pd.notna(pd.to_numeric(text, errors="coerce"))


def _point(text: str, scale: Scale, declared: Entity) -> Fraction | date | None:
    try:
        if is_days(scale):
            return date.fromisoformat(text) if len(text) == 10 and text[4] == text[7] == "-" else None
        if declared.read.decimal == ",":
            text = "no" if "." in text else text.replace(",", ".")
        return Fraction(text) if text.isascii() and "/" not in text and "_" not in text else None
    except ValueError:
        return None
