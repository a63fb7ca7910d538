"""Figures: one number for each group of cells, a count, a sum, a mean or a proportion, and two figures compared.

A figure of a table is by some of the table's attributes; the rest is summed, hidden cells included. Everything is
computed from unbiased estimates with their exact variances and covariances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from estimation.arrays import Floats
from estimation.covariances import Sums, covariances, estimates, variances
from estimation.derived import (
    Derived,
    Pair,
    difference,
    difference_of,
    in_percent,
    mean_of,
    percent,
    proportion,
    ratio,
    ratio_of,
)
from estimation.error import Margins
from estimation.intervals import agency_quantile, normal_quantile
from estimation.release import Estimated
from release_specs.domain import Attribute
from release_specs.language.values import read_range
from release_specs.tallies import Tally, extended_size

Picked = Mapping[str, str]
"""For each attribute that is held fixed, its code."""
Tallies = Mapping[str, Tally]
"""The tallies of one table on one geography, by their statistics."""


@dataclass(frozen=True, eq=False)
class Figure:
    """A number for each group of cells: sums over a tally, or the quotient of two sums."""

    top: Sums = field(repr=False)
    bottom: Sums | None = field(repr=False, default=None)

    @property
    def parts(self) -> tuple[Sums, ...]:
        """What it is made of."""
        return (self.top,) if self.bottom is None else (self.top, self.bottom)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """What it is by."""
        return tuple(self.top.tally.attributes[place] for place in self.top.along)

    @property
    def tick(self) -> Fraction:
        """What one of a sum is worth in declared units."""
        return self.top.tally.adds.step if self.top.tally.adds is not None else Fraction(1)

    @property
    def is_signed(self) -> bool:
        """Whether a sum may lie below zero."""
        return self.top.tally.adds is not None and self.top.tally.adds.bounds[0] < 0


def figure_of(tallies: Tallies, *, by: Sequence[str], picked: Picked | None = None) -> Figure:
    """The one number of a table by some of its attributes, with the codes of others picked and the rest summed."""
    held = {word.partition("(")[0]: tally for word, tally in tallies.items()}
    for top, bottom in (("centred", "usable"), ("part", "all")):
        if top in held:
            return Figure(sums_by(held[top], by, picked), sums_by(held[bottom], by, picked))
    return Figure(sums_by(held["sum"] if "sum" in held else held["count"], by, picked))


def sums_by(tally: Tally, by: Sequence[str], picked: Picked | None = None) -> Sums:
    """The sums of a tally by the published codes of some attributes, in their order."""
    names = [attribute.name for attribute in tally.attributes]
    codes = [_added(attribute, by, picked or {}) for attribute in tally.attributes]
    return Sums(tally, tuple(codes), tuple(names.index(name) for name in by))


def _added(attribute: Attribute, by: Sequence[str], picked: Picked) -> Floats:
    """Which codes of an attribute go into which row: a row each, one alone, or all in one row."""
    size = extended_size(attribute)
    if attribute.name in by:
        return np.eye(size)[: attribute.size]
    if attribute.name in picked:
        return np.eye(size)[[place_of(attribute, picked[attribute.name])]]
    return np.ones((1, size))


def place_of(attribute: Attribute, code: str) -> int:
    """The place of a code among those of an attribute."""
    if attribute.scale is not None:
        return attribute.scale.span(read_range(code))[0]
    return [category.code for category in attribute.coded].index(code)


def multiplier(margins: Margins, tallies: Sequence[Tally], level: str | None) -> float:
    """How many deviations make a margin of error of what is computed from several tallies."""
    if margins.rule == "agency":
        return agency_quantile(margins.confidence)
    return max(normal_quantile(margins.confidence), *(margins.multiplier(tally, level) for tally in tallies))


@dataclass(frozen=True, eq=False)
class Computing:
    """Figures of a release at one level, with their intervals."""

    estimated: Estimated
    margins: Margins
    level: str | None

    def multiplier(self, *figures: Figure) -> float:
        """How many deviations make a margin of error of what is computed from some figures."""
        return multiplier(self.margins, [part.tally for figure in figures for part in figure.parts], self.level)

    def told(self, *figures: Figure) -> bool:
        """Whether the measurements tell everything that some figures are made of."""
        parts = [part for figure in figures for part in figure.parts]
        return all(self.estimated.is_known(part.tally, self.level) for part in parts)

    def alone(self, figure: Figure, times: float) -> Derived:
        """A figure by itself, in declared units."""
        if figure.bottom is None:
            estimate = self._estimate(figure.top) * float(figure.tick)
            moe = times * np.sqrt(self._variance(figure.top)) * float(figure.tick)
            return Derived(estimate, estimate - moe, estimate + moe, np.ones(estimate.shape, np.bool_))
        pair = self._pair(figure.top, figure.bottom)
        adds = figure.top.tally.adds
        return proportion(pair, quantile=times) if adds is None else mean_of(adds, pair, quantile=times)

    def compared(self, one: Figure, other: Figure, *, how: str, times: float) -> Derived:
        """One figure set against another: their difference, their ratio, or one in percent of the other."""
        if one.bottom is None and other.bottom is None:
            pair = self._pair(one.top, other.top, float(one.tick), float(other.tick))
            if how == "difference":
                return difference(pair, quantile=times)
            return (percent if how == "percent" else ratio)(pair, quantile=times, signed=one.is_signed)
        sides = self.alone(one, times), self.alone(other, times)
        joint = self._correlation(one, other)
        if how == "difference":
            return difference_of(*sides, correlation=joint)
        found = ratio_of(*sides, correlation=joint)
        return in_percent(found) if how == "percent" else found

    def _pair(self, one: Sums, other: Sums, tick: float = 1.0, other_tick: float = 1.0) -> Pair:
        """Two sums in declared units, with their errors."""
        return Pair(
            self._estimate(one) * tick,
            self._estimate(other) * other_tick,
            (self._variance(one) * tick**2, self._variance(other) * other_tick**2),
            self._covariance(one, other) * tick * other_tick,
        )

    def _correlation(self, one: Figure, other: Figure) -> Floats:
        """The correlation of the errors of two figures; those of quotients as far as they are linear."""
        mine, theirs = self._terms(one), self._terms(other)
        with np.errstate(all="ignore"):
            spread = np.sqrt(self._together(mine, mine) * self._together(theirs, theirs))
            found = self._together(mine, theirs) / spread
        return np.clip(np.where(spread > 0, found, 0.0), -1.0, 1.0)

    def _terms(self, figure: Figure) -> list[tuple[Floats, Sums]]:
        """The sums whose errors make up a figure's error, each with what it counts for."""
        if figure.bottom is None:
            return [(np.ones(()), figure.top)]
        top, bottom = self._estimate(figure.top), self._estimate(figure.bottom)
        with np.errstate(all="ignore"):
            return [(1 / bottom, figure.top), (-top / bottom**2, figure.bottom)]

    def _together(self, mine: list[tuple[Floats, Sums]], theirs: list[tuple[Floats, Sums]]) -> Floats:
        found: Floats = sum(
            (weight * by * self._covariance(one, other) for weight, one in mine for by, other in theirs),
            start=np.zeros(()),
        )
        return found

    def _estimate(self, sums: Sums) -> Floats:
        return estimates(self.estimated, sums, self.level)

    def _variance(self, sums: Sums) -> Floats:
        return variances(self.estimated, sums, self.level)

    def _covariance(self, one: Sums, other: Sums) -> Floats:
        return covariances(self.estimated, one, other, self.level)
