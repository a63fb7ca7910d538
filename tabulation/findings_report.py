"""Writes the confidential findings where only the custodian may read them: a page to read and a file for machines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from release_specs.spec import ReleaseSpec
from tabulation.findings import ColumnFindings, EntityFindings, Findings

WARNING = (
    "CONFIDENTIAL. These findings quote records and exact counts. They are for the data custodian alone and must not "
    "be sent, printed or copied out of this folder. Nothing was drawn and nothing was paid."
)
BAR = 30


def write_findings(spec: ReleaseSpec, findings: Findings, folder: Path) -> tuple[Path, Path]:
    """Writes `findings.md` and `findings.json` into a folder that only this user may enter."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    page, data = folder / "findings.md", folder / "findings.json"
    _write(page, "\n".join(_page(spec, findings)) + "\n")
    _write(data, json.dumps({"confidential": WARNING, "release": spec.release.name, **asdict(findings)}, indent=2))
    return page, data


def _write(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)


def _page(spec: ReleaseSpec, findings: Findings) -> Iterator[str]:
    yield f"# Findings: {spec.release.title}"
    yield ""
    yield f"> {WARNING}"
    for entity, found in findings.entities.items():
        yield from _entity(entity, found)
    if findings.universes:
        yield from ("", "## Universes", "", "| Universe | Rows |", "| --- | ---: |")
        yield from (f"| {name} | {number:,} |" for name, number in findings.universes.items())
    yield from ("", "## Rules of the spec", "")
    yield from _rules(findings)


def _entity(entity: str, found: EntityFindings) -> Iterator[str]:
    yield from ("", f"## {entity}", "")
    yield f"- {found.rows:,} records in the file; {found.counted:,} are of this release and counted once."
    if found.invalid_lines:
        yield f"- {found.invalid_lines:,} lines have the wrong number of fields: all their values are missing."
    if found.without_group_row:
        yield f"- {found.without_group_row:,} records name a group that has no row of its own."
    if found.groups_without_rows:
        yield f"- {found.groups_without_rows:,} have no records nested in them."
    if found.undeclared:
        yield f"- Columns that are never read: {', '.join(map(_quoted, found.undeclared))}."
    yield from ("", "| Column | Cells by state | Changed by the clip |", "| --- | --- | ---: |")
    for name, column in found.columns.items():
        states = ", ".join(f"{state} {number:,}" for state, number in column.states.items()) or "none"
        clip = f"{column.beyond_clip:,}" if column.beyond_clip is not None else ""
        yield f"| {name} | {states} | {clip} |"
    for name, column in found.columns.items():
        yield from _unknown(name, column)
    yield from _sizes(found)


def _unknown(name: str, column: ColumnFindings) -> Iterator[str]:
    if column.unknown:
        yield from (
            "",
            f"### {name}: values that are not valid, commonest first",
            "",
            "| Value | Cells |",
            "| --- | ---: |",
        )
        yield from (f"| {_quoted(value)} | {number:,} |" for value, number in column.unknown)


def _quoted(value: str) -> str:
    """A value that no reader of Markdown takes for anything but text."""
    text = json.dumps(value, ensure_ascii=False)[1:-1]
    text = "".join(mark if mark.isprintable() else f"\\u{ord(mark):04x}" for mark in text)
    return f"`{text.replace('`', chr(0x2BC)).replace('|', chr(0x2223))}`"


def _sizes(found: EntityFindings) -> Iterator[str]:
    if not found.sizes:
        return
    most = max(found.sizes.values())
    yield from ("", "### Records for each group", "", "| Records | Groups | |", "| ---: | ---: | --- |")
    for size, number in found.sizes.items():
        mark = " above the cap" if found.cap is not None and size > found.cap else ""
        yield f"| {size} | {number:,} | {'#' * max(1, round(BAR * number / most))}{mark} |"
    if found.cap is not None:
        above = sum(number for size, number in found.sizes.items() if size > found.cap)
        yield from ("", f"{above:,} groups have more than {found.cap} records, the cap.")


def _rules(findings: Findings) -> Iterator[str]:
    for entity, number in findings.dropped_by_cap.items():
        yield f"- The cap leaves out {number:,} of the {findings.entities[entity].counted:,} {entity}."
    for condition, number in findings.impossible:
        verdict = "no record" if number == 0 else f"{number:,} records"
        yield f"- Declared impossible, {_quoted(condition)}: {verdict}."
    for rule, level, wrong, cells in findings.broken_rules:
        yield f"- `{rule}` is broken at level {level}: {wrong:,} of {cells:,} cells. Published tables will keep it."
    if not findings.broken_rules:
        yield "- No rule between two tables is broken by the exact counts."
