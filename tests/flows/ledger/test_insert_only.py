"""Entries are added and never changed: what the databases themselves refuse, whoever asks."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest
from adbc_driver_postgresql import dbapi

from flows.ledger.errors import LedgerError
from flows.ledger.ledger import Ledger
from flows.ledger.store import open_store
from tests.flows.ledger import frozen
from tests.flows.ledger.offices import Clock, asked, entries, failed, found, go

REPLACED = "CREATE OR REPLACE FUNCTION margrave.stay() RETURNS trigger LANGUAGE plpgsql AS"
EDITS = (
    "UPDATE margrave.entries SET text = 'x'",
    "DELETE FROM margrave.entries WHERE seq = 2",
    "TRUNCATE margrave.entries",
    "UPDATE margrave.confidential SET value = 'x'",
    "DELETE FROM margrave.confidential",
    "TRUNCATE margrave.confidential",
    "UPDATE margrave.layout SET version = 1",
    "TRUNCATE margrave.layout",
    "INSERT INTO margrave.entries SELECT seq + 100, before, text, hash || 'x' FROM margrave.entries WHERE seq = 1",
    "INSERT INTO margrave.entries SELECT max(seq) + 1, 'x', 'x', 'x' FROM margrave.entries",
    "INSERT INTO margrave.entries SELECT * FROM margrave.entries ON CONFLICT (seq) DO UPDATE SET text = 'x'",
    "INSERT INTO margrave.confidential TABLE margrave.confidential ON CONFLICT (name) DO UPDATE SET value = 'x'",
)
ALTERATIONS = (
    "DROP TRIGGER entries_stay ON margrave.entries",
    "ALTER TABLE margrave.entries DISABLE TRIGGER ALL",
    "ALTER TABLE margrave.entries DROP COLUMN hash",
    "DROP TABLE margrave.entries",
    "DROP SCHEMA margrave CASCADE",
    "CREATE TABLE margrave.more(id INTEGER)",
    "CREATE RULE nothing AS ON INSERT TO margrave.entries DO INSTEAD NOTHING",
    f"{REPLACED} $$ BEGIN RETURN NULL; END $$",
    "SET session_replication_role = replica",
    "INSERT INTO margrave.layout VALUES(9)",
    "LOCK TABLE margrave.entries IN ACCESS EXCLUSIVE MODE",
)


def ask(url: str, *statements: str) -> None:
    """Sends statements to a server, as somebody who knows SQL."""
    with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def as_role(url: str, role: str) -> str:
    """The address for somebody else."""
    return url.replace("//postgres:@", f"//{role}:@")


def name_of(url: str) -> str:
    """The name of a database."""
    return url.split("@/")[1].split("?", maxsplit=1)[0]


@pytest.fixture
def clerk(database: str) -> str:
    """The address of a ledger for a clerk who is a member of the writers' role and nothing else."""
    found(database).close()
    role = f"clerk_{name_of(database)}"
    ask(database, f"CREATE ROLE {role} LOGIN", f"GRANT margrave_writer_{name_of(database)} TO {role}")
    return as_role(database, role)


def test_a_clerk_makes_releases_and_verifies_the_ledger(clerk: str, database: str) -> None:
    ledger = Ledger.open(clerk, now=Clock())
    go(ledger, "r1", asked(1))
    assert failed(clerk, [ledger.anchor()]) == failed(database, [ledger.anchor()]) == {}


def test_a_clerk_changes_nothing(clerk: str) -> None:
    before = entries(clerk)
    for statement in (*EDITS, *ALTERATIONS):
        with pytest.raises(dbapi.Error):
            ask(clerk, statement)
    assert (entries(clerk), failed(clerk)) == (before, {})


