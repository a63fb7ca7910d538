"""The `margrave` command: which verbs there are, and what happens when something goes wrong.

Exit codes: 0 success; 1 the thing checked does not hold; 2 the user's input is wrong; 3 held. No traceback reaches a
user: what nobody foresaw becomes one sentence and exit code 70. Each verb imports what it needs when it is run.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NoReturn

from flows.authoring import add_authoring_verbs
from flows.bookkeeping import add_ledger_verbs
from flows.checking import add_checking_verbs
from flows.inspecting import add_custodian_verbs
from flows.ledger.errors import HERE, Embargoed, Held, LedgerError, NoLedger
from flows.on_schedule.verb import add_schedule_verbs
from flows.pricing import add_pricing_verbs
from flows.running import add_release_verbs
from flows.serving import add_server_verbs
from flows.terminal import HELD, NOT_SO, OK, WRONG_INPUT, NotSo, UserError
from flows.workplace import Workplace
from release_specs.diagnostics import did_you_mean

STOPPED, INTERNAL = 130, 70


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one verb and returns its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that knows no é still gets its message
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except UserError as fault:
        sys.stderr.write(f"margrave: {fault}\n")
        return WRONG_INPUT
    except KeyboardInterrupt:
        sys.stderr.write("margrave: stopped\n")
        return STOPPED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception as fault:  # noqa: BLE001 - the last door: a traceback may quote what it should not
        sys.stderr.write(f"margrave: internal error: {_where(fault)}. Please report it with the command you ran.\n")
        return INTERNAL


def _where(fault: BaseException) -> str:
    """The kind of an unforeseen fault and where it happened: never its text, which may quote a record."""
    step = fault.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    place = f" in {Path(step.tb_frame.f_code.co_filename).name}:{step.tb_lineno}" if step is not None else ""
    return f"{type(fault).__name__}{place}"


def _run(arguments: Sequence[str]) -> int:
    parser = _parser()
    if not arguments:
        parser.print_help()
        return OK
    chosen = parser.parse_args(arguments)
    act: Callable[[argparse.Namespace], int] = chosen.act
    try:
        return act(chosen)
    except (UserError, NotSo, LedgerError) as fault:
        code, said = _code(fault), str(fault)
    sys.stderr.write(f"margrave: {_hinted(said, chosen)}\n")
    return code


def _code(fault: Exception) -> int:
    if isinstance(fault, Held | Embargoed):
        return HELD
    return WRONG_INPUT if isinstance(fault, UserError | NoLedger) else NOT_SO


def _hinted(said: str, chosen: argparse.Namespace) -> str:
    """A sentence whose commands find the ledger that this command used."""
    if HERE not in said or not hasattr(chosen, "ledger"):
        return said
    spec = getattr(chosen, "spec", None)
    return Workplace.chosen(ledger=chosen.ledger, beside=spec.parent if spec is not None else Path()).hinted(said)


class _Parser(argparse.ArgumentParser):
    """An argument parser whose mistakes say what to do."""

    def error(self, message: str) -> NoReturn:
        if "invalid choice: " in message and "VERB" in message:
            word, known = message.split("invalid choice: ")[1].split(" (choose from ")
            verbs = [verb.strip(" ')") for verb in known.split(",")]
            message = f"{word} is not a verb of margrave; {did_you_mean(word.strip(chr(39)), verbs)}"
        if message.startswith("unrecognized arguments: "):
            words = message.removeprefix("unrecognized arguments: ").split()
            options = [word.partition("=")[0] for word in words if word.startswith("-")]
            message = f"{', '.join(options)} is no option here" if options else "there are words too many"
        raise UserError(f"{message}\nSee '{self.prog} --help'.")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="margrave",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Confidential microdata in, differentially private tables out. One YAML spec says it all.",
        epilog="begin with:  margrave init --out release.yaml && margrave check release.yaml\n"
        "each verb has its own help and an example:  margrave check --help",
    )
    parser.add_argument("--version", action="version", version=f"margrave {_version()}")
    verbs = parser.add_subparsers(metavar="VERB", required=True, title="verbs", parser_class=_Parser)
    add_authoring_verbs(verbs)
    add_pricing_verbs(verbs)
    add_custodian_verbs(verbs)
    add_ledger_verbs(verbs)
    add_release_verbs(verbs)
    add_schedule_verbs(verbs)
    add_checking_verbs(verbs)
    add_server_verbs(verbs)
    return parser


def _version() -> str:
    try:
        return version("margrave")
    except PackageNotFoundError:
        return "unknown"


if __name__ == "__main__":
    sys.exit(main())
