"""The cells that are measured and never printed, as settled: CSV files under `not_stated/`.

Tables leave out rows whose code is not stated. To see that tables add up and agree one needs those rows too: here is
the published whole number of each, for every table of counts or sums that has such cells. One row for each hidden cell:
level, area, the attributes, value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from urllib.parse import quote

import numpy as np

from estimation.arrays import Integers
from estimation.release import Estimated
from release_specs.domain import Attribute, Domain
from release_specs.spec import ReleaseSpec
from release_specs.tallies import Tally
from reporting.csv_rows import (
    area_chunks,
    column_names,
    field,
    header,
    leads,
    lines,
    read_bytes,
    read_columns,
    require_written,
)
from reporting.decimals import decimals, read_decimals
from reporting.errors import ReleaseFault
from reporting.layout import is_shown, parts_of

FOLDER = "not_stated"
NOT_STATED, ELSEWHERE = "not stated", "elsewhere"

Hidden = Mapping[tuple[str, str | None], Integers]
"""For each tally by name, and level, the whole numbers of its hidden cells: (area, hidden cell)."""


def file_name(tally: Tally, suffix: str) -> str:
    """The name of a tally's file, whatever letters its columns have."""
    return quote(tally.name, safe="@()") + suffix


def extended_codes(attribute: Attribute) -> list[str]:
    """The codes of an attribute; the last is "not stated" where it is hidden, in brackets if a code is called that."""
    codes = [category.code for category in attribute.categories]
    if not attribute.hidden:
        return codes
    return [*codes, unlike(NOT_STATED, codes)]


def unlike(word: str, codes: list[str]) -> str:
    """A word in as many brackets as it takes to be none of the codes."""
    while word in codes:
        word = f"({word})"
    return word


def cell_codes(tally: Tally) -> list[tuple[str, ...]]:
    """For each cell of a tally the codes of its attributes."""
    codes = [extended_codes(attribute) for attribute in tally.attributes]
    places = np.indices(tally.shape).reshape(len(tally.shape), -1) if codes else np.zeros((0, 1), np.int64)
    found = [tuple(codes[n][place] for n, place in enumerate(cell)) for cell in places.T.tolist()]
    return [*found, *[tuple(unlike(ELSEWHERE, one) for one in codes)] * tally.elsewhere]


def whole_tallies(spec: ReleaseSpec, domain: Domain) -> list[Tally]:
    """The tallies whose whole numbers are published, in the order of the tables."""
    parts = [part for found in parts_of(spec, domain).values() for part in found]
    return list({part.tally.name: part.tally for part in parts if part.tally is not None}.values())


def write_hidden(folder: Path, estimated: Estimated, *, spec: ReleaseSpec, domain: Domain) -> list[Path]:
    """The files under `not_stated/`; none, and no folder, where all that is measured is printed."""
    written = []
    for tally in (one for one in whole_tallies(spec, domain) if not is_shown(one).all()):
        hidden = {level: estimated.value(tally, level)[:, ~is_shown(tally)] for level in tally.levels or (None,)}
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)
        path = folder / FOLDER / file_name(tally, ".csv")
        with path.open("xb") as file:
            file.writelines(_pieces(tally, hidden))
        written.append(path)
    return written


def _names(tally: Tally) -> list[str]:
    return ["level", "area", *column_names(tally.attributes), "value"]


def _pieces(tally: Tally, hidden: Mapping[str | None, Integers]) -> Iterator[bytes]:
    yield header(_names(tally))
    codes = [
        ",".join(map(field, one)) for one, shown in zip(cell_codes(tally), is_shown(tally), strict=True) if not shown
    ]
    for level, numbers in hidden.items():
        areas = tally.spine.areas[level] if tally.spine is not None and level is not None else ()
        beginnings = leads(level, areas)
        for piece in area_chunks(*numbers.shape):
            yield lines(beginnings[piece], codes, [decimals(numbers[piece].ravel(), _tick(tally))])


def _tick(tally: Tally) -> Fraction:
    return tally.adds.step if tally.adds is not None else Fraction(1)


def read_hidden(folder: Path, spec: ReleaseSpec, domain: Domain) -> Hidden:
    """The hidden cells of every table. Raises `ReleaseFault` where a file is missing, or not as it is written."""
    wanted = {file_name(one, ".csv"): one for one in whole_tallies(spec, domain) if not is_shown(one).all()}
    present = {path.name for path in (folder / FOLDER).iterdir()} if (folder / FOLDER).is_dir() else set()
    for name in sorted(present - set(wanted)):
        raise ReleaseFault(f"{FOLDER}/{name}: no published table has such hidden cells; remove the file")
    found: dict[tuple[str, str | None], Integers] = {}
    for name, tally in wanted.items():
        found |= {(tally.name, level): numbers for level, numbers in _read(folder / FOLDER / name, tally).items()}
    return found


def _read(path: Path, tally: Tally) -> dict[str | None, Integers]:
    file, cells = f"{FOLDER}/{path.name}", int((~is_shown(tally)).sum())
    data = read_bytes(path, file)
    sizes = {level: tally.areas(level) * cells for level in tally.levels or (None,)}
    texts = read_columns(data, _names(tally), file=file, rows=sum(sizes.values()))["value"]
    try:
        numbers = read_decimals(texts, _tick(tally))
    except ReleaseFault as fault:
        raise ReleaseFault(f"{file}: {fault}") from None
    if numbers.dtype == object:
        raise ReleaseFault(f"{file}: a value is larger than any count or sum")
    ends = np.cumsum([0, *sizes.values()])
    found = {
        level: numbers[first:last].reshape(-1, cells)
        for level, first, last in zip(sizes, ends[:-1], ends[1:], strict=True)
    }
    require_written(data, b"".join(_pieces(tally, found)), file)
    return found
