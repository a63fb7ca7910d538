"""Checks of exact totals, impossible combinations, and public expectations."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations

from release_specs.checks.draft import Draft, attribute_or_findings, condition_findings, needs, unknown_name
from release_specs.checks.public_columns import PublicColumn, public_column_findings
from release_specs.checks.sizes import areas_of, exact_wholes, expected_sizes, whole_total
from release_specs.diagnostics import Finding, Path, error, warning
from release_specs.language.phrases import FileColumn
from release_specs.language.publication import ExactTotal
from release_specs.language.values import write_number


@needs("microdata", "exact", "geography")
def exact_totals_name_known_things(draft: Draft) -> Iterator[Finding]:
    """An exact total counts a declared universe, by its attributes, at its levels, and says why."""
    for index, total in enumerate(draft.spec.exact):
        path: Path = ("exact", index)
        if not total.because.strip():
            message = "no reason is written; say why it may be exact: it is printed on the certificate"
            yield error("empty-value", (*path, "because"), message)
        entity = draft.entity(total.count)
        if entity is None:
            known = draft.universes()
            yield from unknown_name(
                draft, "unknown-universe", total.count, known, (*path, "count"), "an entity or universe"
            )
            continue
        for place, word in enumerate(total.by):
            found = attribute_or_findings(draft, entity, word, (*path, "by", place))
            if isinstance(found, list):
                yield from found
            elif word in total.by[:place]:
                yield error("listed-twice", (*path, "by", place), f"'{word}' is listed twice; keep one")
            elif found.up_to > 1:
                message = f"a row may have several answers to '{word}', so its cells add up to no total; leave it out"
                yield error("exact-several-answers", (*path, "by", place), message)
        yield from _exact_levels(draft, total, entity, path)


def _exact_levels(draft: Draft, total: ExactTotal, entity: str, path: Path) -> Iterator[Finding]:
    levels = draft.spine_levels(entity)
    placeless = not draft.domain.spines.get(entity)
    for level in total.at or ():
        if level != "all" and not (placeless and level == "whole"):
            known = levels or ["whole"]
            yield from unknown_name(draft, "unknown-level", level, known, (*path, "at"), f"a level of {total.count}")
    if total.at is None and levels:
        message = f"'at' is missing; say at which level it is exact: {', '.join(levels)}"
        yield error("missing-key", path, message, at_key=True)


def exact_levels(draft: Draft, total: ExactTotal) -> tuple[str, ...]:
    """The levels of an exact total, without the names that mean nothing."""
    known = draft.spine_levels(draft.entity(total.count))
    return tuple(level for level in known if total.at == ("all",) or level in (total.at or ()))


@needs("microdata", "exact", "geography")
def exact_totals_have_a_source(draft: Draft) -> Iterator[Finding]:
    """A public source has a whole number for every cell; one number is for the whole."""
    for index, total in enumerate(draft.spec.exact):
        path: Path = ("exact", index, "from")
        entity = draft.entity(total.count)
        levels = exact_levels(draft, total)
        unplaced = not levels and bool(draft.domain.spines.get(entity or ""))
        if entity is None or unplaced or any(draft.domain.attribute(entity, word) is None for word in total.by):
            continue
        if isinstance(total.source, FileColumn):
            wanted = PublicColumn(total.source, entity, total.by, levels, path, path, complete=True)
            yield from public_column_findings(draft, wanted)
        elif isinstance(total.source, Fraction):
            wholes = {tree.levels[0] for tree in draft.domain.hierarchy_of(entity)}
            if total.source.denominator != 1 or total.source < 0:
                message = f"{write_number(total.source)} is not a count; write a whole number of at least 0"
                yield error("bad-number", path, message)
            elif total.by or not set(levels) <= wholes:
                message = (
                    "one number is exact for the whole only; use a file with a row for each area, or at: the first "
                    "level"
                )
                yield error("one-number-many-cells", path, message)


@needs("microdata", "exact")
def exact_totals_do_not_contradict_each_other(draft: Draft) -> Iterator[Finding]:
    """Two exact totals of one universe are the same, and a part is never more than the whole it is part of."""
    totals = draft.spec.exact
    wholes = {index: whole for index in range(len(totals)) if (whole := whole_total(draft, index)) is not None}
    for index, other in permutations(wholes, 2):
        same = totals[index].count == totals[other].count
        if (same and other < index) or totals[other].count in draft.ancestors(totals[index].count):
            found = _contradiction(draft, index, other, (wholes[index], wholes[other]))
            if found is not None:
                yield error("exact-contradiction", ("exact", index, "from"), found)


def _contradiction(draft: Draft, index: int, other: int, wholes: tuple[int, int]) -> str | None:
    """How an exact total contradicts another of the same universe, or of one that it is part of."""
    mine, theirs = draft.spec.exact[index], draft.spec.exact[other]
    same = mine.count == theirs.count
    advice = "both cannot be exact: mend a source or delete one"
    within = "" if same else f", and {mine.count} are part of {theirs.count}"
    if wholes[0] > wholes[1] or (same and wholes[0] != wholes[1]):
        return f"this adds up to {wholes[0]:,} for the whole, and exact[{other}] to {wholes[1]:,}{within}; {advice}"
    if not isinstance(mine.source, FileColumn) or not isinstance(theirs.source, FileColumn):
        return None
    for level in exact_levels(draft, mine):
        if level in exact_levels(draft, theirs):
            own = areas_of(draft, mine.source, level, ("exact", index, "from"))
            their = areas_of(draft, theirs.source, level, ("exact", other, "from"))
            shared = [code for code in own if code in their]
            wrong = [code for code in shared if own[code] > their[code] or (same and own[code] != their[code])]
            for code in wrong[:1]:
                counts = f"this is {own[code]:,} for {level} {code}, and exact[{other}] {their[code]:,}"
                return f"{counts}{within}; {advice}"
    return None


@needs("microdata", "impossible")
def impossible_combinations_can_be_told(draft: Draft) -> Iterator[Finding]:
    """The columns of an impossible combination meet in the rows of one entity."""
    for index, condition in enumerate(draft.spec.impossible):
        path: Path = ("impossible", index)
        names = condition.columns()
        fitting = [entity for entity in draft.spec.microdata if names <= set(draft.domain.names(entity))]
        if fitting:
            yield from condition_findings(draft, fitting[0], condition, path)
            continue
        known = {name for entity in draft.spec.microdata for name in draft.domain.names(entity)}
        strange = sorted(names - known - draft.domain.unknown)
        for name in strange:
            yield from unknown_name(draft, "unknown-column", name, sorted(known), (*path, name), "an attribute")
        if not strange and not names & draft.domain.unknown:
            message = f"{', '.join(sorted(names))} never meet in one row; a combination is of one entity's attributes"
            yield error("never-meet", path, message)


@needs("microdata", "expect")
def expectations_name_known_things(draft: Draft) -> Iterator[Finding]:
    """Public sizes are of declared entities and universes, from files that have them."""
    expect = draft.spec.expect
    if expect is None:
        return
    known = draft.universes()
    for name in expect.named:
        yield from unknown_name(draft, "unknown-universe", name, known, ("expect", name), "an entity or universe")
    if expect.areas is not None:
        path: Path = ("expect", "areas")
        for name, column in expect.areas.named.items():
            yield from unknown_name(draft, "unknown-universe", name, known, (*path, name), "an entity or universe")
            entity = draft.entity(name)
            if entity is not None and draft.levels_are_clear():
                source, levels = FileColumn(expect.areas.file, column), tuple(draft.spine_levels(entity))
                wanted = PublicColumn(source, entity, (), levels, (*path, name), (*path, "file"))
                yield from public_column_findings(draft, wanted)
        if not expect.areas.named:
            draft.files.table(expect.areas.file, (*path, "file"))
    for size in expect.sizes or {}:
        if not size.isdecimal():
            yield error(
                "bad-number", ("expect", "sizes", size), f"'{size}' is not a number of rows; write 1: 28%", at_key=True
            )
    total = sum((expect.sizes or {}).values(), Fraction(0))
    if total > 1:
        yield error(
            "shares-exceed", ("expect", "sizes"), f"the parts add up to {total}, over by {total - 1}", at_key=True
        )


@needs("microdata", "expect", "exact", "universes")
def a_part_is_not_expected_to_be_more_than_its_whole(draft: Draft) -> Iterator[Finding]:
    """A universe is part of another, so its public size is no larger."""
    sizes, exact, expect = expected_sizes(draft), exact_wholes(draft), draft.spec.expect
    if expect is None:
        return
    for name, size in sizes.items():
        larger = [whole for whole in draft.ancestors(name) if sizes.get(whole, size) < size]
        larger = [whole for whole in larger if name not in exact or whole not in exact]
        if larger:
            whole = larger[0]
            stated = name if name in expect.named or (expect.areas and name in expect.areas.named) else whole
            path: Path = ("expect", stated) if stated in expect.named else ("expect", "areas", stated)
            message = f"{size:,} {name} are more than the {sizes[whole]:,} {whole} they are part of; mend one of them"
            yield warning("expect-contradiction", path, message)


CHECKS = (
    exact_totals_name_known_things,
    exact_totals_have_a_source,
    exact_totals_do_not_contradict_each_other,
    impossible_combinations_can_be_told,
    expectations_name_known_things,
    a_part_is_not_expected_to_be_more_than_its_whole,
)
