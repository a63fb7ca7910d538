"""Plans to look at: those of the examples, and of small specs with one question each."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from flows.plan import Plan, plan_release
from release_specs.load import Loaded, load_spec, load_text

EXAMPLES = Path(__file__).resolve().parents[2] / "release_specs" / "examples"
EDITIONS = {
    "acs": None,
    "births": "2026-03",
    "detailed_race": None,
    "households": "2025",
    "redistricting_2020": None,
    "schools": "2026-1",
}
"""Every example, and the edition of it that is planned."""

AREAS = "part,land\na,L\nb,L\nc,L\n"

SMALL = """
margrave: 1
release: {name: small, title: Small}
microdata:
  persons:
    key: id
    columns:
      part: {area: land, outside: {count_as: a}, missing: {count_as: a}}
      a: {codes: [1, 2, 3], outside: {count_as: 1}, missing: {count_as: 1}}
      b: {codes: [1, 2], outside: {count_as: 1}, missing: {count_as: 1}}
      n: {number: 0..20, clip: 0..10, step: 0.5, outside: nearest, missing: leave_out}
geography: {land: {levels: [land, part], areas: areas.csv}}
privacy: {protect: persons, neighbours: NEIGHBOURS, budget: BUDGET}
expect: {persons: 1000}
tables:
  total: {count: persons, at: all}
  by_a: {count: persons, by: [a], at: all}
  by_b: {count: persons, by: [b], at: all}
  sums: {sum: n, of: persons, at: all}
publish: {confidence: 95%}
"""


@cache
def example(name: str) -> Loaded:
    """An example spec."""
    return load_spec(EXAMPLES / f"{name}.yaml")


@cache
def planned(name: str) -> Plan:
    """The plan of an example."""
    return plan_release(example(name), folder=EXAMPLES, edition=EDITIONS[name])


def small_text(more: str = "", **words: str) -> str:
    """The text of a small spec with further sections below it.

    Words: its budget and neighbours, more tables (which end with the section that follows them), public sizes, and the
    precision that one table promises.
    """
    text = SMALL.replace("BUDGET", words.get("budget", "{rho: 1, delta: 1e-10}"))
    text = text.replace("NEIGHBOURS", words.get("neighbours", "add-remove"))
    text = text.replace("publish:", words.get("tables", "publish:"))
    text = text.replace("{persons: 1000}", words.get("expect", "{persons: 1000}"))
    lines = text.splitlines()
    if "promise" in words:
        place = next(number for number, line in enumerate(lines) if line.startswith(f"  {words['promise']}:"))
        lines[place] = lines[place][:-1] + f", precision: {words.get('precision', '{part: {moe: 9}}')}}}"
    return "\n".join([*lines, more])


def small_spec(folder: Path, more: str = "", **words: str) -> Loaded:
    """A small spec."""
    (folder / "areas.csv").write_text(AREAS, encoding="utf-8")
    return load_text(small_text(more, **words), file="small.yaml", folder=folder)


def small(folder: Path, more: str = "", **words: str) -> Plan:
    """The plan of a small spec."""
    return plan_release(small_spec(folder, more, **words), folder=folder)


def written(text: str, folder: Path, edition: str | None = None) -> Plan:
    """The plan of a spec that a test writes out."""
    (folder / "areas.csv").write_text(AREAS, encoding="utf-8")
    return plan_release(load_text(text, file="small.yaml", folder=folder), folder=folder, edition=edition)
