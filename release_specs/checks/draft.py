"""What a check looks at: the spec as far as it could be read, its domain, and the public files beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date

from pydantic_core import PydanticCustomError

from release_specs.diagnostics import Finding, Path, did_you_mean, error, listed
from release_specs.domain import Attribute, Domain
from release_specs.language.conditions import Condition, Criterion
from release_specs.language.microdata import Column, Entity
from release_specs.language.tables import Table
from release_specs.language.values import read_range
from release_specs.reading.public_files import PublicFiles
from release_specs.reading.resolve import entity_of, group_of
from release_specs.spec import ReleaseSpec


@dataclass(frozen=True, slots=True)
class Draft:
    """A spec that may have mistakes. Names in `domain.unknown` exist, and more is not known about them."""

    spec: ReleaseSpec
    domain: Domain
    files: PublicFiles
    sections: frozenset[str]
    line: Callable[[Path], int]
    nesting: bool = True

    def universes(self) -> list[str]:
        """Every entity and universe."""
        return [*self.spec.microdata, *self.spec.universes]

    def entity(self, universe: str | None) -> str | None:
        """The entity a universe is part of."""
        return entity_of(self.spec, universe)

    def column(self, entity: str, name: str) -> Column | None:
        """A declared column of an entity or of its group."""
        for owner in (entity, group_of(self.spec, entity)):
            if owner in self.spec.microdata and name in self.spec.microdata[owner].columns:
                return self.spec.microdata[owner].columns[name]
        return None

    def columns(self) -> Iterator[tuple[str, Entity, str, Column, Path]]:
        """Every declared column with its entity and its path."""
        for entity, facts in self.spec.microdata.items():
            for name, column in facts.columns.items():
                yield entity, facts, name, column, ("microdata", entity, "columns", name)

    def levels(self) -> list[str]:
        """Every level of every spine."""
        return [level for spine in self.spec.geography.values() for level in spine.levels]

    def spine_levels(self, entity: str | None) -> list[str]:
        """Every level of every spine that rows of an entity lie in."""
        return [level for tree in self.domain.hierarchy_of(entity or "") for level in tree.levels]

    def levels_of(self, table: Table) -> tuple[str, ...]:
        """The levels a table is published at, without the names that mean nothing; none where there are no areas."""
        known = self.spine_levels(self.entity(table.universe))
        if table.is_free:
            parts = [self.spec.tables[part] for part in parts_of(table) if part in self.spec.tables]
            found = [self.levels_of(part) for part in parts if not part.is_free]
            known = [level for level in found[0] if all(level in other for other in found)] if found else []
        return tuple(level for level in known if table.at == ("all",) or level in (table.at or ()))

    def is_placeless(self, table: Table) -> bool:
        """Whether the rows of a table lie in no area, so that it is published once, for the whole."""
        entity = self.entity(table.universe)
        return entity is not None and not self.domain.spines.get(entity)

    def ancestors(self, universe: str) -> list[str]:
        """The universes and the entity that a universe is part of, nearest first."""
        found: list[str] = []
        while universe in self.spec.universes and self.spec.universes[universe].of not in (*found, universe):
            universe = self.spec.universes[universe].of
            found.append(universe)
        return found

    def tables(self) -> Iterator[tuple[str, Table, str]]:
        """Tables that are measured, with the entity they count."""
        for name, table in self.spec.tables.items():
            entity = self.entity(table.universe)
            if entity is not None:
                yield name, table, entity

    def nesting_is_clear(self) -> bool:
        """Whether every group that rows are nested in is declared."""
        return self.nesting and all(
            set(entity.group or ()) <= set(self.spec.microdata) for entity in self.spec.microdata.values()
        )

    def levels_are_clear(self) -> bool:
        """Whether every geography could be read."""
        named = {column.area for _, _, _, column, _ in self.columns() if column.area is not None}
        return named | set(self.spec.geography) <= set(self.domain.hierarchies)


def parts_of(table: Table) -> tuple[str, ...]:
    """The tables that a ratio or comparison is computed from."""
    if table.ratio is not None:
        return table.ratio.numerator, table.ratio.denominator
    return (table.of,) if table.compare is not None and table.of is not None else ()


Check = Callable[[Draft], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Needing:
    """A check and the sections it reads."""

    sections: frozenset[str]
    check: Check


def needs(*sections: str) -> Callable[[Check], Needing]:
    """Marks a check with the sections it reads: it is not run where one of them could not be read."""
    return lambda check: Needing(frozenset(sections), check)


def unknown_name(  # noqa: PLR0913, PLR0917 - one sentence with six blanks
    draft: Draft, code: str, name: str, known: Iterable[str], path: Path, what: str
) -> Iterator[Finding]:
    """A finding for a name that means nothing, unless its own declaration is already reported."""
    names = list(known)
    if code == "unknown-level" and not draft.levels_are_clear():
        return
    if name not in names and name not in draft.domain.unknown:
        yield error(code, path, f"'{name}' is not {what}; {did_you_mean(name, names)}")


def attribute_or_findings(draft: Draft, entity: str, name: str, path: Path) -> Attribute | list[Finding]:
    """What a name means for rows of an entity, or why it means nothing (an empty list: already reported)."""
    attribute = draft.domain.attribute(entity, name)
    if attribute is not None:
        return attribute
    spec = draft.spec
    declared = (
        name in draft.domain.unknown
        or name in spec.derive.get(entity, {})
        or name in spec.derive.get(group_of(spec, entity) or "", {})
    )
    column = draft.column(entity, name)
    area = column is not None and column.area is not None
    if area or (name in draft.levels() and not declared and column is None):
        what = "an area column; write where a table is published" if area else "a level of the geography; write it"
        return [error("area-as-attribute", path, f"'{name}' is {what} in 'at'")]
    if declared or column is not None:
        return []
    if name in spec.recodes:
        return _recode_out_of_reach(draft, entity, name, path)
    owner = next((other for other, facts in spec.microdata.items() if name in facts.columns), None)
    if owner is not None:
        return (
            []
            if not draft.nesting_is_clear()
            else [error("column-of-another", path, _out_of_reach(draft, entity, name, owner))]
        )
    known = [*draft.domain.names(entity), *(made for made in spec.recodes if made in draft.domain.unknown)]
    return list(unknown_name(draft, "unknown-column", name, known, path, f"an attribute of {entity}"))


def _recode_out_of_reach(draft: Draft, entity: str, name: str, path: Path) -> list[Finding]:
    of = draft.spec.recodes[name].of
    if of in draft.domain.unknown or draft.column(entity, of) is not None:
        return []
    owner = next((other for other in draft.spec.microdata if draft.domain.attribute(other, name) is not None), None)
    return [error("column-of-another", path, _out_of_reach(draft, entity, name, owner))] if owner else []


def _out_of_reach(draft: Draft, entity: str, name: str, owner: str) -> str:
    if group_of(draft.spec, owner) == entity:
        return (
            f"'{name}' belongs to the rows ({owner}) and not to {entity}; make an attribute of {entity} out of it "
            f"with derive: {{{entity}: {{...}}}}"
        )
    return f"'{name}' belongs to {owner}; rows of {entity} do not have it"


def condition_findings(
    draft: Draft, entity: str, condition: Condition, path: Path, *, edition: bool = False
) -> Iterator[Finding]:
    """What is wrong with a condition on rows of an entity."""
    for where, test in condition.criteria(path):
        column = draft.column(entity, test.column)
        if column is not None and column.area is not None:
            yield from _area_test(draft, column.area, test, where)
            continue
        if draft.domain.attribute(entity, test.column) is None and test.column in draft.spine_levels(entity):
            yield error("area-as-attribute", where, _level_in_condition(draft, entity, test.column))
            continue
        found = attribute_or_findings(draft, entity, test.column, where)
        if isinstance(found, list):
            yield from found
        else:
            yield from wanted_findings(draft, found, test, where, edition=edition)


def _level_in_condition(draft: Draft, entity: str, level: str) -> str:
    tree = draft.domain.level_spine(level)
    owners = (entity, group_of(draft.spec, entity) or "")
    carriers = [
        name
        for owner in owners
        for name, column in (draft.spec.microdata[owner].columns.items() if owner in draft.spec.microdata else ())
        if tree is not None and column.area == tree.name
    ]
    advice = f"list the smallest areas instead: {carriers[0]}: [...]" if carriers else "name a column"
    return f"'{level}' is a level, and a condition takes columns; {advice}"


def _area_test(draft: Draft, spine: str, test: Criterion, path: Path) -> Iterator[Finding]:
    tree = draft.domain.hierarchies.get(spine)
    if tree is None:
        return
    known = {area.code for area in tree.areas[tree.smallest]}
    for code in [code for code in test.wanted if code not in known]:
        larger = next((level for level in tree.levels if any(area.code == code for area in tree.areas[level])), None)
        message = f"'{code}' is a {larger}; a condition takes the smallest areas: list each {tree.smallest} in it"
        if larger is None:
            message = f"'{code}' is not a {tree.smallest}; {did_you_mean(code, sorted(known))}"
        yield error("unknown-area", path, message)


def wanted_findings(
    draft: Draft, attribute: Attribute, test: Criterion, path: Path, *, edition: bool = False
) -> Iterator[Finding]:
    """What is wrong with the codes or ranges a test wants of an attribute."""
    for text in test.wanted:
        if edition and text == "edition":
            continue
        ends = [end.strip() for end in text.split("..")]
        if landmark := next((end for end in ends if end in draft.spec.landmarks), None):
            yield error("landmarks-not-offered", path, f"'{landmark}' is a landmark; landmarks are not offered yet")
        elif attribute.scale is None:
            if attribute.code_named(text) is None:
                yield error("unknown-code", path, _unknown_code(attribute, text))
        else:
            yield from _range_findings(attribute, text, path)


def _unknown_code(attribute: Attribute, text: str) -> str:
    codes = [category.code for category in attribute.coded]
    if ".." in text:
        return f"'{text}' is a range, and '{attribute.name}' has codes; list them: [{listed(codes, 4)}]"
    labelled = next((item.code for item in attribute.coded if item.label.casefold() == text.casefold()), None)
    if labelled is not None:
        return f"'{text}' is the label of code '{labelled}' of '{attribute.name}'; write the code"
    return f"'{text}' is not a code of '{attribute.name}'; {did_you_mean(text, codes)}"


def _range_findings(attribute: Attribute, text: str, path: Path) -> Iterator[Finding]:
    scale = attribute.scale
    if scale is None:
        return
    if signed := re.fullmatch(r"(>=|<=|[<>=≥≤])\s*(\d+)", text):
        end = int(signed[2]) + {">": 1, "<": -1}.get(signed[1], 0)
        advice = {">": f"{end}..", "≥": f"{end}..", "=": f"{end}"}.get(signed[1][0], f"..{end}")
        yield error("bad-range", path, f"'{text}' is not a range; write {advice}")
        return
    try:
        part = read_range(text)
    except PydanticCustomError as fault:
        yield error(fault.type, path, fault.message())
        return
    if not scale.fits(part):
        kind = "days" if isinstance(scale.low, date) else "numbers"
        yield error("bad-range", path, f"'{text}' does not fit '{attribute.name}', which holds {kind}")
        return
    first, last = scale.span(part)
    size = scale.size
    if (last is not None and last < 0) or (size is not None and first >= size):
        message = f"'{text}' lies outside {scale}, the valid range of '{attribute.name}': no row can meet it"
        yield error("condition-beyond", path, message)
