"""What may be entered in a ledger, and what each entry changes: the one law for writing and for verifying.

`enter` takes the next entry's body. Where a rule does not allow it, `Refused` says why; where the body is not readable
as what it claims to be, `ValueError`. Either way the books must not be used further: `Ledger` reads them anew.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from fractions import Fraction

from flows.ledger.anchor import Anchor
from flows.ledger.books import ATTEMPTS, Approval, Books, Key, Run, Stored, moment, same_person
from flows.ledger.chain import FORMAT, LAYOUT_OF, Body, digest
from flows.ledger.errors import HERE, REASONS, Held, Newer, Pending, Refused
from flows.ledger.founding import found_ledger, read_policy
from flows.ledger.keys import ROLES, Signed, holds, is_public_key
from flows.ledger.spending import attempt, charge, declare_exact, identify, release_reservation, reserve, store
from mechanisms.plain_data import Found

BACKWARDS = timedelta(hours=1)
"""How far the clock may go back between two entries."""
TWO = 2
"""What must be approved by two persons, whatever a policy says."""

Rule = Callable[[Books, Found], None]


def enter(books: Books, body: Body) -> None:
    """Changes the books by one entry, if the rules allow it."""
    found = Found("entry", body)
    _read_format(books, found.whole("format"))
    kind, at = found.text("kind"), moment(found.text("at"))
    if kind not in RULES:
        raise ValueError(f"no entry is called '{kind}'")
    if bool(books.ledger) is (kind == "founded"):
        raise Refused("a ledger begins with its founding, once")
    if at + BACKWARDS < books.last_at:
        raise Refused(f"the clock went back: it says {at.isoformat()} after {books.last_at.isoformat()}; set it right")
    books.last_at = max(at, books.last_at)
    RULES[kind](books, found.part("content"))


def _read_format(books: Books, number: int) -> None:
    """Formats only rise: an entry in an earlier one than those before it was not written by us."""
    if number > FORMAT:
        raise Newer(
            f"an entry has the format {number} of a newer version of Margrave, this one reads up to {FORMAT}; "
            "use that version"
        )
    if number < books.format:
        raise Refused(f"an entry of format {number} comes after one of format {books.format}")
    books.format, books.layout = number, max(books.layout, LAYOUT_OF[number])


def require_approvals(books: Books, pending: Pending) -> None:
    """Holds an act until enough persons approved; alone, nobody is asked. What is entered waits no more."""
    if not books.solo and not pending.is_met:
        raise Held(pending)
    books.proposals.pop(pending.subject, None)


def pending_by_two(books: Books, act: str, content: Body) -> Pending:
    """What an act that two persons must approve still needs."""
    return _pending(books, {"act": act, "ledger": books.ledger, **content}, TWO, ())


def pending_attempts(books: Books, run: Run, *, at: datetime | None = None) -> Pending:
    """What a run needs before it is charged again, to draw once more."""
    would = {"act": "attempt", "run": run.id, "number": run.attempts + 1, "price": str(run.charged[-1])}
    needed = max(TWO, books.policies[run.asked.policy].to_spend, run.asked.to_spend)
    return _pending(books, would, needed, run.asked.involved, at=at)


def pending_to_spend(books: Books, run: Run, *, at: datetime | None = None) -> Pending:
    """What a run needs before it is charged; `at` a moment after the last entry, where nothing is entered."""
    policy = books.policies[run.asked.policy]
    needed = max(policy.to_spend, run.asked.to_spend, TWO if run.asked.exact else 0)
    return _pending(books, run.would_spend(policy), needed, run.asked.involved, at=at)


def pending_to_publish(books: Books, run: Run, tables: str, *, at: datetime | None = None) -> Pending:
    """What a run needs before its tables are published."""
    needed = max(books.policies[run.asked.policy].to_publish, run.asked.to_publish)
    return _pending(books, run.would_publish(tables), needed, run.asked.involved, at=at)


def awaited(books: Books, run: Run, *, at: datetime) -> Pending | None:
    """The approvals that a run was last held for, missing or given since; None where it is not held."""
    for subject, (_, would) in reversed(books.proposals.items()):
        act, pending = (would.get("act") if would.get("run") == run.id else None), None
        if act == "spend" and not run.charged:
            pending = pending_to_spend(books, run, at=at)
        elif act == "attempt" and run.charged and run.stored is None:
            pending = pending_attempts(books, run, at=at)
        elif act == "publish":
            pending = pending_to_publish(books, run, str(would.get("tables")), at=at)
        if pending is not None and pending.subject == subject:
            return pending
    return None


def _pending(
    books: Books, would: Body, needed: int, excluded: tuple[str, ...], *, at: datetime | None = None
) -> Pending:
    subject, moment = digest(would), max(books.last_at, at or books.last_at)
    given = books.approvers(subject, at=moment, excluded=excluded)
    lapsed = books.lapsed(subject, at=moment, excluded=excluded)
    return Pending(_act_of(would), subject, 0 if books.solo else needed, given, excluded, would, lapsed)


def _act_of(would: Body) -> str:
    """What is to be approved, in words."""
    act, run = would.get("act"), would.get("run")
    if act == "attempt":
        return f"attempt {would.get('number')} of run {run}, at a new charge"
    return f"run {run}, to {act}" if act in ("spend", "publish") else str(act)


def _proposed(books: Books, found: Found) -> None:
    """Shows what waits. What is shown is what is signed: nobody can be led to approve something else."""
    found.has_only("act", "subject", "would")
    act, subject, would = found.text("act"), found.text("subject"), found.part("would").data
    if digest(would) != subject or _act_of(would) != act:
        raise Refused("a proposal shows in full what its approval signs; this one shows something else")
    books.proposals[subject] = (act, would)


def _approved(books: Books, found: Found) -> None:
    found.has_only("act", "subject", "person", "key", "expires", "signature")
    key = _active_key(books, found.text("key"))
    signed = Signed(books.ledger, found.text("act"), found.text("subject"), found.text("expires"))
    if key.person != found.text("person") or not holds(key.public, found.text("signature"), signed.message):
        raise Refused(f"the signature of {found.text('person')} under {signed.act} is forged")
    if books.proposals.get(signed.subject, ("",))[0] != signed.act:
        raise Refused(f"nothing waits for approval under '{signed.subject[:16]}' as {signed.act}")
    expires = moment(signed.expires)
    if expires < books.last_at:
        raise Refused(f"the approval by {key.person} expired on {signed.expires}; approve again")
    books.approvals.append(Approval(signed.act, signed.subject, key.person, key.public, expires))


def _active_key(books: Books, public: str) -> Key:
    key = books.keys.get(public)
    if key is None:
        raise Refused(f"this key is not enrolled in this ledger; enrol it with: margrave ledger enrol FILE.pub{HERE}")
    if key.revoked:
        raise Refused(f"this key of {key.person} was revoked")
    return key


def _enrolled(books: Books, found: Found) -> None:
    found.has_only("person", "role", "key")
    key = Key(found.text("person"), found.text("role"), found.text("key"))
    if key.role not in ROLES:
        raise Refused(f"'{key.role}' is no role; choose {', '.join(ROLES)}")
    if not is_public_key(key.public) or not same_person(key.person):
        raise Refused("this is no person with an Ed25519 public key of 64 hexadecimal digits")
    if key.public in books.keys:
        raise Refused(f"this key is enrolled already, or was revoked: it belongs to {books.keys[key.public].person}")
    require_approvals(books, pending_by_two(books, "enrol", found.data))
    books.keys[key.public] = key


def _revoked(books: Books, found: Found) -> None:
    found.has_only("key")
    key = _active_key(books, found.text("key"))
    active = {same_person(one.person) for one in books.keys.values() if not one.revoked and one.public != key.public}
    if not books.solo and len(active) < TWO:
        raise Refused("two persons must keep a key, or nothing could be approved any more; enrol another first")
    require_approvals(books, pending_by_two(books, "revoke", found.data))
    books.keys[key.public] = Key(key.person, key.role, key.public, revoked=True)


def _granted(books: Books, found: Found) -> None:
    policy = read_policy(found)
    for other in books.policies.values():
        if other.account != policy.account:
            continue
        if other.currency != policy.currency:
            raise Refused(f"account '{policy.account}' counts in {other.currency} for good, not in {policy.currency}")
        if other.identity != policy.identity:
            raise Refused(f"account '{policy.account}' protects {other.identity}, not {policy.identity}")
    committed = books.spent(policy.name) + books.held(policy.name)
    if policy.cap < committed:
        raise Refused(f"the cap {policy.cap} is below what was spent and reserved already: {committed}")
    number = books.grants.get(policy.name, 0) + 1
    require_approvals(books, pending_by_two(books, "grant", found.data | {"number": number}))
    books.policies[policy.name], books.grants[policy.name] = policy, number


def _reviewed(books: Books, found: Found) -> None:
    """The custodian's decision. A rejection is final, and also ends a paid run that cannot go on."""
    found.has_only("run", "by", "reason")
    run = _run(books, found)
    reason = found.text("reason")
    if run.versions or run.rejected is not None or not (run.stored or (run.charged and reason)):
        raise Refused(
            f"run {run.id} is {run.state}: what is stored and not published is reviewed, once it is rejected never "
            "again; what is paid and not stored can only be rejected"
        )
    if reason and reason not in REASONS:
        raise Refused(f"'{reason}' is no reason to reject; choose one of {', '.join(REASONS)}")
    run.reviewed, run.rejected = True, reason or None


