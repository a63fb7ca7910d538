"""What looks like a cheaper charge and is none: texts for enumerations, caps inside parts, another relation."""

from dataclasses import replace
from decimal import localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms.accountant import (
    Parallel,
    Sequential,
    across_releases,
    below_levels,
    by_attribute,
    for_groups,
    rounded_up,
    state,
)
from mechanisms.accounting.conversion import epsilon_tight, rho_tight
from mechanisms.bounded_sum import BoundedSum
from mechanisms.charge import Charge
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.noise.exponentials import Enclosure
from mechanisms.noise.inversion import Inversion
from mechanisms.noisy_max import NoisyMax
from mechanisms.permute_and_flip import PermuteAndFlip
from mechanisms.prices import pure_to_rho
from mechanisms.randomness import Randomness
from mechanisms.sensitivity import RECORD, Counts, NoProvedBound, Relation, Rows, Scores, Sums, Unit
from tests.mechanisms.charges import ADD_REMOVE, REPLACE, TABLE, TEN, gaussian, laplace
from tests.mechanisms.enumeration import Tape


@pytest.mark.parametrize(
    "build",
    [
        lambda: Counts().sensitivity(RECORD, "replace"),  # type: ignore[arg-type]
        lambda: Sums(0, 1).sensitivity(RECORD, "replace"),  # type: ignore[arg-type]
        lambda: Counts().sensitivity(3, REPLACE),  # type: ignore[arg-type]
        lambda: Counts(by="group", cap=5),  # type: ignore[arg-type]
        lambda: Counts(of="groups"),  # type: ignore[arg-type]
        lambda: Counts(one_cell="no"),  # type: ignore[arg-type]
        lambda: Sums(0, 1, one_cell=1),  # type: ignore[arg-type]
        lambda: Charge("q", DiscreteGaussian(Fraction(1)), TABLE, RECORD, "replace"),  # type: ignore[arg-type]
        lambda: replace(gaussian(1), attributes="sex"),  # type: ignore[arg-type]
        lambda: Randomness("kernel"),  # type: ignore[arg-type]
    ],
)
def test_a_text_does_not_pass_for_what_it_names(build: Any) -> None:
    with pytest.raises(TypeError):
        build()


def test_a_mechanism_that_nobody_knows_has_no_price() -> None:
    class Free:
        name = "free"
        parameters: dict[str, Fraction] = {}  # noqa: RUF012

        def rho(self, sensitivity: object) -> Fraction:
            return Fraction(0)

        epsilon = rho

    with pytest.raises(ValueError, match="has no price"):
        Charge("q", Free(), TABLE, RECORD, ADD_REMOVE)


@pytest.mark.parametrize("mechanism", [NoisyMax(Fraction(1)), PermuteAndFlip(Fraction(1))])
def test_a_quantile_is_selected_by_the_exponential_mechanism_only(mechanism: Any) -> None:
    with pytest.raises(ValueError, match="exponential"):
        Charge("q", mechanism, Scores(quantile=Fraction(1, 2)), RECORD, ADD_REMOVE)


@pytest.mark.parametrize("parts", [2, 5, 9])
def test_a_group_may_fill_the_caps_of_several_parts(parts: int) -> None:
    capped = [gaussian(1, Counts(cap=1), Unit(5)) for _ in range(parts)]
    in_each = min(parts, 5) * Fraction(1, 2)
    assert in_each <= Parallel(tuple(capped)).rho <= min(parts * Fraction(1, 2), Fraction(25, 2))
    noisy = [laplace(1, Counts(cap=1), Unit(5)) for _ in range(parts)]
    assert Parallel(tuple(noisy)).epsilon == min(parts, 5)


def test_parts_count_either_records_or_groups() -> None:
    with pytest.raises(NoProvedBound, match="either records or groups"):
        Parallel((gaussian(1), gaussian(1, Counts(of=Rows.GROUPS))))


def test_what_is_told_about_an_attribute_or_a_place_is_priced_for_a_unit_that_changes_it() -> None:
    plan = Sequential((gaussian(1, level="county", attributes=frozenset({"sex"})),))
    moved = epsilon_tight(Fraction(1), TEN)  # one cell left, another entered
    assert by_attribute(plan, TEN) == {"sex": moved}
    assert below_levels(plan, TEN, levels=("whole", "county")) == {"whole": moved}
    under_replace = Sequential((gaussian(1, TABLE, RECORD, REPLACE, attributes=frozenset({"sex"})),))
    assert by_attribute(under_replace, TEN) == {"sex": moved}


def test_parts_side_by_side_are_repriced_for_another_relation() -> None:
    plan = Sequential((Parallel((gaussian(1), (gaussian(2), gaussian(4)))),))
    assert plan.rho == Fraction(1, 2)
    assert plan.under(Relation.REPLACE).rho == 1


def test_an_edge_that_only_seems_to_lie_before_the_bits_is_not_taken_for_settled() -> None:
    """The enclosure's lower end falls into the cell before the bits read, its upper end into their own cell."""
    half = 1 << 127

    def cumulative(precision: int) -> list[Enclosure]:
        edge = half << (precision - 128)
        blur = 1 << (precision - 125) if precision < 400 else 0
        return [Enclosure(edge - blur, edge + 1), Enclosure(1 << precision, 1 << precision)]

    table = Inversion.__new__(Inversion)
    table._cumulative = cumulative  # type: ignore[method-assign]
    tape = Tape(((0, 64), (0, 64), (0, 64), (1, 64)))
    assert table._settle_on_an_edge(1 << 63, tape) == 1
    assert tape.read_words >= 3  # the first words agree with the edge: it takes more of them


def test_no_release_gives_back_what_another_has_spent() -> None:
    with pytest.raises(ValueError, match="gives back"):
        across_releases([Fraction(1), Fraction(-1, 2)], TEN)


@pytest.mark.parametrize("size", [1.5, 0, True, "2"])
def test_a_group_has_a_whole_number_of_units(size: Any) -> None:
    with pytest.raises(ValueError, match="at least one unit"):
        for_groups([gaussian(1)], TEN, size=size)


def test_an_epsilon_is_rounded_up_whatever_the_precision_of_decimals_is() -> None:
    with localcontext() as context:
        context.prec = 3
        assert str(rounded_up(12.335)) == "12.34"


def test_a_float_is_refused_also_after_its_fraction_was_priced() -> None:
    pure_to_rho(Fraction(1))
    with pytest.raises(TypeError):
        pure_to_rho(1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [Fraction(1, 10**10), Fraction(1, 10**250), Fraction(10**400)])
def test_absurd_scales_keep_the_prices_that_can_be_computed(scale: Fraction) -> None:
    pure = state([laplace(scale)], TEN)
    assert pure.price("basic").epsilon == 1 / scale
    assert pure.published.epsilon is not None
    assert pure.published.epsilon <= 1 / scale
    wide = state([gaussian(scale)], TEN)
    assert wide.rho == 1 / (2 * scale)
    if scale > 1:
        assert float(wide.price("zCDP simple").epsilon or 0) > 0
        assert wide.published.epsilon == 0  # at this delta nothing is told


def test_the_most_rho_is_the_end_of_the_search_and_no_fault() -> None:
    assert rho_tight(Fraction(2 * 10**9), TEN) <= 10**9


def test_a_refused_sum_does_not_say_how_many_values_there_were() -> None:
    with pytest.raises(ValueError, match="one length") as refusal:
        BoundedSum(Sums(0, 1)).totals(np.zeros(7771, np.int64), np.zeros(7772, np.int64), size=3)
    assert "777" not in str(refusal.value)
