"""`margrave convert`: rho as epsilon and epsilon as rho, for people and for programs."""

import json
from fractions import Fraction
from typing import Any

import pytest

from flows.cli import main


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The JSON that a call of `convert` prints."""
    assert main(["convert", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_rho_becomes_three_epsilons_for_the_unit_and_for_groups(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "--rho", "293764/114921", "--delta", "1e-10")
    assert list(found) == ["rho", "delta", "epsilon", "groups"]
    assert (found["rho"], found["delta"]) == ("293764/114921", "1/10000000000")
    assert found["epsilon"]["tight"] == pytest.approx(17.1436, abs=5e-5)
    assert found["epsilon"]["simple"] == pytest.approx(17.9002, abs=5e-5)
    assert list(found["groups"]) == ["2", "5"]
    for figures in (found["epsilon"], *found["groups"].values()):
        assert list(figures) == ["simple", "tight", "gaussian"]
        assert 0 < figures["gaussian"] <= figures["tight"] <= figures["simple"]


def test_groups_multiply_rho_by_the_square_of_their_size(capsys: pytest.CaptureFixture[str]) -> None:
    one = answer(capsys, "--rho", "1/50", "--delta", "1e-10")
    five = answer(capsys, "--rho", "25/50", "--delta", "1e-10")
    assert one["groups"]["5"]["tight"] == pytest.approx(five["epsilon"]["tight"], rel=1e-9)
    assert one["groups"]["5"]["tight"] == pytest.approx(6.839, abs=5e-4)
    assert one["groups"]["5"]["gaussian"] == pytest.approx(6.543, abs=5e-4)


def test_the_exact_curve_of_a_wide_gaussian_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "--rho", "1/800", "--delta", "1e-6")
    assert found["epsilon"]["gaussian"] == pytest.approx(0.1892, abs=5e-5)


@pytest.mark.parametrize(("epsilon", "delta"), [("4", "1e-6"), ("1", "1e-10"), ("1/2", "1e-30")])
def test_the_rho_that_an_epsilon_buys_costs_no_more_when_it_is_turned_back(
    epsilon: str, delta: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer(capsys, "--epsilon", epsilon, "--delta", delta)
    assert list(found["rho"]) == ["simple", "tight", "gaussian"]
    for name, rho in found["rho"].items():
        asked = float(Fraction(epsilon))
        assert asked * 0.999 < answer(capsys, "--rho", rho, "--delta", delta)["epsilon"][name] <= asked
    assert Fraction(found["rho"]["simple"]) < Fraction(found["rho"]["tight"]) < Fraction(found["rho"]["gaussian"])


def test_without_a_delta_epsilon_is_turned_at_the_usual_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "--epsilon", "1") == answer(capsys, "--epsilon", "1", "--delta", "1e-10")


def test_a_person_reads_rounded_epsilons_and_what_they_mean(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "--rho", "293764/114921", "--delta", "1e-10"]) == 0
    shown = capsys.readouterr().out
    assert "17.15 (17.1436)  tight" in shown
    assert "for groups of 5 (rho times 25)" in shown
    assert main(["convert", "--epsilon", "4", "--delta", "1e-6"]) == 0
    assert "buys rho" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--rho", "1"], "add for example --delta 1e-10"),
        (["--rho", "1", "--delta", "1"], "is not below 1"),
        (["--rho", "1", "--delta", "0"], "not above zero"),
        (["--rho", "two", "--delta", "1e-6"], "--rho: 'two' is not a number"),
        (["--rho", "-1", "--delta", "1e-6"], "not above zero"),
        (["--rho", "nan", "--delta", "1e-6"], "is not a number"),
        (["--epsilon", "1/0"], "part below the line is zero"),
        (["--rho", "1e9", "--delta", "1e-6"], "expected 1e-12 to 1e6"),
        (["--rho", "1", "--epsilon", "2"], "not allowed with"),
        ([], "required"),
    ],
)
def test_a_wrong_budget_is_refused_with_a_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", *arguments]) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert said.out == ""
    assert "Traceback" not in said.err
