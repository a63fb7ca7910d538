"""Published statistics: what plain counting says where there is no noise, and intervals that hold where there is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

from estimation.error import Margins
from estimation.estimate import unbiased
from estimation.intervals import agency_quantile
from estimation.least_squares import refitted
from estimation.observations import Observation
from estimation.release import Estimated, estimate_release
from estimation.tables import NOT_KNOWN, Statistic, published_statistics
from release_specs.load import load_text
from release_specs.tallies import Tally
from tests.estimation.made_up import Laplace, Normal
from tests.estimation.published import EXAMPLES, SMALL, Oracle, Released, example, released, small

NINE_TENTHS = Fraction(9, 10)
SURE = Normal(1e-6)
DRAWS = 200
Floats = npt.NDArray[np.float64]

# Few cells, each large enough to divide by, so that many draws take seconds.
COVERED = (
    SMALL[: SMALL.index("tables:")]
    + """
tables:
  people: {count: persons, by: [sex], at: all}
  wages:  {mean: income, quantiles: {income: {at: [1/4, 1/2], every: 5.5}}, of: persons, at: all}
  poor:   {proportion: {income: ..21.9}, of: persons, at: all}
  earned: {sum: income, of: persons, by: [sex], at: all}
  each:   {ratio: earned / people, at: all}
  times:  {compare: {sex: [1, 2]}, of: people, as: ratio, at: all}
