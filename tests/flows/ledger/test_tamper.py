"""An operator edits the ledger's file: what verification notices, with a published anchor and without one.

The attacker may write the file, knows the format and the code, and has no private key of a founder (the office's own
key is in the file). The anchor was published before the edit, as every release does.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

from flows.ledger.anchor import Anchor
from flows.ledger.chain import Body, canonical, digest
from flows.ledger.errors import Broken, LedgerError
from flows.ledger.keys import Signed, new_key, public_of, sign
from flows.ledger.ledger import Ledger
from tests.flows.ledger.offices import POLICY, asked, charges, entries, failed, found, go, rechained, unlocked

Bodies = list[Body]


@dataclass(frozen=True)
class Office:
    """A ledger with two published releases, its anchor, and a copy from before the second."""

    url: str
    anchor: Anchor
    old: str


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Office:
    folder = tmp_path_factory.mktemp("office")
    url, old = str(folder / "ledger"), str(folder / "old")
    ledger = found(url)
    go(ledger, "r1", asked(1))
    ledger.close()
    shutil.copy(url, old)
    go(ledger, "r2", asked(2))
    anchor = ledger.anchor()
    ledger.close()
    return Office(url, anchor, old)


@pytest.fixture
def office(original: Office, tmp_path: Path) -> Office:
    """A copy of the office, to do with as one likes."""
    shutil.copy(original.url, tmp_path / "ledger")
    return Office(str(tmp_path / "ledger"), original.anchor, original.old)


def rewrite(url: str, change: Callable[[Bodies], Bodies | None]) -> None:
    """Changes the bodies of all entries and computes every hash anew."""
    bodies = [one.body for one in entries(url)]
    fresh = rechained(change(bodies) or bodies)
    rows = [("INSERT INTO entries VALUES(?, ?, ?, ?)", (one.seq, one.before, one.text, one.hash)) for one in fresh]
    unlocked(url, ("DELETE FROM entries", ()), *rows)


def of_kind(bodies: Bodies, kind: str) -> Bodies:
    return [one for one in bodies if one["kind"] == kind]


def edit_text(url: str, kind: str, change: Callable[[Body], object]) -> None:
    """Changes the first entry of a kind and leaves its hash as it was."""
    entry = next(one for one in entries(url) if one.body["kind"] == kind)
    body = entry.body
    change(body["content"])
    unlocked(url, ("UPDATE entries SET text = ? WHERE seq = ?", (canonical(body), entry.seq)))


def lower_price(bodies: Bodies) -> None:
    """Every charge becomes cheap: variance, price and reservation all tell the same story."""
    cheap = Fraction(1, 1000)
    for body in of_kind(bodies, "charged"):
        body["content"] |= {"charges": [one.as_data() for one in charges(cheap)], "price": str(cheap)}
    for body in of_kind(bodies, "reserved"):
        body["content"]["price"] = str(cheap)


def drop(kind: str, run: str | None = None) -> Callable[[Bodies], Bodies]:
    return lambda bodies: [
        one for one in bodies if one["kind"] != kind or (run is not None and one["content"].get("run") != run)
    ]


def drop_run(bodies: Bodies) -> Bodies:
    return [one for one in bodies if one["content"].get("run") != "r2"]


def own_founders(bodies: Bodies) -> None:
    """The whole history again, with founders whose keys the attacker holds and every approval signed anew."""
    keys = {one["person"]: new_key() for one in bodies[0]["content"]["keys"]}
    for one in bodies[0]["content"]["keys"]:
        one["key"] = public_of(keys[one["person"]])
    ledger = bodies[0]["content"]["ledger"]
    for proposed in of_kind(bodies, "proposed"):
        proposed["content"]["would"]["cap"] = "1000"
        proposed["content"]["subject"] = digest(proposed["content"]["would"])
        subject = proposed["content"]["subject"]
    for body in of_kind(bodies, "approved"):
        key, what = keys[body["content"]["person"]], body["content"]
        what |= {"subject": subject, "key": public_of(key)}
        what["signature"] = sign(key, Signed(ledger, what["act"], subject, what["expires"]).message)
    raise_cap(bodies)


def raise_cap(bodies: Bodies) -> None:
    for body in of_kind(bodies, "granted"):
        body["content"]["cap"] = "1000"


def forge_approval(bodies: Bodies) -> None:
    """The proposal and the approvals are bent to the raised cap; the signatures are the old ones."""
    raise_cap(bodies)
    for proposed in of_kind(bodies, "proposed"):
        proposed["content"]["would"]["cap"] = "1000"
        proposed["content"]["subject"] = digest(proposed["content"]["would"])
        for body in of_kind(bodies, "approved"):
            body["content"]["subject"] = proposed["content"]["subject"]


def grant_freely(bodies: Bodies) -> None:
    bodies.append(bodies[-1] | {"kind": "granted", "content": POLICY.as_data() | {"cap": "1000"}})


def turn_back(bodies: Bodies) -> None:
    bodies[-1]["at"] = "2020-01-01T00:00:00+00:00"


def antedate(bodies: Bodies) -> None:
    for body in bodies:
        body["at"] = body["at"].replace("2026", "2025")
    for body in of_kind(bodies, "approved"):
        assert body["content"]["expires"].startswith("2026")


def store_again(bodies: Bodies) -> None:
    stored = of_kind(bodies, "stored")[-1]
    bodies.append(stored | {"content": stored["content"] | {"sha256": "another draw"}})


def swap_hash(bodies: Bodies) -> None:
    of_kind(bodies, "stored")[-1]["content"]["sha256"] = "another draw"


def fewer_draws(bodies: Bodies) -> Bodies:
    """A lost draw is taken out of the record."""
    return drop("attempted", "r2")(bodies)


def unsign(bodies: Bodies) -> None:
    bodies[0]["content"]["solo"] = True


def alone(bodies: Bodies) -> Bodies:
    """The office becomes one person's, and whatever needed approval is done without."""
    unsign(bodies)
    raise_cap(bodies)
    return [one for one in bodies if one["kind"] not in ("proposed", "approved")]


