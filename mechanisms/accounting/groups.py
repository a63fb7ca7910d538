"""Which changes one unit can make to a measured vector, and which of them is the worst at the scale of the noise.

A change is one positive whole number for each touched cell: signs do not matter, because the noise is symmetric and
independent. A larger number in one cell dominates a smaller one (see `losses`), so only changes that cannot grow are
listed. Which of several such changes is the worst depends on the scale: that all members of a group in one cell are
worse than members spread over cells is checked by `domination`, never assumed. Where it cannot be shown, all changes
are tried if they are few; else the release has no exact price.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, islice, product
from math import exp

from mechanisms.accounting.conversion import log_inverse
from mechanisms.accounting.domination import dominates
from mechanisms.accounting.losses import GaussianLoss, LaplaceLoss, Loss, ResponseLoss, pure
from mechanisms.charge import Charge
from mechanisms.sensitivity import Counts, Decides, Relation, Sensitivity, Sums

Change = tuple[int, ...]
Losses = frozenset[tuple[Loss, int]]
"""The laws of loss of one change, each with its number of copies."""

MOST_CHOICES = 64
"""As many joint choices of changes are composed one by one."""
MOST_MEMBERS = 16
"""Groups above this size have too many partitions to compare."""
LOG_SLACK = -36.0
"""What one comparison may give away of delta, relative to it: 2 in 10^16."""


class NoExactPrice(ValueError):  # noqa: N818 - a refusal: the zCDP price stands
    """The worst change of a charge cannot be listed or cannot be shown to be the worst."""


@dataclass(frozen=True, slots=True)
class Moves:
    """A family of changes: on each of `sides`, any whole numbers up to `largest` that add up to `total`, times `size`.

    Removed and added rows are two sides: in different cells both are seen; where they meet they cancel.
    """

    sides: int
    total: int
    largest: int
    size: int = 1

    def changes(self) -> Iterator[Change]:
        """All of them, each once."""
        return self._from(partitions(self.total, self.largest))

    def merged_changes(self) -> Iterator[Change]:
        """Those in which no two cells of a side fit into one."""
        return self._from(crowded_partitions(self.total, self.largest))

    def _from(self, ways: Iterator[Change]) -> Iterator[Change]:
        sides = list(islice(ways, MOST_CHOICES + 1))
        if len(sides) > MOST_CHOICES:
            raise NoExactPrice(f"there are too many ways to spread {self.total} over cells")
        for chosen in combinations_with_replacement(sides, self.sides):
            yield tuple(sorted((self.size * part for side in chosen for part in side), reverse=True))


def partitions(total: int, largest: int) -> Iterator[Change]:
    """The ways to write a total as a sum of positive numbers up to the largest, in descending order."""
    if total == 0:
        yield ()
    for part in range(min(total, largest), 0, -1):
        for rest in partitions(total - part, part):
            yield (part, *rest)


def crowded_partitions(total: int, largest: int, *, before: int | None = None) -> Iterator[Change]:
    """The partitions of which no two parts add up to the largest or less."""
    if total == 0:
        yield ()
    least = 1 if before is None else largest - before + 1
    for part in range(min(total, largest, before or largest), least - 1, -1):
        for rest in crowded_partitions(total - part, largest, before=part):
            yield (part, *rest)


def moves(charge: Charge) -> tuple[Moves, ...]:
    """The families of changes of a charge whose noise is added to cells."""
    if isinstance(charge.shape, Counts):
        return (_moves_of_counts(charge.shape, charge),)
    if isinstance(charge.shape, Sums):
        return _moves_of_sums(charge.shape, charge)
    raise NoExactPrice(f"'{charge.query}' measures no cells")


def _moves_of_counts(shape: Counts, charge: Charge) -> Moves:
    replace = charge.relation is Relation.REPLACE
    if charge.unit.is_group or shape.depends_on_the_row_alone:
        rows = charge.unit.rows(shape.of, shape.cap)
        if shape.one_cell:
            return Moves(1, 1, 1, rows)
        return Moves(2 if replace else 1, rows * shape.answers, rows)
    moved = shape.cap if shape.by is Decides.GROUP and shape.cap else 1
    moved *= 2 if replace else 1  # an exchange touches two groups, and both may leave the same cell for the same other
    return Moves(2, moved, moved)


def _moves_of_sums(shape: Sums, charge: Charge) -> tuple[Moves, ...]:
    rows, furthest, width = charge.unit.rows(shape.of, shape.cap), shape.furthest, shape.high - shape.low
    replace = charge.relation is Relation.REPLACE
    if shape.one_cell:
        return (Moves(1, 1, 1, rows * (max(width, furthest) if replace else furthest)),)
    if not replace:
        return (Moves(1, rows, rows, furthest),)
    if width <= furthest:  # no value crosses zero, so what leaves and what enters a cell never add up
        return (Moves(2, rows, rows, furthest),)
    if rows > 1:
        raise NoExactPrice(f"'{charge.query}' sums values of both signs over the records of a group")
    return Moves(2, 1, 1, furthest), Moves(1, 1, 1, width)


def changes(charge: Charge) -> tuple[Change, ...]:
    """Every change of a charge that no other one outgrows cell by cell."""
    found = {change for family in moves(charge) for change in family.changes()}
    return tuple(sorted(found, reverse=True))


@dataclass(frozen=True, slots=True)
class Candidates:
    """The alternatives among which the worst case of a measurement is, and the delta that finding them gave away."""

    alternatives: frozenset[Losses]
    slack: Fraction = Fraction(0)


def candidates(charge: Charge, delta: Fraction) -> Candidates:
    """The worst changes of a charge as laws of loss; every mechanism that only states an epsilon is at its worst."""
    name, epsilon = charge.mechanism.name, charge.epsilon
    if name == "randomised_response":
        return _single({_response(charge): int(charge.sensitivity.l1)})
    if name in ("discrete_gaussian", "discrete_laplace"):
        try:
            return _worst(charge, delta)
        except NoExactPrice:
            if epsilon is None:
                raise
    if epsilon is None:
        raise NoExactPrice(f"'{charge.query}' has neither a known law nor a pure price")
    return _single({pure(epsilon): 1})


def _single(losses: dict[Loss, int]) -> Candidates:
    return Candidates(frozenset({frozenset(losses.items())}))


def _response(charge: Charge) -> Loss:
    """One answer, at its pure price, which may have been rounded up."""
    epsilon = charge.mechanism.epsilon(Sensitivity(Fraction(1), Fraction(1)))
    if epsilon is None:
        raise NoExactPrice(f"'{charge.query}' states no pure price for one answer")
    choices = int(charge.mechanism.parameters["choices"])
    return pure(epsilon) if choices == 2 else ResponseLoss(epsilon, choices)


def _law(charge: Charge, shift: int) -> Loss:
    if charge.mechanism.name == "discrete_gaussian":
        return GaussianLoss(charge.mechanism.parameters["variance"], shift)
    return LaplaceLoss(charge.mechanism.parameters["scale"], shift)


def _worst(charge: Charge, delta: Fraction) -> Candidates:
    """The changes that remain when cells that may be merged are merged."""
    log_slack = LOG_SLACK - log_inverse(delta)
    found: set[Change] = set()
    comparisons = 0
    for family in moves(charge):
        if family.largest > MOST_MEMBERS:
            raise NoExactPrice(f"'{charge.query}' protects groups of {family.largest}: too many ways to spread them")
        if _merging_is_worse(charge, family, log_slack):
            found.update(family.merged_changes())
            comparisons += family.sides * family.total if family.largest > 1 else 0
        else:
            found.update(family.changes())
    if len(found) > MOST_CHOICES:
        raise NoExactPrice(f"'{charge.query}' has too many changes, and none could be shown to be the worst")
    alternatives = frozenset(_laws(charge, change) for change in found)
    return Candidates(alternatives, comparisons * Fraction(exp(log_slack)) if comparisons else Fraction(0))


def _laws(charge: Charge, change: Change) -> Losses:
    return frozenset(Counter(_law(charge, shift) for shift in change).items())


def _merging_is_worse(charge: Charge, family: Moves, log_slack: float) -> bool:
    """Whether a + b in one cell is worse than a and b in two, for all that fit into one cell."""
    pairs = ((a, whole - a) for whole in range(2, family.largest + 1) for a in range(1, whole // 2 + 1))
    return all(
        dominates(
            _law(charge, family.size * (a + b)),
            (_law(charge, family.size * a), _law(charge, family.size * b)),
            log_slack=log_slack,
        )
        for a, b in pairs
    )


def together(parts: Iterable[Candidates]) -> Candidates:
    """What several measurements of the same unit are: any alternative of each."""
    parts = list(parts)
    count = 1
    for part in parts:
        count *= len(part.alternatives)
        if count > MOST_CHOICES:
            raise NoExactPrice("there are too many joint choices of changes, and none could be shown to be the worst")
    joint = frozenset(_sum(choice) for choice in product(*(part.alternatives for part in parts)))
    return Candidates(joint, sum((part.slack for part in parts), Fraction(0)))


def either(parts: Iterable[Candidates]) -> Candidates:
    """What a unit is that is in one of several parts: any alternative of any of them."""
    parts = list(parts)
    alternatives = frozenset(losses for part in parts for losses in part.alternatives)
    if len(alternatives) > MOST_CHOICES:
        raise NoExactPrice("there are too many parts with different noise")
    return Candidates(alternatives, max(part.slack for part in parts))


def _sum(choice: Iterable[Losses]) -> Losses:
    total: Counter[Loss] = Counter()
    for losses in choice:
        total.update(dict(losses))
    return frozenset(total.items())
