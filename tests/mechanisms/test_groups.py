"""Which changes one unit can make: listed for the accountant, against all neighbours on small domains."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest

from mechanisms.accounting.composition import exact_epsilon
from mechanisms.accounting.groups import (
    Candidates,
    Change,
    Moves,
    NoExactPrice,
    candidates,
    changes,
    crowded_partitions,
    either,
    partitions,
    together,
)
from mechanisms.accounting.losses import GaussianLoss, LaplaceLoss, Loss, ResponseLoss, pure
from mechanisms.charge import Charge, Mechanism
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.exponential_mechanism import ExponentialMechanism
from mechanisms.randomised_response import RandomisedResponse
from mechanisms.sensitivity import RECORD, Counts, Decides, Relation, Responses, Rows, Scores, Shape, Sums, Unit
from tests.mechanisms import neighbours
from tests.mechanisms.neighbours import Domain, Query, Vector, arrivals_of, houses
from tests.mechanisms.small_tables import built_groups, has_one_a, is_even, kept, of_group, own, records_by

TEN = Fraction(1, 10**10)
ADD_REMOVE, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE
NOISE = DiscreteGaussian(Fraction(100))


def listed(shape: Shape, unit: Unit, relation: Relation) -> tuple[Change, ...]:
    return changes(Charge("query", NOISE, shape, unit, relation))


@pytest.mark.parametrize(
    ("shape", "unit", "added", "exchanged"),
    [
        (Counts(), RECORD, {(1,)}, {(1, 1)}),
        (Counts(one_cell=True), RECORD, {(1,)}, {(1,)}),
        (Counts(answers=3), RECORD, {(1, 1, 1)}, {(1,) * 6}),
        (Counts(cap=2), RECORD, {(1, 1)}, {(2, 2), (2, 1, 1), (1, 1, 1, 1)}),
        (Counts(of=Rows.GROUPS), RECORD, {(1,)}, {(1, 1)}),
        (Counts(of=Rows.GROUPS, by=Decides.MEMBERS), RECORD, {(1, 1)}, {(2, 2), (2, 1, 1), (1, 1, 1, 1)}),
        (Counts(of=Rows.GROUPS, by=Decides.MEMBERS), Unit(4), {(1,)}, {(1, 1)}),
        (Counts(), Unit(2), {(2,), (1, 1)}, {(2, 2), (2, 1, 1), (1, 1, 1, 1)}),
        (Counts(one_cell=True), Unit(3), {(3,)}, {(3,)}),
        (Counts(cap=2), Unit(3), {(2,), (1, 1)}, {(2, 2), (2, 1, 1), (1, 1, 1, 1)}),
        (Counts(answers=2), Unit(2), {(2, 2), (2, 1, 1), (1, 1, 1, 1)}, None),
        (Counts(by=Decides.GROUP, cap=2), RECORD, {(2, 2), (2, 1, 1), (1, 1, 1, 1)}, None),
        (Sums(-5, 7), RECORD, {(7,)}, {(7, 7), (12,)}),
        (Sums(3, 7), RECORD, {(7,)}, {(7, 7)}),
        (Sums(-5, 7, one_cell=True), RECORD, {(7,)}, {(12,)}),
        (Sums(3, 7, one_cell=True), RECORD, {(7,)}, {(7,)}),
        (Sums(0, 7), Unit(2), {(14,), (7, 7)}, {(14, 14), (14, 7, 7), (7, 7, 7, 7)}),
        (Sums(-5, 7, one_cell=True), Unit(2), {(14,)}, {(24,)}),
        (Sums(-5, 7, of=Rows.GROUPS), Unit(2), {(7,)}, {(7, 7), (12,)}),
    ],
)
def test_every_line_of_the_law_has_its_changes(
    shape: Shape, unit: Unit, added: set[Change], exchanged: set[Change] | None
) -> None:
    assert set(listed(shape, unit, ADD_REMOVE)) == added
    if exchanged is not None:
        assert set(listed(shape, unit, REPLACE)) == exchanged


SHAPES = (Counts(), Counts(cap=3), Counts(answers=2), Counts(one_cell=True), Sums(-5, 7), Sums(0, 7), Sums(-9, -2))


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("unit", [RECORD, Unit(3)])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_longest_change_is_as_long_as_the_sensitivity(shape: Shape, unit: Unit, relation: Relation) -> None:
    if isinstance(shape, Sums) and shape.low < 0 < shape.high and unit.is_group and relation is REPLACE:
        with pytest.raises(NoExactPrice, match="both signs"):
            listed(shape, unit, relation)
        return
    found = listed(shape, unit, relation)
    sensitivity = shape.sensitivity(unit, relation)
    assert max(sum(part**2 for part in change) for change in found) == sensitivity.l2_squared
    assert max(sum(change) for change in found) <= sensitivity.l1


def moves_of(query: Query, domain: Domain, unit: Unit, relation: Relation) -> set[Vector]:
    """Every change that neighbours show."""
    found: set[Vector] = set()
    for steps in neighbours.changes(query, domain, arrivals_of(unit)):
        if relation is ADD_REMOVE:
            found |= steps
        else:
            found |= {tuple(a - b for a, b in zip(*pair, strict=True)) for pair in combinations(steps, 2)}
    return found


def fits(move: Vector, change: Change) -> bool:
    """Whether a change is at least as large cell by cell, the largest against the largest."""
    sizes = sorted((abs(number) for number in move if number), reverse=True)
    return len(sizes) <= len(change) and all(size <= part for size, part in zip(sizes, change, strict=False))


YES_NO = (True, False)
CASES: dict[str, tuple[Shape, Unit, Query, Domain]] = {
    "records": (Counts(), RECORD, records_by(own, "abc"), Domain(own=("a", "b", "c"), places=((None, 3),))),
    "records of capped groups": (Counts(cap=2), RECORD, records_by(own, "ab", counted=kept(2)), houses(3, 3)),
    "groups by parity": (
        Counts(of=Rows.GROUPS, by=Decides.MEMBERS),
        RECORD,
        built_groups(is_even, YES_NO),
        houses(3, 3),
    ),
    "records by their group": (
        Counts(by=Decides.GROUP, cap=2),
        RECORD,
        records_by(of_group(has_one_a), YES_NO, counted=kept(2)),
        houses(3, 3),
    ),
    "records by their own column and their group": (
        Counts(by=Decides.GROUP, cap=2),
        RECORD,
        records_by(
            lambda record, town: (record.own, has_one_a(record.group, town)),
            [(said, one) for said in "ab" for one in YES_NO],
            counted=kept(2),
        ),
        houses(3, 3),
    ),
    "records of protected groups": (Counts(), Unit(2), records_by(own, "ab", counted=kept(2)), houses(3, 2)),
    "sums over zero": (
        Sums(-2, 3),
        RECORD,
        records_by(lambda record, _: record.own[0], "ab", amount=lambda record: record.own[1]),
        Domain(own=tuple((cell, value) for cell in "ab" for value in (-2, 0, 3)), places=((None, 2),)),
    ),
    "sums of protected groups": (
        Sums(0, 3),
        Unit(2),
        records_by(lambda record, _: record.own[0], "ab", amount=lambda record: record.own[1], counted=kept(2)),
        houses(2, 2, own=tuple((cell, value) for cell in "ab" for value in (0, 3))),
    ),
}


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("case", CASES)
def test_no_pair_of_neighbours_makes_a_change_that_is_not_covered(case: str, relation: Relation) -> None:
    shape, unit, query, domain = CASES[case]
    known = listed(shape, unit, relation)
    found = moves_of(query, domain, unit, relation)
    assert len(found) > 2
    assert [move for move in found if not any(fits(move, change) for change in known)] == []


def test_partitions_are_all_and_each_once() -> None:
    assert list(partitions(4, 4)) == [(4,), (3, 1), (2, 2), (2, 1, 1), (1, 1, 1, 1)]
    assert list(partitions(4, 2)) == [(2, 2), (2, 1, 1), (1, 1, 1, 1)]


@pytest.mark.parametrize(("total", "largest"), [(5, 5), (6, 3), (8, 4), (9, 3)])
def test_crowded_partitions_are_those_whose_cells_cannot_be_merged(total: int, largest: int) -> None:
    expected = [
        found
        for found in partitions(total, largest)
        if all(one + other > largest for one, other in combinations(found, 2))
    ]
    assert list(crowded_partitions(total, largest)) == expected
    assert (largest,) * (total // largest) == expected[0][: total // largest]


def test_a_family_with_too_many_changes_is_refused() -> None:
    with pytest.raises(NoExactPrice, match="too many ways"):
        list(Moves(1, 30, 30).changes())


# Candidates.


def alternatives(
    mechanism: Mechanism, shape: Shape, unit: Unit, relation: Relation
) -> set[frozenset[tuple[Loss, int]]]:
    return set(candidates(Charge("query", mechanism, shape, unit, relation), TEN).alternatives)


def test_a_household_is_worst_in_one_cell_where_that_was_shown() -> None:
    variance = Fraction(9)
    found = candidates(Charge("query", DiscreteGaussian(variance), Counts(), Unit(5), REPLACE), TEN)
    assert found.alternatives == {frozenset({(GaussianLoss(variance, 5), 2)})}
    assert 0 < found.slack < TEN / 10**12


def test_where_it_was_not_shown_all_partitions_are_tried() -> None:
    variance = Fraction(1, 400)  # losses of hundreds: no float holds the comparison
    found = alternatives(DiscreteGaussian(variance), Counts(), Unit(2), ADD_REMOVE)
    assert found == {frozenset({(GaussianLoss(variance, 2), 1)}), frozenset({(GaussianLoss(variance, 1), 2)})}


def test_several_answers_of_a_group_keep_the_partitions_that_cannot_be_merged() -> None:
    found = alternatives(DiscreteGaussian(Fraction(9)), Counts(answers=2), Unit(3), ADD_REMOVE)
    assert {sum(count for _, count in losses) for losses in found} == {2, 3}  # (3, 3) and (2, 2, 2)


def test_the_worst_partition_by_brute_force_is_the_one_that_was_chosen() -> None:
    variance = Fraction(4)
    each = {
        change: exact_epsilon({GaussianLoss(variance, part): change.count(part) for part in set(change)}, TEN).epsilon
        for change in partitions(5, 5)
    }
    assert max(each, key=lambda change: each[change]) == (5,)


def test_laplace_noise_enters_by_its_law_where_its_worst_change_is_known_and_as_pure_elsewhere() -> None:
    small = alternatives(DiscreteLaplace(Fraction(30)), Counts(), Unit(3), ADD_REMOVE)
    assert small == {frozenset({(LaplaceLoss(Fraction(30), 3), 1)})}
    large = alternatives(DiscreteLaplace(Fraction(10**5)), Sums(-700, 900), Unit(4), REPLACE)
    assert large == {frozenset({(pure(4 * 1800 / Fraction(10**5)), 1)})}


def test_selections_enter_at_their_pure_price_and_answers_by_their_law() -> None:
    assert alternatives(ExponentialMechanism(Fraction(10)), Scores(), RECORD, ADD_REMOVE) == {
        frozenset({(pure(Fraction(1, 5)), 1)})
    }
    several = RandomisedResponse(4, Fraction(1, 2))
    epsilon = several.epsilon(Responses().sensitivity(RECORD, REPLACE))
    assert alternatives(several, Responses(), Unit(3), REPLACE) == {frozenset({(ResponseLoss(epsilon, 4), 3)})}
    two = RandomisedResponse(2, Fraction(3, 4))
    assert alternatives(two, Responses(), RECORD, REPLACE) == {
        frozenset({(pure(two.epsilon(Responses().sensitivity(RECORD, REPLACE))), 1)})
    }


def test_measurements_together_are_any_alternative_of_each() -> None:
    one, other = (frozenset({(pure(Fraction(1, 5)), 1)}), frozenset({(pure(Fraction(1, 7)), 2)}))
    both = together([Candidates(frozenset({one, other}), TEN), Candidates(frozenset({one}), TEN)])
    assert both.alternatives == {frozenset({(pure(Fraction(1, 5)), 2)}), one | other}
    assert both.slack == 2 * TEN
    assert either([Candidates(frozenset({one}), TEN), Candidates(frozenset({other}))]) == Candidates(
        frozenset({one, other}), TEN
    )


def test_too_many_joint_choices_are_refused() -> None:
    many = Candidates(frozenset(frozenset({(pure(Fraction(1, place)), 1)}) for place in range(1, 10)))
    with pytest.raises(NoExactPrice, match="too many joint choices"):
        together([many, many])
