"""A small town whose spec uses most of the language, and its files."""

from pathlib import Path

from release_specs.load import Loaded, load_text

ZONES = "\n".join(["zone,quarter,people", *(f"{n:03d},Q{n % 5},{n * n}" for n in range(1, 41))]) + "\n"

TOWN = """
margrave: 1
release: {name: town, title: A town, edition: 2026}
microdata:
  dwellings:
    key: dwelling_id
    only: {year: edition, zone: {not: 007}}
    defaults: {outside: leave_out, missing: leave_out}
    columns:
      zone:  {area: zones}
      year:  {codes: [2025, 2026]}
      kind:  {codes: {H: House, F: Flat, I: Institution}}
      rooms: {integer: 1..20, clip: 1..10, applies_to: {kind: [H, F]}, not_applicable: -9}
      rent:  {number: 0..5000000, clip: 0..20000, step: 0.5, applies_to: {kind: {not: I}, lodgers: yes}}
      built: {date: 1900-01-01..2025-12-31, not_applicable: 9999-12-31}
      staff: {codes: [few, many], applies_to: {size: None}}
      side:  {codes: [sunny, shady, both]}
  people:
    key: [dwelling_id, line]
    in: {dwellings: dwelling_id}
    only: [{year: edition, present: yes}, {year: edition, present: away}]
    defaults: {outside: leave_out, missing: leave_out}
    columns:
      zone:    {area: zones}
      year:    {codes: [2025, 2026]}
      present: {codes: [no, yes, away]}
      place:   {codes: {head: Head, partner: Partner, child: Child, parent: Parent, lodger: Lodger, inmate: Inmate}}
      sex:     {codes: {1: Male, 2: Female}}
      age:     {integer: 0..105, outside: nearest}
      side:    {codes: [sunny, shady, both]}
      custody: {codes: [open, closed], applies_to: {sex: 1}}
      marital: {codes: {S: Single, M: Married, W: Widowed}, applies_to: {age: 16..}}
      wedding: {integer: 1920..2025, applies_to: {marital: {not: S}}}
      income:  {number: -10000..9000000, clip: 0..120000, step: 100, applies_to: {age: 15..}, not_applicable: N}
      born:    {codes: [here, near, far], not_applicable: U}
      tongue:  {codes: [de, fr, it, rm, en, pt], up_to: 3, columns: [tongue1, tongue2, tongue3]}
      skills:  {codes: [read, write, sums], up_to: 2, separator: ";", applies_to: {age: 6..}, not_applicable: none}
geography:
  zones: {levels: [town, quarter, zone], areas: zones.csv}
recodes:
  age_group: {of: age, into: {Young: 0..24, Middle: 25..64, Old: 65..}}
  rich:      {of: income, into: {yes: 100000.., no: rest}}
derive:
  dwellings:
    size:     {number_of: people, into: {None: 0, One: 1, Two: 2, More: 3..}}
    lodgers:  {any: people, where: {place: lodger}}
    head_sex: {value_of: sex, where: {place: head}}
universes:
  homes: {of: dwellings, where: {kind: {not: I}}}
privacy:
  protect: dwellings
  at_most: {people: 5, keep_first: {place: head, age: 18..}}
  singles: {place: inmate, custody: closed}
  neighbours: add-remove
  budget: {rho: 1, delta: 1e-9}
tables:
  people_by_place: {count: people, by: [place, sex], at: [town]}
  heads:           {count: people, by: [place, age_group], at: [town]}
  homes_by_size:   {count: homes, by: [size, lodgers], at: [town, quarter]}
impossible:
  - {age: ..39, place: parent}
  - {age_group: Young, marital: W}
  - {sex: 2, tongue: rm}
  - {place: inmate, custody: open}
  - {place: inmate, sex: 2}
  - {kind: F, rich: yes}
  - {size: Two, lodgers: yes}
  - [{place: partner, marital: S}, {place: partner, age: ..15}]
"""


_loaded: dict[str, Loaded] = {}


def load_town(folder: Path, text: str = TOWN) -> Loaded:
    """The town's spec, read once, with its zones written to `folder`."""
    (folder / "zones.csv").write_text(ZONES, encoding="utf-8")
    if text not in _loaded:
        _loaded[text] = load_text(text, file="town.yaml", folder=folder)
    return _loaded[text]
