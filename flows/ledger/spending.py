"""From the reservation to the stored measurements: what one run may enter, in which order.

reserved -> identified -> charged -> attempted -> stored. Prices are derived from what was measured, never taken from
what an entry says they are.
"""

from __future__ import annotations

from datetime import date
from fractions import Fraction

from flows.ledger.books import ATTEMPTS, Asked, Books, Identity, Policy, Run, Stored
from flows.ledger.chain import digest
from flows.ledger.errors import HERE, Refused
from mechanisms.catalogue import read_charge
from mechanisms.charge import Charge
from mechanisms.plain_data import Found

PARTS_OF_ASKED = (
    "release", "account", "period", "edition", "spec", "plan", "code", "price", "exact", "author", "started_by",
    "to_spend", "to_publish",
)  # fmt: skip


def price_of(charges: list[Charge], currency: str) -> Fraction:
    """What charges cost together in a currency; what has no price in it is refused."""
    if currency == "rho":
        return sum((one.rho for one in charges), Fraction(0))
    total = Fraction(0)
    for one in charges:
        if one.epsilon is None:
            raise Refused(
                f"query '{one.query}': {one.mechanism.name} has no price in epsilon, in which the account counts; "
                "choose a pure mechanism, or an account in rho"
            )
        total += one.epsilon
    return total


def reserve(books: Books, found: Found) -> None:
    """Opens a run and holds its price: one run for an edition of a release, whoever asks, however often."""
    found.has_only("run", "key", "identity", *PARTS_OF_ASKED)
    asked = read_asked(found)
    who = found.part("identity")
    who.has_only("protect", "relation", "singles")
    identity = Identity(who.text("protect"), who.text("relation"), who.text("singles"))
    policy = _open_policy(books, asked, identity)
    if not found.text("run") or found.text("run") in books.runs:
        raise Refused(f"there is a run '{found.text('run')}' already")
    claimed = books.open_run(asked.release, asked.edition)
    if claimed is not None:
        raise Refused(
            f"edition '{asked.edition}' of '{asked.release}' belongs to run {claimed.id}, which is {claimed.state}; "
            f"go on with: margrave resume {claimed.id}{HERE}"
        )
    _require_left(books, policy, asked.price)
    books.runs[found.text("run")] = Run(found.text("run"), asked, found.text("key"))


def read_asked(found: Found) -> Asked:
    """What a run was opened for."""
    asked = Asked(
        **{name: found.text(name) for name in ("release", "account", "period", "edition", "spec", "plan", "code")},
        price=found.fraction("price"),
        exact=found.whole("exact"),
        author=found.text("author"),
        started_by=found.text("started_by"),
        to_spend=found.whole("to_spend"),
        to_publish=found.whole("to_publish"),
    )
    if asked.price <= 0 or min(asked.exact, asked.to_spend, asked.to_publish) < 0:
        raise Refused("a run has a positive price and no negative numbers")
    return asked


def _open_policy(books: Books, asked: Asked, identity: Identity) -> Policy:
    policy = books.policies.get(asked.policy)
    if policy is None:
        periods = [period for account, period in books.policies if account == asked.account]
        known = f"it has {', '.join(periods)}" if periods else "it has none"
        raise Refused(
            f"account '{asked.account}' has no budget for '{asked.period}' ({known}); "
            f"open it with: margrave ledger grant SPEC --cap AMOUNT{HERE}"
        )
    if policy.identity != identity:
        raise Refused(
            f"account '{policy.account}' protects {policy.identity}, the spec {identity}: prices under different "
            "units or relations are never added; use an account of its own"
        )
    _require_open(books, policy)
    return policy


def _require_open(books: Books, policy: Policy) -> None:
    if policy.closes and books.last_at.date() > date.fromisoformat(policy.closes):
        raise Refused(
            f"period '{policy.period}' of account '{policy.account}' closed on {policy.closes}; nothing is carried "
            f"over. Have another day of closing approved with: margrave ledger grant SPEC --cap {policy.cap} "
            f"--closes DATE{HERE}; or give the run up, where it has one, with: margrave ledger release RUN{HERE}"
        )


