"""Every mechanism by the name under which the ledger knows it, and the way back from a stored charge.

A mechanism is rebuilt from its parameters alone and must then state the same parameters again. A name once used in a
ledger stays: a mechanism that is no longer offered is still needed to price what it did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any, cast, get_type_hints

from mechanisms.charge import Charge, Mechanism
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.exponential_mechanism import ExponentialMechanism
from mechanisms.noisy_max import NoisyMax
from mechanisms.permute_and_flip import PermuteAndFlip
from mechanisms.randomised_response import RandomisedResponse

MECHANISMS: dict[str, type[Mechanism]] = {
    "discrete_laplace": DiscreteLaplace,
    "discrete_gaussian": DiscreteGaussian,
    "randomised_response": RandomisedResponse,
    "exponential": ExponentialMechanism,
    "permute_and_flip": PermuteAndFlip,
    "noisy_max": NoisyMax,
}


def rebuild(name: str, parameters: Mapping[str, Fraction]) -> Mechanism:
    """The mechanism of this name with exactly these parameters."""
    if name not in MECHANISMS:
        raise ValueError(f"no mechanism is called '{name}'. Known: {', '.join(MECHANISMS)}")
    kind = cast("type[Any]", MECHANISMS[name])
    types = {each.name: get_type_hints(kind)[each.name] for each in fields(kind)}
    if set(parameters) != set(types):
        found = ", ".join(sorted(parameters)) or "none"
        raise ValueError(f"parameters of {name}: found {found}, expected {', '.join(types) or 'none'}")
    built: Mechanism = kind(**{key: _as(types[key], key, parameters[key]) for key in types})
    if built.name != name or built.parameters != parameters:
        raise ValueError(f"{name} with the stored parameters states others: {built.parameters}")
    return built


def _as(wanted: object, key: str, value: Fraction) -> Fraction | int:
    if wanted is not int:
        return value
    if value.denominator != 1:
        raise ValueError(f"{key} must be a whole number, found {value}")
    return value.numerator


def read_charge(data: object) -> Charge:
    """The charge that `Charge.as_data` wrote."""
    return Charge.from_data(data, rebuild)
