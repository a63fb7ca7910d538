"""Writes the rows of an entity to a Parquet or text file, marked as generated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from release_specs.language.microdata import ReadOptions
from release_specs.reading.resolve import group_of
from tabulation.synthetic.arrays import column_arrays, key_arrays, spelled_array
from tabulation.synthetic.dirt import soil
from tabulation.synthetic.marking import Mark, hash_of
from tabulation.synthetic.population import Population
from tabulation.synthetic.streams import Streams
from tabulation.synthetic.variables import Integers, Variable

FORMATS = ("parquet", "csv")
ROW_GROUP = 1 << 20


@dataclass(frozen=True, slots=True)
class Writing:
    """How files are written: the format, how much dirt, and the mark they carry."""

    form: str
    dirt: Fraction
    mark: Mark
    streams: Streams


def write_entity(population: Population, entity: str, path: Path, writing: Writing) -> None:
    """Writes the file of an entity to `path`."""
    table = table_of(population, entity, writing)
    if writing.form == "parquet":
        _write_parquet(table, path, writing.mark)
    else:
        _write_text(table, path, population.meanings.spec.microdata[entity].read)


def table_of(population: Population, entity: str, writing: Writing) -> pa.Table:
    """Keys that are no declared column first, then the declared columns in their order, then those of built groups."""
    declared = population.meanings.spec.microdata[entity]
    keys = key_arrays(population, entity)
    arrays = {name: array for name, array in keys.items() if name not in declared.columns}
    for variable, places in _variables(population, entity):
        if variable.name in keys:
            arrays[variable.name] = keys[variable.name]
            continue
        for name, array in _arrays(variable, places, declared.read, writing):
            arrays.setdefault(name, _soiled(variable, name, array, writing))
    return pa.table(arrays)


def _variables(population: Population, entity: str) -> Iterator[tuple[Variable, Integers]]:
    """What stands in an entity's file: its own columns, and those of groups that are built from its rows."""
    meanings, rows = population.meanings, population.rows[entity]
    for (owner, name), variable in meanings.variables.items():
        if owner == entity:
            yield variable, rows.places[name]
    for (owner, name), variable in meanings.variables.items():
        if meanings.spec.microdata[owner].built_from == entity and owner == group_of(meanings.spec, entity):
            yield variable, population.rows[owner].places[name][rows.parent]


def _arrays(
    variable: Variable, places: Integers, read: ReadOptions, writing: Writing
) -> Iterator[tuple[str, pa.Array]]:
    if writing.form == "parquet" or variable.scale is None:
        yield from column_arrays(variable, places)
        return
    array = spelled_array(variable, places)
    if read.decimal != ".":
        words = pc.replace_substring(array.dictionary, ".", read.decimal)
        array = pa.DictionaryArray.from_arrays(array.indices, words)
    yield variable.file_columns[0], array


def _soiled(variable: Variable, name: str, array: pa.Array, writing: Writing) -> pa.Array:
    if not writing.dirt:
        return array
    return soil(variable, array, writing.dirt, writing.streams.of("dirt", variable.entity, name))


def _write_parquet(table: pa.Table, path: Path, mark: Mark) -> None:
    dictionaries = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
    with path.open("wb") as handle:
        writer = pq.ParquetWriter(
            handle, table.schema, compression="zstd", use_dictionary=dictionaries, store_schema=False
        )
        writer.write_table(table, row_group_size=ROW_GROUP)
        handle.flush()
        writer.add_key_value_metadata(mark.as_metadata(hash_of(path)))
        writer.close()


def _write_text(table: pa.Table, path: Path, read: ReadOptions) -> None:
    words = [word for column in table.columns for word in _words(column)] + table.column_names
    special = any(mark in word for word in words for mark in (read.delimiter, '"', "\n", "\r"))
    options = pa_csv.WriteOptions(
        delimiter=read.delimiter,
        null_string=read.missing[0],
        quoting_style="needed" if special else "none",
        quoting_header="needed" if special else "none",
    )
    pa_csv.write_csv(table, path, options)
    if read.encoding.lower().replace("_", "-") not in ("utf-8", "utf8"):
        path.write_bytes(path.read_bytes().decode("utf-8").encode(read.encoding, "replace"))


def _words(column: pa.ChunkedArray) -> list[str]:
    if not pa.types.is_dictionary(column.type):
        return []
    return [word for chunk in column.chunks for word in chunk.dictionary.to_pylist()]
