"""Which tables are settled together, and in which order, so that all agree on what they share.

Tables whose columns overlap are put into histograms over a few columns each. If the histograms form a tree in which
every column's histograms are connected (a join tree), each can be settled after the one it hangs on, given what the two
share, and all tables agree: no product of all columns is ever built. Where tables cross, histograms are merged until
they form such a tree, as long as the merged ones are small enough; what still crosses then is said, not hidden.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from release_specs.meanings import Node

MOST_CELLS = 100_000
"""A histogram over several tables' columns has at most so many cells in an area."""

MOST_MERGES = 40
"""So often are two histograms merged to undo crossings; a web of more tables than that is left as it is."""

FEW = 10
"""Where so few tables cannot be made a tree, they are also tried from each of them onwards: ties matter."""

Nodes = frozenset[Node]


@dataclass(frozen=True, slots=True)
class Arranged:
    """One histogram: its columns, the earlier one that it hangs on, and the columns the two share."""

    nodes: Nodes
    after: int | None
    shared: Nodes


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Histograms in the order they are settled, and the columns on which some of them will not agree."""

    histograms: tuple[Arranged, ...]
    crossing: tuple[Node, ...]


def arrange(
    tables: Iterable[Nodes], sizes: Mapping[Node, int], *, first: Collection[Nodes] = (), most: int = MOST_CELLS
) -> Arrangement:
    """Puts tables, each given by its columns, into histograms. One that holds a set of `first` is settled first.

    Tables that share no column, directly or through others, are arranged apart; they share only their total. Where
    tables cannot be made a tree within `most` cells they stay as they are, and the columns they cross in are named.
    """
    held: list[Nodes] = []
    crossing: list[Node] = []
    for together in _connected(list(tables) or [frozenset()]):
        merged, left = _as_tree(together, sizes, most)
        for start in range(1, len(together) if left and len(together) <= FEW else 1):
            other = _as_tree([*together[start:], *together[:start]], sizes, most)
            merged, left = min((merged, left), other, key=lambda found: len(found[1]))
        held += merged
        crossing += left
    return Arrangement(_in_order(held, _spanning_tree(held), first), tuple(crossing))


def contracted(found: Arrangement, number: int) -> Arrangement:
    """The same tree with a histogram made one with the one that it hangs on."""
    merged, made = found.histograms[number], []
    for place, one in enumerate(found.histograms):
        if place != number:
            after = merged.after if one.after == number else one.after
            after = after - 1 if after is not None and after > number else after
            nodes = one.nodes | merged.nodes if place == merged.after else one.nodes
            made.append(Arranged(nodes, after, one.shared))
    return Arrangement(tuple(made), found.crossing)


def _connected(tables: Sequence[Nodes]) -> list[list[Nodes]]:
    """Tables that share columns, directly or through others."""
    found: list[tuple[Nodes, list[Nodes]]] = []
    for table in tables:
        mine = [one for one in found if one[0] & table]
        columns = table.union(*(one[0] for one in mine))
        found = [one for one in found if one not in mine]
        found.append((columns, [*(part for one in mine for part in one[1]), table]))
    return [held for _, held in found]


def _as_tree(tables: Sequence[Nodes], sizes: Mapping[Node, int], most: int) -> tuple[list[Nodes], list[Node]]:
    """The tables, some merged so that they form a join tree, and the columns for which that takes too many cells."""
    held, left, merges = list(tables), list[Node](), 0
    while crossing := [node for node in _unconnected(held, _spanning_tree(held)) if node not in left]:
        tried: list[Nodes] | None = held
        while tried is not None and crossing[0] in _unconnected(tried, _spanning_tree(tried)):
            merges += 1
            tried = _merged(tried, crossing[0], sizes, most) if merges <= MOST_MERGES else None
        if tried is None:
            left.append(crossing[0])
        else:
            held = tried
    return held, left


def _spanning_tree(held: Sequence[Nodes]) -> list[tuple[int, int]]:
    """Links that share as many columns as a tree can; those that share none come last."""
    having: dict[Node, list[int]] = {}
    for number, nodes in enumerate(held):
        for node in nodes:
            having.setdefault(node, []).append(number)
    shared = Counter(pair for numbers in having.values() for pair in combinations(numbers, 2))
    pairs = sorted(shared, key=lambda pair: (-shared[pair], pair))
    members = [[number] for number in range(len(held))]
    links = []
    for one, other in (*pairs, *((0, number) for number in range(1, len(held)))):
        mine, theirs = members[one], members[other]
        if mine is not theirs:
            links.append((one, other))
            mine.extend(theirs)
            for number in theirs:
                members[number] = mine
    return links


def _unconnected(held: Sequence[Nodes], links: Sequence[tuple[int, int]]) -> tuple[Node, ...]:
    """The columns whose histograms do not hang together."""
    found = []
    for node in sorted(frozenset[Node]().union(*held)):
        having = [number for number, nodes in enumerate(held) if node in nodes]
        joined = sum(1 for one, other in links if node in held[one] and node in held[other])
        if joined < len(having) - 1:
            found.append(node)
    return tuple(found)


def _merged(held: Sequence[Nodes], node: Node, sizes: Mapping[Node, int], most: int) -> list[Nodes] | None:
    """The histograms with two of those that hold a column made one: the pair that stays smallest, if small enough."""
    having = [number for number, nodes in enumerate(held) if node in nodes]
    unions = [(prod(sizes[one] for one in held[a] | held[b]), a, b) for a, b in combinations(having, 2)]
    size, one, other = min(found for found in unions if not held[found[1]] <= held[found[2]])
    if size > most:
        return None
    together = held[one] | held[other]
    return [together, *(nodes for number, nodes in enumerate(held) if number not in (one, other))]


def _in_order(
    held: Sequence[Nodes], links: Sequence[tuple[int, int]], first: Collection[Nodes]
) -> tuple[Arranged, ...]:
    """From the histogram to be settled first along the links."""
    degree = [sum(number in link for link in links) for number in range(len(held))]
    wanted = [sum(nodes >= one for one in first) for nodes in held]
    root = min(range(len(held)), key=lambda number: (-wanted[number], -degree[number], number))
    order, place = [Arranged(held[root], None, frozenset())], {root: 0}
    while len(order) < len(held):
        one, other = next((a, b) if a in place else (b, a) for a, b in links if (a in place) != (b in place))
        place[other] = len(order)
        order.append(Arranged(held[other], place[one], held[one] & held[other]))
    return tuple(order)
