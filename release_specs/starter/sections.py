"""From what is known of the confidential files to a first spec, section by section."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from release_specs.diagnostics import SpecError
from release_specs.language.values import UNDECIDED
from release_specs.reading.source import LARGEST_PUBLIC_FILE, read_source
from release_specs.reading.tree import parse_tree, walk
from release_specs.starter.areas import area_files, geography, spines_of
from release_specs.starter.columns import code_files, column_entries, example_column
from release_specs.starter.description import DescribedFile, Description, StarterError
from release_specs.starter.dictionary import read_dictionary
from release_specs.starter.header import Answers, describe_header
from release_specs.starter.outline import Block, Entry, Remark, Undecided, quoted, written

STARTER = Path(__file__).with_name("starter.yaml")


@dataclass(frozen=True, slots=True)
class Starter:
    """A spec that a person finishes, and the public CSV files it names as far as they are known, by name."""

    text: str
    files: Mapping[str, str]

    @property
    def undecided(self) -> int:
        """How many choices are left to a person."""
        return sum(value == UNDECIDED for _, value in walk(parse_tree(self.text, "").data))


def starter_spec() -> str:
    """A small complete spec that works as it stands and explains every section."""
    return STARTER.read_text(encoding="utf-8")


def spec_from_dictionary(text: str, *, name: str) -> Starter:
    """A spec from the text of a `dictionary.json`. Raises `StarterError`."""
    return _drafted(read_dictionary(text), name)


def spec_from_header(entity: str, answers: Answers, *, delimiter: str, name: str) -> Starter:
    """A spec for one CSV file, from what was said about the columns of its header. Raises `StarterError`."""
    return _drafted(describe_header(entity, answers, delimiter), name)


def read_document(path: Path) -> str:
    """The text of a dictionary or of answers. Raises `StarterError`."""
    try:
        return read_source(path, shown_as=str(path), largest=LARGEST_PUBLIC_FILE)
    except SpecError as fault:
        raise StarterError(f"{path}: {fault.diagnostics[0].message}") from None


def _drafted(known: Description, name: str) -> Starter:
    first = (
        f"A first draft. Every {UNDECIDED} is a choice that a person must make; `margrave check` lists them. "
        "Decide from documentation and public knowledge, never from the data."
    )
    last = (
        "Left out: recodes, derive, universes, spend (the budget is divided optimally), rules, publish and schedule. "
        "`margrave init` without any input writes a starter spec that shows them."
    )
    groups = tuple(_implied_group(group, *made) for group, made in known.implied_groups.items())
    entities = tuple(_entity(file, known) for file in known.files)
    spines = geography(known)
    sections = (
        Remark(first),
        Entry("margrave", "1"),
        Entry("release", _release(known, name), above="What is the publication called?"),
        Entry("microdata", Block(groups + entities), above=_microdata_question(known)),
        *((Entry("geography", Block(spines), above="Which areas are there?"),) if spines else ()),
        Entry("privacy", _privacy(known), above="Who is protected, and how strongly?"),
        *_expect(known),
        Entry("tables", _tables(known), above="What is published? These are examples; write your own."),
        Remark(last),
    )
    return Starter(written(Block(sections)), {**area_files(known), **code_files(known)})


def _release(known: Description, name: str) -> Block:
    slug = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-_") or "release"
    title = Undecided("what is printed on every page", quoted(known.title or "Title of the release"), known.source)
    return Block((Entry("name", slug), Entry("title", title)))


def _microdata_question(known: Description) -> str:
    question = "What is in the confidential files?"
    if any(column.not_applicable_to for file in known.files for column in file.columns):
        return f"{question} Where a comment says who has no value, add applies_to, such as {{age: 16..}}."
    return question


def _implied_group(group: str, member: str, key: str) -> Entry:
    block = Block((Entry("key", key), Entry("from", member)))
    return Entry(group, block, above=f"No file of their own: {group} are built from the {member} that carry their key.")


def _entity(file: DescribedFile, known: Description) -> Entry:
    entries = [*_identity(file, known)]
    if known.delimiter != ",":
        decimal = "where numbers have a decimal comma, add decimal and the comma in quotes"
        read = Block((Entry("delimiter", known.delimiter),), fit=True)
        entries.append(Entry("read", read, beside=decimal if known.delimiter == ";" else ""))
    outside = Undecided("values outside the domain: leave_out, {count_as: CODE} or nearest (numbers)", "leave_out")
    missing = Undecided("missing values: leave_out or {count_as: CODE}", "leave_out")
    entries.append(Entry("defaults", Block((Entry("outside", outside), Entry("missing", missing)))))
    declared = column_entries(file, known)
    if any(isinstance(entry, Entry) for entry in declared):
        entries.append(Entry("columns", Block(declared, aligned=True)))
    else:
        entries += [entry for entry in declared if isinstance(entry, Remark)]
    return Entry(file.name, Block(tuple(entries)))


def _identity(file: DescribedFile, known: Description) -> Iterator[Entry | Remark]:
    """What identifies a row, and the group it lies in."""
    unique = [column.name for column in file.ids if column.unique]
    referred = [name for name in known.referred(file.name) if name in [column.name for column in file.columns]]
    keys = referred or unique or [column.name for column in file.ids]
    if len(keys) == 1 and (referred or unique):
        yield Entry("key", keys[0])
    elif keys:
        what = f"the column or columns that identify a row; there are {', '.join(keys)}"
        yield Entry("key", Undecided(what, quoted(keys[0]), known.source))
    else:
        yield Remark(f"No column identifies a row, so each row is one of the {file.name}. Where one does: key: COLUMN")
    group = known.group_of(file)
    undecided = [column.name for column in file.columns if column.group_open and column.name not in keys]
    others = [f"{column} ({name})" for name, column in file.references if (name, column) != group]
    if group is not None:
        yield Entry("in", Block((Entry(*group),), fit=True))
    elif undecided:
        what = "the group that rows lie in, and the column that says so; or delete this line"
        yield Entry("in", Undecided(what, f"{{households: {quoted(undecided[0])}}}"))
    if others:
        yield Remark(f"Left out: {', '.join(others)}. A row lies in one group, and groups do not lie in groups.")


def _privacy(known: Description) -> Block:
    names = [*(file.name for file in known.files), *known.implied_groups]
    protect = known.suggested_unit
    who = Undecided(f"whose presence is hidden: {' or '.join(names)}", protect, known.source if known.protect else "")
    entries = [Entry("protect", who)]
    if members := known.members_of(protect):
        what = f"the rows of one unit that count ({protect}); more rows, more noise"
        cap = Undecided(what, known.cap or "8", known.source if known.cap else "")
        entries.append(Entry("at_most", Block(tuple(Entry(member, cap) for member in members))))
    relation = "one unit more or less (add-remove), or exchanged for another (replace)"
    entries.append(Entry("neighbours", Undecided(relation, "add-remove")))
    rho = Undecided("the most that may be spent; less is more private; or epsilon instead of rho", "1")
    delta = Undecided("the chance that epsilon does not hold; far below one over the population", "1e-10")
    entries.append(Entry("budget", Block((Entry("rho", rho), Entry("delta", delta)))))
    return Block(tuple(entries))


def _expect(known: Description) -> tuple[Remark, ...]:
    """Public sizes that a list of areas may carry; a comment, as only a person knows what each counts."""
    remarks = []
    for areas in known.areas:
        sizes = [f"{column.name} ({column.label})" for column in areas.columns if column.kind == "integer"]
        if sizes:
            text = (
                f"What is public already? {areas.name}.csv also has {', '.join(sizes)}. Where one of them is the "
                "public size of an entity, planning can use it:"
            )
            example = f"expect: {{areas: {{file: {areas.name}.csv, {known.files[0].name}: COLUMN}}}}"
            remarks.append(Remark(text, (example,)))
    return tuple(remarks)


def _tables(known: Description) -> Block:
    """Example tables of whatever is inside the guarantee, if the suggested unit is protected."""
    placed = {file for file, _ in spines_of(known)}
    placed |= {file.name for file in known.files if (group := known.group_of(file)) is not None and group[0] in placed}
    inside = {known.suggested_unit, *known.members_of(known.suggested_unit), *known.groups_of(known.suggested_unit)}

    def table(count: str, *by: str) -> Block:
        entries: list[Entry] = [Entry("count", count)]
        entries += [Entry("by", by)] if by else []
        entries += [Entry("at", "all")] if count in placed else []
        return Block(tuple(entries), fit=True)

    names = [*(file.name for file in known.files), *known.implied_groups]
    tables = [Entry(f"number_of_{name}", table(name)) for name in names if name in inside]
    for file in known.files:
        if file.name in inside and (column := example_column(file)):
            tables.append(Entry(f"{file.name}_by_{column}", table(file.name, column)))
    return Block(tuple(tables), aligned=True)
