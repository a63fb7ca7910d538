"""One line about a spec without mistakes: what it publishes and how large that is."""

from __future__ import annotations

from release_specs.diagnostics import Severity
from release_specs.load import Loaded
from release_specs.reading.resolve import queries_of


def summarise(loaded: Loaded) -> str:
    """Tables, queries and cells, and how many warnings there were."""
    queries = list(queries_of(loaded.spec, loaded.domain))
    tables = sum(table.publish for table in loaded.spec.tables.values())
    warnings = sum(item.severity is Severity.WARNING for item in loaded.diagnostics)
    cells = sum(query.cells for query in queries)
    parts = [_number(tables, "table"), _number(len(queries), "query", "queries"), _number(cells, "cell")]
    return f"ok, {_number(warnings, 'warning')}: {', '.join(parts)}"


def _number(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
