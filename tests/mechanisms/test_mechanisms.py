"""The contract that all mechanisms share; a new mechanism joins by one entry in EXAMPLES."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import mypy.api
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mechanisms.charge import MEASURES, Mechanism
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.exponential_mechanism import ExponentialMechanism
from mechanisms.noise.seeded import SeededBits
from mechanisms.noisy_max import NoisyMax
from mechanisms.permute_and_flip import PermuteAndFlip
from mechanisms.prices import GRAIN, pure_to_rho
from mechanisms.randomised_response import RandomisedResponse
from mechanisms.randomness import Generator, Randomness
from mechanisms.sensitivity import Sensitivity

ROOT = Path(__file__).resolve().parents[2]
ONE = Sensitivity(Fraction(1), Fraction(1))
SCORES = np.array([4, 7, 7, 1])
CODES = np.array([0, 2, 1, 1])


@dataclass(frozen=True)
class Example:
    """A mechanism, input for it, the next sharper one on the grid of `costing`, and its currencies."""

    mechanism: Any
    values: np.ndarray
    costing: Callable[..., Any]
    sharper: Callable[[Any, Sensitivity], Any]
    pure: bool = True


def with_more_epsilon(made: Any, sensitivity: Sensitivity) -> Any:
    """The mechanism of the same kind whose pure price is higher by 10^-12."""
    epsilon = made.epsilon(sensitivity)
    return replace(made, scale=made.scale * epsilon / (epsilon + GRAIN))


def with_more_odds(made: RandomisedResponse, sensitivity: Sensitivity) -> RandomisedResponse:
    odds = made.odds + GRAIN
    return replace(made, truth=odds / (odds + made.choices - 1))


def with_less_variance(made: DiscreteGaussian, sensitivity: Sensitivity) -> DiscreteGaussian:
    return DiscreteGaussian(made.variance * (1 - GRAIN))


EXAMPLES = {
    "discrete_laplace": Example(DiscreteLaplace(Fraction(7, 3)), SCORES, DiscreteLaplace.costing, with_more_epsilon),
    "discrete_gaussian": Example(
        DiscreteGaussian(Fraction(7, 3)), SCORES, DiscreteGaussian.costing, with_less_variance, pure=False
    ),
    "randomised_response": Example(
        RandomisedResponse(3, Fraction(3, 5)),
        CODES,
        lambda sensitivity, **budget: RandomisedResponse.costing(3, sensitivity, **budget),
        with_more_odds,
    ),
    "exponential": Example(
        ExponentialMechanism(Fraction(7, 3)), SCORES, ExponentialMechanism.costing, with_more_epsilon
    ),
    "permute_and_flip": Example(PermuteAndFlip(Fraction(7, 3)), SCORES, PermuteAndFlip.costing, with_more_epsilon),
    "noisy_max": Example(NoisyMax(Fraction(7, 3)), SCORES, NoisyMax.costing, with_more_epsilon),
}
EACH = pytest.mark.parametrize("example", EXAMPLES.values(), ids=list(EXAMPLES))
PURE = pytest.mark.parametrize("example", [e for e in EXAMPLES.values() if e.pure], ids=lambda e: e.mechanism.name)


def test_every_mechanism_of_the_ledger_keeps_the_contract() -> None:
    assert {name: example.mechanism.name for name, example in EXAMPLES.items()} == {name: name for name in MEASURES}


@EACH
def test_a_mechanism_is_what_the_accountant_expects_of_one(example: Example) -> None:
    mechanism: Mechanism = example.mechanism
    assert all(type(value) is Fraction for value in mechanism.parameters.values())
    assert type(mechanism.rho(ONE)) is Fraction
    assert mechanism.epsilon(ONE) is None if not example.pure else type(mechanism.epsilon(ONE)) is Fraction


@EACH
def test_its_parameters_are_all_of_it(example: Example) -> None:
    mechanism = example.mechanism
    assert mechanism.parameters == {each.name: getattr(mechanism, each.name) for each in fields(mechanism)}
    rebuilt = {key: int(value) if key == "choices" else value for key, value in mechanism.parameters.items()}
    assert type(mechanism)(**rebuilt) == mechanism


@EACH
def test_a_mechanism_cannot_be_changed_after_it_was_priced(example: Example) -> None:
    for name in example.mechanism.parameters:
        with pytest.raises(FrozenInstanceError):
            setattr(example.mechanism, name, Fraction(9))


@EACH
@pytest.mark.parametrize("wrong", [0.5, Fraction(0), Fraction(-1), "1/2", None])
def test_a_parameter_that_is_no_positive_fraction_is_refused(example: Example, wrong: Any) -> None:
    for name in example.mechanism.parameters:
        with pytest.raises((TypeError, ValueError)):
            replace(example.mechanism, **{name: wrong})


@EACH
def test_its_file_states_its_guarantee_and_what_it_needs(example: Example) -> None:
    said = sys.modules[type(example.mechanism).__module__].__doc__ or ""
    assert "Guarantee:" in said
    assert "Needs:" in said


@EACH
def test_no_float_is_on_the_way_from_counts_to_answers(example: Example) -> None:
    modules = [type(example.mechanism).__module__, "mechanisms.prices", "mechanisms.noisy_counts", "mechanisms.scores"]
    for module in modules:
        nodes = list(ast.walk(ast.parse(Path(sys.modules[module].__file__ or "").read_text())))
        assert [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, float)] == []
        names = {node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "") for node in nodes}
        assert {name for name in names if name == "random" or name.startswith("float")} == set()


# Prices.

sensitivities = st.builds(
    lambda l1, part: Sensitivity(Fraction(l1), Fraction(max(l1, min(part, l1**2)))),
    st.integers(1, 1000),
    st.integers(1, 1000**2),
)
budgets = st.fractions(Fraction(1, 10**9), 20, max_denominator=10**9)


@PURE
@given(sensitivity=sensitivities)
@settings(max_examples=30)
def test_no_pure_mechanism_costs_more_in_zcdp_than_randomised_response(example: Example, sensitivity: Any) -> None:
    made = example.mechanism
    whole = pure_to_rho(made.epsilon(sensitivity))
    assert 0 < made.rho(sensitivity) <= whole
    assert made.rho(sensitivity) <= made.epsilon(sensitivity) ** 2 / 2 + GRAIN * sensitivity.l1


@EACH
@given(sensitivity=sensitivities, factor=st.integers(2, 9))
@settings(max_examples=30)
def test_who_moves_further_pays_more(example: Example, sensitivity: Sensitivity, factor: int) -> None:
    wider = Sensitivity(factor * sensitivity.l1, factor**2 * sensitivity.l2_squared)
    assert example.mechanism.rho(wider) > example.mechanism.rho(sensitivity)
    if example.pure:
        assert example.mechanism.epsilon(wider) == factor * example.mechanism.epsilon(sensitivity)


@EACH
@given(sensitivity=sensitivities, rho=budgets)
@settings(max_examples=20, deadline=None)
def test_a_mechanism_bought_with_rho_costs_no_more_and_the_next_sharper_one_would(
    example: Example, sensitivity: Sensitivity, rho: Fraction
) -> None:
    assume(rho >= sensitivity.l1 * GRAIN)
    made = example.costing(sensitivity, rho=rho)
    assert made.rho(sensitivity) <= rho
    assert example.sharper(made, sensitivity).rho(sensitivity) > rho


@PURE
@given(sensitivity=sensitivities, epsilon=budgets)
@settings(max_examples=20, deadline=None)
def test_a_mechanism_bought_with_epsilon_costs_no_more_and_the_next_sharper_one_would(
    example: Example, sensitivity: Sensitivity, epsilon: Fraction
) -> None:
    made = example.costing(sensitivity, epsilon=epsilon)
    assert made.epsilon(sensitivity) <= epsilon
    assert example.sharper(made, sensitivity).epsilon(sensitivity) > epsilon


@PURE
def test_a_budget_is_stated_in_one_currency_and_exactly(example: Example) -> None:
    for budget in ({}, {"epsilon": Fraction(1), "rho": Fraction(1)}):
        with pytest.raises(ValueError, match="one currency"):
            example.costing(ONE, **budget)
    for wrong in ({"epsilon": 1.0}, {"rho": 0.5}):
        with pytest.raises(TypeError, match="floats are not exact"):
            example.costing(ONE, **wrong)
    for wrong in ({"epsilon": Fraction(0)}, {"rho": Fraction(-1)}, {"rho": GRAIN / 10**13}):
        with pytest.raises(ValueError, match=r"must be positive|smallest price"):
            example.costing(ONE, **wrong)


def test_gaussian_noise_cannot_be_bought_with_a_pure_budget() -> None:
    with pytest.raises(TypeError):
        DiscreteGaussian.costing(ONE, epsilon=Fraction(1))  # type: ignore[call-arg]


# The door: what a measurement takes its noise from, and what it measures.


@EACH
@pytest.mark.parametrize("generator", Generator)
def test_a_measurement_is_of_integers(example: Example, generator: Generator) -> None:
    measured = example.mechanism.measure(example.values, Randomness(generator))
    if isinstance(measured, np.ndarray):
        assert (measured.dtype, measured.shape) == (np.int64, example.values.shape)
    else:
        assert type(measured) is int
        assert 0 <= measured < len(example.values)


@dataclass(frozen=True)
class Pretender:
    """Looks like Randomness, and is not."""

    def bits(self) -> SeededBits:
        return SeededBits("known to everyone")


@EACH
def test_seeded_bits_are_refused_at_run_time(example: Example) -> None:
    for pretended in (SeededBits(1), Pretender(), None, Randomness):
        with pytest.raises(TypeError, match="takes its noise from Randomness"):
            example.mechanism.measure(example.values, pretended)


def test_seeded_bits_are_refused_by_type(tmp_path: Path) -> None:
    lines = ["import numpy as np", "from mechanisms.noise.seeded import SeededBits"]
    lines += ["from mechanisms.randomness import Randomness", "counts = np.zeros(3, np.int64)"]
    for number, kind in enumerate(type(example.mechanism) for example in EXAMPLES.values()):
        lines += [
            f"from {kind.__module__} import {kind.__name__}",
            f"def measure_{number}(it: {kind.__name__}) -> None:",
        ]
        lines += ["    it.measure(counts, Randomness())", "    it.measure(counts, SeededBits(1))"]
    snippet = tmp_path / "snippet.py"
    snippet.write_text("\n".join(lines) + "\n")
    options = ["--strict", "--follow-imports=silent", f"--cache-dir={tmp_path}", f"--config-file={ROOT}/pyproject.toml"]
    said, complaint, status = mypy.api.run([*options, "--no-error-summary", str(snippet)])
    refused = [i for i, line in enumerate(lines, start=1) if "SeededBits(1))" in line]
    assert (status, complaint, len(refused)) == (1, "", len(EXAMPLES))
    found = said.splitlines()
    assert [int(line.split(":")[1]) for line in found] == refused
    assert all('"SeededBits"; expected "Randomness"  [arg-type]' in line for line in found)


@EACH
@pytest.mark.parametrize(
    "values",
    [
        np.array([71.0, 1.0]),
        np.array([71.5, np.nan]),
        np.array([71.0, np.inf]),
        np.array([True, False]),
        np.array([71, 1], np.uint64),
        np.array([71, 1], object),
        np.array(["71"]),
        np.array([71, 1], "m8[s]"),
        [71, 1],
        71,
    ],
    ids=lambda values: str(getattr(values, "dtype", type(values).__name__)),
)
def test_only_integers_are_measured_and_a_refusal_quotes_none_of_them(example: Example, values: Any) -> None:
    with pytest.raises(TypeError) as refusal:
        example.mechanism.measure(values, Randomness())
    assert "71" not in str(refusal.value)
    with pytest.raises(TypeError):
        example.mechanism.answer(values, SeededBits(1))


@EACH
@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, ">i4"])
def test_integers_of_every_width_are_measured_alike(example: Example, kind: Any) -> None:
    answers = [
        example.mechanism.answer(values, SeededBits(5)) for values in (example.values, example.values.astype(kind))
    ]
    assert np.array_equal(answers[0], answers[1])


@EACH
def test_what_is_measured_stays_as_it_was(example: Example) -> None:
    values = example.values.copy()
    example.mechanism.measure(values, Randomness())
    assert np.array_equal(values, example.values)


@EACH
def test_the_same_seed_gives_the_same_answers_and_another_seed_others(example: Example) -> None:
    def answers(seed: int) -> list[Any]:
        bits = SeededBits(seed)
        return [np.asarray(example.mechanism.answer(example.values, bits)).tolist() for _ in range(40)]

    assert answers(1) == answers(1) != answers(2)


@EACH
def test_every_measurement_is_drawn_anew(example: Example) -> None:
    source = Randomness()
    answers = [np.asarray(example.mechanism.measure(example.values, source)).tolist() for _ in range(80)]
    assert any(answer != answers[0] for answer in answers)
