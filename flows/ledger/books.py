"""The books: everything a chain of entries says, at one moment."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from flows.ledger.anchor import Anchor

CURRENCIES = ("rho", "epsilon")
ATTEMPTS = 3
"""How often a run may draw under one charge."""

PolicyName = tuple[str, str]
"""An account and one of its periods."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom a budget protects: charges under different ones are never added (law 9)."""

    protect: str
    relation: str
    singles: str = ""

    def __str__(self) -> str:
        singles = f" (and {self.singles} one by one)" if self.singles else ""
        return f"{self.protect}{singles} under {self.relation}"

    def as_data(self) -> dict[str, str]:
        """As plain data."""
        return {"protect": self.protect, "relation": self.relation, "singles": self.singles}


@dataclass(frozen=True, slots=True)
class Policy:
    """What may be spent of an account in one period; nothing is carried over."""

    account: str
    period: str
    currency: str
    cap: Fraction
    delta: Fraction | None
    identity: Identity
    closes: str
    """After this day nothing is charged; empty where it never closes."""
    to_spend: int
    to_publish: int

    @property
    def name(self) -> PolicyName:
        """What tells it from others."""
        return self.account, self.period

    def as_data(self) -> dict[str, Any]:
        """As plain data; what approvals sign is its digest."""
        return {
            "account": self.account,
            "period": self.period,
            "currency": self.currency,
            "cap": str(self.cap),
            "delta": str(self.delta) if self.delta is not None else "",
            "identity": self.identity.as_data(),
            "closes": self.closes,
            "to_spend": self.to_spend,
            "to_publish": self.to_publish,
        }


@dataclass(frozen=True, slots=True)
class Key:
    """A person's signing key."""

    person: str
    role: str
    public: str
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class Approval:
    """That a person signed an act on a subject, until it expires."""

    act: str
    subject: str
    person: str
    public: str
    expires: datetime


