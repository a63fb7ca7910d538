"""Whether published tables can agree as whole numbers: margins that cross, and rules that cannot be imposed."""

from __future__ import annotations

from collections.abc import Iterator

from release_specs.checks.draft import Draft, needs
from release_specs.diagnostics import Finding, error, listed, warning
from release_specs.histograms import MOST_CELLS, arrange
from release_specs.language.phrases import TablePart
from release_specs.populations import Population, Populations
from release_specs.tallies import Tally, tallies_of


@needs("microdata", "tables", "privacy")
def tables_cross_only_where_they_can_be_settled(draft: Draft) -> Iterator[Finding]:
    """Whole numbers agree where tables hang together like a tree, or are few enough cells to be one histogram."""
    populations = Populations(draft.spec, draft.domain, tallies_of(draft.spec, draft.domain))
    for population in populations.all:
        if population.key.alone is None:
            yield from _crossing(populations, population)


def _crossing(populations: Populations, population: Population) -> Iterator[Finding]:
    tables = {tally.name: frozenset(populations.nodes_of(tally)) for tally in populations.finest(population)}
    sizes = {node: len(column) for node, column in population.columns.items()}
    crossing = arrange(tables.values(), sizes).crossing
    if crossing:
        names = dict.fromkeys(
            tally.table for tally in population.tallies if tables.get(tally.name, frozenset()) & set(crossing)
        )
        message = (
            f"{listed(names, 6)} cross in {listed((node[1] for node in crossing), 6)}: together they have more than "
            f"{MOST_CELLS:,} cells, so where they share margins they agree in the unbiased estimates, not in every "
            "published whole number; publish fewer of these tables, or recode the columns into fewer categories"
        )
        yield warning("margins-cross", ("tables",), message)


@needs("microdata", "tables", "privacy", "rules")
def rules_compare_different_rows(draft: Draft) -> Iterator[Finding]:
    """A rule between two tables of the same rows follows from what they count, or cannot be imposed on them."""
    tallies = {one.table: one for one in tallies_of(draft.spec, draft.domain) if one.statistic == "count"}
    populations = Populations(draft.spec, draft.domain, tallies.values())
    for index, rule in enumerate(draft.spec.rules):
        left = tallies.get(rule.left.table)
        other = rule.right if isinstance(rule.right, TablePart) else None
        right = tallies.get(other.table) if other is not None else None
        if left is None or right is None or populations.key_of(left) != populations.key_of(right):
            continue
        small, large = (left, right) if rule.relation == "<=" else (right, left)
        fixed = rule.left.where or (other is not None and other.where)
        if rule.relation == "=" or fixed or not _is_part(populations, small, large):
            message = (
                f"both sides of '{rule}' count {left.entity}, and one does not follow from the other by what they "
                "count; a rule binds tables of different entities: delete it"
            )
            yield error("rule-same-rows", ("rules", index), message)


def _is_part(populations: Populations, small: Tally, large: Tally) -> bool:
    """Whether every row of one tally surely counts in another."""
    narrow, wide = set(populations.conditions_of(small)), set(populations.conditions_of(large))
    return wide <= narrow and not any(
        populations.may_not_apply((one.owner, one.base)) for one in large.attributes if one not in small.attributes
    )


CHECKS = (rules_compare_different_rows,)
ADVICE = (tables_cross_only_where_they_can_be_settled,)
