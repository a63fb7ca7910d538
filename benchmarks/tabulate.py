"""How long counting takes, as a multiple of the same group-by written by hand in DuckDB and in pandas, and its memory.

A census-like population in six levels with 2,016 cells is generated (`population.py`). Each way runs in a process of
its own, the ways in turn, and their counts are compared before a ratio is printed. `--full` adds 100 million persons,
and Spark on two cores at a million. Times are the best of the rounds and hold reading and counting, not the imports or
the loading of the spec.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "benchmarks"))

KEY = bytes(range(32))
CAP = 6
GIGABYTE = 1 << 30
LIMITS = {"person": 1.4, "household": 5}
"""What the engine is given of the 4 and 8 GB that a whole process may take at 100 million persons."""


def held(column: str, low: int, high: int, instead: int) -> str:
    """A code as it counts: itself where it is declared, else the one that others count as."""
    return f"CASE WHEN {column} BETWEEN {low} AND {high} THEN {column} ELSE {instead} END"


CODES = (("hhgq", 0, 7, 0), ("votingage", 0, 1, 1), ("hispanic", 0, 1, 0), ("cenrace", 1, 63, 6))
CELLS = ", ".join(f"{held(*code)} AS {code[0]}" for code in CODES)


def by_hand(folder: Path, unit: str) -> int:
    """The group-by that a careful person would write, its result fetched."""
    import duckdb

    start = perf_counter()
    rows = f"read_parquet('{folder}/persons/*.parquet')"
    if unit == "household":
        order = f"CASE WHEN relate = 0 THEN 0 ELSE 1 END, sha256('{KEY.hex()}' || household_id || ':' || person_id)"
        rank = f"row_number() OVER (PARTITION BY household_id ORDER BY {order})"
        rows = f"(SELECT * FROM (SELECT *, {rank} AS place FROM {rows}) WHERE place <= {CAP} OR relate = 17)"
    with tempfile.TemporaryDirectory() as spill:
        connection = duckdb.connect(config={"temp_directory": spill, "preserve_insertion_order": "false"})
        found = connection.sql(f"SELECT block, {CELLS}, count(*) AS n FROM {rows} GROUP BY ALL").to_arrow_table()
    note("seconds", perf_counter() - start)
    return int(found["n"].to_numpy().sum())


def by_pandas(folder: Path, _: str) -> int:
    """The same in pandas; only for persons."""
    import pandas as pd
    import pyarrow.parquet  # noqa: F401 - reading starts with what it needs

    start = perf_counter()
    frame = pd.read_parquet(folder / "persons", columns=["block", *(name for name, *_ in CODES)])
    for name, low, high, instead in CODES:
        frame[name] = frame[name].where(frame[name].between(low, high), instead)
    counted = frame.groupby(["block", *(name for name, *_ in CODES)], observed=True).size()
    note("seconds", perf_counter() - start)
    return int(counted.sum())


def by_margrave(folder: Path, unit: str, engine: str = "duckdb") -> int:
    """Every table of the spec; households are deduplicated, linked and counted too."""
    from release_specs.load import load_spec
    from tabulation.engines.duckdb import duckdb_engine  # noqa: F401 - counting starts with its engine loaded
    from tabulation.tabulate import Work, open_dataset, tabulate

    loaded = load_spec(folder / ("persons.yaml" if unit == "person" else "households.yaml"))
    places = {"persons": str(folder / "persons")}
    if unit == "household":
        places["households"] = str(folder / "households")
    large = (folder / "persons" / "part-00040.parquet").exists()
    memory = int(LIMITS[unit] * GIGABYTE) if large else None
    work = Work(engine, folder, memory, "local[2]")
    start = perf_counter()
    sources = open_dataset(loaded.spec, loaded.domain, places)
    counts = tabulate(loaded.spec, loaded.domain, sources, key=KEY, work=work)
    note("seconds", perf_counter() - start)
    return int(counts["detailed.count@blocks"].dense("nation").sum())


WAYS: dict[str, Callable[[Path, str], int]] = {
    "margrave": by_margrave,
    "spark": lambda folder, unit: by_margrave(folder, unit, "spark"),
    "duckdb": by_hand,
    "pandas": by_pandas,
}
noted: dict[str, float] = {}


def note(name: str, value: float) -> None:
    """Keeps a number for the process that asked."""
    noted[name] = value


def measure(way: str, folder: Path, unit: str) -> dict[str, float]:
    """Runs one way in this process."""
    total = WAYS[way](folder, unit)
    return {
        "seconds": noted["seconds"],
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "total": total,
    }


def apart(way: str, folder: Path, unit: str) -> dict[str, float]:
    """Runs one way in a process of its own."""
    command = [sys.executable, __file__, "--way", way, "--folder", str(folder), "--unit", unit]
    done = subprocess.run(command, capture_output=True, check=True, text=True, env=dict(os.environ))
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(folder: Path, persons: int, unit: str, ways: list[str], rounds: int) -> dict[str, object]:
    """The ways in turn; the best time and the largest memory of each, and ratios."""
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            runs[way].append(apart(way, folder, unit))
    totals = {run["total"] for way in ways for run in runs[way]}
    if len(totals) != 1:
        sys.exit(f"the ways count different numbers of persons: nothing is compared ({unit}, {persons:,})")
    best = {way: min(run["seconds"] for run in runs[way]) for way in ways}
    return {
        "benchmark": "tabulate",
        "unit": unit,
        "persons": persons,
        "seconds": {way: round(time, 2) for way, time in best.items()},
        "margrave_over": {way: round(best["margrave"] / best[way], 2) for way in ways if way != "margrave"},
        "microseconds_a_row": round(best["margrave"] / persons * 1e6, 3),
        "peak_megabytes": {way: round(max(run["megabytes"] for run in runs[way])) for way in ways},
    }


def main() -> None:
    """Prints one line of JSON for each comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="100 million persons and Spark too (half an hour)")
    parser.add_argument("--persons", type=int, nargs="*", help="sizes to run instead")
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--unit", choices=("person", "household"))
    chosen = parser.parse_args()
    if chosen.way:
        print(json.dumps(measure(chosen.way, chosen.folder, chosen.unit)))
        return
    from population import generate

    sizes = chosen.persons or [1_000_000, 10_000_000, *([100_000_000] if chosen.full else [])]
    for persons in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            generate(folder, persons)
            large = persons > 50_000_000
            ways = {
                "person": ["margrave", "duckdb", *([] if large else ["pandas"])],
                "household": ["margrave", *([] if large else ["duckdb"])],
            }
            if chosen.full and persons == 1_000_000:
                ways["person"].append("spark")
            for unit, some in ways.items():
                print(json.dumps(compare(folder, persons, unit, some, 1 if large else 3)), flush=True)


if __name__ == "__main__":
    main()
