"""The name of the edition that a firing publishes.

| `schedule.edition`                   | nominal day | edition    |
| ------------------------------------ | ----------- | ---------- |
| `this year`, `previous year`         | 2026-01-20  | `2026`, `2025`       |
| `this half-year`, `previous ...`     | 2026-01-20  | `2026-H1`, `2025-H2` |
| `this term` (a third of a year)      | 2026-01-20  | `2026-T1`, `2025-T3` |
| `this quarter`                       | 2026-01-20  | `2026-Q1`, `2025-Q4` |
| `this month`                         | 2026-01-20  | `2026-01`, `2025-12` |

Names sort as the periods follow each other, and those of years are the names an account of yearly editions has. They
come from the nominal day: a day shifted into the next period keeps its edition.
"""

from __future__ import annotations

from datetime import date

MONTHS_IN = {"month": 1, "quarter": 3, "term": 4, "half-year": 6, "year": 12}
LETTERS = {"quarter": "Q", "term": "T", "half-year": "H"}


def edition_of(words: str, nominal: date) -> str:
    """The edition that `this quarter` or `previous month` means on a nominal day."""
    which, period = words.split()
    months = MONTHS_IN[period]
    number = (nominal.year * 12 + nominal.month - 1) // months - (which == "previous")
    year, part = divmod(number, 12 // months)
    if period == "year":
        return f"{year:04}"
    return f"{year:04}-{part + 1:02}" if period == "month" else f"{year:04}-{LETTERS[period]}{part + 1}"
