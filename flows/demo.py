"""`make demo`: what Margrave does today, on generated microdata, from a written spec to what can be looked at."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pandas as pd

from flows.terminal import OK, say
from release_specs.diagnostics import Severity
from release_specs.load import Loaded, load_spec
from release_specs.reading.resolve import queries_of
from release_specs.summary import summarise
from tabulation.synthesize import GeneratedFile, synthesize

SPEC = Path(__file__).parents[1] / "release_specs" / "examples" / "households.yaml"
OUT = Path("build") / "demo"
RECORDS, SEED, SHOWN_ROWS, BAR = 36_000, 1, 5, 40
DIRT, EDITION, SHOWN_LINES = Fraction(2, 100), "2025", 28


def main() -> int:
    """Checks an example spec, generates its microdata, and shows both."""
    say(f"1. A statistician writes one spec: {_shown(SPEC)}\n\n")
    say("".join(f"     {line}" for line in _excerpt(SPEC)))
    loaded = load_spec(SPEC)
    say(f"\n2. margrave check: {summarise(loaded)}\n\n")
    for item in loaded.diagnostics:
        if item.severity is not Severity.NOTE:
            say(f"     {item.severity}: {item.message}")
    for line in _tables(loaded):
        say(f"     {line}")
    say(f"\n3. margrave synthesize: {RECORDS:,} invented records that satisfy the spec (seed {SEED})\n\n")
    files = synthesize(
        loaded.spec, loaded.domain, records=RECORDS, seed=SEED, out=OUT / "microdata", folder=SPEC.parent
    )
    for file in files:
        _show(file)
    _show_ages(next(file for file in files if file.entity == "persons"))
    say("4. margrave inspect: what a data custodian is told, here about files with two cells in 100 spoiled\n\n")
    _inspect(loaded)
    say(f"The generated microdata are in {OUT / 'microdata'}. No record describes a real person.")
    return OK


def _inspect(loaded: Loaded) -> None:
    """Inspects spoiled microdata; they are generated, so this once the findings may be shown."""
    from tabulation.findings import inspect
    from tabulation.findings_report import write_findings
    from tabulation.tabulate import open_dataset

    spoiled = synthesize(
        loaded.spec,
        loaded.domain,
        records=RECORDS,
        seed=SEED,
        out=OUT / "spoiled",
        form="csv",
        dirt=DIRT,
        folder=SPEC.parent,
    )
    sources = open_dataset(loaded.spec, loaded.domain, {file.entity: str(file.path) for file in spoiled})
    found = inspect(loaded.spec, loaded.domain, sources, edition=EDITION)
    page, _ = write_findings(loaded.spec, found, OUT / "confidential")
    lines = page.read_text(encoding="utf-8").splitlines()
    first = lines.index("## persons")
    say("".join(f"     {line}\n" for line in lines[first : first + SHOWN_LINES]))
    say(f"     ... the whole page: {page}\n\n")


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return path.name


def _excerpt(path: Path) -> Iterator[str]:
    """The lines of the spec that say whom to protect and what to publish."""
    inside = False
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if not line.startswith((" ", "#", "\n")):
            inside = line.startswith(("privacy:", "tables:"))
        if inside and line.strip():
            yield line


def _tables(loaded: Loaded) -> Iterator[str]:
    cells: dict[str, int] = {}
    for query in queries_of(loaded.spec, loaded.domain):
        cells[query.table] = cells.get(query.table, 0) + query.cells
    for name, table in loaded.spec.tables.items():
        by = f" by {', '.join(table.attributes)}" if table.attributes else ""
        what = str(table.ratio or table.of) if table.is_free else f"{table.universe}{by}"
        number = f"{cells[name]:>6,} cells" if name in cells else "      free  "
        yield f"{name:24} {number}  {' and '.join(table.statistics)} of {what}"


def _show(file: GeneratedFile) -> None:
    rows = pd.read_parquet(file.path).head(SHOWN_ROWS)
    say(f"     {file.path}: {file.rows:,} {file.entity}")
    say("".join(f"     {line}\n" for line in rows.to_string(index=False).splitlines()))


def _show_ages(file: GeneratedFile) -> None:
    counts = (pd.read_parquet(file.path)["age"].astype(int) // 10).value_counts().sort_index()
    say("     persons by age")
    for decade, count in counts.items():
        say(f"     {int(str(decade)) * 10:>3}  {'#' * round(BAR * count / counts.max())} {count:,}")
    say("")


if __name__ == "__main__":
    sys.exit(main())
