"""Reads generated microdata as a stranger would: pandas, texts and loops, and nothing of the code that wrote them."""

from collections.abc import Iterable
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd

from release_specs.domain import Attribute
from release_specs.language.conditions import Condition, Criterion
from release_specs.language.microdata import Column
from release_specs.language.values import Range, read_range
from release_specs.load import Loaded
from release_specs.reading.resolve import group_of

Rows = list[dict[str, Any]]


def text_of(value: Any) -> str | None:
    """A cell as text; None where it is empty."""
    if pd.isna(value):
        return None
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    return value.isoformat()[:10] if isinstance(value, date) else str(value)


def frame_of(path: Path, *, delimiter: str = ",") -> pd.DataFrame:
    """A file with every cell as text or None."""
    if path.suffix == ".csv":
        found = pd.read_csv(path, sep=delimiter, dtype=str, keep_default_na=False)
        return found.astype(object).where(found != "", None)
    found = pd.read_parquet(path)
    return pd.DataFrame({name: [text_of(value) for value in found[name].tolist()] for name in found}, dtype=object)


def applicable(column: Column, cell: str | None) -> str | None:
    """A cell as a value; None for no value and not applicable."""
    return None if cell in (column.not_applicable or ()) else cell


def answers_of(column: Column, name: str, row: dict[str, Any]) -> list[str]:
    """All values of a column in a row: several for multi-response."""
    cells = [row[part] for part in column.columns or (name,)]
    if column.separator and applicable(column, cells[0]) is not None:
        cells = cells[0].split(column.separator)
    return [cell for cell in (applicable(column, cell) for cell in cells) if cell is not None]


def lies_in(part: str | Range, value: str) -> bool:
    """Whether a value is a code, or lies in a range."""
    if isinstance(part, str):
        return part == value
    point: Any = date.fromisoformat(value) if value.count("-") == 2 else Fraction(value)
    return (part.low is None or part.low <= point) and (part.high is None or point <= part.high)


def wanted_parts(attribute: Attribute | None, test: Criterion, edition: str | None) -> list[str | Range]:
    """The codes and ranges of the base column that a test wants."""
    words = [edition or "" if word == "edition" else word for word in test.wanted]
    if attribute is None:
        return list(words)
    if not attribute.coded:
        return [read_range(word) for word in words]
    return [part for category in attribute.coded if category.code in words for part in category.holds]


class Microdata:
    """The generated files of a spec, row by row, with what rows have from their group."""

    def __init__(self, loaded: Loaded, folder: Path) -> None:
        self.loaded, self.spec, self.domain = loaded, loaded.spec, loaded.domain
        self.frames: dict[str, pd.DataFrame] = {}
        for name, entity in self.spec.microdata.items():
            if entity.built_from is None:
                self.frames[name] = frame_of(folder / f"{name}.parquet")
        for name, entity in self.spec.microdata.items():
            if entity.built_from is not None:
                self.frames[name] = self._built(name, entity.built_from)
        self.rows: dict[str, Rows] = {name: frame.to_dict("records") for name, frame in self.frames.items()}

    def _built(self, name: str, source: str) -> pd.DataFrame:
        link = self.spec.microdata[source].group[name]
        columns = list(self.spec.microdata[name].columns)
        built = self.frames[source][[link, *columns]].drop_duplicates()
        assert built[link].is_unique, f"rows of one of {name} disagree"
        return built

    def link(self, entity: str) -> str:
        """The column that says in which group a row lies."""
        return next(iter(self.spec.microdata[entity].group.values()))

    def groups(self, entity: str) -> dict[str, list[dict[str, Any]]]:
        """The rows of an entity by group."""
        found: dict[str, list[dict[str, Any]]] = {}
        for row in self.rows[entity]:
            found.setdefault(row[self.link(entity)], []).append(row)
        return found

    def singles(self, entity: str) -> list[bool]:
        """Which rows of an entity are singles."""
        condition = self.spec.privacy.singles
        if condition is None or group_of(self.spec, entity) != self.spec.privacy.protect:
            return [False] * len(self.rows[entity])
        return self.meets(entity, condition)

    def meets(self, entity: str, condition: Condition) -> list[bool]:
        """For each row whether it meets a condition."""
        columns = {test: self.meets_test(entity, test) for clause in condition.any_of for test in clause}
        clauses = [[columns[test] for test in clause] for clause in condition.any_of]
        return [
            any(all(column[index] for column in clause) for clause in clauses)
            for index in range(len(self.rows[entity]))
        ]

    def meets_test(self, entity: str, test: Criterion) -> list[bool]:
        """For each row whether it meets one test; a row without a value does not, nor the test's `not`."""
        attribute = self.domain.attribute(entity, test.column)
        parts = wanted_parts(attribute, test, self.spec.release.edition)
        owner, base = (entity, test.column) if attribute is None else (attribute.owner, attribute.base)
        values = self.values(owner, base)
        found = [
            bool(answers) and (any(lies_in(part, value) for part in parts for value in answers) is not test.negated)
            for answers in values
        ]
        return found if owner == entity else self.inherited(entity, owner, found)

    def inherited(self, entity: str, owner: str, found: Iterable[Any]) -> list[Any]:
        """What rows of an entity have from their groups."""
        key = self.link(entity)
        by_group = dict(zip((row[key] for row in self.rows[owner]), found, strict=True))
        return [by_group[row[key]] for row in self.rows[entity]]

    def values(self, owner: str, base: str) -> list[list[str]]:
        """The answers in a column, or the value of a derived attribute; an empty list for none."""
        column = self.spec.microdata[owner].columns.get(base)
        if column is not None:
            return [answers_of(column, base, row) for row in self.rows[owner]]
        made = self.spec.derive[owner][base]
        members = [name for name, entity in self.spec.microdata.items() if entity.group and owner in entity.group]
        member = made.number_of or made.any or members[0]
        met = self.meets(member, made.where) if made.where else [True] * len(self.rows[member])
        chosen: dict[str, list[int]] = {}
        for index, single in enumerate(self.singles(member)):
            if met[index] and not single:
                chosen.setdefault(self.rows[member][index][self.link(member)], []).append(index)
        keys = [row[self.link(member)] for row in self.rows[owner]]
        if made.number_of is not None:
            return [[str(len(chosen.get(key, ())))] for key in keys]
        if made.any is not None:
            return [["yes" if key in chosen else "no"] for key in keys]
        source = self.values(member, made.value_of)
        return [source[chosen[key][0]] if len(chosen.get(key, ())) == 1 else [] for key in keys]
