"""What is known of confidential files before anyone opens them: from a data dictionary, or from a header and answers.

A description holds only what somebody documented or said. `starter` turns it into a spec in which a person finishes
what is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("categorical", "integer", "number", "money", "date", "geography", "id", "weight", "skip")
"""What a column may be. `money` is a number whose influence must be bounded; `skip` is not declared at all."""


class StarterError(Exception):
    """A starter spec cannot be made of this. One sentence: where, what was found, what was expected, what to do."""


@dataclass(frozen=True, slots=True)
class DescribedColumn:
    """One column as documented; whatever is empty or None is not known."""

    name: str
    kind: str | None = None
    label: str = ""
    codes: tuple[tuple[str, str], ...] = ()
    codes_file: str = ""
    open_list: str | None = None
    """Why there is no code list, where the documentation says that there is none."""
    valid: str = ""
    """A range as the language writes it, such as `0..99`."""
    clip: str = ""
    levels: tuple[str, ...] = ()
    refers_to: tuple[str, str] | None = None
    """The file and the column this one points at."""
    unique: bool = False
    not_applicable: tuple[str, ...] = ()
    not_applicable_to: str = ""
    """Who has no value, in the words of the documentation."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class DescribedFile:
    """One file: what its rows are called, and its columns in the order of the file."""

    name: str
    columns: tuple[DescribedColumn, ...]

    @property
    def ids(self) -> tuple[DescribedColumn, ...]:
        """The identifiers of its own rows."""
        return tuple(column for column in self.columns if column.kind == "id" and column.refers_to is None)

    @property
    def references(self) -> tuple[tuple[str, str], ...]:
        """The groups its rows lie in, each with the column that says so."""
        pairs = [(column.refers_to, column.name) for column in self.columns if column.kind == "id"]
        return tuple((target[0], name) for target, name in pairs if target is not None)


@dataclass(frozen=True, slots=True)
class Description:
    """Everything known: `files` hold records or groups, `areas` are public lists of areas."""

    files: tuple[DescribedFile, ...]
    areas: tuple[DescribedFile, ...] = ()
    source: str = ""
    """Who says so, as a sentence names it: `the dictionary`."""
    title: str = ""
    protect: str = ""
    cap: str = ""
    delimiter: str = ","

    @property
    def implied_groups(self) -> dict[str, tuple[str, str]]:
        """Groups that have no file of their own: name -> the file whose rows carry the key, and the key."""
        known = {file.name for file in (*self.files, *self.areas)}
        found: dict[str, tuple[str, str]] = {}
        for file in self.files:
            for group, column in file.references:
                if group not in known:
                    found.setdefault(group, (file.name, column))
        return found
