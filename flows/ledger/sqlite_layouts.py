"""The layouts of a ledger's file, each as the step from the one before. A step is never edited: a new one is added."""

from __future__ import annotations

ENTRIES = "seq INTEGER PRIMARY KEY, before TEXT NOT NULL, text TEXT NOT NULL, hash TEXT NOT NULL UNIQUE"
LAST_HASH = "coalesce((SELECT hash FROM entries ORDER BY seq DESC LIMIT 1), printf('%064d', 0))"
NEXT_SEQ = "(SELECT coalesce(max(seq), 0) + 1 FROM entries)"


def _refusing(name: str, when: str, why: str) -> str:
    return f"CREATE TRIGGER {name} BEFORE {when} BEGIN SELECT RAISE(ABORT, '{why}'); END"


FIRST = (
    f"CREATE TABLE entries({ENTRIES})",
    "CREATE TABLE confidential(name TEXT PRIMARY KEY, value BLOB NOT NULL)",
    _refusing("entries_stay", "UPDATE ON entries", "entries are never changed"),
    _refusing("entries_last", "DELETE ON entries", "entries are never removed"),
    _refusing("secrets_stay", "UPDATE ON confidential", "values are never changed"),
    _refusing("secrets_last", "DELETE ON confidential", "values are never removed"),
)
SECOND = (
    _refusing(
        "entries_follow",
        f"INSERT ON entries WHEN NEW.seq IS NOT {NEXT_SEQ} OR NEW.before IS NOT {LAST_HASH}",
        "an entry follows the last one",
    ),
    _refusing(
        "secrets_once",
        "INSERT ON confidential WHEN EXISTS (SELECT 1 FROM confidential WHERE name = NEW.name)",
        "a value is kept once",
    ),
)
"""`INSERT OR REPLACE` removes rows without asking the triggers of removal: what is inserted is looked at too."""

STEPS = (FIRST, SECOND)


def steps(before: int, after: int) -> list[str]:
    """The statements that lead from a layout to a later one; from 0, where nothing is yet."""
    return [*(one for step in STEPS[before:after] for one in step), f"PRAGMA user_version = {after}"]