def _require_left(books: Books, policy: Policy, price: Fraction, *, held: Fraction = Fraction(0)) -> None:
    left = books.left(policy.name) + held
    if price > left:
        raise Refused(
            f"the release needs {policy.currency} {price}, and account '{policy.account}' has {left} left of "
            f"{policy.cap} for '{policy.period}' ({books.spent(policy.name)} spent, "
            f"{books.held(policy.name)} reserved). "
            f"Lower the release's budget, or have the cap raised with: margrave ledger grant SPEC --cap AMOUNT{HERE}"
        )


def identify(run: Run, found: Found, *, named: bool) -> None:
    """Notes which microdata a run is about, as commitments to their fingerprint and, if `named`, their files' names."""
    found.has_only("run", "dataset", *(("places",) if named else ()))
    if run.released or run.dataset not in (None, found.text("dataset")):
        raise Refused(f"run {run.id} is {run.state} with other microdata; other microdata are another run")
    run.dataset, run.places = found.text("dataset"), found.text("places") if named else None


def declare_exact(run: Run, found: Found) -> None:
    """Notes a total that is published without noise, outside the guarantee, with its justification (law 8)."""
    found.has_only("run", "total", "at", "because")
    total = found.text("total")
    found.texts("at")
    if run.released or run.charged or total in run.totals or not found.text("because").strip():
        raise Refused(f"run {run.id} is {run.state}: each exact total is declared once, with a reason, before payment")
    run.totals.append(total)


def charge(books: Books, run: Run, found: Found) -> None:
    """Pays for everything a run measures, at once."""
    found.has_only("run", "charges", "price")
    policy = books.policies[run.asked.policy]
    if run.released or run.rejected is not None or run.dataset is None or run.stored is not None:
        raise Refused(f"run {run.id} is {run.state} and cannot be charged")
    if run.charged and run.attempts < ATTEMPTS * len(run.charged):
        raise Refused(f"run {run.id} is paid already, and has attempts left")
    if len(run.totals) != run.asked.exact:
        raise Refused(f"run {run.id} publishes {run.asked.exact} exact totals and declared {len(run.totals)}")
    _require_open(books, policy)
    charges = [read_charge(one.data) for one in found.parts("charges")]
    price = price_of(charges, policy.currency)
    if price != found.fraction("price") or price > run.asked.price or not charges:
        raise Refused(f"the charges of run {run.id} come to {price}, not to the {run.asked.price} that was reserved")
    for one in charges:
        if str(one.relation) != policy.identity.relation:
            raise Refused(
                f"query '{one.query}' is priced under {one.relation}, account '{policy.account}' counts under "
                f"{policy.identity.relation}: prices under different relations are never added"
            )
    measured = [one.data for one in found.parts("charges")]
    if run.charged and measured != run.charges:
        raise Refused(f"run {run.id} is charged again for the measurements it was charged for, not for others")
    _require_left(books, policy, price, held=run.held)
    run.charged.append(price)
    run.charges = measured


def attempt(run: Run, found: Found) -> None:
    """Notes, before any random bit is read, that a run is about to draw."""
    found.has_only("run", "number")
    if not run.charged or run.stored is not None or run.rejected is not None:
        raise Refused(
            f"run {run.id} is {run.state}: what is stored is never drawn again, what is not paid is not drawn"
        )
    if found.whole("number") != run.attempts + 1:
        raise Refused(f"the next attempt of run {run.id} is number {run.attempts + 1}")
    if run.attempts >= ATTEMPTS * len(run.charged):
        raise Refused(
            f"run {run.id} drew {run.attempts} times and stored nothing; a further attempt needs two approvals and a "
            "new charge"
        )
    run.attempts += 1


def store(run: Run, stored: Stored) -> None:
    """Notes the measurements that a run stored: from now on they are read, never drawn."""
    if run.stored is not None or run.rejected is not None:
        raise Refused(f"run {run.id} is {run.state}: what is stored or given up is not stored again")
    if not run.attempts or stored.attempt != run.attempts:
        raise Refused(f"run {run.id} is at attempt {run.attempts}, not {stored.attempt}")
    run.stored = stored


def release_reservation(run: Run) -> None:
    """Gives a reservation back: only where nothing was charged."""
    if run.charged or run.released:
        raise Refused(f"run {run.id} is {run.state}: nothing is given back after a charge")
    run.released = True


def commitment(name: str, salt: bytes, value: bytes) -> str:
    """What the chain holds in place of a confidential value."""
    return digest({"name": name, "salt": salt.hex(), "value": value.hex()})
