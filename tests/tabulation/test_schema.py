"""The schema in pandera's words: structure is checked by it, and its record rules are what the expressions do."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pandera.errors import SchemaErrors

from release_specs.load import Loaded, load_spec
from release_specs.meanings import NOT_APPLICABLE, Meanings
from tabulation.engines.duckdb import duckdb_engine
from tabulation.errors import MicrodataError
from tabulation.numbers import ABOVE, BELOW
from tabulation.reading import MISSING, OUTSIDE, probed
from tabulation.records import readings_of
from tabulation.rows import Context
from tabulation.schema import record_schema, structure_schema
from tabulation.sources import open_sources
from tabulation.tabulate import open_dataset
from tests.tabulation.test_engines import EXAMPLES, dirty
from tests.tabulation.town import load_town

ODD = ("", " ", "NA", "x", "-9", "-9.0", "0", " 1 ", "1.0", "007", "1e2", "99", "99.4", "1,5", "-0", "2026-02-30", "N")


def failing_rows(loaded: Loaded, entity: str, frame: pd.DataFrame) -> dict[tuple[str, str], set[int]]:
    """For each column and rule of the schema the rows that break it."""
    found: dict[tuple[str, str], set[int]] = {}
    try:
        record_schema(loaded.spec, loaded.domain, entity).validate(frame, lazy=True)
    except SchemaErrors as faults:
        for column, check, index in faults.failure_cases[["column", "check", "index"]].itertuples(index=False):
            found.setdefault((column, check), set()).add(int(index))
    return found


def states(loaded: Loaded, entity: str, path: Path, folder: Path) -> dict[str, list[int]]:
    """For each column with one value the state of every cell, as the expressions see it."""
    declared = loaded.spec.microdata[entity]
    files = {name: str(path) for name, facts in loaded.spec.microdata.items() if facts.built_from is None}
    with duckdb_engine(folder, threads=1) as engine:
        sources = open_sources(loaded.spec, files)
        context = Context(Meanings(loaded.spec, loaded.domain), engine, sources, bytes(32))
        columns = [name for name, column in declared.columns.items() if column.up_to is None]
        nodes = {(entity, name) for name in columns}
        cells = {name: (f"c{index}", sources[entity].kinds[name]) for index, name in enumerate(columns)}
        readings = readings_of(context, entity, {entity: nodes}, cells, told=True)
        table = probed(engine, engine.cells(sources[entity], [*columns, "row_number"]), readings)
        found = engine.fetch(table).sort_by(f"c{len(columns)}")
    return {reading.base.node[1]: found[reading.place].to_pylist() for reading in readings}


@pytest.mark.parametrize("name", ["town", "households", "acs"])
def test_the_record_rules_of_the_schema_are_those_of_the_expressions(name: str, tmp_path: Path) -> None:
    loaded = load_town(tmp_path) if name == "town" else load_spec(EXAMPLES / f"{name}.yaml")
    entity = {"town": "people", "households": "persons", "acs": "persons"}[name]
    columns = [c for c, facts in loaded.spec.microdata[entity].columns.items() if facts.up_to is None]
    frame = pd.DataFrame({column: list(ODD) for column in columns}, dtype=object)
    path = tmp_path / "odd.parquet"
    every = {c: list(ODD) for e in loaded.spec.microdata.values() for c in _file_columns(e)}
    pq.write_table(pa.table({**every, "row_number": list(range(len(ODD)))}), path)
    found, failing = states(loaded, entity, path, tmp_path), failing_rows(loaded, entity, frame)
    for column in columns:
        missing = {row for row, state in enumerate(found[column]) if state == MISSING}
        outside = {row for row, state in enumerate(found[column]) if state in (OUTSIDE, BELOW, ABOVE)}
        assert failing.get((column, "stated"), set()) == missing, column
        assert failing.get((column, "in_domain"), set()) == outside, column
    assert any(state == NOT_APPLICABLE for column in columns for state in found[column])


def _file_columns(entity: object) -> list[str]:
    names = [*(entity.key or ()), *(entity.group or {}).values()]
    return [*names, *(part for name, column in entity.columns.items() for part in column.columns or (name,))]


def test_the_structure_lists_every_column_that_is_read_and_ignores_the_others() -> None:
    loaded = load_spec(EXAMPLES / "births.yaml")
    schema = structure_schema(loaded.spec, "births")
    wanted = {"canton", "mother_age", "sex", "plurality", "gestation", "weight", "birth_id", "mother_id"}
    assert set(schema.columns) == wanted
    assert schema.strict is False


def test_a_missing_column_is_named_with_the_table_that_needs_it(tmp_path: Path) -> None:
    loaded, files = dirty("schools", "csv", tmp_path)
    text = files["pupils"].read_text(encoding="utf-8").replace("grade", "klasse", 1)
    files["pupils"].write_text(text, encoding="utf-8")
    with pytest.raises(MicrodataError) as caught:
        open_dataset(loaded.spec, loaded.domain, {name: str(path) for name, path in files.items()})
    said = "the file of 'pupils' has no column 'grade' (needed by tables.pupils_by_grade); add it, or mend the spec"
    assert (caught.value.code, caught.value.column, str(caught.value)) == ("column-missing", "grade", said)


def test_an_entity_that_is_not_given_or_not_known_is_told(tmp_path: Path) -> None:
    loaded, files = dirty("births", "parquet", tmp_path)
    place = str(files["births"])
    for places, code in (({}, "no-file"), ({"births": place, "x": place}, "unknown-entity")):
        with pytest.raises(MicrodataError) as caught:
            open_dataset(loaded.spec, loaded.domain, places)
        assert caught.value.code == code
    with pytest.raises(MicrodataError) as caught:
        open_dataset(loaded.spec, loaded.domain, {"births": place, "mothers": place})
    assert str(caught.value) == "'mothers' are built from 'births' and have no file"
