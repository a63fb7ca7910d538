"""`margrave init`: the starter spec, and specs drafted from dictionaries, whole and through the loader."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from release_specs.diagnostics import Diagnostic, Severity, SpecError
from release_specs.load import Loaded, load_text
from release_specs.spec import ReleaseSpec
from release_specs.starter import Starter, StarterError, read_document, spec_from_dictionary, starter_spec

SAMPLES = Path(__file__).resolve().parents[2].parent / "shared" / "data"

PERSONS_ONLY: dict[str, Any] = {
    "dataset": "clinic visits: 2025",
    "unit_of_record": "visit",
    "household_id": "patient_id",
    "columns": [
        {"name": "visit_id", "kind": "id", "unique": True},
        {"name": "patient_id", "kind": "categorical", "label": "Patient"},
        {"name": "ward", "kind": "geography", "levels": ["hospital", "ward"], "codes": {"A": "North wing", "B": "#2"}},
        {"name": "day", "kind": "date", "label": "Day", "bounds": ["2025-01-01", "2025-12-31"]},
        {"name": "outcome", "label": "Outcome", "codes": ["well", "ill", "yes: no"]},
        {"name": "fee", "kind": "money", "bounds": [0, 100000.5], "suggested_clip": [0, 2500]},
        {"name": "weight", "kind": "number", "label": "Survey weight", "bounds": [0, 9]},
        {"name": "diagnosis", "kind": "categorical", "open_list": True, "not_applicable": "-"},
        {"name": "remarks", "kind": "text"},
    ],
}

TWO_FILES: dict[str, Any] = {
    "protected_unit": "household, at most 12 persons",
    "tables": {
        "persons": [
            {"name": "no", "kind": "id", "unique": True},
            {"name": "hh", "kind": "id", "refers_to": "households.hh"},
            {"name": "work", "kind": "categorical", "codes": {"1": "yes", "2": "no", "9": "N/A (under 15)"}},
            {"name": "hours", "kind": "integer", "bounds": [1, 99], "not_applicable": "-9 / null: not working"},
            {"name": "zone", "kind": "geography", "refers_to": "zones.zone"},
        ],
        "households": [
            {"name": "hh", "kind": "id"},
            {"name": "rooms", "kind": "integer", "bounds": [1, 40], "note": "kitchens\ncount too"},
        ],
        "zones": [
            {"name": "zone", "kind": "geography"},
            {"name": "town", "kind": "geography"},
            {"name": "homes", "kind": "integer", "label": "Homes"},
        ],
    },
}
ZONES = "zone,town,homes\nz1,t,5\nz2,t,7\n"


def drafted(dictionary: dict[str, Any]) -> Starter:
    return spec_from_dictionary(json.dumps(dictionary), name="trial")


def decided(text: str) -> str:
    """The draft as a person leaves it who takes every suggestion."""
    return re.sub(r"\bDECIDE\b(.*?# .*(?:suggests|for example) (.+))$", r"\2\1", text, flags=re.MULTILINE)


def load(text: str, folder: Path) -> Loaded:
    return load_text(text, file="trial.yaml", folder=folder)


def mistakes(text: str, folder: Path) -> list[Diagnostic]:
    with pytest.raises(SpecError) as caught:
        load(text, folder)
    return [found for found in caught.value.diagnostics if found.severity is Severity.ERROR]


def sample(name: str) -> Starter:
    path = SAMPLES / name / "dictionary.json"
    if not path.exists():
        pytest.skip(f"the sample dictionary of {name} is not beside this checkout")
    return spec_from_dictionary(read_document(path), name=name)


def optional_sections() -> list[str]:
    """The parts of the starter spec that are commented out."""
    return re.findall(r"^# \w+:(?: \{.*|(?:\n# +- .*)+)", starter_spec(), flags=re.MULTILINE)


def test_the_starter_spec_loads_without_a_word_against_it(tmp_path: Path) -> None:
    assert [str(found) for found in load(starter_spec(), tmp_path).diagnostics] == []


def test_the_starter_spec_asks_the_question_of_every_section_that_is_offered() -> None:
    fields = ReleaseSpec.model_fields
    for name in fields.keys() - {"margrave", "landmarks"}:
        question = (fields[name].description or "").split("?")[0] + "?"
        assert re.search(
            rf"^# {re.escape(question)}[^\n]*(\n# [A-Z].*)?\n(# )?{name}:", starter_spec(), re.MULTILINE
        ), name


def test_every_optional_section_of_the_starter_spec_may_be_switched_on(tmp_path: Path) -> None:
    assert len(optional_sections()) == 4
    text = starter_spec()
    for part in optional_sections():
        text = text.replace(part, re.sub(r"^# ", "", part, flags=re.MULTILINE))
    spec = load(text, tmp_path).spec
    assert all((spec.impossible, spec.rules, spec.exact, spec.schedule))


def test_the_starter_spec_leaves_nothing_to_decide_and_needs_no_file() -> None:
    assert "DECIDE" not in starter_spec()
    assert ".csv" not in starter_spec()


@pytest.mark.parametrize("dictionary", [PERSONS_ONLY, TWO_FILES])
def test_a_draft_has_no_mistake_but_what_is_undecided(dictionary: dict[str, Any], tmp_path: Path) -> None:
    draft = drafted(dictionary)
    found = mistakes(draft.text, tmp_path)
    assert {item.code for item in found} == {"undecided"}
    assert len(found) == draft.undecided


@pytest.mark.parametrize("dictionary", [PERSONS_ONLY, TWO_FILES])
def test_a_draft_loads_once_every_suggestion_is_taken(dictionary: dict[str, Any], tmp_path: Path) -> None:
    draft = drafted(dictionary)
    (tmp_path / "zones.csv").write_text(ZONES)
    load(decided(draft.text), tmp_path)


@pytest.mark.parametrize("name", ["households_mi", "acs_excerpts"])
def test_a_draft_of_a_sample_dictionary_has_no_mistake_but_what_is_undecided(name: str, tmp_path: Path) -> None:
    draft = sample(name)
    assert {found.code for found in mistakes(draft.text, tmp_path)} <= {"undecided", "file-missing"}


def test_the_draft_of_the_household_sample_loads_once_every_suggestion_is_taken(tmp_path: Path) -> None:
    draft = sample("households_mi")
    shutil.copy(SAMPLES / "households_mi" / "zones.csv", tmp_path)
    spec = load(decided(draft.text), tmp_path).spec
    assert spec.privacy.protect == "households"
    assert spec.privacy.caps == {"persons": 20}
    assert spec.microdata["persons"].group == {"households": "household_id"}
    assert spec.geography["zones"].levels == ("county", "district", "taz", "maz")
    assert str(spec.microdata["households"].columns["hincp"].clip) == "0..300000"


def test_the_draft_of_the_person_sample_loads_once_its_list_of_areas_is_filled_in(tmp_path: Path) -> None:
    draft = sample("acs_excerpts")
    filled = re.sub(r"^,,(\d\d)", r"\1,State \1,\1", draft.files["puma_areas.csv"], flags=re.MULTILINE)
    (tmp_path / "puma_areas.csv").write_text(filled)
    loaded = load(decided(draft.text), tmp_path)
    assert loaded.spec.microdata["persons"].key is None
    assert len(loaded.domain.hierarchies["puma_areas"].areas["PUMA"]) == 31
    assert loaded.spec.microdata["persons"].columns["MSP"].not_applicable == ("N",)


def test_a_drafted_list_of_areas_that_is_not_filled_in_is_refused(tmp_path: Path) -> None:
    draft = sample("acs_excerpts")
    (tmp_path / "puma_areas.csv").write_text(draft.files["puma_areas.csv"])
    assert {found.code for found in mistakes(decided(draft.text), tmp_path)} == {"area-row"}


def test_not_applicable_codes_are_taken_out_of_the_code_list(tmp_path: Path) -> None:
    (tmp_path / "zones.csv").write_text(ZONES)
    columns = load(decided(drafted(TWO_FILES).text), tmp_path).spec.microdata["persons"].columns
    assert columns["work"].codes is not None
    assert columns["work"].codes.inline == (("1", "yes"), ("2", "no"))
    assert columns["work"].not_applicable == ("9",)
    assert columns["hours"].not_applicable == ("-9",)
    assert "# none for: under 15" in drafted(TWO_FILES).text
    assert "# none for: not working" in drafted(TWO_FILES).text


def test_a_list_of_areas_becomes_geography_and_its_sizes_are_only_mentioned(tmp_path: Path) -> None:
    (tmp_path / "zones.csv").write_text(ZONES)
    text = drafted(TWO_FILES).text
    loaded = load(decided(text), tmp_path)
    assert set(loaded.spec.microdata) == {"persons", "households"}
    assert loaded.spec.geography["zones"].areas.file == "zones.csv"
    assert loaded.spec.geography["zones"].levels == ("town", "zone")
    assert "levels: DECIDE" in text
    assert "# expect: {areas: {file: zones.csv, persons: COLUMN}}" in text
    assert loaded.spec.expect is None


def test_the_protected_unit_and_its_cap_are_suggested_and_not_decided() -> None:
    text = drafted(TWO_FILES).text
    assert re.search(r"protect: DECIDE .*the dictionary suggests households$", text, re.MULTILINE)
    assert re.search(r"persons: DECIDE .*the dictionary suggests 12$", text, re.MULTILINE)


def test_a_group_without_a_file_is_built_from_its_rows(tmp_path: Path) -> None:
    spec = load(decided(drafted(PERSONS_ONLY).text), tmp_path).spec
    assert spec.microdata["patients"].built_from == "visits"
    assert spec.microdata["patients"].key == ("patient_id",)
    assert spec.microdata["visits"].group == {"patients": "patient_id"}
    assert spec.privacy.protect == "patients"


def test_the_key_is_the_one_column_that_identifies_a_row_or_that_others_refer_to(tmp_path: Path) -> None:
    (tmp_path / "zones.csv").write_text(ZONES)
    microdata = load(decided(drafted(TWO_FILES).text), tmp_path).spec.microdata
    assert microdata["persons"].key == ("no",)
    assert microdata["households"].key == ("hh",)


def test_a_key_that_is_unclear_is_left_to_a_person() -> None:
    columns = [{"name": "a", "kind": "id", "unique": True}, {"name": "b", "kind": "id", "unique": True}]
    assert "key: DECIDE" in drafted({"columns": [*columns, {"name": "x", "kind": "integer", "bounds": [0, 9]}]}).text
    assert "key: DECIDE" in drafted({"columns": [{"name": "a", "kind": "id"}]}).text
    assert "No column identifies a row" in drafted({"columns": [{"name": "x", "kind": "integer"}]}).text


def test_what_cannot_be_declared_stands_in_a_comment_that_says_why() -> None:
    text = drafted(PERSONS_ONLY).text
    assert re.search(r"# weight .*weights are not offered", text)
    assert re.search(r"# diagnosis needs a code list: write visits_diagnosis\.csv \(code,label\)", text)
    assert '# diagnosis: {codes: visits_diagnosis.csv, not_applicable: "-"}' in text
    assert "# remarks is left out: columns of kind 'text' are not tabulated." in text
    assert "# rooms: kitchens count too\n" in drafted(TWO_FILES).text


def test_money_needs_a_clip_and_a_step_that_its_bounds_are_multiples_of() -> None:
    text = drafted(PERSONS_ONLY).text
    assert re.search(r"step: DECIDE +# .*; for example 0\.1$", text, re.MULTILINE)
    assert re.search(r"clip: DECIDE +# .*; the dictionary suggests 0\.\.2500$", text, re.MULTILINE)
    bare = drafted({"columns": [{"name": "fee", "kind": "money"}]}).text
    assert "number: DECIDE" in bare
    assert re.search(r"clip: DECIDE +# bounds one record's influence on sums and means$", bare, re.MULTILINE)


def test_long_lists_go_to_files_beside_the_spec(tmp_path: Path) -> None:
    codes = {f"{number:03d}": f"Place {number}, far" for number in range(50)}
    columns = [
        {"name": "job", "kind": "categorical", "codes": codes},
        {"name": "town", "kind": "geography", "levels": ["land", "town"], "codes": codes},
    ]
    draft = drafted({"columns": columns})
    assert set(draft.files) == {"records_job.csv", "town_areas.csv"}
    for name, text in draft.files.items():
        (tmp_path / name).write_text(text)
    loaded = load(decided(draft.text), tmp_path)
    job = loaded.domain.attribute("records", "job")
    assert job is not None
    assert [(found.code, found.label) for found in job.coded] == list(codes.items())
    assert len(loaded.domain.hierarchies["town_areas"].areas["town"]) == 50


def test_groups_inside_groups_are_left_out_and_named(tmp_path: Path) -> None:
    number = {"name": "n", "kind": "integer", "bounds": [0, 9]}
    tables = {
        "persons": [{"name": "hh", "kind": "id", "refers_to": "households.hh"}, number],
        "households": [{"name": "hh", "kind": "id"}, {"name": "home", "kind": "id", "refers_to": "dwellings.home"}],
        "dwellings": [{"name": "home", "kind": "id", "unique": True}, number],
    }
    draft = drafted({"tables": tables})
    spec = load(decided(draft.text), tmp_path).spec
    assert spec.microdata["households"].group is None
    assert "# Left out: home (dwellings)." in draft.text
    assert set(spec.tables) == {"number_of_persons", "number_of_households"}


def test_a_second_area_column_of_the_same_list_is_left_out() -> None:
    work = {"name": "work_zone", "kind": "geography", "refers_to": "zones.zone"}
    tables = {**TWO_FILES["tables"], "persons": [*TWO_FILES["tables"]["persons"], work]}
    assert "# work_zone is left out" in drafted({"tables": tables}).text


def test_the_release_gets_a_name_that_can_name_a_folder() -> None:
    for name, slug in (("Clinic Visits 2025!", "clinic-visits-2025"), ("__", "release"), ("ok_1", "ok_1")):
        text = spec_from_dictionary(json.dumps(PERSONS_ONLY), name=name).text
        assert f"  name: {slug}\n" in text


def test_the_same_dictionary_always_yields_the_same_text() -> None:
    assert drafted(TWO_FILES) == drafted(TWO_FILES)


def test_a_document_that_cannot_be_read_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "latin.json").write_bytes(b'{"a": "\xe9"}')
    for name, words in (("absent.json", "no such file"), (".", "folder"), ("latin.json", "not UTF-8")):
        with pytest.raises(StarterError, match=words):
            read_document(tmp_path / name)
