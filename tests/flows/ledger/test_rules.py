"""The rules that keep a run to one draw, one price and one edition, whatever calls are made in whatever order."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from flows.ledger.books import Books, Identity
from flows.ledger.chain import digest
from flows.ledger.errors import Held, Refused
from flows.ledger.ledger import Ledger
from flows.ledger.rules import enter
from mechanisms.charge import Charge
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.sensitivity import Counts, Relation, Unit
from tests.flows.ledger.offices import (
    IDENTITY,
    KEYS,
    NAME,
    POLICY,
    Clock,
    asked,
    charges,
    found,
    go,
    grant,
    with_approvals,
)

QUARTER = Fraction(1, 4)


def lost(ledger: Ledger, run: str) -> None:
    """Three draws that were never stored."""
    for _ in range(3):
        ledger.attempt(run)


def test_after_three_lost_draws_a_run_needs_two_approvals_and_a_new_charge(url: str) -> None:
    ledger = found(url)
    go(ledger, "r1", asked(1), to="charged")
    lost(ledger, "r1")
    with pytest.raises(Refused, match="drew 3 times and stored nothing"):
        ledger.attempt("r1")
    with pytest.raises(Held, match="attempt 4 of run r1, at a new charge needs 2 approvals") as caught:
        ledger.charge("r1", charges(QUARTER), price=QUARTER)
    ledger.approve(caught.value.pending.subject, KEYS["Ada"])
    with pytest.raises(Held, match="given so far by Ada"):
        ledger.charge("r1", charges(QUARTER), price=QUARTER)
    ledger.approve(caught.value.pending.subject, KEYS["Ben"])
    ledger.charge("r1", charges(QUARTER), price=QUARTER)
    assert (ledger.books().spent(NAME), ledger.attempt("r1")) == (Fraction(1, 2), 4)
    ledger.store("r1", sha256="x", attempt=4)
    assert ledger.books().runs["r1"].state == "stored"


def test_a_new_charge_has_its_price_and_its_measurements_and_must_fit(file: str) -> None:
    ledger = found(file, policy=replace(POLICY, cap=Fraction(1, 3)))
    go(ledger, "r1", asked(1), to="charged")
    lost(ledger, "r1")
    for price, match in ((Fraction(1, 1000), "not for others"), (QUARTER, "has 1/12 left")):
        with pytest.raises(Refused, match=match) as caught:
            ledger.charge("r1", charges(price), price=price)
        assert not isinstance(caught.value, Held)
    grant(ledger, replace(POLICY, cap=Fraction(1, 2)))
    with_approvals(ledger, lambda: ledger.charge("r1", charges(QUARTER), price=QUARTER))
    assert ledger.books().left(NAME) == 0


def test_a_new_charge_needs_as_many_approvals_as_the_first(file: str) -> None:
    ledger = found(file, policy=replace(POLICY, to_spend=3))
    go(ledger, "r1", asked(1), to="identified")
    pay = lambda: ledger.charge("r1", charges(QUARTER), price=QUARTER)  # noqa: E731
    with_approvals(ledger, pay)
    lost(ledger, "r1")
    with pytest.raises(Held, match="needs 3 approvals"):
        pay()


def test_two_processes_of_one_run_do_not_both_store(file: str) -> None:
    one = found(file)
    go(one, "r1", asked(1), to="charged")
    two = Ledger.open(file, now=Clock())
    assert (one.attempt("r1"), two.attempt("r1")) == (1, 2)
    with pytest.raises(Refused, match="at attempt 2, not 1"):
        one.store("r1", sha256="first", attempt=1)
    two.store("r1", sha256="second", attempt=2)
    stored = one.books().runs["r1"].stored
    assert stored is not None
    assert (stored.sha256, stored.attempt) == ("second", 2)


def test_a_rejection_is_final_frees_the_edition_and_gives_nothing_back(url: str) -> None:
    ledger = found(url)
    go(ledger, "r1", asked(1), to="stored")
    ledger.review("r1", by="Custodian")
    ledger.review("r1", by="Custodian", reason="unfit-for-use")
    go(ledger, "r2", asked(1))
    for act in (
        lambda: ledger.review("r1", by="Custodian"),
        lambda: ledger.publish("r1", version=1, manifest="m", tables="t"),
        lambda: ledger.attempt("r1"),
        lambda: ledger.release("r1"),
        lambda: ledger.review("r2", by="Custodian", reason="withdrawn"),
    ):
        with pytest.raises(Refused, match=r"rejected|published"):
            act()
    books = ledger.books()
    assert (books.spent(NAME), books.runs["r1"].rejected) == (Fraction(1, 2), "unfit-for-use")


def test_a_paid_run_that_cannot_go_on_is_given_up_and_stays_paid(file: str) -> None:
    ledger = found(file)
    go(ledger, "r1", asked(1), to="charged")
    lost(ledger, "r1")
    ledger.review("r1", by="Custodian", reason="error-in-software")
    for act in (
        lambda: ledger.attempt("r1"),
        lambda: ledger.store("r1", sha256="x", attempt=3),
        lambda: ledger.charge("r1", charges(QUARTER), price=QUARTER),
    ):
        with pytest.raises(Refused, match="rejected"):
            act()
    go(ledger, "r2", asked(1))
    assert ledger.books().spent(NAME) == Fraction(1, 2)


def test_a_reissue_is_the_next_version_of_the_same_measurements(file: str) -> None:
    ledger = found(file)
    go(ledger, "r1", asked(1))
    ledger.publish("r1", version=2, manifest="second", tables="t2")
    with pytest.raises(Refused, match="2 is not next"):
        ledger.publish("r1", version=2, manifest="again", tables="t3")
    assert ledger.books().runs["r1"].versions == ["manifest of r1", "second"]
    assert ledger.books().spent(NAME) == QUARTER


def test_charges_under_another_relation_than_the_accounts_are_refused(file: str) -> None:
    ledger = found(file, policy=replace(POLICY, identity=replace(IDENTITY, relation="replace")))
    ledger.reserve("r1", asked(1), Identity("persons", "replace"))
    ledger.identify("r1", b"data")
    with pytest.raises(Refused, match="priced under add-remove"):
        ledger.charge("r1", charges(QUARTER), price=QUARTER)
    ledger.charge("r1", charges(QUARTER, Relation.REPLACE), price=QUARTER)


def test_an_account_in_epsilon_takes_pure_mechanisms_only(file: str) -> None:
    ledger = found(file, policy=replace(POLICY, currency="epsilon", delta=None))
    go(ledger, "r1", asked(1), to="identified")
    with pytest.raises(Refused, match="no price in epsilon"):
        ledger.charge("r1", charges(QUARTER), price=QUARTER)
    pure = [Charge("people", DiscreteLaplace(Fraction(4)), Counts(), Unit(), Relation.ADD_REMOVE)]
    ledger.charge("r1", pure, price=QUARTER)
    assert ledger.books().spent(NAME) == QUARTER


def test_a_cap_is_lowered_to_what_is_committed_and_no_further(file: str) -> None:
    ledger = found(file)
    go(ledger, "r1", asked(1), to="charged")
    ledger.reserve("r2", asked(2), IDENTITY)
    grant(ledger, replace(POLICY, cap=Fraction(1, 2)))
    with pytest.raises(Refused, match="below what was spent and reserved already: 1/2"):
        ledger.grant(replace(POLICY, cap=Fraction(1, 3)))
    assert ledger.books().left(NAME) == 0


def test_two_persons_keep_a_key(file: str) -> None:
    ledger = found(file)
    publics = {key.person: key.public for key in ledger.books().keys.values()}
    for person in ("Dora", "Cleo"):
        with_approvals(ledger, lambda person=person: ledger.revoke(publics[person]))
    with pytest.raises(Refused, match="two persons must keep a key"):
        ledger.revoke(publics["Ben"])
    with pytest.raises(Refused, match="was revoked"):
        ledger.revoke(publics["Dora"])


BODY: dict[str, Any] = {"format": 1, "kind": "founded", "at": "2026-03-01T12:00:00+00:00", "content": {}}


@pytest.mark.parametrize(
    "body",
    [
        BODY | {"format": 2},
        BODY | {"kind": "erased"},
        BODY | {"kind": "reserved"},
        BODY | {"at": "2026-03-01T12:00:00"},
        BODY | {"at": "9999-12-31T23:59:59-23:59"},
        BODY | {"content": []},
        {"format": 1},
    ],
)
def test_what_is_no_entry_is_not_entered(body: dict[str, Any]) -> None:
    with pytest.raises((ValueError, Refused, OverflowError)):
        enter(Books(), body)


def test_a_proposal_that_shows_something_else_than_it_would_do_is_refused(file: str) -> None:
    ledger = found(file)
    would = {"act": "grant", "ledger": ledger.books().ledger, "number": 2} | POLICY.as_data()
    shown, true = would | {"cap": "2"}, would | {"cap": "1000"}
    for act, subject in (("grant", digest(true)), ("enrol", digest(shown))):
        with pytest.raises(Refused, match="shows in full what its approval signs"):
            ledger._enter("proposed", {"act": act, "subject": subject, "would": shown})
    ledger._enter("proposed", {"act": "grant", "subject": digest(shown), "would": shown})
