"""A CSV header and answers: only the first line is read, and what is not answered is left to a person."""

import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from release_specs.diagnostics import SpecError
from release_specs.load import load_text
from release_specs.starter import (
    StarterError,
    ask_about,
    read_answers,
    read_header,
    spec_from_header,
)

HEADER = ("id", "household", "sex", "age", "income", "born", "town", "remarks")
ANSWERS: dict[str, Any] = {
    "id": {"type": "id"},
    "household": {"type": "id", "group": "household"},
    "sex": {"type": "codes", "codes": {"1": "Female", "2": "Male"}, "label": "Sex", "not_applicable": "9"},
    "age": {"type": "integer", "range": "0..120"},
    "income": {"type": "number", "range": "0..1000000", "step": "100", "clip": "0..200000"},
    "born": {"type": "date", "range": "1900-01-01..2025-12-31"},
    "town": {"type": "area", "levels": ["land", "town"]},
    "remarks": {"type": "skip"},
}


def header_of(data: bytes, folder: Path, delimiter: str | None = None) -> tuple[tuple[str, ...], str]:
    (folder / "persons.csv").write_bytes(data)
    return read_header(folder / "persons.csv", delimiter)


def refusal(data: bytes, folder: Path, delimiter: str | None = None) -> str:
    with pytest.raises(StarterError) as caught:
        header_of(data, folder, delimiter)
    return str(caught.value)


def drafted(answers: dict[str, Any], delimiter: str = ",") -> str:
    said = read_answers(json.dumps(answers), HEADER)
    return spec_from_header("persons", said, delimiter=delimiter, name="trial").text


def codes_of(text: str, folder: Path) -> set[str]:
    with pytest.raises(SpecError) as caught:
        load_text(text, file="trial.yaml", folder=folder)
    return {found.code for found in caught.value.diagnostics if found.severity == "error"}


@pytest.mark.parametrize(
    ("line", "names", "delimiter"),
    [
        (b"a,b,c\n1,2,3\n", ("a", "b", "c"), ","),
        (b"a;b\r\n1;2", ("a", "b"), ";"),
        (b"a\tb\n", ("a", "b"), "\t"),
        (b"a|b|c", ("a", "b", "c"), "|"),
        (b"\xef\xbb\xbfa,b\n", ("a", "b"), ","),
        (b'"x, y";"z"\n', ("x, y", "z"), ";"),
        (b"a,b\r1,2\r", ("a", "b"), ","),
        (b"only\n", ("only",), ","),
        (b"Year of birth (4 digits)\n", ("Year of birth (4 digits)",), ","),
        (b"Q1: sex,Q2: age\n", ("Q1: sex", "Q2: age"), ","),
        ("größe,straße\n".encode(), ("größe", "straße"), ","),
        (b" a , b \n", ("a", "b"), ","),
    ],
)
def test_the_first_line_gives_names_and_delimiter(
    line: bytes, names: tuple[str, ...], delimiter: str, tmp_path: Path
) -> None:
    assert header_of(line, tmp_path) == (names, delimiter)


def test_a_given_delimiter_is_not_guessed(tmp_path: Path) -> None:
    assert header_of(b"a,b;c,d;e\n", tmp_path, ";") == (("a,b", "c,d", "e"), ";")


def test_nothing_after_the_first_line_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "persons.csv"
    path.write_bytes(b"a,b\nsecret,secret\n")
    seen = bytearray()

    class Watched(io.FileIO):
        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            seen.extend(data)
            return data

    monkeypatch.setattr(Path, "open", lambda path, *_, **__: Watched(path, "rb"))
    assert read_header(path)[0] == ("a", "b")
    assert bytes(seen) == b"a,b\n"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the first line is empty"),
        (b"\n1,2\n", "the first line is empty"),
        (b"  \n", "the first line is empty"),
        (b"a,b,a\n", "columns 1 and 3 have the same name"),
        (b"a,,c\n", "column 2 has no name"),
        (b"a,b,\n", "column 3 has no name"),
        (b"17,female\n", "seems to be a record"),
        (b"name,2025-01-01\n", "seems to be a record"),
        (b"name,-3.5\n", "seems to be a record"),
        (b'a,"b\n', "a quote in the first line is never closed"),
        (b"a,b;c\n", "comma and semicolon occur equally often"),
        (b"PAR1\x15\x04", "not a text file"),
        (b"PK\x03\x04", "not a text file"),
        (b"a,b\x00\n", "not a text file"),
        (b"\xff\xfea\x00", "UTF-16"),
        (b"gr\xf6sse,b\n", "not UTF-8"),
        (b"a" * 70_000, "longer than 64 KB"),
        ("a,b\u200b\n".encode(), "column 2 has an invisible character"),
        (b"margrave: 1\n", "looks like YAML, JSON or HTML; expected a CSV file"),
        (b"release: {name: a, title: b}\n", "looks like YAML, JSON or HTML"),
        (b'{"a": 1, "b": 2}\n', "looks like YAML, JSON or HTML"),
        (b"<table>\n", "looks like YAML, JSON or HTML"),
        (b"sex: {codes}\n", "has no comma, semicolon, tab or bar and is not a name"),
        (b"# Persons of 2025\n", "has no comma, semicolon, tab or bar and is not a name"),
        (b"A register of all the persons of the town and county.\n", "is not a name"),
    ],
)
def test_a_line_that_is_no_header_is_refused_in_one_sentence(data: bytes, words: str, tmp_path: Path) -> None:
    assert words in refusal(data, tmp_path)


