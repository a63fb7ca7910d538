"""Small specs as text: one set of columns, and tables for one question each."""

from __future__ import annotations

AREAS = "land,part,spot\nL,a,a1\nL,a,a2\nL,b,b1\nL,c,c1\nL,c,c2\nL,c,c3\n"
"""Part b has a single spot."""
ONE_AREA = "land\nL\n"
SECTIONS = "ground,section\nG,s1\nG,s2\nG,s3\n"

COLUMNS = {
    "place": "{area: land, outside: {count_as: FIRST}, missing: {count_as: FIRST}}",
    "school": "{area: ground, outside: {count_as: s1}, missing: {count_as: s1}}",
    "a": "{codes: [1, 2, 3], outside: {count_as: 1}, missing: {count_as: 1}}",
    "b": "{codes: [1, 2, 3, 4], outside: leave_out, missing: leave_out}",
    "c": "{codes: [1, 2], outside: {count_as: 1}, missing: {count_as: 1}}",
    "age": "{integer: 0..99, outside: nearest, missing: leave_out}",
    "work": "{codes: [1, 2, 3], applies_to: {age: 16..}, not_applicable: 9, outside: leave_out, missing: leave_out}",
    "gain": "{number: -100..100, clip: -50..50, step: 1, outside: nearest, missing: {count_as: 0}}",
    "cost": "{number: 0..100, clip: 0..50, step: 1, outside: nearest, missing: {count_as: 0}}",
    "tongue": "{codes: [x, y, z], up_to: 2, columns: [t1, t2], outside: leave_out, missing: leave_out}",
}


def spec(tables: dict[str, str], *, levels: str = "land, part, spot", extra: str = "", sections: bool = False) -> str:
    """The text of a spec with these tables; without levels it has no geography."""
    columns = {name: text for name, text in COLUMNS.items() if name != "school" or sections}
    if not levels:
        columns.pop("place")
    first = "L" if levels == "land" else "a1"
    geography = [f"  land: {{levels: [{levels}], areas: areas.csv}}"] if levels else []
    geography += ["  ground: {levels: [ground, section], areas: sections.csv}"] if sections else []
    lines = [
        "margrave: 1",
        "release: {name: small, title: Small}",
        "microdata:",
        "  persons:",
        "    key: id",
        "    columns:",
        *(f"      {name}: {text.replace('FIRST', first)}" for name, text in columns.items()),
        *(["geography:", *geography] if geography else []),
        "recodes:",
        "  ages: {of: age, into: {Young: ..15, Middle: 16..64, Old: 65..}}",
        "  half: {of: b, into: {Low: [1], High: [2, 3, 4]}}",
        "universes:",
        "  adults: {of: persons, where: {age: 16..}}",
        "  first: {of: persons, where: {c: 1}}",
        "privacy: {protect: persons, neighbours: replace, budget: {rho: 1, delta: 1e-10}}",
        "tables:",
        *(f"  {name}: {{{text}}}" for name, text in tables.items()),
        "spend: {by_table: {rest: optimal}}",
        "publish: {confidence: 90%}",
    ]
    return "\n".join([*lines, extra, ""])


HOMES = """
margrave: 1
release: {name: homes, title: People and homes}
microdata:
  homes:
    key: home_id
    columns:
      place: {area: land, outside: {count_as: a1}, missing: {count_as: a1}}
      kind:  {codes: [1, 2], outside: {count_as: 1}, missing: {count_as: 1}}
  people:
    key: id
    in: {homes: home_id}
    columns:
      sex:   {codes: [1, 2], outside: {count_as: 1}, missing: {count_as: 1}}
geography:
  land: {levels: [land, part, spot], areas: areas.csv}
privacy: {protect: homes, at_most: {people: 4}, neighbours: replace, budget: {rho: 1, delta: 1e-10}}
tables:
  houses: {count: homes, by: [kind], at: all}
  folk:   {count: people, by: [kind, sex], at: all}
spend: {by_table: {rest: optimal}}
exact:
  - {count: homes, at: [land, part], from: microdata, because: Homes are registered.}
  - {count: people, at: part, from: "register.csv:people", because: People are registered.}
rules:
  - folk >= houses
publish: {confidence: 90%}
"""

HOUSES = ((3, 1), (0, 2), (4, 4), (1, 0), (2, 5), (0, 0))
"""Homes of each spot by kind; two people live in each."""
REGISTER = "part,people\na,12\nb,16\nc,16\n"
