"""A data dictionary (JSON) to a `Description`. It reads documentation, never microdata.

Two shapes are known: `columns`, a list, for one file; or `tables`, a list of columns for each of several files. A
column has a `name` and a `kind`, and may have `label`, `codes`, `bounds`, `suggested_clip`, `not_applicable`,
`levels`, `refers_to`, `unique`, `open_list` and `note`. Numbers stay the text that was written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_core import PydanticCustomError

from release_specs.language.values import read_range
from release_specs.starter.description import KINDS, DescribedColumn, DescribedFile, Description, StarterError

LONGEST_CODE = 100
_NOT_APPLICABLE = re.compile(r"(n/a|not applicable|inapplicable|not in universe|niu)(?!\w)", re.IGNORECASE)
_ADVICE = (
    'expected {"columns": [...]} for one file or {"tables": {"persons": [...]}} for several, '
    "each column an object with a name and a kind"
)


def read_dictionary(text: str) -> Description:
    """What a dictionary says. Raises `StarterError`."""
    data = read_json(text, "the dictionary")
    if not isinstance(data, dict):
        raise StarterError(f"the dictionary is {_kind_of(data)}; {_ADVICE}")
    found = [word for word in ("columns", "tables") if word in data]
    if len(found) != 1:
        what = "both 'columns' and 'tables'" if found else "neither 'columns' nor 'tables'"
        raise StarterError(f"the dictionary has {what}; {_ADVICE}")
    if found == ["columns"]:
        records = plural(_text(data.get("unit_of_record")) or "record")
        columns = _read_columns(data["columns"], "columns", "the dictionary", _text(data.get("household_id")))
        files = [DescribedFile(records, columns)]
    else:
        files = _read_tables(data["tables"])
    unit = _text(data.get("protected_unit"))
    cap = re.search(r"(?:maximum|at most|up to)\D{0,12}(\d+)", unit)
    lists = _area_lists(files)
    described = Description(
        files=tuple(file for file in files if file.name not in lists),
        areas=tuple(file for file in files if file.name in lists),
        source="the dictionary",
        title=_text(data.get("title")) or _text(data.get("dataset")),
        cap=cap[1] if cap else "",
    )
    if not described.files:
        raise StarterError("the dictionary describes lists of areas only; add the files that hold records")
    return _with_protected(described, unit)


def read_json(text: str, what: str) -> Any:
    """JSON with numbers as text, and no key twice. Raises `StarterError`, naming `what` it was."""

    def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        if twice := next((key for key in keys if keys.count(key) > 1), None):
            raise StarterError(f"{what} has '{twice}' twice in one object; keep one")
        return dict(pairs)

    try:
        data = json.loads(text, parse_int=str, parse_float=str, parse_constant=str, object_pairs_hook=once)
        json.dumps(data, ensure_ascii=False).encode()
    except json.JSONDecodeError as fault:
        where = f"line {fault.lineno}, column {fault.colno}"
        raise StarterError(f"{what} is not JSON: {fault.msg} in {where}; mend it, or export it anew") from None
    except UnicodeEncodeError:
        raise StarterError(f"{what} holds half of a character (a lone surrogate); export it anew as UTF-8") from None
    except RecursionError:
        raise StarterError(f"{what} is nested too deeply to be one; {_ADVICE}") from None
    return data


def plural(word: str) -> str:
    """`person` as the entity it makes: `persons`. The result is a name of the language."""
    name = as_name(word)
    if name.endswith("s"):
        return name
    return f"{name[:-1]}ies" if re.search(r"[^aeiou]y$", name) else f"{name}s"


def as_name(text: str) -> str:
    """The nearest name of the language: letters, digits and _, a letter first."""
    name = re.sub(r"\W+", "_", text.strip()).strip("_")
    return name if re.match(r"[^\W\d]", name) else f"n_{name}".rstrip("_")


def _with_protected(described: Description, unit: str) -> Description:
    """The first word of the protected unit, where it names a file or a group: `household, at most 20 persons`."""
    first = re.match(r"\w+", unit)
    known = [*(file.name for file in described.files), *described.implied_groups]
    named = plural(first[0].lower()) if first is not None else ""
    return replace(described, protect=named) if named in known else described


def _area_lists(files: list[DescribedFile]) -> set[str]:
    """The files that area columns of other files point at."""
    return {
        column.refers_to[0]
        for file in files
        for column in file.columns
        if column.kind == "geography" and column.refers_to is not None and column.refers_to[0] != file.name
    }


def _read_tables(data: Any) -> list[DescribedFile]:
    if not isinstance(data, dict) or not data:
        raise StarterError(f"'tables' of the dictionary is {_kind_of(data)}; {_ADVICE}")
    files = []
    for name, columns in data.items():
        inner = columns.get("columns", columns) if isinstance(columns, dict) else columns
        read = _read_columns(inner, name, f"'{name}' in the dictionary", "")
        files.append(DescribedFile(as_name(name), read))
    return files


def _read_columns(data: Any, word: str, where: str, group_id: str) -> tuple[DescribedColumn, ...]:
    """The columns of one file: the list under `word`, the messages about which say `where` it is."""
    if not isinstance(data, list) or not data:
        example = '[{"name": "age", "kind": "integer"}]'
        raise StarterError(
            f"'{word}' of the dictionary is {_kind_of(data)}; expected a list of columns, such as {example}"
        )
    columns: dict[str, DescribedColumn] = {}
    for number, facts in enumerate(data, 1):
        if not isinstance(facts, dict) or not _text(facts.get("name")):
            raise StarterError(f"column {number} of {where} has no name; give it one")
        column = _read_column(facts, f"column '{_text(facts['name'])}' of {where}", group_id)
        if column.name in columns:
            raise StarterError(f"{where} has column '{column.name}' twice; keep one")
        columns[column.name] = column
    return tuple(columns.values())


def _read_column(facts: dict[str, Any], where: str, group_id: str) -> DescribedColumn:
    name, label = _text(facts["name"]), _text(facts.get("label"))
    values, reason = _read_not_applicable(facts.get("not_applicable"), where)
    codes = []
    for code, meaning in _read_codes(facts.get("codes"), where):
        if code in values or _NOT_APPLICABLE.match(meaning):
            values = (*values, code) if code not in values else values
            reason = reason or _whom(meaning)
        else:
            codes.append((code, meaning))
    refers_to = _read_reference(facts.get("refers_to"), where)
    if group_id and name == group_id and refers_to is None:
        refers_to = (plural(re.sub(r"_?id$", "", name, flags=re.IGNORECASE) or "group"), name)
    open_list = facts.get("open_list")
    return DescribedColumn(
        name=name,
        kind=_read_kind(facts, label, is_group_id=bool(group_id) and name == group_id),
        label=label,
        codes=tuple(codes),
        open_list=None if open_list in (None, False) else _text(open_list),
        valid=_read_bounds(facts.get("bounds"), "bounds", where),
        clip=_read_bounds(facts.get("suggested_clip"), "suggested_clip", where),
        levels=_read_levels(facts.get("levels"), where),
        refers_to=refers_to,
        unique=facts.get("unique") is True,
        not_applicable=values,
        not_applicable_to=reason,
        note=_text(facts.get("note")),
    )


def _read_kind(facts: dict[str, Any], label: str, *, is_group_id: bool) -> str | None:
    kind = _text(facts.get("kind")).lower()
    if is_group_id:
        return "id"
    if not kind and facts.get("codes"):
        return "categorical"
    if kind in ("integer", "number") and re.search(r"\bweights?\b", label, re.IGNORECASE):
        return "weight"
    return (kind if kind in KINDS else f"other: {kind}") if kind else None


def _read_codes(data: Any, where: str) -> list[tuple[str, str]]:
    if data is None:
        return []
    pairs = list(data.items()) if isinstance(data, dict) else [(code, code) for code in data or ()]
    if not isinstance(data, dict | list) or any(not isinstance(code, str) for code, _ in pairs):
        raise StarterError(f"{where} has codes that are {_kind_of(data)}; expected {{code: label}} or a list of codes")
    if len({code for code, _ in pairs}) < len(pairs):
        raise StarterError(f"{where} lists a code twice; keep one")
    if any(len(code) > LONGEST_CODE for code, _ in pairs):
        raise StarterError(f"{where} has a code of more than {LONGEST_CODE} characters; code and label may be swapped")
    return [(code, _text(label) or code) for code, label in pairs]


def _read_not_applicable(data: Any, where: str) -> tuple[tuple[str, ...], str]:
    """`-9`, a list, or words such as `N / null: group quarters`: the values, and who has none."""
    if data is None:
        return (), ""
    if isinstance(data, list) and all(isinstance(value, str) for value in data):
        return tuple(data), ""
    if not isinstance(data, str):
        raise StarterError(f"{where} has a 'not_applicable' that is {_kind_of(data)}; expected a value or a list")
    values, _, reason = data.partition(": ")
    named = tuple(value.strip() for value in values.split(" / "))
    return tuple(value for value in named if value not in ("null", "")), reason.strip()


def _whom(meaning: str) -> str:
    """`N/A (less than 3 years old)` without its brackets: who has no value."""
    rest = meaning[len(found[0]) :] if (found := _NOT_APPLICABLE.match(meaning)) else meaning
    return re.sub(r"^[\s:;,-]*\(?|\)?$", "", rest).strip()


def _read_bounds(data: Any, word: str, where: str) -> str:
    """`[0, 99]` as the range `0..99`; empty where one end is not known."""
    if data is None:
        return ""
    if not isinstance(data, list) or len(data) != 2 or any(isinstance(end, bool | dict | list) for end in data):
        raise StarterError(f"{where} has {word} that are {_kind_of(data)}; expected two numbers, the lower first")
    if None in data:
        return ""
    try:
        return str(read_range(f"{data[0]}..{data[1]}"))
    except PydanticCustomError:
        raise StarterError(f"{where} has {word} {data[0]} and {data[1]}; expected two numbers, low first") from None


def _read_levels(data: Any, where: str) -> tuple[str, ...]:
    if data is None:
        return ()
    if not isinstance(data, list) or not data or any(not isinstance(level, str) for level in data):
        raise StarterError(f"{where} has levels that are {_kind_of(data)}; expected a list, the whole first")
    if len(set(data)) < len(data):
        raise StarterError(f"{where} lists a level twice; keep one")
    return tuple(data)


def _read_reference(data: Any, where: str) -> tuple[str, str] | None:
    if data is None:
        return None
    table, dot, column = _text(data).rpartition(".")
    if not (table and dot and column):
        raise StarterError(f"{where} refers to {_kind_of(data)}; expected table.column")
    return as_name(table), column


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool | dict | list):
        return ""
    return str(value).strip()


def _kind_of(value: Any) -> str:
    if isinstance(value, dict | list):
        return f"{'a list' if isinstance(value, list) else 'an object'}{'' if value else ' with nothing in it'}"
    if value is None or isinstance(value, bool):
        return "nothing" if value is None else "true or false"
    return f"'{value}'"
