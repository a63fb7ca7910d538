"""The refusals of the privacy law that need no prices: unit, cap, relation, mechanism, exact totals."""

from __future__ import annotations

from collections.abc import Iterator

from release_specs.checks.draft import Draft, condition_findings, needs, unknown_name
from release_specs.checks.rows import conditions_of, excludes
from release_specs.diagnostics import Finding, Path, error, warning
from release_specs.language.phrases import Microdata
from release_specs.language.tables import Table
from release_specs.language.values import write_number
from release_specs.reading.resolve import group_of, leaves_out, members_of


@needs("microdata", "privacy")
def somebody_is_protected(draft: Draft) -> Iterator[Finding]:
    """The protected unit is a declared entity, and each of its rows is counted once."""
    spec, protect = draft.spec, draft.spec.privacy.protect
    yield from unknown_name(draft, "unknown-entity", protect, spec.microdata, ("privacy", "protect"), "an entity")
    for name, entity in spec.microdata.items():
        if entity.duplicates == "keep_all" and (name == protect or members_of(spec, name)):
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
                f"add at_most: {{{member}: 6}} (more keeps more rows and costs more noise)"
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
    if privacy.at_most is not None and privacy.at_most.keep_first is not None:
        for member in [name for name in privacy.caps if name in spec.microdata][:1]:
            yield from condition_findings(
                draft, member, privacy.at_most.keep_first, ("privacy", "at_most", "keep_first")
            )


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
        elif entity == protect and group_of(spec, protect) is not None and protect not in spec.privacy.caps:
            yield from _derived_needs_cap(draft, name, table, entity)


def _derived_needs_cap(draft: Draft, name: str, table: Table, entity: str) -> Iterator[Finding]:
    for word, path in names_used(draft, name, table, entity):
        attribute = draft.domain.attribute(entity, word)
        if attribute is not None and attribute.derived:
            message = (
                f"'{word}' is derived from the rows of the group, so one of {entity} changes it for all of them; "
                f"bound them with privacy.at_most: {{{entity}: 6}}, or leave it out"
            )
            yield error("cap-missing", path, message)


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
    for member in members[:1]:
        yield from condition_findings(draft, member, privacy.singles, path)
        for where, test in privacy.singles.criteria(path):
            attribute = draft.domain.attribute(member, test.column)
            if attribute is not None and attribute.owner != member:
                message = (
                    f"'{test.column}' belongs to {attribute.owner}; whether a row is single is decided from the "
                    "row alone"
                )
                yield error("singles-look-at-group", where, message)
    if not all(draft.domain.attribute(members[0], column) for column in privacy.singles.columns()):
        return
    for name, table, entity in draft.tables():
        held = conditions_of(draft, table.universe)
        if entity in members and not excludes(draft, entity, held, privacy.singles):
            yield from _uses_group_columns(draft, name, table, entity)


def _uses_group_columns(draft: Draft, name: str, table: Table, entity: str) -> Iterator[Finding]:
    advice = "count a universe without the singles, or leave it out"
    for word, path in names_used(draft, name, table, entity):
        attribute = draft.domain.attribute(entity, word)
        if attribute is not None and attribute.owner != entity:
            message = (
                f"'{word}' belongs to {attribute.owner}, and the table holds singles, which have no group; {advice}"
            )
            yield error("singles-by-group", path, message)
    carriers = draft.domain.spines.get(entity, {})
    if table.at is not None and carriers and all(owner != entity for owner in carriers.values()):
        message = f"the area is a column of the group, and the table holds singles, which have none; {advice}"
        yield error("singles-by-group", ("tables", name, "at"), message, at_key=True)


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
    for word, where in list(found.items()):
        attribute = draft.domain.attribute(entity, word)
        column_facts = draft.column(entity, attribute.base) if attribute is not None else None
        if column_facts is not None and column_facts.applies_to is not None:
            for column in column_facts.applies_to.columns():
                found.setdefault(column, where)
    yield from found.items()


