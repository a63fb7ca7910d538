"""Approvals: whose signature counts, for what, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from flows.ledger.books import Asked, Policy
from flows.ledger.chain import Body
from flows.ledger.errors import Held, Pending, Refused
from flows.ledger.keys import Signed, new_key, public_of, read_key, sign, write_key
from flows.ledger.ledger import Ledger
from tests.flows.ledger.offices import (
    IDENTITY,
    KEYS,
    POLICY,
    Clock,
    asked,
    charges,
    found,
    go,
    grant,
    head,
    with_approvals,
)

QUARTER = Fraction(1, 4)
TWO_TO_SPEND = replace(POLICY, to_spend=2)


def pay(ledger: Ledger, run: str = "r1") -> None:
    ledger.charge(run, charges(QUARTER), price=QUARTER)


def held(act: Callable[[], object]) -> Pending:
    with pytest.raises(Held) as caught:
        act()
    return caught.value.pending


def waiting(url: str, clock: Clock | None = None, **other: object) -> tuple[Ledger, Pending]:
    """A ledger with a run that waits for two approvals."""
    ledger = found(url, clock, policy=TWO_TO_SPEND)
    go(ledger, "r1", asked(1, **other), to="identified")
    return ledger, held(lambda: pay(ledger))


def approval(ledger: Ledger, pending: Pending, key: Ed25519PrivateKey, /, **other: str) -> Body:
    """An approval as the ledger would write it, with parts exchanged."""
    expires = (ledger.books().last_at + timedelta(days=9)).isoformat(timespec="seconds")
    parts = {"ledger": ledger.books().ledger, "act": pending.act, "subject": pending.subject, "expires": expires}
    signature = sign(key, Signed(**(parts | {name: other[name] for name in parts if name in other})).message)
    entry = {name: parts[name] for name in ("act", "subject", "expires")}
    person = next((one.person for one in ledger.books().keys.values() if one.public == public_of(key)), "Eve")
    return entry | {"person": person, "key": public_of(key), "signature": signature} | {
        name: value for name, value in other.items() if name in ("person", "key", "signature")
    }  # fmt: skip


def test_a_run_is_held_until_as_many_persons_approve_as_its_policy_and_spec_want(url: str) -> None:
    ledger = found(url, policy=replace(POLICY, to_spend=1, to_publish=2))
    go(ledger, "r1", asked(1, to_spend=3), to="identified")
    for person in ("Ada", "Ben", "Cleo"):
        pending = held(lambda: pay(ledger))
        assert (pending.needed, held(lambda: ledger.require_approved_spending("r1"))) == (3, pending)
        ledger.approve(pending.subject[:12], KEYS[person])
    assert pending.given == ("Ada", "Ben")
    ledger.require_approved_spending("r1")
    pay(ledger)
    ledger.require_approved_spending("r1")
    ledger.store("r1", sha256="x", attempt=ledger.attempt("r1"))
    publish = lambda tables: ledger.publish("r1", version=1, manifest="m", tables=tables)  # noqa: E731
    pending = held(lambda: ledger.require_approved_publication("r1", "tables"))
    for person in ("Ada", "Dora"):
        held(lambda: publish("tables"))
        ledger.approve(pending.subject, KEYS[person])
    assert held(lambda: publish("other tables")).given == ()
    publish("tables")
    assert held(lambda: ledger.publish("r1", version=2, manifest="m", tables="tables")).given == ()


def test_a_held_payment_leaves_only_its_proposal_once(file: str) -> None:
    ledger, pending = waiting(file)
    before = head(file)
    for _ in range(3):
        held(lambda: pay(ledger))
        held(lambda: ledger.require_approved_spending("r1"))
    assert head(file) == before
    act, would = ledger.books().proposals[pending.subject]
    assert (act, would["price"], would["policy"]["cap"]) == ("run r1, to spend", "1/4", "1")
    assert ledger.books().held(POLICY.name) == QUARTER


@pytest.mark.parametrize(
    ("other", "match"),
    [
        ({"signature": "00" * 64}, "forged"),
        ({"signature": "no signature"}, "forged"),
        ({"ledger": "another ledger"}, "forged"),
        ({"act": "grant"}, "forged"),
        ({"subject": "0" * 64}, "forged"),
        ({"expires": "2099-01-01T00:00:00+00:00"}, "forged"),
        ({"person": "Ben"}, "forged"),
        ({"key": public_of(KEYS["Ben"])}, "forged"),
    ],
)
def test_a_signature_is_good_for_one_thing_in_one_ledger(file: str, other: dict[str, str], match: str) -> None:
    ledger, pending = waiting(file)
    before = head(file)
    with pytest.raises(Refused, match=match):
        ledger._enter("approved", approval(ledger, pending, KEYS["Ada"], **other))
    assert head(file) == before
    ledger._enter("approved", approval(ledger, pending, KEYS["Ada"]))


def test_a_signature_from_another_ledger_of_the_office_is_forged_here(tmp_path: Path) -> None:
    (here, pending), (there, other) = (waiting(str(tmp_path / name)) for name in ("here", "there"))
    there.approve(other.subject, KEYS["Ada"])
    with pytest.raises(Refused, match="forged"):
        here._enter("approved", approval(there, other, KEYS["Ada"]) | {"subject": pending.subject})


def test_a_key_that_is_not_enrolled_approves_nothing(file: str) -> None:
    ledger, pending = waiting(file)
    stranger = new_key()
    for act in (
        lambda: ledger.approve(pending.subject, stranger),
        lambda: ledger._enter("approved", approval(ledger, pending, stranger)),
    ):
        with pytest.raises(Refused, match="not enrolled"):
            act()


def test_a_revoked_key_approves_nothing_and_what_it_approved_counts_no_more(url: str) -> None:
    ledger, pending = waiting(url)
    ledger.approve(pending.subject, KEYS["Dora"])
    with_approvals(ledger, lambda: ledger.revoke(public_of(KEYS["Dora"])))
    with pytest.raises(Refused, match="was revoked"):
        ledger.approve(pending.subject, KEYS["Dora"])
    ledger.approve(pending.subject, KEYS["Ada"])
    assert held(lambda: pay(ledger)).given == ("Ada",)


def test_an_approval_expires(url: str, clock: Clock) -> None:
    ledger, pending = waiting(url, clock)
    ledger.approve(pending.subject, KEYS["Ada"], days=10)
    clock.advance(days=10, seconds=1)
    ledger.approve(pending.subject, KEYS["Ben"])
    assert held(lambda: pay(ledger)).given == ("Ben",)
    late = approval(ledger, pending, KEYS["Cleo"])
    clock.advance(days=20)
    with pytest.raises(Refused, match="expired"):
        ledger._enter("approved", late)
    ledger.approve(pending.subject, KEYS["Cleo"])
    pay(ledger)


@pytest.mark.parametrize("name", ["Ada", "ADA", " ada ", "Ada\u00a0"])
def test_a_person_with_two_keys_counts_once(file: str, name: str) -> None:
    ledger, pending = waiting(file)
    second = new_key()
    with_approvals(ledger, lambda: ledger.enrol(person=name, role="reviewer", public=public_of(second)))
    for key in (KEYS["Ada"], second, KEYS["Ada"]):
        ledger.approve(pending.subject, key)
    assert held(lambda: pay(ledger)).given == ("Ada",)


@pytest.mark.parametrize("involved", [{"author": "ada"}, {"started_by": " Ada"}])
def test_the_author_and_the_starter_do_not_count(file: str, involved: dict[str, str]) -> None:
    ledger, pending = waiting(file, **involved)
    for person in ("Ada", "Ben"):
        ledger.approve(pending.subject, KEYS[person])
    still = held(lambda: pay(ledger))
    assert (still.given, "may not approve it" in str(still)) == (("Ben",), True)
    ledger.approve(pending.subject, KEYS["Cleo"])
    pay(ledger)


@pytest.mark.parametrize("part", ["spec", "plan", "code", "edition", "author", "price", "dataset", "run"])
def test_another_spec_plan_dataset_or_run_needs_new_approvals(file: str, part: str) -> None:
    ledger, pending = waiting(file)
    for person in ("Ada", "Ben"):
        ledger.approve(pending.subject, KEYS[person])
    ledger.release("r1")
    other: Asked = asked(1)
    if part not in ("dataset", "run"):
        other = replace(other, **{part: Fraction(1, 8) if part == "price" else "another"})
    run, data = "r1" if part != "run" else "r2", b"microdata" if part != "dataset" else b"other"
    ledger.reserve("r3", other, POLICY.identity)
    ledger.identify("r3", data)
    assert run != "r3"
    fresh = held(lambda: ledger.charge("r3", charges(other.price), price=other.price))
    assert (fresh.given, fresh.subject != pending.subject) == ((), True)


@pytest.mark.parametrize(
    "changed",
    [{"cap": Fraction(2)}, {"delta": Fraction(1, 10**9)}, {"closes": "2030-01-01"}, {"to_publish": 1}, {"to_spend": 1}],
)
def test_a_policy_that_changed_after_the_approval_needs_it_again(file: str, changed: dict[str, object]) -> None:
    ledger, pending = waiting(file)
    for person in ("Ada", "Ben"):
        ledger.approve(pending.subject, KEYS[person])
    grant(ledger, replace(TWO_TO_SPEND, **changed))
    fresh = held(lambda: pay(ledger))
    assert (fresh.given, fresh.subject != pending.subject) == ((), True)


def test_exact_totals_need_two_whatever_the_policy_says(file: str) -> None:
    ledger = found(file)
    go(ledger, "r1", asked(1, exact=1), to="identified")
    assert held(lambda: pay(ledger)).needed == 2


def test_a_run_pays_when_each_exact_total_has_its_own_entry_with_a_reason(url: str) -> None:
    ledger = found(url, solo=True)
    ledger.reserve("r1", asked(1, exact=1), IDENTITY)
    ledger.identify("r1", b"microdata")
    with pytest.raises(Refused, match="publishes 1 exact totals and declared 0"):
        pay(ledger)
    with pytest.raises(Refused, match="with a reason"):
        ledger.declare_exact("r1", "total1", at=["county"], because=" ")
    for _ in range(2):  # a resumed run declares nothing twice
        ledger.declare_exact("r1", "total1", at=["county"], because="the register is public")
    pay(ledger)
    assert ledger.books().runs["r1"].totals == ["total1"]
    with pytest.raises(Refused, match="before payment"):
        ledger.declare_exact("r1", "total2", at=["county"], because="more")


def test_the_books_remember_who_approved_when_it_was_charged(file: str) -> None:
    ledger, pending = waiting(file)
    for person in ("Ada", "Ben"):
        ledger.approve(pending.subject, KEYS[person])
    pay(ledger)
    grant(ledger, replace(TWO_TO_SPEND, cap=TWO_TO_SPEND.cap + 1))
    assert ledger.books().runs["r1"].approved_by == ("Ada", "Ben")


def test_an_approved_grant_is_good_for_one_grant(url: str) -> None:
    ledger = found(url)
    higher: Policy = replace(POLICY, cap=Fraction(2))
    grant(ledger, higher)
    grant(ledger, POLICY)  # regretted, and lowered again
    before = [one for one in ledger.books().approvals if one.expires >= ledger.books().last_at]
    assert held(lambda: ledger.grant(higher)).given == ()
    assert len(before) >= 6
    assert ledger.books().policies[POLICY.name].cap == 1


def test_grants_enrolments_and_revocations_wait_for_two(url: str) -> None:
    ledger = found(url)
    newcomer = new_key()
    acts: list[Callable[[], None]] = [
        lambda: ledger.grant(replace(POLICY, period="2027")),
        lambda: ledger.enrol(person="Eve", role="reviewer", public=public_of(newcomer)),
        lambda: ledger.revoke(public_of(KEYS["Dora"])),
    ]
    for act in acts:
        for person in ("Ada", "Ben"):
            ledger.approve(held(act).subject, KEYS[person])
        act()
    books = ledger.books()
    assert (books.keys[public_of(newcomer)].person, books.keys[public_of(KEYS["Dora"])].revoked) == ("Eve", True)
    assert (("census", "2027") in books.policies, books.proposals) == (True, {})


def test_an_office_of_one_asks_nobody_and_its_books_say_so(url: str) -> None:
    ledger = found(url, solo=True, policy=replace(POLICY, to_spend=2, to_publish=2))
    go(ledger, "r1", asked(1, exact=1))
    assert (ledger.books().solo, ledger.books().runs["r1"].state) == (True, "published")


def test_a_private_key_is_a_file_for_its_owner_and_opens_with_its_passphrase(tmp_path: Path) -> None:
    key, place = new_key(), tmp_path / "ada.key"
    write_key(place, key, "open sesame")
    assert place.stat().st_mode & 0o777 == 0o600
    assert public_of(read_key(place, "open sesame")) == public_of(key)
    (tmp_path / "other").write_text("no key")
    for path, phrase in ((place, "wrong"), (place, None), (tmp_path / "other", None), (tmp_path / "none", None)):
        with pytest.raises(Refused, match="key"):
            read_key(path, phrase)
