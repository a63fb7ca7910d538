"""The verb of pricing: convert. It computes with budgets alone and opens no file."""

from __future__ import annotations

import argparse
import json
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from flows.terminal import OK, UserError, say
from flows.verbs import Verbs, add_verb

if TYPE_CHECKING:
    from mechanisms.accountant import Converted

GROUPS = (2, 5)
"""Group sizes beside the single unit."""
USUAL_DELTA = Fraction(1, 10**10)
CONVERSIONS = {
    "simple": "rho + 2 sqrt(rho ln 1/delta)",
    "tight": "the best order (Canonne, Kamath and Steinke)",
    "gaussian": "one discrete Gaussian, exactly",
}


def add_pricing_verbs(verbs: Verbs) -> None:
    """Adds the verb of pricing with its help and an example."""
    convert = add_verb(
        verbs,
        "convert",
        _convert,
        help="turn rho into epsilon, or epsilon into rho",
        description="With --rho: the epsilon of that much zero-concentrated privacy at a delta, by the two zCDP\n"
        "conversions and for one discrete Gaussian of sensitivity 1 and variance 1/(2 rho), also for groups.\n"
        "With --epsilon: the largest rho that costs no more. Epsilons are rounded up, rhos down.",
        example="margrave convert --rho 293764/114921 --delta 1e-10\n"
        "          margrave convert --epsilon 4 --delta 1e-6    how much rho does that buy\n"
        "          margrave convert --rho 1/2 --delta 1e-6 --json",
    )
    asked = convert.add_mutually_exclusive_group(required=True)
    asked.add_argument("--rho", metavar="R", help="zero-concentrated privacy loss: 0.5, 1/2 or 1e-3")
    asked.add_argument("--epsilon", metavar="E", help="epsilon to be turned into rho")
    convert.add_argument(
        "--delta", metavar="D", help="the delta of the epsilon; without it 1e-10 (with --epsilon only)"
    )
    convert.add_argument("--json", action="store_true", help="print one JSON object; fractions are text")


def _convert(chosen: argparse.Namespace) -> int:
    delta = _delta(chosen)
    answer, lines = _epsilons(chosen.rho, delta) if chosen.rho is not None else _rhos(chosen.epsilon, delta)
    say(json.dumps(answer, indent=2) if chosen.json else "\n".join(lines))
    return OK


def _delta(chosen: argparse.Namespace) -> Fraction:
    if chosen.delta is None:
        if chosen.rho is not None:
            raise UserError("rho is restated as epsilon at a delta; add for example --delta 1e-10")
        return USUAL_DELTA
    delta = _positive("--delta", chosen.delta)
    if delta >= 1:
        raise UserError(f"--delta {chosen.delta} is not below 1; a delta is far below one over the population: 1e-10")
    return delta


def _positive(option: str, text: str) -> Fraction:
    from release_specs.language.values import read_positive

    try:
        number = read_positive(text)
    except ValueError as fault:
        raise UserError(f"{option}: {fault}") from None
    if not Fraction(1, 10**12) <= number <= 10**6 and option != "--delta":
        raise UserError(f"{option} {text} is not a budget anyone spends; expected 1e-12 to 1e6")
    return number


def _epsilons(text: str, delta: Fraction) -> tuple[dict[str, Any], list[str]]:
    from mechanisms.accountant import convert

    rho = _positive("--rho", text)
    sizes = {size: convert(rho, delta, size=size) for size in (1, *GROUPS)}
    answer = {
        "rho": str(rho),
        "delta": str(delta),
        "epsilon": _three(sizes[1]),
        "groups": {str(size): _three(sizes[size]) for size in GROUPS},
    }
    lines = [f"rho {text} at delta {_plain(delta)} is epsilon"]
    lines += [f"  {_up(_three(sizes[1])[name])}  {name}: {meaning}" for name, meaning in CONVERSIONS.items()]
    for size in GROUPS:
        figures = ", ".join(f"{name} {_up(epsilon).strip()}" for name, epsilon in _three(sizes[size]).items())
        lines.append(f"for groups of {size} (rho times {size**2}): {figures}")
    if not all(found.gaussian.exact for found in sizes.values()):
        lines.append("The noise is too wide to be summed exactly: where gaussian equals tight it is the tight figure.")
    return answer, lines


def _three(found: Converted) -> dict[str, float]:
    return {"simple": found.simple, "tight": found.tight, "gaussian": found.gaussian.epsilon}


def _rhos(text: str, delta: Fraction) -> tuple[dict[str, Any], list[str]]:
    from mechanisms.accountant import rho_for
    from mechanisms.prices import pure_to_rho

    epsilon = _positive("--epsilon", text)
    try:
        found = rho_for(epsilon, delta)
    except ValueError as fault:
        raise UserError(f"--epsilon {text}: {fault}") from None
    rhos = {"simple": found.simple, "tight": found.tight, "gaussian": found.gaussian}
    pure = pure_to_rho(epsilon)
    answer = {
        "epsilon": float(epsilon),
        "delta": str(delta),
        "rho": {name: str(rho) for name, rho in rhos.items()},
        "pure_rho": str(pure),
    }
    lines = [f"epsilon {text} at delta {_plain(delta)} buys rho"]
    lines += [f"  {_decimals(rho)}  {name}: {CONVERSIONS[name]}" for name, rho in rhos.items()]
    lines.append(f"Spent as pure epsilon, without delta, it enters an account of rho at {_decimals(pure)}.")
    return answer, lines


def _up(epsilon: float) -> str:
    from mechanisms.accountant import rounded_up

    digits = Context(prec=6, rounding=ROUND_CEILING).create_decimal_from_float(epsilon)
    return f"{rounded_up(epsilon):>9} ({digits:f})"


def _decimals(rho: Fraction) -> str:
    """A multiple of 10^-12 with all its digits."""
    whole, rest = divmod(rho * 10**12, 10**12)
    return f"{whole}.{int(rest):012d}"


def _plain(number: Fraction) -> str:
    from release_specs.language.values import write_number

    return write_number(number)
