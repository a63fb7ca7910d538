"""Who is protected, and that nothing one unit does goes unbounded: caps, singles, and the rows tables may look at."""

from __future__ import annotations

from collections.abc import Iterator

from release_specs.checks.draft import Draft, condition_findings, needs, unknown_name
from release_specs.checks.rows import conditions_of, excludes
from release_specs.diagnostics import Finding, Path, error
from release_specs.language.conditions import Condition
from release_specs.language.tables import Table
from release_specs.reading.resolve import group_of, members_of


@needs("microdata", "privacy")
def somebody_is_protected(draft: Draft) -> Iterator[Finding]:
    """The protected unit is a declared entity, and each of its rows is counted once."""
    spec, protect = draft.spec, draft.spec.privacy.protect
    yield from unknown_name(draft, "unknown-entity", protect, spec.microdata, ("privacy", "protect"), "an entity")
    for name, entity in spec.microdata.items():
        protected = name == protect or (spec.privacy.singles is not None and name in members_of(spec, protect))
        if entity.duplicates == "keep_all" and (protected or members_of(spec, name)):
            message = (
                f"rows of {name} that share a key cannot all be kept: its key says who is protected; write keep_one"
            )
            yield error("keep-all-refused", ("microdata", name, "duplicates"), message)


@needs("microdata", "privacy")
def a_cap_bounds_every_group(draft: Draft) -> Iterator[Finding]:
    """A protected group says how many rows it may contribute; a cap is on rows that are nested in groups."""
    spec, privacy = draft.spec, draft.spec.privacy
    members = members_of(spec, privacy.protect)
    if privacy.protect not in spec.microdata or not draft.nesting_is_clear():
        return
    for member in members:
        if member not in privacy.caps:
            message = (
                f"one of {privacy.protect} may have any number of {member}, so nothing bounds its influence; "
                f"add at_most: {{{member}: m}}, with m as large as nearly all of them need (more costs more noise)"
            )
            yield error("cap-missing", ("privacy",), message, at_key=True)
    for name in privacy.caps:
        path: Path = ("privacy", "at_most", name)
        yield from unknown_name(draft, "unknown-entity", name, spec.microdata, path, "an entity")
        if name in spec.microdata and name not in members and not (name == privacy.protect and group_of(spec, name)):
            message = f"rows of {name} are not nested in {privacy.protect}, so there is nothing to cap; delete the line"
            if name == privacy.protect:
                message = f"each of {name} counts once, so there is nothing to cap; a cap is on the rows nested in it"
            yield error("cap-misplaced", path, message, at_key=True)


@needs("microdata", "privacy")
def rows_are_kept_first_by_what_they_have(draft: Draft) -> Iterator[Finding]:
    """`keep_first` is a condition on the capped rows; on protected rows it looks at their own columns only."""
    spec, privacy = draft.spec, draft.spec.privacy
    capped = [name for name in privacy.caps if name in spec.microdata]
    keep_first = privacy.at_most.keep_first if privacy.at_most is not None else None
    if keep_first is None or not capped or privacy.protect not in spec.microdata or not draft.nesting_is_clear():
        return
    path: Path = ("privacy", "at_most", "keep_first")
    for member in _who_has(draft, capped, keep_first):
        yield from condition_findings(draft, member, keep_first, path)
        if member == privacy.protect:
            yield from _kept_for_its_own_sake(draft, member, keep_first, path)


def _kept_for_its_own_sake(draft: Draft, member: str, keep_first: Condition, path: Path) -> Iterator[Finding]:
    """Where records are protected, one of them may change its group, and with it which of all its rows are kept."""
    decisive = dict.fromkeys(sorted(keep_first.columns()), path)
    for word, where in with_what_decides(draft, member, decisive):
        attribute = draft.domain.attribute(member, word)
        if attribute is not None and attribute.owner != member:
            message = (
                f"'{word}' belongs to {attribute.owner}, so one of {member} may change which rows are kept there, and "
                f"no bound on that is proved; keep rows by a column of {member}"
            )
            yield error("no-proved-bound", where, message)


@needs("microdata", "privacy", "tables")
def a_table_may_only_lower_the_cap(draft: Draft) -> Iterator[Finding]:
    """A table states a smaller cap than the release's, never a larger one."""
    for name, table, entity in draft.tables():
        cap = draft.spec.privacy.caps.get(entity)
        if table.at_most is None:
            continue
        path: Path = ("tables", name, "at_most")
        if cap is None:
            yield error("cap-misplaced", path, f"rows of {entity} have no cap to lower; delete the line", at_key=True)
        elif table.at_most > cap:
            yield error(
                "cap-larger", path, f"{table.at_most} is above the release's cap of {cap}; a table may only lower it"
            )


