"""The published tables, and how the budget is divided among them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Self

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from release_specs.language.conditions import ConditionText
from release_specs.language.model import NamedModel, SpecModel, WordList, Words, read_list
from release_specs.language.phrases import RatioText
from release_specs.language.values import (
    TEXT_SCHEMA,
    Positive,
    Proportion,
    ShareText,
    Text,
    Whole,
    YesNo,
    choice,
    mistake,
    read_positive,
    read_proportion,
    read_text,
    read_whole,
    typed,
    write_number,
)


@dataclass(frozen=True, slots=True)
class Moe:
    """A margin of error: in units, or as a part of an expected size."""

    amount: Fraction
    relative: bool = False

    def __str__(self) -> str:
        return f"{write_number(self.amount * 100)}%" if self.relative else write_number(self.amount)


def read_moe(value: object) -> Moe:
    """`25`, or `5%` of the expected size."""
    if isinstance(value, Moe):
        return value
    moe = Moe(read_positive(value), relative=isinstance(value, str) and value.strip().endswith("%"))
    if moe.relative and moe.amount >= 1:
        raise mistake("bad-number", f"a margin of {moe} is as large as the thing itself; write less than 100%")
    return moe


class Promise(SpecModel):
    """The margin of error a table must reach at a level: for the unbiased estimate of its worst cell."""

    moe: Annotated[Moe, *typed(read_moe, str)]
    """`25`, or `5%` of the table's expected total in the area."""
    confidence: Proportion | None = None
    """`publish.confidence` unless stated."""
    moe_of: Annotated[str, *choice("total", "cell")] = "total"
    """What a percentage is of: the table's expected total in the area, or each cell's."""
    cells: ConditionText | None = None
    """Only these cells."""
    areas: WordList = ()
    """Only these areas."""
    otherwise: Annotated[str, *choice("refuse", "warn")] = "refuse"
    """What happens when the budget cannot buy it."""

    @model_validator(mode="before")
    @classmethod
    def is_written_in_full(cls, value: Any) -> Any:
        """A margin alone does not say that it is one."""
        if isinstance(value, str):
            raise mistake("wrong-shape", f"found '{value}'; a promise says what it promises: {{moe: {value}}}")
        return value


def _read_quantiles(value: object) -> tuple[Fraction, ...]:
    if isinstance(value, tuple):
        return value
    parts = value if isinstance(value, list) else [value]
    if not parts:
        raise mistake("wrong-shape", "the list is empty; name at least one quantile, such as 1/2")
    return tuple(read_proportion(part) for part in parts)


class Quantiles(SpecModel):
    """Which quantiles of a column, on which grid."""

    at: Annotated[
        tuple[Fraction, ...],
        *typed(
            _read_quantiles,
            lambda value: [write_number(part) for part in value],
            anyOf=[TEXT_SCHEMA, {"type": "array", "items": TEXT_SCHEMA, "minItems": 1}],
        ),
    ]
    """The quantiles: 1/2 is the median."""
    every: Positive
    """The width of the grid they are read from."""


@dataclass(frozen=True, slots=True)
class UpTo:
    """Every table of up to so many attributes of a list; part of the language, not yet offered."""

    number: int
    among: tuple[str, ...]


def read_by(value: object) -> tuple[str, ...] | UpTo:
    """A list of attributes, or `{up_to: 2, among: [...]}`."""
    if isinstance(value, UpTo):
        return value
    if isinstance(value, dict) and set(value) == {"up_to", "among"}:
        return UpTo(read_whole(value["up_to"]), read_list(value["among"]))
    return read_list(value)


def write_by(by: tuple[str, ...] | UpTo) -> Any:
    """The attributes as plain data."""
    return {"up_to": str(by.number), "among": list(by.among)} if isinstance(by, UpTo) else list(by)


class Growth(SpecModel):
    """More detail where a first noisy total allows it; part of the language, not yet offered."""

    first: ShareText
    """The share of the first, noisy total."""
    when: dict[Text, WordList]
    """Which attributes from which total on."""


STATISTICS = ("count", "sum", "mean", "most_common", "quantiles", "proportion", "ratio", "compare")


