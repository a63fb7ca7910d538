"""How long generating a million records takes, as a multiple of drawing as many numbers and writing the same files.

The floor draws one random integer for every cell and writes the tables that `synthesize` wrote, with the same
settings; both ways are timed in turn, and the tables read back are compared before a ratio is printed.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from release_specs.load import load_spec  # noqa: E402
from tabulation.synthesize import synthesize  # noqa: E402

SPEC = ROOT / "release_specs" / "examples" / "households.yaml"
RECORDS = 1_000_000
ROUNDS = 3


def read(path: Path) -> pa.Table:
    """A file with its texts as dictionaries, which is how they are written fastest."""
    texts = [field.name for field in pq.read_schema(path) if field.type == pa.string()]
    return pq.read_table(path, read_dictionary=texts)


def floor(tables: dict[str, pa.Table], folder: Path) -> None:
    """Draws a number for each cell and writes tables that are there already."""
    random = np.random.Generator(np.random.SFC64(1))
    for name, table in tables.items():
        for _ in range(table.num_columns):
            random.integers(0, 2**32, table.num_rows, dtype=np.uint32)
        texts = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
        pq.write_table(
            table, folder / name, compression="zstd", use_dictionary=texts, store_schema=False, row_group_size=1 << 20
        )


def seconds(work: Callable[[], object]) -> float:
    """How long a piece of work takes."""
    start = perf_counter()
    work()
    return perf_counter() - start


def main() -> None:
    """Times both ways and prints the ratio."""
    loaded = load_spec(SPEC)
    with tempfile.TemporaryDirectory() as name:
        made, copied = Path(name, "made"), Path(name, "copied")
        copied.mkdir()

        def generate(records: int = RECORDS) -> None:
            synthesize(loaded.spec, loaded.domain, records=records, seed=1, out=made, folder=SPEC.parent)

        generate(1000)  # imports and caches are not what is measured
        generate()
        tables = {path.name: read(path) for path in sorted(made.glob("*.parquet"))}
        pairs = [(seconds(generate), seconds(lambda: floor(tables, copied))) for _ in range(ROUNDS)]
        if any(not read(copied / file).equals(table) for file, table in tables.items()):
            sys.exit("the floor wrote other tables: nothing is compared")
    print(
        json.dumps(
            {
                "benchmark": "synthesize",
                "spec": SPEC.stem,
                "records": RECORDS,
                "rows": sum(table.num_rows for table in tables.values()),
                "cells": sum(table.num_rows * table.num_columns for table in tables.values()),
                "seconds": round(median(ours for ours, _ in pairs), 3),
                "floor_seconds": round(median(theirs for _, theirs in pairs), 3),
                "ratio": round(median(ours / theirs for ours, theirs in pairs), 2),
            }
        )
    )


if __name__ == "__main__":
    main()
