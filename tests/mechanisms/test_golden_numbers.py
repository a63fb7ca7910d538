"""Figures that are known: the tables of compositions, and the certificate of the 2020 redistricting data."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import pytest

from mechanisms.accountant import (
    Parallel,
    Sequential,
    below_levels,
    by_attribute,
    state,
)
from mechanisms.accounting.conversion import epsilon_tight
from mechanisms.charge import Charge
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.exponential_mechanism import ExponentialMechanism
from mechanisms.randomised_response import RandomisedResponse
from mechanisms.sensitivity import (
    RECORD,
    Counts,
    Responses,
    Scores,
)
from tests.mechanisms.charges import (
    ONE_CELL,
    REPLACE,
    SIX,
    TABLE,
    TEN,
    charge,
    epsilon_of,
    gaussian,
    laplace,
)

PURE_ROWS = {
    (10, TEN): (1.0, 2.251, 1.000, 2.196, 2.000),
    (100, TEN): (10.0, 7.838, 6.295, 7.286, 6.839),
    (1000, TEN): (100.0, 31.977, 24.407, 26.460, 25.536),
    (100, SIX): (10.0, 6.308, 4.775, 5.757, 5.222),
    (1000, SIX): (100.0, 27.140, 19.345, 21.623, 20.552),
}
"""Laplace noise of epsilon 1/10: basic, advanced, optimal pure, and zCDP simple and tight at epsilon^2 / 2 each."""


@pytest.mark.parametrize("row", PURE_ROWS)
def test_the_table_of_pure_compositions(row: tuple[int, Fraction]) -> None:
    basic, advanced, optimal, simple, tight = PURE_ROWS[row]
    statement = state([laplace(10)] * row[0], row[1])
    assert epsilon_of(statement, "basic") == basic
    assert epsilon_of(statement, "advanced") == pytest.approx(advanced, abs=5e-4)
    assert epsilon_of(statement, "optimal pure") == pytest.approx(optimal, abs=5e-4)
    assert epsilon_of(statement, "exact") == pytest.approx(optimal, abs=5e-4)  # a cell moved by 1 is binary response
    assert simple - 0.03 < epsilon_of(statement, "zCDP simple") <= simple + 5e-4
    assert tight - 0.03 < epsilon_of(statement, "zCDP tight") <= tight + 5e-4
    assert statement.published.name == ("basic" if row[0] == 10 else "optimal pure")


GAUSSIAN_ROWS = {
    (400, 1, SIX): (0.2641, 0.2059, 0.1892),
    (400, 100, TEN): (3.518, 3.244, 3.099),
    (400, 1000, TEN): (11.980, 11.375, 10.908),
    (400, 1000, SIX): (9.561, 8.846, 8.306),
    (1, 10, TEN): (26.460, 25.536, 24.678),
}
"""Variance and number of measurements: zCDP simple and tight, and exact."""


@pytest.mark.parametrize("row", GAUSSIAN_ROWS)
def test_the_table_of_gaussian_compositions(row: tuple[int, int, Fraction]) -> None:
    variance, count, delta = row
    statement = state([gaussian(variance)] * count, delta)
    names = ("zCDP simple", "zCDP tight", "exact")
    assert [epsilon_of(statement, name) for name in names] == pytest.approx(list(GAUSSIAN_ROWS[row]), abs=5e-4)
    assert statement.published.name == "exact"
    assert [statement.price(name).epsilon for name in ("basic", "advanced", "optimal pure")] == [None] * 3
    assert statement.price("exact").note == "losses on one lattice"


@pytest.mark.parametrize(("delta", "tight", "printed"), [(TEN, 3.720, 3.613), (SIX, 2.786, 2.698)])
def test_the_table_of_the_mixture(delta: Fraction, tight: float, printed: float) -> None:
    answers = RandomisedResponse.costing(2, Responses().sensitivity(RECORD, REPLACE), epsilon=Fraction(1, 10))
    plan = [laplace(20, ONE_CELL, RECORD, REPLACE)] * 40 + [gaussian(900, ONE_CELL, RECORD, REPLACE)] * 100
    plan += [charge(ExponentialMechanism(Fraction(20)), Scores(), RECORD, REPLACE)] * 5
    plan += [charge(answers, Responses(), RECORD, REPLACE)] * 10
    statement = state(plan, delta)
    assert epsilon_of(statement, "zCDP tight") == pytest.approx(tight, abs=1e-3)
    assert printed - 0.006 < epsilon_of(statement, "exact") < printed + 1e-6  # the exponential mechanism as pure


def test_a_census_of_eighty_queries_costs_less_by_its_exact_law() -> None:
    """Eight levels of ten queries, replace, rho 2.557, shares of a 4000th: as in the notes, with other shares."""
    shares = [1 + (7 * place * place + 3 * place) % 97 for place in range(80)]
    quantum = Fraction("2.557") / sum(shares)
    plan = [gaussian(1 / (share * quantum), TABLE, RECORD, REPLACE) for share in shares]
    statement = state(plan, TEN)
    assert statement.rho == Fraction("2.557")
    assert epsilon_of(statement, "zCDP simple") == pytest.approx(17.904, abs=2e-3)
    assert epsilon_of(statement, "zCDP tight") == pytest.approx(17.147, abs=2e-3)
    assert epsilon_of(statement, "exact") == pytest.approx(16.469, abs=2e-3)
    assert statement.price("exact").note == "losses on one lattice"


LEVELS = ("US", "State", "County", "Tract", "Block Group", "Block")
LEVEL_SHARES = dict(zip(LEVELS, (104, 1440, 447, 687, 1256, 165), strict=True))
PERSONS = Fraction(293764, 114921)
ALL = {"hhgq", "votingage", "hispanic", "cenrace"}
SHARES: dict[str, tuple[set[str], tuple[str, str, str, str, str, str]]] = {
    "total": (set(), ("0", "3773/4097", "3126/4097", "1567/4102", "1705/4099", "5/4097")),
    "cenrace": ({"cenrace"}, ("52/4097", "6/4097", "10/4097", "4/2051", "3/4099", "9/4097")),
    "hispanic": ({"hispanic"}, ("26/4097", "6/4097", "10/4097", "5/4102", "3/4099", "5/4097")),
    "votingage": ({"votingage"}, ("26/4097", "6/4097", "10/4097", "5/4102", "3/4099", "5/4097")),
    "hhinstlevels": ({"hhgq"}, ("26/4097", "6/4097", "10/4097", "5/4102", "3/4099", "5/4097")),
    "hhgq": ({"hhgq"}, ("26/4097", "6/4097", "10/4097", "5/4102", "3/4099", "5/4097")),
    "hispanic*cenrace": (
        {"hispanic", "cenrace"},
        ("130/4097", "12/4097", "28/4097", "1933/4102", "1055/4099", "21/4097"),
    ),
    "votingage*cenrace": (
        {"votingage", "cenrace"},
        ("130/4097", "12/4097", "28/4097", "10/2051", "9/4099", "21/4097"),
    ),
    "votingage*hispanic": (
        {"votingage", "hispanic"},
        ("26/4097", "6/4097", "10/4097", "5/4102", "3/4099", "5/4097"),
    ),
    "votingage*hispanic*cenrace": (
        {"votingage", "hispanic", "cenrace"},
        ("26/241", "2/241", "101/4097", "67/4102", "24/4099", "71/4097"),
    ),
    "detailed": (ALL, ("189/241", "230/4097", "754/4097", "241/2051", "1288/4099", "3945/4097")),
}


def certificate() -> Sequential:
    """The persons' plan as it was signed: one discrete Gaussian for each query at each level, replace."""
    charges = []
    for query, (attributes, shares) in SHARES.items():
        for level, share in zip(LEVELS, shares, strict=True):
            rho = PERSONS * Fraction(LEVEL_SHARES[level], 4099) * Fraction(share)
            if rho:
                noise = DiscreteGaussian.costing(Counts().sensitivity(RECORD, REPLACE), rho=rho)
                charges.append(Charge(query, noise, TABLE, RECORD, REPLACE, level, frozenset(attributes)))
    return Sequential(tuple(charges))


