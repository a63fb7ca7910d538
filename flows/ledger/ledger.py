"""The ledger: the one door through which budget is held, paid and accounted for.

Every method that enters something does so in one transaction that excludes all other writers: it reads what others
entered since, asks the rules, appends the entry, and returns when that is on disk. What the rules refuse leaves no
trace. Each answer is computed from the chain; nothing that could disagree with it is kept beside it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from flows.ledger.anchor import Anchor
from flows.ledger.books import Asked, Books, Identity, Policy, Run
from flows.ledger.chain import Body, Entry, linked
from flows.ledger.entering import next_entry, read_entry
from flows.ledger.errors import FOUND_ONE, HERE, Broken, Held, NoLedger, Pending, Refused
from flows.ledger.keys import Signed, key_from, new_key, private_bytes, public_of, sign
from flows.ledger.rules import pending_to_publish, pending_to_spend
from flows.ledger.spending import commitment
from flows.ledger.store import Store, open_store, require_newest
from mechanisms.charge import Charge

SECRET_BYTES, SALT_BYTES, ID_BYTES, PLACE_BYTES = 32, 16, 6, 32
OFFICE_KEY, FINGERPRINT_KEY = "office/key", "fingerprint/key"
VALID_DAYS, LONGEST_VALID_DAYS = 30, 366
"""How long an approval is good, and how long it can be."""

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The time."""
    return datetime.now(UTC)


