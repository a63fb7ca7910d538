"""The text of a drafted spec: every text reads back as itself, and the layout is what a person would write."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_specs.reading.tree import parse_tree
from release_specs.starter import spec_from_dictionary
from release_specs.starter.outline import Block, Entry, Remark, Undecided, inline, quoted, written

AWKWARD = (
    *("", " ", "-", "--", "---", "...", "?", ":", "#", "a: b", "a #b", "a:", " a", "a ", "a\n", "a\tb", "'", '"', "''"),
    *("it's", 'say "x"', "\\", "\\n", "a\\", "\"'\\", "{", "}", "[a]", "a, b", "&a", "*a", "!a", "!!str x", "|", ">"),
    *("%a", "@a", "`a`", "yes", "NO", "null", "~", "01", "1e-10", "9:30", "0..17", "..17", "-9", "- 9", "+1", "=", "<"),
    *("\x00", "\x07", "\x85", "\u00a0", "\u2028", "\ufeff", "\u200b", "\U0001f600", "é", "日本", "\u0301a", "\r\n"),
)
texts = (
    st.text(max_size=60) | st.sampled_from(AWKWARD) | st.text(alphabet=" :#,[]{}&*!|>'\"%@`-?\\\n\tab1", max_size=12)
)
keys = texts.filter(lambda text: text != "<<")  # the loader takes a quoted << for a merge key, too


def as_data(outline: Block) -> Any:
    return parse_tree(written(outline), "outline.yaml").data


@given(key=keys, value=texts, fit=st.booleans())
def test_any_text_reads_back_as_itself_as_key_and_value(key: str, value: str, fit: bool) -> None:
    outline = Block((Entry("top", Block((Entry(key, value),), fit=fit)),))
    assert as_data(outline) == {"top": {key: value}}


@pytest.mark.parametrize("text", AWKWARD)
def test_awkward_text_reads_back_as_itself_in_every_place(text: str) -> None:
    inner = Block((Entry(text, text),), fit=True)
    outline = Block((Entry("list", (text, text)), Entry("flow", inner), Entry("block", Block((Entry(text, inner),)))))
    assert as_data(outline) == {"list": [text, text], "flow": {text: text}, "block": {text: {text: text}}}


@given(values=st.lists(texts, min_size=1, max_size=5))
def test_any_list_reads_back_as_itself(values: list[str]) -> None:
    assert as_data(Block((Entry("list", tuple(values)),))) == {"list": values}


@given(remark=texts, beside=texts, what=texts, note=texts)
def test_a_comment_never_becomes_part_of_the_spec(remark: str, beside: str, what: str, note: str) -> None:
    inner = Block((Remark(remark, (note,)), Entry("a", Undecided(what, note, remark), beside=beside, above=note)))
    assert as_data(Block((Entry("top", inner, above=remark), Entry("b", "c")))) == {"top": {"a": "DECIDE"}, "b": "c"}


@given(codes=st.dictionaries(keys.filter(lambda code: len(code) < 90), texts, min_size=1, max_size=6), label=texts)
def test_any_codes_and_labels_of_a_dictionary_reach_the_draft(codes: dict[str, str], label: str) -> None:
    column = {"name": "c", "kind": "categorical", "label": label, "codes": codes, "note": label}
    text = spec_from_dictionary(json.dumps({"columns": [column]}), name="any").text
    data: Any = parse_tree(text, "any.yaml").data
    drafted = data["microdata"]["records"]["columns"]["c"]
    found = drafted.get("codes", [])
    none = drafted.get("not_applicable", [])
    shown = found.items() if isinstance(found, dict) else zip(found, found, strict=True) if found != "DECIDE" else ()
    expected = {code: meaning.strip() or code for code, meaning in codes.items()}
    assert dict(shown) | {code: expected[code] for code in ([none] if isinstance(none, str) else none)} == expected
    assert drafted.get("label", "") in (label.strip(), "")


def test_a_simple_text_is_not_quoted() -> None:
    for text in ("Male", "18 to 64", "-9", "0..99", "2025-01-01", "it's", "Grade 1 (first)", "1/2", "10% bins"):
        assert quoted(text) == text


def test_quotes_are_the_plainest_that_will_do() -> None:
    assert quoted("a, b") == '"a, b"'
    assert quoted('a "b": c') == "'a \"b\": c'"
    assert quoted("a\nb") == '"a\\x0ab"'
    assert quoted("") == '""'


def test_a_choice_says_what_to_decide_and_who_suggests_what() -> None:
    assert Undecided("the cap").comment == "the cap"
    assert Undecided("the cap", "8").comment == "the cap; for example 8"
    assert Undecided("the cap", "8", "the dictionary").comment == "the cap; the dictionary suggests 8"


def test_values_and_comments_are_aligned() -> None:
    block = Block(
        (
            Entry("a", Block((Entry("codes", ("1", "2")),), fit=True)),
            Entry("longer", Block((Entry("codes", ("1",)),), fit=True)),
        ),
        aligned=True,
    )
    choices = Block((Entry("x", Undecided("one")), Entry("neighbours", Undecided("two"))))
    assert written(Block((Entry("columns", block), Entry("privacy", choices, above="Who?")))) == (
        "columns:\n"
        "  a:      {codes: [1, 2]}\n"
        "  longer: {codes: [1]}\n"
        "\n"
        "# Who?\n"
        "privacy:\n"
        "  x: DECIDE            # one\n"
        "  neighbours: DECIDE   # two\n"
    )


def test_a_block_stands_in_one_line_where_it_fits_and_needs_at_most_one_comment() -> None:
    codes = Block(tuple(Entry(str(code), f"label {code}") for code in range(3)), fit=True, aligned=True)
    one = Block((Entry("codes", codes), Entry("clip", Undecided("how far"))), fit=True)
    two = Block((Entry("step", Undecided("how fine")), Entry("clip", Undecided("how far"))), fit=True)
    assert written(Block((Entry("c", one),))) == (
        "c: {codes: {0: label 0, 1: label 1, 2: label 2}, clip: DECIDE}   # how far\n"
    )
    assert written(Block((Entry("c", two),))) == "c:\n  step: DECIDE   # how fine\n  clip: DECIDE   # how far\n"


def test_a_long_code_list_takes_a_line_for_each_code() -> None:
    codes = Block(
        tuple(Entry(str(code), f"a really rather long label {code}") for code in range(8, 12)), fit=True, aligned=True
    )
    text = written(Block((Entry("c", Block((Entry("codes", codes),), fit=True)),)))
    assert text.startswith("c:\n  codes:\n    8:  a really rather long label 8\n")
    assert "    11: a really rather long label 11\n" in text


def test_long_comments_are_wrapped_and_kept_out_of_the_way() -> None:
    text = written(Block((Remark("word " * 60), Entry("a", "b"))))
    assert all(len(line) <= 116 for line in text.splitlines())
    assert re.fullmatch(r"(# .*\n){3}a: b\n", text)


def test_an_empty_list_and_an_empty_block_are_written_between_brackets() -> None:
    assert inline(()) == "[]"
    assert inline(Block(())) == "{}"
