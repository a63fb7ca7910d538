"""A small office of the tests: a spec, generated microdata and a ledger, copied for each release."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from flows.ledger.books import Policy, Run
from flows.ledger.ledger import Ledger
from flows.ledger.sqlite_store import SqliteStore
from flows.plan import Plan, plan_release
from flows.preparing import identity_of, payer_of
from flows.workplace import Workplace
from release_specs.load import load_spec
from tabulation.synthesize import synthesize

SPEC = """
margrave: 1
release: {name: harbour, title: A harbour}
microdata:
  persons:
    key: id
    columns:
      part: {area: land, outside: {count_as: a}, missing: {count_as: a}}
      sex: {codes: [1, 2], outside: {count_as: 1}, missing: {count_as: 1}}
      trade: {codes: [1, 2, 3], outside: leave_out, missing: leave_out}
geography: {land: {levels: [land, part], areas: areas.csv}}
privacy: {protect: persons, neighbours: add-remove, budget: {rho: 1, delta: 1e-10}}
tables:
  by_sex: {count: persons, by: [sex], at: all}
  by_trade: {count: persons, by: [trade, sex], at: all}
publish: {confidence: 95%}
"""
LEDGER = "office.ledger"
AREAS = "part,land\na,L\nb,L\nc,L\n"


@dataclass(frozen=True)
class Office:
    """A folder with everything a release needs."""

    folder: Path

    @property
    def spec(self) -> Path:
        """The spec."""
        return self.folder / "release.yaml"

    @property
    def out(self) -> Path:
        """Where releases go."""
        return self.folder / "releases"

    @property
    def data(self) -> Mapping[str, str]:
        """The microdata."""
        return {"persons": str(self.folder / "persons.csv")}

    @property
    def draws(self) -> Path:
        """A file of the tests with one line for each time that noise began to be drawn."""
        return self.folder / "draws.txt"

    @cached_property
    def place(self) -> Workplace:
        """The workplace."""
        return Workplace.chosen(ledger=str(self.folder / LEDGER), beside=self.folder)

    @cached_property
    def plan(self) -> Plan:
        """The plan."""
        return plan_release(load_spec(self.spec), folder=self.folder)

    def ledger_copy(self, to: Path) -> SqliteStore:
        """The ledger's files as they lie on disk now, elsewhere: whoever looks must not mend them for the next run."""
        shutil.rmtree(to, ignore_errors=True)
        to.mkdir()
        for name in (LEDGER, f"{LEDGER}-wal"):
            if (self.folder / name).exists():
                shutil.copy(self.folder / name, to / name)
        return SqliteStore(to / LEDGER)

    def only_run(self) -> Run:
        """The one run that the ledger knows."""
        ledger = self.place.open_ledger()
        try:
            (run,) = ledger.books().runs.values()
        finally:
            ledger.close()
        return run

    def grant(self, times: int) -> Policy:
        """The budget of so many releases, for the account that pays this one."""
        plan = self.plan
        delta, whom = plan.spec.privacy.budget.delta, identity_of(plan.spec)
        return Policy(*payer_of(plan), plan.currency, times * plan.price, delta, whom, "", 0, 0)


def furnish(folder: Path) -> Office:
    """An office with a spec and microdata, and no ledger yet."""
    folder.mkdir()
    office = Office(folder)
    office.spec.write_text(SPEC, encoding="utf-8")
    (folder / "areas.csv").write_text(AREAS, encoding="utf-8")
    loaded = load_spec(office.spec)
    synthesize(loaded.spec, loaded.domain, records=200, seed=1, out=folder, form="csv", folder=folder)
    return office


def found(office: Office) -> Office:
    """The office with a ledger for one person."""
    Ledger.found(office.place.ledger, office="Harbour Office", solo=True).close()
    return office


def copied(office: Office, folder: Path) -> Office:
    """The same office elsewhere; its run keeps no trace of the first place, for there was none."""
    shutil.copytree(office.folder, folder)
    return Office(folder)
