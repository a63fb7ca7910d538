"""A naive tabulator: who is kept, and how many or how much is in each cell, written from the privacy law alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import permutations, product

from mechanisms.sensitivity import Relation, Unit
from tests.mechanisms.neighbours import Domain, Number, Query, Record, Said, Town, Vector, arrivals_of, furthest

Order = Callable[[Record], int]
First = Callable[[Record, Town], bool]
Cell = Callable[[Record, Town], Said]
Attribute = Callable[[str | None, Town], Said]


def tally(cells: Sequence[Said], found: Iterable[tuple[Said, Number]]) -> Vector:
    """The amounts in each declared cell; what is in no declared cell is in no table."""
    amounts: dict[Said, Number] = dict.fromkeys(cells, 0)
    for cell, amount in found:
        if cell in amounts:
            amounts[cell] += amount
    return tuple(amounts.values())


# Whose rows are kept.


def all_orders(domain: Domain) -> Iterator[Order]:
    """Every order in which a keyed hash of (group, id) may put the records of each group."""
    places = [[identity for identity in domain.identities if identity.group == group] for group in domain.groups]
    for arranged in product(*(permutations(each) for each in places)):
        ranks = {identity: rank for each in arranged for rank, identity in enumerate(each)}
        yield lambda record, ranks=ranks: ranks[record.group, record.id]


def orders_by_content(domain: Domain) -> Iterator[Order]:
    """Every order by what records say (and a number that tells equal ones apart): so are those without id ordered."""
    kinds = [(number, said) for number in {identity.id for identity in domain.identities} for said in domain.own]
    for arranged in permutations(kinds):
        ranks = {kind: rank for rank, kind in enumerate(arranged)}
        yield lambda record, ranks=ranks: ranks[record.id, record.own]


def by_id(record: Record) -> int:
    return record.id


def nobody(record: Record, town: Town) -> bool:
    return False


def those_who_say_a(record: Record, town: Town) -> bool:
    return record.own == "a"


def kept(cap: int, order: Order = by_id, first: First = nobody) -> Callable[[Town], list[Record]]:
    """Of each group at most `cap`: first those that meet `first`, then in the given order. Singles are all kept."""

    def choose(town: Town) -> list[Record]:
        chosen = [record for record in town.records if record.single or record.group is None]
        for group in {record.group for record in town.records if record.group is not None}:
            chosen += sorted(town.members(group), key=lambda r: (not first(r, town), order(r)))[:cap]
        return chosen

    return choose


def over_orders(
    query: Callable[[Order], Query], domain: Domain, unit: Unit, relation: Relation, orders: Iterable[Order] = ()
) -> tuple[Number, ...]:
    """The furthest over every order that the hash may have; orders of identities unless others are given."""
    chosen = list(orders) or all_orders(domain)
    each = [furthest(query(order), domain, arrivals_of(unit), relation) for order in chosen]
    return tuple(max(values) for values in zip(*each, strict=True))


# Tables of records.


def everyone(town: Town) -> Iterable[Record]:
    return town.records


def own(record: Record, town: Town) -> Said:
    return record.own


def one(record: Record) -> int:
    return 1


def records_by(
    cell: Cell,
    cells: Sequence[Said],
    *,
    counted: Callable[[Town], Iterable[Record]] = everyone,
    amount: Callable[[Record], Number] = one,
) -> Query:
    """Records by cell: how many of those counted, or how much they add up to."""
    return lambda town: tally(cells, ((cell(record, town), amount(record)) for record in counted(town)))


def of_group(attribute: Attribute) -> Cell:
    """A record's cell is its group's."""
    return lambda record, town: attribute(record.group, town)


# Tables of groups.


def group_rows(attribute: Attribute, cells: Sequence[Said]) -> Query:
    """Groups that have a row."""
    return lambda town: tally(cells, ((attribute(group, town), 1) for group, _ in town.rows))


def built_groups(attribute: Attribute, cells: Sequence[Said]) -> Query:
    """Groups that are built from records."""
    return lambda town: tally(cells, ((attribute(group, town), 1) for group in {r.group for r in town.records}))


def row(group: str | None, town: Town) -> Said:
    return town.row(group)


def size(group: str | None, town: Town) -> int:
    return len(town.members(group))


def is_even(group: str | None, town: Town) -> bool:
    return size(group, town) % 2 == 0


def has_one_a(group: str | None, town: Town) -> bool:
    return sum(record.own == "a" for record in town.members(group)) == 1


def row_and_parity(group: str | None, town: Town) -> Said:
    return town.row(group), is_even(group, town)
