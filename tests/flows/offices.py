"""Small offices for tests: a spec, generated microdata, a ledger, and persons with keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from flows.job import Job
from flows.ledger.keys import new_key, public_of
from flows.ledger.ledger import Ledger
from flows.pipeline import finish
from flows.preparing import Order, Persons, prepare
from flows.publishing import Release
from flows.workplace import Workplace
from release_specs.load import load_spec
from tabulation.synthesize import synthesize

AREAS = "land,part,spot\nL,a,a1\nL,a,a2\nL,b,b1\nL,c,c1\nL,c,c2\n"
SPEC = """margrave: 1
release: {name: town, title: A small town}
microdata:
  persons:
    key: id
    defaults: {outside: leave_out, missing: leave_out}
    columns:
      place: {area: land}
      sex: {codes: {1: Female, 2: Male}}
      age: {integer: 0..99, outside: nearest}
geography:
  land: {levels: [land, part, spot], areas: areas.csv}
recodes:
  ages: {of: age, into: {Young: ..15, Middle: 16..64, Old: 65..}}
privacy: {protect: persons, neighbours: add-remove, budget: {rho: 1, delta: 1e-10}}
tables:
  people: {count: persons, at: [land, part, spot]}
  sex_by_age: {count: persons, by: [sex, ages], at: [land, part]}
spend: {by_table: {people: 1/4, rest: optimal}}
publish: {confidence: 90%}
"""
ACCOUNT = "account: {name: town, editions: {2025: 1/2, 2026: 1/2}}"
RECORDS = 400


@dataclass(frozen=True)
class Office:
    """Where a small town is released."""

    folder: Path
    keys: dict[str, Ed25519PrivateKey]

    @property
    def spec(self) -> Path:
        """The spec."""
        return self.folder / "town.yaml"

    @property
    def data(self) -> dict[str, str]:
        """The confidential file."""
        return {"persons": str(self.folder / "data" / "persons.parquet")}

    @property
    def place(self) -> Workplace:
        """The ledger and the private folder."""
        return Workplace.chosen(ledger=str(self.folder / "office.ledger"), beside=self.folder)

    def ledger(self) -> Ledger:
        """The ledger, opened anew."""
        return self.place.open_ledger()

    def prepare(self, *, edition: str | None = None, started_by: str = "Rita") -> Job:
        """Reserves the price, and nothing more."""
        order = Order("", edition, self.place.ledger, str(self.folder / "releases"))
        prepared = prepare(self.spec, self.place, order, data=self.data, persons=Persons(started_by, "Omar"))
        return Job(self.place, prepared)

    def release(self, *, edition: str | None = None) -> Release:
        """The whole release, without Prefect."""
        return finish(self.prepare(edition=edition))

    def rewrite(self, change: Callable[[str], str]) -> None:
        """Changes the spec."""
        self.spec.write_text(change(self.spec.read_text()))


def office(folder: Path, *, persons: tuple[str, ...] = (), text: str = SPEC, seed: int = 1) -> Office:
    """An office with these persons, or of one alone."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Office(folder, {person: new_key() for person in persons})
    made.spec.write_text(text)
    (folder / "areas.csv").write_text(AREAS)
    loaded = load_spec(made.spec)
    synthesize(loaded.spec, loaded.domain, records=RECORDS, seed=seed, out=folder / "data", folder=folder)
    founders = [{"person": person, "role": "reviewer", "key": public_of(key)} for person, key in made.keys.items()]
    Ledger.found(made.place.ledger, office="Town Office", founders=founders, solo=not persons).close()
    return made