def _published(books: Books, found: Found) -> None:
    found.has_only("run", "version", "manifest", "tables")
    run = _run(books, found)
    if run.stored is None:
        raise Refused(f"run {run.id} has no stored measurements to publish")
    if run.rejected is not None:
        raise Refused(f"run {run.id} was rejected ({run.rejected}) and is never published")
    if found.whole("version") != len(run.versions) + 1:
        raise Refused(f"run {run.id} published version {len(run.versions)} last; {found.whole('version')} is not next")
    require_approvals(books, pending_to_publish(books, run, found.text("tables")))
    run.versions.append(found.text("manifest"))


def _inspected(books: Books, found: Found) -> None:
    found.has_only("release", "parts", "by")
    books.looks.append({"release": found.text("release"), "parts": found.part("parts").data, "by": found.text("by")})


def _anchored(books: Books, found: Found) -> None:
    found.has_only("seq", "hash", "where")
    books.anchors.append({"seq": found.whole("seq"), "hash": found.text("hash"), "where": found.text("where")})


def _restored(books: Books, found: Found) -> None:
    """A copy was taken into use that anchors are ahead of: what it lost is charged in full.

    A run that the copy shows as paid may have been drawn and published in what is lost: it has no attempts left.
    """
    found.has_only("anchors")
    anchors = [Anchor.from_data(one.data) for one in found.parts("anchors")]
    if not anchors or any(one.ledger != books.ledger for one in anchors):
        raise Refused("a copy is taken into use by anchors of its own ledger")
    require_approvals(books, pending_by_two(books, "restore", found.data | {"number": len(books.lost)}))
    for anchor in anchors:
        for written, amount in anchor.spent.items():
            account, _, period = written.partition("/")
            ahead = amount - books.spent((account, period))
            books.gaps[account, period] = books.gaps.get((account, period), Fraction(0)) + max(ahead, Fraction(0))
    books.lost.extend(anchors)
    for run in books.runs.values():
        if run.charged and run.stored is None:
            run.attempts = ATTEMPTS * len(run.charged)