class Table(SpecModel):
    """One published table: what is counted, by what, and where."""

    title: Text | None = None
    """What is printed above it."""
    notes: Words = ()
    """Footnotes."""
    count: Text | None = None
    """STATISTIC. How many rows of this entity or universe there are."""
    sum: Text | None = None
    """STATISTIC. The sum of this column."""
    mean: Text | None = None
    """STATISTIC. The mean of this column: a sum and a count of usable values."""
    most_common: Text | None = None
    """STATISTIC. The most common code of this column."""
    quantiles: dict[Text, Quantiles] | None = None
    """STATISTIC. Quantiles of columns, read off a measured histogram."""
    proportion: ConditionText | None = None
    """STATISTIC. The part of the universe that meets this condition."""
    of: Text | None = None
    """The entity or universe a sum, mean, quantile, most common code or proportion is of; the table compared."""
    ratio: RatioText | None = None
    """STATISTIC, free. One table divided by another, on what they share."""
    compare: dict[Text, Words] | None = None
    """STATISTIC, free. Two codes of a column set against each other: `{sex: [1, 2]}`."""
    as_: Annotated[str, *choice("difference", "percent", "ratio")] | None = Field(default=None, alias="as")
    """How two codes are compared."""
    by: Annotated[
        tuple[str, ...] | UpTo,
        *typed(
            read_by,
            write_by,
            anyOf=[
                TEXT_SCHEMA,
                {"type": "array", "items": TEXT_SCHEMA},
                {"type": "object", "required": ["up_to", "among"]},
            ],
        ),
    ] = ()
    """The columns, recodes and derived attributes it is counted by."""
    at: Words | None = None
    """The levels it is published at, or `all`."""
    at_most: Whole | None = None
    """A smaller cap on the rows of one protected unit, for this table."""
    mechanism: Annotated[str, *choice("auto", "laplace", "gaussian", "randomised_response")] = "auto"
    """How the noise is drawn; `auto` picks what errs least."""
    publish: YesNo = True
    """`no`: measured to help other tables, not printed."""
    margins: Annotated[str, *choice("all")] | None = None
    """`all`: every sub-table of `by` is published too."""
    precision: dict[Text, Promise] = Field(default_factory=dict)
    """Margins of error it must reach, level by level."""
    grow: Growth | None = None
    """More detail where a first noisy total allows it. Not yet offered."""

    @property
    def statistics(self) -> tuple[str, ...]:
        """Which statistics it publishes."""
        return tuple(word for word in STATISTICS if getattr(self, word) is not None)

    @property
    def universe(self) -> str | None:
        """The entity or universe it is about; None for tables computed from others."""
        return None if self.is_free else (self.count or self.of)

    @property
    def is_free(self) -> bool:
        """Whether it is computed from other tables and costs nothing."""
        return self.ratio is not None or self.compare is not None

    @property
    def attributes(self) -> tuple[str, ...]:
        """What it is counted by, where that is a plain list."""
        return () if isinstance(self.by, UpTo) else self.by

    @model_validator(mode="after")
    def says_one_thing(self) -> Self:
        """A count, or statistics of one universe, or a table computed from others."""
        found = self.statistics
        if not found:
            raise mistake("table-kind", f"the table says nothing; expected one of {', '.join(STATISTICS)}")
        alone = [word for word in found if word in ("count", "ratio", "compare")]
        if alone and len(found) > 1:
            raise mistake("table-kind", f"found {' and '.join(found)}; '{alone[0]}' stands alone: make two tables")
        if "count" in found or "ratio" in found:
            if self.of is not None:
                raise mistake("table-kind", f"'of' does not go with '{found[0]}'; delete the line")
        elif self.of is None:
            raise mistake("table-kind", f"'{found[0]}' needs 'of': the entity, universe or table it is about")
        if (self.as_ is not None) is not (self.compare is not None):
            raise mistake("table-kind", "'compare' and 'as' go together: as: difference, percent or ratio")
        return self


class LevelShares(NamedModel):
    """A table's budget divided among levels."""

    __pydantic_extra__: dict[str, ShareText]
    rest: Annotated[str, *choice("optimal", "equal")] | None = None
    """How what is left is divided among the levels not named."""


class ShareAlone(SpecModel):
    """A line of the budget: a share alone may be written without braces, `population: 1/5`."""

    @model_validator(mode="before")
    @classmethod
    def a_share_alone_may_stand_without_braces(cls, value: Any) -> Any:
        """`population: 1/5` means `population: {share: 1/5}`."""
        return {"share": read_text(value)} if value is None or isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        described = handler.resolve_ref_schema(handler(core_schema))
        return {"anyOf": [dict(TEXT_SCHEMA), described], "description": described.get("description", "")}


class TableSpend(ShareAlone):
    """A table's part of the budget. A share alone may be written without braces."""

    share: ShareText
    """Its share of the edition's budget; `none`: published, not measured."""
    at: LevelShares | None = None
    """Its division among levels; optimal where nothing is said."""


class ByTable(NamedModel):
    """The budget divided among tables first. Several tables may share a line: `age + sex: 1/4`."""

    __pydantic_extra__: dict[str, TableSpend]
    rest: Annotated[str, *choice("optimal", "equal")] | None = None
    """How what is left is divided among the tables not named."""


class TableShares(NamedModel):
    """A level's budget divided among tables."""

    __pydantic_extra__: dict[str, ShareText]
    rest: Annotated[str, *choice("optimal", "equal")] | None = None
    """How what is left is divided among the tables not named."""


class LevelSpend(ShareAlone):
    """A level's part of the budget. A share alone may be written without braces."""

    share: ShareText
    """Its share of the edition's budget."""
    tables: TableShares | None = None
    """Its division among tables; optimal where nothing is said."""


class ByLevel(NamedModel):
    """The budget divided among levels first, as census offices do."""

    __pydantic_extra__: dict[str, LevelSpend]
    rest: Annotated[str, *choice("optimal", "equal")] | None = None
    """How what is left is divided among the levels not named."""


class Optimal(SpecModel):
    """What an optimal division minimises."""

    minimise: Annotated[str, *choice("total variance", "worst variance", "total relative variance")] = "total variance"
    """What is made small."""
    importance: dict[Text, Positive] = Field(default_factory=dict)
    """Weights of tables and levels; 1 where nothing is said."""


class Spend(SpecModel):
    """How the budget is divided: by table or by level. Left out, all of it is divided optimally."""

    by_table: ByTable | None = None
    """Tables first, then their levels."""
    by_level: ByLevel | None = None
    """Levels first, then their tables."""
    optimal: Optimal = Optimal()
    """What `optimal` means here."""

    @model_validator(mode="after")
    def divides_one_way(self) -> Self:
        """By table or by level, not both."""
        if self.by_table is not None and self.by_level is not None:
            raise mistake(
                "two-divisions", "found by_table and by_level; divide the budget one way and delete the other"
            )
        return self
