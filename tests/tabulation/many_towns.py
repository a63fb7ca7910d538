"""All towns of a small domain, counted by the product in one run, and all pairs of them that are neighbours.

A town is a choice of one state for each of a few slots, and a state is some lines of the files. In one run every town
has an area of its own with two parts, and ids of its own. Lines are written with `@` where the name of the town
stands. Which rows a cap or a duplicate keeps depends on hashes of ids and contents, so the name of each town is chosen
such that its hashes are in the same order as those of all others: then a unit that two towns share is the same unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, pairwise, product
from pathlib import Path

import numpy as np

from mechanisms.sensitivity import Relation, Unit
from release_specs.load import Loaded, load_text
from release_specs.tallies import Tally, tallies_of
from tests.tabulation.neighbours import ADD_REMOVE, KEY, REPLACE, Integers, Outcome, declared, outcome_of
from tests.tabulation.reference_values import digest

AREAS = "geography: {towns: {levels: [land, town, part], areas: areas.csv}}\n"
PARTS = "AB"

State = tuple[tuple[str, str], ...]
"""Lines of files: the entity and the line."""
Texts = tuple[str | None, ...]


def lines(entity: str, *written: str) -> State:
    """The state of these lines."""
    return tuple((entity, line) for line in written)


@dataclass(frozen=True)
class Slot:
    """What may stand in one place of a town; the first state is nothing at all.

    A slot is a unit, or the row of a group, which is nobody's but comes with a unit: `beside` is the number of the slot
    with the row that may come with this one.
    """

    states: tuple[State, ...]
    beside: int | None = None
    is_unit: bool = True

    def __post_init__(self) -> None:
        if self.states[0] != ():
            raise ValueError("the first state is nothing")


@dataclass(frozen=True)
class Towns:
    """A spec, the header of each of its files, all towns over some slots, and what is hashed in one order in each."""

    spec: str
    headers: Mapping[str, str]
    slots: tuple[Slot, ...]
    ordered: tuple[tuple[Texts, ...], ...] = ()

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(slot.states) for slot in self.slots)

    @cached_property
    def all(self) -> list[tuple[int, ...]]:
        return list(product(*(range(size) for size in self.sizes)))

    def arrivals(self) -> Iterator[tuple[int, list[int]]]:
        """Each town with the towns that one unit more makes of it, by their numbers."""
        strides = [int(np.prod(self.sizes[place + 1 :], dtype=np.int64)) for place in range(len(self.sizes))]
        for number, town in enumerate(self.all):
            found: list[int] = []
            for place, slot in enumerate(self.slots):
                if not slot.is_unit or town[place]:
                    continue
                grown = [number + state * strides[place] for state in range(1, self.sizes[place])]
                found += grown
                if slot.beside is not None and not town[slot.beside]:
                    rows = [state * strides[slot.beside] for state in range(1, self.sizes[slot.beside])]
                    found += [one + row for one in grown for row in rows]
            yield number, found

    @cached_property
    def names(self) -> list[str]:
        """A name for each town under which everything that is hashed stands in the given order."""
        return [next(name for name in _names(number) if self._is_in_order(name)) for number in range(len(self.all))]

    def _is_in_order(self, name: str) -> bool:
        hashes = (
            (digest(KEY, [text and text.replace("@", name) for text in one]) for one in chain) for chain in self.ordered
        )
        return all(first < second for chain in hashes for first, second in pairwise(chain))

    def write(self, folder: Path) -> dict[str, Path]:
        """The files of all towns, and the areas beside them."""
        areas = [f"{name}{part},{name}" for name in self.names for part in PARTS]
        (folder / "areas.csv").write_text("\n".join(["part,town", *areas]), encoding="utf-8")
        written = {entity: [header] for entity, header in self.headers.items()}
        for name, town in zip(self.names, self.all, strict=True):
            for slot, state in zip(self.slots, town, strict=True):
                for entity, line in slot.states[state]:
                    written[entity].append(line.replace("@", name))
        for entity, content in written.items():
            (folder / f"{entity}.csv").write_text("\n".join(content) + "\n", encoding="utf-8")
        return {entity: folder / f"{entity}.csv" for entity in self.headers}


def _names(number: int) -> Iterator[str]:
    return (f"t{number}x{attempt}" for attempt in count())


@dataclass(frozen=True)
class Found:
    """How far one unit moved a tally at one level under a relation, and how far the law allows."""

    tally: str
    level: str
    relation: Relation
    moved: tuple[int, int]
    allowed: tuple[int, int]

    @property
    def is_too_far(self) -> bool:
        return any(one > most for one, most in zip(self.moved, self.allowed, strict=True))

    @property
    def is_attained(self) -> bool:
        return self.moved == self.allowed


def counted(towns: Towns, folder: Path, *, more_than_the_cap: int = 0) -> tuple[Loaded, Outcome]:
    """All towns in one run of the product; or of one that keeps more rows of each group than the cap."""
    places = towns.write(folder)
    loaded = load_text(towns.spec, file="small.yaml", folder=folder)
    tallies = [
        replace(one, cap=one.cap and one.cap + more_than_the_cap) for one in tallies_of(loaded.spec, loaded.domain)
    ]
    outcome = outcome_of(loaded, places, tallies=tallies if more_than_the_cap else None)
    if outcome.error is not None:
        raise AssertionError(outcome.error)
    return loaded, outcome


def furthest(towns: Towns, loaded: Loaded, outcome: Outcome, *, unit: Unit | None = None) -> Iterator[Found]:
    """For every tally, level and relation the furthest that a unit moves it, over all pairs of neighbours."""
    arrivals = list(towns.arrivals())
    for tally in tallies_of(loaded.spec, loaded.domain):
        for level in tally.levels:
            if level != "land":
                vectors = _vectors(towns, tally, level, outcome.counts[tally.name, level])
                for relation, moved in _furthest(vectors, arrivals).items():
                    allowed = declared(loaded, tally, vectors.shape[1], relation, unit=unit)
                    yield Found(tally.name, level, relation, moved, allowed)


def _vectors(towns: Towns, tally: Tally, level: str, dense: Integers) -> Integers:
    """The counts of each town as one vector: a town is a release of its own, with its own areas only."""
    codes = [area.code for area in tally.spine.areas[level]] if tally.spine is not None else []
    wanted = [name + part for name in towns.names for part in (PARTS if level == "part" else ("",))]
    order = {code: number for number, code in enumerate(codes)}
    return dense[[order[code] for code in wanted]].reshape(len(towns.all), -1)


def _furthest(vectors: Integers, arrivals: Sequence[tuple[int, list[int]]]) -> dict[Relation, tuple[int, int]]:
    """The largest L1 and the largest squared L2 for each relation; they may come from different pairs."""
    different, kinds = np.unique(vectors, axis=0, return_inverse=True)
    cases = {(int(kinds[base]), frozenset(kinds[grown].tolist())) for base, grown in arrivals}
    most = {ADD_REMOVE: (0, 0), REPLACE: (0, 0)}
    for base, grown in cases:
        steps = different[[base, *grown]] - different[base]
        for relation, moves in ((ADD_REMOVE, steps), (REPLACE, steps[:, None, :] - steps[None, :, :])):
            l1, l2_squared = int(np.abs(moves).sum(-1).max()), int((moves**2).sum(-1).max())
            most[relation] = max(most[relation][0], l1), max(most[relation][1], l2_squared)
    return most
