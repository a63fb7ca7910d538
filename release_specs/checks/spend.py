"""Checks of the division of the budget: shares add up, and everything published is paid for or computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from release_specs.checks.agreement import margins_within
from release_specs.checks.draft import Draft, needs, unknown_name
from release_specs.diagnostics import Finding, Path, error, listed, note, warning
from release_specs.language.tables import Table
from release_specs.language.values import Share, ShareWord


@dataclass(frozen=True, slots=True)
class Division:
    """One line of the budget divided among names: stated shares, whoever takes the rest, and who must be paid."""

    path: Path
    what: str
    shares: Mapping[str, Share]
    rest: str | None
    wanting: tuple[str, ...]

    @property
    def stated(self) -> dict[str, Fraction]:
        """The shares that are numbers."""
        return {name: share for name, share in self.shares.items() if isinstance(share, Fraction)}

    @property
    def unnamed(self) -> list[str]:
        """Who must be paid and has no share."""
        named = {part for name in self.shares for part in tables_in(name)}
        return [name for name in self.wanting if name not in named]


def tables_in(key: str) -> list[str]:
    """The tables of a line that several share: `age + sex`."""
    return [part.strip() for part in key.split("+")]


def divisions(draft: Draft) -> Iterator[Division]:
    """Every line of the budget that is divided."""
    spend = draft.spec.spend
    paid = [name for name, table in draft.spec.tables.items() if not table.is_free]
    if spend.by_table is not None:
        top: Path = ("spend", "by_table")
        shares = {name: part.share for name, part in spend.by_table.named.items()}
        yield Division(top, "tables", shares, spend.by_table.rest, tuple(paid))
        for name, part in spend.by_table.named.items():
            if part.at is not None:
                levels = [level for table in tables_in(name) for level in _levels(draft, table)]
                wanting = tuple(dict.fromkeys(levels))
                yield Division((*top, name, "at"), "levels", part.at.named, part.at.rest, wanting)
    if spend.by_level is not None:
        top = ("spend", "by_level")
        shares = {level: part.share for level, part in spend.by_level.named.items()}
        levels = [level for table in paid for level in _levels(draft, table)]
        yield Division(top, "levels", shares, spend.by_level.rest, tuple(dict.fromkeys(levels)))
        for level, part in spend.by_level.named.items():
            if part.tables is not None:
                there = tuple(table for table in paid if level in _levels(draft, table))
                yield Division((*top, level, "tables"), "tables", part.tables.named, part.tables.rest, there)


def _levels(draft: Draft, name: str) -> list[str]:
    table = draft.spec.tables.get(name)
    if table is None:
        return []
    entity = draft.entity(table.universe)
    if table.at == ("all",) and entity is not None:
        return [level for tree in draft.domain.hierarchy_of(entity) for level in tree.levels]
    return list(table.at or ("whole",))


@needs("tables", "spend", "microdata")
def spending_names_tables_and_levels(draft: Draft) -> Iterator[Finding]:
    """Every name under `spend` is a table or a level, each once, and no computed table is paid for."""
    tables, levels = draft.spec.tables, [*draft.levels(), "whole"]
    for division in divisions(draft):
        seen: set[str] = set()
        for key in division.shares:
            for name in tables_in(key) if division.what == "tables" else [key]:
                path: Path = (*division.path, key)
                if division.what == "levels":
                    yield from unknown_name(draft, "unknown-level", name, levels, path, "a level")
                    continue
                yield from unknown_name(draft, "unknown-table", name, tables, path, "a table")
                if name in tables and tables[name].is_free:
                    yield error(
                        "free-table-paid",
                        path,
                        f"'{name}' is computed and costs nothing; delete the line",
                        at_key=True,
                    )
                if name in seen:
                    yield error("listed-twice", path, f"'{name}' has two shares; keep one", at_key=True)
                seen.add(name)
    for name in draft.spec.spend.optimal.importance if draft.levels_are_clear() else ():
        path = ("spend", "optimal", "importance", name)
        yield from unknown_name(draft, "unknown-table", name, [*tables, *levels], path, "a table or level")


@needs("tables", "spend", "microdata")
def shares_add_up(draft: Draft) -> Iterator[Finding]:
    """No line divides more than the whole, and the rest is taken once and is not empty."""
    for division in divisions(draft):
        total = sum(division.stated.values(), Fraction(0))
        takers = [name for name, share in division.shares.items() if share is ShareWord.REST]
        if total > 1:
            sum_text = " + ".join(str(share) for share in division.stated.values())
            lines = sorted({draft.line((*division.path, name)) for name in division.stated})
            where = f"line{'s' if len(lines) > 1 else ''} {listed(lines)}"
            message = f"{sum_text} = {total}, over by {total - 1} ({where}); lower some shares"
            yield error("shares-exceed", division.path, message, at_key=True)
        elif len(takers) > 1 or (takers and division.rest is not None):
            who = listed([*takers, *(["rest"] if division.rest else [])])
            message = f"{who} all take the rest; let one of them, or write rest: equal without the others"
            yield error("two-rests", division.path, message, at_key=True)
        elif total == 1 and (takers or (division.rest is not None and division.unnamed)):
            left = takers or division.unnamed
            message = f"the stated shares add up to 1, so nothing is left for {listed(left)}; lower some shares"
            yield error("nothing-left", division.path, message, at_key=True)
        elif total < 1 and not takers and not division.unnamed:
            last = ["", *division.shares][-1]
            message = f"{1 - total} of this line is spent on nothing; raise the shares, or write '{last}: rest'"
            yield warning("budget-unspent", division.path, message, at_key=True)


@needs("tables", "spend", "microdata")
def everything_published_is_paid_for(draft: Draft) -> Iterator[Finding]:
    """A table or level without a share is paid from the rest, bought by its promise, or said to be computed."""
    for division in divisions(draft):
        if division.rest is not None or sum(division.stated.values()) > 1:
            continue
        promised = {name for name, table in draft.spec.tables.items() if table.precision}
        unpaid = [name for name in division.unnamed if name not in promised | draft.domain.unknown | {"whole"}]
        if unpaid:
            message = (
                f"{listed(unpaid)} {'has' if len(unpaid) == 1 else 'have'} no share here; "
                f"add rest: optimal, or a share ('{unpaid[0]}: none' if it is computed from other {division.what})"
            )
            yield error("unpaid", division.path, message, at_key=True)


@needs("tables", "spend", "microdata")
def what_is_not_measured_can_be_computed(draft: Draft) -> Iterator[Finding]:
    """A table with share `none` is read off other tables that are measured there or below."""
    tables = draft.spec.tables
    for division in divisions(draft):
        if division.what != "tables":
            continue
        level = str(division.path[2]) if len(division.path) > 2 else None
        unmeasured = {
            part for key, share in division.shares.items() if share is ShareWord.NONE for part in tables_in(key)
        }
        for name in sorted(unmeasured & set(tables)):
            others = [other for other in tables if other not in unmeasured and not tables[other].is_free]
            if not any(_holds(draft, tables[name], tables[other], level) for other in others):
                message = (
                    f"'{name}' is not measured, and no measured table of the same universe holds its margin"
                    + (f" at {level} or below" if level else " at its levels or below")
                    + "; give it a share"
                )
                yield error("cannot-compute", (*division.path, name), message)


def _holds(draft: Draft, wanted: Table, other: Table, level: str | None) -> bool:
    """Whether `wanted` can be summed from `other`, at `level` or at every level it is published at."""
    if wanted.universe != other.universe or wanted.statistics != ("count",) or other.statistics != ("count",):
        return False
    if not margins_within(draft, wanted, other):
        return False
    mine = [level] if level else [part for part in wanted.at or () if part != "all"]
    tree = next((tree for part in mine if (tree := draft.domain.level_spine(part)) is not None), None)
    if tree is None:
        return True
    theirs = tree.levels if other.at == ("all",) else (other.at or ())
    deepest = max((tree.levels.index(part) for part in theirs if part in tree.levels), default=-1)
    return all(tree.levels.index(part) <= deepest for part in mine if part in tree.levels)


@needs("tables", "spend", "microdata")
def levels_not_measured_are_summed_from_below(draft: Draft) -> Iterator[Finding]:
    """A level with share `none` needs a measured level below it, or another table that holds the same margin there."""
    for division in divisions(draft):
        if division.what != "levels":
            continue
        for level in [name for name, share in division.shares.items() if share is ShareWord.NONE]:
            tree = draft.domain.level_spine(level)
            if tree is None:
                continue
            below = tree.levels[tree.levels.index(level) + 1 :]
            measured = [name for name, share in division.shares.items() if share is not ShareWord.NONE]
            measured += division.unnamed if division.rest is not None else []
            if not set(below) & set(measured) and not _held_elsewhere(draft, division, level):
                message = (
                    f"neither '{level}' nor any level below it is measured, so it cannot be summed; give it a share"
                )
                yield error("cannot-compute", (*division.path, level), message)


def _held_elsewhere(draft: Draft, division: Division, level: str) -> bool:
    tables = draft.spec.tables
    mine = [name for name in tables_in(str(division.path[2])) if name in tables] if len(division.path) > 2 else []
    others = [table for name, table in tables.items() if name not in mine and not table.is_free]
    return bool(mine) and all(any(_holds(draft, tables[name], other, level) for other in others) for name in mine)


@needs("tables", "spend", "privacy", "expect")
def relative_promises_have_a_size(draft: Draft) -> Iterator[Finding]:
    """A percentage is of something public: an expected size, or an earlier edition's cells."""
    expect = draft.spec.expect
    for name, table in draft.spec.tables.items():
        for level, promise in table.precision.items():
            if not promise.moe.relative:
                continue
            path: Path = ("tables", name, "precision", level, "moe")
            sized = expect is not None and (
                table.universe in expect.named or (expect.areas is not None and table.universe in expect.areas.named)
            )
            if promise.moe_of == "cell" and (expect is None or expect.previous is None):
                message = "a percentage of each cell needs the sizes of cells; add expect: {previous: folder}"
                yield error("relative-needs-size", path, message)
            elif promise.moe_of == "total" and not sized and (expect is None or expect.previous is None):
                message = (
                    f"{promise.moe} of what? The size of '{table.universe}' is not declared; add it to 'expect', "
                    "or write the margin in units"
                )
                yield error("relative-needs-size", path, message)


@needs("spend", "tables")
def an_unstated_division_is_optimal(draft: Draft) -> Iterator[Finding]:
    """Without `spend` the budget is divided optimally, which is good to know."""
    spend = draft.spec.spend
    if spend.by_table is None and spend.by_level is None:
        yield note("spend-optimal", ("tables",), "no division is stated: the whole budget is divided optimally")


CHECKS = (
    spending_names_tables_and_levels,
    shares_add_up,
    everything_published_is_paid_for,
    what_is_not_measured_can_be_computed,
    levels_not_measured_are_summed_from_below,
    relative_promises_have_a_size,
)
ADVICE = (an_unstated_division_is_optimal,)
