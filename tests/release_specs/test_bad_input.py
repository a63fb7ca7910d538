"""Whatever is given as a spec, the answer is a sentence, and it comes soon."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from flows.cli import main
from release_specs.diagnostics import SpecError
from release_specs.load import load_spec
from release_specs.reading.tree import DEEPEST, MOST_VALUES

LAUGHS = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))

BAD = {
    "malformed": ("release: {name: [", "bad-yaml"),
    "a tab": ("release:\n\tname: x\n", "tab-indent"),
    "anchors that explode": (LAUGHS, "no-anchors"),
    "a merge key": ("a: {<<: {b: c}}\n", "no-anchors"),
    "python objects": ("a: !!python/object/apply:os.system [ls]\n", "no-tags"),
    "nested 200 deep in brackets": ("a: " + "[" * 200 + "]" * 200, "too-deep"),
    "nested 200 deep in lines": ("".join(" " * depth + "a:\n" for depth in range(200)), "too-deep"),
    "nested 100,000 deep and never closed": ("[" * 100_000, "too-deep"),
    "too many values": ("a: [" + "1," * (MOST_VALUES + 10) + "1]", "too-many-values"),
    "nothing at all": ("", "not-a-spec"),
    "only a comment": ("# a spec\n", "not-a-spec"),
    "only a word": ("spec\n", "not-a-spec"),
    "a duplicate key": ("margrave: 1\nmargrave: 1\n", "duplicate-key"),
    "a version of the future": ("margrave: 99\n", "unknown-version"),
    "a control character": ("margrave: 1\nrelease: \x07\n", "bad-character"),
    "a second document": ("margrave: 1\n---\nmargrave: 1\n", "several-documents"),
    "a very long line": ("a" * 5000 + ": b: c", "bad-yaml"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_text_gets_one_clear_diagnostic(name: str, tmp_path: Path) -> None:
    text, code = BAD[name]
    path = tmp_path / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    assert caught.value.diagnostics[0].code == code
    assert caught.value.diagnostics[0].file == str(path)


@pytest.mark.parametrize(
    ("data", "code", "place"),
    [
        ("margrave: 1\nrelease: {title: café}\n".encode("latin-1"), "bad-encoding", (2, 21)),
        ("margrave: 1\n".encode("utf-16"), "bad-encoding", (1, 1)),
        ("margrave: 1\n".encode("utf-32-le"), "bad-encoding", (1, 1)),
        (b"\x00\x01\x02", "bad-encoding", (1, 1)),
        (b"margrave: 1\n\x00", "bad-character", (2, 1)),
    ],
)
def test_a_wrong_encoding_is_named_with_its_place(
    data: bytes, code: str, place: tuple[int, int], tmp_path: Path
) -> None:
    path = tmp_path / "spec.yaml"
    path.write_bytes(data)
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    found = caught.value.diagnostics[0]
    assert (found.code, (found.line, found.column)) == (code, place)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_bytes(b"\xef\xbb\xbfmargrave: 99\n")
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    assert caught.value.diagnostics[0].code == "unknown-version"


def test_a_huge_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    assert caught.value.diagnostics[0].code == "file-too-large"
    assert "100,000,000" in caught.value.diagnostics[0].message


def test_folders_pipes_devices_and_missing_files_are_told(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    unreadable = [(path, "file-unreadable") for path in (tmp_path, pipe, Path("/dev/zero"), Path("a\x00b"))]
    for path, code in (*unreadable, (tmp_path / "none.yaml", "file-missing")):
        with pytest.raises(SpecError) as caught:
            load_spec(path)
        assert caught.value.diagnostics[0].code == code


def test_text_that_yaml_would_twist_means_what_is_written(tmp_path: Path) -> None:
    """`NO` stays NO, `01` stays 01, `1e3` and `9:30` stay text, as codes."""
    text = (Path(__file__).parent / "base" / "spec.yaml").read_text(encoding="utf-8")
    for name in ("areas.csv", "roles.csv", "holidays.csv", "labels_es.csv"):
        (tmp_path / name).write_bytes((Path(__file__).parent / "base" / name).read_bytes())
    path = tmp_path / "spec.yaml"
    path.write_text(
        text.replace("codes: [en, es, fr]", "codes: [NO, on, 01, 1e3, 9:30, ~, null, 0x1F]").replace(
            "  languages: {es: labels_es.csv}\n", ""
        ),
        encoding="utf-8",
    )
    attribute = load_spec(path).domain.attribute("people", "tongue")
    assert attribute is not None
    assert [category.code for category in attribute.categories] == [
        "NO",
        "on",
        "01",
        "1e3",
        "9:30",
        "~",
        "null",
        "0x1F",
    ]


def test_many_specs_are_checked_in_one_go(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = []
    for name, (text, _) in BAD.items():
        path = tmp_path / f"{name.replace(' ', '_').replace(',', '')}.yaml"
        path.write_text(text, encoding="utf-8")
        paths.append(str(path))
    assert main(["check", "--json", *paths, str(tmp_path)]) == 2
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"] is False
    assert {item["file"] for item in answer["diagnostics"]} == {*paths, str(tmp_path)}


def test_the_limits_leave_room_for_real_specs() -> None:
    assert DEEPEST >= 20
    assert MOST_VALUES >= 10_000