@needs("microdata", "privacy", "tables")
def every_table_is_inside_the_guarantee(draft: Draft) -> Iterator[Finding]:
    """A table counts the protected unit, its rows, or its records' groups; other rows have no proved bound."""
    spec, protect = draft.spec, draft.spec.privacy.protect
    if protect not in spec.microdata or not draft.nesting_is_clear():
        return
    inside = {protect, *members_of(spec, protect), group_of(spec, protect)}
    for name, table, entity in draft.tables():
        word = "count" if table.count is not None else "of"
        if entity not in inside and protect not in draft.domain.unknown:
            message = (
                f"rows of {entity} are not tied to {protect}, the protected unit, so no bound on one unit's influence "
                f"is proved; nest them with in: {{{protect}: column}}, or leave the table out"
            )
            yield error("no-proved-bound", ("tables", name, word), message)
        elif entity == group_of(spec, protect) and (table.sum or table.mean):
            message = (
                f"one of {protect} may change what {entity} hold, and no bound on their sums is proved; protect "
                f"{entity}"
            )
            yield error("no-proved-bound", ("tables", name, word), message)
        elif entity == protect and group_of(spec, protect) is not None:
            if protect not in spec.privacy.caps:
                yield from _group_columns_need_a_cap(draft, name, table, entity)
            else:
                yield from _only_counts_beside_a_cap(draft, name, table, entity)


def _group_columns_need_a_cap(draft: Draft, name: str, table: Table, entity: str) -> Iterator[Finding]:
    """A group's row is part of each of its records' units: one record may move all of its group."""
    advice = f"bound the group with privacy.at_most: {{{entity}: 6}}, or leave it out"
    for word, owner, path in _group_names_used(draft, name, table, entity):
        message = f"'{word}' belongs to {owner}, so one of {entity} may change it for all rows there; {advice}"
        yield error("cap-missing", path, message)
    if any(owner != entity for owner in _area_owners(draft, table, entity)):
        message = f"the area is a column of the group, so one of {entity} may move all rows there; {advice}"
        yield error("cap-missing", ("tables", name, "at"), message, at_key=True)


def _only_counts_beside_a_cap(draft: Draft, name: str, table: Table, entity: str) -> Iterator[Finding]:
    """Under a cap a row that comes displaces another; the bound on that is proved for counts of one cell each."""
    path: Path = ("tables", name)
    kinds = {"sum": "sums", "mean": "means", "most_common": "the most common code"}
    refused: dict[str, Path] = {what: (*path, word) for word, what in kinds.items() if getattr(table, word) is not None}
    if table.mechanism == "randomised_response":
        refused["randomised response"] = (*path, "mechanism")
    for index, word in enumerate(table.attributes):
        attribute = draft.domain.attribute(entity, word)
        if attribute is not None and attribute.up_to > 1:
            refused[f"rows with several answers ('{word}')"] = (*path, "by", index)
    for what, where in refused.items():
        message = (
            f"{entity} are capped, so one of them may displace another, and no bound on {what} is proved beside that; "
            f"take {entity} out of privacy.at_most, or leave it out"
        )
        yield error("no-proved-bound", where, message)


def _area_owners(draft: Draft, table: Table, entity: str) -> set[str]:
    """The entities whose area columns place a table's rows; nothing is said while a spine's name is mistaken."""
    named = {column.area for column in draft.spec.microdata[entity].columns.values()}
    if not named <= {None, *draft.spec.geography}:
        return set()
    carriers = draft.domain.spines.get(entity, {})
    trees = [draft.domain.hierarchies[spine] for spine in carriers if spine in draft.domain.hierarchies]
    used = [tree.name for tree in trees if table.at == ("all",) or set(table.at or ()) & set(tree.levels)]
    return {carriers[spine] for spine in used}


def _who_has(draft: Draft, entities: list[str], condition: Condition) -> list[str]:
    """The entities whose rows a condition can be about: those that have all its columns; else the first."""
    columns = condition.columns()
    return [name for name in entities if columns <= set(draft.domain.names(name))] or entities[:1]