@needs("privacy", "tables")
def mechanisms_fit_the_budget_and_relation(draft: Draft) -> Iterator[Finding]:
    """Gaussian noise needs a delta; randomised response needs replaced neighbours and a stated number of answers."""
    privacy = draft.spec.privacy
    for name, table in draft.spec.tables.items():
        path: Path = ("tables", name, "mechanism")
        misfit = _misfit(table)
        if misfit is not None:
            yield error("mechanism-misfit", path, misfit)
            continue
        if table.mechanism == "gaussian" and privacy.budget.delta is None:
            message = "Gaussian noise has no pure epsilon; write laplace or auto, or give the budget a delta"
            yield error("gaussian-needs-delta", path, message)
        if table.mechanism == "randomised_response":
            if privacy.neighbours != "replace":
                message = (
                    "randomised response publishes how many answered, which add-remove hides; write neighbours: replace"
                )
                yield error("response-needs-replace", path, message)
            elif not any(total.count == table.universe and not total.by for total in draft.spec.exact):
                message = (
                    f"randomised response publishes the number of {table.universe}; state it under 'exact', with a "
                    "reason"
                )
                yield error("response-needs-total", path, message)


def _misfit(table: Table) -> str | None:
    if table.mechanism == "randomised_response" and table.statistics != ("count",):
        return "randomised response counts answers; it gives no sums, means, quantiles or most common code: write auto"
    if table.mechanism in ("laplace", "gaussian") and "most_common" in table.statistics:
        return "the most common code is selected, not counted with noise; write mechanism: auto or delete the line"
    return None


@needs("microdata", "privacy", "exact")
def exact_totals_are_outside_the_guarantee(draft: Draft) -> Iterator[Finding]:
    """An exact total from the microdata needs replaced neighbours, and no cap or left-out rows beside it."""
    spec = draft.spec
    for index, total in enumerate(spec.exact):
        path: Path = ("exact", index)
        entity = draft.entity(total.count)
        from_microdata = isinstance(total.source, Microdata)
        if from_microdata and spec.privacy.neighbours != "replace":
            message = (
                "an exact total from the microdata tells apart datasets with one unit more or less; "
                "write neighbours: replace, or take the number from a public source (from: file.csv:column)"
            )
            yield error("exact-needs-replace", (*path, "from"), message)
        decisive = {*total.by, *(name for held in conditions_of(draft, total.count) for name in held.columns())}
        reason = _why_not_all_rows(draft, entity, decisive) if entity is not None else None
        if reason is not None:
            message = f"{reason}, so the counted {total.count} differ from the true number"
            if from_microdata:
                yield error("exact-with-cap", (*path, "from"), f"{message}; take it from a public source")
            else:
                yield warning(
                    "exact-with-cap", (*path, "from"), f"{message}; the tables are fitted to the public number"
                )


def _why_not_all_rows(draft: Draft, entity: str, decisive: set[str]) -> str | None:
    if entity in draft.spec.privacy.caps:
        return (
            f"rows of {entity} are capped at {draft.spec.privacy.caps[entity]} for each of {draft.spec.privacy.protect}"
        )
    facts = draft.spec.microdata[entity]
    for name, column in facts.columns.items():
        if (column.area is not None or name in decisive) and leaves_out(facts, column):
            return f"rows whose '{name}' is outside or missing are left out"
    return None


@needs("privacy")
def delta_is_far_below_one_over_the_population(draft: Draft) -> Iterator[Finding]:
    """With a delta of one over the population a mechanism may publish somebody's record whole."""
    spec, delta = draft.spec, draft.spec.privacy.budget.delta
    expected = [size for size in (spec.expect.named.values() if spec.expect else ()) if isinstance(size, int)]
    if delta is not None and expected and delta * max(expected) * 100 > 1:
        message = (
            f"{write_number(delta)} is not far below 1/{max(expected):,}, one over the expected number: "
            f"write at most 1/{max(expected) * 100:,}"
        )
        yield warning("delta-large", ("privacy", "budget", "delta"), message)


CHECKS = (
    somebody_is_protected,
    a_cap_bounds_every_group,
    a_table_may_only_lower_the_cap,
    every_table_is_inside_the_guarantee,
    singles_see_only_their_own_row,
    mechanisms_fit_the_budget_and_relation,
    exact_totals_are_outside_the_guarantee,
    delta_is_far_below_one_over_the_population,
)
