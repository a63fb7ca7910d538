"""The order in which columns are drawn: what decides whether a column applies comes before it."""

from __future__ import annotations

from collections.abc import Iterator

from release_specs.language.conditions import Condition
from tabulation.synthetic.errors import SynthesisError
from tabulation.synthetic.matches import Meanings
from tabulation.synthetic.nesting import outer_group
from tabulation.synthetic.variables import Variable

Key = tuple[str, str]


def in_drawing_order(meanings: Meanings) -> tuple[list[Variable], list[Variable]]:
    """Every column once: groups before their rows, areas first, as declared, unless a condition asks for another.

    The second list is of columns that wait for all rows of a group, because a derived attribute decides about them.
    """
    order: dict[Key, None] = {}
    entities = sorted(meanings.spec.microdata, key=lambda name: _depth(meanings, name))
    for entity in entities:
        columns = meanings.spec.microdata[entity].columns
        for name in sorted(columns, key=lambda name: columns[name].area is None):
            _visit(meanings, (entity, name), order, ())
    late: dict[Key, None] = {}
    for key in order:
        if _reads_derived(meanings, key) or any(needed in late for needed in _needed(meanings, key)):
            late[key] = None
    early = sorted((key for key in order if key not in late), key=lambda key: entities.index(key[0]))
    return [meanings.variables[key] for key in early], [meanings.variables[key] for key in late]


def twin_of(meanings: Meanings, variable: Variable) -> Variable | None:
    """The column of the group that says the same thing: same name, same codes."""
    group = outer_group(meanings.spec, variable.entity)
    twin = meanings.variables.get((group, variable.name)) if group is not None else None
    if twin is None or variable.column.area is not None or variable.answers > 1 or twin.answers > 1:
        return None
    from_rows = meanings.spec.microdata[twin.entity].built_from == variable.entity
    same = twin.texts == variable.texts and twin.scale == variable.scale
    return twin if same and (variable.texts or from_rows) else None


def _depth(meanings: Meanings, entity: str) -> int:
    group = outer_group(meanings.spec, entity)
    return 0 if group is None else 1 + _depth(meanings, group)


def _visit(meanings: Meanings, key: Key, order: dict[Key, None], waiting: tuple[Key, ...]) -> None:
    if key in order:
        return
    if key in waiting:
        circle = " and ".join(f"{entity}.{name}" for entity, name in waiting[waiting.index(key) :])
        raise SynthesisError(f"applies_to: {circle} depend on each other; one of them must apply to every row")
    for needed in _needed(meanings, key):
        _visit(meanings, needed, order, (*waiting, key))
    order[key] = None


def _needed(meanings: Meanings, key: Key) -> Iterator[Key]:
    variable = meanings.variables[key]
    if (twin := twin_of(meanings, variable)) is not None:
        yield twin.entity, twin.name
    if variable.column.applies_to is not None:
        yield from _read_by(meanings, variable.entity, variable.column.applies_to)


def _reads_derived(meanings: Meanings, key: Key) -> bool:
    condition = meanings.variables[key].column.applies_to
    tests = condition.criteria() if condition is not None else ()
    return any(meanings.of(key[0], test).derived for _, test in tests)


def _read_by(meanings: Meanings, entity: str, condition: Condition) -> Iterator[Key]:
    """The columns a condition looks at, through derived attributes too."""
    for _, test in condition.criteria():
        meaning = meanings.of(entity, test)
        if not meaning.derived:
            yield meaning.owner, meaning.base
            continue
        made = meanings.spec.derive[meaning.owner][meaning.base]
        if made.value_of is not None:
            yield meanings.source_of(meaning.owner, made.value_of)
        if made.where is not None:
            member = made.number_of or made.any or meanings.source_of(meaning.owner, made.value_of or "")[0]
            yield from _read_by(meanings, member, made.where)
