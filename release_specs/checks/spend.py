"""Checks of the division of the budget: shares add up, and everything published is paid for or computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from release_specs.checks.agreement import margins_within
from release_specs.checks.draft import Draft, needs, unknown_name
from release_specs.diagnostics import Finding, Path, error, listed, note, warning
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
    paid = _paid(draft)
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


def _paid(draft: Draft) -> list[str]:
    return [name for name, table in draft.spec.tables.items() if not table.is_free]


def _levels(draft: Draft, name: str) -> tuple[str, ...]:
    """The levels a table is published at; `whole` where its rows lie in no area, nothing where that is not known."""
    table = draft.spec.tables.get(name)
    if table is None:
        return ()
    return ("whole",) if draft.is_placeless(table) else draft.levels_of(table)


def _possible_levels(draft: Draft, names: Iterable[str]) -> list[str]:
    """Every level that tables may be measured at: of the spines their rows lie in."""
    tables = [draft.spec.tables[name] for name in names if name in draft.spec.tables]
    levels = [level for table in tables for level in draft.spine_levels(draft.entity(table.universe))]
    return list(dict.fromkeys([*levels, *(["whole"] if any(map(draft.is_placeless, tables)) else [])]))


def measured_levels(draft: Draft, name: str) -> tuple[str, ...]:
    """The levels at which the budget pays for a table: those it is published at, or that `spend` names for it."""
    spend, levels = draft.spec.spend, _levels(draft, name)
    if spend.by_table is not None:
        line = next((part for key, part in spend.by_table.named.items() if name in tables_in(key)), None)
        shares = line.at.named if line is not None and line.at is not None else {}
        if line is not None and line.share is ShareWord.NONE:
            return ()
        return tuple(level for level in {**dict.fromkeys(levels), **shares} if shares.get(level) is not ShareWord.NONE)
    found = dict.fromkeys(levels)
    for level, part in spend.by_level.named.items() if spend.by_level is not None else ():
        share = part.tables.named.get(name) if part.tables is not None else None
        if ShareWord.NONE in (part.share, share):
            found.pop(level, None)
        elif share is not None:
            found[level] = None
    return tuple(found)


@needs("tables", "spend", "microdata")
def spending_names_tables_and_levels(draft: Draft) -> Iterator[Finding]:
    """Every name under `spend` is a table or a level, each once, and no computed table is paid for."""
    tables = draft.spec.tables
    for division in divisions(draft):
        yield from _levels_paid(draft, division) if division.what == "levels" else _tables_paid(draft, division)
    levels = [*draft.levels(), *(["whole"] if "whole" in _possible_levels(draft, tables) else [])]
    for name in draft.spec.spend.optimal.importance if draft.levels_are_clear() else ():
        path: Path = ("spend", "optimal", "importance", name)
        yield from unknown_name(draft, "unknown-table", name, [*tables, *levels], path, "a table or level")


def _levels_paid(draft: Draft, division: Division) -> Iterator[Finding]:
    """Levels are of the spines that the tables' rows lie in."""
    names = tables_in(str(division.path[2])) if len(division.path) > 2 else _paid(draft)
    whose = f" of '{names[0]}'" if len(names) == 1 and len(division.path) > 2 else ""
    known = _possible_levels(draft, names)
    for level in division.shares if known else ():
        yield from unknown_name(draft, "unknown-level", level, known, (*division.path, level), f"a level{whose}")


def _tables_paid(draft: Draft, division: Division) -> Iterator[Finding]:
    tables, seen = draft.spec.tables, set[str]()
    level = str(division.path[2]) if len(division.path) > 2 else None
    for key, name in [(line, part) for line in division.shares for part in tables_in(line)]:
        path: Path = (*division.path, key)
        yield from unknown_name(draft, "unknown-table", name, tables, path, "a table")
        if name in tables and tables[name].is_free:
            yield error(
                "free-table-paid", path, f"'{name}' is computed and costs nothing; delete the line", at_key=True
            )
        elif name in seen:
            yield error("listed-twice", path, f"'{name}' has two shares; keep one", at_key=True)
        elif name in tables and level in [*draft.levels(), "whole"]:
            known = _possible_levels(draft, [name])
            if known:
                yield from unknown_name(draft, "unknown-level", level, known, path, f"a level of '{name}'")
        seen.add(name)


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
        if division.what == "levels" and not set(division.shares) <= {*draft.levels(), *division.wanting}:
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
    for division in divisions(draft):
        if division.what != "tables":
            continue
        level = str(division.path[2]) if len(division.path) > 2 else None
        unmeasured = [key for key, share in division.shares.items() if share is ShareWord.NONE]
        for key, name in [(line, part) for line in unmeasured for part in tables_in(line) if part in draft.spec.tables]:
            wanted = (level,) if level is not None else _levels(draft, name)
            if not all(_is_measured_below(draft, name, part) or _is_read_off(draft, name, part) for part in wanted):
                message = (
                    f"'{name}' is not measured, and no measured table of the same universe holds its margin"
                    + (f" at {level} or below" if level else " at its levels or below")
                    + "; give it a share"
                )
                yield error("cannot-compute", (*division.path, key), message)


def _is_read_off(draft: Draft, name: str, level: str) -> bool:
    """Whether another table that is measured at a level, or below it, holds a table's margin."""
    wanted = draft.spec.tables[name]
    for other_name, other in draft.spec.tables.items():
        fits = other_name != name and not other.is_free and wanted.universe == other.universe
        if not fits or wanted.statistics != ("count",) or other.statistics != ("count",):
            continue
        if _is_measured_below(draft, other_name, level) and margins_within(draft, wanted, other):
            return True
    return False


def _is_measured_below(draft: Draft, name: str, level: str) -> bool:
    """Whether a table is measured at a level or below it."""
    tree = draft.domain.level_spine(level)
    below = tree.levels[tree.levels.index(level) :] if tree is not None else (level,)
    return not set(below).isdisjoint(measured_levels(draft, name))


@needs("tables", "spend", "microdata")
def levels_not_measured_are_summed_from_below(draft: Draft) -> Iterator[Finding]:
    """A level with share `none` needs a measured level below it, or another table that holds the same margin there."""
    for division in divisions(draft):
        if division.what != "levels":
            continue
        inside = tables_in(str(division.path[2])) if len(division.path) > 2 else None
        for level in [name for name, share in division.shares.items() if share is ShareWord.NONE]:
            names = inside or [name for name in _paid(draft) if level in _levels(draft, name)]
            lacking = [
                name
                for name in names
                if level in _levels(draft, name)
                and not _is_measured_below(draft, name, level)
                and not _is_read_off(draft, name, level)
            ]
            if lacking:
                whose = "" if inside and len(inside) == 1 else f" for {listed(lacking)}"
                message = (
                    f"neither '{level}' nor any level below it is measured{whose}, so it cannot be summed; "
                    "give it a share"
                )
                yield error("cannot-compute", (*division.path, level), message)


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
)
ADVICE = (an_unstated_division_is_optimal,)
