"""Sums over cells of a tally, and exactly how they err: variances and covariances of their unbiased estimates.

A sum keeps the codes of some attributes apart and adds up those of the others. Written out, the covariance of all cells
of two tallies is a sum over parts, each a core matrix times one small matrix for each free attribute: I - J/n where the
attribute is in the part, J/n^2 where both tallies hold it and the part does not (n codes, J all ones). A sum adds up
the codes of each attribute by themselves, so it goes through the factors one by one: no matrix of all cells is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import prod

import numpy as np

from estimation.arrays import Floats
from estimation.coordinates import Axes
from estimation.design import TallyMargin
from estimation.release import Done, Estimated
from release_specs.tallies import Tally


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the cells of a tally, hidden ones included where a sum wants them; in each area (*shape)."""

    tally: Tally
    codes: tuple[Floats, ...] = field(repr=False)
    """For each attribute which of its codes are added up in which row: (row, code), not stated being the last code."""
    along: tuple[int, ...]
    """The places of the attributes whose rows are kept apart, in the order of the axes; the others have one row."""

    def __post_init__(self) -> None:
        rows = [len(codes) for place, codes in enumerate(self.codes) if place not in self.along]
        if [codes.shape[1] for codes in self.codes] != list(self.tally.shape) or set(rows) - {1}:
            raise ValueError(f"sums over '{self.tally.name}' do not fit its cells")

    @property
    def shape(self) -> tuple[int, ...]:
        """How many sums there are along each axis."""
        return tuple(len(self.codes[place]) for place in self.along)

    def of(self, numbers: Floats) -> Floats:
        """The sums of numbers (area, cell): (area, *shape)."""
        cells = numbers[:, : prod(self.tally.shape)].T.reshape(*self.tally.shape, len(numbers))
        return np.moveaxis(self.added(cells, range(len(self.codes))), -1, 0)

    def added(self, numbers: Floats, places: Sequence[int]) -> Floats:
        """Numbers by the codes of the attributes at some places, and by one thing more, added up.

        They come out by all axes, with length one along those of other attributes, and by the one thing more.
        """
        for axis, place in enumerate(places):
            numbers = np.moveaxis(np.tensordot(self.codes[place], numbers, axes=(1, axis)), 0, axis)
        kept = [places.index(place) for place in self.along if place in places]
        rest = [axis for axis, place in enumerate(places) if place not in self.along]
        turned = numbers.transpose(*kept, *rest, len(places))
        return turned.reshape(*(len(self.codes[place]) if place in places else 1 for place in self.along), -1)


def estimates(estimated: Estimated, sums: Sums, level: str | None) -> Floats:
    """The unbiased estimates of sums: (area, *shape)."""
    return sums.of(estimated.estimate(sums.tally, level))


def variances(estimated: Estimated, sums: Sums, level: str | None) -> Floats:
    """The variances of the estimates of sums: (area, *shape)."""
    found: Floats = np.maximum(covariances(estimated, sums, sums, level), 0.0)
    return found


def covariances(estimated: Estimated, one: Sums, other: Sums, level: str | None) -> Floats:
    """The covariances of the estimates of two sums of the same shape, one by one: (area, *shape).

    Tallies of different populations have nothing to do with each other.
    """
    if one.shape != other.shape:
        raise ValueError(f"sums over '{one.tally.name}' and '{other.tally.name}' differ in their axes")
    done = estimated.of(one.tally)
    if estimated.of(other.tally) is not done:
        return np.zeros((one.tally.areas(level), *one.shape))
    name = done.planned.forest.name_of(one.tally.spine, level)
    found = _by_kind(done, one, other, done.places[name].best)[done.places[name].kinds]
    out = np.empty_like(found)
    out[done.planned.forest.order[name]] = found
    return out


def _by_kind(done: Done, one: Sums, other: Sums, best: Floats) -> Floats:
    """For each kind of area, given the covariances of its coordinates (kind, part, core, core)."""
    coordinates, margins = done.planned.design.coordinates, done.planned.design.margins
    mine, theirs = margins[one.tally.name], margins[other.tally.name]
    left, right = _core(one, mine), _core(other, theirs)
    held = [_free(one, mine, coordinates.sizes), _free(other, theirs, coordinates.sizes)]
    found = np.zeros((*one.shape, len(best)))
    for number, part in enumerate(coordinates.parts):
        if set(part) <= set(held[0]) & set(held[1]):
            inner = (np.tensordot(left, best[:, number], axes=(-1, 1)) * right[..., None, :]).sum(axis=-1)
            found += inner * _weight(part, *held)[..., None]
    return np.moveaxis(found, -1, 0)


def _core(sums: Sums, found: TallyMargin) -> Floats:
    """Sums in core coordinates: (*shape, core), with length one along free axes."""
    places = found.order[: len(found.order) - len(found.margin.free)]
    cells = found.margin.cells.reshape(*(sums.tally.shape[place] for place in places), -1)
    return sums.added(cells, places)


def _free(sums: Sums, found: TallyMargin, sizes: tuple[int, ...]) -> dict[int, Floats]:
    """For each free attribute the codes that are added up: (*shape, code), with length one along the other axes."""
    if sums.tally.elsewhere:  # its cells are the codes of one attribute, the last being those elsewhere
        cells = np.eye(prod(sums.tally.shape), sums.tally.cells).reshape(*sums.tally.shape, -1)
        return {0: sums.added(cells, range(len(sums.codes)))}
    places = found.order[len(found.order) - len(found.margin.free) :]
    return {
        axis: sums.added(np.eye(sizes[axis]), [place]) for axis, place in zip(found.margin.free, places, strict=True)
    }


def _weight(part: Axes, mine: Mapping[int, Floats], theirs: Mapping[int, Floats]) -> Floats:
    """The covariance of sums in a part whose own variance is one."""
    factors = [np.ones(())]
    for axis in {*mine, *theirs}:
        held = [codes[axis] for codes in (mine, theirs) if axis in codes]
        means = [codes.mean(axis=-1) for codes in held]
        if axis in part:
            one, other = held
            factors.append((one * other).sum(axis=-1) - means[0] * means[1] * one.shape[-1])
        else:
            factors.extend(means)
    return reduce(np.multiply, factors)
