"""How a ledger is kept for years: backup, restore, migrate."""

from __future__ import annotations

import argparse
from itertools import count
from pathlib import Path

from flows.accounts import DONE, read_anchor
from flows.keyholders import place_of
from flows.ledger.store import POSTGRES, SQLITE
from flows.terminal import OK, UserError, say
from flows.workplace import LEDGER


def backup(chosen: argparse.Namespace) -> int:
    """Copies the ledger."""
    from flows.ledger.backup import back_up

    found = back_up(place_of(chosen).ledger, chosen.file)
    say(f"{chosen.file} holds the ledger up to entry {found.seq}. It contains confidential values: keep it closed.")
    return OK


def restore(chosen: argparse.Namespace) -> int:
    """Takes a copy into use."""
    from flows.ledger.backup import restore as take_into_use
    from flows.ledger.keys import read_key

    if not chosen.anchor and not chosen.nothing_published:
        raise UserError(
            "name the newest anchor that was published, for example a release's manifest: --anchor FILE. Without one "
            "nobody can tell what this copy lost; if nothing was ever published, say --nothing-published"
        )
    anchors, keys = [read_anchor(path) for path in chosen.anchor], [read_key(path) for path in chosen.key]
    place = place_of(chosen)
    found = take_into_use(chosen.file, place.ledger, anchors=anchors, keys=keys)
    say(f"{place.ledger} is in use from entry {found.seq}.")
    return OK


def migrate(chosen: argparse.Namespace) -> int:
    """Brings a ledger of an earlier version up to date."""
    from flows.ledger.migrating import migrate as bring_up_to_date

    place = place_of(chosen)
    books = place.open_ledger().books()
    begun = [run for run in books.runs.values() if run.state not in (*DONE, "stored")]
    if begun and not chosen.leave_unfinished:
        raise UserError(
            f"{len(begun)} runs are not finished ({', '.join(run.id for run in begun)}), and a run is finished by the "
            "version of Margrave that began it. Finish them with that version, or give them up there; to migrate "
            "all the same, say --leave-unfinished: what they paid or hold stays paid or held"
        )
    backup = chosen.backup or _free(place.ledger)
    done = bring_up_to_date(place.ledger, backup=backup, anchors=[read_anchor(path) for path in chosen.anchor])
    if done is None:
        say("The ledger has the newest layout already. Nothing was changed.")
        return OK
    say(f"The ledger has layout {done.after} now, and had {done.before}; its {done.entries} entries are as they were.")
    say(f"{backup} is a copy from before, in the old layout. It contains confidential values: keep it closed.")
    for line in done.advice:
        say(line)
    return OK


def _free(url: str) -> Path:
    """A name for the copy, beside the ledger's file or here, that nothing has yet."""
    name = LEDGER if url.startswith(POSTGRES) else url.removeprefix(SQLITE)
    return next(path for number in count(1) if not (path := Path(f"{name}.before-{number}")).exists())
