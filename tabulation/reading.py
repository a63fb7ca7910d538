"""From cells to places: every declared column of a source, read by the rules of `docs/tabulation.md`, section 2.

Reading takes two steps. A cell is *probed*: it becomes a place, or one of the states below. Then it is *settled* by
what the spec declares for its state. The states are what a custodian is told about; the places are what is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import and_, or_

import ibis
import ibis.expr.types as ir
import numpy as np

from release_specs.language.microdata import Entity, Treatment
from release_specs.meanings import NOT_APPLICABLE, NOT_STATED, Base
from tabulation.engines.engine import Engine
from tabulation.logic import FALSE, NOTHING, surely
from tabulation.numbers import (
    ABOVE,
    BELOW,
    MOST_DIGITS,
    SHORT,
    Ruler,
    day_place,
    days_of,
    is_days,
    number_at,
    real_place,
    text_parts,
    text_place,
    whole_place,
)
from tabulation.sources import Kind, Source, decodable_in, spelling_of, spellings_of

MISSING, OUTSIDE = -5, -6
LONGEST_ANSWERS = 100_000
"""A longer list of answers is no list; taking it apart would cost more than a record may."""
FEW = 8
"""So many codes are compared one after another; more are looked up."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One declared column: where its cells are and what becomes of them. `place` names the column that it makes.

    `told` asks that every state be told apart, for a custodian who looks at it.
    """

    base: Base
    entity: Entity
    source: Source
    kinds: tuple[Kind, ...]
    cells: tuple[str, ...]
    place: str
    told: bool = False

    @property
    def is_area(self) -> bool:
        """Whether it holds areas, whose spelling is never touched."""
        return self.base.column is not None and self.base.column.area is not None

    @property
    def is_numeric(self) -> bool:
        """Whether the file stores numbers, which match codes by their value."""
        return all(kind in (Kind.WHOLE, Kind.EXACT, Kind.REAL) for kind in self.kinds)

    @property
    def kind(self) -> Kind:
        """How its cells are stored; those of several columns that are stored in different ways are read as text."""
        return self.kinds[0] if len(set(self.kinds)) == 1 else Kind.TEXT

    @property
    def places(self) -> tuple[str, ...]:
        """The columns that it makes: one, or one for each answer."""
        number = self.base.answers
        return (self.place,) if number is None else tuple(f"{self.place}_{index}" for index in range(number))

    def treatment(self, word: str) -> Treatment:
        """What happens to a value that is `missing` or `outside`."""
        found = getattr(self.base.column, word) or getattr(self.entity.defaults, word)
        return found if isinstance(found, Treatment) else Treatment("leave_out")

    def place_for(self, word: str) -> int:
        """The place of values that are `missing` or `outside`, where it is one for all."""
        rule = self.treatment(word)
        return self.base.place_of_text(rule.code or "") if rule.kind == "count_as" else NOT_STATED


def read_columns(engine: Engine, cells: ir.Table, readings: Sequence[Reading]) -> ir.Table:
    """The table with one place column more for each reading; the cells stay."""
    return settled(probed(engine, cells, readings), readings)


def probed(engine: Engine, cells: ir.Table, readings: Sequence[Reading]) -> ir.Table:
    """The table with a place or a state for every cell."""
    texts = {_text(place): _as_text(cells, reading, index) for reading in readings for index, place in _all(reading)}
    table = cells.mutate(**texts) if texts else cells
    parts: dict[str, ir.Value] = {}
    for reading in readings:
        table = _looked_up(engine, table, reading)
        parts |= _number_parts(table, reading)
    table = table.mutate(**parts) if parts else table
    probes = {place: _probe(table, reading, place) for reading in readings for _, place in _all(reading)}
    return table.mutate(**probes).drop(*texts, *parts) if probes else table


def _number_parts(table: ir.Table, reading: Reading) -> dict[str, ir.Value]:
    """Texts that spell numbers, taken apart once."""
    name, scale = _text(reading.place), reading.base.scale
    if scale is None or is_days(scale) or not isinstance(table[name], ir.StringValue):
        return {}
    found = text_parts(table[name], Ruler.of(reading.base, scale), reading.entity.read.decimal)
    return {f"{name}_{index}": part for index, part in enumerate(found)}


def _all(reading: Reading) -> list[tuple[int, str]]:
    return list(enumerate(reading.places))


def _text(place: str) -> str:
    return f"{place}_text"


def _as_text(cells: ir.Table, reading: Reading, index: int) -> ir.Value:
    """A cell as it is compared: trimmed and respelled text, or a number where the file stores numbers."""
    column = reading.base.column
    separator = column.separator if column is not None and column.up_to is not None else None
    place = 0 if separator is not None else index
    cell, kind = cells[reading.cells[place]], reading.kinds[place]
    respelled = column.read_as if column is not None else None
    if reading.kind in (Kind.WHOLE, Kind.REAL, Kind.DAY) and not respelled and separator is None:
        return cell
    text = text_of(cell, kind)
    if separator is not None:
        between = spelling_of(reading.source, separator) or separator
        readable = text.length() <= LONGEST_ANSWERS
        if (pattern := decodable_in(reading.source)) is not None:
            readable = readable & text.re_search(pattern)
        text = readable.ifelse(text, ibis.null("string"))
        text = text.replace(_SEPARATED, "").replace(between, _SEPARATED).split(_SEPARATED)[index]
    if not reading.is_area:
        text = text.strip()
    mark = reading.entity.read.decimal if reading.base.scale is not None else "."
    pairs = [
        (spelled, after)
        for old, new in (respelled or {}).items()
        if (spelled := spelling_of(reading.source, old)) is not None
        and (after := spelling_of(reading.source, new.replace(".", mark))) is not None
    ]
    return text.cases(*pairs, else_=text) if pairs else text


_SEPARATED = "\ue001"


def text_of(cell: ir.Value, kind: Kind) -> ir.StringColumn:
    """A cell as text: whole numbers are their digits, whatever type holds them."""
    if kind is not Kind.REAL:
        return cell if kind in (Kind.TEXT, Kind.EXACT) else cell.cast("string")
    whole = whole_number(cell)
    return whole.notnull().ifelse(whole.cast("string"), cell.cast("string"))


def whole_number(cell: ir.NumericColumn) -> ir.IntegerColumn:
    """The whole number that a cell holds; null for fractions, "not a number" and what 64 bits do not hold."""
    if not isinstance(cell, ir.FloatingValue):
        return cell
    near = cell.try_cast("int64")
    return (near.cast("float64") == cell).ifelse(near, NOTHING)


def _looked_up(engine: Engine, table: ir.Table, reading: Reading) -> ir.Table:
    """Adds the place of each text (or number) of a long list of codes, by a join."""
    base = reading.base
    if base.scale is not None or len(base.codes) <= FEW:
        return table
    for _, place in _all(reading):
        text = table[_text(place)]
        words: Sequence[str | int | None]
        places: Sequence[int]
        if isinstance(text, ir.StringValue) and not reading.is_numeric:
            words, places = spellings_of(reading.source, base.codes), range(len(base.codes))
        elif isinstance(text, ir.StringValue):
            known = _numeric_words(reading)
            words, places = list(known), list(known.values())
        else:
            numbers = whole_codes(base.codes, exactly=reading.is_area)
            if _run_of(numbers) is not None:
                continue
            words, places = list(numbers), list(numbers.values())
            text = whole_number(text)
        right = engine.lookup({"word": words, "place": np.array(places, np.int64)}).rename(
            **{f"{place}_word": "word", f"{place}_found": "place"}
        )
        table = table.left_join(right, text == right[f"{place}_word"]).drop(f"{place}_word")
    return table


def _numeric_words(reading: Reading) -> dict[str, int]:
    """The texts that numbers out of a file are compared with: codes as declared, and as whole numbers."""
    numbers = whole_codes(reading.base.codes, exactly=reading.is_area)
    return {str(number): place for number, place in numbers.items()} | reading.base.place_of


def whole_codes(codes: Sequence[str], *, exactly: bool) -> dict[int, int]:
    """The place of each code that is a whole number; `exactly` asks for codes that are spelled as numbers are."""
    found: dict[int, int] = {}
    numbers = {place: number for place, code in enumerate(codes) if (number := number_at(code)) is not None}
    wholes = {place: int(number) for place, number in numbers.items() if number.denominator == 1}
    for spelled_so in (True, False)[: 1 if exactly else 2]:
        for place, whole in wholes.items():
            if not spelled_so or str(whole) == codes[place]:
                found.setdefault(whole, place)
    return found


def _run_of(numbers: dict[int, int]) -> int | None:
    """How far places lie below whole numbers where both run alike; None where they do not."""
    shifts = {number - place for number, place in numbers.items()}
    return shifts.pop() if len(shifts) == 1 and len(numbers) == max(numbers) - min(numbers) + 1 else None


def _probe(table: ir.Table, reading: Reading, place: str) -> ir.IntegerColumn:
    cell = table[_text(place)]
    if is_direct(reading):
        return _code_probe(table, reading, place, ibis.literal(reading.place_for("missing"), "int64"))
    found = (
        _number_probe(table, reading) if reading.base.scale is not None else _code_probe(table, reading, place, NOTHING)
    )
    unread = MISSING if reading.base.scale is not None else _unknown(cell, reading)
    elsewise = [(_is_missing(cell, reading), MISSING)]
    if words := _not_applicable(reading):
        elsewise.insert(0, (_is_not_applicable(table, reading, place, words), NOT_APPLICABLE))
    return ibis.cases(*elsewise, else_=found.fill_null(unread)).cast("int64")


def is_direct(reading: Reading) -> bool:
    """Whether a cell is a code or anything else: missing values and those outside become the same."""
    same = reading.place_for("missing") == reading.place_for("outside")
    spelled_like_one = any(word in reading.base.codes for word in reading.entity.read.missing)
    plain = reading.base.scale is None and reading.base.answers is None and not reading.told
    return plain and same and not _not_applicable(reading) and not spelled_like_one


def _not_applicable(reading: Reading) -> tuple[str, ...]:
    column = reading.base.column
    return (column.not_applicable or ()) if column is not None else ()


def _is_missing(cell: ir.Value, reading: Reading) -> ir.BooleanValue:
    missing = cell.isnull() | _says(cell, reading, reading.entity.read.missing)
    if isinstance(cell, ir.FloatingValue):
        missing = missing | cell.isnan()
    return missing | (cell == "") if isinstance(cell, ir.StringValue) else missing


def _is_not_applicable(table: ir.Table, reading: Reading, place: str, words: Sequence[str]) -> ir.BooleanValue:
    """Whether a cell holds the not-applicable code; where numbers are declared it is compared as a number."""
    says = _says(table[_text(place)], reading, words)
    parts = [f"{_text(place)}_{part}" for part in range(3)]
    numbers = [number for word in words if (number := number_at(word)) is not None]
    if parts[0] not in table.columns or reading.base.scale is None or not numbers:
        return says
    whole, units, real = (table[part] for part in parts)
    unit = 10 ** (Ruler.of(reading.base, reading.base.scale).decimals + 1)
    short = [int(number) for number in numbers if number.denominator == 1 and abs(number) < 10**SHORT]
    longer = [int(number * unit) for number in numbers if (number * unit).denominator == 1]
    longer = [number for number in longer if abs(number) < 10**MOST_DIGITS]
    tests = [real.isin([float(number) for number in numbers])]
    tests += [whole.isin(short)] if short else []
    tests += [units.isin(longer)] if longer else []
    return says | surely(reduce(or_, (surely(test) for test in tests)))


def _says(cell: ir.Value, reading: Reading, words: Sequence[str]) -> ir.BooleanValue:
    """Whether a cell is one of some declared words, as it is spelled; numbers out of a file are compared as such."""
    test = FALSE
    if isinstance(cell, ir.StringValue):
        spelled = [text for word in words if (text := spelling_of(reading.source, word)) is not None]
        test = cell.isin(spelled) if spelled else FALSE
    elif isinstance(cell, ir.NumericValue):
        numbers = [_literal(number) for word in words if (number := number_at(word)) is not None]
        test = cell.isin(numbers) if numbers else FALSE
    elif isinstance(cell, ir.DateValue):
        test = cell.cast("string").isin(list(words)) if words else FALSE
    return surely(test)


def _literal(number: Fraction) -> int | float:
    return int(number) if number.denominator == 1 else float(number)


def _unknown(cell: ir.Value, reading: Reading) -> ir.IntegerValue | int:
    """The state of a text that is none of the codes: outside, or missing where its bytes are no text."""
    pattern = decodable_in(reading.source)
    same = reading.place_for("missing") == reading.place_for("outside")
    if pattern is None or same or not isinstance(cell, ir.StringValue):
        return OUTSIDE
    return cell.re_search(pattern).ifelse(OUTSIDE, MISSING)


def _number_probe(table: ir.Table, reading: Reading) -> ir.IntegerColumn:
    cell, scale = table[_text(reading.place)], reading.base.scale
    if scale is None:
        raise TypeError(f"'{reading.base.node[1]}' has codes")
    if is_days(scale):
        kind = Kind.TEXT if isinstance(cell, ir.StringValue) else Kind.DAY
        return day_place(days_of(cell, kind), reading.base)
    ruler = Ruler.of(reading.base, scale)
    if isinstance(cell, ir.StringValue):
        whole, units, real = (table[f"{_text(reading.place)}_{part}"] for part in range(3))
        return text_place(whole, units, real, ruler)
    return real_place(cell, ruler) if isinstance(cell, ir.FloatingValue) else whole_place(cell, ruler)


def _code_probe(table: ir.Table, reading: Reading, place: str, instead: ir.IntegerScalar) -> ir.IntegerColumn:
    """The place of a code; `instead` where the cell is none of them."""
    cell, base = table[_text(place)], reading.base
    joined = f"{place}_found"
    if joined in table.columns:
        return table[joined] if instead is NOTHING else table[joined].fill_null(instead)
    if isinstance(cell, ir.StringValue) and reading.is_numeric:
        return cell.cases(*_numeric_words(reading).items(), else_=instead)
    if isinstance(cell, ir.StringValue):
        words = [(spelling_of(reading.source, code), index) for index, code in enumerate(base.codes)]
        return cell.cases(*((word, index) for word, index in words if word is not None), else_=instead)
    numbers = whole_codes(base.codes, exactly=reading.is_area)
    value = whole_number(cell)
    shift = _run_of(numbers) if numbers else None
    if shift is not None:
        first, last = min(numbers), max(numbers)
        return value.between(first, last).ifelse(value - shift if shift else value, instead)
    return value.cases(*numbers.items(), else_=instead) if numbers else instead


def settled(table: ir.Table, readings: Sequence[Reading]) -> ir.Table:
    """The table with states replaced by what the spec declares for them: places, not stated, not applicable."""
    table = table.mutate(
        **{r.place: _settle(table[r.place], r) for r in readings if r.base.answers is None and not is_direct(r)}
    )
    for reading in readings:
        if reading.base.answers is not None:
            table = _with_answers(table, reading)
    return table


def _settle(state: ir.IntegerColumn, reading: Reading) -> ir.IntegerColumn:
    outside, size = reading.treatment("outside"), reading.base.scale.size if reading.base.scale is not None else None
    if outside.kind == "nearest" and size is not None:
        below, above = 0, size - 1
    else:
        below = above = reading.place_for("outside")
    pairs = [(MISSING, reading.place_for("missing")), (OUTSIDE, reading.place_for("outside"))]
    pairs += [(BELOW, below), (ABOVE, above)] if reading.base.scale is not None else []
    if len({place for _, place in pairs}) == 1:
        return (state >= NOT_APPLICABLE).ifelse(state, pairs[0][1])
    return (state >= NOT_APPLICABLE).ifelse(state, state.cases(*pairs, else_=NOT_STATED))


def _with_answers(table: ir.Table, reading: Reading) -> ir.Table:
    """The first different answers of a row, at most `up_to`; where there is none, what no answer means.

    Cells that say nothing are null. What a whole row says stands in the first column.
    """
    nothing, names = NOTHING, reading.places
    outside = reading.place_for("outside")
    no_answer = (table[names[0]] == NOT_APPLICABLE).ifelse(NOT_APPLICABLE, reading.place_for("missing"))
    said = {
        name: ibis.cases(
            (table[name] >= 0, table[name]),
            ((table[name] == OUTSIDE) & (outside >= 0), ibis.literal(outside, "int64")),
            else_=nothing,
        )
        for name in names
    }
    table = table.mutate(**said, **{f"{reading.place}_none": no_answer})
    different: dict[str, ir.Value] = {}
    for index, name in enumerate(names):
        again = [(table[name] == table[earlier]).fill_null(FALSE) for earlier in names[:index]]
        different[name] = reduce(or_, again).ifelse(nothing, table[name]) if again else table[name]
    table = table.mutate(**different)
    most = reading.base.column.up_to if reading.base.column is not None else None
    if most is not None and most < len(names):
        given = [table[name].notnull().ifelse(1, 0) for name in names]
        before = [sum(given[1:index], given[0]) if index else ibis.literal(0) for index in range(len(names))]
        table = table.mutate(
            **{name: (number < most).ifelse(table[name], nothing) for name, number in zip(names, before, strict=True)}
        )
    silent = reduce(and_, (table[name].isnull() for name in names))
    first = silent.ifelse(table[f"{reading.place}_none"], table[names[0]]).cast("int64")
    return table.mutate(**{names[0]: first}).drop(f"{reading.place}_none")