@dataclass(frozen=True, slots=True)
class Stored:
    """The stored measurements of a run, by hash."""

    sha256: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run was opened for: another spec, plan, code or person is another run."""

    release: str
    account: str
    period: str
    edition: str
    spec: str
    plan: str
    code: str
    price: Fraction
    exact: int
    """How many exact totals come from the microdata."""
    author: str
    started_by: str
    to_spend: int
    to_publish: int

    @property
    def policy(self) -> PolicyName:
        """The policy that pays."""
        return self.account, self.period

    @property
    def involved(self) -> tuple[str, ...]:
        """Who may not approve it: its author, and who started it."""
        return tuple(dict.fromkeys((self.author, self.started_by)))

    def as_data(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "release": self.release,
            "account": self.account,
            "period": self.period,
            "edition": self.edition,
            "spec": self.spec,
            "plan": self.plan,
            "code": self.code,
            "price": str(self.price),
            "exact": self.exact,
            "author": self.author,
            "started_by": self.started_by,
            "to_spend": self.to_spend,
            "to_publish": self.to_publish,
        }


@dataclass(slots=True)
class Run:
    """One release on its way: what it asked for and how far it came."""

    id: str
    asked: Asked
    key: str
    """The commitment to the secret key that decides which rows a cap keeps."""
    dataset: str | None = None
    """The commitment to the fingerprint of its microdata."""
    places: str | None = None
    """The commitment to the names of its files; runs of the first format have none."""
    charged: list[Fraction] = field(default_factory=list)
    charges: list[dict[str, Any]] = field(default_factory=list)
    """What is measured, as charged."""
    totals: list[str] = field(default_factory=list)
    """The exact totals from the microdata that were declared: they have no price."""
    approved_by: tuple[str, ...] = ()
    """Who approved the spending, when it was charged."""
    attempts: int = 0
    stored: Stored | None = None
    released: bool = False
    rejected: str | None = None
    reviewed: bool = False
    versions: list[str] = field(default_factory=list)
    """The hashes of its published manifests, the first version first."""

    @property
    def state(self) -> str:
        """How far it came, in one word."""
        if self.released:
            return "released"
        if self.rejected is not None:
            return "rejected"
        if self.versions:
            return "published"
        if self.stored is not None:
            return "stored"
        if self.charged:
            return "charged"
        return "identified" if self.dataset is not None else "reserved"

    @property
    def spent(self) -> Fraction:
        """What it paid."""
        return sum(self.charged, Fraction(0))

    @property
    def held(self) -> Fraction:
        """What is held for it and not paid yet."""
        return Fraction(0) if self.released or self.charged else self.asked.price

    def would_spend(self, policy: Policy) -> dict[str, Any]:
        """What an approval to spend signs: this spec, plan, dataset and policy."""
        about = {"run": self.id, "dataset": self.dataset, "policy": policy.as_data()}
        return {"act": "spend", **about, **self.asked.as_data()}

    def would_publish(self, tables: str) -> dict[str, Any]:
        """What an approval to publish signs: these tables of this run, in this version."""
        stored = self.stored.sha256 if self.stored is not None else None
        return {"act": "publish", "run": self.id, "stored": stored, "version": len(self.versions) + 1, "tables": tables}


@dataclass(slots=True)
class Books:
    """What all entries so far come to."""

    ledger: str = ""
    office: str = ""
    office_key: str = ""
    fingerprint_key: str = ""
    """The commitment to the secret key of all fingerprints."""
    solo: bool = False
    keys: dict[str, Key] = field(default_factory=dict)
    approvals: list[Approval] = field(default_factory=list)
    proposals: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    """What waits for approvals: for each subject the act and what it would do."""
    policies: dict[PolicyName, Policy] = field(default_factory=dict)
    grants: dict[PolicyName, int] = field(default_factory=dict)
    """How often a policy was opened or changed: what was approved for one time is not good for the next."""
    runs: dict[str, Run] = field(default_factory=dict)
    gaps: dict[PolicyName, Fraction] = field(default_factory=dict)
    """What was charged for entries that a restored copy lost; of policies that it does not know, too."""
    lost: list[Anchor] = field(default_factory=list)
    """The anchors that were ahead of a copy when it was taken into use."""
    looks: list[dict[str, Any]] = field(default_factory=list)
    anchors: list[dict[str, Any]] = field(default_factory=list)
    format: int = 1
    """The format of the last entry."""
    layout: int = 1
    """The layout that the tables were last brought to, as far as the chain tells."""
    last_at: datetime = field(default=datetime.min.replace(tzinfo=UTC))

    def runs_of(self, name: PolicyName) -> Iterable[Run]:
        """The runs that a policy pays."""
        return (run for run in self.runs.values() if run.asked.policy == name)

    def spent(self, name: PolicyName) -> Fraction:
        """What was charged to a policy."""
        return sum((run.spent for run in self.runs_of(name)), self.gaps.get(name, Fraction(0)))

    def held(self, name: PolicyName) -> Fraction:
        """What is reserved from a policy."""
        return sum((run.held for run in self.runs_of(name)), Fraction(0))

    def left(self, name: PolicyName) -> Fraction:
        """What may still be reserved from a policy."""
        return self.policies[name].cap - self.spent(name) - self.held(name)

    def all_time(self, account: str) -> Fraction:
        """What was charged to an account in all its periods."""
        names = dict.fromkeys((*self.policies, *self.gaps))
        return sum((self.spent(name) for name in names if name[0] == account), Fraction(0))

    def open_run(self, release: str, edition: str) -> Run | None:
        """The run that has the claim on an edition of a release; one that was released or rejected has none."""
        for run in self.runs.values():
            if (run.asked.release, run.asked.edition) == (release, edition) and run.state not in (
                "released",
                "rejected",
            ):
                return run
        return None

    def approvers(self, subject: str, *, at: datetime, excluded: Iterable[str] = ()) -> tuple[str, ...]:
        """The distinct persons whose approval of a subject counts at a moment."""
        never, found = {same_person(person) for person in excluded}, dict[str, str]()
        for one in self.approvals:
            is_good = one.subject == subject and one.expires >= at and not self.keys[one.public].revoked
            if is_good and same_person(one.person) not in never:
                found.setdefault(same_person(one.person), one.person)
        return tuple(found.values())

    def lapsed(self, subject: str, *, at: datetime, excluded: Iterable[str] = ()) -> tuple[str, ...]:
        """The persons who approved a subject and whose approval no longer counts at a moment."""
        never = {same_person(one) for one in (*excluded, *self.approvers(subject, at=at))}
        found = {same_person(one.person): one.person for one in self.approvals if one.subject == subject}
        return tuple(person for name, person in found.items() if name not in never)


def same_person(name: str) -> str:
    """A person's name without what does not tell persons apart: case, spaces, forms of a letter."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def moment(text: str) -> datetime:
    """A time as entries write it: ISO 8601 with its offset from UTC."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"the time '{text}' does not say how far it is from UTC")
    return found.astimezone(UTC)
