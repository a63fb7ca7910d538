"""The cells of text files, as every engine sees them."""

from __future__ import annotations

from collections.abc import Sequence

import ibis.expr.types as ir

from tabulation.lines import split_lines
from tabulation.sources import TextFile


def text_cells(lines: ir.Table, source: TextFile, columns: Sequence[str]) -> ir.Table:
    """One column of text for each column asked for; null in every cell of a line with the wrong number of fields."""
    split = split_lines(lines, source.header, source.read)
    places = [source.header.columns.index(column) for column in columns]
    cells = {f"c{index}": split.fields[place] for index, place in enumerate(places)}
    return split.select(**cells) if cells else split.select(one=split.fields.length())
