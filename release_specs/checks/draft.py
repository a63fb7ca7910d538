"""What a check looks at: the spec as far as it could be read, its domain, and the public files beside it."""

from __future__ import annotations

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

    def tables(self) -> Iterator[tuple[str, Table, str]]:
        """Tables that are measured, with the entity they count."""
        for name, table in self.spec.tables.items():
            entity = self.entity(table.universe)
            if entity is not None:
                yield name, table, entity

    def nesting_is_clear(self) -> bool:
        """Whether every group that rows are nested in is declared."""
        return all(set(entity.group or ()) <= set(self.spec.microdata) for entity in self.spec.microdata.values())

    def levels_are_clear(self) -> bool:
        """Whether every geography could be read."""
        return set(self.spec.geography) <= set(self.domain.hierarchies)


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
    if column is not None and column.area is not None:
        return [
            error("area-as-attribute", path, f"'{name}' is an area column; write where a table is published in 'at'")
        ]
    if declared or column is not None:
        return []
    if name in spec.recodes:
        return _recode_out_of_reach(draft, entity, name, path)
    owner = next((other for other, facts in spec.microdata.items() if name in facts.columns), None)
    if owner is not None:
        return [error("column-of-another", path, _out_of_reach(draft, entity, name, owner))]
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
        found = attribute_or_findings(draft, entity, test.column, where)
        if isinstance(found, list):
            yield from found
        else:
            yield from wanted_findings(draft, found, test, where, edition=edition)


def _area_test(draft: Draft, spine: str, test: Criterion, path: Path) -> Iterator[Finding]:
    tree = draft.domain.hierarchies.get(spine)
    known = {area.code for area in tree.areas[tree.smallest]} if tree else set()
    for code in test.wanted:
        if tree is not None and code not in known:
            yield error("unknown-area", path, f"'{code}' is not a {tree.smallest}; {did_you_mean(code, sorted(known))}")


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
