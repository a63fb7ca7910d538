"""The first line of a CSV file, and what a person says about its columns, to a `Description`.

Only the first line is read, byte by byte, and never more than 64 KB of it: no record is looked at. Where the first
line is not a header it may be a record, so no message repeats what stands in it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic_core import PydanticCustomError

from release_specs.diagnostics import did_you_mean
from release_specs.language.values import UNDECIDED, read_positive, read_range, write_number
from release_specs.starter.description import DescribedColumn, DescribedFile, Description, StarterError
from release_specs.starter.dictionary import as_name, plural, read_json

LONGEST_HEADER = 65_536
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
TYPES = {
    "codes": "categorical",
    "integer": "integer",
    "number": "number",
    "date": "date",
    "area": "geography",
    "id": "id",
    "skip": "skip",
}
MOST_TRIES = 3
LATER = "?"
"""The answer that leaves a choice open."""
_IDENTIFIER = re.compile(r"(?i:(?:^|[\W_])id$|^id[\W_])|[a-z]I[Dd]$")
_OTHER_FORMS = re.compile(r"\s*(?:[{\[<]|---|(?:margrave|release|microdata)\s*:)")
_ONE_COLUMN = re.compile(r"[^\W\d](?:[\w .()/%-]{0,38}[\w)%])?")

Ask = Callable[[str, str], str]
"""Puts a question to a person, with a default; answers what was typed, or the default where nothing was."""

Answers = Mapping[str, DescribedColumn]
_NAMES = "its first line the names of the columns: person_id,sex,age"
_Answer = TypeVar("_Answer")


def read_header(path: Path, delimiter: str | None = None) -> tuple[tuple[str, ...], str]:
    """The column names of a CSV file and its delimiter, guessed where none is given. Raises `StarterError`."""
    line = _first_line(path)
    if not line.strip():
        raise StarterError(f"{path}: the first line is empty; expected the names of the columns, one line, no title")
    if delimiter is not None and delimiter not in DELIMITERS:
        raise StarterError(f"'{delimiter}' is not a delimiter Margrave knows; give a comma, semicolon, tab or bar")
    if _OTHER_FORMS.match(line):
        raise StarterError(f"{path}: the first line looks like YAML, JSON or HTML; expected a CSV file, {_NAMES}")
    delimiter = delimiter or _guess_delimiter(line, path)
    try:
        fields = next(csv.reader([line], delimiter=delimiter, strict=True))
    except csv.Error:
        raise StarterError(f"{path}: a quote in the first line is never closed; mend the header") from None
    return _accepted(tuple(field.strip() for field in fields), path), delimiter


def _first_line(path: Path) -> str:
    try:
        if path.is_dir():
            raise StarterError(f"{path} is a folder; give the CSV file inside it")
        if not path.exists():
            raise StarterError(f"{path}: there is no such file; check the spelling and the folder")
        if not path.is_file():
            raise StarterError(f"{path} is not a regular file; give a CSV file")
        data = bytearray()
        with path.open("rb", buffering=0) as file:  # unbuffered: what follows the first line is never read
            while (byte := file.read(1)) and byte not in (b"\n", b"\r"):
                data += byte
                if len(data) > LONGEST_HEADER:
                    raise StarterError(f"{path}: the first line is longer than 64 KB; a header is not, give a CSV file")
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or "the name cannot be used"
        raise StarterError(f"{path}: the file cannot be read: {reason}") from None
    return _decoded(bytes(data), path)


def _decoded(data: bytes, path: Path) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise StarterError(f"{path}: the file looks like UTF-16; save it as UTF-8")
    if re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", data) or data.startswith((b"PAR1", b"PK", b"%PDF")):
        raise StarterError(f"{path} is not a text file (Parquet, Excel or another binary form); give it as CSV")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise StarterError(f"{path}: the first line is not UTF-8 (perhaps Latin-1); save the file as UTF-8") from None


def _guess_delimiter(line: str, path: Path) -> str:
    outside = re.sub(r'"[^"]*"', "", line)
    counts = {mark: outside.count(mark) for mark in DELIMITERS}
    best = [mark for mark, count in counts.items() if count == max(counts.values())]
    if len(best) > 1 and counts[best[0]]:
        names = " and ".join(DELIMITERS[mark] for mark in best)
        raise StarterError(f"{path}: {names} occur equally often in the first line; say which is the delimiter")
    return best[0]


def _accepted(header: tuple[str, ...], path: Path) -> tuple[str, ...]:
    """The header, unless it is none: then it may be a record, and is not repeated."""
    for number, name in enumerate(header, 1):
        if not name:
            raise StarterError(f"{path}: column {number} has no name in the first line; give every column a name")
        if re.fullmatch(r"[-+]?[\d.,:/-]*\d[\d.,:/%-]*", name):
            raise StarterError(
                f"{path}: field {number} of the first line is a number or a date, so the line seems to be a record; "
                "expected the names of the columns: add a header"
            )
        if not name.isprintable():
            raise StarterError(f"{path}: column {number} has an invisible character in its name; delete it")
        if name in header[: number - 1]:
            first = header.index(name) + 1
            raise StarterError(f"{path}: columns {first} and {number} have the same name; name each column once")
    if len(header) == 1 and not _ONE_COLUMN.fullmatch(header[0]):
        marks = "comma, semicolon, tab or bar"
        raise StarterError(f"{path}: the first line has no {marks} and is not a name; expected a CSV file, {_NAMES}")
    return header


def ask_about(header: tuple[str, ...], ask: Ask) -> Answers:
    """Asks a person about each column. The answer ? leaves a choice open."""
    return {name: _ask_column(name, ask) for name in header}


def _ask_column(name: str, ask: Ask) -> DescribedColumn:
    guess = "id" if _IDENTIFIER.search(name) else LATER
    column = DescribedColumn(name)
    kind = _asked(ask, f"{name}: type ({', '.join(TYPES)}, or ? to decide later)", guess, _checked_type)
    if not kind or kind == "skip":
        return replace(column, kind=kind or None)
    if kind == "id":
        group = _asked(ask, f"{name}: identifies a row, or a group of rows, such as households", "row", str)
        return _identifier(name, "" if group == "row" else group or LATER)
    column = replace(column, kind=TYPES[kind], label=_asked(ask, f"{name}: label (blank: none)", "", str))
    if kind == "codes":
        question = f"{name}: codes (1=Male, 2=Female; or A, B; or codes.csv)"
        column = _asked(ask, question, LATER, partial(_with_codes, column))
        none = ask(f"{name}: code that means not applicable (blank: none)", "").strip()
        return replace(column, not_applicable=(UNDECIDED if none == LATER else none,) if none else ())
    if kind == "area":
        levels = _asked(ask, f"{name}: levels, the whole first (country, region, {name})", LATER, _split)
        return replace(column, levels=levels)
    example = "2025-01-01..2025-12-31" if kind == "date" else "0..99"
    column = replace(column, valid=_asked(ask, f"{name}: valid range, such as {example}", LATER, _checked_range))
    if kind == "number":
        return replace(column, step=_asked(ask, f"{name}: rounded to multiples of, such as 0.01", LATER, _checked_step))
    return column


def _asked(ask: Ask, question: str, default: str, check: Callable[[str], _Answer]) -> _Answer:
    """The answer, checked; the question is put again, below what was wrong, a few times."""
    wrong = ""
    for _ in range(MOST_TRIES):
        answer = ask(f"{wrong}{question}", default).strip()
        try:
            return check("" if answer == LATER else answer)
        except StarterError as fault:
            wrong = f"{fault}\n"
    reason = wrong.strip()
    raise StarterError(f"{reason}. Answered {MOST_TRIES} times without success; start again, or answer {LATER}")


def _identifier(name: str, group: str) -> DescribedColumn:
    if group == LATER:
        return DescribedColumn(name, kind="id", group_open=True)
    if not group:
        return DescribedColumn(name, kind="id", unique=True)
    return DescribedColumn(name, kind="id", refers_to=(plural(group), name))


def _checked_type(text: str) -> str:
    if text and text not in TYPES:
        raise StarterError(f"'{text}' is not a type; {did_you_mean(text, TYPES)}")
    return text


def _checked_range(text: str) -> str:
    try:
        return str(read_range(text)) if text else ""
    except PydanticCustomError as fault:
        raise StarterError(fault.message()) from None


def _checked_step(text: str) -> str:
    try:
        return write_number(read_positive(text)) if text else ""
    except PydanticCustomError as fault:
        raise StarterError(fault.message()) from None


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in re.split(";" if ";" in text else ",", text) if part.strip())


def _with_codes(column: DescribedColumn, text: str) -> DescribedColumn:
    if text.endswith(".csv"):
        return replace(column, codes_file=text)
    pairs = [part.partition("=") for part in _split(text)]
    codes = tuple((code.strip(), label.strip() or code.strip()) for code, _, label in pairs)
    if len({code for code, _ in codes}) < len(codes) or any(not code for code, _ in codes):
        raise StarterError("a code is empty or listed twice; write each once, as 1=Male, 2=Female")
    return replace(column, codes=codes)


_KEYS = ("type", "label", "codes", "range", "step", "clip", "levels", "group", "not_applicable")


def read_answers(text: str, header: tuple[str, ...]) -> Answers:
    """Answers from JSON: `{column: {type, label, codes | range | levels | group, step, clip, not_applicable}}`."""
    data = read_json(text, "the answer file")
    if not isinstance(data, dict):
        raise StarterError('the answers are not an object; expected {"column": {"type": "integer", "range": "0..99"}}')
    for name in data:
        if name not in header:
            raise StarterError(f"the answers name '{name}', which is not in the header; {did_you_mean(name, header)}")
    return {name: _read_answer(name, data.get(name, {})) for name in header}


def _read_answer(name: str, data: Any) -> DescribedColumn:
    if not isinstance(data, dict):
        raise StarterError(f"the answer for '{name}' is not an object; expected a type, and codes or a range")
    for key in data:
        if key not in _KEYS:
            raise StarterError(f"the answer for '{name}' has '{key}'; {did_you_mean(key, _KEYS)}")
    try:
        kind = _checked_type(_word(data, "type"))
        if kind == "id":
            return _identifier(name, _word(data, "group"))
        column = DescribedColumn(
            name=name,
            kind=TYPES[kind] if kind else None,
            label=_word(data, "label"),
            valid=_checked_range(_word(data, "range")),
            clip=_checked_range(_word(data, "clip")),
            step=_checked_step(_word(data, "step")),
            levels=_words(data, "levels"),
            not_applicable=_words(data, "not_applicable"),
        )
        return _with_answered_codes(column, data.get("codes"))
    except StarterError as fault:
        raise StarterError(f"the answer for '{name}': {fault}") from None


def _with_answered_codes(column: DescribedColumn, data: Any) -> DescribedColumn:
    if isinstance(data, dict) and all(isinstance(label, str) for label in data.values()):
        return replace(column, codes=tuple(data.items()))
    if isinstance(data, list) and all(isinstance(code, str) for code in data) and len(set(data)) == len(data):
        return replace(column, codes=tuple((code, code) for code in data))
    if data is None or isinstance(data, str):
        return _with_codes(column, data or "")
    raise StarterError("the codes are neither {code: label}, nor a list of codes (each once), nor the name of a file")


def _word(data: dict[str, Any], key: str) -> str:
    value = data.get(key, "")
    if not isinstance(value, str):
        raise StarterError(f"'{key}' is not a text; write it in quotes")
    return value.strip()


def _words(data: dict[str, Any], key: str) -> tuple[str, ...]:
    value = data.get(key, [])
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or any(not isinstance(word, str) for word in words):
        raise StarterError(f"'{key}' is neither a text nor a list of texts")
    return tuple(words)


def describe_header(entity: str, answers: Answers, delimiter: str) -> Description:
    """The one file that the answers are about."""
    name = as_name(entity)
    columns = tuple(answers.values())
    if any(column.refers_to is not None and column.refers_to[0] == name for column in columns):
        raise StarterError(f"'{name}' cannot lie in groups of the same name; call the group something else")
    return Description(files=(DescribedFile(name, columns),), delimiter=delimiter)
