"""How a ledger begins, and how a policy is written."""

from __future__ import annotations

from datetime import date

from flows.ledger.books import CURRENCIES, Books, Identity, Key, Policy, same_person
from flows.ledger.errors import Refused
from flows.ledger.keys import ROLES, is_public_key
from mechanisms.plain_data import Found

LEAST_FOUNDERS = 2
RELATIONS = ("add-remove", "replace")


def found_ledger(books: Books, found: Found) -> None:
    """The founding: the ledger's name, the office, its key, and the first persons who may approve."""
    found.has_only("ledger", "office", "office_key", "fingerprint_key", "solo", "keys")
    books.ledger, books.office = found.text("ledger"), found.text("office")
    books.office_key, books.solo = found.text("office_key"), found.truth("solo")
    books.fingerprint_key = found.text("fingerprint_key")
    if not is_public_key(books.office_key) or not books.ledger:
        raise Refused("a ledger is founded with a name and the office's public key")
    for one in found.parts("keys"):
        one.has_only("person", "role", "key")
        key = Key(one.text("person"), one.text("role"), one.text("key"))
        if key.role not in ROLES or not is_public_key(key.public) or key.public in books.keys:
            raise Refused(f"the key of {key.person} is no new Ed25519 key with a role of {', '.join(ROLES)}")
        if not same_person(key.person):
            raise Refused("a key belongs to a person with a name")
        books.keys[key.public] = key
    persons = {same_person(key.person) for key in books.keys.values()}
    if not books.solo and len(persons) < LEAST_FOUNDERS:
        raise Refused(
            "a ledger with approvals is founded by the keys of at least two persons; "
            "name them with --founder FILE, or found it for one person with --solo"
        )


def read_policy(found: Found) -> Policy:
    """The policy that an entry opens."""
    found.has_only("account", "period", "currency", "cap", "delta", "identity", "closes", "to_spend", "to_publish")
    who = found.part("identity")
    who.has_only("protect", "relation", "singles")
    policy = Policy(
        account=found.text("account"),
        period=found.text("period"),
        currency=found.text("currency"),
        cap=found.fraction("cap"),
        delta=found.fraction("delta") if found.text("delta") else None,
        identity=Identity(who.text("protect"), who.text("relation"), who.text("singles")),
        closes=found.text("closes"),
        to_spend=found.whole("to_spend"),
        to_publish=found.whole("to_publish"),
    )
    if policy.currency not in CURRENCIES:
        raise Refused(f"a policy counts in {' or '.join(CURRENCIES)}, not in '{policy.currency}'")
    if policy.cap <= 0 or min(policy.to_spend, policy.to_publish) < 0:
        raise Refused("a policy has a positive cap and no negative number of approvals")
    if policy.identity.relation not in RELATIONS or not (policy.account and policy.period and policy.identity.protect):
        raise Refused("a policy names its account, its period, whom it protects and the relation of neighbours")
    if "/" in policy.account:
        raise Refused(f"an account's name has no '/', found '{policy.account}': anchors write ACCOUNT/PERIOD")
    if policy.closes:
        date.fromisoformat(policy.closes)
    return policy
