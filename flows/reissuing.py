"""A correction: new tables from the stored measurements. It costs nothing, and the old version is kept and marked.

Labels, notes, titles, formats and the version of the estimation may change; what was measured may not.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from flows.estimating import Tell, estimate, forget_candidate
from flows.ledger.errors import Refused
from flows.ledger.ledger import Ledger
from flows.plan import Plan, plan_release
from flows.preparing import Order, order_of, planned
from flows.publishing import Release, publish, target_of
from flows.terminal import UserError
from flows.workplace import Workplace
from release_specs.load import load_spec
from reporting.manifest import mark_superseded
from reporting.spec_files import FOLDER, gather_spec, write_spec_files


def reissue(place: Workplace, ledger: Ledger, run: str, *, reason: str, spec: Path | None, tell: Tell) -> Release:
    """Publishes the next version of a run's release, with another spec where one is given."""
    if not reason.strip():
        raise UserError("say why the release is corrected: --reason TEXT; readers of the old version will see it")
    known = ledger.books().runs.get(run)
    if known is None or known.stored is None:
        raise Refused(f"run '{run}' has no stored measurements in this ledger, so there is nothing to reissue")
    _, order = order_of(place.private, run)
    before = target_of(order, known, len(known.versions)) if known.versions else None
    if spec is not None:
        _exchange_spec(place, order, spec)
    forget_candidate(place, run)
    estimate(place, ledger, order, tell=tell)
    made = publish(place, ledger, replace(order, reason=reason), tell=tell)
    if before is not None and before.exists():
        mark_superseded(before, by=made.folder.name, reason=reason)
    return made


def _exchange_spec(place: Workplace, order: Order, spec: Path) -> None:
    """Takes another spec for a run, if it asks for the same measurements."""
    _, old = planned(place, order)
    new = plan_release(load_spec(spec), folder=spec.parent, edition=order.edition)
    if _measured(new) != _measured(old):
        raise UserError(
            f"{spec} asks for other measurements than run {order.run} made; a reissue may change labels, titles, notes "
            "and the publish section. What is measured anew is a new release with a new charge"
        )
    folder = place.run_folder(order.run)
    shipped = gather_spec(spec)
    aside = folder / ".exchange"
    shutil.rmtree(aside, ignore_errors=True)
    write_spec_files(aside, shipped)
    (folder / FOLDER).rename(aside / "before")
    (aside / FOLDER).rename(folder / FOLDER)
    shutil.rmtree(aside)


def _measured(plan: Plan) -> tuple[object, ...]:
    data = plan.as_data()
    return data["queries"], data["exact"]