def swapped(url: str) -> None:
    (a, b) = entries(url)[-2:]
    unlocked(
        url,
        ("UPDATE entries SET text = ? WHERE seq = ?", (b.text, a.seq)),
        ("UPDATE entries SET text = ? WHERE seq = ?", (a.text, b.seq)),
    )


def sql(statement: str, *values: object) -> Callable[[str], None]:
    return lambda url: unlocked(url, (statement, values))


def edited(kind: str, **to: object) -> Callable[[str], None]:
    return lambda url: edit_text(url, kind, lambda content: content.update(to))


def rewritten(change: Callable[[Bodies], Bodies | None]) -> Callable[[str], None]:
    return lambda url: rewrite(url, change)


def script(statement: str) -> Callable[[str], None]:
    def act(url: str) -> None:
        with closing(sqlite3.connect(url)) as file:
            file.executescript(statement)

    return act


FAKE = "CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT 1; END"
EXCHANGE = "UPDATE confidential SET value = zeroblob(48) WHERE name = ?"
LOOSE = """
CREATE TABLE loose(seq, before, text, hash);
INSERT INTO loose SELECT 'one', before, text, hash FROM entries;
DROP TABLE entries;
ALTER TABLE loose RENAME TO entries;
"""

CAUGHT = {
    "a lowered price in a charge": (edited("charged", price="1/1000"), "chain"),
    "a raised cap": (edited("granted", cap="1000"), "chain"),
    "an entry removed in the middle": (sql("DELETE FROM entries WHERE seq = 7"), "chain"),
    "the first entry removed": (sql("DELETE FROM entries WHERE seq = 1"), "chain"),
    "all entries removed": (sql("DELETE FROM entries"), "chain"),
    "two entries exchanged": (swapped, "chain"),
    "an edited solo flag": (edited("founded", solo=True), "chain"),
    "a hash exchanged": (sql("UPDATE entries SET hash = 'x' WHERE seq = 5"), "chain"),
    "a number exchanged": (sql("UPDATE entries SET seq = 99 WHERE seq = 5"), "chain"),
    "a charge deleted and the rest chained anew": (rewritten(drop("charged", "r2")), "chain"),
    "a draw deleted and the rest chained anew": (rewritten(fewer_draws), "chain"),
    "approvals deleted and the rest chained anew": (rewritten(drop("approved")), "chain"),
    "a raised cap chained anew": (rewritten(raise_cap), "chain"),
    "a forged approval chained anew": (rewritten(forge_approval), "chain"),
    "a grant without approvals": (rewritten(grant_freely), "chain"),
    "the clock turned back": (rewritten(turn_back), "chain"),
    "measurements stored a second time": (rewritten(store_again), "chain"),
    "a confidential value exchanged": (sql(EXCHANGE, "run/r1/key"), "confidential values"),
    "a fingerprint exchanged": (sql(EXCHANGE, "run/r2/dataset"), "confidential values"),
    "the fingerprint key exchanged": (sql(EXCHANGE, "fingerprint/key"), "confidential values"),
    "the office's key exchanged": (sql(EXCHANGE, "office/key"), "confidential values"),
    "a confidential value removed": (sql("DELETE FROM confidential WHERE name = 'run/r1/key'"), "confidential values"),
    "a confidential value added": (sql("INSERT INTO confidential VALUES('run/x/key', x'00')"), "confidential values"),
    "a trigger removed": (script("DROP TRIGGER entries_last"), "database"),
    "a trigger that does nothing": (script(f"DROP TRIGGER entries_stay; {FAKE}"), "database"),
    "a table exchanged": (script(LOOSE), "chain"),
}
"""Caught by the file alone, and by which check."""

