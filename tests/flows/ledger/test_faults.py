"""Disks, files and servers that fail: one sentence each, and a ledger that is as it was."""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from flows.ledger.chain import canonical
from flows.ledger.errors import LedgerError, NoLedger
from flows.ledger.ledger import Ledger
from flows.ledger.store import LAYOUT, open_store
from flows.ledger.verifying import verify_ledger
from mechanisms.charge import Charge
from tests.flows.ledger.conftest import start_server
from tests.flows.ledger.offices import IDENTITY, Clock, asked, charges, entries, failed, found, go, rechained, unlocked

ROUNDS = int(os.environ.get("MARGRAVE_CORRUPTIONS", "200"))
NOBODY = 65534


def in_child(act: Callable[..., None], *arguments: object) -> None:
    """Runs something in a process of its own, whose limits and user may be changed."""
    child = multiprocessing.get_context("fork").Process(target=act, args=arguments)
    child.start()
    child.join(60)
    assert child.exitcode == 0


def sentence(act: Callable[[], object]) -> str:
    """What a ledger says that cannot go on."""
    with pytest.raises(LedgerError) as caught:
        act()
    told = str(caught.value)
    assert " " in told
    assert "Traceback" not in told
    return told


def test_what_is_no_ledger_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "garbage").write_bytes(b"no database " * 500)
    (tmp_path / "empty").touch()
    with closing(sqlite3.connect(tmp_path / "other")) as other:
        other.execute("CREATE TABLE flow(id)")
    before = (tmp_path / "other").read_bytes()
    for place in (
        *(str(tmp_path / name) for name in ("missing", "folder", "garbage", "empty", "other", "garbage/below")),
        f"sqlite:///{tmp_path}/missing",
        str(tmp_path / ("long" * 100)),
        "mysql://host/ledger",
        "postgresql://127.0.0.1:1/none",
        "postgresql://user:secret@127.0.0.1:1/none",
        "postgresql://[broken",
    ):
        assert "secret" not in sentence(lambda place=place: Ledger.open(place))
        assert "secret" not in sentence(lambda place=place: [_raised(one) for one in _checks(place)])
    assert (tmp_path / "other").read_bytes() == before, "another program's file is left as it is"
    for place in ("folder", "garbage", "other", "garbage/below"):
        sentence(lambda place=place: found(str(tmp_path / place)))


def _checks(place: str) -> Iterator[str]:
    yield from failed(place).values()


def _raised(detail: str) -> None:
    raise LedgerError(detail)


def test_a_file_of_a_newer_version_is_left_alone(file: str) -> None:
    found(file).close()
    with closing(sqlite3.connect(file)) as newer:
        newer.execute(f"PRAGMA user_version = {LAYOUT + 1}")
    assert "newer version" in sentence(lambda: Ledger.open(file))


def test_a_file_that_nobody_may_write_is_not_written() -> None:
    folder = Path(tempfile.mkdtemp(prefix="margrave-"))
    try:
        url = str(folder / "ledger")
        go(found(url), "r1", asked(1), to="charged")
        before = entries(url)
        Path(url).chmod(0o444)
        folder.chmod(0o555)
        in_child(_use_as_nobody, url)
        folder.chmod(0o755)
        Path(url).chmod(0o600)
        assert (entries(url), failed(url)) == (before, {})
    finally:
        shutil.rmtree(folder)


def _use_as_nobody(url: str) -> None:
    if os.getuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    told = [sentence(lambda: Ledger.open(url).attempt("r1")), sentence(lambda: found(f"{url}-new"))]
    assert all("cannot be used" in one for one in told), told
    assert verify_ledger(open_store(url))


def test_a_full_disk_stops_an_entry_and_loses_none(file: str) -> None:
    ledger = found(file)
    go(ledger, "r1", asked(1), to="charged")
    ledger.close()
    before = entries(file)
    in_child(_fill, file)
    after = entries(file)
    assert (after[: len(before)], failed(file)) == (before, {})
    assert {one.body["kind"] for one in after[len(before) :]} <= {"inspected"}
    ledger.store("r1", sha256="x", attempt=ledger.attempt("r1"))


def _fill(url: str) -> None:
    """Writes until the file may not grow any more, in steps that meet the limit at different places."""
    ledger = Ledger.open(url, now=Clock())
    held, size = 0, Path(url).stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 40_000, size + 40_000))
    for turn in range(60):
        try:
            ledger.record_look("people", {"part": "x" * 1500}, by="Ada")
        except LedgerError as fault:
            held += "cannot be used" in str(fault)
        assert turn < 59
        if held > 3:
            break


