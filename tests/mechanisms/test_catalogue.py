"""Every mechanism that the ledger may name can be rebuilt from what the ledger holds."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from mechanisms.catalogue import MECHANISMS, read_charge, rebuild
from mechanisms.charge import MEASURES, Charge, Mechanism
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.exponential_mechanism import ExponentialMechanism
from mechanisms.noisy_max import NoisyMax
from mechanisms.permute_and_flip import PermuteAndFlip
from mechanisms.randomised_response import RandomisedResponse
from mechanisms.sensitivity import Counts, Relation, Responses, Scores, Shape, Sums, Unit

EXAMPLES: list[tuple[Mechanism, Shape]] = [
    (DiscreteLaplace(Fraction(7, 3)), Counts()),
    (DiscreteGaussian(Fraction(9, 4)), Sums(-(2**62), 2**62)),
    (RandomisedResponse(4, Fraction(3, 4)), Responses()),
    (ExponentialMechanism(Fraction(5)), Scores(quantile=Fraction(1, 4))),
    (PermuteAndFlip(Fraction(5, 2)), Scores()),
    (NoisyMax(Fraction(1, 3)), Scores()),
]


def test_every_mechanism_has_an_example_here_and_a_line_on_what_it_measures() -> None:
    assert [mechanism.name for mechanism, _ in EXAMPLES] == list(MECHANISMS)
    assert set(MEASURES) == set(MECHANISMS)


@pytest.mark.parametrize(("mechanism", "shape"), EXAMPLES, ids=MECHANISMS)
def test_a_mechanism_comes_back_from_the_ledger_with_the_same_price(mechanism: Mechanism, shape: Shape) -> None:
    written = Charge("query", mechanism, shape, Unit(3), Relation.REPLACE)
    found = read_charge(json.loads(json.dumps(written.as_data())))
    assert found == written
    assert type(found.mechanism) is type(mechanism)
    assert (found.epsilon, found.rho) == (written.epsilon, written.rho)


def test_an_unknown_mechanism_is_refused_with_those_known() -> None:
    with pytest.raises(ValueError, match=r"no mechanism is called 'continuous_laplace'\. Known: discrete_laplace, "):
        rebuild("continuous_laplace", {})


@pytest.mark.parametrize("parameters", [{}, {"variance": Fraction(1)}, {"scale": Fraction(1), "more": Fraction(1)}])
def test_parameters_of_another_mechanism_are_refused(parameters: dict[str, Fraction]) -> None:
    with pytest.raises(ValueError, match=r"parameters of discrete_laplace: found .*, expected scale"):
        rebuild("discrete_laplace", parameters)


def test_half_a_choice_is_refused() -> None:
    with pytest.raises(ValueError, match="choices must be a whole number, found 5/2"):
        rebuild("randomised_response", {"choices": Fraction(5, 2), "truth": Fraction(3, 4)})


def test_a_parameter_that_no_mechanism_could_have_had_is_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        rebuild("discrete_gaussian", {"variance": Fraction(0)})


def test_a_mechanism_that_states_other_parameters_than_were_stored_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MECHANISMS, "noisy_max", DiscreteLaplace)
    with pytest.raises(ValueError, match="noisy_max with the stored parameters states others"):
        rebuild("noisy_max", {"scale": Fraction(1)})
