"""The written pages: what they show is what happens, and their links lead somewhere."""

import re
from pathlib import Path

import pytest

from release_specs.diagnostics import Severity, SpecError
from release_specs.load import load_spec, load_text
from tests.follow_tutorial import FOLLOWED, TUTORIAL, blocks, follow, rewrite

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
ASKED = (
    *(
        "spine",
        "level",
        "area",
        "cell",
        "query",
        "margin",
        "margin of error",
        "universe",
        "unit",
        "cap",
        "clip",
        "step",
    ),
    *("rho", "epsilon", "delta", "zero-concentrated", "ledger", "certificate", "unbiased estimate", "optimal"),
    *("neighbours", "add-remove", "replace", "recode", "derived attribute", "a cap where the row itself is protected"),
)
SLIPPERY = """
margrave: 1
release: {name: saltmarsh, title: The people of Saltmarsh}
microdata:
  persons:
    key: person_id
    defaults: {outside: leave_out, missing: leave_out}
    columns:
      sex:    {codes: {1: Male, 2: Female}}
      status: {codes: codes.csv}
      age:    {integer: 0..110, outside: nearest}
      income: {number: 0..1000000, step: 100, clip: 0..200000}
recodes:
  age_group: {of: age, into: {Under 18: ..17, 18 and over: 18..}}
privacy:
  protect: persons
  neighbours: add-remove
  budget: {rho: 0.5, delta: 1e-10}
expect: {persons: 10000}
tables:
  sex_by_age: {count: persons, by: [sex, age_group], precision: {whole: {moe: 5%}}}
  status:     {count: persons, by: [status]}
  income:     {mean: income, of: persons}
"""
CODES = "code,label\n1,Married\n2,Not married\n"
ROOMS = ("release_specs", "tabulation", "mechanisms", "estimation", "reporting", "flows")


@pytest.mark.parametrize("page", FOLLOWED, ids=[page.name for page in FOLLOWED])
def test_whoever_follows_a_page_sees_what_it_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block, text in follow(page, tmp_path):
        assert text == block.text, "where the new output is right, run: python -m tests.follow_tutorial"


def test_whoever_follows_the_tutorial_ends_with_a_spec_without_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    followed = list(follow(TUTORIAL, tmp_path))
    assert sum(block.text.count("$ margrave ") for block, _ in followed) >= 10
    assert {item.severity for item in load_spec(tmp_path / "town.yaml").diagnostics} <= {Severity.NOTE}


def test_a_tutorial_that_has_drifted_is_noticed_and_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    text = "```yaml a.yaml\nmargrave: 2\n```\n\n```console\n$ margrave check a.yaml\nok\n```\n"
    page.write_text(text, encoding="utf-8")
    assert [text == block.text for block, text in follow(page, tmp_path)] == [True, False]
    rewrite(page)
    assert "a.yaml:1:11: error[unknown-version]: " in page.read_text(encoding="utf-8")


def test_every_common_slip_of_the_tutorial_is_noticed_and_mended(tmp_path: Path) -> None:
    """Each row of the table is written into a spec, on the left as a slip and on the right as it should be."""
    page = TUTORIAL.read_text(encoding="utf-8").partition("## Common slips")[2].partition("## ")[0]
    rows = re.findall(r"^\| `([^`]+)`[^|]* \| `([^`]+)` \|", page, flags=re.MULTILINE)
    assert len(rows) == 7
    for wrong, right in rows:
        assert (SLIPPERY + CODES).count(right) == 1, right
        assert findings(SLIPPERY, CODES, tmp_path) == []
        assert findings(SLIPPERY.replace(right, wrong), CODES.replace(right, wrong), tmp_path), wrong


def findings(text: str, codes: str, folder: Path) -> list[str]:
    """The errors and warnings of a spec with a code list beside it."""
    (folder / "codes.csv").write_text(codes, encoding="utf-8")
    try:
        found = load_text(text, file="slips.yaml", folder=folder).diagnostics
    except SpecError as fault:
        found = fault.diagnostics
    return [str(item) for item in found if item.severity is not Severity.NOTE]


def test_the_glossary_explains_every_word_a_newcomer_asked_about() -> None:
    explained = re.findall(r"\*\*([\w -]+)\*\*", (DOCS / "glossary.md").read_text(encoding="utf-8").lower())
    assert set(ASKED) <= set(explained)


def test_the_spec_of_the_readme_has_no_mistake_and_no_warning(tmp_path: Path) -> None:
    (shown,) = (block for block in blocks(ROOT / "README.md") if block.language == "yaml")
    found = load_text(shown.text, file="README.md", folder=tmp_path).diagnostics
    assert {item.severity for item in found} <= {Severity.NOTE}
    assert len(shown.text.splitlines()) <= 40


def test_the_readme_names_every_room() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [room for room in ROOMS if f"| [`{room}`]({room}) |" not in readme] == []


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_every_link_of_a_page_leads_to_a_file_of_the_project(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_the_index_lists_every_page() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in DOCS.glob("*.md") if f"({page.name})" not in index and page.name != "README.md"] == []
