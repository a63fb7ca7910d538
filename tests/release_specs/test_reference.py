"""The generated pages: as committed, complete, with links that lead somewhere and no word left over."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from release_specs import reference
from release_specs.diagnostics import Severity
from release_specs.explain import explanations
from release_specs.load import load_spec, load_text
from release_specs.reference import Part, anchor, pages, shown_sections, words
from release_specs.spec import ReleaseSpec

ROOT = Path(__file__).resolve().parents[2]
PAGES = pages()


def parts() -> list[Part]:
    """Every model of the language at its path."""
    return [part for name, field in ReleaseSpec.model_fields.items() for part in reference._parts(field, name, 2)]


def models() -> set[type[BaseModel]]:
    """Every model below the spec."""
    return {part.model for part in parts()}


class Recording(dict[str, str]):
    """Words that remember which of them were asked for."""

    def __init__(self, said: dict[str, str]) -> None:
        super().__init__(said)
        self.asked: set[str] = set()

    def __getitem__(self, key: str) -> str:
        self.asked.add(key)
        return super().__getitem__(key)


def headings(page: str) -> Iterator[str]:
    """The headings of a page; a remark inside an example is none."""
    prose = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    yield from re.findall(r"^#+ (.+)$", prose, flags=re.MULTILINE)


@pytest.mark.parametrize("name", PAGES)
def test_the_committed_page_is_the_one_the_language_makes(name: str) -> None:
    committed = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert committed == PAGES[name], "run: python -m release_specs.reference"


def test_the_module_writes_its_pages(tmp_path: Path) -> None:
    reference.main(tmp_path)
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == PAGES


def test_every_key_of_every_model_has_a_row_with_a_value_and_a_meaning() -> None:
    rows = PAGES["spec_reference.md"]
    for part in parts():
        table = reference._model_table(part)
        assert table in rows, part.path
        for name, field in part.model.model_fields.items():
            key = re.escape(f"`{field.alias or name}`")
            assert re.search(rf"^\| {key} \| \S.* \| .*\| \S.*[.:] \|$", table, flags=re.MULTILINE), (part.path, name)


def test_every_section_is_listed_and_explained() -> None:
    page = PAGES["spec_reference.md"]
    for name in ReleaseSpec.model_fields:
        assert f"| [`{name}`](#{name}) |" in page
        assert f"\n## {name}\n" in page


@pytest.mark.parametrize("name", PAGES)
def test_every_link_within_a_page_leads_to_a_heading(name: str) -> None:
    page = PAGES[name]
    links = set(re.findall(r"\]\(#([^)]+)\)", page))
    assert links
    assert links <= {anchor(heading) for heading in headings(page)}


@pytest.mark.parametrize("name", PAGES)
def test_no_two_headings_of_a_page_have_the_same_address(name: str) -> None:
    addresses = [anchor(heading) for heading in headings(PAGES[name])]
    assert len(addresses) == len(set(addresses))


@pytest.mark.parametrize("name", PAGES)
def test_every_link_to_another_file_leads_to_a_file(name: str) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", PAGES[name])
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []


def test_no_word_of_the_reference_is_left_over() -> None:
    said = words()
    fields = {f"{model.__name__}.{name}" for model in models() for name in model.model_fields}
    keys = {*ReleaseSpec.model_fields, *(name for model in models() for name in model.model_fields)}
    assert set(said["values"]) - fields == set()
    assert set(said["keys"]) - keys == set()
    assert {*said["remarks"], *said["more"]} - set(ReleaseSpec.model_fields) == set()
    assert set(said["named"]) == {model.__name__ for model in models() if reference._own_keys(model) is not None}


def test_every_reader_of_the_language_is_called_something_and_no_other_is(monkeypatch: pytest.MonkeyPatch) -> None:
    readers = Recording(words()["readers"])
    monkeypatch.setattr(reference, "words", lambda: {**words(), "readers": readers})
    reference.spec_reference()
    assert readers.asked == set(readers)


def test_every_notation_that_is_named_is_explained() -> None:
    page = PAGES["spec_reference.md"]
    assert set(re.findall(r"^### ([A-Z]+)$", page, flags=re.MULTILINE)) == set(words()["notations"])
    for notation in words()["notations"]:
        assert f"](#{notation.lower()})" in page


def test_the_spec_that_shows_every_section_has_no_mistake_and_no_warning() -> None:
    loaded = load_spec(ROOT / "release_specs" / "reference.yaml")
    assert [str(found) for found in loaded.diagnostics if found.severity is not Severity.NOTE] == []
    assert set(ReleaseSpec.model_fields) - set(shown_sections()) == {"landmarks"}


def test_the_labels_that_are_shown_fit_the_spec_that_is_shown(tmp_path: Path) -> None:
    (labels,) = re.findall(r"^```csv\n(.*?)^```$", PAGES["spec_reference.md"], flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "labels_fr.csv").write_text(labels, encoding="utf-8")
    text = (ROOT / "release_specs" / "reference.yaml").read_text(encoding="utf-8")
    text = text.replace("publish:\n", "publish:\n  languages: {fr: labels_fr.csv}\n")
    found = load_text(text, file="reference.yaml", folder=tmp_path).diagnostics
    assert {item.code for item in found if item.severity is not Severity.NOTE} == {"label-missing"}


def test_every_error_code_has_its_own_heading() -> None:
    found = set(headings(PAGES["error_codes.md"]))
    assert set(explanations()) <= found


def test_a_type_without_words_is_not_passed_over() -> None:
    with pytest.raises(TypeError, match="no words for"):
        reference._value(complex, (), "somewhere")
