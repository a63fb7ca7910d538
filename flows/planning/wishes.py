"""What may be measured: the tallies of a spec at the levels where they are published or `spend` measures them."""

from __future__ import annotations

from collections.abc import Sequence

from flows.planning.shapes import sensitivity_of, shape_of
from flows.planning.shares import WHOLE, Wish
from flows.terminal import UserError
from release_specs.checks.draft import Draft
from release_specs.checks.spend import measured_levels
from release_specs.meanings import Meanings
from release_specs.measured import tallies_at_all_levels
from release_specs.spec import ReleaseSpec
from release_specs.tallies import EXACT, Tally


def tallies_to_publish(draft: Draft) -> list[Tally]:
    """Every tally of a spec, with the levels at which it is published or measured, from the whole down."""
    _refuse_what_cannot_be_released(draft.spec)
    found = tallies_at_all_levels(draft)
    for name, table in draft.spec.tables.items():
        known = {level for tally in found if tally.table == name for level in tally.levels or (WHOLE,)}
        lost = [] if table.is_free else [level for level in measured_levels(draft, name) if level not in known]
        if lost:
            raise UserError(
                f"spend measures '{name}' at {', '.join(lost)}, a geography it is not published on, which cannot be "
                f"released yet; publish it there, or delete the share"
            )
    return found


def _refuse_what_cannot_be_released(spec: ReleaseSpec) -> None:
    for name, table in spec.tables.items():
        if table.mechanism == "randomised_response":
            raise UserError(f"tables.{name}: randomised response cannot be released yet; write mechanism: auto")
        if table.most_common is not None:
            raise UserError(f"tables.{name}: the most common code cannot be released yet; count by it instead")


def wishes_of(draft: Draft, meanings: Meanings, tallies: Sequence[Tally]) -> list[Wish]:
    """Every tally of a table at every level where the budget may pay for it, with its sensitivity."""
    found = []
    for tally in tallies:
        if tally.table == EXACT:
            continue
        measured = measured_levels(draft, tally.table)
        for level in tally.levels or (None,):
            if (level or WHOLE) in measured:
                shape = shape_of(meanings, tally, level)
                sensitivity = sensitivity_of(shape, draft.spec, tally=tally)
                found.append(Wish(tally, level, shape, sensitivity, draft.spec.tables[tally.table].mechanism))
    return found
