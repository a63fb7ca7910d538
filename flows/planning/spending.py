"""Who gets how much of an edition's budget: promises first, stated shares as stated, the rest optimally."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil

from flows.planning.families import Means, choose_means
from flows.planning.market import Amounts, Stall
from flows.planning.optimal import Aim, divide_optimally
from flows.planning.promises import Target, shown, target_for, targets_of
from flows.planning.purse import Purse
from flows.planning.shares import Line, Wish, lines_of
from flows.terminal import UserError
from mechanisms.choose import Currency
from release_specs.checks.draft import Draft
from release_specs.language.values import write_number

NOTHING = Fraction(0)


@dataclass(frozen=True, slots=True)
class Spending:
    """The amount of every query that is measured, in the order of the spec, in one currency."""

    means: Means
    amounts: Mapping[Wish, Fraction]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Floor:
    """The least amount that keeps a query's promise; None where no amount does."""

    target: Target
    price: Fraction | None


Floors = Mapping[Wish, _Floor]


def spend_budget(stall: Stall, wishes: Sequence[Wish], purses: Sequence[Purse]) -> Spending:
    """Divides what an edition may spend among its queries. Refuses promises that cannot be kept."""
    draft = stall.draft
    targets = targets_of(draft)
    means = choose_means(purses, _shares(draft, wishes, targets))
    floors = _floors(means, wishes, targets)
    lines = lines_of(draft.spec.spend, wishes, means.purse.budget)
    amounts = _divided(stall, means, lines, floors)
    in_order = {wish: amounts[wish] for wish in wishes if wish in amounts}
    kept = _Kept(means, in_order, lines, floors)
    unkept = [(target, kept.sentence(target, wish)) for target, wish in kept.broken(targets, wishes)]
    refused = [sentence for target, sentence in unkept if target.binding]
    if refused:
        raise UserError("\n".join(refused))
    return Spending(means, in_order, tuple(sentence for _, sentence in unkept))


def _shares(draft: Draft, wishes: Sequence[Wish], targets: Sequence[Target]) -> Amounts:
    """Shares as they are without promises, in no currency: enough to compare families of noise."""
    found: Amounts = {}
    aim = Aim(draft.spec.spend.optimal, Currency.RHO)
    for line in lines_of(draft.spec.spend, wishes, Fraction(1)):
        paid = [wish for wish in line.wishes if not line.only_promises or target_for(targets, wish) is not None]
        _require_amount(line)
        weights = [_weight(aim, wish) for wish in paid]
        found |= dict(zip(paid, divide_optimally(line.amount, weights, [NOTHING] * len(paid)), strict=True))
    if not found:
        raise UserError("spend: no table is measured; give one a share")
    return found


def _require_amount(line: Line) -> None:
    if line.amount <= 0:
        names = ", ".join(dict.fromkeys(wish.tally.table for wish in line.wishes))
        raise UserError(f"spend: nothing is left for {names}; lower some shares")


def _weight(aim: Aim, wish: Wish) -> Fraction:
    return aim.weight(wish.tally.table, wish.place, cells=wish.cells)


def _floors(means: Means, wishes: Sequence[Wish], targets: Sequence[Target]) -> dict[Wish, _Floor]:
    found = {}
    for wish in wishes:
        target = target_for(targets, wish)
        if target is not None:
            found[wish] = _Floor(target, target.price(partial(means.noise, wish)))
    return found


def _divided(stall: Stall, means: Means, lines: Sequence[Line], floors: Floors) -> Amounts:
    """The amounts of all lines: no query below its promise, the binding promises before the others."""
    apart: list[Line] = []
    least: Amounts = {}
    for line in lines:
        if line.only_promises:
            apart += [Line(amount, (wish,)) for wish, amount in _only_promises(line, floors).items()]
            continue
        _require_amount(line)
        apart.append(line)
        every, binding = (_least(line, floors, only_binding=only) for only in (False, True))
        kept = every if sum(every, NOTHING) <= line.amount else binding
        least |= dict(zip(line.wishes, kept, strict=True))
    return stall.divide(apart, least, means)


