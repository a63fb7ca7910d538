"""From what is known of the confidential files to a first spec, section by section."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from release_specs.diagnostics import SpecError
from release_specs.source import LARGEST_PUBLIC_FILE, read_source
from release_specs.starter.areas import area_files, geography, spines_of
from release_specs.starter.columns import code_files, column_entries, example_column
from release_specs.starter.description import DescribedFile, Description, StarterError
from release_specs.starter.dictionary import read_dictionary
from release_specs.starter.header import Answers, describe_header
from release_specs.starter.outline import Block, Entry, Remark, Undecided, Value, written
from release_specs.values import UNDECIDED

STARTER = Path(__file__).with_name("starter.yaml")


@dataclass(frozen=True, slots=True)
class Draft:
    """A spec that a person finishes, and the public CSV files it names as far as they are known, by name."""

    text: str
    files: Mapping[str, str]

    @property
    def undecided(self) -> int:
        """How many choices are left to a person."""
        body = (re.sub(r"(^|\s)#.*", "", line) for line in self.text.splitlines())
        return sum(len(re.findall(rf"\b{UNDECIDED}\b", line)) for line in body)


def starter_spec() -> str:
    """A small complete spec that works as it stands and explains every section."""
    return STARTER.read_text(encoding="utf-8")


def spec_from_dictionary(text: str, *, name: str) -> Draft:
    """A spec from the text of a `dictionary.json`. Raises `StarterError`."""
    return _drafted(read_dictionary(text), name)


def spec_from_header(entity: str, answers: Answers, *, delimiter: str, name: str) -> Draft:
    """A spec for one CSV file, from what was said about the columns of its header. Raises `StarterError`."""
    return _drafted(describe_header(entity, answers, delimiter), name)


def read_document(path: Path) -> str:
    """The text of a dictionary or of answers. Raises `StarterError`."""
    try:
        return read_source(path, shown_as=str(path), largest=LARGEST_PUBLIC_FILE)
    except SpecError as fault:
        raise StarterError(f"{path}: {fault.diagnostics[0].message}") from None


def _drafted(known: Description, name: str) -> Draft:
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
        Entry("microdata", Block(groups + entities), above="What is in the confidential files?"),
        *((Entry("geography", Block(spines), above="Which areas are there?"),) if spines else ()),
        Entry("privacy", _privacy(known), above="Who is protected, and how strongly?"),
        *_expect(known),
        Entry("tables", _tables(known), above="What is published? These are examples; write your own."),
        Remark(last),
    )
    return Draft(written(Block(sections)), {**area_files(known), **code_files(known)})


def _release(known: Description, name: str) -> Block:
    slug = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-_") or "release"
    title = Undecided(
        "what is printed on every page", known.title or "Title of the release", known.title and known.source
    )
    return Block((Entry("name", slug), Entry("title", title)))


def _implied_group(group: str, member: str, key: str) -> Entry:
    block = Block((Entry("key", key), Entry("from", member)))
    return Entry(group, block, above=f"No file of their own: {group} are built from the {member} that carry their key.")


def _entity(file: DescribedFile, known: Description) -> Entry:
    entries = [Entry("key", _key(file, known), beside=_key_remark(file))]
    if file.references:
        group, column = file.references[0]
        others = ", ".join(f"{name} ({key})" for name, key in file.references[1:])
        beside = f"rows lie in one group; also known: {others}" if others else ""
        entries.append(Entry("in", Block((Entry(group, column),), fit=True), beside=beside))
    if known.delimiter != ",":
        beside = (
            "if numbers have a decimal comma, add decimal: and the comma in quotes" if known.delimiter == ";" else ""
        )
        entries.append(Entry("read", Block((Entry("delimiter", known.delimiter),), fit=True), beside=beside))
    rules = "leave_out, {count_as: CODE}"
    outside = Undecided(f"a value outside the declared domain: nearest (numbers), {rules}", "leave_out")
    missing = Undecided(f"a missing value: {rules}", "leave_out")
    entries.append(Entry("defaults", Block((Entry("outside", outside), Entry("missing", missing)))))
    declared = column_entries(file, known)
    if any(isinstance(entry, Entry) for entry in declared):
        entries.append(Entry("columns", Block(declared, aligned=True)))
    return Entry(file.name, Block(tuple(entries)))


def _key(file: DescribedFile, known: Description) -> Value:
    unique = [column.name for column in file.ids if column.unique]
    if len(unique) == 1:
        return unique[0]
    what = "the column or columns that identify a row"
    if file.ids:
        return Undecided(what, (unique or [column.name for column in file.ids])[0], known.source)
    return Undecided(f"{what}; none is described: add a running number when the file is made", "row_id")


def _key_remark(file: DescribedFile) -> str:
    others = [column.name for column in file.ids if not column.unique]
    unique = [column.name for column in file.ids if column.unique]
    return f"{', '.join(others)}: identifiers are never tabulated" if others and len(unique) == 1 else ""


def _privacy(known: Description) -> Block:
    groups = [file.references[0][0] for file in known.files if file.references]
    names = list(dict.fromkeys([*(file.name for file in known.files), *known.implied_groups]))
    protect = known.protect or (groups or names)[0]
    source = known.source if known.protect else ""
    entries = [Entry("protect", Undecided(f"whose presence is hidden: {' or '.join(names)}", protect, source))]
    members = [file.name for file in known.files if file.references and file.references[0][0] == protect]
    if members:
        what = f"how many rows of one of the {protect} count at most; more means more noise"
        cap = Undecided(what, known.cap or "8", known.source if known.cap else "")
        entries.append(Entry("at_most", Block(tuple(Entry(member, cap) for member in members))))
    relation = "add-remove: one more or less; replace: one exchanged for another (dearer, totals may be exact)"
    entries.append(Entry("neighbours", Undecided(relation, "add-remove")))
    budget = Block(
        (
            Entry("rho", Undecided("what may be spent; smaller is more private, or write {epsilon: ...}", "1")),
            Entry("delta", Undecided("how likely epsilon may fail; far below one over the population", "1e-10")),
        )
    )
    entries.append(Entry("budget", budget))
    return Block(tuple(entries))


def _expect(known: Description) -> tuple[Remark, ...]:
    """Public sizes that a list of areas may carry; a comment, as only a person knows what each counts."""
    lines = []
    for areas in known.areas:
        sizes = [f"{column.name} ({column.label})" for column in areas.columns if column.kind == "integer"]
        if sizes:
            first = known.files[0].name
            lines += [
                f"{areas.name}.csv also has {', '.join(sizes)}.",
                "If one is the public size of an entity, planning can use it (it never enters an estimate):",
                f"expect: {{areas: {{file: {areas.name}.csv, {first}: COLUMN}}}}",
            ]
    return (Remark("What is public already? Used for planning only.", tuple(lines)),) if lines else ()


def _tables(known: Description) -> Block:
    placed = {file for file, _ in spines_of(known)}
    placed |= {file.name for file in known.files if file.references and file.references[0][0] in placed}

    def table(count: str, *by: str) -> Block:
        entries = [Entry("count", count)]
        entries += [Entry("by", by)] if by else []
        entries += [Entry("at", "all")] if count in placed else []
        return Block(tuple(entries), fit=True)

    tables = [Entry(f"number_of_{file.name}", table(file.name)) for file in known.files]
    tables += [Entry(f"number_of_{group}", table(group)) for group in known.implied_groups]
    for file in known.files:
        if column := example_column(file):
            tables.append(Entry(f"{file.name}_by_{column}", table(file.name, column)))
    return Block(tuple(tables), aligned=True)
