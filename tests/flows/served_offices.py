"""Small offices that release on schedule: a ledger, generated microdata, and specs whose hour is close."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flows.datasets import write_dataset
from flows.deployments.load import Deployment, load_deployments
from flows.ledger.books import Run
from flows.ledger.ledger import Ledger
from flows.workplace import Workplace
from release_specs.load import load_spec
from tabulation.synthesize import synthesize

SPEC = """
margrave: 1
release: {name: NAME, title: Small}
microdata:
  persons:
    key: id
    columns:
      part: {area: land, outside: {count_as: a}, missing: {count_as: a}}
      a: {codes: [1, 2, 3], outside: {count_as: 1}, missing: {count_as: 1}}
geography: {land: {levels: [land, part], areas: areas.csv}}
privacy: {protect: persons, neighbours: replace, APPROVALSbudget: {rho: 1, delta: 1e-10}}
tables:
  total: {count: persons, at: all}
  by_a: {count: persons, by: [a], at: all}
spend: {by_table: {rest: optimal}}
publish: {confidence: 95%}
schedule: {cron: "CRON", timezone: UTCMORE}
"""
AREAS = "part,land\na,L\nb,L\nc,L\n"
HIDDEN = "zebrafinch"
"""A word in the path of every confidential file."""
WRITES_DOWN = "import pathlib, sys; pathlib.Path(sys.argv[1]).open('a').write(sys.stdin.read() + '\\n')"
DEPLOYMENT = """\
  NAME:
    spec: NAME.yaml
    data: register-NAME
    ledger: office.ledger
    output: releases
    max_lateness: LATENESS
    notify: {failure: HOOK, approval: HOOK, publication: HOOK}
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A release: its minute, how long before it is measured, and how late it may be."""

    hour: datetime
    lead: str = ""
    lateness: str = "6 hours"
    approvals: str = ""


@dataclass(frozen=True, slots=True)
class Office:
    """A folder with everything."""

    folder: Path

    @property
    def file(self) -> Path:
        """The deployments file."""
        return self.folder / "deployments.yaml"

    @property
    def place(self) -> Workplace:
        """The ledger and its private folder."""
        return Workplace.chosen(ledger=str(self.folder / "office.ledger"), beside=self.folder)

    @property
    def told(self) -> list[str]:
        """What the hooks were told, as lines of JSON."""
        path = self.folder / "told.txt"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def deployment(self, name: str) -> Deployment:
        """One of its deployments."""
        return next(one for one in load_deployments(self.file) if one.name == name)

    def runs(self, release: str) -> list[Run]:
        """The runs of a release, by the ledger."""
        books = self.place.open_ledger().books()
        return [run for run in books.runs.values() if run.asked.release == release]


def found_office(folder: Path, wanted: Mapping[str, Wanted], *, solo: bool = True) -> Office:
    """An office with a deployment for each release that is wanted."""
    folder.mkdir(parents=True, exist_ok=True)
    office = Office(folder)
    (folder / "areas.csv").write_text(AREAS)
    if solo:
        Ledger.found(office.place.ledger, office="the test office", solo=True).close()
    for name, one in wanted.items():
        (folder / f"{name}.yaml").write_text(spec_of(name, one))
        loaded = load_spec(folder / f"{name}.yaml")
        hidden = folder / HIDDEN / name
        (file,) = synthesize(loaded.spec, loaded.domain, records=400, seed=len(name), out=hidden, folder=folder)
        write_dataset(office.place.private, f"register-{name}", {"persons": str(file.path)})
    (folder / "write_down.py").write_text(WRITES_DOWN)
    hook = f"[{sys.executable} write_down.py told.txt]"
    entries = (
        DEPLOYMENT.replace("NAME", name).replace("LATENESS", one.lateness).replace("HOOK", hook)
        for name, one in wanted.items()
    )
    office.file.write_text("margrave: 1\ndeployments:\n" + "".join(entries))
    return office


def spec_of(name: str, wanted: Wanted) -> str:
    """The text of a spec whose release comes every day at an hour."""
    text = SPEC.replace("NAME", name).replace("CRON", f"{wanted.hour.minute} {wanted.hour.hour} * * *")
    more = f", measure: {wanted.lead}" if wanted.lead else ""
    approvals = f"approvals: {wanted.approvals}, " if wanted.approvals else ""
    return text.replace("MORE", more).replace("APPROVALS", approvals)


def minute_in(seconds: float) -> datetime:
    """The first whole minute that lies at least so many seconds ahead."""
    return (datetime.now(UTC) + timedelta(seconds=seconds + 59.999)).replace(second=0, microsecond=0)


def minutes_ago(minutes: float) -> datetime:
    """A whole minute about so long ago."""
    return (datetime.now(UTC) - timedelta(minutes=minutes)).replace(second=0, microsecond=0)
