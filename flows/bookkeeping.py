"""The verbs of the ledger: `margrave ledger init`, `grant`, `approve`, `show`, `verify` and the others."""

from __future__ import annotations

import argparse
from pathlib import Path

from flows import accounts, keeping, keyholders
from flows.verbs import Verbs, add_verb
from flows.workplace import LEDGER, LEDGER_VARIABLE


def add_ledger_verbs(verbs: Verbs) -> None:
    """The verb `ledger`, with verbs of its own."""
    parser = verbs.add_parser(
        "ledger",
        help="the account of what was spent: found it, open budgets, approve, look, verify",
        description="The ledger holds every budget, reservation, charge and approval of an office, in one chain of\n"
        f"entries that nobody can change unnoticed. It is one file, {LEDGER} beside the spec, unless --ledger or\n"
        f"{LEDGER_VARIABLE} names another file or a PostgreSQL database.",
        epilog="example:  margrave ledger init --solo && margrave ledger show",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    inner = parser.add_subparsers(metavar="VERB", required=True, title="verbs", parser_class=type(parser))
    _add_founding(inner)
    _add_persons(inner)
    _add_looking(inner)
    _add_keeping(inner)


def _add(verbs: Verbs, name: str, act: object, **words: str) -> argparse.ArgumentParser:
    parser = add_verb(verbs, name, act, **words)
    parser.add_argument("--ledger", metavar="URL", help=f"the ledger: a file or postgresql://... ({LEDGER})")
    return parser


def _add_founding(verbs: Verbs) -> None:
    init = _add(
        verbs,
        "init",
        keyholders.init,
        help="found a ledger",
        description="Founds a ledger: for one person (--solo: nobody approves anything, and every certificate says\n"
        "so), or with the keys of at least two persons who approve what is spent and published.",
        example="margrave ledger init --solo\n"
        "          margrave ledger init --office 'Statistics Office' --founder ada.pub --founder ben.pub",
    )
    init.add_argument("--solo", action="store_true", help="for one person, without approvals")
    init.add_argument("--office", metavar="NAME", default="", help="the office's name, printed in releases")
    init.add_argument("--founder", metavar="FILE", action="append", type=Path, default=[], help="a person's public key")
    grant = _add(
        verbs,
        "grant",
        keyholders.grant,
        help="open a budget for a period of an account, or change its cap",
        description="Opens the budget of an account for one period. Whom it protects, in which currency and at\n"
        "which delta is read off the spec that will spend it; the cap is named here, never by the spec.\n"
        "Two persons must approve (none with --solo): the first call proposes, the last one opens.",
        example="margrave ledger grant release.yaml --cap 2",
    )
    grant.add_argument("spec", metavar="SPEC", type=Path, help="a spec that names the account")
    grant.add_argument("--cap", metavar="AMOUNT", required=True, help="what may be spent: 2, 1/2 or 0.5")
    grant.add_argument("--edition", metavar="NAME", help="an edition of the period, where the account has periods")
    grant.add_argument("--closes", metavar="DATE", default="", help="the last day of the period: 2026-12-31")
    grant.add_argument("--to-spend", metavar="N", type=int, default=0, help="least approvals before spending (0)")
    grant.add_argument("--to-publish", metavar="N", type=int, default=0, help="least approvals before publishing (0)")


def _add_persons(verbs: Verbs) -> None:
    key = add_verb(
        verbs,
        "key",
        keyholders.make_key,
        help="make a signing key for a person",
        description="Makes a signing key (Ed25519): FILE for the person alone, FILE.pub for the ledger.",
        example="margrave ledger key ada --person 'Ada Lind' --role custodian",
    )
    key.add_argument("file", metavar="FILE", type=Path, help="where the private key goes")
    key.add_argument("--person", metavar="NAME", required=True, help="whose key it is")
    key.add_argument("--role", choices=("custodian", "reviewer", "director"), default="reviewer", help="(reviewer)")
    enrol = _add(
        verbs,
        "enrol",
        keyholders.enrol,
        help="enrol a person's key",
        description="Enrols the key of another person. Two persons must approve: call it again when they did.",
        example="margrave ledger enrol cleo.pub",
    )
    enrol.add_argument("file", metavar="FILE", type=Path, help="the public key that 'margrave ledger key' wrote")
    revoke = _add(
        verbs,
        "revoke",
        keyholders.revoke,
        help="revoke a person's key",
        description="Revokes a key: its approvals no longer count. Two persons must approve.",
        example="margrave ledger revoke 3f2a",
    )
    revoke.add_argument("key", metavar="KEY", help="the public key, or its first digits")
    approve = _add(
        verbs,
        "approve",
        keyholders.approve,
        help="approve something that waits",
        description="Signs what waits under a number, which whoever is held is told, and 'ledger show' too. It says\n"
        "first what is signed. An approval is good for 30 days.",
        example="margrave ledger approve 1abda8c52896de39 --key ada",
    )
    approve.add_argument("subject", metavar="NUMBER", help="what to approve, or its first digits")
    approve.add_argument("--key", metavar="FILE", type=Path, required=True, help="your private key")


def _add_looking(verbs: Verbs) -> None:
    show = _add(
        verbs,
        "show",
        accounts.show,
        help="balances, runs, and what waits for approval",
        description=f"What every account has, spent and reserved, the runs and how far they came, and what waits.\n\n"
        f"{accounts.LEGEND}",
        example="margrave ledger show --json",
    )
    show.add_argument("--json", action="store_true", help="answer in JSON")
    verify = _add(
        verbs,
        "verify",
        accounts.verify,
        help="derive everything again from the chain",
        description="Reads every entry, checks that each follows from the one before, that every rule was kept and\n"
        "every signature holds, and that the chain passes through the anchors of published releases.",
        example="margrave ledger verify --anchor releases/harbour-2025/manifest.json",
    )
    verify.add_argument(
        "--anchor", metavar="FILE", action="append", type=Path, default=[], help="an anchor, or a release's manifest"
    )
    verify.add_argument("--json", action="store_true", help="answer in JSON")
    anchor = _add(
        verbs,
        "anchor",
        accounts.anchor,
        help="the head of the ledger, to be published elsewhere",
        description="Prints the number and hash of the last entry. Who keeps it can tell later whether anything\n"
        "before it was changed or removed.",
        example="margrave ledger anchor > anchor.json",
    )
    anchor.add_argument("--where", metavar="TEXT", help="also record where it is published")
    _add(
        verbs,
        "doctor",
        accounts.doctor,
        help="what interrupted runs need next",
        description="Lists runs that are not finished, the approvals that each still waits for, who has given some,\n"
        "and the command that it needs next.",
        example="margrave ledger doctor",
    )


def _add_keeping(verbs: Verbs) -> None:
    backup = _add(
        verbs,
        "backup",
        keeping.backup,
        help="copy the ledger to a file",
        description="Copies the whole ledger, confidential values included, to a new file, and verifies the copy.\n"
        "Keep it as closed as the microdata.",
        example="margrave ledger backup ledger-2026-11-18",
    )
    backup.add_argument("file", metavar="FILE", type=Path, help="the copy")
    restore = _add(
        verbs,
        "restore",
        keeping.restore,
        help="take a copy into use",
        description="Makes a new ledger from a copy. If an anchor is ahead of the copy, entries are lost: then two\n"
        "keys must approve, and everything that was spent since is charged in full.",
        example="margrave ledger restore ledger-2026-11-18 --ledger new.ledger --anchor anchor.json",
    )
    restore.add_argument("file", metavar="FILE", type=Path, help="the copy")
    restore.add_argument("--anchor", metavar="FILE", action="append", type=Path, default=[], help="published anchors")
    restore.add_argument(
        "--nothing-published", action="store_true", help="say so where no release and no anchor was ever published"
    )
    restore.add_argument("--key", metavar="FILE", action="append", type=Path, default=[], help="keys that approve")
    migrate = _add(
        verbs,
        "migrate",
        keeping.migrate,
        help="bring the ledger of an earlier version up to date",
        description="A ledger that an earlier version laid out can be read as it is, and written to after this. A\n"
        "copy in the old layout is made first. Entries and their hashes stay as they are: everything is verified\n"
        "before and after, with the anchors that are given, and whatever goes wrong leaves the ledger as it was.",
        example="margrave ledger migrate --anchor releases/harbour-2025/manifest.json",
    )
    migrate.add_argument("--backup", metavar="FILE", type=Path, help="where the copy goes (LEDGER.before-1)")
    migrate.add_argument("--anchor", metavar="FILE", action="append", type=Path, default=[], help="published anchors")
    migrate.add_argument("--leave-unfinished", action="store_true", help="although runs were begun and not finished")
    give_back = _add(
        verbs,
        "release",
        accounts.give_back,
        help="give back the reservation of a run that was not charged",
        description="A run that was stopped before it was charged holds its price. This gives it back.",
        example="margrave ledger release 7f3a91c2",
    )
    give_back.add_argument("run", metavar="RUN", help="the run, or its first digits")