def test_no_refusal_repeats_what_may_be_a_record(tmp_path: Path) -> None:
    for line in (
        b"Mayer,Mayer\n",
        b"Mayer,1980\n",
        b'Mayer,"x\n',
        b"Mayer\x00\n",
        b"Mayer,\xf6\n",
        b"Mayer,\n",
        b"Mayer!\n",
    ):
        assert "Mayer" not in refusal(line, tmp_path)


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, words in (
        (tmp_path, "is a folder"),
        (tmp_path / "no.csv", "no such file"),
        (tmp_path / "pipe", "regular"),
    ):
        with pytest.raises(StarterError, match=words):
            read_header(path)
    with pytest.raises(StarterError, match=r"cannot be used|no such file"):
        read_header(Path("a\x00b"))
    assert "is not a delimiter" in refusal(b"a,b\n", tmp_path, "::")


def test_answers_from_a_file_make_a_spec(tmp_path: Path) -> None:
    text = drafted(ANSWERS, delimiter=";")
    assert codes_of(text, tmp_path) == {"undecided"}
    assert 'read: {delimiter: ";"}' in text
    assert "sex:    {label: Sex, codes: {1: Female, 2: Male}, not_applicable: 9}" in text
    assert "income: {number: 0..1000000, step: 100, clip: 0..200000}" in text
    assert "born:   {date: 1900-01-01..2025-12-31}" in text
    assert "in: {households: household}" in text
    assert "levels: [land, town]" in text
    assert "remarks" not in text


def test_a_spec_from_answers_loads_once_the_rest_is_decided(tmp_path: Path) -> None:
    (tmp_path / "town_areas.csv").write_text("town\nA\nB\n")
    text = re.sub(r"\bDECIDE\b(.*?# .*for example (.+))$", r"\2\1", drafted(ANSWERS), flags=re.MULTILINE)
    spec = load_text(text, file="trial.yaml", folder=tmp_path).spec
    assert spec.microdata["households"].built_from == "persons"
    assert spec.microdata["persons"].key == ("id",)
    assert spec.privacy.protect == "households"


def test_a_column_without_an_answer_is_left_to_a_person(tmp_path: Path) -> None:
    text = drafted({})
    assert len(re.findall(r"\{codes: DECIDE\}", text)) == len(HEADER)
    assert codes_of(text, tmp_path) == {"undecided"}


def test_half_an_answer_is_asked_for_where_it_is_missing(tmp_path: Path) -> None:
    text = drafted({"sex": {"type": "codes"}, "age": {"type": "integer"}, "town": {"type": "area"}})
    assert "sex:       {codes: DECIDE}" in text
    assert "age:       {integer: DECIDE}" in text
    assert "levels: [DECIDE, town]" in text
    assert "areas: DECIDE" in text
    assert codes_of(text, tmp_path) == {"undecided"}


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ("[", "the answer file is not JSON"),
        ("[]", "not an object"),
        ('{"agee": {}}', "not in the header; did you mean 'age'?"),
        ('{"age": "integer"}', "the answer for 'age' is not an object"),
        ('{"age": {"typ": "integer"}}', "has 'typ'; did you mean 'type'?"),
        ('{"age": {"type": "interger"}}', "the answer for 'age': 'interger' is not a type; did you mean 'integer'?"),
        ('{"age": {"type": "integer", "range": "0-9"}}', "write 0..9"),
        ('{"age": {"type": "number", "step": "0"}}', "not above zero"),
        ('{"age": {"type": "integer", "range": [0, 9]}}', "'range' is not a text"),
        ('{"sex": {"type": "codes", "codes": true}}', "neither {code: label}"),
        ('{"sex": {"type": "codes", "codes": ["1", "1"]}}', "each once"),
        ('{"sex": {"type": "codes", "codes": "1=a, 1=b"}}', "listed twice"),
        ('{"town": {"type": "area", "levels": {"a": "b"}}}', "neither a text nor a list"),
    ],
)
def test_a_mistaken_answer_is_refused_in_one_sentence(answers: str, words: str) -> None:
    with pytest.raises(StarterError) as caught:
        read_answers(answers, HEADER)
    assert words in str(caught.value)


