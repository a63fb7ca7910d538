"""The plain way from confidential files to exact counts: loops over rows, one at a time. Slow and obvious.

Follows docs/tabulation.md and shares nothing with the code it is compared with. Cells are read in
`reference_values.py`; here rows are selected, put into their groups, ranked and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from pathlib import Path

from release_specs.domain import Attribute, Scale
from release_specs.language.conditions import Condition, Criterion
from release_specs.language.microdata import Treatment
from release_specs.language.values import Range, read_range
from release_specs.load import Loaded
from release_specs.reading.resolve import group_of, members_of
from release_specs.tallies import Summand, Tally, tallies_of
from tests.tabulation.reference_values import (
    NOTHING,
    Declared,
    Place,
    Row,
    Special,
    Value,
    declare,
    digest,
    id_text,
    read_file,
    text_of,
    within,
)

Counts = Counter[tuple[str | None, tuple[object, ...]]]

ELSEWHERE = ("elsewhere",)


def count_plainly(
    loaded: Loaded, files: Mapping[str, Path], *, key: bytes, edition: str | None = None
) -> dict[str, Counts]:
    """For each tally its leaf cells: (smallest area's code or None, index of each attribute) -> number."""
    rows = PlainRows(loaded, files, key=key, edition=edition)
    return {tally.name: rows.counted(tally) for tally in tallies_of(loaded.spec, loaded.domain)}


class PlainRows:
    """The rows that are left of the files of a spec, with their groups and ranks."""

    def __init__(self, loaded: Loaded, files: Mapping[str, Path], *, key: bytes, edition: str | None) -> None:
        self.spec, self.domain, self.key = loaded.spec, loaded.domain, key
        self.edition = edition or loaded.spec.release.edition
        self.declared = {
            (entity, name): declare(loaded, entity, name)
            for entity, facts in self.spec.microdata.items()
            for name in facts.columns
        }
        self.rows: dict[str, list[Row]] = {}
        self.indices: dict[int, tuple[Attribute, dict[Place, int]]] = {}
        self.groups_are_known = False
        with_files = [name for name, facts in self.spec.microdata.items() if facts.built_from is None]
        for entity in sorted(with_files, key=lambda name: group_of(self.spec, name) is not None):
            self._read(entity, files[entity])
        self._gather()
        self._rank()

    # Section 3, steps 1 and 2: rows of this release, each once.

    def _read(self, entity: str, path: Path) -> None:
        facts, group = self.spec.microdata[entity], group_of(self.spec, entity)
        wanted = dict.fromkeys([*self._hashed_columns(entity), *(facts.key or ()), *(facts.group or {}).values()])
        found = [Row(entity, cells) for cells in read_file(path, facts.read, list(wanted))]
        by_key = self._by_key(group) if group is not None and group in self.rows else {}
        for row in found:
            if group is not None:
                row.group = self._ids(row, [(facts.group or {})[group]])[0]
            if group is not None and group in self.rows:
                row.home = by_key.get(row.group) or Row(group, absent=True)
        only = facts.only
        kept = [row for row in found if only is None or self._meets(row, only, edition=self.edition)]
        self.rows[entity] = self._each_once(entity, kept)

    def _by_key(self, group: str) -> dict[str | None, Row]:
        """The rows of a group by their key; those without one are nobody's group."""
        (column,) = self.spec.microdata[group].key or ()
        found = {self._ids(row, [column])[0]: row for row in self.rows.get(group, ())}
        return {key: row for key, row in found.items() if key is not None}

    def _hashed_columns(self, entity: str) -> list[str]:
        """All declared columns of an entity's file, in declared order."""
        built = [name for name, facts in self.spec.microdata.items() if facts.built_from == entity]
        listed = [
            column
            for owner in (entity, *built)
            for name in self.spec.microdata[owner].columns
            for column in self.declared[owner, name].file_columns
        ]
        return list(dict.fromkeys(listed))

    def _hash_of_columns(self, row: Row) -> str:
        return digest(self.key, [row.cells[name].hashed for name in self._hashed_columns(row.entity)])

    def _id_columns(self, entity: str) -> list[str]:
        """The columns of a row's id: its key without the group's column."""
        facts = self.spec.microdata[entity]
        return [column for column in facts.key or () if column not in (facts.group or {}).values()]

    def _ids(self, row: Row, columns: list[str]) -> list[str | None]:
        nobody = self.spec.microdata[row.entity].read.missing
        found = [id_text(text_of(row.cells[column].value)) for column in columns]
        return [None if one in nobody else one for one in found]

    def _each_once(self, entity: str, rows: list[Row]) -> list[Row]:
        if self.spec.microdata[entity].duplicates == "keep_all":
            return rows
        best: dict[tuple[str | None, ...], Row] = {}
        for row in rows:
            identity = self._identity(row)
            if identity is not None:
                other = best.setdefault(identity, row)
                if self._once_order(row) < self._once_order(other):
                    best[identity] = row
        return [row for row in rows if (identity := self._identity(row)) is None or best[identity] is row]

    def _once_order(self, row: Row) -> tuple[str, str]:
        facts = self.spec.microdata[row.entity]
        columns = dict.fromkeys([*(facts.group or {}).values(), *(facts.key or ())])
        return self._hash_of_columns(row), digest(self.key, [row.cells[name].hashed for name in columns])

    def _identity(self, row: Row) -> tuple[str | None, ...] | None:
        """What makes two rows one; None for rows that are never taken for duplicates."""
        ids = self._ids(row, self._id_columns(row.entity))
        nested = group_of(self.spec, row.entity) is not None
        if not ids or None in ids or (nested and row.group is None):
            return None
        group = group_of(self.spec, row.entity)
        single = group is not None and self._is_single(row, group)
        return (row.group, str(single), *ids)

    # Section 3, steps 3, 4, 6 and 7: groups and who lies in them.

    def _gather(self) -> None:
        """Puts every record that is no single into its group, and builds the groups that have no file."""
        for group, facts in self.spec.microdata.items():
            members = [row for name in members_of(self.spec, group) for row in self.rows[name]]
            if not members and facts.built_from is None:
                continue
            homes: dict[str | None, Row] = self._by_key(group)
            for row in members:
                row.single = self._is_single(row, group)
                if row.single or row.group is None:
                    row.home = Row(group, absent=True)
                else:
                    row.home = homes.setdefault(row.group, Row(group, absent=True))
                if not row.single:
                    row.home.members.append(row)
            if facts.built_from is not None:
                self.rows[group] = list(self._built(group, facts.built_from, homes))
        for row in (row for rows in self.rows.values() for row in rows):
            row.known.clear()
        self.groups_are_known = True

    def _built(self, group: str, source: str, homes: Mapping[str | None, Row]) -> Iterator[Row]:
        only = self.spec.microdata[group].only
        for row in homes.values():
            row.absent = not any(member.entity == source for member in row.members)
            if not row.absent and only is not None:
                row.absent = not self._meets(row, only, edition=self.edition)
                row.known.clear()
            if not row.absent:
                yield row

    def _is_single(self, row: Row, group: str) -> bool:
        singles = self.spec.privacy.singles
        if singles is None or group != self.spec.privacy.protect or not self._has_all(row.entity, singles):
            return False
        return self._meets(row, singles)

    def _has_all(self, entity: str, condition: Condition) -> bool:
        names = condition.columns()
        return all(self._area_owner(entity, name) or self.domain.attribute(entity, name) for name in names)

    # Section 3, step 5: the cap.

    def _rank(self) -> None:
        for entity in self.spec.privacy.caps:
            for home in {id(row.home): row.home for row in self.rows[entity] if row.home is not None}.values():
                members = [row for row in home.members if row.entity == entity]
                for rank, row in enumerate(sorted(members, key=self._ranking)):
                    row.rank = rank

    def _ranking(self, row: Row) -> tuple[bool, str, str]:
        first = self.spec.privacy.at_most.keep_first if self.spec.privacy.at_most is not None else None
        kept_first = first is not None and self._has_all(row.entity, first) and self._meets(row, first)
        columns = [*(self.spec.microdata[row.entity].group or {}).values(), *self._id_columns(row.entity)]
        by_row = self._hash_of_columns(row)
        own = self._ids(row, self._id_columns(row.entity))
        if not own or None in own:
            return not kept_first, by_row, by_row
        return not kept_first, digest(self.key, [row.cells[column].hashed for column in columns]), by_row

    # Section 2, from `missing` on: what a name means for a row.

    def _value(self, row: Row, owner: str, base: str) -> Value:
        if row.entity != owner:
            return self._value(row.home, owner, base) if row.home is not None else Special.NOT_STATED
        if base not in row.known:
            is_column = base in self.spec.microdata[owner].columns
            row.known[base] = self._column(row, base) if is_column else self._derived(row, base)
        return row.known[base]

    def _column(self, row: Row, name: str) -> Value:
        declared = self.declared[row.entity, name]
        value = self._as_written(row, declared)
        if value is Special.MISSING:
            value = declared.treated(declared.missing)
        applies_to = declared.column.applies_to
        if applies_to is not None:
            if not self._meets(row, applies_to):
                return Special.NOT_APPLICABLE
            if value is Special.NOT_APPLICABLE:
                value = declared.treated(declared.missing)
        return value

    def _as_written(self, row: Row, declared: Declared) -> Value:
        """Steps 1 to 5. A group built from rows says what its rows say, where they agree."""
        if row.absent:
            return Special.MISSING
        source = self.spec.microdata[row.entity].built_from
        if source is None:
            return declared.value([row.cells.get(name, NOTHING).value for name in declared.file_columns])
        told = {
            declared.treated(declared.missing) if value is Special.MISSING else value
            for member in row.members
            if member.entity == source
            for value in [declared.value([member.cells[name].value for name in declared.file_columns])]
        }
        return told.pop() if len(told) == 1 else declared.treated(declared.column.mixed or Treatment("leave_out"))

    def _derived(self, row: Row, name: str) -> Value:
        """What a group has from the rows in it, all of them."""
        if not self.groups_are_known:
            return Special.NOT_STATED
        made = self.spec.derive[row.entity][name]
        source = self._value_of(row.entity, made.value_of) if made.value_of is not None else None
        entity = made.number_of or made.any or (source.owner if source is not None else None)
        rows = [member for member in row.members if member.entity == entity]
        rows = [member for member in rows if made.where is None or self._meets(member, made.where)]
        if made.number_of is not None:
            return frozenset([len(rows)])
        if made.any is not None:
            return frozenset(["yes" if rows else "no"])
        if source is None or len(rows) != 1:
            return Special.NOT_STATED
        value = self._value(rows[0], source.owner, source.base)
        return value if isinstance(value, frozenset) and len(value) == 1 else Special.NOT_STATED

    def _value_of(self, group: str, name: str) -> Attribute:
        for member in members_of(self.spec, group):
            found = self.domain.attribute(member, name)
            if found is not None and found.owner == member:
                return found
        raise KeyError(name)

    def _index(self, attribute: Attribute, place: Place) -> int:
        """Which category of an attribute holds a place of its base column."""
        _, found = self.indices.setdefault(id(attribute), (attribute, {}))
        if place not in found:
            found[place] = self._find(attribute, place)
        return found[place]

    def _find(self, attribute: Attribute, place: Place) -> int:
        if attribute.scale is not None:
            return int(place)
        scale = self._base_scale(attribute.owner, attribute.base)
        for index, category in enumerate(attribute.coded):
            for held in category.holds:
                if held == place or (isinstance(held, Range) and scale is not None and within(scale, held, place)):
                    return index
        raise KeyError(f"{place} is in no category of '{attribute.name}'")

    def _base_scale(self, owner: str, base: str) -> Scale | None:
        if base in self.spec.microdata[owner].columns:
            return self.declared[owner, base].scale
        made = self.spec.derive[owner][base]
        if made.value_of is not None:
            source = self._value_of(owner, made.value_of)
            return self._base_scale(source.owner, source.base)
        return Scale(Fraction(0), None) if made.number_of is not None else None

    # Conditions.

    def _meets(self, row: Row, condition: Condition, *, edition: str | None = None) -> bool:
        return any(all(self._passes(row, test, edition) for test in clause) for clause in condition.any_of)

    def _passes(self, row: Row, test: Criterion, edition: str | None) -> bool:
        words = [edition if word == "edition" and edition is not None else word for word in test.wanted]
        owner, attribute = self._area_owner(row.entity, test.column), self.domain.attribute(row.entity, test.column)
        value = self._value(row, owner, test.column) if owner is not None else self._named(row, test.column)
        if isinstance(value, Special):
            return False
        if attribute is None:
            met = any(place in words for place in value)
        elif attribute.scale is not None:
            ranges = [read_range(word) for word in words]
            met = any(within(attribute.scale, part, place) for part in ranges for place in value)
        else:
            met = any(attribute.coded[self._index(attribute, place)].code in words for place in value)
        return met is not test.negated

    def _area_owner(self, entity: str, name: str) -> str | None:
        """Whose area column a name is: the entity's own, or its group's."""
        for owner in (entity, group_of(self.spec, entity)):
            if owner is not None and name in self.spec.microdata[owner].columns:
                return owner if self.spec.microdata[owner].columns[name].area is not None else None
        return None

    # Section 4: cells.

    def counted(self, tally: Tally) -> Counts:
        """The leaf cells of a tally."""
        counts: Counts = Counter()
        for row in self.rows[tally.entity]:
            if not self._is_kept(row, tally):
                continue
            area = self._area(row, tally)
            if isinstance(area, Special):
                continue
            cells = list(self._cells(row, tally)) if self._is_meant(row, tally) else []
            for cell in cells:
                counts[area, cell] += 1 if tally.adds is None else self._addend(row, tally.adds)
            if tally.elsewhere and not cells:
                counts[area, ELSEWHERE] += 1
        return Counter({cell: number for cell, number in counts.items() if number != 0})

    def _is_kept(self, row: Row, tally: Tally) -> bool:
        """Whether a row is within the release's cap and the table's. Whoever is in no group has the first rank."""
        caps = [cap for cap in (self.spec.privacy.caps.get(row.entity), tally.cap) if cap is not None]
        return not caps or row.rank < min(caps)

    def _is_meant(self, row: Row, tally: Tally) -> bool:
        """Whether a row is in the universe, meets the tally's own condition and has a usable value where needed."""
        universe = tally.universe
        while universe in self.spec.universes:
            if not self._meets(row, self.spec.universes[universe].where):
                return False
            universe = self.spec.universes[universe].of
        if tally.where is not None and not self._meets(row, tally.where):
            return False
        return tally.usable is None or isinstance(self._named(row, tally.usable), frozenset)

    def _named(self, row: Row, name: str) -> Value:
        attribute = self.domain.attribute(row.entity, name)
        assert attribute is not None, f"'{name}' means nothing for rows of {row.entity}"
        return self._value(row, attribute.owner, attribute.base)

    def _area(self, row: Row, tally: Tally) -> str | Special | None:
        """The smallest area a row lies in; None where the tally has no geography."""
        if tally.spine is None:
            return None
        owner = self.domain.spines[row.entity][tally.spine.name]
        columns = self.spec.microdata[owner].columns
        (name,) = [name for name, column in columns.items() if column.area == tally.spine.name]
        value = self._value(row, owner, name)
        return value if isinstance(value, Special) else str(next(iter(value)))

    def _cells(self, row: Row, tally: Tally) -> Iterator[tuple[int, ...]]:
        """The cells of a row: several for several answers, none where an attribute does not apply."""
        choices: list[set[int]] = []
        for attribute in tally.attributes:
            value = self._value(row, attribute.owner, attribute.base)
            if isinstance(value, frozenset):
                choices.append({self._index(attribute, place) for place in value})
            elif value is Special.NOT_STATED:
                assert attribute.hidden, f"'{attribute.name}' has no cell for what is not stated"
                choices.append({attribute.size or 0})
            else:
                return
        yield from product(*choices)

    def _addend(self, row: Row, adds: Summand) -> int:
        value, attribute = self._named(row, adds.column), self.domain.attribute(row.entity, adds.column)
        if isinstance(value, Special) or attribute is None or attribute.scale is None:
            return 0
        (place,) = value
        tick = attribute.scale.value(int(place)) / adds.step
        return adds.factor * max(adds.low, min(adds.high, int(tick))) - adds.shift
