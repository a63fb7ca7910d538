"""Strata: rows of one role that are to meet the same tests, chosen before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product

from release_specs.language.conditions import Criterion
from tabulation.synthetic.demands import Demand
from tabulation.synthetic.errors import SynthesisError
from tabulation.synthetic.laws import Law
from tabulation.synthetic.matches import Match, Meaning, Meanings
from tabulation.synthetic.population import Role

MOST_STRATA = 64
"""A condition with more alternatives than this is met by the first of them."""


@dataclass(frozen=True, slots=True)
class Stratum:
    """Rows of a role, and what is wanted of each of their columns."""

    role: Role
    wanted: Mapping[str, tuple[Match, ...]]


def strata_of(
    entity: str, roles: Iterable[Role], demands: tuple[Demand, ...], meanings: Meanings, law: Callable[[str], Law]
) -> list[Stratum]:
    """The strata of an entity: for each role every way to meet what is demanded of it. `law` is that of a column."""
    strata: list[Stratum] = []
    for role in roles:
        asked = [demand for demand in demands if demand.entity == entity and demand.met and role in demand.roles]
        ways = [
            [way for tests in demand.condition.any_of for way in _ways(entity, tests, meanings)] for demand in asked
        ]
        made = [_stratum(entity, role, parts, meanings) for parts in islice(product(*ways), MOST_STRATA)]
        possible = [stratum for stratum in made if _is_possible(stratum, law)]
        if not possible:
            origins = " and ".join(dict.fromkeys(demand.origin for demand in asked))
            raise SynthesisError(f"no row of '{entity}' can meet {origins}; mend these conditions in the spec")
        strata += possible
    return strata


def _ways(entity: str, tests: tuple[Criterion, ...], meanings: Meanings, seen: frozenset[str] = frozenset()) -> _Ways:
    """The tests, with those that decide whether the columns apply at all."""
    ways: _Ways = [tests]
    for base in _own_columns(entity, tests, meanings):
        applies_to = meanings.variables[entity, base].column.applies_to
        if applies_to is not None and base not in seen:
            deeper = [way for part in applies_to.any_of for way in _ways(entity, part, meanings, seen | {base})]
            ways = [(*way, *more) for way in ways for more in deeper]
    return ways


_Ways = list[tuple[Criterion, ...]]


def _own_columns(entity: str, tests: tuple[Criterion, ...], meanings: Meanings) -> Iterator[str]:
    found = (meanings.of(entity, test) for test in tests)
    yield from dict.fromkeys(meaning.base for meaning in found if _is_own(meaning, entity))


def _is_own(meaning: Meaning, entity: str) -> bool:
    """Whether the tested column is drawn for this entity; areas are given, and derived attributes follow."""
    return meaning.owner == entity and not meaning.derived and meaning.spine is None


def _stratum(entity: str, role: Role, parts: tuple[tuple[Criterion, ...], ...], meanings: Meanings) -> Stratum:
    wanted: dict[str, tuple[Match, ...]] = {}
    for test in (test for part in parts for test in part):
        meaning = meanings.of(entity, test)
        if _is_own(meaning, entity):
            wanted[meaning.base] = (*wanted.get(meaning.base, ()), meaning.match)
    return Stratum(role, wanted)


def _is_possible(stratum: Stratum, law: Callable[[str], Law]) -> bool:
    return all(law(column).restricted(wanted) is not None for column, wanted in stratum.wanted.items())
