"""From places to what stands in a file: one Arrow array for each column of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import numpy as np
import pandas as pd
import pyarrow as pa

from release_specs.language.values import write_number
from tabulation.synthetic.population import Population
from tabulation.synthetic.variables import NOT_APPLICABLE, NOTHING, Integers, Variable, as_point

UNIX_EPOCH = date(1970, 1, 1).toordinal()


def column_arrays(variable: Variable, places: Integers) -> Iterator[tuple[str, pa.Array]]:
    """The file's columns of one variable with their values."""
    if variable.column.separator is not None and places.ndim > 1:
        yield variable.name, _joined(variable, places)
        return
    answers = places.reshape(len(places), -1)
    for number, name in enumerate(variable.file_columns):
        given = number < answers.shape[1]
        yield name, value_array(variable, answers[:, number] if given else np.full(len(places), NOTHING))


def value_array(variable: Variable, places: Integers) -> pa.Array:
    """Codes and areas as text, numbers as numbers, days as days; all as text where no value is spelled unlike them."""
    if variable.scale is None:
        return text_array(variable.texts, places, _no_value(variable))
    no_value = _no_value(variable)
    values = scale_values(variable, places)
    if no_value is None:
        return pa.array(values, mask=places < 0).cast(_arrow_type(variable))
    told = _told_as(variable, no_value)
    if told is None:
        return spelled_array(variable, places)
    values[places == NOT_APPLICABLE] = told
    return pa.array(values, mask=places == NOTHING).cast(_arrow_type(variable))


def scale_values(variable: Variable, places: Integers) -> np.typing.NDArray[np.int32 | np.int64 | np.float64]:
    """The numbers at these places, or the days since 1970; floats only where the step is a fraction."""
    steps = places.astype(np.int64) + variable.origin
    if variable.is_days:
        return (steps - UNIX_EPOCH).astype(np.int32)
    step = variable.ruler.step
    whole = steps * np.int64(step.numerator)
    return whole if step.denominator == 1 else whole / np.float64(step.denominator)


def spelled_array(variable: Variable, places: Integers) -> pa.Array:
    """The values of a scale written out as text, exactly."""
    index, found = pd.factorize(np.maximum(places, 0))
    points = [variable.ruler.value(int(place)) for place in found]
    texts = [point.isoformat() if isinstance(point, date) else write_number(point) for point in points]
    return text_array(tuple(texts), np.where(places < 0, places, index), _no_value(variable))


def text_array(texts: tuple[str, ...], places: Integers, no_value: str | None) -> pa.Array:
    """Places of a list of texts, as a dictionary array; no value is written as declared, or left empty."""
    words = texts if no_value is None else (*texts, no_value)
    index = places.astype(np.int32)
    if no_value is not None:
        index[index == NOT_APPLICABLE] = len(texts)
    return pa.DictionaryArray.from_arrays(pa.array(index, mask=index < 0), pa.array(words, type=pa.string()))


def key_arrays(population: Population, entity: str) -> dict[str, pa.Array]:
    """The identifiers of a row and of its group: whole numbers from 1; within the group if the key names it too."""
    declared, rows = population.meanings.spec.microdata[entity], population.rows[entity]
    keys, links = declared.key or (), set((declared.group or {}).values())
    own = rows.position if links & set(keys) else np.arange(rows.count)
    numbers = {name: own for name in keys if name not in declared.columns or declared.columns[name].integer}
    numbers |= dict.fromkeys(links, rows.parent)
    return {name: pa.array(found.astype(np.int64) + 1) for name, found in numbers.items()}


def _no_value(variable: Variable) -> str | None:
    return variable.column.not_applicable[0] if variable.column.not_applicable else None


def _told_as(variable: Variable, spelling: str) -> int | float | None:
    """A spelling of no value as the column's numbers or days would hold it; None where they cannot."""
    point = as_point(spelling)
    if isinstance(point, date):
        return point.toordinal() - UNIX_EPOCH if variable.is_days else None
    if point is None or variable.is_days:
        return None
    if variable.ruler.step.denominator == 1:
        return int(point) if point.denominator == 1 else None
    return float(point)


def _arrow_type(variable: Variable) -> pa.DataType:
    if variable.is_days:
        return pa.date32()
    return pa.int64() if variable.ruler.step.denominator == 1 else pa.float64()


def _joined(variable: Variable, places: Integers) -> pa.Array:
    """All answers of a row in one text."""
    separator = variable.column.separator or ""
    index = np.zeros(len(places), dtype=np.int64)
    for answers in places.T:
        index, _ = pd.factorize(index * (len(variable.texts) + 2) + answers - NOTHING)
    _, examples = np.unique(index, return_index=True)
    texts = tuple(separator.join(variable.texts[place] for place in row if place >= 0) for row in places[examples])
    return text_array(texts, np.where(places[:, 0] < 0, places[:, 0], index), _no_value(variable))
