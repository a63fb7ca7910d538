"""The error of an average area, known before any data is opened."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from estimation.design import Design, design
from estimation.forecast import AverageLevel, Forecast, forecast
from release_specs.load import load_spec
from release_specs.populations import Populations
from release_specs.tallies import tallies_of

EXAMPLES = Path(__file__).parents[2] / "release_specs" / "examples"
FAN_OUTS = {"us": 51, "state": 61.6, "county": 27, "tract": 2.83, "block_group": 34, "block": 0}
EXPECTED = {
    "total": (7.7, 1.10, 2.09, 1.85, 1.55, 51.5),
    "race": (12.4, 11.3, 9.3, 2.58, 2.56, 14.9),
    "hispanic_by_race": (9.7, 9.0, 6.8, 1.84, 1.82, 10.9),
    "voting_age": (25.3, 15.1, 20.2, 19.0, 17.9, 47.2),
    "detailed": (4.2, 4.2, 4.0, 2.52, 1.79, 3.1),
}
"""Standard deviations that a matrix computation of the 2020 redistricting allocation gave, from the whole to blocks."""


def redistricting(*, with_impossible: bool, with_recode: bool = True) -> tuple[Design, Forecast]:
    loaded = load_spec(EXAMPLES / "redistricting_2020.yaml")
    spec = loaded.spec if with_impossible else loaded.spec.model_copy(update={"impossible": ()})
    left_out = {"exact"} if with_recode else {"exact", "institutions"}
    tallies = [one for one in tallies_of(spec, loaded.domain) if one.table not in left_out]
    populations = Populations(spec, loaded.domain, tallies)
    made = design(populations, populations.all[0])
    budget = spec.privacy.budget.rho
    assert budget is not None
    assert spec.spend.by_level is not None
    levels = []
    for name, children in FAN_OUTS.items():
        line = spec.spend.by_level.named[name]
        shares = {t: s for t, s in line.tables.named.items() if isinstance(s, Fraction) and t not in left_out}
        variances = {f"{t}.count@blocks": float(1 / (budget * line.share * s)) for t, s in shares.items()}
        levels.append(AverageLevel(name, variances, children))
    margins = [one.margin for one in made.margins.values()]
    return made, forecast(made.coordinates, made.core, margins=margins, levels=levels)


@pytest.mark.parametrize("table", EXPECTED)
def test_the_2020_allocation_has_the_errors_that_matrices_gave(table: str) -> None:
    made, found = redistricting(with_impossible=False, with_recode=False)
    assert made.is_closed_form
    margin = made.margins[f"{table}.count@blocks"].margin
    for level, expected in zip(FAN_OUTS, EXPECTED[table], strict=True):
        (deviation,) = found.deviation(margin, level)
        assert deviation == pytest.approx(expected, abs=0.0051 if expected < 3 else 0.051)


def test_what_is_impossible_and_what_a_recode_tells_make_estimates_better_and_none_worse() -> None:
    plain = redistricting(with_impossible=False, with_recode=False)
    recoded = redistricting(with_impossible=False)
    zeros = redistricting(with_impossible=True)
    for table in ("total", "race", "hispanic_by_race"):
        for level in FAN_OUTS:
            errors = [
                found.deviation(made.margins[f"{table}.count@blocks"].margin, level)[0]
                for made, found in (plain, recoded, zeros)
            ]
            assert errors[0] >= errors[1] - 1e-9
            assert errors[1] >= errors[2] - 1e-9
    made, found = zeros
    detailed = found.deviation(made.margins["detailed.count@blocks"].margin, "tract")
    assert (detailed == 0).sum() == 1  # minors in nursing facilities
    assert not made.is_closed_form
