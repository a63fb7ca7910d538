"""Data dictionaries: what is understood, and the one sentence each mistake gets."""

import json
from typing import Any

import pytest

from release_specs.starter import StarterError
from release_specs.starter.description import DescribedColumn
from release_specs.starter.dictionary import as_name, plural, read_dictionary


def column(**facts: Any) -> DescribedColumn:
    """One column, as it is understood."""
    described = read_dictionary(json.dumps({"columns": [{"name": "c", **facts}]}))
    return described.files[0].columns[0]


def refusal(dictionary: Any) -> str:
    """The sentence a dictionary is refused with."""
    with pytest.raises(StarterError) as caught:
        read_dictionary(dictionary if isinstance(dictionary, str) else json.dumps(dictionary))
    return str(caught.value)


@pytest.mark.parametrize(
    ("dictionary", "words"),
    [
        ("", "not JSON: Expecting value in line 1, column 1"),
        ("{'columns': []}", "not JSON"),
        ("name: x", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"columns": [{"name": "a", "name": "b"}]}', "'name' twice in one object"),
        ('{"columns": [{"name": "\\ud800"}]}', "half of a character"),
        ([], "a list with nothing in it; expected"),
        ("3", "is '3'; expected"),
        ("null", "is nothing; expected"),
        ({}, "neither 'columns' nor 'tables'"),
        ({"fields": []}, "neither 'columns' nor 'tables'"),
        ({"columns": [], "tables": {}}, "both 'columns' and 'tables'"),
        ({"columns": []}, "'columns' of the dictionary is a list with nothing in it; expected a list of columns"),
        ({"columns": {"a": {}}}, "expected a list of columns"),
        ({"tables": []}, "'tables' of the dictionary is a list"),
        ({"tables": {}}, "an object with nothing in it"),
        ({"tables": {"persons": {}}}, "'persons' of the dictionary is an object"),
        ({"tables": {"persons": {"fields": [1]}}}, "'persons' of the dictionary is an object"),
        ({"tables": {"persons": "x"}}, "'persons' of the dictionary is 'x'"),
        ({"columns": ["age"]}, "column 1 of the dictionary has no name"),
        ({"columns": [{"kind": "integer"}]}, "column 1 of the dictionary has no name"),
        ({"columns": [{"name": "a"}, {"name": "a"}]}, "the dictionary has column 'a' twice"),
        ({"columns": [{"name": "a", "bounds": [1]}]}, "column 'a' of the dictionary has bounds"),
    ],
)
def test_a_dictionary_of_another_shape_is_refused_in_one_sentence(dictionary: Any, words: str) -> None:
    assert words in refusal(dictionary)
    assert "\n" not in refusal(dictionary)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"bounds": [9, 1]}, "bounds 9 and 1; expected two numbers, low first"),
        ({"bounds": [0]}, "expected two numbers"),
        ({"bounds": "0-9"}, "bounds that are '0-9'"),
        ({"bounds": ["a", "b"]}, "bounds a and b"),
        ({"bounds": [True, False]}, "expected two numbers"),
        ({"suggested_clip": [1, 0]}, "suggested_clip 1 and 0"),
        ({"codes": "1=a"}, "expected {code: label} or a list of codes"),
        ({"codes": 3}, "expected {code: label} or a list of codes"),
        ({"codes": [["1", "a"]]}, "expected {code: label} or a list of codes"),
        ({"codes": ["1", "1"]}, "lists a code twice"),
        ({"codes": {"x" * 101: "long"}}, "more than 100 characters"),
        ({"not_applicable": {"code": 1}}, "'not_applicable' that is an object"),
        ({"not_applicable": True}, "'not_applicable' that is true or false"),
        ({"levels": "state"}, "levels that are 'state'"),
        ({"levels": ["a", "a"]}, "lists a level twice"),
        ({"refers_to": "zones"}, "expected table.column"),
    ],
)
def test_a_mistaken_column_is_named_with_its_file(facts: dict[str, Any], words: str) -> None:
    sentence = refusal({"tables": {"persons": [{"name": "c", "kind": "categorical", **facts}]}})
    assert sentence.startswith("column 'c' of 'persons' in the dictionary ")
    assert words in sentence


