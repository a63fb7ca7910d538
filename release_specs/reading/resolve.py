"""From a spec and its public files to a `Domain`: what every name means, for every entity."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from fractions import Fraction

from release_specs.diagnostics import Path, did_you_mean, error
from release_specs.domain import Attribute, Category, Domain, Query, Scale
from release_specs.language.microdata import CodeList, Column, Entity
from release_specs.language.tables import Table
from release_specs.language.vocabulary import Derived
from release_specs.reading.categories import recode
from release_specs.reading.geography import build_hierarchy
from release_specs.reading.public_files import PublicFiles
from release_specs.spec import ReleaseSpec

DEEPEST_RECODE = 40


def build_domain(spec: ReleaseSpec, files: PublicFiles, unknown: set[str]) -> Domain:
    """What the names of a spec mean. Mistakes in code lists, areas and recodes become `files.findings`."""
    return _Resolver(spec, files, unknown).resolve()


def group_of(spec: ReleaseSpec, entity: str) -> str | None:
    """The group the rows of an entity are nested in."""
    declared = spec.microdata.get(entity)
    return next(iter(declared.group)) if declared is not None and declared.group else None


def members_of(spec: ReleaseSpec, group: str) -> list[str]:
    """The entities whose rows are nested in a group."""
    return [name for name, entity in spec.microdata.items() if entity.group and group in entity.group]


def entity_of(spec: ReleaseSpec, universe: str | None) -> str | None:
    """The entity a universe is part of; an entity is its own. None for unknown and cyclic ones."""
    seen = set()
    while universe is not None and universe not in spec.microdata:
        if universe in seen or universe not in spec.universes:
            return None
        seen.add(universe)
        universe = spec.universes[universe].of
    return universe


def leaves_out(entity: Entity, column: Column) -> bool:
    """Whether some values of a column are left out: then a hidden code, "not stated", is measured too."""
    rules = (column.outside or entity.defaults.outside, column.missing or entity.defaults.missing, column.mixed)
    return any(rule is not None and rule.kind == "leave_out" for rule in rules)


def queries_of(spec: ReleaseSpec, domain: Domain) -> Iterator[Query]:
    """Every margin at every level that is published from measurements; tables with unknown names are passed over."""
    for name, table in spec.tables.items():
        entity = entity_of(spec, table.universe)
        if entity is None or table.universe is None:
            continue
        attributes = [domain.attribute(entity, word) for word in table.attributes]
        known = tuple(attribute for attribute in attributes if attribute is not None)
        if len(known) == len(attributes):
            for level, areas in levels_of(table, domain, entity):
                yield Query(name, table.universe, known, level, areas)


def levels_of(table: Table, domain: Domain, entity: str) -> Iterator[tuple[str | None, int]]:
    """The levels a table is published at, with their numbers of areas; one nameless level without geography."""
    if table.at is None:
        yield None, 1
        return
    for tree in domain.hierarchy_of(entity):
        for level in tree.levels:
            if level in table.at or table.at == ("all",):
                yield level, len(tree.areas[level])


class _Resolver:
    """Resolves names one by one, each once; a name that is being resolved already means nothing."""

    def __init__(self, spec: ReleaseSpec, files: PublicFiles, unknown: set[str]) -> None:
        self.spec, self.files = spec, files
        self.domain = Domain(unknown=set(unknown))
        self.known: dict[tuple[str, str], Attribute | None] = {}
        self.depth = 0

    def resolve(self) -> Domain:
        for name, spine in self.spec.geography.items():
            if (tree := build_hierarchy(name, spine, self.files)) is not None:
                self.domain.hierarchies[name] = tree
            else:
                self.domain.unknown.update((name, *spine.levels))
        for entity in self.spec.microdata:
            for name in self._candidates(entity):
                if (attribute := self._attribute(entity, name)) is not None:
                    self.domain.attributes[entity, name] = attribute
            self.domain.spines[entity] = dict(self._spines(entity))
        return self.domain

    def _candidates(self, entity: str) -> list[str]:
        owners = [owner for owner in (entity, group_of(self.spec, entity)) if owner in self.spec.microdata]
        names: dict[str, None] = {}
        for owner in owners:
            names |= dict.fromkeys(self.spec.microdata[owner].columns)
            names |= dict.fromkeys(self.spec.derive.get(owner, {}))
        return list(names | dict.fromkeys(self.spec.recodes))

    def _spines(self, entity: str) -> Iterator[tuple[str, str]]:
        """The spines of an entity with the entity that carries the area column: its own first."""
        found = set()
        for owner in (entity, group_of(self.spec, entity)):
            declared = self.spec.microdata.get(owner) if owner is not None else None
            for column in declared.columns.values() if declared else ():
                if column.area is not None and column.area not in found and owner is not None:
                    found.add(column.area)
                    yield column.area, owner

    def _attribute(self, entity: str, name: str) -> Attribute | None:
        key = (entity, name)
        if key not in self.known:
            self.known[key] = None
            self.depth += 1
            if self.depth <= DEEPEST_RECODE:
                self.known[key] = self._look_up(entity, name)
            elif name in self.spec.recodes and name not in self.domain.unknown:
                message = f"recodes of recodes more than {DEEPEST_RECODE} deep; make this one of a column"
                self.files.findings.append(error("too-deep", ("recodes", name, "of"), message))
                self.domain.unknown.update(self.spec.recodes)
            self.depth -= 1
        return self.known[key]

    def _look_up(self, entity: str, name: str) -> Attribute | None:
        declared = self.spec.microdata.get(entity)
        if declared is None:
            return None
        if name in declared.columns:
            return self._column(entity, declared, name)
        if name in self.spec.derive.get(entity, {}):
            return self._derived(entity, name, self.spec.derive[entity][name])
        if name in self.spec.recodes:
            return self._recode(entity, name)
        group = group_of(self.spec, entity)
        return self._attribute(group, name) if group is not None and group != entity else None

    def _column(self, entity: str, declared: Entity, name: str) -> Attribute | None:
        column = declared.columns[name]
        label, hidden = column.label or name, leaves_out(declared, column)
        from_rows = declared.built_from is not None
        if column.codes is not None:
            path: Path = ("microdata", entity, "columns", name, "codes")
            coded = self._categories(column.codes, path)
            up_to = column.up_to or 1
            attribute = Attribute(name, label, entity, name, coded, hidden=hidden, up_to=up_to, derived=from_rows)
            return attribute if coded else None
        valid = column.valid
        if valid is None or valid.low is None or valid.high is None:
            return None
        if isinstance(valid.low, date) is not (column.type == "date"):
            return None
        scale = Scale(valid.low, valid.high, column.step or Fraction(1))
        return Attribute(name, label, entity, name, scale=scale, hidden=hidden, derived=from_rows, unit=column.unit)

    def _categories(self, codes: CodeList, path: Path) -> tuple[Category, ...]:
        if codes.file is None:
            return tuple(Category(code, label, (code,)) for code, label in codes.inline)
        table = self.files.table(codes.file, path)
        if table is None or not self.files.has_columns(table, ("code",), path):
            return ()
        label_at = table.header.index("label" if "label" in table.header else "code")
        code_at = table.header.index("code")
        found: dict[str, Category] = {}
        for line, row in table.rows:
            code = row[code_at]
            if code in found or not code:
                message = f"code '{code}' is listed twice; keep one" if code else "the code is empty"
                self.files.findings.append(error("code-twice", path, message, place=(codes.file, line, 1)))
                return ()
            found[code] = Category(code, row[label_at] or code, (code,))
        if not found:
            self.files.findings.append(error("file-row", path, f"'{codes.file}' lists no code"))
        return tuple(found.values())

    def _recode(self, entity: str, name: str) -> Attribute | None:
        made = self.spec.recodes[name]
        source = self._attribute(entity, made.of)
        if source is None:
            return None
        coded = recode(source, made.into, ("recodes", name, "into"), self.files.findings)
        label = made.label or name
        if not coded:
            self.domain.unknown.add(name)
            return None
        return Attribute(
            name,
            label,
            source.owner,
            source.base,
            coded,
            hidden=source.hidden,
            up_to=source.up_to,
            derived=source.derived,
            recoded=True,
        )

    def _derived(self, entity: str, name: str, made: Derived) -> Attribute | None:
        label, path = made.label or name, ("derive", entity, name)
        if made.any is not None:
            coded = tuple(Category(word, word, (word,)) for word in ("yes", "no"))
            source = Attribute(name, label, entity, name, coded, derived=True)
        elif made.number_of is not None:
            source = Attribute(name, label, entity, name, scale=Scale(Fraction(0), None), derived=True)
        else:
            found = self._member_attribute(entity, made.value_of or "", (*path, "value_of"))
            if found is None:
                return None
            source = Attribute(name, label, entity, name, found.coded, found.scale, hidden=True, derived=True)
        if made.into is None:
            return source
        coded = recode(source, made.into, (*path, "into"), self.files.findings)
        if not coded:
            self.domain.unknown.add(name)
            return None
        return Attribute(name, label, entity, name, coded, hidden=source.hidden, derived=True, recoded=True)

    def _member_attribute(self, group: str, column: str, path: Path) -> Attribute | None:
        members = members_of(self.spec, group)
        for member in members:
            if (found := self._attribute(member, column)) is not None and found.owner == member:
                return found
        if column not in self.domain.unknown:
            names = [name for member in members for name in self.spec.microdata[member].columns]
            message = f"'{column}' is not a column of the rows of '{group}'; {did_you_mean(column, names)}"
            self.files.findings.append(error("unknown-column", path, message))
        return None