NEEDS_ANCHOR = {
    "a cut tail": sql("DELETE FROM entries WHERE seq > (SELECT max(seq) - 1 FROM entries)"),
    "an old copy put back": None,
    "a whole run rewritten away": rewritten(drop_run),
    "prices lowered in a rewritten chain": rewritten(lower_price),
    "another measurement file in a rewritten chain": rewritten(swap_hash),
    "times moved in a rewritten chain": rewritten(antedate),
    "an office made one person's in a rewritten chain": rewritten(alone),
    "founders exchanged and everything signed anew": rewritten(own_founders),
}
"""The file alone looks sound: only a published anchor tells."""


def tampered(office: Office, edit: Callable[[str], None] | None) -> None:
    if edit is None:
        shutil.copy(office.old, office.url)
    else:
        edit(office.url)


def matching_secrets(url: str) -> None:
    """A careful attacker removes the confidential values of runs that are gone."""
    runs = {one.body["content"].get("run") for one in entries(url)}
    if "r2" not in runs:
        unlocked(url, ("DELETE FROM confidential WHERE name LIKE 'run/r2/%'", ()))


def test_an_untouched_ledger_verifies(office: Office) -> None:
    assert failed(office.url, [office.anchor]) == {}


@pytest.mark.parametrize("case", CAUGHT)
def test_an_edit_is_caught_without_an_anchor(office: Office, case: str) -> None:
    edit, check = CAUGHT[case]
    edit(office.url)
    assert check in failed(office.url), case
    assert check in failed(office.url, [office.anchor])
    if check == "chain":
        with pytest.raises(LedgerError):
            Ledger.open(office.url)


@pytest.mark.parametrize("case", NEEDS_ANCHOR)
def test_an_edit_is_caught_by_the_published_anchor_alone(office: Office, case: str) -> None:
    tampered(office, NEEDS_ANCHOR[case])
    matching_secrets(office.url)
    assert failed(office.url) == {}, "this list says what the file alone does not tell"
    assert failed(office.url, [office.anchor]).keys() == {f"anchor {office.anchor.seq}"}


def test_at_least_fourteen_kinds_of_edit_are_tried() -> None:
    assert len(CAUGHT) + len(NEEDS_ANCHOR) >= 14


def test_the_documentation_lists_every_edit_where_it_belongs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "ledger.md").read_text(encoding="utf-8")
    alone, _, anchored = page.partition("### Caught only with a published anchor")
    assert [case for case in CAUGHT if f"- {case}\n" not in alone] == []
    assert [case for case in NEEDS_ANCHOR if f"- {case}\n" not in anchored] == []


def test_an_anchor_of_another_ledger_or_of_no_entry_is_no_proof(office: Office) -> None:
    last = office.anchor
    for other in (
        Anchor("another", last.seq, last.hash, {}),
        Anchor(last.ledger, 0, last.hash, {}),
        Anchor(last.ledger, -1, last.hash, {}),
        Anchor(last.ledger, last.seq + 1, last.hash, {}),
        Anchor(last.ledger, last.seq - 1, last.hash, {}),
    ):
        assert failed(office.url, [other]).keys() == {f"anchor {other.seq}"}


def test_a_ledger_in_use_notices_that_its_past_was_exchanged(office: Office) -> None:
    ledger = Ledger.open(office.url)
    unlocked(office.url, ("DELETE FROM entries WHERE seq > 9", ()))
    with pytest.raises(Broken, match="exchanged or removed while it was in use"):
        ledger.books()
    with pytest.raises(LedgerError):
        ledger.attempt("r1")


def test_a_ledger_in_use_notices_that_its_file_was_exchanged(office: Office) -> None:
    ledger = Ledger.open(office.url)
    shutil.copy(office.old, f"{office.url}.new")
    Path(f"{office.url}.new").rename(office.url)
    before = entries(office.url)
    with pytest.raises(LedgerError, match="exchanged for another file while it was in use"):
        ledger.reserve("r3", asked(3), POLICY.identity)
    assert entries(office.url) == before


def test_an_entry_written_in_another_way_is_no_entry(office: Office) -> None:
    def loosen(bodies: Bodies) -> Bodies:
        return bodies

    rewrite(office.url, loosen)
    assert failed(office.url, [office.anchor]) == {}, "writing the same chain again is no edit"
    last = entries(office.url)[-1]
    spaced = json.dumps(last.body)
    unlocked(office.url, ("UPDATE entries SET text = ? WHERE seq = ?", (spaced, last.seq)))
    assert "chain" in failed(office.url)