def test_codes_may_be_typed_listed_or_named(tmp_path: Path) -> None:
    for codes, shown in (
        ("1=Yes, 2=No", "{1: Yes, 2: No}"),
        ("A, B", "[A, B]"),
        ("1=Yes, always; 2=No", '{1: "Yes, always", 2: No}'),
        ("sex.csv", "sex.csv"),
        (["A", "B"], "[A, B]"),
    ):
        assert f"{{codes: {shown}}}" in drafted({"sex": {"type": "codes", "codes": codes}})


def test_a_person_is_asked_about_each_column_in_turn() -> None:
    said = {
        "id: type": "id",
        "household: type": "id",
        "household: identifies": "households",
        "sex: type": "codes",
        "sex: codes": "1=Female, 2=Male",
        "sex: code that": "9",
        "age: type": "integer",
        "age: valid": "0..120",
        "income: type": "number",
        "income: rounded": "100",
        "born: type": "date",
        "town: type": "area",
        "town: levels": "land, region, town",
        "remarks: type": "skip",
    }
    asked: list[str] = []

    def ask(question: str, default: str) -> str:
        asked.append(question)
        return next((answer for start, answer in said.items() if question.startswith(start)), default)

    text = spec_from_header("persons", ask_about(HEADER, ask), delimiter=",", name="trial").text
    order = [question.partition(":")[0] for question in asked]
    assert order == sorted(order, key=HEADER.index)
    assert set(order) == set(HEADER)
    assert "key: id" in text
    assert re.search(r"sex: +\{codes: \{1: Female, 2: Male\}, not_applicable: 9\}", text)
    assert re.search(r"age: +\{integer: 0\.\.120\}", text)
    assert "step: 100" in text
    assert "levels: [land, region, town]" in text
    assert re.search(r"born: +\{date: DECIDE\}", text)


def test_identifiers_are_guessed_from_their_names_and_may_be_corrected() -> None:
    defaults: dict[str, str] = {}

    def ask(question: str, default: str) -> str:
        if ": type" in question:
            defaults[question.partition(":")[0]] = default
        return ""

    identifiers = ("person_id", "id", "id_house", "personID", "personId", "Person ID", "person id", "ID", "PERSON-ID")
    others = ("paid", "idea", "PAID", "Idaho", "arid zone")
    ask_about((*identifiers, *others), ask)
    assert [name for name, default in defaults.items() if default == "id"] == [*identifiers]
    assert {defaults[name] for name in others} == {"?"}


def test_a_question_mark_leaves_a_choice_open(tmp_path: Path) -> None:
    said = {"Person ID: type": "id", "house id: identifies": "?", "sex: type": "codes", "sex: code that": "?"}

    def ask(question: str, default: str) -> str:
        return next((answer for start, answer in said.items() if question.startswith(start)), default)

    answers = ask_about(("Person ID", "house id", "sex", "age"), ask)
    text = spec_from_header("persons", answers, delimiter=",", name="trial").text
    assert "key: Person ID" in text
    assert re.search(r"in: DECIDE +# .*; or delete this line; for example \{households: house id\}", text)
    assert re.search(r"not_applicable: DECIDE +# ", text)
    assert re.search(r"age: +\{codes: DECIDE\}", text)
    assert codes_of(text, tmp_path) == {"undecided"}
    said["Person ID: identifies"] = "?"
    answers = ask_about(("Person ID", "house id"), ask)
    text = spec_from_header("persons", answers, delimiter=",", name="trial").text
    assert re.search(r"key: DECIDE +# .*; there are Person ID, house id;", text)


def test_a_mistyped_answer_is_asked_again_and_then_given_up() -> None:
    asked: list[str] = []

    def learn(question: str, default: str) -> str:
        asked.append(question)
        return ("codez", "skip")[len(asked) - 1]

    assert ask_about(("sex",), learn)["sex"].kind == "skip"
    assert asked[1] == f"'codez' is not a type; did you mean 'codes'?\n{asked[0]}"
    with pytest.raises(StarterError, match="Answered 3 times"):
        ask_about(("sex",), lambda question, default: "codez")


def test_rows_do_not_lie_in_groups_of_their_own_name() -> None:
    said = read_answers('{"household": {"type": "id", "group": "persons"}}', HEADER)
    with pytest.raises(StarterError, match="groups of the same name"):
        spec_from_header("persons", said, delimiter=",", name="trial")
