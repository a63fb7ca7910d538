"""Charges together: one after another on the same units, or side by side on disjoint parts of them.

Sequential prices add. Parallel prices follow the privacy law, "Several measurements": a unit that comes or goes is in
one part, so the largest add-remove price is the price. A unit that is exchanged leaves one part and enters another, or
changes within a part: twice the largest add-remove price, or the price of the change within, whichever is larger. Where
every part is a single cell that counts the unit once, leaving and entering cost the two largest. Nothing costs more
side by side than one after another, which is always valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

from mechanisms.accounting.groups import Candidates, NoExactPrice, candidates, either, together
from mechanisms.charge import Charge
from mechanisms.sensitivity import Counts, NoProvedBound, Relation, Rows, Scores, Sums, Unit

Currency = Callable[[Charge], Fraction]
"""What one charge costs in a currency."""


class DifferentIdentity(ValueError):  # noqa: N818 - a refusal of the privacy law, rule 9
    """Charges for different units or under different relations are never added."""


def identity(charges: Iterable[Charge]) -> tuple[Unit, Relation]:
    """The unit and the relation that all charges share."""
    found = {(charge.unit, charge.relation) for charge in charges}
    if not found:
        raise ValueError("there is nothing to price: no charge was given")
    if len(found) > 1:
        shown = "; ".join(sorted(f"{unit} under {relation}" for unit, relation in found))
        raise DifferentIdentity(f"prices for different units or relations are never added without conversion: {shown}")
    return found.pop()


@dataclass(frozen=True, slots=True)
class Parallel:
    """Charges on disjoint parts of the units; a part is one charge or several, which add up.

    The parts must be told apart by the unit's own row and by codes that are declared. A multi-response attribute makes
    no parts: a record may be in several of them.
    """

    parts: tuple[Charge | tuple[Charge, ...], ...]

    def __post_init__(self) -> None:
        unit, _ = identity(self.charges)
        for charge in self.charges:
            if not unit.is_group and not charge.shape.depends_on_the_row_alone:
                raise NoProvedBound(f"'{charge.query}' is no part of a partition: other records move what it counts")
        if len({_rows(charge) for charge in self.charges}) > 1:
            raise NoProvedBound("a record and its group may lie in two parts: parts count either records or groups")
        if not all(self._each):
            raise ValueError("a part without a charge has no price; leave it out")
        self.rho  # noqa: B018 - a bound that does not exist is refused now, not when it is needed

    @property
    def _each(self) -> list[tuple[Charge, ...]]:
        return [part if isinstance(part, tuple) else (part,) for part in self.parts]

    @property
    def charges(self) -> Iterator[Charge]:
        """All charges of all parts."""
        return (charge for part in self._each for charge in part)

    @property
    def epsilon(self) -> Fraction | None:
        """The pure price, or None where a part has none."""
        if any(charge.epsilon is None for charge in self.charges):
            return None
        return self._price(lambda charge: charge.epsilon or Fraction(0))

    @property
    def rho(self) -> Fraction:
        """The price in zCDP."""
        return self._price(lambda charge: charge.rho)

    def _price(self, price: Currency) -> Fraction:
        _, relation = identity(self.charges)
        one_after_another = sum((_total(part, price) for part in self._each), Fraction(0))
        whole = [_with_whole_groups(part) for part in self._each]
        within = max(_total(part, price) for part in whole)
        if relation is Relation.ADD_REMOVE:
            return min(within, one_after_another)
        crossing = sorted((_total(_coming_or_going(part), price) for part in whole), reverse=True)
        both = sum(crossing[:2], Fraction(0)) if self._single_cells else 2 * crossing[0]
        return min(max(within, both), one_after_another)

    @property
    def _single_cells(self) -> bool:
        """Whether every part is one cell that counts a unit at most once."""
        return all(len(part) == 1 and part[0].shape.one_cell and _is_one_row(part[0]) for part in self._each)

    def candidates(self, delta: Fraction) -> Candidates:
        """The alternatives for the worst change: within a part, or out of one and into another."""
        _, relation = identity(self.charges)
        if not all(_is_one_row(charge) for charge in self.charges):
            raise NoExactPrice("a group may be spread over the parts of a partition in too many ways")
        within = [together(candidates(charge, delta) for charge in part) for part in self._each]
        if relation is Relation.ADD_REMOVE:
            return either(within)
        crossing = [together(candidates(c, delta) for c in _coming_or_going(part)) for part in self._each]
        return either([*within, *(together(pair) for pair in combinations(crossing, 2))])


def _total(part: tuple[Charge, ...], price: Currency) -> Fraction:
    return sum((price(charge) for charge in part), Fraction(0))


def _coming_or_going(part: tuple[Charge, ...]) -> tuple[Charge, ...]:
    return tuple(replace(charge, relation=Relation.ADD_REMOVE) for charge in part)


def _with_whole_groups(part: tuple[Charge, ...]) -> tuple[Charge, ...]:
    """The charges without caps of their own: a group that fills the cap of one part may go on in the next."""
    return tuple(
        charge if _is_one_row(charge) else replace(charge, shape=replace(charge.shape, cap=None)) for charge in part
    )


def _rows(charge: Charge) -> Rows:
    return charge.shape.of if isinstance(charge.shape, Counts | Sums | Scores) else Rows.RECORDS


def _is_one_row(charge: Charge) -> bool:
    """Whether a unit is one row of what the charge measures."""
    return not charge.unit.is_group or _rows(charge) is Rows.GROUPS


@dataclass(frozen=True, slots=True)
class Sequential:
    """Charges on the same units, one after another: different tables, levels of a hierarchy. Their prices add."""

    parts: tuple[Charge | Parallel, ...]

    def __post_init__(self) -> None:
        identity(self.charges)

    @property
    def charges(self) -> Iterator[Charge]:
        """All charges, those of parallel parts too."""
        for part in self.parts:
            yield from (part,) if isinstance(part, Charge) else part.charges

    @property
    def epsilon(self) -> Fraction | None:
        """The pure price, or None where a part has none."""
        prices = self.epsilons
        return None if prices is None else sum(prices, Fraction(0))

    @property
    def epsilons(self) -> tuple[Fraction, ...] | None:
        """The pure price of each part."""
        prices = [part.epsilon for part in self.parts]
        known = tuple(price for price in prices if price is not None)
        return known if len(known) == len(prices) else None

    @property
    def rho(self) -> Fraction:
        """The price in zCDP."""
        return sum((part.rho for part in self.parts), Fraction(0))

    def candidates(self, delta: Fraction) -> Candidates:
        """The alternatives for the worst change of all measurements together."""
        found = (candidates(part, delta) if isinstance(part, Charge) else part.candidates(delta) for part in self.parts)
        return together(found)

    def under(self, relation: Relation) -> Sequential:
        """The same charges for another relation between neighbours."""
        return Sequential(tuple(_under(relation, part) for part in self.parts))

    def only(self, keep: Callable[[Charge], bool]) -> Sequential | None:
        """The part of the plan whose charges are kept, or None where nothing is left."""
        kept = [part for part in (_only(part, keep) for part in self.parts) if part is not None]
        return Sequential(tuple(kept)) if kept else None


def _under(relation: Relation, part: Charge | Parallel) -> Charge | Parallel:
    if isinstance(part, Charge):
        return replace(part, relation=relation)
    groups = [each if isinstance(each, tuple) else (each,) for each in part.parts]
    return Parallel(tuple(tuple(replace(charge, relation=relation) for charge in group) for group in groups))


def _only(part: Charge | Parallel, keep: Callable[[Charge], bool]) -> Charge | Parallel | None:
    if isinstance(part, Charge):
        return part if keep(part) else None
    groups = [tuple(filter(keep, each if isinstance(each, tuple) else (each,))) for each in part.parts]
    left = tuple(group for group in groups if group)
    return Parallel(left) if left else None