def test_a_dictionary_of_areas_alone_has_nothing_to_tabulate() -> None:
    zone = {"name": "zone", "kind": "geography", "refers_to": "b.zone"}
    back = {"name": "zone", "kind": "geography", "refers_to": "a.zone"}
    assert "lists of areas only" in refusal({"tables": {"a": [zone], "b": [back]}})


def test_numbers_are_kept_as_they_are_written() -> None:
    text = '{"columns": [{"name": "c", "kind": "number", "bounds": [-0.10, 1e3], "codes": [1.0, 01]}]}'
    assert "not JSON" in refusal(text)
    found = read_dictionary(text.replace("01]", "7]")).files[0].columns[0]
    assert found.valid == "-0.1..1000"
    assert [code for code, _ in found.codes] == ["1.0", "7"]


def test_a_bound_that_is_open_is_not_known() -> None:
    assert column(kind="integer", bounds=[0, None]).valid == ""


@pytest.mark.parametrize(
    ("written", "values", "whom"),
    [
        (-9, ("-9",), ""),
        ("N", ("N",), ""),
        ("N / null: group quarters", ("N",), "group quarters"),
        ("N / null", ("N",), ""),
        (["-8", "-9"], ("-8", "-9"), ""),
        ("null: under 15", (), "under 15"),
        ("N/A", ("N/A",), ""),
        (None, (), ""),
    ],
)
def test_not_applicable_is_read_in_all_its_forms(written: Any, values: tuple[str, ...], whom: str) -> None:
    found = column(kind="integer", not_applicable=written)
    assert (found.not_applicable, found.not_applicable_to) == (values, whom)


@pytest.mark.parametrize(
    ("meaning", "whom"),
    [
        ("N/A (less than 3 years old)", "less than 3 years old"),
        ("N/A (less than 15 years old", "less than 15 years old"),
        ("not applicable", ""),
        ("Not applicable: vacant", "vacant"),
        ("NIU", ""),
    ],
)
def test_a_code_that_means_not_applicable_is_known_by_its_label(meaning: str, whom: str) -> None:
    found = column(kind="categorical", codes={"1": "Yes", "0": meaning})
    assert found.codes == (("1", "Yes"),)
    assert (found.not_applicable, found.not_applicable_to) == (("0",), whom)


def test_a_label_that_only_begins_alike_stays_a_code() -> None:
    found = column(kind="categorical", codes={"1": "Niuean", "2": "Nauru", "3": "Not applicably"})
    assert len(found.codes) == 3


def test_a_code_that_is_declared_not_applicable_is_no_code() -> None:
    found = column(kind="categorical", codes={"1": "a", "9": "refused"}, not_applicable=9)
    assert found.codes == (("1", "a"),)
    assert found.not_applicable == ("9",)


def test_a_weight_is_known_by_its_label() -> None:
    assert column(kind="integer", label="Person weight").kind == "weight"
    assert column(kind="integer", label="Weighted").kind == "integer"
    assert column(kind="categorical", label="Weight class", codes=["1"]).kind == "categorical"


def test_a_label_that_is_missing_is_the_code() -> None:
    assert column(codes={"1": None, "2": " "}).codes == (("1", "1"), ("2", "2"))


def test_a_kind_that_is_not_known_is_kept_for_the_comment() -> None:
    assert column(kind="Text").kind == "other: text"
    assert column().kind is None


def test_a_table_may_hold_its_columns_one_level_deeper() -> None:
    described = read_dictionary(json.dumps({"tables": {"my persons": {"columns": [{"name": "a", "kind": "id"}]}}}))
    assert described.files[0].name == "my_persons"


def test_the_protected_unit_is_suggested_only_where_it_names_an_entity() -> None:
    columns = [{"name": "a", "kind": "id"}]
    for unit, protect, cap in (("person only", "persons", ""), ("dwelling of up to 9", "", "9"), ("", "", "")):
        data = {"unit_of_record": "person", "protected_unit": unit, "columns": columns}
        described = read_dictionary(json.dumps(data))
        assert (described.protect, described.cap) == (protect, cap)


def test_entities_are_named_by_plural_words_of_the_language() -> None:
    for word, entity in (("person", "persons"), ("family", "families"), ("day", "days"), ("births", "births")):
        assert plural(word) == entity
    assert plural("group quarter") == "group_quarters"
    assert as_name("2025 visits") == "n_2025_visits"
    assert as_name("?") == "n"
