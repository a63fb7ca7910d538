"""How `spend` divides an edition's budget: stated shares as stated, what is left by `rest`, lines within lines.

A *wish* is one query that may be measured. A *line* is an amount for some wishes: whoever divides it further does so
optimally. Every wish is in one line at most; one in none is published and not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mechanisms.sensitivity import Sensitivity, Shape
from release_specs.checks.spend import tables_in
from release_specs.language.tables import Spend
from release_specs.language.values import Share, ShareWord
from release_specs.tallies import Tally

WHOLE = "whole"
"""The level of rows that lie in no area."""


@dataclass(frozen=True, slots=True, eq=False)
class Wish:
    """A tally at one level, as it may be measured."""

    tally: Tally
    level: str | None
    shape: Shape
    sensitivity: Sensitivity
    mechanism: str
    """What the table says: auto, laplace or gaussian."""

    @property
    def place(self) -> str:
        """The level's name."""
        return self.level or WHOLE

    @property
    def name(self) -> str:
        """What tells it from all other queries of a release."""
        return f"{self.tally.name}:{self.place}"

    @property
    def cells(self) -> int:
        """All cells of all areas, the hidden ones included."""
        return self.tally.areas(self.level) * self.tally.cells


@dataclass(frozen=True, slots=True)
class Line:
    """An amount for some wishes. Where only promises are bought, what they do not need is left."""

    amount: Fraction
    wishes: tuple[Wish, ...]
    only_promises: bool = False


@dataclass(frozen=True, slots=True)
class _Division:
    """An amount divided by table or by level: the named shares, what is beneath each, and the rest."""

    key: Callable[[Wish], str]
    shares: Mapping[str, Share]
    beneath: Mapping[str, _Division]
    rest: str | None


def lines_of(spend: Spend, wishes: Sequence[Wish], budget: Fraction) -> list[Line]:
    """The lines of an edition's budget; without `spend` one line for all."""
    return [line for line in _lines(_division(spend), tuple(wishes), budget) if line.wishes]


def _division(spend: Spend) -> _Division | None:
    if spend.by_table is not None:
        lines = spend.by_table.named
        levels = {key: _of_levels(part.at.named, part.at.rest) for key, part in lines.items() if part.at is not None}
        return _Division(_table, {key: part.share for key, part in lines.items()}, levels, spend.by_table.rest)
    if spend.by_level is not None:
        parts = spend.by_level.named
        tables = {
            key: _Division(_table, part.tables.named, {}, part.tables.rest)
            for key, part in parts.items()
            if part.tables is not None
        }
        return _Division(_place, {key: part.share for key, part in parts.items()}, tables, spend.by_level.rest)
    return None


def _of_levels(shares: Mapping[str, Share], rest: str | None) -> _Division:
    return _Division(_place, shares, {}, rest)


def _table(wish: Wish) -> str:
    return wish.tally.table


def _place(wish: Wish) -> str:
    return wish.place


def _lines(division: _Division | None, wishes: tuple[Wish, ...], amount: Fraction) -> Iterator[Line]:
    if division is None:
        yield Line(amount, wishes)
        return
    left = amount * (1 - sum((one for one in division.shares.values() if isinstance(one, Fraction)), Fraction(0)))
    named: set[str] = set()
    for key, share in division.shares.items():
        names = tables_in(key)
        named.update(names)
        mine = tuple(wish for wish in wishes if division.key(wish) in names)
        if share is not ShareWord.NONE:
            part = amount * share if isinstance(share, Fraction) else left
            yield from _lines(division.beneath.get(key), mine, part)
    others = tuple(wish for wish in wishes if division.key(wish) not in named)
    yield from _rest(division, others, left)


def _rest(division: _Division, wishes: tuple[Wish, ...], left: Fraction) -> Iterator[Line]:
    """What is left, for whoever is not named."""
    if division.rest == "equal":
        keys = dict.fromkeys(division.key(wish) for wish in wishes)
        for key in keys:
            yield Line(left / len(keys), tuple(wish for wish in wishes if division.key(wish) == key))
    else:
        yield Line(left, wishes, only_promises=division.rest is None)
