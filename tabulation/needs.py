"""Which columns and derived attributes must be known of the rows of each entity, for what is to be counted."""

from __future__ import annotations

from collections.abc import Iterable

from release_specs.language.conditions import Condition
from release_specs.meanings import Meanings, Node
from release_specs.reading.resolve import members_of
from release_specs.tallies import Tally

Needs = dict[str, set[Node]]
"""For each entity the bases that its rows need: their own, and those of their group."""


def needs_of(meanings: Meanings, tallies: Iterable[Tally]) -> Needs:
    """What every entity's rows need, with all that decides about it; entities that nothing asks for need nothing."""
    needs: Needs = {}
    for tally in tallies:
        _add(meanings, needs, tally.entity, _asked_by(meanings, tally))
    for entity in list(needs):
        _add_rules(meanings, needs, entity)
    return needs


def columns_needed(meanings: Meanings, needs: Needs, owner: str) -> set[Node]:
    """The columns of an entity that anybody's rows need: its own rows, or those that inherit them."""
    columns = meanings.spec.microdata[owner].columns
    return {node for nodes in needs.values() for node in nodes if node[0] == owner and node[1] in columns}


def _asked_by(meanings: Meanings, tally: Tally) -> set[Node]:
    entity = tally.entity
    nodes: set[Node] = {(attribute.owner, attribute.base) for attribute in tally.attributes}
    for condition in (*meanings.conditions(tally.universe), tally.where):
        nodes |= meanings.nodes(entity, condition)
    names = [tally.usable, tally.adds.column if tally.adds is not None else None]
    nodes |= {meanings.node(entity, name) for name in names if name is not None}
    if tally.spine is not None:
        nodes.add(meanings.area_node(entity, tally.spine.name))
    return nodes


def _add_rules(meanings: Meanings, needs: Needs, entity: str) -> None:
    """What `only`, `singles` and `keep_first` look at."""
    spec = meanings.spec
    _add(meanings, needs, entity, meanings.nodes(entity, spec.microdata[entity].only))
    for condition in (singles_of(meanings, entity), keep_first_of(meanings, entity)):
        _add(meanings, needs, entity, meanings.nodes(entity, condition))


def _add(meanings: Meanings, needs: Needs, entity: str, nodes: set[Node]) -> None:
    """Adds bases and what decides whether they apply; derived ones ask their group's rows in turn."""
    fresh = entity not in needs
    known = needs.setdefault(entity, set())
    for node in nodes - known:
        known.add(node)
        owner, name = node
        column = meanings.spec.microdata[owner].columns.get(name)
        if column is not None:
            _add(meanings, needs, entity, meanings.nodes(owner, column.applies_to))
            _add_builders(meanings, needs, owner)
        else:
            _add_derived(meanings, needs, node)
    if fresh:
        _add_builders(meanings, needs, entity)
        _add_rules(meanings, needs, entity)


def _add_builders(meanings: Meanings, needs: Needs, entity: str) -> None:
    """The rows that a group without a file is built from must be read."""
    source = meanings.spec.microdata[entity].built_from
    if entity not in needs:
        _add(meanings, needs, entity, set())
    if source is not None and source not in needs:
        _add(meanings, needs, source, set())


def _add_derived(meanings: Meanings, needs: Needs, node: Node) -> None:
    made, member = meanings.spec.derive[node[0]][node[1]], meanings.member_of(node)
    asked = meanings.nodes(member, made.where)
    if made.value_of is not None:
        asked.add(meanings.source_of(node))
    _add(meanings, needs, member, asked)


def singles_of(meanings: Meanings, entity: str) -> Condition | None:
    """Which rows of an entity are protected one by one; None where none are."""
    spec = meanings.spec
    condition = spec.privacy.singles
    members = members_of(spec, spec.privacy.protect)
    return condition if condition is not None and entity in _who_has(meanings, members, condition) else None


def keep_first_of(meanings: Meanings, entity: str) -> Condition | None:
    """Which rows of a capped entity are kept before others."""
    at_most = meanings.spec.privacy.at_most
    condition = at_most.keep_first if at_most is not None else None
    capped = list(meanings.spec.privacy.caps)
    return condition if condition is not None and entity in _who_has(meanings, capped, condition) else None


def _who_has(meanings: Meanings, entities: list[str], condition: Condition) -> list[str]:
    """The entities whose rows a condition can be about: those that have all its columns; else the first."""
    having = [name for name in entities if all(_has(meanings, name, column) for column in condition.columns())]
    return having or entities[:1]


def _has(meanings: Meanings, entity: str, name: str) -> bool:
    try:
        meanings.node(entity, name)
    except KeyError:
        return False
    return True