def _migrated(books: Books, found: Found) -> None:
    """Notes that the tables were brought to a later layout; no entry before it was touched."""
    found.has_only("from", "to")
    if not 1 <= found.whole("from") < found.whole("to"):
        raise Refused("a migration leads from one layout to a later one")
    books.layout = max(books.layout, found.whole("to"))


def _run(books: Books, found: Found) -> Run:
    name = found.text("run")
    if name not in books.runs:
        raise Refused(f"there is no run '{name}' in this ledger")
    return books.runs[name]


def _charged(books: Books, found: Found) -> None:
    run = _run(books, found)
    pending = pending_attempts(books, run) if run.charged else pending_to_spend(books, run)
    charge(books, run, found)
    require_approvals(books, pending)
    run.approved_by = tuple(dict.fromkeys((*run.approved_by, *pending.given)))


def _stored(books: Books, found: Found) -> None:
    found.has_only("run", "attempt", "sha256")
    store(_run(books, found), Stored(found.text("sha256"), found.whole("attempt")))


RULES: dict[str, Rule] = {
    "founded": found_ledger,
    "proposed": _proposed,
    "approved": _approved,
    "enrolled": _enrolled,
    "revoked": _revoked,
    "granted": _granted,
    "inspected": _inspected,
    "reserved": reserve,
    "identified": lambda books, found: identify(_run(books, found), found, named=books.format > 1),
    "exact": lambda books, found: declare_exact(_run(books, found), found),
    "charged": _charged,
    "attempted": lambda books, found: attempt(_run(books, found), found),
    "stored": _stored,
    "released": lambda books, found: release_reservation(_run(books, found)),
    "reviewed": _reviewed,
    "published": _published,
    "anchored": _anchored,
    "restored": _restored,
    "migrated": _migrated,
}
