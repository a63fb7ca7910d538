"""The accountant's price of disjoint parts is never below the most expensive change over all neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest

from mechanisms.accounting.parts import Parallel
from mechanisms.charge import Charge, Mechanism
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.sensitivity import RECORD, Counts, NoProvedBound, Relation, Rows, Shape, Sums, Unit
from tests.mechanisms.neighbours import ADD_REMOVE, BOTH, Domain, Query, Town, Vector, arrivals_of, houses, joint_price
from tests.mechanisms.small_tables import tally

SCALES = (Fraction(1), Fraction(2), Fraction(5))
VARIANCES = (Fraction(1, 2), Fraction(3, 2), Fraction(4))
NUMBERS = tuple((part, cell, value) for part in "xyz" for cell in "ab" for value in (-3, 1, 3))
"""What records and rows say: their part, their cell in it, and a number."""

Part = tuple[Shape, str]
"""What is measured in a part, and in which cells."""
COUNTS: Part = (Counts(), "ab")
ONE_COUNT: Part = (Counts(one_cell=True), "a")
CENTRED: Part = (Sums(-3, 3), "ab")
ONE_CENTRED: Part = (Sums(-3, 3, one_cell=True), "a")
POSITIVE: Part = (Sums(0, 3), "ab")
ONE_POSITIVE: Part = (Sums(0, 3, one_cell=True), "a")

CASES: dict[str, tuple[Part, Part, Part]] = {
    "counts": (COUNTS, COUNTS, COUNTS),
    "single cells": (ONE_COUNT, ONE_COUNT, ONE_COUNT),
    "one part of several cells": (COUNTS, ONE_COUNT, ONE_COUNT),
    "a later part of several cells": (ONE_COUNT, COUNTS, ONE_COUNT),
    "centred sums": (CENTRED, CENTRED, CENTRED),
    "centred sums of single cells": (ONE_CENTRED, ONE_CENTRED, ONE_CENTRED),
    "sums from zero": (POSITIVE, POSITIVE, POSITIVE),
    "sums from zero of single cells": (ONE_POSITIVE, ONE_POSITIVE, ONE_POSITIVE),
    "counts and sums": (COUNTS, CENTRED, ONE_POSITIVE),
    "single counts and sums": (ONE_COUNT, ONE_CENTRED, ONE_COUNT),
}


def measured(name: str, shape: Shape, cells: str, *, groups: bool) -> Query:
    """A part of the records, or of the groups' rows."""

    def amount(value: int) -> int:
        return max(shape.low, min(shape.high, value)) if isinstance(shape, Sums) else 1

    def query(town: Town) -> Vector:
        said = [held for _, held in town.rows] if groups else [record.own for record in town.records]
        return tally(cells, ((cell, amount(value)) for part, cell, value in said if part == name))

    return query


def charged(shapes: Sequence[Shape], noise: Sequence[Mechanism], unit: Unit, relation: Relation) -> list[Charge]:
    return [Charge("part", each, shape, unit, relation) for shape, each in zip(shapes, noise, strict=True)]


def prices(shapes: Sequence[Shape], unit: Unit, relation: Relation) -> tuple[Fraction, Fraction]:
    """What the accountant says: pure with Laplace noise, zCDP with Gaussian noise."""
    pure = Parallel(tuple(charged(shapes, [DiscreteLaplace(scale) for scale in SCALES], unit, relation)))
    concentrated = Parallel(tuple(charged(shapes, [DiscreteGaussian(v) for v in VARIANCES], unit, relation)))
    assert pure.epsilon is not None
    return pure.epsilon, concentrated.rho


def true_prices(parts: Sequence[Part], domain: Domain, unit: Unit, relation: Relation) -> tuple[Fraction, Fraction]:
    queries = [measured(name, *part, groups=bool(domain.rows)) for name, part in zip("xyz", parts, strict=True)]
    return joint_price(queries, domain, arrivals_of(unit), relation, scales=SCALES, variances=VARIANCES)


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("name", CASES)
def test_disjoint_parts_of_records_never_cost_less_than_their_worst_change(name: str, relation: Relation) -> None:
    shapes = [shape for shape, _ in CASES[name]]
    found = prices(shapes, RECORD, relation)
    true = true_prices(CASES[name], Domain(own=NUMBERS, places=((None, 2),)), RECORD, relation)
    assert found[0] >= true[0]
    assert found[1] >= true[1]
    assert relation is not ADD_REMOVE or found == true, "coming and going is priced exactly"


EXACT = ("counts", "single cells", "one part of several cells", "centred sums", "sums from zero", "counts and sums")


@pytest.mark.parametrize("name", EXACT)
def test_exchanges_in_disjoint_parts_of_records_cost_exactly_their_worst_change(name: str) -> None:
    shapes = [shape for shape, _ in CASES[name]]
    true = true_prices(CASES[name], Domain(own=NUMBERS, places=((None, 2),)), RECORD, Relation.REPLACE)
    assert prices(shapes, RECORD, Relation.REPLACE) == true


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("name", CASES)
def test_parts_over_which_a_group_is_spread_never_cost_less_than_its_worst_change(
    name: str, relation: Relation
) -> None:
    shapes = [shape for shape, _ in CASES[name]]
    found = prices(shapes, Unit(2), relation)
    true = true_prices(CASES[name], houses(2, own=NUMBERS), Unit(2), relation)
    assert found[0] >= true[0]
    assert found[1] >= true[1]
    assert relation is not ADD_REMOVE or found == true


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("name", ["counts", "single cells", "a later part of several cells"])
def test_disjoint_parts_of_groups_never_cost_less_than_their_worst_change(name: str, relation: Relation) -> None:
    shapes = [Counts(of=Rows.GROUPS, one_cell=cells == "a") for _, cells in CASES[name]]
    domain = houses(1, 1, own=(None,), rows=NUMBERS)
    for unit in (RECORD, Unit(2)):
        found, true = prices(shapes, unit, relation), true_prices(CASES[name], domain, unit, relation)
        assert found[0] >= true[0]
        assert found[1] >= true[1]


def test_several_measurements_of_one_part_add_up_inside_it() -> None:
    domain = Domain(own=NUMBERS, places=((None, 2),))
    queries = [measured(name, *part, groups=False) for name, part in (("x", COUNTS), ("x", ONE_CENTRED), ("y", COUNTS))]
    for relation in BOTH:
        counts, sums, others = charged(
            [Counts(), Sums(-3, 3, one_cell=True), Counts()], [DiscreteGaussian(v) for v in VARIANCES], RECORD, relation
        )
        _, true = joint_price(queries, domain, arrivals_of(RECORD), relation, scales=SCALES, variances=VARIANCES)
        assert Parallel(((counts, sums), others)).rho >= true


def test_parts_that_other_records_move_are_refused() -> None:
    with pytest.raises(NoProvedBound):
        Parallel(tuple(charged([Counts(cap=2)] * 2, [DiscreteGaussian(Fraction(1))] * 2, RECORD, ADD_REMOVE)))
