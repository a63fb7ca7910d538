"""From the areas a spec declares to a `Hierarchy`: every area of every level, each in one larger area."""

from __future__ import annotations

from collections.abc import Iterable

from release_specs.diagnostics import Finding, Path, error, listed
from release_specs.domain import Area, Hierarchy
from release_specs.language.vocabulary import AreaList, Spine
from release_specs.reading.public_files import PublicFiles, PublicTable


def build_hierarchy(name: str, spine: Spine, files: PublicFiles) -> Hierarchy | None:
    """The hierarchy of one spine; None, with findings, where its areas are mistaken."""
    path: Path = ("geography", name)
    if len(set(spine.levels)) < len(spine.levels):
        twice = next(level for level in spine.levels if spine.levels.count(level) > 1)
        files.findings.append(error("name-clash", (*path, "levels"), f"level '{twice}' is listed twice; keep one"))
        return None
    if spine.areas.file is None:
        return _from_list(name, spine, spine.areas, files)
    table = files.table(spine.areas.file, (*path, "areas"))
    return _from_file(name, spine, table, files) if table else None


def _from_file(name: str, spine: Spine, table: PublicTable, files: PublicFiles) -> Hierarchy | None:
    path: Path = ("geography", name)
    present = tuple(level for level in spine.levels if level in table.header)
    needed = spine.levels if spine.levels[0] in table.header else spine.levels[1:]
    if spine.levels[-1] not in table.header and present:
        message = (
            f"'{table.file}' has no column '{spine.levels[-1]}', the smallest level; levels go from the whole down"
        )
        files.findings.append(error("file-column", (*path, "levels"), message, at_key=True))
        return None
    if not files.has_columns(table, needed or spine.levels, (*path, "areas")):
        return None
    if spine.whole is not None and present == spine.levels:
        message = f"'{table.file}' has a column '{spine.levels[0]}'; 'whole' is only for a first level without one"
        files.findings.append(error("whole-unneeded", (*path, "whole"), message, at_key=True))
        return None
    whole = (spine.whole.code, spine.whole.label or spine.whole.code) if spine.whole else (spine.levels[0],) * 2
    builder = _Builder(spine.levels, table.file, files, (*path, "areas"))
    places = [(level, table.header.index(level), _place_of(table, f"{level}_label")) for level in present]
    for line, row in table.rows:
        chain = [] if present == spine.levels else [whole]
        chain += [(row[code], row[label] if label is not None else row[code]) for _, code, label in places]
        builder.add(line, chain)
    return builder.hierarchy(name)


def _place_of(table: PublicTable, column: str) -> int | None:
    return table.header.index(column) if column in table.header else None


class _Builder:
    """Collects chains from the whole to the smallest area, and what is wrong with them."""

    def __init__(self, levels: tuple[str, ...], file: str, files: PublicFiles, path: Path) -> None:
        self.levels, self.file, self.files, self.path = levels, file, files, path
        self.areas: list[dict[str, Area]] = [{} for _ in levels]
        self.before: list[tuple[str, str]] = []
        self.faults = 0

    def add(self, line: int, chain: list[tuple[str, str]]) -> None:
        """Adds a chain; what the chain before had in common with it is known to be sound."""
        same = 0
        while same < len(chain) - 1 and same < len(self.before) and chain[same] == self.before[same]:
            same += 1
        faults = self.faults
        parent: str | None = chain[same - 1][0] if same else None
        for depth, (code, label) in enumerate(chain[same:], same):
            known = self.areas[depth].get(code)
            level = self.levels[depth]
            if not code:
                self._fault(line, f"the {level} is empty; every area has a code at every level")
            elif known is None:
                self.areas[depth][code] = Area(code, label or code, parent)
            elif known.parent != parent:
                self._fault(
                    line,
                    f"{level} '{code}' lies in {self.levels[depth - 1]} '{parent}' here and in '{known.parent}' above; "
                    "an area lies in one larger area (use codes that are unique in the whole file)",
                )
            elif known.label != (label or code):
                self._fault(line, f"{level} '{code}' is labelled '{label}' here and '{known.label}' above; keep one")
            elif depth == len(chain) - 1:
                self._fault(line, f"{level} '{code}' is listed twice; one row for each smallest area")
            parent = code
        self.before = chain if self.faults == faults else []

    def hierarchy(self, name: str) -> Hierarchy | None:
        if self.faults:
            return None
        if not self.areas[-1]:
            self.files.findings.append(error("area-row", self.path, f"'{self.file}' lists no area"))
            return None
        if len(self.areas[0]) > 1 and len(self.levels) > 1:
            found = listed(self.areas[0], 4)
            message = (
                f"the first level, '{self.levels[0]}', has {len(self.areas[0])} areas ({found}); it must be the whole: "
                f"one area. Add a level above it with 'whole: {{code: ..., label: ...}}'"
            )
            self.files.findings.append(error("no-whole", self.path, message))
            return None
        return Hierarchy(
            name,
            self.levels,
            {level: tuple(areas.values()) for level, areas in zip(self.levels, self.areas, strict=True)},
        )

    def _fault(self, line: int, message: str) -> None:
        self.faults += 1
        if self.faults <= 3:
            self.files.findings.append(error("area-row", self.path, message, place=(self.file, line, 1)))


