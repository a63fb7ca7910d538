"""All neighbours on small domains, written from the words of the privacy law alone; nothing is shared with the product.

A town holds records and rows of groups. A record has an identity (group, id), says one thing (`own`: a code, a number,
a set of codes, or None for what no table counts), and may be a single. A group's row says one thing too, or is missing
although records carry its key.

What arrives with one unit is written down once, in `records_arrive` and `groups_arrive`; what leaves is the same read
backwards. An exchange is one unit that leaves and one that arrives: both towns are reached from the town without the
two, so its changes are the differences between two arrivals, or between one and none (a unit that no table counts).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import NamedTuple

from mechanisms.sensitivity import Relation, Shape, Unit

ADD_REMOVE, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE
BOTH = (ADD_REMOVE, REPLACE)

Said = Hashable
Number = int | Fraction
Vector = tuple[Number, ...]


class Identity(NamedTuple):
    group: str | None
    id: int


class Record(NamedTuple):
    group: str | None
    id: int
    own: Said
    single: bool = False


class Town(NamedTuple):
    records: frozenset[Record]
    rows: frozenset[tuple[str, Said]]

    def members(self, group: str | None) -> list[Record]:
        """The records of a group; a single carries its key and is no member."""
        return [record for record in self.records if record.group == group and not record.single]

    def row(self, group: str | None) -> Said:
        """What the group's row says; None without a row."""
        return next((said for key, said in self.rows if key == group), None)

    def with_records(self, records: Iterable[Record]) -> Town:
        return Town(self.records | frozenset(records), self.rows)

    def with_row(self, group: str, said: Said) -> Town:
        return Town(self.records, self.rows | {(group, said)})


@dataclass(frozen=True)
class Domain:
    """All towns with at most so many records in each group (key None: records without a group)."""

    own: tuple[Said, ...]
    places: tuple[tuple[str | None, int], ...]
    rows: tuple[Said, ...] = ()
    singles: bool = False

    @property
    def groups(self) -> list[str]:
        return [group for group, _ in self.places if group is not None]

    @property
    def identities(self) -> list[Identity]:
        return [Identity(group, number) for group, size in self.places for number in range(size)]

    def records_at(self, identity: Identity) -> list[Record]:
        kinds = (False, True) if self.singles else (False,)
        return [Record(*identity, said, single) for said in self.own for single in kinds]

    def towns(self) -> Iterator[Town]:
        """Every town: each place empty or taken, each group with or without its row."""
        rows = list(product(*([None, *((group, said) for said in self.rows)] for group in self.groups)))
        for records in product(*([None, *self.records_at(identity)] for identity in self.identities)):
            for held in rows:
                yield Town(frozenset(filter(None, records)), frozenset(filter(None, held)))

    def free(self, town: Town) -> list[Identity]:
        taken = {(record.group, record.id) for record in town.records}
        return [identity for identity in self.identities if identity not in taken]


def houses(*sizes: int, own: tuple[Said, ...] = ("a", "b"), rows: tuple[Said, ...] = ()) -> Domain:
    """Houses with places for so many records each; an exchange touches no third house."""
    return Domain(own=own, places=tuple(zip("hk", sizes, strict=False)), rows=rows)


Arrivals = Callable[[Domain, Town], Iterator[Town]]


def records_arrive(domain: Domain, town: Town) -> Iterator[Town]:
    """One record more; its group's row, if missing, may come with it (others of the group may be there before it)."""
    for identity in domain.free(town):
        for record in domain.records_at(identity):
            grown = town.with_records([record])
            yield grown
            if record.group is not None and town.row(record.group) is None:
                yield from (grown.with_row(record.group, said) for said in domain.rows)


def groups_arrive(domain: Domain, town: Town) -> Iterator[Town]:
    """One group more, its row and all its records, row present or not; or one single; or one record without group."""
    for identity in domain.free(town):
        alone = [record for record in domain.records_at(identity) if record.single or record.group is None]
        yield from (town.with_records([record]) for record in alone)
    for group in domain.groups:
        if not town.members(group) and town.row(group) is None:
            yield from _whole_groups(domain, town, group)