publish: {confidence: 90%}
"""
)


@cache
def release_of(name: str) -> Released:
    """A release with made-up rows."""
    if name == "covered":
        return released(load_text(COVERED, file="covered.yaml", folder=EXAMPLES), rows=4000, seed=4)
    return small() if name == "small" else example(name)


@cache
def without_noise(name: str) -> tuple[Statistic, ...]:
    """Every statistic of a release whose measurements are exact, and are said to be nearly so."""
    return tuple(statistics_of(release_of(name), SURE, None))


def statistics_of(
    release: Released, noise: Normal | Laplace, rng: np.random.Generator | None, *, rule: str = "exact"
) -> Iterator[Statistic]:
    """Every statistic of a release."""
    estimated, noisy = release.estimated(noise, rng)
    margins = Margins(estimated, noisy, confidence=NINE_TENTHS, rule=rule)
    return published_statistics(estimated, margins, release.spec, release.domain)


def one_of(found: tuple[Statistic, ...], table: str, level: str, statistic: str | None = None) -> Statistic:
    """The statistic of a table at a level."""
    return next(one for one in found if (one.table, one.level) == (table, level) and statistic in (None, one.statistic))


def floats(numbers: list[list[Fraction | None]]) -> Floats:
    return np.array([[np.nan if number is None else float(number) for number in row] for row in numbers])


def holds(found: Statistic) -> bool:
    """Whether known numbers lie in their intervals, and others are no numbers and flagged."""
    inside = (found.low <= found.value + 1e-9) & (found.value - 1e-9 <= found.high) & (found.moe >= 0)
    parts = (found.value, found.estimate, found.moe, found.low, found.high)
    hidden = np.all([np.isnan(part) for part in parts], axis=0) & (found.flag == NOT_KNOWN)
    return bool(np.where(found.known, inside | (found.whole is not None), hidden).all())


@pytest.mark.parametrize("name", ["small", "births", "schools", "households", "acs"])
def test_without_noise_every_statistic_is_what_plain_counting_says(name: str) -> None:
    oracle = Oracle(release_of(name))
    for found in without_noise(name):
        expected = floats(oracle.numbers(found))
        assert found.known.tolist() == (~np.isnan(expected)).tolist(), (found.table, found.statistic)
        near = pytest.approx(expected, rel=1e-6, abs=1e-6, nan_ok=True)
        assert found.estimate == near, (found.table, found.statistic, found.level)
        if found.whole is None or name != "acs":  # tables of acs meet in so many columns that settling moves some
            assert found.value == near, (found.table, found.statistic, found.level)
            assert holds(found)


@pytest.mark.parametrize("name", ["small", "births", "schools", "households", "acs"])
def test_every_published_table_has_every_statistic_at_every_level_in_the_order_written(name: str) -> None:
    release = release_of(name)
    published = [table for table, facts in release.spec.tables.items() if facts.publish]
    found = without_noise(name)
    assert list(dict.fromkeys(one.table for one in found)) == published
    keys = [(one.table, one.statistic, one.column, one.level) for one in found]
    assert len(set(keys)) == len(keys)
    for table in published:
        facts = release.spec.tables[table]
        quantiles = [f"quantile {share}" for one in (facts.quantiles or {}).values() for share in one.at]
        words = [facts.as_ or word for word in facts.statistics if word != "quantiles"] + quantiles
        levels = release.domain.level_spine((facts.at or ("",))[0])
        wanted = levels.levels if levels is not None else next(iter(release.domain.hierarchies.values())).levels
        at = [level for level in wanted if facts.at == ("all",) or level in (facts.at or ())]
        assert [key[1::2] for key in keys if key[0] == table] == [(word, level) for level in at for word in words]


def test_statistics_say_what_they_are_of_and_in_which_unit() -> None:
    found = without_noise("small")
    units = {(one.table, one.statistic): (one.column, one.unit) for one in found}
    assert units["people", "count"] == (None, None)
    assert units["earned", "sum"] == units["income", "mean"] == units["income", "quantile 1/4"] == ("income", "dollars")
    assert units["each", "ratio"] == (None, "dollars")
    assert units["gap", "percent"] == (None, "percent")
    assert units["gap_kinds", "difference"] == (None, "dollars")
    assert units["more", "difference"] == units["times", "ratio"] == units["poor", "proportion"] == (None, None)


def test_cells_that_are_not_stated_are_measured_and_not_shown() -> None:
    release, shown = release_of("small"), one_of(without_noise("small"), "people", "block")
    assert [attribute.name for attribute in shown.attributes] == ["sex", "kind"]
    assert release.truth["people.count@town", "block"].shape == (3, 6)
    assert shown.value.shape == (3, 4)
    assert [area.code for area in shown.areas] == ["A1", "A2", "A3"]


def test_not_stated_cells_of_what_is_summed_out_count_and_those_of_what_is_kept_do_not() -> None:
    release, found = release_of("small"), one_of(without_noise("small"), "each", "whole_town")
    people = release.truth["people.count@town", "whole_town"].reshape(3, 2)
    earned = release.truth["earned.sum(income)@town", "whole_town"].ravel() / 10
    assert people[2].sum() > 50  # of a sex that was not stated
    assert found.value.ravel() == pytest.approx(earned / people.sum(axis=0))


def test_sums_add_up_over_levels_in_declared_units() -> None:
    found = tuple(statistics_of(release_of("small"), Normal(50.0), np.random.default_rng(1)))
    whole, parts = (one_of(found, "earned", level) for level in ("whole_town", "block"))
    assert whole.whole is not None
    assert parts.whole is not None
    assert whole.tick == Fraction(1, 10)
    assert whole.whole.tolist() == [parts.whole.sum(axis=0).tolist()]
    for one in (whole, parts):
        meant = [[float(int(ticks) * one.tick) for ticks in row] for row in one.whole]
        assert one.value.tolist() == meant  # each the nearest float, so that it prints as the decimal that is meant
    assert holds(whole)
    assert whole.estimate == pytest.approx(parts.estimate.sum(axis=0)[None], abs=1e-6)
    assert whole.moe[0, 0] == pytest.approx(parts.moe[0, 0], rel=0.5)


def test_counts_are_whole_numbers_with_the_margins_of_the_release() -> None:
    release = release_of("small")
    estimated, noisy = release.estimated(Normal(9.0), np.random.default_rng(2))
    margins = Margins(estimated, noisy, confidence=NINE_TENTHS)
    found = tuple(published_statistics(estimated, margins, release.spec, release.domain))
    people = one_of(found, "people", "block")
    tally = next(one for one in release.tallies if one.name == "people.count@town")
    error = margins.of(tally, "block", classes=release.spec.publish.reliability)
    assert people.whole is not None
    assert people.whole.tolist() == estimated.value(tally, "block")[:, :4].tolist()
    assert people.estimate.tolist() == estimated.estimate(tally, "block")[:, :4].tolist()
    for mine, theirs in ((people.moe, error.moe), (people.low, error.low), (people.flag, error.flag)):
        assert mine.tolist() == theirs[:, :4].tolist()


def test_where_noise_drowns_the_denominator_the_row_stays_without_a_value() -> None:
    drowned = tuple(statistics_of(release_of("small"), Normal(1e9), np.random.default_rng(3)))
    for table in ("income", "poor", "each", "gap", "times"):
        for found in (one for one in drowned if one.table == table):
            assert found.value.shape[0] == len(found.areas)
            assert holds(found)
    lost = one_of(drowned, "gap", "block")
    assert not lost.known.any()
    assert np.isnan(lost.value).all()
    assert (lost.flag == NOT_KNOWN).all()
    assert one_of(drowned, "people", "block").known.all()


def test_a_table_that_nothing_tells_is_not_known_and_keeps_its_whole_numbers() -> None:
    release = release_of("small")
    noisy = [one for one in release.estimated(SURE, None)[1] if one.tally.table != "earned"]
    estimated = estimate_release(release.problem, noisy)
    margins = Margins(estimated, noisy, confidence=NINE_TENTHS)
    found = tuple(published_statistics(estimated, margins, release.spec, release.domain))
    lost, each = one_of(found, "earned", "block"), one_of(found, "each", "block")
    assert not lost.known.any()
    assert not each.known.any()
    assert np.isnan(lost.estimate).all()
    assert np.isfinite(lost.value).all()
    assert np.isnan(each.value).all()
    assert one_of(found, "people", "block").known.all()


def test_numbers_are_flagged_by_their_own_size() -> None:
    found = tuple(statistics_of(release_of("small"), Normal(400.0), np.random.default_rng(4)))
    for one in found:
        if one.whole is None:
            size = np.abs(one.value)
            with np.errstate(all="ignore"):
                cv = np.where(one.moe > 0, one.moe / 1.6448536 / size, 0.0)
            flags = np.select([~one.known, one.moe > size, cv > 0.2], [NOT_KNOWN, "unreliable", "caution"], "")
            assert one.flag.tolist() == flags.tolist(), (one.table, one.statistic)
    assert {"", "caution", "unreliable", NOT_KNOWN} <= {str(flag) for one in found for flag in one.flag.ravel()}


def test_the_agencies_rule_takes_their_multiplier() -> None:
    exact, agency = (
        tuple(statistics_of(release_of("small"), Normal(9.0), np.random.default_rng(5), rule=rule))
        for rule in ("exact", "agency")
    )
    times = agency_quantile(NINE_TENTHS) / 1.6448536269514722
    for one, other in zip(exact, agency, strict=True):
        if one.statistic == "difference" and one.table == "more":
            assert other.moe == pytest.approx(one.moe * times, rel=1e-9)
            assert times != 1.0


class Once(Margins):
    """Margins with the multipliers of another draw: they depend on the laws of the noise, not on what was drawn."""

    def __init__(self, first: Margins, estimated: Estimated) -> None:
        super().__init__(estimated, first.measurements, confidence=first.confidence)
        self.first = first

    def multiplier(self, tally: Tally, level: str | None) -> float:
        """The multiplier of the other draw."""
        return self.first.multiplier(tally, level)


def redrawn(first: Estimated, drawn: Normal | Laplace, rng: np.random.Generator) -> Estimated:
    """The same release, estimated again from exact numbers with fresh noise."""

    def noisy(one: Observation) -> Floats:
        return one.numbers + drawn.draw(one.numbers.size, rng).reshape(one.numbers.shape)

    done = []
    for one in first.done:
        best = unbiased(replace(one.work, fit=refitted(one.work.fit, noisy)))
        done.append(replace(one, settled=replace(one.settled, best=best)))
    return replace(first, done=tuple(done))


def coverage(stated: Normal | Laplace, drawn: Normal | Laplace, *, draws: int) -> dict[tuple[str, str], float]:
    """How often the truth lies within the interval, for each table and statistic."""
    release = release_of("covered")
    estimated, exact = release.estimated(stated, None)
    first = Margins(estimated, exact, confidence=NINE_TENTHS)
    truths: dict[tuple[str, str, str | None], Floats] = {}
    hits: dict[tuple[str, str], list[float]] = {}
    rng = np.random.default_rng(12)
    for _ in range(draws):
        again = redrawn(estimated, drawn, rng)
        for one in published_statistics(again, Once(first, again), release.spec, release.domain):
            key = (one.table, one.statistic, one.level)
            if key not in truths:
                truths[key] = floats(Oracle(release).numbers(one))
            inside = (one.low - 1e-9 <= truths[key]) & (truths[key] <= one.high + 1e-9)
            assert one.known.all()
            hits.setdefault(key[:2], []).append(float(inside.mean()))
    return {key: float(np.mean(found)) for key, found in hits.items()}


@pytest.mark.parametrize("noise", [Normal(16.0), Laplace(3.0)], ids=["gaussian", "two-sided geometric"])
def test_intervals_hold_the_truth_about_as_often_as_they_say(noise: Normal | Laplace) -> None:
    found = coverage(noise, noise, draws=DRAWS)
    for key in (("wages", "mean"), ("poor", "proportion"), ("each", "ratio"), ("times", "ratio")):
        assert 0.87 < found[key] < 0.945, (key, found[key])
    for key in (("wages", "quantile 1/4"), ("wages", "quantile 1/2")):
        assert found[key] > 0.88, (key, found[key])  # a grid point is missed less often than a number in between


def test_and_the_test_would_notice_noise_that_is_larger_than_stated() -> None:
    found = coverage(Normal(16.0), Normal(32.0), draws=DRAWS // 3)
    for key in (("wages", "mean"), ("poor", "proportion"), ("each", "ratio"), ("times", "ratio")):
        assert found[key] < 0.84, (key, found[key])
