"""What persons do with a ledger: found it, make keys, open budgets, approve."""

from __future__ import annotations

import argparse
import getpass
import json
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.ledger.errors import HERE
from flows.terminal import HELD, OK, WRONG_INPUT, UserError, load_or_say, plainly, say
from flows.workplace import Workplace

if TYPE_CHECKING:
    from flows.ledger.errors import Held

PUBLIC = ".pub"


def place_of(chosen: argparse.Namespace, beside: Path | None = None) -> Workplace:
    """The ledger that a command names."""
    return Workplace.chosen(ledger=chosen.ledger, beside=beside or Path())


def init(chosen: argparse.Namespace) -> int:
    """Founds a ledger."""
    from flows.ledger.ledger import Ledger

    place = place_of(chosen)
    office = chosen.office or f"the office of {getpass.getuser()}"
    founders = [read_public(path) for path in chosen.founder]
    ledger = Ledger.found(place.ledger, office=office, founders=founders, solo=chosen.solo)
    books = ledger.books()
    say(f"Founded ledger {books.ledger} of {books.office} in {ledger.place}.")
    for line in ledger.database.advice():
        say(line)
    if chosen.solo:
        say("It is for one person: nothing needs approval, and every certificate will say so.")
        say(place.hinted(f"Next: margrave run SPEC --data NAME=PATH{HERE}"))
    else:
        say(f"Approvals are given by {', '.join(key.person for key in books.keys.values())}.")
        say(place.hinted(f"Next: margrave ledger grant SPEC --cap AMOUNT{HERE}"))
    return OK


def make_key(chosen: argparse.Namespace) -> int:
    """Makes a signing key."""
    from flows.ledger.keys import new_key, public_of, write_key

    public = chosen.file.with_name(chosen.file.name + PUBLIC)
    if chosen.file.exists() or public.exists():
        raise UserError(f"there is a file {chosen.file} or {public} already; choose another name")
    key = new_key()
    try:
        write_key(chosen.file, key)
        text = json.dumps({"person": chosen.person, "role": chosen.role, "key": public_of(key)})
        public.write_text(text + "\n", encoding="utf-8")
    except OSError as fault:
        raise UserError(f"{chosen.file} cannot be written: {fault.strerror}") from None
    say(f"{chosen.file} is the private key of {chosen.person}: nobody else may have it. {public} goes to the ledger.")
    return OK


def read_public(path: Path) -> dict[str, str]:
    """A person's public key, as `make_key` wrote it."""
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
        return {name: str(found[name]) for name in ("person", "role", "key")}
    except OSError as fault:
        raise UserError(f"{path} cannot be read: {fault.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path} is no public key; expected the .pub file that 'margrave ledger key' wrote") from None


def grant(chosen: argparse.Namespace) -> int:
    """Opens a budget."""
    from flows.ledger.books import Policy
    from flows.ledger.errors import Held
    from flows.plan import plan_release
    from flows.preparing import identity_of, payer_of
    from release_specs.language.values import read_positive

    loaded = load_or_say(chosen.spec, "Nothing was granted")
    if loaded is None:
        return WRONG_INPUT
    try:
        cap = read_positive(chosen.cap)
    except ValueError as fault:
        raise UserError(f"--cap: {fault}") from None
    plan = plan_release(loaded, folder=chosen.spec.parent, edition=chosen.edition)
    account, period = payer_of(plan)
    policy = Policy(
        account, period, plan.currency, cap, loaded.spec.privacy.budget.delta, identity_of(loaded.spec),
        chosen.closes, chosen.to_spend, chosen.to_publish,
    )  # fmt: skip
    place = place_of(chosen, chosen.spec.parent)
    try:
        place.open_ledger().grant(policy)
    except Held as held:
        return waiting(held, place)
    say(f"Account '{account}' may spend {plan.currency} {cap} in '{period}', protecting {policy.identity}.")
    return OK


def enrol(chosen: argparse.Namespace) -> int:
    """Enrols a key."""
    from flows.ledger.errors import Held

    found = read_public(chosen.file)
    try:
        place_of(chosen).open_ledger().enrol(person=found["person"], role=found["role"], public=found["key"])
    except Held as held:
        return waiting(held, place_of(chosen))
    say(f"The key of {found['person']} ({found['role']}) is enrolled.")
    return OK


def revoke(chosen: argparse.Namespace) -> int:
    """Revokes a key."""
    from flows.ledger.errors import Held

    ledger = place_of(chosen).open_ledger()
    found = [key for key in ledger.books().keys.values() if key.public.startswith(chosen.key)]
    if len(found) != 1:
        raise UserError(
            f"{len(found)} enrolled keys begin with '{chosen.key}'; name one, see: margrave ledger show{HERE}"
        )
    try:
        ledger.revoke(found[0].public)
    except Held as held:
        return waiting(held, place_of(chosen))
    say(f"The key of {found[0].person} is revoked.")
    return OK


def approve(chosen: argparse.Namespace) -> int:
    """Signs what waits."""
    from flows.ledger.books import same_person
    from flows.ledger.keys import public_of, read_key

    if chosen.key.suffix == PUBLIC:
        raise UserError(f"{chosen.key} is the public half of a key; name the private one: --key {chosen.key.stem}")
    key, ledger = read_key(chosen.key), place_of(chosen).open_ledger()
    books = ledger.books()
    mine = books.keys.get(public_of(key))
    if mine is None:
        raise UserError(
            f"the key {chosen.key} is not enrolled here; "
            f"enrol it with: margrave ledger enrol {chosen.key}{PUBLIC}{HERE}"
        )
    found = [one for one in books.proposals if chosen.subject and one.startswith(chosen.subject)]
    if len(found) != 1:
        raise UserError(
            f"{len(found)} things wait for approval under '{chosen.subject}'; see: margrave ledger show{HERE}"
        )
    act, would = books.proposals[found[0]]
    run = books.runs.get(str(would.get("run")))
    if run is not None and same_person(mine.person) in {same_person(one) for one in run.asked.involved}:
        raise UserError(f"{mine.person} wrote the spec of run {run.id} or started it, and may not approve it")
    if mine.person in books.approvers(found[0], at=datetime.now(UTC)):
        raise UserError(f"{mine.person} has approved this already; another person must")
    say(f"{mine.person} approves {act}: {in_words(act, would)}")
    ledger.approve(found[0], key)
    say("Approved. Who asked for it calls the same command again.")
    return OK


def in_words(act: str, would: dict[str, Any]) -> str:
    """What an approval is for, in words; its digest covers every detail."""
    if act == "grant":
        who = would["identity"]
        return (
            f"account '{would['account']}' may spend {would['currency']} {plainly(Fraction(would['cap']))} in "
            f"'{would['period']}', protecting {who['protect']} under {who['relation']}"
        )
    if would.get("act") == "spend":
        return (
            f"'{would['release']}', edition {would['edition']}, spends {plainly(Fraction(would['price']))} of account "
            f"'{would['account']}'; spec by {would['author']}, started by {would['started_by']}"
        )
    if "person" in would:
        return f"{would['person']} as {would['role']}"
    return ", ".join(f"{name} {value}" for name, value in would.items() if name not in ("act", "ledger"))


def waiting(held: Held, place: Workplace) -> int:
    """Says what an act waits for."""
    say(place.hinted(f"Held: {held}"))
    say("Call this command again when it is approved.")
    return HELD
