"""The precisions and gains of every level of a tree, before any number is looked at.

For an area let A be the information about its coordinates from its own measurements and all below it, and P the
covariance of the estimate from them: the inverse of A within what is measured. The sum of children whose estimates have
covariances P has covariance S = sum of P, so children tell their parent T = 1/S. With the parent's best estimate known,
its surprise passes down to a child with the gain P T. Areas of the same kind (budgets, and kinds of their children)
share their matrices; kinds are counted, not areas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from estimation.arrays import Floats, Integers, Numbers
from estimation.coordinates import Coordinates
from estimation.errors import EstimationError
from estimation.kernels.blocks import inverse_within
from estimation.observations import Observation
from estimation.spaces import Spaces
from estimation.tree import Level, Tree


@dataclass(frozen=True, eq=False)
class Stage:
    """One level, with the stages below it: one, several where spines part, or none for the smallest areas.

    `kinds` says for each area which matrices are its own; `upwards` holds for each branch below the matrices T of the
    kinds. Matrices are (kind, part, core, core).
    """

    name: str
    observations: tuple[Observation, ...]
    spaces: Spaces = field(repr=False)
    kinds: Integers = field(repr=False)
    information: Floats = field(repr=False)
    covariance: Floats = field(repr=False)
    below: tuple[tuple[Level, Stage], ...] = ()
    upwards: tuple[Floats, ...] = field(repr=False, default=())

    @property
    def areas(self) -> int:
        """How many areas there are."""
        return len(self.kinds)

    def everything_seen(self) -> list[Observation]:
        """The observations of this level and of all below it."""
        return [*self.observations, *(one for _, stage in self.below for one in stage.everything_seen())]


def stage(
    name: str,
    observations: Sequence[Observation],
    *,
    coordinates: Coordinates,
    shape: tuple[int, int],
    below: tuple[tuple[Level, Stage], ...] = (),
) -> Stage:
    """A level, from its own observations and the stages below it. `shape` is (areas, core coordinates)."""
    areas, core = shape
    own = tuple(one for one in observations if one.level == name)
    everything = [*own, *(one for _, lower in below for one in lower.everything_seen())]
    spaces = Spaces.spanned_by(coordinates, core, everything)
    budgets, information = own_information(own, coordinates, core=core, areas=areas)
    kinds, examples, counts = _kinds(budgets, below)
    total = information[budgets[examples]]
    upwards = []
    for (_, lower), held in zip(below, counts, strict=True):
        summed = np.einsum("kc,cpij->kpij", held.astype(float), lower.covariance)
        upwards.append(within(summed, lower.spaces.measured))
        total = total + upwards[-1]
    covariance = within(total, spaces.measured)
    return Stage(name, own, spaces, kinds, total, covariance, below, tuple(upwards))


def stages(tree: Tree, observations: Sequence[Observation], *, coordinates: Coordinates, core: int) -> Stage:
    """The whole of a tree, with every level below it: from the smallest areas up."""
    branches: list[tuple[Level, Stage]] = []
    for levels in tree.branches:
        below: tuple[tuple[Level, Stage], ...] = ()
        for level in reversed(levels):
            made = stage(level.name, observations, coordinates=coordinates, shape=(level.areas, core), below=below)
            below = ((level, made),)
        branches.extend(below)
    return stage(tree.whole, observations, coordinates=coordinates, shape=(1, core), below=tuple(branches))


def within(matrices: Floats, bases: Sequence[Floats]) -> Floats:
    """The inverses of matrices (kind, part, core, core), each within the span of its part's basis."""
    out = np.zeros_like(matrices)
    for part, basis in enumerate(bases):
        out[:, part] = inverse_within(np.ascontiguousarray(matrices[:, part]), basis)
    if not np.isfinite(out).all():
        raise EstimationError(
            "some areas of a level lack a measurement that others of it have, and nothing below them makes up for it"
        )
    return out


def own_information(
    observations: Sequence[Observation], coordinates: Coordinates, *, core: int, areas: int
) -> tuple[Integers, Floats]:
    """For each area the number of its budget; for each budget the information (part, core, core)."""
    measured = [one for one in observations if not one.is_exact]
    precisions = np.stack([one.precision for one in measured], axis=1) if measured else np.zeros((areas, 0))
    budgets, _, which = _distinct(precisions)
    information = np.zeros((len(budgets), len(coordinates.parts), core, core))
    for number, one in enumerate(measured):
        seen = 1 / coordinates.dilution(one.margin.free)
        products = one.margin.cells.T @ one.margin.cells
        parts = np.where(np.isnan(seen), 0.0, seen)
        information += budgets[:, number, None, None, None] * parts[:, None, None] * products
    return which, information


def _kinds(budgets: Integers, below: tuple[tuple[Level, Stage], ...]) -> tuple[Integers, Integers, list[Integers]]:
    """For each area its kind; for each kind an example, and how many children of each of their kinds it has."""
    columns = [budgets[:, None]]
    for level, lower in below:
        held = np.zeros((len(budgets), len(lower.covariance)), np.int64)
        np.add.at(held, (level.parents, lower.kinds), 1)
        columns.append(held)
    found, examples, kinds = _distinct(np.concatenate(columns, axis=1))
    edges = np.cumsum([1, *(column.shape[1] for column in columns[1:])])
    counts = [found[:, start:end] for start, end in pairwise(edges)]
    return kinds, examples, counts


def _distinct(rows: Numbers) -> tuple[Numbers, Integers, Integers]:
    """The different rows of a matrix, where each appears first, and for every row which it is."""
    if len(rows) and (rows == rows[0]).all():  # mostly so, and found much sooner than by sorting
        return rows[:1], np.zeros(1, np.int64), np.zeros(len(rows), np.int64)
    found, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return found, first, which.reshape(-1).astype(np.int64)
