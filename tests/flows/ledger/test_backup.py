"""Copies of a ledger: kept, taken into use, lost in part, and continued twice."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from flows.ledger.anchor import Anchor
from flows.ledger.backup import back_up, restore
from flows.ledger.errors import Held, LedgerError, Refused
from flows.ledger.ledger import Ledger
from flows.ledger.store import open_store
from tests.flows.ledger.offices import (
    IDENTITY,
    KEYS,
    NAME,
    POLICY,
    Clock,
    asked,
    charges,
    entries,
    failed,
    found,
    go,
    grant,
)

QUARTER = Fraction(1, 4)
TWO = (KEYS["Ada"], KEYS["Ben"])


def restored(copy: Path, url: str, *anchors: Anchor) -> Ledger:
    """A ledger that two persons took into use from a copy."""
    restore(copy, url, anchors=anchors, keys=TWO)
    return Ledger.open(url)


def test_a_copy_is_the_same_ledger_and_so_is_what_is_restored_from_it(url: str, tmp_path: Path) -> None:
    ledger = found(url)
    go(ledger, "r1", asked(1))
    copy, again = tmp_path / "copy", str(tmp_path / "again")
    assert back_up(url, copy) == ledger.anchor()
    assert copy.stat().st_mode & 0o777 == 0o600
    assert restore(copy, again, anchors=[ledger.anchor()]) == ledger.anchor()
    for place in (str(copy), again):
        assert entries(place) == entries(url)
        assert Ledger.open(place).books() == ledger.books()
        assert Ledger.open(place).row_key("r1") == ledger.row_key("r1")
        assert failed(place, [ledger.anchor()]) == {}
    assert sorted(one.name for one in tmp_path.glob(".restore-*")) == []


def test_a_copy_of_a_file_is_taken_into_use_in_postgresql(file: str, database: str, tmp_path: Path) -> None:
    ledger = found(file)
    go(ledger, "r1", asked(1), to="charged")
    back_up(file, tmp_path / "copy")
    assert restore(tmp_path / "copy", database, anchors=[]) == ledger.anchor()
    shared = Ledger.open(database, now=Clock())
    shared.store("r1", sha256="x", attempt=shared.attempt("r1"))
    assert failed(database, [ledger.anchor(), shared.anchor()]) == {}


def test_nothing_is_written_over(url: str, tmp_path: Path) -> None:
    ledger = found(url)
    back_up(url, tmp_path / "copy")
    go(ledger, "r1", asked(1))
    before = entries(url)
    for act in (
        lambda: back_up(url, tmp_path / "copy"),
        lambda: restore(tmp_path / "copy", url, anchors=[]),
        lambda: back_up(str(tmp_path / "nothing"), tmp_path / "copy2"),
        lambda: restore(tmp_path / "nothing", str(tmp_path / "new"), anchors=[]),
    ):
        with pytest.raises(LedgerError):
            act()
    assert entries(url) == before
    assert not (tmp_path / "copy2").exists()
    assert not (tmp_path / "new").exists()


def test_a_copy_behind_an_anchor_is_refused_without_two_persons(file: str, tmp_path: Path) -> None:
    ledger = found(file)
    back_up(file, tmp_path / "copy")
    go(ledger, "r1", asked(1))
    before, place = (tmp_path / "copy").read_bytes(), str(tmp_path / "new")
    for keys in ((), TWO[:1], (TWO[0], TWO[0])):
        with pytest.raises(Refused, match="6 entries ahead of this copy"):
            restore(tmp_path / "copy", place, anchors=[ledger.anchor()], keys=keys)
        assert not Path(place).exists()
    assert (tmp_path / "copy").read_bytes() == before


def test_what_a_copy_lost_is_charged_in_full(file: str, tmp_path: Path) -> None:
    ledger = found(file)
    go(ledger, "r1", asked(1))
    back_up(file, tmp_path / "copy")
    go(ledger, "r2", asked(2))
    go(ledger, "r3", asked(3), to="charged")
    anchor = ledger.anchor()
    after = restored(tmp_path / "copy", str(tmp_path / "new"), anchor)
    books = after.books()
    assert (books.spent(NAME), books.left(NAME), books.all_time("census")) == (3 * QUARTER, QUARTER, 3 * QUARTER)
    assert failed(str(tmp_path / "new")) == {}
    told = failed(str(tmp_path / "new"), [anchor])
    assert told == {f"anchor {anchor.seq}": "its entries were lost and charged when a copy was taken into use"}
    with pytest.raises(Refused, match="has 1/4 left"):
        after.reserve("r9", asked(9, price=Fraction(1, 3)), IDENTITY)


def test_of_several_anchors_the_furthest_is_charged_however_close_they_are(file: str, tmp_path: Path) -> None:
    ledger = found(file)
    back_up(file, tmp_path / "copy")
    anchors = []
    for number in (1, 2):
        ledger.reserve(f"r{number}", asked(number), IDENTITY)
        ledger.identify(f"r{number}", b"data")
        ledger.charge(f"r{number}", charges(QUARTER), price=QUARTER)
        anchors.append(ledger.anchor())
    assert anchors[1].seq - anchors[0].seq < 4  # fewer than the entries of a restoration
    for turn, given in enumerate((anchors, anchors[::-1])):
        after = restored(tmp_path / "copy", str(tmp_path / f"new{turn}"), *given)
        assert after.books().spent(NAME) == 2 * QUARTER


def test_a_lost_period_is_charged_although_the_copy_does_not_know_it(file: str, tmp_path: Path) -> None:
    ledger = found(file)
    back_up(file, tmp_path / "copy")
    later = replace(POLICY, period="2027/28")
    grant(ledger, later)
    go(ledger, "r1", asked(1, period="2027/28", price=Fraction(3, 4)))
    after = restored(tmp_path / "copy", str(tmp_path / "new"), ledger.anchor())
    assert after.books().all_time("census") == Fraction(3, 4)
    with pytest.raises(Refused, match="below what was spent and reserved already: 3/4"):
        after.grant(replace(later, cap=Fraction(1, 2)))
    grant(after, later)
    assert after.books().left(later.name) == QUARTER


def test_a_reservation_in_a_copy_does_not_spend_what_the_lost_part_spent(file: str, tmp_path: Path) -> None:
    ledger = found(file)
    ledger.reserve("r1", asked(1, price=Fraction(3, 4)), IDENTITY)
    back_up(file, tmp_path / "copy")
    ledger.identify("r1", b"data")
    ledger.charge("r1", charges(Fraction(3, 4)), price=Fraction(3, 4))
    after = restored(tmp_path / "copy", str(tmp_path / "new"), ledger.anchor())
    after.identify("r1", b"data")
    with pytest.raises(Refused, match="has 1/4 left"):
        after.charge("r1", charges(Fraction(3, 4)), price=Fraction(3, 4))
    after.release("r1")
    assert after.books().left(NAME) == QUARTER


def test_a_run_that_was_paid_in_the_copy_is_not_drawn_again_under_that_charge(file: str, tmp_path: Path) -> None:
    ledger = found(file)
    go(ledger, "r1", asked(1), to="charged")
    back_up(file, tmp_path / "copy")
    ledger.store("r1", sha256="published", attempt=ledger.attempt("r1"))
    ledger.publish("r1", version=1, manifest="m", tables="t")
    after = restored(tmp_path / "copy", str(tmp_path / "new"), ledger.anchor())
    with pytest.raises(Refused, match="needs two approvals and a new charge"):
        after.attempt("r1")
    with pytest.raises(Held, match="attempt 4 of run r1"):
        after.charge("r1", charges(QUARTER), price=QUARTER)


def test_two_ledgers_that_went_on_from_one_copy_contradict_each_other(file: str, tmp_path: Path) -> None:
    go(found(file), "r1", asked(1))
    back_up(file, tmp_path / "copy")
    places = [str(tmp_path / name) for name in ("left", "right")]
    anchors = []
    for place in places:
        restore(tmp_path / "copy", place, anchors=[])
        fork = Ledger.open(place)
        go(fork, "r2", asked(2))
        anchors.append(fork.anchor())
    assert (anchors[0].ledger, anchors[0].seq) == (anchors[1].ledger, anchors[1].seq)
    for place, own, other in ((places[0], *anchors), (places[1], *anchors[::-1])):
        assert failed(place, [own]) == {}
        assert failed(place, [other]).keys() == {f"anchor {other.seq}"}
    back_up(places[0], tmp_path / "copy of left")
    with pytest.raises(Refused, match="not those that were published"):
        restore(tmp_path / "copy of left", str(tmp_path / "new"), anchors=anchors, keys=TWO)


def test_an_altered_copy_and_an_anchor_of_another_ledger_are_refused(file: str, tmp_path: Path) -> None:
    ledger = found(file)
    other = found(str(tmp_path / "other"))
    go(other, "r1", asked(1))
    back_up(file, tmp_path / "copy")
    for anchor in (other.anchor(), replace(ledger.anchor(), ledger="another")):
        with pytest.raises(Refused, match="ledger"):
            restore(tmp_path / "copy", str(tmp_path / "new"), anchors=[anchor], keys=TWO)
    store = open_store(str(tmp_path / "copy"))
    with store.writing() as writing:
        writing.confide("run/nobody/key", b"x")
    store.close()
    with pytest.raises(Refused, match="does not verify"):
        restore(tmp_path / "copy", str(tmp_path / "new"), anchors=[])
    assert not (tmp_path / "new").exists()


def test_an_office_of_one_takes_a_copy_into_use_and_is_charged_too(file: str, tmp_path: Path) -> None:
    ledger = found(file, solo=True)
    back_up(file, tmp_path / "copy")
    go(ledger, "r1", asked(1))
    restore(tmp_path / "copy", str(tmp_path / "new"), anchors=[ledger.anchor()])
    assert Ledger.open(str(tmp_path / "new")).books().spent(NAME) == QUARTER
