"""Small towns written twice: as the text of a spec, and as plain rows that are counted without the product.

A column's codes are numbered from 1; the number after the last stands for "not stated", 0 for "does not apply".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np
import numpy.typing as npt

from release_specs.tallies import Tally

Integers = npt.NDArray[np.int64]
Row = dict[str, int]
PEOPLE, HOMES = "people", "homes"


@dataclass(frozen=True)
class PlainColumn:
    """A column: its codes, whether values may be left out, and for whom it applies (a column and codes of it)."""

    name: str
    owner: str
    codes: int
    hidden: bool = False
    applies: tuple[str, tuple[int, ...]] | None = None

    @property
    def values(self) -> list[int]:
        """Everything a row may have where the column applies."""
        return list(range(1, self.codes + 1 + self.hidden))

    def written(self) -> str:
        """Its line in a spec."""
        rule = "leave_out" if self.hidden else "{count_as: 1}"
        more = ""
        if self.applies is not None:
            more = f", applies_to: {{{self.applies[0]}: {list(self.applies[1])}}}, not_applicable: 0"
        return f"{self.name}: {{codes: {list(range(1, self.codes + 1))}, outside: {rule}, missing: {rule}{more}}}"


@dataclass(frozen=True)
class PlainTable:
    """A table of counts."""

    name: str
    universe: str
    by: tuple[str, ...]
    at: tuple[str, ...]

    def written(self) -> str:
        """Its line in a spec."""
        place = f", at: [{', '.join(self.at)}]" if self.at else ""
        return f"{self.name}: {{count: {self.universe}, by: [{', '.join(self.by)}]{place}}}"


@dataclass(frozen=True)
class Town:
    """A spec of people, perhaps in homes, with everything that decides their cells.

    `recodes` give for each name a column and groups of its codes; `universes` a column and the codes wanted of it.
    Areas are a tree: for each level but the first the number of each area's parent.
    """

    columns: tuple[PlainColumn, ...]
    tables: tuple[PlainTable, ...]
    parents: tuple[tuple[int, ...], ...] = ()
    levels: tuple[str, ...] = ()
    recodes: dict[str, tuple[str, tuple[tuple[int, ...], ...]]] = field(default_factory=dict)
    universes: dict[str, tuple[str, str, tuple[int, ...]]] = field(default_factory=dict)
    impossible: tuple[tuple[tuple[str, int], tuple[str, int]], ...] = ()
    rules: tuple[str, ...] = ()

    def column(self, name: str) -> PlainColumn:
        """The column of a name or of the recode with that name."""
        base = self.recodes[name][0] if name in self.recodes else name
        return next(one for one in self.columns if one.name == base)

    def entity(self, universe: str) -> str:
        """People or homes."""
        return self.universes[universe][0] if universe in self.universes else universe

    @property
    def has_homes(self) -> bool:
        """Whether people live in homes."""
        return any(one.owner == HOMES for one in self.columns)

    @property
    def areas(self) -> int:
        """The number of the smallest areas."""
        return len(self.parents[-1]) if self.parents else 1

    def written(self) -> str:
        """The spec as a text; its areas are in areas.csv."""
        lines = ["margrave: 1", "release: {name: town, title: A town}", "microdata:"]
        for owner in (HOMES, PEOPLE) if self.has_homes else (PEOPLE,):
            inside = f"\n    in: {{{HOMES}: home}}" if owner == PEOPLE and self.has_homes else ""
            lines += [f"  {owner}:", f"    key: {owner}_id{inside}", "    columns:"]
            if self.levels and (owner == HOMES or not self.has_homes):
                lines.append("      block: {area: town, outside: {count_as: B0}, missing: {count_as: B0}}")
            lines += [f"      {one.written()}" for one in self.columns if one.owner == owner]
            if not any(one.owner == owner for one in self.columns):
                lines.append("      idle: {codes: [1, 2], outside: {count_as: 1}, missing: {count_as: 1}}")
        if self.levels:
            lines.append(f"geography: {{town: {{levels: [{', '.join(self.levels)}], areas: areas.csv}}}}")
        for title, written in (("recodes", self._recodes()), ("universes", self._universes())):
            lines += [f"{title}:", *written] if written else []
        cap = "at_most: {people: 4}, " if self.has_homes else ""
        unit = HOMES if self.has_homes else PEOPLE
        lines.append(f"privacy: {{protect: {unit}, {cap}neighbours: add-remove, budget: {{rho: 1, delta: 1e-10}}}}")
        lines += ["tables:", *(f"  {one.written()}" for one in self.tables), "spend: {by_table: {rest: optimal}}"]
        if self.impossible:
            lines += ["impossible:", *(f"  - {{{a}: {x}, {b}: {y}}}" for (a, x), (b, y) in self.impossible)]
        if self.rules:
            lines += ["rules:", *(f"  - {rule}" for rule in self.rules)]
        return "\n".join([*lines, "publish: {confidence: 90%}", ""])

    def _recodes(self) -> list[str]:
        return [
            f"  {name}: {{of: {of}, into: {{{', '.join(f'G{n}: {list(g)}' for n, g in enumerate(groups))}}}}}"
            for name, (of, groups) in self.recodes.items()
        ]

    def _universes(self) -> list[str]:
        return [
            f"  {name}: {{of: {entity}, where: {{{column}: {list(codes)}}}}}"
            for name, (entity, column, codes) in self.universes.items()
        ]

    def areas_file(self) -> str:
        """The areas as a public file: one line for each of the smallest."""
        lines = [",".join(self.levels)]
        for leaf in range(self.areas):
            path, now = [], leaf
            for depth in range(len(self.levels) - 1, -1, -1):
                path.insert(0, f"{'B' if depth == len(self.levels) - 1 else f'L{depth}_'}{now}")
                now = self.parents[depth][now]
            lines.append(",".join(path))
        return "\n".join([*lines, ""])

    def kinds(self, entity: str) -> list[Row]:
        """Every row that can occur, whatever tables meet in it."""
        columns = [one for one in self.columns if entity == PEOPLE or one.owner == HOMES]
        rows = []
        for values in product(*([0, *one.values] for one in columns)):
            row = dict(zip((one.name for one in columns), values, strict=True))
            if all((row[one.name] != 0) == self._applies(one, row) for one in columns):
                rows.append(row)
        return rows

    def _applies(self, column: PlainColumn, row: Row) -> bool:
        return column.applies is None or row[column.applies[0]] in column.applies[1]

    def is_impossible(self, row: Row, among: set[str]) -> bool:
        """Whether a row has a combination of these columns that cannot occur."""
        return any({a, b} <= among and row.get(a) == x and row.get(b) == y for (a, x), (b, y) in self.impossible)

    def cell(self, tally: Tally, row: Row) -> int:
        """The cell of a table that a row falls into; negative for none."""
        table = next(one for one in self.tables if one.name == tally.table)
        if table.universe in self.universes:
            _, column, codes = self.universes[table.universe]
            if row[column] not in codes:
                return -1
        place = 0
        for name in table.by:
            column, value = self.column(name), row[self.column(name).name]
            if value == 0:
                return -1
            groups = self.recodes[name][1] if name in self.recodes else [(code,) for code in range(1, column.codes + 1)]
            stated = [n for n, group in enumerate(groups) if value in group]
            place = place * (len(groups) + column.hidden) + (stated[0] if stated else len(groups))
        return place

    def columns_of(self, tally: Tally) -> set[str]:
        """The columns that decide where a table counts a row."""
        table = next(one for one in self.tables if one.name == tally.table)
        found = {self.column(name).name for name in table.by}
        if table.universe in self.universes:
            found.add(self.universes[table.universe][1])
        while True:
            more = {one.applies[0] for one in self.columns if one.name in found and one.applies is not None} - found
            if not more:
                return found
            found |= more

    def cells_of(self, tallies: Sequence[Tally]) -> list[Integers]:
        """The cells of some tables for every kind of row; what is impossible counts where its columns meet in one."""
        kinds = self._everyone if tallies[0].entity == PEOPLE else self.kinds(HOMES)
        possible = np.ones(len(kinds), bool)
        for tally in tallies:
            if tally.name not in self._read:
                among = self.columns_of(tally)
                barred = np.array([self.is_impossible(row, among) for row in kinds])
                self._read[tally.name] = np.array([self.cell(tally, row) for row in kinds], np.int64), ~barred
            possible &= self._read[tally.name][1]
        return [self._read[tally.name][0][possible] for tally in tallies]

    @cached_property
    def _everyone(self) -> list[Row]:
        return self.kinds(PEOPLE)

    @cached_property
    def _read(self) -> dict[str, tuple[Integers, npt.NDArray[np.bool_]]]:
        """Cells of tables that were looked at before, and which rows are possible in each."""
        return {}

    def draw(self, rng: np.random.Generator, *, homes: int) -> dict[str, list[tuple[int, Row]]]:
        """Rows with the smallest areas they lie in: homes with one to three people, or people alone."""
        everything = {one.name for one in self.columns}
        kinds = [row for row in self._everyone if not self.is_impossible(row, everything)]
        weights = rng.dirichlet(np.full(len(kinds), 0.2))
        blocks = rng.choice(self.areas, homes, p=rng.dirichlet(np.full(self.areas, 0.6)))
        drawn = [
            (int(block), kinds[kind])
            for block, kind in zip(blocks, rng.choice(len(kinds), homes, p=weights), strict=True)
        ]
        if not self.has_homes:
            return {PEOPLE: drawn}
        theirs = [one.name for one in self.columns if one.owner == HOMES]
        people = []
        for block, row in drawn:
            alike = [kind for kind in kinds if all(kind[name] == row[name] for name in theirs)]
            people += [(block, alike[number]) for number in rng.integers(0, len(alike), rng.integers(1, 4))]
        return {HOMES: [(block, {name: row[name] for name in theirs}) for block, row in drawn], PEOPLE: people}

    def count(
        self, tallies: Sequence[Tally], rows: dict[str, list[tuple[int, Row]]]
    ) -> dict[tuple[str, str | None], Integers]:
        """The exact numbers of every table at every level, row by row."""
        truth = {}
        for tally in tallies:
            for level in tally.levels or (None,):
                numbers = np.zeros((tally.areas(level), tally.cells), np.int64)
                codes = (
                    {area.code: n for n, area in enumerate(tally.spine.areas[level])} if tally.spine and level else {}
                )
                for block, row in rows[tally.entity]:
                    cell = self.cell(tally, row)
                    if cell >= 0:
                        numbers[codes[self._area(block, level)] if codes else 0, cell] += 1
                truth[tally.name, level] = numbers
        return truth

    def _area(self, block: int, level: str | None) -> str:
        depth, now = len(self.levels) - 1, block
        while self.levels[depth] != level:
            now = self.parents[depth][now]
            depth -= 1
        return f"{'B' if depth == len(self.levels) - 1 else f'L{depth}_'}{now}"