def test_the_certificates_shares_add_up_to_its_rho() -> None:
    plan = certificate()
    assert plan.rho == PERSONS
    assert sum(1 for _ in plan.charges) == 65


def test_the_certificates_global_epsilons_come_out() -> None:
    assert epsilon_tight(certificate().rho, TEN) == pytest.approx(17.14, abs=0.005)
    units = [
        gaussian(1 / (Fraction(11417641, 152349649) * Fraction(share)), TABLE, RECORD, REPLACE)
        for share in ("1/205", "1/205", "7/82", "364/1025", "1759/4100", "99/820")
    ]
    assert epsilon_tight(Sequential(tuple(units)).rho, TEN) == pytest.approx(2.47, abs=0.005)


def test_the_certificates_epsilons_of_attributes_come_out() -> None:
    expected = {"hhgq": 7.24, "votingage": 7.57, "hispanic": 10.04, "cenrace": 10.08}
    assert by_attribute(certificate(), TEN) == pytest.approx(expected, abs=0.005)


def test_the_certificates_epsilons_of_geography_come_out() -> None:
    expected = {"Block Group": 2.93, "Tract": 9.38, "County": 11.70, "State": 13.05, "US": 16.89}
    assert below_levels(certificate(), TEN, levels=LEVELS) == pytest.approx(expected, abs=0.005)


def test_a_level_that_is_not_listed_is_a_mistake_and_one_without_charges_below_costs_nothing() -> None:
    with pytest.raises(ValueError, match="Block"):
        below_levels(certificate(), TEN, levels=LEVELS[:-1])
    assert below_levels(Sequential((gaussian(1, level="US"),)), TEN, levels=("US", "State")) == {"US": 0.0}


def test_parts_that_do_not_resolve_an_attribute_are_left_out_of_its_price() -> None:
    by_sex, by_age = (gaussian(10, attributes=frozenset({name})) for name in ("sex", "age"))
    plan = Sequential((Parallel((by_sex, (by_age, by_sex))), by_age))
    found = by_attribute(plan, TEN)
    assert found["age"] == epsilon_tight(4 * by_age.rho, TEN)  # a unit leaves a cell and enters one
    assert found["sex"] == epsilon_tight(2 * by_sex.rho, TEN)


def test_the_certificates_plan_would_have_cost_less_by_its_exact_law() -> None:
    statement = state(certificate(), TEN)
    assert statement.published.name == "exact"
    assert 16.4 < epsilon_of(statement, "exact") < 16.5
    assert sqrt(2) * epsilon_of(statement, "exact") > epsilon_of(statement, "zCDP tight")
