"""What the spec asks of rows: conditions that some of them meet and others must not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from release_specs.language.conditions import Condition, Criterion
from release_specs.language.phrases import Rule, TablePart
from release_specs.reading.resolve import entity_of, members_of
from release_specs.spec import ReleaseSpec
from tabulation.synthetic.matches import Meanings
from tabulation.synthetic.nesting import outer_group
from tabulation.synthetic.population import EVERY_ROLE, Population, Role
from tabulation.synthetic.variables import Bools

HEADS = frozenset({Role.FIRST})
SINGLES = frozenset({Role.SINGLE})


@dataclass(frozen=True, slots=True)
class Demand:
    """Rows of `entity` with one of these roles meet the condition, or (`met` false) never do."""

    origin: str
    entity: str
    condition: Condition
    met: bool = True
    roles: frozenset[Role] = EVERY_ROLE

    def breaches(self, population: Population) -> Bools:
        """The rows for which it does not hold."""
        wrong: Bools = population.meets(self.entity, self.condition) != self.met
        for role in EVERY_ROLE - self.roles:
            wrong &= population.rows[self.entity].role != role
        return wrong


def demands_of(meanings: Meanings) -> tuple[Demand, ...]:
    """Everything the spec asks of rows, beyond the domain of each column."""
    return (*_only(meanings), *_impossible(meanings), *_keep_first(meanings), *_singles(meanings), *_heads(meanings))


def singles_entity(meanings: Meanings) -> str | None:
    """The entity whose rows `privacy.singles` speaks of, where they lie in groups."""
    privacy = meanings.spec.privacy
    return next(iter(members_of(meanings.spec, privacy.protect)), None) if privacy.singles is not None else None


def _asked(meanings: Meanings, demand: Demand) -> Iterator[Demand]:
    """A demand, and what it asks of the groups of these rows."""
    yield demand
    group, clauses = outer_group(meanings.spec, demand.entity), demand.condition.any_of
    if group is not None and len(clauses) == 1:
        above = tuple(test for test in clauses[0] if meanings.of(demand.entity, test).owner == group)
        if above:
            yield replace(demand, entity=group, condition=Condition((above,)))


def _only(meanings: Meanings) -> Iterator[Demand]:
    for entity, declared in meanings.spec.microdata.items():
        if declared.only is not None:
            yield from _asked(meanings, Demand(f"microdata.{entity}.only", entity, declared.only))


def _impossible(meanings: Meanings) -> Iterator[Demand]:
    for index, condition in enumerate(meanings.spec.impossible):
        for tests in condition.any_of:
            clause = Condition((tests,))
            for entity in meanings.spec.microdata:
                if meanings.can_read(entity, clause.columns()):
                    yield Demand(f"impossible[{index}]", entity, clause, met=False)


def _keep_first(meanings: Meanings) -> Iterator[Demand]:
    at_most = meanings.spec.privacy.at_most
    condition = at_most.keep_first if at_most else None
    entity = next((name for name in meanings.spec.privacy.caps if outer_group(meanings.spec, name)), None)
    if condition is not None and entity is not None:
        origin = "privacy.at_most.keep_first"
        yield from _asked(meanings, Demand(origin, entity, condition, roles=HEADS))
        yield Demand(origin, entity, condition, met=False, roles=EVERY_ROLE - HEADS)


def _singles(meanings: Meanings) -> Iterator[Demand]:
    condition, entity = meanings.spec.privacy.singles, singles_entity(meanings)
    if condition is not None and entity is not None:
        yield from _asked(meanings, Demand("privacy.singles", entity, condition, roles=SINGLES))
        yield Demand("privacy.singles", entity, condition, met=False, roles=EVERY_ROLE - SINGLES)


def _heads(meanings: Meanings) -> Iterator[Demand]:
    """A rule such as heads = households: each group of the universe has a head, and a single's group is not in it."""
    for index, rule in enumerate(meanings.spec.rules):
        for heads, groups in _sides(rule):
            origin = f"rules[{index}]"
            member, group = (entity_of(meanings.spec, _universe(meanings.spec, side)) for side in (heads, groups))
            if member is None or group is None or outer_group(meanings.spec, member) != group:
                continue
            if not _is_keep_first(meanings.spec, heads) or groups.where:
                continue
            if (condition := _condition_of(meanings.spec, _universe(meanings.spec, heads))) is not None:
                yield Demand(origin, member, condition, roles=HEADS)
            if (condition := _condition_of(meanings.spec, _universe(meanings.spec, groups))) is not None:
                yield Demand(origin, group, condition, roles=HEADS)
                yield Demand(origin, group, condition, met=False, roles=SINGLES)


def _sides(rule: Rule) -> Iterator[tuple[TablePart, TablePart]]:
    if rule.relation == "=" and isinstance(rule.right, TablePart):
        yield rule.left, rule.right
        yield rule.right, rule.left


def _universe(spec: ReleaseSpec, part: TablePart) -> str | None:
    return spec.tables[part.table].universe if part.table in spec.tables else None


def _is_keep_first(spec: ReleaseSpec, part: TablePart) -> bool:
    keep_first = spec.privacy.at_most.keep_first if spec.privacy.at_most else None
    wanted = tuple(Criterion(column, (code,)) for column, code in part.where)
    return keep_first is not None and keep_first.any_of == (wanted,)


def _condition_of(spec: ReleaseSpec, universe: str | None) -> Condition | None:
    """What rows of a universe meet, its parents' conditions included; None for a whole entity."""
    conditions = []
    while universe in spec.universes:
        conditions.append(spec.universes[universe].where)
        universe = spec.universes[universe].of
    clauses = product(*(condition.any_of for condition in conditions))
    return Condition(tuple(tuple(test for part in parts for test in part) for parts in clauses)) if conditions else None
