"""The areas of a description: which columns carry the smallest areas, and the `geography` section they need."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

from release_specs.starter.description import DescribedColumn, Description
from release_specs.starter.dictionary import as_name
from release_specs.starter.outline import Block, Entry, Undecided, Value, comment_text, inline

MOST_INLINE = 40
"""A longer list of codes or areas goes to a CSV file beside the spec."""


@dataclass(frozen=True, slots=True)
class SpineSketch:
    """A spine as far as it is known: its levels, the list of areas that is described, or the smallest areas' codes."""

    name: str
    smallest: str
    levels: tuple[str, ...] = ()
    suggested: tuple[str, ...] = ()
    file: str = ""
    codes: tuple[tuple[str, str], ...] = ()


def spines_of(known: Description) -> dict[tuple[str, str], SpineSketch]:
    """The spine of every (file, column) that carries smallest areas; one column of a file for each spine."""
    found: dict[tuple[str, str], SpineSketch] = {}
    listed = {areas.name: _listed_spine(areas.name, known) for areas in known.areas}
    for file in known.files:
        used: set[str] = set()
        coarser = {level for column in file.columns for level in column.levels[:-1]}
        for column in file.columns:
            if column.kind != "geography":
                continue
            spine = _own_spine(column, known)
            if column.refers_to is not None and column.refers_to[0] in listed:
                spine = listed[column.refers_to[0]]
                if column.refers_to[1] != spine.smallest:
                    continue
            if column.name not in coarser and spine.name not in used:
                found[file.name, column.name] = spine
                used.add(spine.name)
    return found


def _listed_spine(name: str, known: Description) -> SpineSketch:
    """A described list of areas. The smallest level is the finest that a file refers to."""
    pointing = [c for file in known.files for c in file.columns if c.refers_to is not None and c.refers_to[0] == name]
    areas = next(areas for areas in known.areas if areas.name == name)
    referred = {column.refers_to[1] for column in pointing if column.refers_to is not None}
    described = [column.levels for column in (*pointing, *areas.columns) if column.levels]
    levels = max(described, key=len, default=())
    while levels and levels[-1] not in referred:
        levels = levels[:-1]
    if levels:
        return SpineSketch(name, levels[-1], levels, file=f"{name}.csv")
    finest_first = [column.name for column in areas.columns if column.kind == "geography"]
    smallest = next((level for level in finest_first if level in referred), min(referred))
    return SpineSketch(name, smallest, suggested=tuple(reversed(finest_first)), file=f"{name}.csv")


def _own_spine(column: DescribedColumn, known: Description) -> SpineSketch:
    """A column that points at no described list: its codes, if there are any, are the smallest areas."""
    alike = [c for file in known.files for c in file.columns if c.kind == "geography" and c.name == column.name]
    levels = max((c.levels for c in alike), key=len)
    codes = max((c.codes for c in alike), key=len)
    return SpineSketch(
        f"{as_name(column.name).lower()}_areas", levels[-1] if levels else column.name, levels, codes=codes
    )


def geography(known: Description) -> tuple[Entry, ...]:
    """The entries of the `geography` section."""
    spines = {spine.name: spine for spine in spines_of(known).values()}
    return tuple(Entry(spine.name, _spine_block(spine, known.source)) for spine in spines.values())


def area_files(known: Description) -> dict[str, str]:
    """The lists of areas that are too long, or too little known, to stand in the spec: drafts to be filled in."""
    spines = {spine.name: spine for spine in spines_of(known).values()}
    return {f"{name}.csv": _drafted_list(spine) for name, spine in spines.items() if _is_drafted(spine)}


def _is_drafted(spine: SpineSketch) -> bool:
    return bool(spine.codes) and not spine.file and (len(spine.levels) > 2 or len(spine.codes) > MOST_INLINE)


def _spine_block(spine: SpineSketch, source: str) -> Block:
    levels: Value = spine.levels
    if len(spine.levels) < 2:
        levels = (Undecided("the name of the whole, the first level", "country"), spine.smallest)
    if spine.suggested:
        levels = Undecided("the levels, from the whole to the smallest", inline(spine.suggested), source)
    columns = f"one row for each {spine.smallest}, a column for each level; LEVEL_label optional"
    if spine.file:
        return Block((Entry("levels", levels), Entry("areas", spine.file, beside=columns)))
    if _is_drafted(spine):
        blank = [part for level in spine.levels[1:-1] for part in (level, f"{level}_label")]
        beside = f"drafted beside this spec: fill in {' and '.join(blank)}" if blank else "beside this spec"
        return Block((Entry("levels", levels), Entry("areas", f"{spine.name}.csv", beside=beside)))
    if not spine.codes:
        areas = Undecided(f"a file: {columns}", f"{spine.name}.csv")
        return Block((Entry("levels", levels), Entry("areas", areas)))
    rows = tuple(Entry(code, Block((Entry("label", label),), fit=True)) for code, label in spine.codes)
    return Block((Entry("levels", levels), Entry("areas", Block(rows, aligned=True))))


def _drafted_list(spine: SpineSketch) -> str:
    between = [part for level in spine.levels[1:-1] for part in (level, f"{level}_label")]
    rows = [(*("" for _ in between), code, label) for code, label in spine.codes]
    return csv_text((*between, spine.smallest, f"{spine.smallest}_label"), rows)


def csv_text(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A public CSV file as text; every field is one line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(tuple(comment_text(field) for field in row) for row in rows)
    return text.getvalue()
