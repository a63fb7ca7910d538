"""YAML text to a frozen `ReleaseSpec`, or one plain list of everything that is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path as FilePath

from release_specs.checks import find
from release_specs.checks.draft import Draft
from release_specs.diagnostics import Diagnostic, Finding, Severity, SpecError, dotted
from release_specs.domain import Domain
from release_specs.reading.public_files import PublicFiles
from release_specs.reading.resolve import build_domain
from release_specs.reading.salvage import salvage
from release_specs.reading.source import read_source
from release_specs.reading.tree import Tree, parse_tree
from release_specs.spec import ReleaseSpec


@dataclass(frozen=True, slots=True)
class Loaded:
    """A spec without mistakes, its domain, and the warnings and notes about it."""

    spec: ReleaseSpec
    domain: Domain
    diagnostics: tuple[Diagnostic, ...]


def load_spec(path: FilePath) -> Loaded:
    """The spec in a file. Raises `SpecError` with every mistake at once."""
    return load_text(read_source(path, shown_as=str(path)), file=str(path), folder=path.parent)


def load_text(text: str, *, file: str, folder: FilePath) -> Loaded:
    """The spec in a text, with its public files in `folder`. Raises `SpecError` with every mistake at once."""
    return load_tree(parse_tree(text, file), folder=folder)


def load_tree(tree: Tree, *, folder: FilePath) -> Loaded:
    """The spec in a tree of text, with its public files in `folder`. Raises `SpecError` with every mistake at once."""
    readable = salvage(tree.data)
    spec, files = readable.spec(), PublicFiles(folder)
    domain = build_domain(spec, files, readable.unknown)
    draft = Draft(spec, domain, files, readable.sections, tree.line, nesting=readable.nesting)
    diagnostics = _located([*readable.findings, *find(draft), *files.findings], tree, folder)
    if any(found.severity is Severity.ERROR for found in diagnostics):
        raise SpecError(diagnostics)
    return Loaded(spec, domain, diagnostics)


def _located(findings: list[Finding], tree: Tree, folder: FilePath) -> tuple[Diagnostic, ...]:
    """The findings with file, line and column, each once, in the order of the file; notes last."""
    located = []
    for found in dict.fromkeys(findings):
        file, (line, column) = tree.file, tree.place(found.path, at_key=found.at_key)
        if found.place is not None:
            file, line, column = str(folder / found.place[0]), found.place[1], found.place[2]
        located.append(Diagnostic(file, line, column, found.severity, found.code, dotted(found.path), found.message))
    return tuple(sorted(located, key=lambda item: (item.severity is Severity.NOTE, item.file != tree.file, item.line)))
