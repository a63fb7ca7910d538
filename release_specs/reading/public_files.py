"""The public CSV files beside a spec: code lists, areas, labels, holidays, expected sizes.

UTF-8, a header, commas. A mistake in such a file is reported with the file's own line.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path as FilePath

from release_specs.diagnostics import Finding, Path, SpecError, did_you_mean, error
from release_specs.reading.source import LARGEST_PUBLIC_FILE, read_source


@dataclass(frozen=True, slots=True)
class PublicTable:
    """A public CSV file: its header, and its rows with the line each stands in."""

    file: str
    header: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]

    def column(self, name: str) -> Iterator[tuple[int, str]]:
        """One column with line numbers."""
        index = self.header.index(name)
        for line, row in self.rows:
            yield line, row[index]


@dataclass(slots=True)
class PublicFiles:
    """The folder beside a spec. Each file is read once; what is wrong with it is found once."""

    folder: FilePath
    findings: list[Finding] = field(default_factory=list)
    _tables: dict[str, PublicTable | None] = field(default_factory=dict)

    def table(self, name: str, path: Path) -> PublicTable | None:
        """The file's table, or None with a finding at `path` (for the first that asks)."""
        if name not in self._tables:
            self._tables[name] = self._read(name, path)
        return self._tables[name]

    def has_columns(self, table: PublicTable, columns: tuple[str, ...], path: Path) -> bool:
        """Whether a table has these columns; a finding for each it lacks."""
        lacking = [column for column in columns if column not in table.header]
        for column in lacking:
            advice = did_you_mean(column, table.header)
            self.findings.append(
                error("file-column", path, f"'{table.file}' has no column '{column}' in its first line; {advice}")
            )
        return not lacking

    def _read(self, name: str, path: Path) -> PublicTable | None:
        try:
            text = read_source(self.folder / name, shown_as=name, largest=LARGEST_PUBLIC_FILE)
        except SpecError as fault:
            for found in fault.diagnostics:
                message = f"'{name}': {found.message}"
                place = (name, found.line, found.column) if (found.line, found.column) != (1, 1) else None
                self.findings.append(error(found.code, path, message, place=place))
            return None
        return self._split(text, name, path)

    def _split(self, text: str, name: str, path: Path) -> PublicTable | None:
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        header: tuple[str, ...] = ()
        rows = []
        known: dict[str, str] = {}
        try:
            for row in reader:
                cells = tuple(known.setdefault(cell, cell.strip()) for cell in row)
                if not header:
                    header = cells
                elif any(cells):
                    rows.append((reader.line_num, cells))
        except csv.Error:
            message = "a quote is never closed, or stands in the middle of a field"
            self.findings.append(error("file-row", path, message, place=(name, reader.line_num, 1)))
            return None
        return self._accepted(PublicTable(name, header, tuple(rows)), path)

    def _accepted(self, table: PublicTable, path: Path) -> PublicTable | None:
        if not table.header:
            self.findings.append(error("file-row", path, f"'{table.file}' is empty; its first line names the columns"))
            return None
        other = next((sign for sign in (";", "\t", "|") if len(table.header) == 1 and sign in table.header[0]), None)
        if other is not None:
            sign = {";": "semicolons", "\t": "tabs"}.get(other, f"'{other}'")
            message = f"'{table.file}' has {sign} between its columns; save it with commas"
            self.findings.append(error("file-row", path, message, place=(table.file, 1, 1)))
            return None
        if len(set(table.header)) < len(table.header):
            twice = next(name for name in table.header if table.header.count(name) > 1)
            message = f"the first line names '{twice}' twice"
            self.findings.append(error("file-row", path, message, place=(table.file, 1, 1)))
            return None
        wanted = len(table.header)
        ragged = [line for line, row in table.rows if len(row) != wanted]
        for line in ragged[:3]:
            message = (
                f"this line does not have {wanted} fields as the first line does; quote a field that holds a comma"
            )
            self.findings.append(error("file-row", path, message, place=(table.file, line, 1)))
        return None if ragged else table
