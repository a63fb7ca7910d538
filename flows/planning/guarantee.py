"""What a plan guarantees, stated in every currency that has a proved bound, in words where numbers would mislead."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mechanisms.accountant import below_levels, by_attribute, for_groups, rounded_up, state
from mechanisms.accounting.conversion import epsilon_tight
from mechanisms.charge import Charge
from mechanisms.sensitivity import RECORD, NoProvedBound, Relation
from release_specs.reading.resolve import members_of
from release_specs.spec import ReleaseSpec

if TYPE_CHECKING:
    from flows.plan import Plan

GROUP_SIZES = (2, 4, 8)
"""For so many units together the guarantee is restated."""


def guarantee(plan: Plan) -> dict[str, Any]:
    """The guarantee as plain data: what the published epsilon is, how it was found, and the other prices beside it."""
    charges, delta = plan.charges, plan.delta
    found = state(charges, delta)
    published = found.published
    return {
        "protects": unit_in_words(plan.spec),
        "neighbours": str(found.relation),
        "neighbours_in_words": relation_in_words(plan.spec),
        "rho": str(found.rho),
        "delta": None if delta is None else str(delta),
        "epsilon": str(published.rounded),
        "conversion": published.name,
        "prices": [
            {
                "name": price.name,
                "epsilon": None if price.rounded is None else str(price.rounded),
                "note": price.note,
                "publishable": price.publishable,
            }
            for price in found.prices
        ],
        "groups": [_group(charges, delta, size) for size in GROUP_SIZES],
        "attributes": {} if delta is None else _texts(by_attribute(charges, delta)),
        "levels": _below_levels(plan),
        "record_view": _record_view(plan),
    }


def unit_in_words(spec: ReleaseSpec) -> str:
    """Whose presence is hidden, in words."""
    protect, caps = spec.privacy.protect, spec.privacy.caps
    members = members_of(spec, protect)
    if not members:
        return f"one record of {protect}"
    most = " and ".join(f"at most {caps[member]} {member}" for member in members)
    single = " or one single record" if spec.privacy.singles is not None else ""
    return f"one of {protect} with all its rows, of which {most} are counted{single}"


def relation_in_words(spec: ReleaseSpec) -> str:
    """Which two datasets the guarantee does not tell apart."""
    if spec.privacy.neighbours == "replace":
        return "two datasets that differ in one unit, exchanged for any other"
    return "two datasets of which one has one unit more"


def _group(charges: tuple[Charge, ...], delta: Fraction | None, size: int) -> dict[str, Any]:
    found = for_groups(charges, delta, size=size)
    return {
        "size": size,
        "rho": str(found.rho),
        "epsilon_pure": None if found.epsilon is None else str(rounded_up(found.epsilon)),
        "epsilon_tight": None if found.tight is None else str(rounded_up(found.tight)),
    }


def _texts(epsilons: dict[str, float]) -> dict[str, str]:
    return {name: str(rounded_up(epsilon)) for name, epsilon in epsilons.items()}


def _below_levels(plan: Plan) -> dict[str, dict[str, str]]:
    """For every geography and level the epsilon of where within an area a unit is.

    Charges on other geographies may tell it too, so they are taken for finer ones.
    """
    if plan.delta is None:
        return {}
    charged = {charge.level for charge in plan.charges}
    found = {}
    for name, tree in plan.domain.hierarchies.items():
        if charged & set(tree.levels):
            others = sorted(charged - set(tree.levels) - {"whole"})
            levels = ["whole", *tree.levels, *others]
            told = below_levels(plan.charges, plan.delta, levels=levels)
            found[name] = _texts({level: told[level] for level in tree.levels[:-1]})
    return found


@dataclass(frozen=True, slots=True)
class _Seen:
    """A charge as one record of a protected group sees it; `households` is above 0 where the law has no line."""

    rho: Fraction
    epsilon: Fraction | None
    households: int = 0


def _record_view(plan: Plan) -> dict[str, Any] | None:
    """What a guarantee for groups is worth for one of their records; None where records are protected anyway."""
    unit = plan.charges[0].unit
    if not unit.is_group:
        return None
    seen = [_seen_by_a_record(charge) for charge in plan.charges]
    rho = sum((one.rho for one in seen), Fraction(0))
    pure = [one.epsilon for one in seen if one.epsilon is not None]
    basic = sum(pure, Fraction(0)) if len(pure) == len(seen) else None
    without = [query.name for query, one in zip(plan.queries, seen, strict=True) if one.households]
    return {
        "protects": f"one record of {' or '.join(members_of(plan.spec, plan.spec.privacy.protect))}",
        "rho": str(rho),
        "epsilon_pure": None if basic is None else str(rounded_up(basic)),
        "epsilon_tight": None if plan.delta is None else str(rounded_up(epsilon_tight(rho, plan.delta))),
        "without_a_line": without,
        "note": _whole_groups(plan) if without else "",
    }


def _whole_groups(plan: Plan) -> str:
    """Said of queries for which the law has no line for one record."""
    protect = plan.spec.privacy.protect
    if plan.charges[0].relation is Relation.REPLACE:
        return f"an exchanged record's data changes two of {protect}: twice the replace-{protect} step"
    return f"one record's data changes one of {protect}: the replace-{protect} price"


def _seen_by_a_record(charge: Charge) -> _Seen:
    """The law's line for one record where there is one; else what exchanging its whole group costs.

    A record that is exchanged leaves one group and enters another: two groups are then exchanged.
    """
    try:
        own = replace(charge, unit=RECORD)
        return _Seen(own.rho, own.epsilon)
    except NoProvedBound:
        size = 2 if charge.relation is Relation.REPLACE else 1
        found = for_groups([replace(charge, relation=Relation.REPLACE)], None, size=size)
        return _Seen(found.rho, found.epsilon, size)