def test_the_owner_changes_nothing_by_mistake(database: str) -> None:
    found(database).close()
    before = entries(database)
    for statement in EDITS:
        with pytest.raises(dbapi.Error, match=r"never changed|follows the last"):
            ask(database, "SET session_replication_role = replica", statement)
    assert (entries(database), failed(database)) == (before, {})


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("DROP TRIGGER entries_follow ON margrave.entries", "the trigger entries_follow"),
        ("ALTER TABLE margrave.entries DISABLE TRIGGER entries_stay", "the trigger entries_stay"),
        ("ALTER TABLE margrave.confidential ENABLE TRIGGER secrets_stay", "the trigger secrets_stay"),
        (
            f"{REPLACED} $$ BEGIN IF false THEN BEGIN RAISE EXCEPTION 'x'; END; END IF; RETURN NULL; END $$",
            "function stay",
        ),
        ("CREATE RULE nothing AS ON UPDATE TO margrave.entries DO INSTEAD NOTHING", "the rule nothing"),
        ("ALTER TABLE margrave.entries DROP CONSTRAINT entries_pkey", "the index entries_pkey"),
        ("GRANT UPDATE ON margrave.entries TO PUBLIC", "everybody may change"),
        ("GRANT DELETE ON margrave.confidential TO pg_monitor", "pg_monitor may change"),
    ],
)
def test_an_owner_who_takes_a_guard_away_is_found_out(database: str, statement: str, what: str) -> None:
    found(database, solo=True, policy=None).close()
    ask(database, statement)
    assert what in failed(database)["database"]


def test_a_stranger_is_told_whom_to_ask(clerk: str, database: str) -> None:
    role = f"stranger_{name_of(database)}"
    ask(database, f"CREATE ROLE {role} LOGIN")
    for act in _uses(as_role(database, role)):
        with pytest.raises(LedgerError, match="ask who founded the ledger"):
            act()


def _uses(url: str) -> list[Callable[[], object]]:
    return [lambda: Ledger.open(url), lambda: Ledger(open_store(url)).attempt("r1")]


def test_a_founder_who_may_not_make_roles_is_told_what_an_administrator_does(database: str) -> None:
    name = name_of(database)
    ask(
        database, f"CREATE ROLE founder_{name} LOGIN", f"GRANT CREATE ON DATABASE {name} TO founder_{name}",
        f"CREATE ROLE clerk_{name} LOGIN",
    )  # fmt: skip
    ledger = found(as_role(database, f"founder_{name}"))
    told = ledger.database.advice()
    assert "You may not make roles" in told[0]
    go(ledger, "r1", asked(1))
    ask(database, *(line.replace("SOMEBODY", f"clerk_{name}") for line in told[1:]))
    clerk = Ledger.open(as_role(database, f"clerk_{name}"), now=Clock())
    go(clerk, "r2", asked(2))
    assert "For daily work" in ledger.database.advice()[0]
    assert failed(as_role(database, f"clerk_{name}"), [clerk.anchor()]) == {}


REPLACEMENTS = (
    "INSERT OR REPLACE INTO entries SELECT seq, before, 'x', hash FROM entries WHERE seq = 2",
    "INSERT OR REPLACE INTO entries SELECT seq + 9, before, text, hash FROM entries WHERE seq = 2",
    "INSERT OR IGNORE INTO entries SELECT seq + 9, before, text, 'x' FROM entries WHERE seq = 2",
    "REPLACE INTO entries SELECT max(seq) + 1, 'x', text, 'x' FROM entries",
    "REPLACE INTO confidential SELECT name, 'x' FROM confidential",
    "INSERT INTO confidential SELECT name, 'x' FROM confidential WHERE true ON CONFLICT DO UPDATE SET value = 'x'",
)


def test_a_file_replaces_no_row(file: str) -> None:
    found(file).close()
    before = entries(file)
    for statement in REPLACEMENTS:
        with closing(sqlite3.connect(file)) as opened, pytest.raises(sqlite3.IntegrityError):
            opened.execute(statement)
    assert (entries(file), failed(file)) == (before, {})


def test_a_file_of_the_first_layout_did(file: str) -> None:
    frozen.thaw(file)
    with closing(sqlite3.connect(file)) as opened, opened:
        opened.execute(REPLACEMENTS[0])
    assert "entry 2 was changed" in failed(file)["chain"]
