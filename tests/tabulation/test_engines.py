"""Every engine and every kind of source gives the counts of the plain reference, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import ibis.expr.types as ir
import pyarrow as pa
import pytest

from release_specs.load import Loaded, load_spec, load_text
from release_specs.tallies import tallies_of
from tabulation.counts import ExactCounts
from tabulation.engines.duckdb import duckdb_engine
from tabulation.engines.engine import Engine
from tabulation.engines.spark import Spark, spark_engine
from tabulation.sources import Source
from tabulation.synthesize import synthesize
from tests.tabulation.agreement import as_cells, counted, differences
from tests.tabulation.town import load_town

EXAMPLES = Path(__file__).parents[2] / "release_specs" / "examples"
NAMES = ("town", "acs", "births", "detailed_race", "households", "redistricting_2020", "schools")
EDITION = "2026"
SHARED = Path(__file__).parents[3] / "shared" / "data"


def dirty(name: str, form: str, folder: Path, *, records: int = 400) -> tuple[Loaded, dict[str, Path]]:
    """A spec and generated files that satisfy it, but for three cells in a hundred."""
    loaded = load_town(folder) if name == "town" else load_spec(EXAMPLES / f"{name}.yaml")
    public = folder if name == "town" else EXAMPLES
    files = synthesize(
        loaded.spec,
        loaded.domain,
        records=records,
        seed=11,
        out=folder / "made",
        form=form,
        dirt=Fraction(3, 100),
        folder=public,
    )
    return loaded, {file.entity: file.path for file in files}


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("name", NAMES)
def test_duckdb_counts_every_example_like_the_plain_reference(name: str, form: str, tmp_path: Path) -> None:
    loaded, files = dirty(name, form, tmp_path)
    found = counted(loaded, files, tmp_path, edition=EDITION)
    assert differences(loaded, files, found, edition=EDITION) == {}


def test_the_comparison_would_notice_one_record(tmp_path: Path) -> None:
    loaded, files = dirty("births", "csv", tmp_path)
    found = counted(loaded, files, tmp_path, edition=EDITION)
    lines = files["births"].read_bytes().splitlines(keepends=True)
    files["births"].write_bytes(b"".join(lines[:-1]))
    assert differences(loaded, files, found, edition=EDITION) != {}


class Watched:
    """An engine that notes how many rows are fetched."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.fetched: list[int] = []

    def cells(self, source: Source, columns: Sequence[str]) -> ir.Table:
        return self.engine.cells(source, columns)

    def lookup(self, columns: dict[str, object]) -> ir.Table:
        return self.engine.lookup(columns)

    def keep(self, table: ir.Table) -> ir.Table:
        return self.engine.keep(table)

    def fetch(self, table: ir.Table) -> pa.Table:
        found = self.engine.fetch(table)
        self.fetched.append(found.num_rows)
        return found


@pytest.mark.parametrize("name", ["acs", "births", "households", "town"])
def test_no_more_than_the_declared_cells_is_fetched(name: str, tmp_path: Path) -> None:
    loaded, files = dirty(name, "parquet", tmp_path, records=3000)
    watched: list[Watched] = []

    @contextmanager
    def watching(folder: Path) -> Iterator[Watched]:
        with duckdb_engine(folder) as engine:
            watched.append(Watched(engine))
            yield watched[0]

    counted(loaded, files, tmp_path, edition=EDITION, engine=watching)
    tallies = tallies_of(loaded.spec, loaded.domain)
    cells = sum(tally.cells * tally.areas(tally.levels[-1] if tally.levels else None) for tally in tallies)
    one_for_no_cell = len(watched[0].fetched)
    assert sum(watched[0].fetched) <= cells + one_for_no_cell
    assert len(watched[0].fetched) <= len(tallies)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    """One Spark session on two cores; it takes its time to start."""
    with spark_engine(tmp_path_factory.mktemp("spark"), master="local[2]") as engine:
        yield engine


def counted_by_spark(spark: Spark, loaded: Loaded, files: dict[str, Path], folder: Path) -> dict[str, ExactCounts]:
    @contextmanager
    def same(_: Path) -> Iterator[Spark]:
        yield spark
        spark.forget()

    return counted(loaded, files, folder, edition=EDITION, engine=same)


