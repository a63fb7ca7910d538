"""Noise drawn again around nothing: it spreads as the estimates' exact deviations say, area by area."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from estimation.redraw import errors_of_estimates
from tests.estimation.made_up import Normal, measured
from tests.estimation.releases import made


def test_areas_with_budgets_of_their_own_are_drawn_again_with_their_own_noise(tmp_path: Path) -> None:
    release = made({"one": "count: persons, by: [a, b], at: [land, spot]"}, tmp_path)
    tally, truth = release.tally("one"), release.truth(1, rows=80)
    given = measured(truth, release.measured, Normal(400.0), np.random.default_rng(2))
    areas = tally.areas("spot")
    scales = np.where(np.arange(areas) % 2, 9.0, 1.0)
    given = [replace(one, scales=scales) if one.level == "spot" else one for one in given]
    found = release.from_measurements(given, truth)
    (done,) = found.done
    rng = np.random.default_rng(3)
    level = done.planned.forest.name_of(tally.spine, "spot")
    drawn = np.stack([errors_of_estimates(done, given, rng)[level, tally.name] for _ in range(500)])
    spread = drawn.std(axis=0).mean(axis=1)
    expected = found.deviation(tally, "spot").mean(axis=1)[done.planned.forest.order[level]]
    assert expected.max() > 2 * expected.min()
    assert np.allclose(spread, expected, rtol=0.05)
