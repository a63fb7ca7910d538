"""After the noise: stored measurements become tables that agree, in a folder that waits to be published.

Nothing here reads a record: the step sees the spec's copies and the stored measurements. It can be done again at any
time, with the same bytes, and costs nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from estimation.measurement import ExactNumbers, Measurement
from estimation.problem import problem
from flows.ledger.chain import digest
from flows.ledger.errors import Refused
from flows.ledger.ledger import Ledger
from flows.measuring import exact_name, parts_of
from flows.plan import Plan
from flows.preparing import Order, planned
from flows.stored import read_stored
from flows.workplace import CANDIDATE, Workplace
from reporting.manifest import hashes_of
from reporting.replay import MadeTables, make_tables
from reporting.spec_files import FOLDER as SPEC

Tell = Callable[[str], None]


def estimate(place: Workplace, ledger: Ledger, order: Order, *, tell: Tell) -> str:
    """Makes the tables of a run beside its measurements; returns the digest of every file, which approvals sign."""
    folder = place.run_folder(order.run)
    target = folder / CANDIDATE
    if not target.exists():
        _, plan = planned(place, order)
        aside = folder / f".{CANDIDATE}"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(mode=0o700)
        tell("estimating")
        made = tables_of(place, ledger, order.run, plan)
        tell("writing tables")
        _write(aside, folder / SPEC, plan, made)
        aside.replace(target)
    return tables_digest(target)


def tables_of(place: Workplace, ledger: Ledger, run: str, plan: Plan) -> MadeTables:
    """The tables of a run, from its stored measurements."""
    folder, stored = place.run_folder(run), ledger.books().runs[run].stored
    if stored is None:
        raise Refused(f"run {run} has no stored measurements; go on with: margrave resume {run}")
    numbers = read_stored(folder, parts_of(plan), stored.sha256)
    measurements = [Measurement(one.tally, one.level, numbers[one.name], one.noise) for one in plan.queries]
    exact = [
        ExactNumbers(tally, level, numbers[exact_name(tally, level)])
        for tally in plan.exact
        for level in tally.levels or (None,)
    ]
    found = problem(plan.spec, plan.domain, list(plan.tallies), folder=folder / SPEC)
    return make_tables(found, plan.domain, measurements=measurements, exact=exact)


def tables_digest(folder: Path) -> str:
    """The digest of a candidate: every file by its hash."""
    return digest({name: found for name, (found, _) in hashes_of(folder).items()})


def _write(out: Path, spec: Path, plan: Plan, made: MadeTables) -> None:
    described = {(one.tally.name, one.level): _described(one.charge.as_data()) for one in plan.queries}
    shipped = {path.relative_to(spec).as_posix(): path.read_bytes() for path in spec.rglob("*") if path.is_file()}
    made.write_release(out, spec=shipped, described=described)


def _described(charge: dict[str, Any]) -> dict[str, Any]:
    mechanism = charge["mechanism"]
    return {"mechanism": mechanism["name"], "parameters": mechanism["parameters"], "charge": charge}


def forget_candidate(place: Workplace, run: str) -> None:
    """Removes the tables that waited, after they were published or rejected."""
    shutil.rmtree(place.run_folder(run) / CANDIDATE, ignore_errors=True)
    for left in place.run_folder(run).glob(f".{CANDIDATE}*"):
        shutil.rmtree(left, ignore_errors=True)
