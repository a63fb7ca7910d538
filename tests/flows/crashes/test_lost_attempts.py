"""Draws that were lost are drawn again under one charge, three in all; the fourth is approved and paid for anew."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from flows.ledger.errors import Held
from flows.ledger.keys import new_key, public_of
from flows.ledger.ledger import Ledger
from reporting.manifest import read_manifest
from tests.flows.crashes.inquest import Inquest
from tests.flows.crashes.nursery import HELD, REFUSED, Nursery
from tests.flows.crashes.office import Office, copied

DRAW = "the first random bit"


def lose(nursery: Nursery, inquest: Inquest, times: int) -> None:
    """Kills as many calls of the command when they draw."""
    for _ in range(times):
        assert nursery.release(inquest.office, point=DRAW).killed
        inquest.look()


def certificate(office: Office) -> tuple[object, object]:
    """How often was drawn, and what was charged, as the release says."""
    (release,) = office.out.iterdir()
    found = read_manifest(release).ledger
    return found["attempts"], found["charged"]


def test_alone_the_fourth_attempt_is_a_new_charge(nursery: Nursery, office: Office, inquest: Inquest) -> None:
    ledger = office.place.open_ledger()
    ledger.grant(office.grant(2))
    ledger.close()
    lose(nursery, inquest, 3)
    inquest.charges = 2
    lose(nursery, inquest, 1)
    assert office.only_run().charged == [inquest.price] * 2
    assert nursery.release(office).code == 0
    assert inquest.finish().attempts == 5
    assert certificate(office) == (5, str(2 * inquest.price))


def test_the_fourth_attempt_is_refused_where_the_budget_does_not_pay_for_it_again(
    nursery: Nursery, office: Office, inquest: Inquest
) -> None:
    lose(nursery, inquest, 3)
    refused = nursery.release(office)
    assert refused.code == REFUSED
    assert " left of 1 for 'once'" in refused.said
    assert "margrave ledger grant" in refused.said
    assert office.only_run().attempts == inquest.draws == 3
    ledger = office.place.open_ledger()
    ledger.grant(office.grant(2))
    ledger.close()
    inquest.charges = 2
    assert nursery.release(office).code == 0
    assert inquest.finish().attempts == 4


@pytest.fixture
def shared(bare_office: Office, tmp_path: Path) -> tuple[Office, dict[str, Ed25519PrivateKey]]:
    """An office of three persons, with budget for two charges, and their keys."""
    office = copied(bare_office, tmp_path / "shared")
    keys = {person: new_key() for person in ("ada", "ben", "cleo")}
    founders = [{"person": name, "role": "custodian", "key": public_of(key)} for name, key in keys.items()]
    ledger = Ledger.found(office.place.ledger, office="Harbour Office", founders=founders)
    with pytest.raises(Held) as held:
        ledger.grant(office.grant(2))
    for person in ("ada", "ben"):
        ledger.approve(held.value.pending.subject, keys[person])
    ledger.grant(office.grant(2))
    ledger.close()
    return office, keys


def test_two_persons_approve_the_fourth_attempt(
    nursery: Nursery, shared: tuple[Office, dict[str, Ed25519PrivateKey]], tmp_path: Path
) -> None:
    office, keys = shared
    inquest = Inquest(office, tmp_path)
    lose(nursery, inquest, 3)
    for person in ("ada", "cleo"):
        held = nursery.release(office)
        assert held.code == HELD
        assert "attempt 4 of run" in held.said
        assert "at a new charge needs 2 approvals" in held.said
        assert office.only_run().charged == [inquest.price]
        ledger = office.place.open_ledger()
        (subject,) = [one for one, (act, _) in ledger.books().proposals.items() if act.startswith("attempt 4")]
        ledger.approve(subject, keys[person])
        ledger.close()
    assert inquest.draws == 3
    inquest.charges = 2
    lose(nursery, inquest, 1)
    assert nursery.release(office).code == 0
    assert inquest.finish().attempts == 5
    assert certificate(office) == (5, str(2 * inquest.price))