def _whole_groups(domain: Domain, town: Town, group: str) -> Iterator[Town]:
    places = [identity for identity in domain.free(town) if identity.group == group]
    members = [[None, *(r for r in domain.records_at(place) if not r.single)] for place in places]
    for records in product(*members):
        grown = town.with_records(filter(None, records))
        yield grown
        yield from (grown.with_row(group, said) for said in domain.rows)


def arrivals_of(unit: Unit) -> Arrivals:
    return groups_arrive if unit.is_group else records_arrive


Query = Callable[[Town], Vector]
Norm = Callable[[Vector], Number]


def l1(change: Vector) -> Number:
    return sum(abs(number) for number in change)


def l2_squared(change: Vector) -> Number:
    return sum(number**2 for number in change)


def one_score(change: Vector) -> Number:
    """The furthest that any one score moved."""
    return max(abs(number) for number in change)


def _minus(one: Vector, other: Vector) -> Vector:
    return tuple(a - b for a, b in zip(one, other, strict=True))


def changes(query: Query, domain: Domain, arrivals: Arrivals) -> set[frozenset[Vector]]:
    """For each town, all changes that one arrival makes, and none; equal sets once."""
    answer = cache(query)
    found = set()
    for town in domain.towns():
        before = answer(town)
        steps = {_minus(answer(grown), before) for grown in arrivals(domain, town)}
        found.add(frozenset({tuple(0 for _ in before), *steps}))
    return found


def furthest(
    query: Query, domain: Domain, arrivals: Arrivals, relation: Relation, norms: Sequence[Norm] = (l1, l2_squared)
) -> tuple[Number, ...]:
    """The largest value of each norm over all pairs of neighbours; each may come from another pair."""
    moves: set[Vector] = set()
    for steps in changes(query, domain, arrivals):
        if relation is ADD_REMOVE:
            moves |= steps
        else:
            moves |= {_minus(one, other) for one, other in combinations(steps, 2)}
    return tuple(max((norm(move) for move in moves), default=0) for norm in norms)


def declared(shape: Shape, unit: Unit, relation: Relation) -> tuple[Fraction, Fraction]:
    """What the product says."""
    sensitivity = shape.sensitivity(unit, relation)
    return sensitivity.l1, sensitivity.l2_squared


def is_attained(shape: Shape, unit: Unit, query: Query, domain: Domain) -> bool:
    """Whether what the product says is exactly the largest L1 and the largest squared L2, under both relations."""
    return all(
        furthest(query, domain, arrivals_of(unit), relation) == declared(shape, unit, relation) for relation in BOTH
    )


def stacked(queries: Sequence[Query]) -> Query:
    """Several queries as one vector."""
    return lambda town: tuple(number for query in queries for number in query(town))


def joint_price(
    queries: Sequence[Query],
    domain: Domain,
    arrivals: Arrivals,
    relation: Relation,
    *,
    scales: Sequence[Number],
    variances: Sequence[Number],
) -> tuple[Fraction, Fraction]:
    """The pure and the zCDP price of measuring all queries: the change that costs most over all of them together."""
    widths = [len(query(next(domain.towns()))) for query in queries]
    by_scale = [Fraction(1) / scale for scale, width in zip(scales, widths, strict=True) for _ in range(width)]
    by_variance = [1 / Fraction(2 * v) for v, width in zip(variances, widths, strict=True) for _ in range(width)]

    def pure(change: Vector) -> Number:
        return sum(abs(number) * weight for number, weight in zip(change, by_scale, strict=True))

    def concentrated(change: Vector) -> Number:
        return sum(number**2 * weight for number, weight in zip(change, by_variance, strict=True))

    epsilon, rho = furthest(stacked(queries), domain, arrivals, relation, (pure, concentrated))
    return Fraction(epsilon), Fraction(rho)
