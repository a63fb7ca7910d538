"""What is public already, what must hold in the tables, and how and when they are published."""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated, Self

from pydantic import Field, model_validator

from release_specs.language.cron import Cron, read_cron
from release_specs.language.model import CsvName, NamedModel, SpecModel, WordList, Words, read_words
from release_specs.language.phrases import CalendarDay, DayText, ExactSourceText, LeadText, UnreliableText
from release_specs.language.values import (
    Proportion,
    ShareNumber,
    Text,
    TimeText,
    WholeOrZero,
    YesNo,
    choice,
    mistake,
    read_number,
    read_text,
    typed,
)

FORMATS = ("csv", "parquet", "xlsx", "sdmx")


def _read_slug(value: object) -> str:
    text = read_text(value)
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", text):
        raise mistake("bad-name", f"'{text}' cannot name a folder; use small letters, digits, - and _")
    return text


class Release(SpecModel):
    """The publication as a whole."""

    name: Annotated[str, *typed(_read_slug, str, type="string", pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    """A short name for folders and the ledger: small letters, digits, - and _."""
    title: Text
    """What is printed on every page."""
    edition: Text | None = None
    """Which edition this is, where an account has several."""
    description: Text | None = None
    """A paragraph for the report."""
    contact: Text | None = None
    """Whom readers may ask."""
    notes: Words = ()
    """Sentences printed on every page."""


class ExpectedAreas(NamedModel):
    """Public sizes of areas, from a file."""

    __pydantic_extra__: dict[str, Text]
    file: CsvName
    """The CSV file; joined on the finest level present."""


class Expect(NamedModel):
    """Public knowledge for planning. It never enters an estimate. Further keys: an entity or universe and its size."""

    __pydantic_extra__: dict[str, WholeOrZero]
    areas: ExpectedAreas | None = None
    """Public sizes of areas: `{file: zones.csv, persons: tot_pop}`."""
    sizes: dict[Text, ShareNumber] | None = None
    """How many rows groups have: `{1: 28%, 2: 35%}`."""
    previous: Text | None = None
    """The folder of an earlier release."""


class ExactTotal(SpecModel):
    """A number published without noise, and outside the guarantee."""

    count: Text
    """The entity or universe."""
    by: WordList = ()
    """The attributes it is exact by."""
    at: Words | None = None
    """The levels it is exact at."""
    source: ExactSourceText = Field(alias="from")
    """`microdata`, `file.csv:column` or a number."""
    because: Text
    """Why it may be exact; printed on the certificate."""


def _read_formats(value: object) -> tuple[str, ...]:
    words = read_words(value)
    for word in words:
        if word not in FORMATS:
            raise mistake("bad-choice", f"found '{word}'; expected some of {', '.join(FORMATS)}")
    return words


class Publish(SpecModel):
    """How the tables look."""

    confidence: Proportion = Field(default_factory=lambda: read_number("95%"))
    """Of every margin of error and interval."""
    moe_rule: Annotated[str, *choice("exact", "agency")] = "exact"
    """`exact`: the quantile of the noise law; `agency`: z times the standard error."""
    languages: dict[Text, CsvName] = Field(default_factory=dict)
    """Files with translated labels: `{es: labels_es.csv}`."""
    formats: Annotated[
        tuple[str, ...],
        *typed(_read_formats, list, type="array", items={"enum": list(FORMATS)}, minItems=1),
    ] = ("csv",)
    """Which file formats: csv, parquet, xlsx, sdmx."""
    reliability: dict[Text, UnreliableText] = Field(default_factory=dict)
    """Classes of unreliable numbers: `{caution: cv > 20%}`."""
    microdata: YesNo = False
    """Whether synthetic records that reproduce the tables are published too."""


EDITION_WORDS = tuple(
    f"{which} {period}"
    for which in ("this", "previous")
    for period in ("month", "quarter", "term", "half-year", "year")
)


class Schedule(SpecModel):
    """When releases are published."""

    day: DayText | None = None
    """`15th of September`, `10th of April and October`, `second Tuesday of every month`."""
    cron: Text | None = None
    """Five fields: minute, hour, day, month, weekday; both day fields must match. Instead of `day` and `time`."""
    time: TimeText | None = None
    """The time of day of publication."""
    measure: LeadText | None = None
    """How long before publication the data are measured."""
    timezone: Text
    """Such as America/Detroit."""
    if_weekend: Annotated[str, *choice("keep", "next Monday", "previous Friday")] = "keep"
    """What happens when the day is a Saturday or Sunday."""
    holidays: CsvName | None = None
    """Days that count as weekends; a file with a column `date`."""
    edition: Annotated[str, *choice(*EDITION_WORDS)] | None = None
    """Which edition a firing publishes. A shifted day keeps its edition."""

    @property
    def rule(self) -> CalendarDay | Cron:
        """The days it comes on."""
        return self.day if self.day is not None else read_cron(self.cron or "")

    @property
    def clock(self) -> dt.time:
        """The time of day of publication, of `time` or of `cron`."""
        return self.time if self.time is not None else read_cron(self.cron or "").time

    @model_validator(mode="after")
    def has_one_calendar(self) -> Self:
        """A day with its time, or cron."""
        if (self.day is None) is (self.cron is None):
            found = "found both day and cron" if self.day is not None else "neither day nor cron is given"
            raise mistake("bad-schedule", f"{found}; expected day and time, or cron")
        if (self.day is None) is not (self.time is None):
            raise mistake("bad-schedule", "'day' needs 'time'; 'cron' holds its own")
        if self.cron is not None:
            read_cron(self.cron)
        return self
