"""The areas of a population's geographies as a tree of numbers, and the way between both orders of areas."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from estimation.arrays import Integers
from estimation.kernels.rounding import Keys
from estimation.tree import Level, Tree
from release_specs.domain import Hierarchy
from release_specs.tallies import Tally

WHOLE = "whole"


@dataclass(frozen=True, eq=False)
class Forest:
    """The tree, and for each level the areas' published places in the order of the tree, and keys of their codes."""

    tree: Tree
    order: dict[str, Integers] = field(repr=False)
    keys: dict[str, Keys] = field(repr=False)
    spines: dict[str, str] = field(repr=False)
    """For each level the spine it belongs to."""

    def name_of(self, spine: Hierarchy | None, level: str | None) -> str:
        """The level of the tree that stands for a level of a spine: the first level of one area is the whole."""
        if spine is None or level is None:
            return WHOLE
        return WHOLE if level == spine.levels[0] and len(spine.areas[level]) == 1 else level


def forest(tallies: Iterable[Tally]) -> Forest:
    """The tree of the geographies of some tallies, each down to the smallest level that one of them needs."""
    depths: dict[str, tuple[Hierarchy, int]] = {}
    for tally in tallies:
        if tally.spine is not None:
            deepest = max(tally.spine.levels.index(level) for level in tally.levels)
            known = depths.get(tally.spine.name, (tally.spine, 0))[1]
            depths[tally.spine.name] = tally.spine, max(deepest, known)
    order = {WHOLE: np.zeros(1, np.int64)}
    keys, spines, branches = {WHOLE: keys_of([WHOLE])}, {}, []
    for spine, deepest in depths.values():
        levels = []
        tops = spine.areas[spine.levels[0]]
        above = {"": 0} if len(tops) > 1 else {tops[0].code: 0}
        for name in spine.levels[0 if len(tops) > 1 else 1 : deepest + 1]:
            areas = spine.areas[name]
            parents = np.array([above[area.parent or ""] for area in areas], np.int64)
            order[name] = np.argsort(parents, kind="stable")
            keys[name] = keys_of([areas[place].code for place in order[name]])
            spines[name] = spine.name
            levels.append(Level(name, parents[order[name]], len(above)))
            above = {areas[place].code: number for number, place in enumerate(order[name])}
        if levels:
            branches.append(tuple(levels))
    return Forest(Tree(WHOLE, tuple(branches)), order, keys, spines)


def keys_of(codes: Iterable[str]) -> Keys:
    """A key for each code that does not depend on where it stands."""
    digests = (hashlib.blake2b(code.encode(), digest_size=8).digest() for code in codes)
    return np.array([int.from_bytes(digest, "big") for digest in digests], np.uint64)
