"""Before the data is opened: the spec is read and planned, and its price is reserved.

What a run was opened for is kept in its private folder: a copy of the spec with its public files, and an order that
says where everything is. From here on the run reads these copies, so that a spec edited meanwhile changes nothing.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path

from flows.code import code_digest
from flows.datasets import require_files
from flows.disk import on_disk
from flows.ledger.books import Asked, Identity, Policy, PolicyName, Run
from flows.ledger.chain import canonical, digest
from flows.ledger.errors import HERE
from flows.ledger.ledger import Ledger
from flows.plan import Plan, plan_release
from flows.terminal import UserError
from flows.workplace import PRIVATE_VARIABLE, Workplace, write_whole
from release_specs.load import load_spec
from release_specs.spec import ReleaseSpec
from reporting.folder import sync_all
from reporting.spec_files import gather_spec, write_spec_files

ORDER = "order.json"
ONCE = "once"
"""The period and edition of a release that has none."""
WHOLE_ACCOUNT = "all editions"
"""The period of an account whose editions divide one budget."""
GO_ON = "Mend that and call the same command again: what was reserved, paid and stored is kept"


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be released, and where: written once, read by every later step."""

    run: str
    edition: str | None
    ledger: str
    out: str
    engine: str = "duckdb"
    memory: int | None = None
    master: str = "local[*]"
    spill: str | None = None


@dataclass(frozen=True, slots=True)
class Persons:
    """Who started a run, and who wrote its spec: neither may approve it."""

    started_by: str
    author: str


def payer_of(plan: Plan) -> PolicyName:
    """The account and period that pay for a plan; without an account the release is one of its own."""
    account, edition = plan.spec.privacy.account, plan.edition
    if account is None:
        return plan.spec.release.name, edition or ONCE
    if account.editions is not None or edition is None:
        return account.name, WHOLE_ACCOUNT
    return account.name, edition[:4]


def identity_of(spec: ReleaseSpec) -> Identity:
    """Whom a spec protects, as part of a budget's identity."""
    singles = spec.privacy.model_dump(mode="json")["singles"]
    return Identity(spec.privacy.protect, spec.privacy.neighbours, canonical(singles) if singles is not None else "")


def asked_for(plan: Plan, shipped: Mapping[str, bytes], persons: Persons) -> Asked:
    """What the ledger is asked for a plan; `shipped` are the spec and its public files."""
    account, period = payer_of(plan)
    return Asked(
        release=plan.spec.release.name,
        account=account,
        period=period,
        edition=plan.edition or ONCE,
        spec=_digest(shipped),
        plan=plan.digest,
        code=code_digest(),
        price=plan.price,
        exact=len(plan.exact),
        author=persons.author,
        started_by=persons.started_by,
        to_spend=plan.spec.privacy.approvals.to_spend,
        to_publish=plan.spec.privacy.approvals.to_publish,
    )


def digest_of(folder: Path) -> str:
    """The digest of a spec and its public files, from a folder with copies of them."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return _digest({path.relative_to(folder).as_posix(): path.read_bytes() for path in files})


def _digest(shipped: Mapping[str, bytes]) -> str:
    return digest({name: sha256(data).hexdigest() for name, data in shipped.items()})


def prepare(spec: Path, place: Workplace, order: Order, *, data: Mapping[str, str] | None, persons: Persons) -> Order:
    """Reserves a release's price, or finds the run that has it; returns the order with its run.

    `order` says everything but the run; `data` where the files are, None where only their dataset is named. No record
    is read, and nothing is reserved for files that are not there.
    """
    loaded = load_spec(spec)
    plan = plan_release(loaded, folder=spec.parent, edition=order.edition)
    ledger = place.open_ledger()
    shipped = gather_spec(spec)
    asked = asked_for(plan, shipped, persons)
    known = ledger.books().open_run(asked.release, asked.edition)
    if known is not None:
        require_same(known, asked)
    if data is not None and _needs_files(place, known, data):
        require_files(loaded.spec, data)
    run = known.id if known is not None else _reserve(ledger, plan, asked)
    found = replace(order, run=run, edition=plan.edition, ledger=place.address)
    with on_disk(f"preparing run {run}", place.private, then=GO_ON):
        _keep(place, found, shipped)
        if data and (known is None or known.stored is None):
            place.note_dataset(run, data)
    return found


def _needs_files(place: Workplace, known: Run | None, data: Mapping[str, str]) -> bool:
    """Whether a run still has to read files that are named now."""
    return known is None or (known.stored is None and (bool(data) or not place.knows_dataset(known.id)))


def _reserve(ledger: Ledger, plan: Plan, asked: Asked) -> str:
    _open_own_account(ledger, plan)
    run = secrets.token_hex(4)
    ledger.reserve(run, asked, identity_of(plan.spec))
    return run


def require_same(known: Run, asked: Asked) -> None:
    """Refuses to go on with a run under another spec, plan or version."""
    for part, word in (("spec", "spec or its public files"), ("plan", "plan"), ("code", "version of Margrave")):
        if getattr(known.asked, part) != getattr(asked, part) and known.state != "published":
            raise UserError(
                f"edition '{asked.edition}' of '{asked.release}' belongs to run {known.id}, which is {known.state} "
                f"under another {word}. {_two_ways(known)}"
            )


def has_changed(spec: Path, known: Run, copies: Path) -> bool:
    """Whether a spec is neither the one that a run was opened for nor the one it was last corrected by."""
    return _digest(gather_spec(spec)) not in (known.asked.spec, digest_of(copies))


def _two_ways(known: Run) -> str:
    """How a run is finished as it was begun, and how it is given up."""
    finish = f"Finish it as it was begun with: margrave resume {known.id}{HERE}"
    if not known.charged:
        return f"{finish}; or give it up, which costs nothing, with: margrave ledger release {known.id}{HERE}"
    give_up = f"margrave review {known.id} --reject error-in-spec{HERE}"
    return f"{finish}; or give it up, whose price stays spent, with: {give_up}"


def _open_own_account(ledger: Ledger, plan: Plan) -> None:
    """One person may spend a release's own budget, once an edition, without granting it first."""
    books, name = ledger.books(), payer_of(plan)
    if books.solo and plan.spec.privacy.account is None and name not in books.policies:
        own = identity_of(plan.spec)
        ledger.grant(Policy(*name, plan.currency, plan.budget, plan.spec.privacy.budget.delta, own, "", 0, 0))


def _keep(place: Workplace, order: Order, shipped: Mapping[str, bytes]) -> None:
    folder = place.run_folder(order.run)
    if not (folder / ORDER).exists():
        for name, data in shipped.items():
            path = folder / "spec" / name
            path.unlink(missing_ok=True)
            write_spec_files(folder, {name: data})
        sync_all(folder)
    write_whole(folder / ORDER, json.dumps(asdict(order)))


def order_of(private: Path, run: str) -> tuple[Workplace, Order]:
    """The order of a run in a private folder, and its workplace."""
    path = private / "runs" / run / ORDER
    if not path.exists():
        raise UserError(
            f"run '{run}' has no folder in {private}; see which runs there are with: margrave ledger show{HERE}, and "
            f"name the private folder in {PRIVATE_VARIABLE} if it is another"
        )
    order = Order(**json.loads(path.read_text(encoding="utf-8")))
    return Workplace(order.ledger, private), order
