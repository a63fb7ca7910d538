"""The custodian's verb: `margrave inspect` looks at the confidential files and tells only the custodian."""

from __future__ import annotations

import argparse
import errno
import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path

from flows.terminal import OK, WRONG_INPUT, Stages, UserError, load_or_say, say
from flows.verbs import Verbs, add_verb
from release_specs.load import Loaded

SIZES = {"KB": 10, "MB": 20, "GB": 30}


def add_custodian_verbs(verbs: Verbs) -> None:
    """The verbs of whoever may see records."""
    inspect = add_verb(
        verbs,
        "inspect",
        _inspect,
        help="look at the confidential files and write findings for the custodian",
        description="Reads and checks the confidential files and writes what it finds (unknown codes and their\n"
        "frequencies, values outside, sizes of groups, rules broken) to a private folder, for the data custodian\n"
        "alone. The terminal tells only where the findings are and whether the structure holds; what records say\n"
        "never changes the exit code. Nothing is drawn or paid. That somebody looked is recorded, because bounds\n"
        "chosen after looking are no longer innocent: later runs say so.",
        example="margrave inspect release.yaml --data persons=persons.parquet --data households=households.csv",
    )
    inspect.add_argument("spec", metavar="SPEC", type=Path, help="a release spec (YAML)")
    inspect.add_argument(
        "--data",
        metavar="NAME=PATH",
        action="append",
        type=named_file,
        default=[],
        help="the file of an entity: CSV, Parquet, a folder of Parquet files, or postgresql://host/database#table",
    )
    inspect.add_argument("--edition", metavar="NAME", help="the edition, where rows are selected by it")
    inspect.add_argument(
        "--findings", metavar="DIR", type=Path, help="where the findings go (confidential/RELEASE-TIME)"
    )
    inspect.add_argument(
        "--dry-run", action="store_true", help="check the spec and the files' structure; no record is read"
    )
    inspect.add_argument("--record", metavar="DIR", type=Path, help="where the record of looks is kept (.margrave)")
    inspect.add_argument("--json", action="store_true", help="answer in JSON")
    add_work_options(inspect)


def add_work_options(parser: argparse.ArgumentParser) -> None:
    """Where and with what the files are read."""
    parser.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb", help="what reads the files (duckdb)")
    parser.add_argument("--master", metavar="URL", default="local[*]", help="Spark's cluster (this machine)")
    parser.add_argument("--memory", metavar="SIZE", type=_size, help="how much memory the engine may use: 4GB")
    parser.add_argument("--private", metavar="DIR", type=Path, help="where files spill; removed afterwards")


def named_file(text: str) -> tuple[str, str]:
    """NAME=PATH of the command line."""
    name, equals, place = text.partition("=")
    if not (name and equals and place):
        raise argparse.ArgumentTypeError("write NAME=PATH, for example persons=persons.parquet")
    return name, place


def _size(text: str) -> int:
    shape = re.fullmatch(r"(\d+)\s*([KMG]B)", text.strip().upper())
    if shape is None or int(shape[1]) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size; write 4GB or 800MB")
    return int(shape[1]) << SIZES[shape[2]]


def _inspect(chosen: argparse.Namespace) -> int:
    loaded = load_or_say(chosen.spec, "No file was opened")
    return WRONG_INPUT if loaded is None else _look(loaded, chosen)


def _look(loaded: Loaded, chosen: argparse.Namespace) -> int:
    from tabulation.errors import MicrodataError

    refused: MicrodataError | None = None
    try:
        return _looked(loaded, chosen)
    except MicrodataError as fault:
        refused = fault.bare()
    if chosen.json:
        say(json.dumps({"structure": "refused", "code": refused.code, "message": str(refused)}))
        return WRONG_INPUT
    raise UserError(f"microdata refused [{refused.code}]: {refused}. Nothing was charged.")


def _looked(loaded: Loaded, chosen: argparse.Namespace) -> int:
    from flows.looks import record_look
    from tabulation.findings import inspect
    from tabulation.findings_report import write_findings
    from tabulation.tabulate import Work, check_edition, open_dataset, tell_nobody

    check_edition(loaded.spec, chosen.edition)
    sources = open_dataset(loaded.spec, loaded.domain, dict(chosen.data))
    if chosen.dry_run:
        _answer(chosen, None)
        return OK
    folder = chosen.findings or _findings_folder(loaded)
    _check_writable(folder)
    record_look(chosen.record or Path(".margrave"), loaded.spec)
    work = Work(chosen.engine, chosen.private, chosen.memory, chosen.master)
    with Stages() as stages:
        told = tell_nobody if chosen.json else stages.tell
        findings = inspect(loaded.spec, loaded.domain, sources, edition=chosen.edition, work=work, tell=told)
    unwritten = 0
    try:
        write_findings(loaded.spec, findings, folder)
    except OSError as fault:
        unwritten = fault.errno or errno.EIO
    if unwritten:
        raise UserError(
            f"{folder} cannot be written: {os.strerror(unwritten)}; free space or choose another --findings"
        )
    _answer(chosen, folder)
    return OK


def _findings_folder(loaded: Loaded) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    Path("confidential").mkdir(mode=0o700, exist_ok=True)
    return Path("confidential") / f"{loaded.spec.release.name}-{stamp}"


def _check_writable(folder: Path) -> None:
    """Before anything is read: a folder that cannot be made is the user's to mend."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as fault:
        raise UserError(f"{folder} cannot be made: {fault.strerror}; choose another --findings") from None
    if not os.access(folder, os.W_OK):
        raise UserError(f"{folder} cannot be written to; choose another --findings")


def _answer(chosen: argparse.Namespace, folder: Path | None) -> None:
    if chosen.json:
        say(json.dumps({"structure": "holds", "findings": None if folder is None else str(folder)}))
    elif folder is None:
        say("The structure of every file holds. No record was read (--dry-run).")
    else:
        say(f"The structure of every file holds. Confidential findings, for the custodian alone: {folder}/findings.md")
