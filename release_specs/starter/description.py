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
    """Suggested by documentation, or decided by a person who answered."""
    step: str = ""
    levels: tuple[str, ...] = ()
    refers_to: tuple[str, str] | None = None
    """The file and the column this one points at."""
    group_open: bool = False
    """An identifier; whether of a row or of a group is left to a person."""
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
    """Who documents it, as a sentence names it: `the dictionary`. Empty where a person answered."""
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
            group = self.group_of(file)
            if group is not None and group[0] not in known:
                found.setdefault(group[0], (file.name, group[1]))
        return found

    @property
    def suggested_unit(self) -> str:
        """Whom to protect: who the documentation says, else the group that rows lie in, else the first file."""
        groups = [group[0] for file in self.files if (group := self.group_of(file)) is not None]
        return self.protect or next(iter(groups), self.files[0].name)

    def referred(self, name: str) -> list[str]:
        """The columns of a file that other files point at."""
        pointing = [column for file in self.files for column in file.columns if column.kind == "id"]
        targets = [column.refers_to for column in pointing if column.refers_to is not None]
        return list(dict.fromkeys(column for file, column in targets if file == name))

    def group_of(self, file: DescribedFile) -> tuple[str, str] | None:
        """The group that rows of a file lie in, and the column that says so; groups do not lie in groups."""
        if self.referred(file.name):
            return None
        return next(iter(file.references), None)

    def groups_of(self, name: str) -> list[str]:
        """The group that rows of the named file lie in, if there is one."""
        return [group[0] for file in self.files if file.name == name and (group := self.group_of(file)) is not None]

    def members_of(self, name: str) -> list[str]:
        """The files whose rows lie in a group."""
        return [file.name for file in self.files if (group := self.group_of(file)) is not None and group[0] == name]
