"""Plain data of the ledger, written and read back strictly: nothing is guessed, converted or overlooked.

Plain data are text, whole numbers, truths, lists and dictionaries of them. A fraction is text in lowest terms, such as
"3/8" or "-2"; a float is never accepted, because a price must be exact. Every mistake says where it stands, what was
found and what was expected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, TypeVar

FRACTION = re.compile(r"-?[0-9]{1,2000}(/[0-9]{1,2000})?")
"""Far more digits than any price has, and fewer than Python refuses to read."""

Choice = TypeVar("Choice", bound=StrEnum)


def as_plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are there, fractions and choices as text."""
    return {key: _plain(value) for key, value in values.items() if value is not None}


def _plain(value: object) -> str | int:
    if isinstance(value, Fraction | StrEnum):
        return str(value)
    if type(value) in (bool, int):
        return value  # type: ignore[return-value]
    raise ValueError(f"only fractions, whole numbers, truths and choices are stored, got {value!r}")


@dataclass(frozen=True, slots=True)
class Found:
    """One dictionary of plain data, with its place in the whole."""

    where: str
    data: Any

    def __post_init__(self) -> None:
        if type(self.data) is not dict:
            raise ValueError(f"{self.where}: found {_shown(self.data)}, expected named values")

    def __contains__(self, key: str) -> bool:
        return key in self.data

    @property
    def keys(self) -> list[str]:
        """The names of all values."""
        return list(self.data)

    def has_only(self, *known: str) -> None:
        """Refuses a name that is not known: what we do not understand may change the price."""
        unknown = [_shown(key) for key in self.data if key not in known]
        if unknown:
            raise ValueError(f"{self.where}: {', '.join(unknown)} is not known. Known: {', '.join(known)}")

    def mistake(self, key: str, value: object, expected: str) -> ValueError:
        """What to raise when a value is not as expected."""
        return ValueError(f"{self.where}.{key}: found {_shown(value)}, expected {expected}")

    def part(self, key: str) -> Found:
        """A dictionary inside this one."""
        return Found(f"{self.where}.{key}", self._value(key))

    def parts(self, key: str) -> list[Found]:
        """A list of dictionaries inside this one."""
        values = self._value(key)
        if type(values) is not list:
            raise self.mistake(key, values, "a list")
        return [Found(f"{self.where}.{key}[{place}]", value) for place, value in enumerate(values)]

    def text(self, key: str) -> str:
        """A text."""
        value = self._value(key)
        if type(value) is not str:
            raise self.mistake(key, value, "text")
        return value

    def texts(self, key: str) -> list[str]:
        """A list of texts, each once."""
        values = self._value(key)
        if type(values) is not list or any(type(value) is not str for value in values):
            raise self.mistake(key, values, "a list of texts")
        if len(set(values)) < len(values):
            raise self.mistake(key, values, "each text once")
        return values

    def truth(self, key: str) -> bool:
        """True or false."""
        value = self._value(key)
        if type(value) is not bool:
            raise self.mistake(key, value, "true or false")
        return value

    def whole(self, key: str) -> int:
        """A whole number; true and 1.0 are none."""
        value = self._value(key)
        if type(value) is not int:
            raise self.mistake(key, value, "a whole number")
        return value

    def fraction(self, key: str) -> Fraction:
        """A fraction, written as we write it."""
        value = self._value(key)
        if type(value) is str and FRACTION.fullmatch(value):
            above, _, below = value.partition("/")
            if int(below or 1) != 0 and str(Fraction(int(above), int(below or 1))) == value:
                return Fraction(int(above), int(below or 1))
        raise self.mistake(key, value, 'a fraction as text in lowest terms, such as "3/8"')

    def one_of(self, key: str, choices: type[Choice]) -> Choice:
        """One of the named choices."""
        value = self.text(key)
        if value not in [str(choice) for choice in choices]:
            raise self.mistake(key, value, f"one of {', '.join(choices)}")
        return choices(value)

    def _value(self, key: str) -> Any:
        if key not in self.data:
            found = ", ".join(_shown(name) for name in self.data) or "nothing"
            raise ValueError(f"{self.where}: '{key}' is missing. Found: {found}")
        return self.data[key]


def _shown(value: object) -> str:
    """A value in an error message, not longer than helps."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
