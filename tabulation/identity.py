"""Who a row is: its group, its id, and the secret order in which rows of one group are kept.

Ids are texts: trimmed, without a trailing `.0`, null where nothing is written. Where every file stores whole numbers
they stay numbers. What is hashed is the cell as read, each with its length, under the key of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import ibis
import ibis.expr.types as ir

from release_specs.language.microdata import Entity
from tabulation.logic import surely
from tabulation.reading import text_of
from tabulation.sources import Kind, Source, decodable_in, spelling_of

GROUP, RECORD = "group_id", "record_id"


def id_of(cell: ir.Value, kind: Kind, source: Source, declared: Entity, *, as_number: bool) -> ir.Value:
    """An id as it is compared."""
    if as_number:
        return cell
    text = text_of(cell, kind).strip()
    text = text.endswith(".0").ifelse(text.substr(0, text.length() - 2), text)
    spelled = [word for one in ("", *declared.read.missing) if (word := spelling_of(source, one)) is not None]
    nobody = text.isin(spelled)
    pattern = decodable_in(source)
    if pattern is not None:
        nobody = nobody | ~text.re_search(pattern)
    if kind is Kind.REAL:
        nobody = nobody | surely(cell.isnan())
    return nobody.ifelse(ibis.null("string"), text)


def joined(parts: Sequence[ir.Value]) -> ir.Value:
    """Several ids as one, which no other ids spell; null where one of them is."""
    if len(parts) == 1:
        return parts[0]
    texts = [part.cast("string") for part in parts]
    return reduce(lambda one, other: one + other, (text.length().cast("string") + ":" + text for text in texts))


def hashed(key: bytes, source: Source, cells: Sequence[tuple[ir.Value, Kind]]) -> ir.StringColumn:
    """SHA-256 of the key and of each cell as read: LENGTH:TEXT, or - for null and for bytes that are no text."""
    pattern = decodable_in(source)
    texts = [_as_read(cell, kind, pattern) for cell, kind in cells]
    whole = reduce(lambda one, other: one + other, texts, ibis.literal(key.hex()))
    return whole.hexdigest("sha256")


def _as_read(cell: ir.Value, kind: Kind, pattern: str | None) -> ir.StringColumn:
    text = text_of(cell, kind)
    written = surely(text.length() > 0)
    if kind is Kind.REAL:
        written = written & surely(~cell.isnan())
    if pattern is not None:
        written = written & surely(text.re_search(pattern))
    return written.ifelse(text.length().cast("string") + ":" + text, "-")
