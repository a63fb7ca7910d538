"""Mechanisms that do not fit the budget or the relation, exact totals outside the guarantee, and a delta too large."""

from __future__ import annotations

from collections.abc import Iterator

from release_specs.checks.draft import Draft, needs
from release_specs.checks.rows import conditions_of
from release_specs.checks.sizes import expected_sizes
from release_specs.diagnostics import Finding, Path, error, listed, warning
from release_specs.language.phrases import Microdata
from release_specs.language.tables import Table
from release_specs.language.values import write_number
from release_specs.reading.resolve import leaves_out


@needs("microdata", "privacy", "tables")
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
            else:
                yield from _answers_are_counted(draft, table, path)


def _answers_are_counted(draft: Draft, table: Table, path: Path) -> Iterator[Finding]:
    """Every row answers, those outside the universe too, so the number of rows is published wherever the table is."""
    entity = draft.entity(table.universe)
    stated = [total for total in draft.spec.exact if total.count == entity and not total.by]
    levels = set(draft.levels_of(table))
    told = {level for total in stated for level in total.at or ()}
    if entity is not None and (not stated or not ("all" in told or levels <= told)):
        where = f" at {listed(sorted(levels - told))}" if levels - told else ""
        message = f"randomised response publishes the number of {entity}{where}; state it under 'exact', with a reason"
        yield error("response-needs-total", path, message)
    for word in table.attributes:
        attribute = draft.domain.attribute(entity or "", word)
        if attribute is not None and attribute.up_to > 1:
            message = f"'{word}' may have several answers, and randomised response of sets is not proved; write auto"
            yield error("mechanism-misfit", path, message)


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
        reason = _why_not_all_rows(draft, entity, decisive, total.at or ()) if entity is not None else None
        if reason is not None:
            message = f"{reason}, so the counted {total.count} differ from the true number"
            if from_microdata:
                yield error("exact-with-cap", (*path, "from"), f"{message}; take it from a public source")
            else:
                yield warning(
                    "exact-with-cap", (*path, "from"), f"{message}; the tables are fitted to the public number"
                )


def _why_not_all_rows(draft: Draft, entity: str, decisive: set[str], at: tuple[str, ...]) -> str | None:
    if entity in draft.spec.privacy.caps:
        return (
            f"rows of {entity} are capped at {draft.spec.privacy.caps[entity]} for each of {draft.spec.privacy.protect}"
        )
    hidden = [name for name in sorted(decisive) if _is_hidden(draft, entity, name)]
    for spine, owner in draft.domain.spines.get(entity, {}).items():
        tree, facts = draft.domain.hierarchies.get(spine), draft.spec.microdata[owner]
        if tree is not None and (at == ("all",) or set(at) & set(tree.levels)):
            areas = {name: column for name, column in facts.columns.items() if column.area == spine}
            hidden += [name for name, column in areas.items() if leaves_out(facts, column)]
    return f"rows whose '{hidden[0]}' is outside or missing are left out" if hidden else None


def _is_hidden(draft: Draft, entity: str, name: str) -> bool:
    attribute = draft.domain.attribute(entity, name)
    return attribute is not None and attribute.hidden


@needs("microdata", "privacy", "exact", "expect")
def delta_is_far_below_one_over_the_population(draft: Draft) -> Iterator[Finding]:
    """With a delta of one over the population a mechanism may publish somebody's record whole."""
    delta = draft.spec.privacy.budget.delta
    expected = list(expected_sizes(draft).values())
    if delta is not None and expected and delta * max(expected) * 100 > 1:
        message = (
            f"{write_number(delta)} is not far below 1/{max(expected):,}, one over the expected number: "
            f"write at most 1/{max(expected) * 100:,}"
        )
        yield warning("delta-large", ("privacy", "budget", "delta"), message)


CHECKS = (
    mechanisms_fit_the_budget_and_relation,
    exact_totals_are_outside_the_guarantee,
    delta_is_far_below_one_over_the_population,
)
