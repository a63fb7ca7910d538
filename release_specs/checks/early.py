"""What is decided before groups are gathered looks only at what is known by then: columns of files."""

from __future__ import annotations

from collections.abc import Iterator

from release_specs.checks.draft import Draft, needs
from release_specs.checks.guarantee import with_what_decides
from release_specs.diagnostics import Finding, Path, error
from release_specs.language.conditions import Condition


@needs("microdata", "derive", "privacy")
def rows_are_chosen_before_groups_are_gathered(draft: Draft) -> Iterator[Finding]:
    """`only` and `keep_first` choose rows; what is derived or built from rows is known only afterwards."""
    for name, entity in draft.spec.microdata.items():
        if entity.only is not None:
            yield from _looks_at_files(draft, name, entity.only, ("microdata", name, "only"), "only")
    at_most = draft.spec.privacy.at_most
    if at_most is not None and at_most.keep_first is not None:
        path: Path = ("privacy", "at_most", "keep_first")
        for name in draft.spec.privacy.caps:
            yield from _looks_at_files(draft, name, at_most.keep_first, path, "keep_first")


def _looks_at_files(draft: Draft, entity: str, condition: Condition, path: Path, word: str) -> Iterator[Finding]:
    asked = {criterion.column: where for where, criterion in condition.criteria(path)}
    for name, where in with_what_decides(draft, entity, asked):
        attribute = draft.domain.attribute(entity, name)
        if attribute is None or not attribute.derived:
            continue
        owner = draft.spec.microdata.get(attribute.owner)
        if owner is not None and attribute.owner == entity and attribute.base in owner.columns:
            continue
        how = "built from rows" if owner is not None and attribute.base in owner.columns else "derived from rows"
        message = (
            f"'{name}' is {how}, and '{word}' chooses rows before that is known; name columns of the row's own file"
        )
        yield error("looks-too-far", where, message)


CHECKS = (rows_are_chosen_before_groups_are_gathered,)