@pytest.mark.parametrize("more", range(7))
def test_a_database_without_a_page_left_refuses_whole_entries(file: str, more: int) -> None:
    ledger = found(file)
    go(ledger, "r1", asked(1, price=asked().price / 50), to="identified")
    connection = ledger._store._connected()  # type: ignore[attr-defined]
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + more}")
    before, accepted = len(entries(file)), 0
    price = asked().price / 50
    many = [one for query in range(8) for one in _named(charges(price / 8), f"query {query}")]
    for act in (
        lambda: ledger.charge("r1", many, price=price),
        *(lambda n=n: ledger.reserve(f"m{n}", asked(n, price=price), IDENTITY) for n in range(2, 40)),
    ):
        try:
            act()
        except LedgerError:
            connection = ledger._store._connected()  # type: ignore[attr-defined]
            connection.execute(f"PRAGMA max_page_count = {pages + more}")
        else:
            accepted += 1
    ledger.close()
    assert accepted < 39
    assert (len(entries(file)), failed(file)) == (before + accepted, {})
    books = Ledger.open(file).books()
    assert ledger.books() == books


def _named(measured: list[Charge], query: str) -> list[Charge]:
    return [replace(one, query=query) for one in measured]


def test_a_file_that_vanished_is_said_to_be_gone(file: str) -> None:
    ledger = found(file)
    Path(file).unlink()
    with pytest.raises(NoLedger, match="there is no ledger at"):
        ledger.reserve("r1", asked(1), IDENTITY)
    assert not Path(file).exists()


def test_a_server_that_stops_and_comes_back_finds_the_ledger_as_it_was(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    running = start_server(tmp_path_factory)
    try:
        url = running.get_uri()
        ledger = found(url)
        go(ledger, "r1", asked(1), to="charged")
        before = ledger.anchor()
        running.stop()
        for act in (ledger.books, lambda: ledger.attempt("r1"), lambda: Ledger.open(url), lambda: found(url)):
            assert "cannot be used" in sentence(act)
        assert failed(url).keys() == {"database"}
        running.start()
        assert ledger.anchor() == before
        ledger.store("r1", sha256="x", attempt=ledger.attempt("r1"))
        assert failed(url, [before]) == {}
    finally:
        running.cleanup()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A ledger with a whole release."""
    url = str(tmp_path_factory.mktemp("whole") / "ledger")
    ledger = found(url)
    go(ledger, "r1", asked(1))
    ledger.close()
    return url


def contents(url: str) -> tuple[object, object]:
    """Everything a ledger says, as its store reads it."""
    store = open_store(url)
    found = list(store.entries_after(0)), {name: store.confided(name) for name in store.confided_names()}
    store.close()
    return found


def test_no_random_byte_is_changed_unnoticed(whole: str, tmp_path: Path) -> None:
    original, before = Path(whole).read_bytes(), contents(whole)
    dice, caught = random.Random(20260301), 0  # noqa: S311 - a reproducible accident
    for _ in range(ROUNDS):
        place = tmp_path / "ledger"
        spoiled = bytearray(original)
        for _ in range(dice.choice((1, 1, 1, 8, 64))):
            spoiled[dice.randrange(len(spoiled))] ^= dice.randrange(1, 256)
        place.write_bytes(bytes(spoiled))
        if failed(str(place)):
            caught += 1
        else:
            assert contents(str(place)) == before, "what verifies says what it said"
        for beside in tmp_path.glob("ledger*"):
            beside.unlink()
    assert caught > ROUNDS / 3


def mutated(data: object, dice: random.Random) -> object:
    """Plain data with one part exchanged."""
    if isinstance(data, dict) and data and dice.random() < 0.9:
        key = dice.choice(sorted(data))
        return {name: value for name, value in data.items() if name != key} | (
            {} if dice.random() < 0.1 else {key: mutated(data[key], dice)}
        )
    if isinstance(data, list) and data and dice.random() < 0.9:
        place = dice.randrange(len(data))
        return [*data[:place], mutated(data[place], dice), *data[place + 1 :]]
    return dice.choice(WRONG)


WRONG = (
    *(None, True, 0, -1, 10**50, "", "x", "1/0", "-1/4", "1/4", "\ud800", "\x00", [], {}, [[]], [{}]),
    *("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59+00:00", "published", "founded"),
)


def test_no_random_edit_of_an_entry_is_taken_for_the_original(whole: str, tmp_path: Path) -> None:
    original, anchor = entries(whole), Ledger.open(whole).anchor()
    dice, place = random.Random(20260302), tmp_path / "ledger"  # noqa: S311 - likewise
    for turn in range(ROUNDS):
        bodies = [one.body for one in original]
        chosen = dice.randrange(len(bodies))
        other = mutated(bodies[chosen], dice)
        if other == bodies[chosen]:
            continue
        shutil.copy(whole, place)
        changed = [*bodies[:chosen], other, *bodies[chosen + 1 :]]
        if turn % 2:
            edits = [("UPDATE entries SET text = ? WHERE seq = ?", (canonical(other), chosen + 1))]
        else:
            fresh = rechained(changed)  # type: ignore[arg-type]
            update = "UPDATE entries SET before = ?, text = ?, hash = ? WHERE seq = ?"
            edits = [(update, (one.before, one.text, one.hash, one.seq)) for one in fresh]
        unlocked(str(place), *edits)
        assert failed(str(place), [anchor]), (turn, chosen, other)
        if turn % 2:
            assert "chain" in failed(str(place))
