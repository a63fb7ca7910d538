"""A ledger that an earlier version laid out: read as it is, brought up to date whole, its past untouched."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from adbc_driver_postgresql import dbapi

from flows.checking import checks_of
from flows.cli import main
from flows.ledger import migrating
from flows.ledger.backup import restore
from flows.ledger.books import Books
from flows.ledger.chain import FORMAT, entry_after
from flows.ledger.entering import read_entry
from flows.ledger.errors import Broken, LedgerError, Newer, Refused
from flows.ledger.ledger import Ledger
from flows.ledger.migrating import migrate
from flows.ledger.store import LAYOUT, open_store
from tests.flows.ledger import frozen
from tests.flows.ledger.offices import asked, entries, failed, found, go, rechained

ANCHOR = frozen.published_anchor()
INSIDE = 3
"""Which of the verifications is the one inside the transaction."""


@pytest.fixture
def old(url: str) -> str:
    """The frozen ledger, in both stores one after another."""
    return frozen.thaw(url)


def layout_of(url: str) -> int:
    """The layout of a ledger."""
    with closing(open_store(url)) as store:
        return store.layout()


def test_what_is_frozen_verifies_as_it_is_against_what_was_published_then(old: str) -> None:
    assert (layout_of(old), failed(old, [ANCHOR])) == (1, {})
    assert len(entries(old)) == frozen.ENTRIES
    assert entries(old)[17].hash == frozen.HEAD
    ledger = Ledger.open(old)
    assert [one for one in checks_of(frozen.RELEASE, ledger) if not one.ok] == []
    assert failed(old, [replace(ANCHOR, hash="0" * 64)]).keys() == {"anchor 12"}


def test_an_old_ledger_is_read_and_not_written(old: str) -> None:
    before = entries(old)
    ledger = Ledger.open(old, now=frozen.later())
    assert ledger.books().spent(frozen.ACCOUNT) > 0
    with pytest.raises(Refused, match=r"layout 1, now 2.*margrave ledger migrate"):
        go(ledger, "r1", frozen.further(3))
    assert (entries(old), layout_of(old)) == (before, 1)


def test_a_migration_leaves_every_entry_and_every_anchor_as_it_was(old: str, tmp_path: Path) -> None:
    before = entries(old)
    done = migrate(old, backup=tmp_path / "copy", anchors=[ANCHOR], now=frozen.later())
    assert done is not None
    assert (done.before, done.after, done.entries) == (1, LAYOUT, frozen.ENTRIES)
    after = entries(old)
    assert after[:-1] == before
    assert after[-1].body["content"] == {"from": 1, "to": LAYOUT}
    assert (layout_of(old), failed(old, [ANCHOR])) == (LAYOUT, {})
    assert migrate(old, backup=tmp_path / "copy2") is None
    assert not (tmp_path / "copy2").exists()


def test_further_releases_are_made_in_a_migrated_ledger(old: str, tmp_path: Path) -> None:
    migrate(old, backup=tmp_path / "copy", now=frozen.later())
    ledger = Ledger.open(old, now=frozen.later())
    go(ledger, "r1", frozen.further(3), to="stored")
    ledger.store("paid", sha256="kept", attempt=1)  # a run from before goes on where it was
    ledger.release("held")
    assert failed(old, [ANCHOR, ledger.anchor()]) == {}
    assert [one for one in checks_of(frozen.RELEASE, Ledger.open(old)) if not one.ok] == []


def test_the_copy_from_before_is_in_the_old_layout_and_can_be_taken_into_use(old: str, tmp_path: Path) -> None:
    before, copy = entries(old), tmp_path / "copy"
    migrate(old, backup=copy, now=frozen.later())
    assert (layout_of(str(copy)), entries(str(copy)), failed(str(copy), [ANCHOR])) == (1, before, {})
    assert copy.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(copy)) as kept, closing(sqlite3.connect(frozen.FIRST / "office.ledger")) as first:
        made = "SELECT name, sql FROM sqlite_master ORDER BY name"
        assert kept.execute(made).fetchall() == first.execute(made).fetchall()  # the first version opens it
    restore(copy, str(tmp_path / "new"), anchors=[ANCHOR])
    again = Ledger.open(str(tmp_path / "new"), now=frozen.later())
    go(again, "r1", frozen.further(3), to="stored")
    assert (layout_of(str(tmp_path / "new")), failed(str(tmp_path / "new"), [ANCHOR])) == (LAYOUT, {})


def test_a_ledger_that_does_not_verify_is_not_migrated(old: str, tmp_path: Path) -> None:
    before = entries(old)
    with pytest.raises(Refused, match="does not verify: anchor 12"):
        migrate(old, backup=tmp_path / "copy", anchors=[replace(ANCHOR, hash="0" * 64)])
    assert (entries(old), layout_of(old), list(tmp_path.glob("copy*"))) == (before, 1, [])


def test_nothing_is_migrated_over_the_copy_of_something_else(old: str, tmp_path: Path) -> None:
    (tmp_path / "copy").write_text("precious")
    with pytest.raises(LedgerError):
        migrate(old, backup=tmp_path / "copy")
    assert (layout_of(old), (tmp_path / "copy").read_text()) == (1, "precious")


@pytest.mark.parametrize("moment", ["tables laid out", "entry appended", "all verified", "made durable"])
def test_a_migration_that_is_killed_leaves_the_old_layout_or_the_new(old: str, tmp_path: Path, moment: str) -> None:
    before = entries(old)
    child = multiprocessing.get_context("spawn").Process(target=migrate_and_die, args=(old, tmp_path / "copy", moment))
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL
    is_done = moment == "made durable"
    assert layout_of(old) == (LAYOUT if is_done else 1)
    assert entries(old)[: frozen.ENTRIES] == before
    assert len(entries(old)) == frozen.ENTRIES + is_done
    assert failed(old, [ANCHOR]) == {}
    assert (migrate(old, backup=tmp_path / "again", anchors=[ANCHOR], now=frozen.later()) is None) is is_done
    assert (layout_of(old), failed(old, [ANCHOR])) == (LAYOUT, {})


def migrate_and_die(url: str, backup: Path, moment: str) -> None:
    """Migrates in a process that kills itself at a moment."""
    checked, die = migrating.require_sound, partial(os.kill, os.getpid(), signal.SIGKILL)
    turns = count(1)

    def check(*arguments: Any) -> None:
        is_inside = next(turns) == INSIDE
        if is_inside and moment == "entry appended":
            die()
        checked(*arguments)
        if is_inside:
            die()

    if moment in ("entry appended", "all verified"):
        migrating.require_sound = check
    else:
        setattr(migrating, "next_entry" if moment == "tables laid out" else "Migrated", lambda *_: die())
    migrate(url, backup=backup, now=frozen.later())


def test_the_tables_of_a_newer_version_are_refused(url: str) -> None:
    go(found(url), "r1", asked(1))
    _set_layout(url, LAYOUT + 1)
    for act in (lambda: Ledger.open(url).attempt("r1"), lambda: layout_of(url), lambda: migrate(url, backup=Path("x"))):
        with pytest.raises(LedgerError, match=r"newer version of Margrave \(layout 3, this one knows 2\)"):
            act()
    assert "newer version" in failed(url)["database"]


def test_an_entry_of_a_newer_version_is_named_as_such(url: str) -> None:
    ledger = found(url)
    last = entries(url)[-1]
    body = last.body | {"format": FORMAT + 1, "kind": "from the future"}
    with closing(open_store(url)) as store, store.writing() as writing:
        writing.append(entry_after(last, body))
    with pytest.raises(Newer, match="format 3 of a newer version"):
        ledger.books()
    assert "newer version" in failed(url)["chain"]


def test_a_layout_that_is_set_back_is_noticed(file: str) -> None:
    go(found(file), "r1", asked(1))
    with closing(sqlite3.connect(file)) as tampered:
        for name in ("entries_follow", "secrets_once"):
            tampered.execute(f"DROP TRIGGER {name}")
        tampered.execute("PRAGMA user_version = 1")
    assert failed(file) == {"layout": "1, and the chain tells of 2"}


def test_formats_only_rise(file: str) -> None:
    found(file)
    bodies = [entry.body for entry in entries(file)]
    bodies[-1]["format"], books = 1, Books()
    *before, last = rechained(bodies)
    for entry in before:
        read_entry(books, entry)
    with pytest.raises(Broken, match="format 1 comes after one of format 2"):
        read_entry(books, last)


def _set_layout(url: str, layout: int) -> None:
    if url.startswith("postgresql"):
        with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO margrave.layout VALUES({layout})")
        return
    with closing(sqlite3.connect(url)) as file:
        file.execute(f"PRAGMA user_version = {layout}")


def test_a_person_migrates_by_one_command(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frozen.thaw(file)
    anchor = ["--anchor", str(frozen.RELEASE / "manifest.json")]
    assert main(["ledger", "migrate", "--ledger", file]) == 2
    assert "2 runs are not finished (paid, held)" in capsys.readouterr().err
    assert main(["ledger", "migrate", "--ledger", file, "--leave-unfinished", *anchor]) == 0
    out = capsys.readouterr().out
    assert "The ledger has layout 2 now, and had 1; its 19 entries are as they were." in out
    assert (tmp_path / "ledger.before-1").exists()
    assert main(["ledger", "verify", "--ledger", file, *anchor]) == 0
    assert main(["ledger", "migrate", "--ledger", file, "--leave-unfinished"]) == 0
    assert "Nothing was changed" in capsys.readouterr().out
    assert not (tmp_path / "ledger.before-2").exists()