class Ledger:
    """A ledger in a store."""

    def __init__(self, store: Store, *, now: Clock = utc_now) -> None:
        self._store, self._now = store, now
        self._books = Books()
        self._last: Entry | None = None

    @classmethod
    def open(cls, url: str, *, now: Clock = utc_now) -> Self:
        """The ledger at an address. Raises `NoLedger` where there is none and `Broken` where it was altered."""
        ledger = cls(open_store(url), now=now)
        ledger.books()
        return ledger

    @classmethod
    def found(
        cls, url: str, *, office: str, founders: Sequence[Mapping[str, str]] = (), solo: bool = False,
        now: Clock = utc_now,
    ) -> Self:  # fmt: skip
        """Founds a ledger. Founders are persons with a role and a public key; alone, there need be none."""
        key, salt, secret = new_key(), secrets.token_bytes(SALT_BYTES), secrets.token_bytes(SECRET_BYTES)
        content = {
            "ledger": secrets.token_hex(ID_BYTES),
            "office": office,
            "office_key": public_of(key),
            "fingerprint_key": commitment(FINGERPRINT_KEY, salt, secret),
            "solo": solo,
            "keys": [dict(one) for one in founders],
        }
        next_entry(Books(), None, now(), "founded", content)  # what is refused leaves no file behind
        ledger = cls(open_store(url), now=now)
        ledger._store.create()
        confided = {OFFICE_KEY: private_bytes(key), FINGERPRINT_KEY: salt + secret}
        ledger._enter("founded", content, confided=confided)
        return ledger

    @property
    def place(self) -> str:
        """Where the ledger is kept."""
        return self._store.place

    @property
    def database(self) -> Store:
        """Where its entries are kept, for verification."""
        return self._store

    def books(self) -> Books:
        """What the ledger says now. The caller must not change it."""
        self._catch_up()
        if self._last is None:
            raise NoLedger(f"there is no ledger at {self.place}; {FOUND_ONE}")
        return self._books

    def close(self) -> None:
        """Lets go of the database."""
        self._store.close()

    # Policies, keys, approvals

    def grant(self, policy: Policy) -> None:
        """Opens a policy, or changes the cap of one. Raises `Held` until two persons approved."""
        self._enter_or_propose("granted", policy.as_data())

    def enrol(self, *, person: str, role: str, public: str) -> None:
        """Enrols a person's key. Raises `Held` until two persons approved."""
        self._enter_or_propose("enrolled", {"person": person, "role": role, "key": public})

    def revoke(self, public: str) -> None:
        """Revokes a key. Raises `Held` until two persons approved."""
        self._enter_or_propose("revoked", {"key": public})

    def approve(self, subject: str, key: Ed25519PrivateKey, *, days: int = VALID_DAYS) -> str:
        """Signs what waits under a subject (its first digits are enough); returns the act."""
        books = self.books()
        found = [one for one in books.proposals if one.startswith(subject)] if subject else []
        if len(found) != 1:
            raise Refused(f"{'nothing' if not found else 'more than one thing'} waits for approval under '{subject}'")
        public = public_of(key)
        if public not in books.keys:
            raise Refused("this key is not enrolled in this ledger")
        if not 0 <= days <= LONGEST_VALID_DAYS:
            raise Refused(f"an approval is good for at most {LONGEST_VALID_DAYS} days, not for {days}")
        expires = (self._now() + timedelta(days=days)).isoformat(timespec="seconds")
        signed = Signed(books.ledger, books.proposals[found[0]][0], found[0], expires)
        content = {"act": signed.act, "subject": signed.subject, "expires": expires}
        who = {"person": books.keys[public].person, "key": public, "signature": sign(key, signed.message)}
        self._enter("approved", content | who)
        return signed.act

    # One run

    def reserve(self, run: str, asked: Asked, identity: Identity) -> Run:
        """Opens a run and holds its price; draws the secret key that decides which rows a cap keeps."""
        secret, salt = secrets.token_bytes(SECRET_BYTES), secrets.token_bytes(SALT_BYTES)
        name = f"run/{run}/key"
        content = {"run": run, "key": commitment(name, salt, secret), "identity": identity.as_data()}
        self._enter("reserved", content | asked.as_data(), confided={name: salt + secret})
        return self._books.runs[run]

    def row_key(self, run: str) -> bytes:
        """The secret key of a run, for the confidential step alone."""
        return self._secret(f"run/{run}/key")[SALT_BYTES:]

    def fingerprint_key(self) -> bytes:
        """The secret key of all fingerprints, for the confidential step alone."""
        return self._secret(FINGERPRINT_KEY)[SALT_BYTES:]

    def identify(self, run: str, fingerprint: bytes, *, places: Collection[bytes] = ()) -> None:
        """Notes which microdata a run is about. Files that another account pays for are refused.

        `places` are keyed hashes of the files' names. Names decide, never records: with other records in a file of the
        same name the answer is the same (law 3). Only for one run are other records refused: it would be a second draw.
        """
        found, name, named = self._run(run), f"run/{run}/dataset", f"run/{run}/places"
        kept = self._store.confided(name)
        salt = kept[:SALT_BYTES] if kept is not None else secrets.token_bytes(SALT_BYTES)
        stated = commitment(name, salt, fingerprint)
        if found.dataset == stated:
            return
        where = b"".join(sorted(places))
        self._enter(
            "identified",
            {"run": run, "dataset": stated, "places": commitment(named, salt, where)},
            confided={} if kept is not None else {name: salt + fingerprint, named: salt + where},
            allow=lambda: self._require_one_account(found.asked.account, set(places)),
        )

    def is_dataset(self, run: str, fingerprint: bytes) -> bool:
        """Whether these are the microdata that a run was made from."""
        kept = self._store.confided(f"run/{run}/dataset")
        return kept is not None and kept[SALT_BYTES:] == fingerprint

    def _require_one_account(self, account: str, places: Collection[bytes]) -> None:
        """Refuses files that another account pays for; a reservation that was given back paid for nothing."""
        for run in self._books.runs.values():
            if run.asked.account == account or run.places is None or run.released:
                continue
            kept = self._secret(f"run/{run.id}/places")[SALT_BYTES:]
            if any(kept[start : start + PLACE_BYTES] in places for start in range(0, len(kept), PLACE_BYTES)):
                raise Refused(
                    f"files of these names were released under account '{run.asked.account}'; let it pay for this "
                    "release too. If they hold other records now, give them names of their own"
                )

    def other_payers(self, run: str) -> list[str]:
        """The accounts that paid for the very records of a run, for the custodian's eyes alone: records decide it."""
        mine, account = self._store.confided(f"run/{run}/dataset"), self._run(run).asked.account
        others = [one for one in self._books.runs.values() if one.asked.account != account and one.charged]
        same = [one for one in others if mine and self.is_dataset(one.id, mine[SALT_BYTES:])]
        return sorted({one.asked.account for one in same})

    def require_approved_spending(self, run: str) -> None:
        """Raises `Held` until a run may be charged, and says what must be approved. What is paid needs no more."""
        found = self._run(run)
        pending = pending_to_spend(self._books, found, at=self._now())
        if not found.charged and not pending.is_met:
            self._propose(pending)
            raise Held(pending)

    def declare_exact(self, run: str, total: str, *, at: Sequence[str], because: str) -> None:
        """Notes an exact total from the microdata, which has no price and is outside the guarantee."""
        if total not in self._run(run).totals:
            self._enter("exact", {"run": run, "total": total, "at": list(at), "because": because})

    def charge(self, run: str, charges: Sequence[Charge], *, price: Fraction) -> None:
        """Pays for what a run measures; again, with two approvals, where all its attempts were lost."""
        self._enter_or_propose(
            "charged", {"run": run, "charges": [one.as_data() for one in charges], "price": str(price)}
        )

    def attempt(self, run: str) -> int:
        """Notes that a run is about to draw; returns which attempt it is."""
        number = self._run(run).attempts + 1
        self._enter("attempted", {"run": run, "number": number})
        return number

    def store(self, run: str, *, sha256: str, attempt: int) -> None:
        """Notes the hash of the measurements that a run stored."""
        self._enter("stored", {"run": run, "sha256": sha256, "attempt": attempt})

    def release(self, run: str) -> None:
        """Gives back the reservation of a run that was not charged."""
        self._enter("released", {"run": run})

    def review(self, run: str, *, by: str, reason: str = "") -> None:
        """Records the custodian's decision: a reason rejects the release."""
        self._enter("reviewed", {"run": run, "by": by, "reason": reason})

    def require_approved_publication(self, run: str, tables: str) -> None:
        """Raises `Held` until these tables may be published, and says what must be approved."""
        found = self._run(run)
        pending = pending_to_publish(self._books, found, tables, at=self._now())
        if not pending.is_met:
            self._propose(pending)
            raise Held(pending)

    def publish(self, run: str, *, version: int, manifest: str, tables: str) -> None:
        """Records a publication."""
        self._enter("published", {"run": run, "version": version, "manifest": manifest, "tables": tables})

    # Looking, anchors, signatures

    def record_look(self, release: str, parts: Mapping[str, str], *, by: str) -> None:
        """Records that the records are about to be looked at (law 11)."""
        self._enter("inspected", {"release": release, "parts": dict(parts), "by": by})

    def restore(self, anchors: Sequence[Anchor]) -> None:
        """Records that this copy is used although anchors are ahead of it, and charges what it lost."""
        self._enter_or_propose("restored", {"anchors": [one.as_data() for one in anchors]})

    def anchor(self) -> Anchor:
        """What to publish of the ledger: who compares it later sees whether entries were removed or rewritten."""
        books = self.books()
        assert self._last is not None  # noqa: S101 - books() raised otherwise
        spent = {f"{account}/{period}": books.spent((account, period)) for account, period in books.policies}
        return Anchor(books.ledger, self._last.seq, self._last.hash, spent)

    def record_anchor(self, anchor: Anchor, where: str) -> None:
        """Records where an anchor was published."""
        self._enter("anchored", {"seq": anchor.seq, "hash": anchor.hash, "where": where})

    def office_signature(self, message: bytes) -> str:
        """The office's signature, for manifests."""
        return sign(key_from(self._secret(OFFICE_KEY)), message)

    # How entries come and go

    def _run(self, run: str) -> Run:
        if run not in self.books().runs:
            raise Refused(f"there is no run '{run}' in the ledger {self.place}; see: margrave ledger show{HERE}")
        return self._books.runs[run]

    def _secret(self, name: str) -> bytes:
        found = self._store.confided(name)
        if found is None:
            raise Broken(f"the confidential value '{name}' is missing from the ledger {self.place}")
        return found

    def _enter_or_propose(self, kind: str, content: Body) -> None:
        try:
            self._enter(kind, content)
        except Held as fault:
            self._propose(fault.pending)
            raise

    def _propose(self, pending: Pending) -> None:
        if pending.subject not in self.books().proposals:
            self._enter("proposed", {"act": pending.act, "subject": pending.subject, "would": dict(pending.would)})

    def _enter(
        self, kind: str, content: Body, *, confided: Mapping[str, bytes] | None = None,
        allow: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        try:
            with self._store.writing() as writing:
                require_newest(self._store)
                self._catch_up()
                if allow is not None:
                    allow()
                entry = next_entry(self._books, self._last, self._now(), kind, content)
                writing.append(entry)
                for name, value in (confided or {}).items():
                    writing.confide(name, value)
        except BaseException:
            self._books, self._last = Books(), None  # whatever a rule began to change is read anew
            raise
        self._last = entry

    def _catch_up(self) -> None:
        """Reads what was entered since the last time, and checks it; what was last must still be there."""
        last = self._last
        entries = iter(self._store.entries_after(last.seq - 1 if last is not None else 0))
        if last is not None and next(entries, None) != last:
            raise Broken(f"entry {last.seq} of the ledger {self.place} was exchanged or removed while it was in use")
        for entry in linked(entries, last):
            read_entry(self._books, entry)
            self._last = entry