def _from_list(name: str, spine: Spine, areas: AreaList, files: PublicFiles) -> Hierarchy | None:
    path: Path = ("geography", name, "areas")
    if spine.whole is not None:
        top = spine.whole.code
        inside = [(code, label, None if parent == top else parent) for code, label, parent in areas.inline]
        areas = AreaList(tuple(row for row in inside if row[0] != top))
    faults = list(_list_faults(spine, areas, path))
    files.findings.extend(faults)
    if faults:
        return None
    parents = {code: parent for code, _, parent in areas.inline}
    implied = _is_whole_implied(spine, areas)
    whole = spine.whole.code if spine.whole else spine.levels[0]
    by_level: dict[str, list[Area]] = {level: [] for level in spine.levels}
    if implied:
        by_level[spine.levels[0]].append(Area(whole, (spine.whole.label if spine.whole else None) or whole, None))
    for code, label, parent in areas.inline:
        depth = _depth(code, parents) + implied
        by_level[spine.levels[depth]].append(Area(code, label, whole if implied and parent is None else parent))
    return Hierarchy(name, spine.levels, {level: tuple(found) for level, found in by_level.items()})


def _is_whole_implied(spine: Spine, areas: AreaList) -> bool:
    parents = {code: parent for code, _, parent in areas.inline}
    depth = max(_depth(code, parents) for code in parents)
    several = sum(parent is None for parent in parents.values()) > 1
    return several or spine.whole is not None or depth == len(spine.levels) - 2


def _depth(code: str, parents: dict[str, str | None]) -> int:
    depth, seen = 0, {code}
    while (parent := parents[code]) is not None:
        if parent in seen:
            return -1
        seen.add(parent)
        code, depth = parent, depth + 1
    return depth


def _list_faults(spine: Spine, areas: AreaList, path: Path) -> Iterable[Finding]:
    parents = {code: parent for code, _, parent in areas.inline}
    for code, _, parent in areas.inline:
        if parent is not None and parent not in parents:
            yield error("unknown-area", (*path, code, "in"), f"'{parent}' is not an area of this list")
            return
    implied = _is_whole_implied(spine, areas)
    within = {parent for parent in parents.values() if parent is not None}
    for code in parents:
        depth = _depth(code, parents)
        if depth < 0:
            yield error("area-row", (*path, code), f"area '{code}' lies inside itself")
        elif depth + implied >= len(spine.levels):
            yield error("area-row", (*path, code), f"area '{code}' lies deeper than the {len(spine.levels)} levels")
        elif code not in within and depth + implied != len(spine.levels) - 1:
            smallest = spine.levels[-1]
            yield error(
                "area-row", (*path, code), f"area '{code}' holds no {smallest}; every branch reaches the smallest level"
            )
