"""Charges written short, for the tests of the accountant."""

from __future__ import annotations

from fractions import Fraction

from mechanisms.accountant import (
    Statement,
)
from mechanisms.accounting.losses import GaussianLoss, Loss
from mechanisms.charge import Charge, Mechanism
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.sensitivity import (
    RECORD,
    Counts,
    Relation,
    Shape,
    Unit,
)

TEN, SIX = Fraction(1, 10**10), Fraction(1, 10**6)
ADD_REMOVE, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE
TABLE, ONE_CELL = Counts(), Counts(one_cell=True)


def charge(
    mechanism: Mechanism, shape: Shape = TABLE, unit: Unit = RECORD, relation: Relation = ADD_REMOVE, **more: object
) -> Charge:
    return Charge("query", mechanism, shape, unit, relation, **more)


def laplace(scale: int | Fraction, *where: object, **more: object) -> Charge:
    return charge(DiscreteLaplace(Fraction(scale)), *where, **more)


def gaussian(variance: int | Fraction, *where: object, **more: object) -> Charge:
    return charge(DiscreteGaussian(Fraction(variance)), *where, **more)


def epsilon_of(statement: Statement, name: str) -> float:
    epsilon = statement.price(name).epsilon
    assert epsilon is not None, statement.price(name).note
    return float(epsilon)


def gaussians(variance: int | Fraction, count: int, *, shift: int = 1) -> dict[Loss, int]:
    """The losses of equal measurements, for an exact composition."""
    return {GaussianLoss(Fraction(variance), shift): count}
