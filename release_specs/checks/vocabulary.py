"""Checks of geography, recodes, derived attributes and universes: every name means one thing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from release_specs.checks.draft import Draft, condition_findings, needs, unknown_name
from release_specs.diagnostics import Finding, Path, error
from release_specs.reading.resolve import members_of


@needs("microdata", "tables")
def a_name_means_one_thing(draft: Draft) -> Iterator[Finding]:
    """Entities, universes, columns, recodes, derived attributes, levels and tables do not take each other's names."""
    spec = draft.spec
    columns = {name: f"a column of {entity}" for entity, facts in spec.microdata.items() for name in facts.columns}
    entities = dict.fromkeys(spec.microdata, "an entity")
    levels = {level: f"a level of '{name}'" for name, spine in spec.geography.items() for level in spine.levels}
    for name in spec.recodes:
        yield from _clash(name, ("recodes", name), columns)
    for entity, derived in spec.derive.items():
        own = dict.fromkeys(spec.microdata[entity].columns, f"a column of {entity}") if entity in spec.microdata else {}
        recodes = dict.fromkeys(spec.recodes, "a recode")
        for name in derived:
            yield from _clash(name, ("derive", entity, name), {**own, **recodes})
    for name in spec.universes:
        yield from _clash(name, ("universes", name), entities)
    for name in spec.tables:
        yield from _clash(name, ("tables", name), levels)


def _clash(name: str, path: Path, taken: Mapping[str, str]) -> Iterator[Finding]:
    if name in taken:
        yield error("name-clash", path, f"'{name}' is already {taken[name]}; choose another name", at_key=True)


@needs("geography")
def levels_belong_to_one_spine(draft: Draft) -> Iterator[Finding]:
    """A level's name says which spine is meant, so two spines cannot share one."""
    owner: dict[str, str] = {}
    for name, spine in draft.spec.geography.items():
        for level in dict.fromkeys(spine.levels):
            first = owner.setdefault(level, name)
            if first != name:
                message = f"level '{level}' is already a level of '{first}'; choose another name for one of them"
                yield error("name-clash", ("geography", name, "levels"), message, at_key=True)


@needs("microdata", "geography")
def spines_are_carried_by_a_column(draft: Draft) -> Iterator[Finding]:
    """A geography that no column carries places nobody."""
    carried = {column.area for entity in draft.spec.microdata.values() for column in entity.columns.values()}
    for name in draft.spec.geography:
        if name not in carried and not draft.domain.unknown and carried <= {None, *draft.spec.geography}:
            message = f"no column carries this geography; declare one with area: {name}"
            yield error("spine-unused", ("geography", name), message, at_key=True)


@needs("microdata", "recodes")
def recodes_are_of_something(draft: Draft) -> Iterator[Finding]:
    """A recode is made of a column, a derived attribute or another recode, and not of itself."""
    spec = draft.spec
    known = dict.fromkeys(name for facts in spec.microdata.values() for name in facts.columns)
    known |= dict.fromkeys(name for derived in spec.derive.values() for name in derived)
    known |= dict.fromkeys(spec.recodes)
    for name, made in spec.recodes.items():
        path: Path = ("recodes", name, "of")
        yield from unknown_name(draft, "unknown-column", made.of, known, path, "a column, recode or derived attribute")
        if made.of == name and any(name in facts.columns for facts in spec.microdata.values()):
            continue
        if cycle := _cycle(name, {other: facts.of for other, facts in spec.recodes.items()}):
            chain = " is made of ".join(cycle[:2]) + "".join(f", which is made of {part}" for part in cycle[2:])
            yield error("cyclic-recode", path, f"{chain}: a circle; make one of them of a column")
        elif any(made.of in facts.columns and facts.columns[made.of].area for facts in spec.microdata.values()):
            message = f"'{made.of}' is an area column; larger areas are levels of the geography, not recodes"
            yield error("area-as-attribute", path, message)


def _cycle(name: str, of: Mapping[str, str]) -> list[str]:
    """The circle a name is in, if it begins with the first of its names: each circle is told once."""
    walk = [name]
    while walk[-1] in of:
        following = of[walk[-1]]
        if following == name:
            return [*walk, name] if name == min(walk) else []
        if following in walk:
            return []
        walk.append(following)
    return []


@needs("microdata", "derive")
def derived_attributes_look_at_member_rows(draft: Draft) -> Iterator[Finding]:
    """Groups derive attributes from the rows nested in them."""
    spec = draft.spec
    for group, derived in spec.derive.items():
        path: Path = ("derive", group)
        members = members_of(spec, group)
        if group not in spec.microdata:
            yield from unknown_name(draft, "unknown-entity", group, spec.microdata, path, "an entity")
            continue
        if not members and (group in draft.domain.unknown or not draft.nesting_is_clear()):
            continue
        if not members:
            yield error(
                "not-nested", path, f"no rows are nested in '{group}', so nothing can be derived for it", at_key=True
            )
            continue
        for name, made in derived.items():
            rows = made.number_of or made.any
            word = "number_of" if made.number_of else "any"
            if rows is not None and rows not in members:
                what = f"an entity whose rows are nested in {group}"
                yield from unknown_name(draft, "unknown-entity", rows, members, (*path, name, word), what)
            elif made.where is not None and members:
                yield from condition_findings(draft, rows or members[0], made.where, (*path, name, "where"))


@needs("microdata", "universes")
def universes_are_part_of_something(draft: Draft) -> Iterator[Finding]:
    """A universe is part of an entity or of another universe, and not of itself."""
    spec = draft.spec
    for name, universe in spec.universes.items():
        path: Path = ("universes", name)
        known = draft.universes()
        yield from unknown_name(draft, "unknown-universe", universe.of, known, (*path, "of"), "an entity or universe")
        if cycle := _cycle(name, {other: facts.of for other, facts in spec.universes.items()}):
            message = f"{' is part of '.join(cycle)}: a circle; make one of them part of an entity"
            yield error("cyclic-universe", (*path, "of"), message)
        entity = draft.entity(name)
        if entity is not None:
            yield from condition_findings(draft, entity, universe.where, (*path, "where"))


CHECKS = (
    a_name_means_one_thing,
    levels_belong_to_one_spine,
    spines_are_carried_by_a_column,
    recodes_are_of_something,
    derived_attributes_look_at_member_rows,
    universes_are_part_of_something,
)
