"""The ledger's contract, the same on a SQLite file and on a PostgreSQL server."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from hashlib import sha256

import pytest
from adbc_driver_postgresql import dbapi

from flows.ledger.anchor import Anchor
from flows.ledger.errors import Held, LedgerError, NoLedger, Refused
from flows.ledger.keys import holds, public_of
from flows.ledger.ledger import Ledger
from flows.ledger.store import open_store
from tests.flows.ledger.offices import (
    IDENTITY,
    KEYS,
    NAME,
    POLICY,
    STEPS,
    Clock,
    asked,
    charges,
    entries,
    failed,
    found,
    go,
    grant,
    head,
)

QUARTER = Fraction(1, 4)


def test_a_release_is_reserved_identified_charged_drawn_stored_and_published(url: str) -> None:
    ledger = found(url)
    seen = []
    for step in STEPS:
        go(ledger, f"to-{step}", asked(1, release=step, price=Fraction(1, 16)), to=step)
        seen.append(ledger.books().runs[f"to-{step}"].state)
    assert seen == ["reserved", "identified", "charged", "charged", "stored", "published"]
    books = ledger.books()
    assert (books.spent(NAME), books.held(NAME), books.left(NAME)) == (
        Fraction(4, 16),
        Fraction(2, 16),
        Fraction(10, 16),
    )
    assert failed(url, [ledger.anchor()]) == {}


def test_what_one_process_entered_another_sees(url: str) -> None:
    first = found(url)
    second = Ledger.open(url, now=Clock())
    go(first, "r1", asked(1), to="charged")
    assert second.books().runs["r1"].state == "charged"
    assert second.attempt("r1") == 1
    first.store("r1", sha256="x", attempt=1)
    assert (first.anchor(), second.books().runs["r1"].state) == (second.anchor(), "stored")


def test_the_same_entries_are_read_from_the_start_and_step_by_step(url: str) -> None:
    ledger = found(url)
    go(ledger, "r1", asked(1))
    assert Ledger.open(url).books() == ledger.books()


REFUSED: dict[str, Callable[[Ledger], object]] = {
    "a second run of an edition": lambda one: one.reserve("again", asked(1), IDENTITY),
    "a run id twice": lambda one: one.reserve("charged", asked(9), IDENTITY),
    "a run without a name": lambda one: one.reserve("", asked(9), IDENTITY),
    "more than is left": lambda one: one.reserve("big", asked(9, price=Fraction(1)), IDENTITY),
    "a period without a budget": lambda one: one.reserve("other", asked(9, period="2027"), IDENTITY),
    "an unknown account": lambda one: one.reserve("other", asked(9, account="nobody"), IDENTITY),
    "another unit": lambda one: one.reserve("other", asked(9), replace(IDENTITY, protect="households")),
    "another relation": lambda one: one.reserve("other", asked(9), replace(IDENTITY, relation="replace")),
    "a price of nothing": lambda one: one.reserve("free", asked(9, price=Fraction(0)), IDENTITY),
    "other microdata": lambda one: one.identify("identified", b"other microdata"),
    "a charge before the microdata are known": lambda one: one.charge("reserved", charges(QUARTER), price=QUARTER),
    "a charge that lies about its price": lambda one: one.charge("identified", charges(QUARTER / 4), price=QUARTER / 8),
    "a charge above the reservation": lambda one: one.charge("identified", charges(QUARTER * 2), price=QUARTER * 2),
    "a charge for nothing": lambda one: one.charge("identified", [], price=Fraction(0)),
    "a second charge": lambda one: one.charge("charged", charges(Fraction(1, 16)), price=Fraction(1, 16)),
    "a draw before the charge": lambda one: one.attempt("identified"),
    "a draw of what is stored": lambda one: one.attempt("stored"),
    "storing without a draw": lambda one: one.store("charged", sha256="x", attempt=1),
    "storing again": lambda one: one.store("stored", sha256="x", attempt=1),
    "giving back after a charge": lambda one: one.release("charged"),
    "publishing what is not stored": lambda one: one.publish("charged", version=1, manifest="m", tables="t"),
    "publishing version 2 first": lambda one: one.publish("stored", version=2, manifest="m", tables="t"),
    "approving what is not paid": lambda one: one.review("identified", by="C"),
    "approving what is not stored": lambda one: one.review("charged", by="C"),
    "an unheard reason": lambda one: one.review("stored", by="C", reason="ugly"),
    "a run nobody opened": lambda one: one.attempt("nobody"),
    "identifying a run nobody opened": lambda one: one.identify("nobody", b"x"),
    "approving a run nobody opened": lambda one: one.require_approved_spending("nobody"),
    "publishing a run nobody opened": lambda one: one.require_approved_publication("nobody", "t"),
    "a currency changed": lambda one: one.grant(replace(POLICY, period="2027", currency="epsilon")),
    "a unit changed": lambda one: one.grant(replace(POLICY, period="2027", identity=replace(IDENTITY, singles="x"))),
    "a cap below what is spent": lambda one: one.grant(replace(POLICY, cap=Fraction(1, 100))),
    "a day that is none": lambda one: one.grant(replace(POLICY, period="2027", closes="soon")),
    "a stroke in an account's name": lambda one: one.grant(replace(POLICY, account="a/b")),
    "a currency that is none": lambda one: one.grant(replace(POLICY, account="b", currency="euro")),
    "a role that is none": lambda one: one.enrol(person="Eve", role="boss", public="00" * 32),
    "a key that is none": lambda one: one.enrol(person="Eve", role="reviewer", public="00"),
    "a key without a person": lambda one: one.enrol(person=" ", role="reviewer", public="00" * 32),
    "a key enrolled already": lambda one: one.enrol(person="Eve", role="reviewer", public=public_of(KEYS["Ada"])),
    "revoking an unknown key": lambda one: one.revoke("00" * 32),
    "approving what does not wait": lambda one: one.approve("f00d", KEYS["Ada"]),
}


@pytest.mark.parametrize("solo", [False, True], ids=["office", "solo"])
def test_what_is_refused_leaves_nothing_behind(url: str, solo: bool) -> None:
    ledger = found(url, solo=solo)
    for number, step in enumerate(STEPS[:5], start=1):
        go(ledger, step, asked(number, price=Fraction(1, 16)), to=step)
    if solo:
        ledger.enrol(person="Ada", role="director", public=public_of(KEYS["Ada"]))
    books, store = ledger.books(), open_store(url)
    before = list(store.entries_after(0)), store.confided_names()
    for case, act in REFUSED.items():
        with pytest.raises(Refused) as caught:
            act(ledger)
        assert not isinstance(caught.value, Held), case
        assert (list(store.entries_after(0)), store.confided_names()) == before, case
    assert ledger.books() == books == Ledger.open(url).books()
    assert failed(url) == {}


def test_the_tables_refuse_to_change_or_remove_what_is_in_them(url: str) -> None:
    go(found(url), "r1", asked(1))
    before = entries(url)
    statements = ["UPDATE entries SET hash = 'x'", "DELETE FROM entries"]
    statements += ["UPDATE confidential SET name = 'x'", "DELETE FROM confidential"]
    if url.startswith("postgresql"):
        statements += ["TRUNCATE entries", "TRUNCATE confidential"]
    for statement in statements:
        with pytest.raises((sqlite3.DatabaseError, dbapi.Error), match="never"):
            _execute(url, statement)
    assert (entries(url), failed(url)) == (before, {})


def _execute(url: str, statement: str) -> None:
    if url.startswith("postgresql"):
        with dbapi.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute("SET search_path = margrave")
            cursor.execute(statement)
            connection.commit()
    else:
        with sqlite3.connect(url) as plain:
            plain.execute(statement)


def test_budgets_are_exact_fractions_to_the_last_part(url: str) -> None:
    third = Fraction(1, 3)
    ledger = found(url)
    for number in range(3):
        go(ledger, f"r{number}", asked(number, price=third), to="charged")
    assert (ledger.books().left(NAME), ledger.books().spent(NAME)) == (0, 1)
    with pytest.raises(Refused, match="0 left of 1"):
        ledger.reserve("more", asked(9, price=Fraction(1, 10**30)), IDENTITY)


def test_a_charge_below_the_reservation_holds_no_more_than_it_paid(url: str) -> None:
    ledger = found(url)
    go(ledger, "r1", asked(1, price=Fraction(1)), to="identified")
    ledger.charge("r1", charges(QUARTER), price=QUARTER)
    assert ledger.books().left(NAME) == Fraction(3, 4)


def test_a_reservation_is_given_back_and_its_edition_is_free_again(url: str) -> None:
    ledger = found(url)
    go(ledger, "r1", asked(1, price=Fraction(1)), to="identified")
    ledger.release("r1")
    go(ledger, "r2", asked(1, price=Fraction(1)), to="stored")
    assert (ledger.books().left(NAME), ledger.books().runs["r1"].state) == (0, "released")
    for act in (lambda: ledger.charge("r1", charges(QUARTER), price=QUARTER), lambda: ledger.release("r1")):
        with pytest.raises(Refused, match="released"):
            act()


def test_a_closed_period_pays_nothing_and_carries_nothing_over(url: str, clock: Clock) -> None:
    ledger = found(url, clock, policy=replace(POLICY, closes="2026-03-31"))
    go(ledger, "r1", asked(1), to="stored")
    go(ledger, "late", asked(2), to="identified")
    clock.advance(days=40)
    for act in (
        lambda: ledger.reserve("new", asked(3), IDENTITY),
        lambda: ledger.charge("late", charges(QUARTER), price=QUARTER),
    ):
        with pytest.raises(Refused, match="closed on 2026-03-31; nothing is carried over"):
            act()
    ledger.publish("r1", version=1, manifest="m", tables="t")
    ledger.release("late")
    grant(ledger, replace(POLICY, period="2027", cap=Fraction(1, 2)))
    go(ledger, "next", asked(4, period="2027"), to="charged")
    books = ledger.books()
    assert books.left(("census", "2027")) == QUARTER
    assert books.all_time("census") == Fraction(1, 2)


def test_a_period_is_open_on_its_last_day(url: str, clock: Clock) -> None:
    ledger = found(url, clock, policy=replace(POLICY, closes="2026-03-01"))
    go(ledger, "r1", asked(1), to="charged")
    assert ledger.books().spent(NAME) == QUARTER


def test_the_clock_may_go_back_an_hour_and_no_further(url: str, clock: Clock) -> None:
    ledger = found(url, clock)
    clock.advance(minutes=-59)
    ledger.reserve("r1", asked(1), IDENTITY)
    clock.advance(minutes=-2)
    before = head(url)
    with pytest.raises(Refused, match="the clock went back"):
        ledger.reserve("r2", asked(2), IDENTITY)
    assert (head(url), ledger.books().last_at) == (before, clock.now + timedelta(minutes=61))


def test_secrets_are_kept_beside_the_chain_and_never_in_it(url: str) -> None:
    ledger = found(url)
    go(ledger, "r1", asked(1), data=b"fingerprint-of-the-files")
    store, chain = open_store(url), "".join(one.text for one in entries(url))
    assert store.confided_names() == [
        "fingerprint/key", "office/key", "run/r1/dataset", "run/r1/key", "run/r1/places",
    ]  # fmt: skip
    for secret in (ledger.row_key("r1"), ledger.fingerprint_key(), b"fingerprint-of-the-files"):
        assert len(secret) >= 24
        assert secret.hex() not in chain
    signature = ledger.office_signature(b"manifest")
    assert holds(ledger.books().office_key, signature, b"manifest")


PERSONS, HOMES, OTHERS = (sha256(name).digest() for name in (b"persons.csv", b"homes.csv", b"others.csv"))


def test_files_of_one_name_are_paid_by_one_account(url: str) -> None:
    ledger = found(url)
    grant(ledger, replace(POLICY, account="second"))
    for run, account in (("wrong", "second"), ("r1", "census"), ("r2", "second")):
        ledger.reserve(run, asked(len(run) + ord(run[-1]), account=account), IDENTITY)
    ledger.identify("wrong", b"microdata", places=[PERSONS])
    ledger.release("wrong")  # chosen by mistake: the files are not bound to it for ever
    ledger.identify("r1", b"microdata", places=[PERSONS, HOMES])
    before = head(url)
    with pytest.raises(Refused, match="released under account 'census'"):
        ledger.identify("r2", b"microdata", places=[OTHERS, HOMES])
    assert head(url) == before
    ledger.identify("r2", b"microdata", places=[OTHERS])
    ledger.identify("r1", b"microdata", places=[OTHERS])  # as a resumed run does, whose files were moved
    assert failed(url) == {}


@pytest.mark.parametrize("records", [b"microdata", b"one record changed"])
def test_whether_files_are_refused_does_not_depend_on_a_record(file: str, records: bytes) -> None:
    ledger = found(file)
    grant(ledger, replace(POLICY, account="second"))
    go(ledger, "r1", asked(1), to="reserved")
    go(ledger, "r2", asked(2, account="second"), to="reserved")
    go(ledger, "r3", asked(3, account="second"), to="reserved")
    ledger.identify("r1", b"microdata", places=[PERSONS])
    with pytest.raises(Refused, match="files of these names"):
        ledger.identify("r2", records, places=[PERSONS])
    ledger.identify("r3", records, places=[OTHERS])


def test_the_custodian_alone_learns_that_two_accounts_paid_for_the_same_records(file: str) -> None:
    ledger = found(file)
    grant(ledger, replace(POLICY, account="second"))
    go(ledger, "r1", asked(1), to="charged")
    go(ledger, "r2", asked(2, account="second"), to="charged")
    go(ledger, "r3", asked(3), to="charged", data=b"others")
    assert [ledger.other_payers(run) for run in ("r1", "r2", "r3")] == [["second"], ["census"], []]


def test_a_look_and_an_anchor_are_recorded(url: str) -> None:
    ledger = found(url)
    ledger.record_look("people", {"codes": "hash"}, by="Ada")
    anchor = ledger.anchor()
    ledger.record_anchor(anchor, "the gazette")
    books = Ledger.open(url).books()
    assert books.looks == [{"release": "people", "parts": {"codes": "hash"}, "by": "Ada"}]
    assert books.anchors == [{"seq": anchor.seq, "hash": anchor.hash, "where": "the gazette"}]
    assert Anchor.from_data(anchor.as_data()) == anchor


def test_a_ledger_is_founded_once_and_by_two(url: str) -> None:
    with pytest.raises(NoLedger):
        Ledger.open(url)
    for persons in ([], ["Ada"], ["Ada", "ADA "]):
        keys = [
            {"person": name, "role": "director", "key": public_of(key)}
            for name, key in zip(persons, KEYS.values(), strict=False)
        ]
        with pytest.raises(Refused, match="at least two persons"):
            Ledger.found(url, office="Office", founders=keys)
    before = found(url).anchor()
    with pytest.raises(Refused, match="founded once"):
        found(url)
    assert Ledger.open(url).anchor() == before


def test_a_founding_that_was_interrupted_is_done_again(url: str) -> None:
    open_store(url).create()
    with pytest.raises(NoLedger):
        Ledger.open(url)
    assert failed(url).keys() >= {"chain"}
    go(found(url), "r1", asked(1))
    assert failed(url) == {}


def test_values_that_are_no_plain_data_are_refused_in_words(url: str) -> None:
    ledger = found(url)
    for act in (
        lambda: ledger.reserve("r", asked(1, exact="many"), IDENTITY),
        lambda: ledger.record_look("x", {"a": object()}, by="Ada"),  # type: ignore[dict-item]
        lambda: ledger.review("r", by="Ada", reason=None),  # type: ignore[arg-type]
        lambda: ledger.reserve("\ud800", asked(1), IDENTITY),
        lambda: ledger.approve("", KEYS["Ada"], days=10**12),
    ):
        before = head(url)
        with pytest.raises(LedgerError):
            act()
        assert head(url) == before
