"""The written pages: what they show is what happens, and their links lead somewhere."""

import re
from pathlib import Path

import pytest

from release_specs.diagnostics import Severity
from release_specs.load import load_spec, load_text
from tests.follow_tutorial import TUTORIAL, blocks, follow, rewrite

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
ROOMS = ("release_specs", "tabulation", "mechanisms", "estimation", "reporting", "flows")


def test_whoever_follows_the_tutorial_sees_what_it_shows_and_ends_with_a_spec_without_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    followed = list(follow(TUTORIAL, tmp_path))
    for block, text in followed:
        assert text == block.text, "where the new output is right, run: python -m tests.follow_tutorial"
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