@needs("microdata", "privacy", "tables")
def singles_see_only_their_own_row(draft: Draft) -> Iterator[Finding]:
    """A row protected by itself is no member of any group, so no table that holds it may use the group's columns."""
    spec, privacy = draft.spec, draft.spec.privacy
    members = members_of(spec, privacy.protect)
    if privacy.singles is None or privacy.protect not in spec.microdata or not draft.nesting_is_clear():
        return
    path: Path = ("privacy", "singles")
    if not members:
        yield error(
            "singles-misplaced",
            path,
            "singles are rows of a protected group, and no group is protected; delete it",
            at_key=True,
        )
        return
    for member in _who_has(draft, members, privacy.singles):
        yield from condition_findings(draft, member, privacy.singles, path)
        yield from _singles_are_told_by_their_row(draft, member, privacy.singles, path)
        if not all(draft.domain.attribute(member, column) for column in privacy.singles.columns()):
            continue
        for name, table, entity in draft.tables():
            held = conditions_of(draft, table.universe)
            if entity == member and not excludes(draft, entity, held, privacy.singles):
                yield from _uses_group_columns(draft, name, table, entity)


def _singles_are_told_by_their_row(draft: Draft, member: str, singles: Condition, path: Path) -> Iterator[Finding]:
    for where, criterion in singles.criteria(path):
        for name, _ in with_what_decides(draft, member, {criterion.column: where}):
            attribute = draft.domain.attribute(member, name)
            if attribute is not None and attribute.owner != member:
                message = (
                    f"'{name}' belongs to {attribute.owner}; whether a row is single is decided from the row alone"
                )
                yield error("singles-look-at-group", where, message)


def _uses_group_columns(draft: Draft, name: str, table: Table, entity: str) -> Iterator[Finding]:
    advice = "count a universe without the singles, or leave it out"
    for word, owner, path in _group_names_used(draft, name, table, entity):
        message = f"'{word}' belongs to {owner}, and the table holds singles, which have no group; {advice}"
        yield error("singles-by-group", path, message)
    if any(owner != entity for owner in _area_owners(draft, table, entity)):
        message = f"the area is a column of the group, and the table holds singles, which have none; {advice}"
        yield error("singles-by-group", ("tables", name, "at"), message, at_key=True)


def _group_names_used(draft: Draft, name: str, table: Table, entity: str) -> Iterator[tuple[str, str, Path]]:
    """The attributes among `names_used` that belong to the rows' group, with their owner."""
    for word, path in names_used(draft, name, table, entity):
        attribute = draft.domain.attribute(entity, word)
        if attribute is not None and attribute.owner != entity:
            yield word, attribute.owner, path


def names_used(draft: Draft, name: str, table: Table, entity: str) -> Iterator[tuple[str, Path]]:
    """Every attribute whose value decides where a row of a table is counted and what it adds, with its path."""
    path: Path = ("tables", name)
    found: dict[str, Path] = {word: (*path, "by", index) for index, word in enumerate(table.attributes)}
    for word in ("sum", "mean", "most_common"):
        if getattr(table, word) is not None:
            found.setdefault(getattr(table, word), (*path, word))
    for column in table.quantiles or ():
        found.setdefault(column, (*path, "quantiles", column))
    for column in table.proportion.columns() if table.proportion is not None else ():
        found.setdefault(column, (*path, "proportion", column))
    conditions = [*conditions_of(draft, table.universe), draft.spec.microdata[entity].only]
    for condition in conditions:
        for column in sorted(condition.columns()) if condition is not None else ():
            found.setdefault(column, (*path, "count" if table.count is not None else "of"))
    yield from with_what_decides(draft, entity, found)


def with_what_decides(draft: Draft, entity: str, found: dict[str, Path]) -> Iterator[tuple[str, Path]]:
    """Attributes, and those that decide whether they apply, and so on: each with the path of the first."""
    ahead = dict(found)
    while ahead:
        further: dict[str, Path] = {}
        for word, where in ahead.items():
            attribute = draft.domain.attribute(entity, word)
            column = draft.column(entity, attribute.base) if attribute is not None else None
            if column is not None and column.applies_to is not None:
                further |= {name: where for name in column.applies_to.columns() if name not in found}
        found = {**found, **further}
        ahead = further
    yield from found.items()


CHECKS = (
    somebody_is_protected,
    a_cap_bounds_every_group,
    rows_are_kept_first_by_what_they_have,
    a_table_may_only_lower_the_cap,
    every_table_is_inside_the_guarantee,
    singles_see_only_their_own_row,
)