def test_spark_counts_like_the_plain_reference(spark: Spark, tmp_path: Path) -> None:
    """One test for two files, so that only one worker starts Spark; all examples are a slow test."""
    for name, form in (("births", "csv"), ("households", "parquet")):
        (tmp_path / name).mkdir()
        loaded, files = dirty(name, form, tmp_path / name)
        found = counted_by_spark(spark, loaded, files, tmp_path)
        assert differences(loaded, files, found, edition=EDITION) == {}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("name", NAMES)
def test_spark_counts_every_example_like_the_plain_reference(
    spark: Spark, name: str, form: str, tmp_path: Path
) -> None:
    loaded, files = dirty(name, form, tmp_path)
    found = counted_by_spark(spark, loaded, files, tmp_path)
    assert differences(loaded, files, found, edition=EDITION) == {}


@pytest.mark.parametrize("name", ["households_mi", "acs_ma"])
def test_real_microdata_are_counted_like_the_plain_reference(name: str, tmp_path: Path) -> None:
    if not SHARED.exists():
        pytest.skip("the sample microdata are not beside this checkout")
    if name == "acs_ma":
        loaded, files = load_spec(EXAMPLES / "acs.yaml"), {"persons": SHARED / "acs_excerpts" / "ma2019.csv"}
    else:
        loaded = load_spec(EXAMPLES / "households.yaml")
        files = {entity: SHARED / name / f"{entity}.csv" for entity in ("persons", "households")}
    found = counted(loaded, files, tmp_path, edition=EDITION)
    assert differences(loaded, files, found, edition=EDITION) == {}


RESPONSES = """
margrave: 1
release: {name: answers, title: Answers}
microdata:
  people:
    key: id
    defaults: {outside: leave_out, missing: leave_out}
    columns:
      zone: {area: zones, outside: {count_as: B}, missing: {count_as: B}}
      said: {codes: [yes, no], applies_to: {age: 16..}, not_applicable: N}
      age:  {integer: 0..99, clip: 0..99}
geography: {zones: {levels: [land, zone], areas: {A: North, B: South}}}
privacy: {protect: people, neighbours: replace, budget: {epsilon: 1}}
tables:
  answers: {count: people, by: [said], at: [zone], mechanism: randomised_response}
  ages: {sum: age, of: people, at: [zone]}
exact: [{count: people, at: [zone], from: microdata, because: It was announced.}]
"""


def test_every_record_answers_a_randomised_response(tmp_path: Path) -> None:
    loaded = load_text(RESPONSES, file="x.yaml", folder=tmp_path)
    (tmp_path / "people.csv").write_text(
        "id,zone,said,age\n1,A,yes,20\n2,A,no,15\n3,A,,30\n4,B,N,12\n5,C,yes,40\n6,B,no,17\n", encoding="utf-8"
    )
    files = {"people": tmp_path / "people.csv"}
    found = counted(loaded, files, tmp_path)
    assert found["answers.count@zones"].dense("zone").tolist() == [[1, 0, 1, 1], [1, 1, 0, 1]]
    assert found["ages.sum(age)@zones"].dense("zone").tolist() == [[65], [69]]
    assert found["exact.total1@zones"].dense("zone").tolist() == [[3], [3]]
    assert differences(loaded, files, found) == {}


def test_counts_come_in_blocks_of_areas_and_add_up_the_levels(tmp_path: Path) -> None:
    loaded, files = dirty("town", "parquet", tmp_path)
    counts = counted(loaded, files, tmp_path, edition=EDITION)["homes_by_size.count@zones"]
    whole = counts.dense("quarter")
    blocks = list(counts.blocks("quarter", cells=2 * counts.tally.cells))
    assert [first for first, _ in blocks] == [0, 2, 4]
    assert sum(block.shape[0] for _, block in blocks) == whole.shape[0]
    assert all((block == whole[first : first + len(block)]).all() for first, block in blocks)
    assert (whole.sum(axis=0) == counts.dense("town")[0]).all()
    assert sum(as_cells(counts).values()) == whole.sum()


def test_exact_counts_never_show_a_number(tmp_path: Path) -> None:
    loaded, files = dirty("town", "parquet", tmp_path)
    counts = counted(loaded, files, tmp_path, edition=EDITION)["homes_by_size.count@zones"]
    assert "array" not in repr(counts)
    assert "keys=" not in repr(counts)
    assert "array" not in repr(counts.smallest)
