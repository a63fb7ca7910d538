"""What published numbers promise, looked at once more: error columns, sums, signs, exact totals and rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from estimation.arrays import Flags, Integers
from estimation.intervals import LARGEST
from estimation.tables import Statistic
from estimation.verify import faults
from release_specs.load import Loaded
from release_specs.public_totals import public_bounds, public_totals
from release_specs.reading.public_files import PublicFiles
from release_specs.spec import ReleaseSpec
from release_specs.tallies import Tally
from reporting.hidden_cells import Hidden, whole_tallies
from reporting.layout import is_shown
from reporting.measurement_files import Key, Stored

NEAR, DUST = 2e-3, 1e-11
"""In steps, and as a part of the number: how far rounded numbers may be off each other."""


def error_faults(one: Statistic, flags: Sequence[str], *, signed: bool) -> list[str]:
    """What is wrong with the error columns of a statistic, in sentences."""
    tick = float(one.tick) if one.whole is not None else 0.0
    slack = tick * NEAR + 1e-8 * (one.whole is None) + DUST * np.abs(np.nan_to_num(one.estimate))
    is_wrong: dict[str, Flags] = {
        f"an unknown flag, expected one of {', '.join(repr(flag) for flag in flags)}": ~np.isin(one.flag, flags),
        "a negative margin of error": one.known & (one.moe < 0),
        "a low end above its high end": one.known & (one.low > one.high),
    }
    if one.whole is None:
        outside = (one.value < one.low - slack) | (one.value > one.high + slack) | (one.value != one.estimate)
        width = np.abs((one.high - one.low) / 2 - one.moe) > slack
    else:
        least, most = -LARGEST * tick if signed else 0.0, LARGEST * tick
        low, high = (np.clip(end, least, most) for end in (one.estimate - one.moe, one.estimate + one.moe))
        outside = (np.abs(one.low - low) > tick + slack) | (np.abs(one.high - high) > tick + slack)
        width = np.zeros_like(outside)
    is_wrong["an interval that is not that of its estimate and margin of error"] = one.known & (outside | width)
    return [f"{_said(one, where)}: {what}" for what, found in is_wrong.items() for where in np.argwhere(found)[:1]]


def _said(one: Statistic, where: Any) -> str:
    area = f", area {one.areas[where[0]].code}" if one.areas else ""
    return f"table '{one.table}' ({one.statistic}) at {one.level}{area}, cell {where[1] + 1}"


@dataclass(frozen=True, slots=True)
class _Exact:
    """Public numbers as `faults` wants them."""

    tally: Tally
    level: str | None
    numbers: Integers


def _array(numbers: Sequence[Sequence[int]]) -> Integers:
    return np.array(numbers, np.int64)


def broken_promises(
    loaded: Loaded, published: Mapping[Key, Integers], exact: Sequence[Stored], *, public: Path
) -> list[str]:
    """Every promise of the spec that published numbers break; `public` is the folder of the spec's public files."""
    spec, domain, files = loaded.spec, loaded.domain, PublicFiles(public)
    tallies = whole_tallies(spec, domain)
    totals: list[Any] = [
        _Exact(one.tally, one.level, _array(one.numbers)) for one in public_totals(spec, domain, files)
    ]
    found = faults(spec, domain, tallies, published, [*totals, *exact])
    return [*found, *_past_public_columns(spec, tallies, published, files)]


def put_together(tallies: Sequence[Tally], statistics: Sequence[Statistic], hidden: Hidden) -> dict[Key, Integers]:
    """Printed and hidden cells of each tally put together: (area, cell)."""
    named = {(one.table, one.statistic, one.level): one.whole for one in statistics if one.whole is not None}
    found: dict[Key, Integers] = {}
    for tally in tallies:
        word, shown = tally.statistic.partition("(")[0], is_shown(tally)
        for level in tally.levels or (None,):
            numbers = np.zeros((tally.areas(level), tally.cells), np.int64)
            numbers[:, shown] = named[tally.table, word, level]
            if not shown.all():
                numbers[:, ~shown] = hidden[tally.name, level]
            found[tally.name, level] = numbers
    return found


def _past_public_columns(
    spec: ReleaseSpec, tallies: Sequence[Tally], published: Mapping[Key, Integers], files: PublicFiles
) -> list[str]:
    """Where a rule against a public column does not hold."""
    holds = {"<=": np.less_equal, ">=": np.greater_equal, "=": np.equal}
    wrong = []
    for bound in public_bounds(spec, tallies, files):
        part = bound.rule.left
        for tally in (one for one in tallies if one.table == part.table and one.statistic == "count"):
            if bound.level not in (tally.levels or (None,)):
                continue
            chosen = published[tally.name, bound.level][:, _cells_with(tally, part.where)].sum(axis=1)
            limit = _array(bound.numbers).sum(axis=1)
            wrong += [
                f"table '{tally.table}' at {bound.level}: found {chosen[area]}, expected {bound.rule.relation} "
                f"{limit[area]} by rule '{bound.rule}'"
                for area in np.flatnonzero(~holds[bound.rule.relation](chosen, limit))
            ]
    return wrong


def _cells_with(tally: Tally, where: Sequence[tuple[str, str]]) -> Flags:
    """The cells with some codes, as a rule wants them."""
    wanted = np.ones(tally.shape, np.bool_)
    for name, code in where:
        axis = [attribute.name for attribute in tally.attributes].index(name)
        codes = [category.code == code for category in tally.attributes[axis].categories]
        mask = np.array([*codes, *[False] * tally.attributes[axis].hidden])
        wanted &= mask.reshape([-1 if one == axis else 1 for one in range(len(tally.shape))])
    return np.concatenate([wanted.ravel(), np.zeros(int(tally.elsewhere), np.bool_)])
