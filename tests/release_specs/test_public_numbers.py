"""Public numbers, rules and calendars that are in order, and long lists of slips that are cut short."""

from __future__ import annotations

from pathlib import Path

import pytest

from release_specs.diagnostics import Diagnostic, SpecError
from release_specs.load import load_spec, load_text
from tests.release_specs.golden import Mistake, diagnostics_of

PARISHES = (
    ("geography:\n", "geography:\n  parish: {levels: [parishes, parish], areas: {P1: First, P2: Second}}\n"),
    (
        "      kind:   {codes",
        "      in_parish: {area: parish, outside: {count_as: P1}, missing: {count_as: P1}}\n      kind:   {codes",
    ),
    ("count: people, at: all}", "count: people, at: [town_whole, quarter, block_area]}"),
)
PLACELESS = """
margrave: 1
release: {{name: visits, title: Visits}}
microdata: {{visits: {{key: visit_id}}}}
privacy: {{protect: visits, neighbours: add-remove, budget: {{epsilon: 1}}}}
tables: {{visits_made: {{count: visits, precision: {{whole: {{moe: 50}}}}}}}}
exact: [{{count: visits, {at}from: {source}, because: The gate counts them.}}]
"""


def said(folder: Path, *change: tuple[str, str], **files: str) -> list[str]:
    """What `check` says about the base spec after a change, with files beside it."""
    contents = tuple((name.replace("_csv", ".csv"), text) for name, text in files.items())
    return list(diagnostics_of(Mistake("a change", change, contents, None, ()), folder))


def codes(lines: list[str]) -> list[str]:
    """The codes of diagnostics."""
    return [line.partition("[")[2].partition("]")[0] for line in lines]


def everything_about(folder: Path, *change: tuple[str, str]) -> tuple[Diagnostic, ...]:
    """All diagnostics of the base spec after a change, the notes too."""
    try:
        return load_spec(Mistake("a change", change, (), None, ()).written_to(folder)).diagnostics
    except SpecError as fault:
        return fault.diagnostics


@pytest.mark.parametrize("at", ["at: whole, ", ""])
@pytest.mark.parametrize("source", ["5", "gate.csv:visits"])
def test_an_exact_number_without_geography_is_for_the_whole(at: str, source: str, tmp_path: Path) -> None:
    (tmp_path / "gate.csv").write_text("visits\n5000\n", encoding="utf-8")
    load_text(PLACELESS.format(at=at, source=source), file="spec.yaml", folder=tmp_path)


def test_a_file_for_the_whole_has_one_row(tmp_path: Path) -> None:
    (tmp_path / "gate.csv").write_text("visits\n5000\n6000\n", encoding="utf-8")
    with pytest.raises(SpecError, match="has 2 rows, and no column tells them apart"):
        load_text(PLACELESS.format(at="", source="gate.csv:visits"), file="spec.yaml", folder=tmp_path)


def test_one_number_is_exact_for_the_whole_of_any_geography(tmp_path: Path) -> None:
    total = "  - {count: homes, at: parishes, from: 35000, because: The yearbook says so.}\nimpossible:\n"
    assert said(tmp_path, *PARISHES, ("impossible:\n", total)) == []


def test_a_public_file_may_be_by_codes_and_hold_several_editions(tmp_path: Path) -> None:
    rows = [f"{year},{area},{kind},{10 * int(kind)}" for year in (2025, 2026) for area in "NS" for kind in "123"]
    change = (
        "{count: homes, at: town_whole, from: areas.csv:homes,",
        "{count: homes, by: [kind], at: [town_whole, quarter], from: kinds.csv:n,",
    )
    found = said(tmp_path, change, kinds_csv="\n".join(["edition,quarter,kind,n", *rows, ""]))
    assert codes(found) == ["exact-with-cap"]


def test_a_rule_may_be_about_a_public_column_of_larger_areas(tmp_path: Path) -> None:
    rule = ("- population >= sizes", "- population >= floor.csv:n")
    assert said(tmp_path, rule, floor_csv="quarter,n\nN,1000\nS,2000\n") == []


def test_a_rule_on_a_recode_is_covered_by_a_keep_first_on_its_column(tmp_path: Path) -> None:
    recode = ("  cohort:    {of: born,", "  head: {of: role, into: {Head: [0], Other: rest}}\n  cohort:    {of: born,")
    table = ("  young:      {", "  heads: {count: people, by: [head], at: town_whole}\n  young:      {")
    rule = ("- roles(role=0) <= sizes", "- heads(head=Head) = sizes")
    assert codes(said(tmp_path, recode, table, rule)) == ["label-missing"]


def test_a_rule_on_a_column_that_leaves_rows_out_is_noted(tmp_path: Path) -> None:
    found = everything_about(tmp_path, ("- roles(role=0) <= sizes", "- roles(role=0) = sizes"))
    assert [str(item.severity) for item in found if item.code == "rule-leaves-out"] == ["note"]


def test_a_comparison_of_a_column_with_endless_values_is_told_and_no_more(tmp_path: Path) -> None:
    found = said(
        tmp_path,
        ("size:     {number_of: people, into: {Empty: 0, One: 1, Two: 2, More: 3..}}", "size:     {number_of: people}"),
        ("compare: {sex: [F, M]}, of: ages,", "compare: {size: [1, many]}, of: sizes,"),
        ("  - {size: Empty, children: yes}", "  - {kind: 3, children: yes}"),
    )
    assert codes(found) == ["too-many-categories", "bad-range"]


@pytest.mark.parametrize(
    ("day", "clash"),
    [("15th of May", False), ("last Sunday of March", True), ("29th of March", True), ("20th of March", False)],
)
def test_only_the_nights_of_the_schedule_matter_for_the_clock(day: str, clash: bool, tmp_path: Path) -> None:
    found = said(tmp_path, ("day: 15th of May, time: 06:00", f"day: {day}, time: 02:30"))
    assert codes(found) == ["clock-change"] * clash


def test_many_wrong_lines_of_a_labels_file_are_counted(tmp_path: Path) -> None:
    lines = [f"sex,{number},x" for number in range(5000)]
    found = said(tmp_path, labels_es_csv="\n".join(["name,code,label", *lines, ""]))
    assert codes(found).count("label-unknown") == 6
    assert any("4995 more lines of 'labels_es.csv' are wrong" in line for line in found)


def test_a_promise_is_checked_against_areas_summed_from_smaller_ones(tmp_path: Path) -> None:
    found = said(
        tmp_path,
        ("areas: {file: areas.csv, homes: homes}", "areas: {file: blocks.csv, homes: homes}"),
        (
            "{count: homes, by: [rooms], at: town_whole}",
            "{count: homes, by: [rooms], at: [town_whole, quarter], precision: {quarter: {moe: 1%}}}",
        ),
        blocks_csv="block_area,homes\nB1,9000\nB2,8000\nB3,60\nB4,30\n",
    )
    assert codes(found) == ["relative-near-zero"]