def _least(line: Line, floors: Floors, *, only_binding: bool) -> list[Fraction]:
    found = [floors.get(wish) for wish in line.wishes]
    wanted = [one if one is not None and (one.target.binding or not only_binding) else None for one in found]
    return [one.price if one is not None and one.price is not None else NOTHING for one in wanted]


def _only_promises(line: Line, floors: Floors) -> Amounts:
    """Nobody divides what is left, so each promise is bought at its price; what promises nothing is not measured."""
    priced = {wish: floors[wish].price for wish in line.wishes if wish in floors}
    bought = {wish: price for wish, price in priced.items() if price is not None}
    unpaid = [wish for wish in line.wishes if wish not in bought and not _is_summed(wish, bought)]
    if unpaid:
        names = ", ".join(f"'{wish.tally.table}' at {wish.place}" for wish in unpaid)
        raise UserError(f"spend: {names} has no share and no promise that buys it; add rest: optimal, or a share")
    binding = sum((price for wish, price in bought.items() if floors[wish].target.binding), NOTHING)
    others = sum(bought.values(), NOTHING) - binding
    if binding >= line.amount:
        return {wish: price * line.amount / (binding + others) for wish, price in bought.items()}
    reach = min(Fraction(1), (line.amount - binding) / others) if others else Fraction(1)
    return {wish: price if floors[wish].target.binding else price * reach for wish, price in bought.items()}


def _is_summed(wish: Wish, bought: Mapping[Wish, Fraction]) -> bool:
    """Whether a smaller level of the same tally is bought."""
    levels = wish.tally.levels
    below = levels[levels.index(wish.level) + 1 :] if wish.level is not None else ()
    return any(one.tally == wish.tally and one.level in below for one in bought)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A division and its promises."""

    means: Means
    amounts: Amounts
    lines: Sequence[Line]
    floors: Floors

    def broken(self, targets: Sequence[Target], wishes: Sequence[Wish]) -> Iterator[tuple[Target, Wish | None]]:
        """The promises that are not kept, with the query that breaks each; None where it is not measured."""
        for target in targets:
            mine = [wish for wish in wishes if target_for([target], wish) and wish in self.amounts]
            if not mine:
                yield target, None
            for wish in mine:
                if not target.is_kept_by(self.means.noise(wish, self.amounts[wish])):
                    yield target, wish

    def sentence(self, target: Target, wish: Wish | None) -> str:
        """What a broken promise gets, what it asked for, and what would keep it."""
        asked = f"a margin of {shown(target.margin)} at {write_number(target.confidence * 100)}% is promised"
        if wish is None:
            return f"{target}: {asked}, and the table is not measured there; give it a share, or delete the promise"
        gets = shown(target.margin_of(self.means.noise(wish, self.amounts[wish])))
        budget = self._budget_for(wish)
        if budget is None:
            return f"{target}: {asked}, and the budget buys {gets}; no budget keeps it: promise a wider margin"
        return (
            f"{target}: {asked}, and the budget buys {gets}. A budget of {self.means.purse.currency} {budget} for this "
            f"edition (now {_rounded_up(self.means.purse.budget)}) would keep it; or raise its share, widen the "
            "margin, or write otherwise: warn"
        )

    def _budget_for(self, wish: Wish) -> str | None:
        """What the edition would need to spend so that the query's line keeps this promise and the binding ones."""
        line = next(line for line in self.lines if wish in line.wishes)
        own = self.floors[wish].price
        if own is None:
            return None
        others = _least(line, {one: floor for one, floor in self.floors.items() if one is not wish}, only_binding=True)
        return _rounded_up(self.means.purse.budget * (own + sum(others, NOTHING)) / line.amount)


def _rounded_up(amount: Fraction) -> str:
    """An amount as a person reads it: four digits, rounded up."""
    unit = Fraction(1)
    while amount / unit < 1000:
        unit /= 10
    while amount / unit >= 10_000:
        unit *= 10
    return write_number(ceil(amount / unit) * unit)
