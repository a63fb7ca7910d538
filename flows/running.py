"""The verbs that make a release: `margrave run`, `resume`, `publish`, `review` and `reissue`."""

from __future__ import annotations

import argparse
import getpass
import os
from pathlib import Path

from flows.inspecting import add_work_options, named_file
from flows.ledger.errors import REASONS
from flows.terminal import HELD, OK, WRONG_INPUT, Stages, UserError, load_or_say, say
from flows.verbs import Verbs, add_verb
from flows.workplace import LEDGER, Workplace

PERSON_VARIABLE = "MARGRAVE_PERSON"


def add_release_verbs(verbs: Verbs) -> None:
    """The verbs of whoever runs releases."""
    run = _add(
        verbs,
        "run",
        _run,
        help="make a release: reserve, measure, estimate, publish",
        description="Reserves the price of a spec in the ledger, measures the confidential files once, makes tables\n"
        "that agree, and publishes them with their errors. Calling it again goes on where it was interrupted;\n"
        "what was measured is never drawn again. It is held (exit 3) where the ledger asks for approvals.",
        example="margrave run release.yaml --data persons=persons.parquet --edition 2025\n"
        "          margrave run release.yaml --dry-run        what it would cost; no file is opened",
    )
    run.add_argument("spec", metavar="SPEC", type=Path, help="a release spec (YAML)")
    run.add_argument(
        "--data",
        metavar="NAME=PATH",
        action="append",
        type=named_file,
        default=[],
        help="the file of an entity: CSV, Parquet, a folder of Parquet files, or postgresql://host/database#table",
    )
    run.add_argument("--edition", metavar="NAME", help="the edition, where the spec has editions")
    run.add_argument("--out", metavar="DIR", type=Path, help="where releases go (releases, beside the spec)")
    run.add_argument("--author", metavar="NAME", help="who wrote the spec, and may not approve it (who runs it)")
    run.add_argument("--dry-run", action="store_true", help="stop before the data is opened; nothing is reserved")
    add_work_options(run)
    resume = _add(
        verbs,
        "resume",
        _resume,
        help="go on with a run that was interrupted or held",
        description="Goes on with a run from where it is. What was paid is not paid again, what was measured is not\n"
        "drawn again.",
        example="margrave resume 7f3a91c2",
    )
    resume.add_argument("run", metavar="RUN", help="the run, as 'margrave run' or 'margrave ledger doctor' named it")
    resume.add_argument("--data", metavar="NAME=PATH", action="append", type=named_file, default=[], help="as for run")
    _add_decisions(verbs)


def _add_decisions(verbs: Verbs) -> None:
    review = _add(
        verbs,
        "review",
        _review,
        help="compare finished tables with the truth, and approve or reject them",
        description="For the data custodian. With --data it compares the tables that wait for publication with the\n"
        "confidential files and writes the comparison to the run's private folder. With --approve or --reject it\n"
        "records the decision. A rejected release is never published; a new draw is a new charge.",
        example="margrave review 7f3a91c2 --data persons=persons.parquet\n          margrave review 7f3a91c2 --approve",
    )
    review.add_argument("run", metavar="RUN", help="the run")
    review.add_argument("--data", metavar="NAME=PATH", action="append", type=named_file, default=[], help="as for run")
    decision = review.add_mutually_exclusive_group()
    decision.add_argument("--approve", action="store_true", help="the release is fit to be published")
    decision.add_argument("--reject", metavar="REASON", help=f"it is not: {', '.join(REASONS)}")
    publish = _add(
        verbs,
        "publish",
        _resume,
        help="publish tables that waited for approval",
        description="Publishes what a run has made, when enough persons approved. Nothing is measured.",
        example="margrave publish 7f3a91c2",
    )
    publish.add_argument("run", metavar="RUN", help="the run")
    publish.set_defaults(data=[])
    reissue = _add(
        verbs,
        "reissue",
        _reissue,
        help="correct a release: new tables from the stored measurements, no charge",
        description="Makes the next version of a release from the measurements that are stored, with another spec\n"
        "where labels, titles, notes or the publish section change. Nothing is charged or drawn. The old version\n"
        "is kept and marked as superseded.",
        example="margrave reissue releases/harbour-2025 --reason 'a label was wrong' --spec release.yaml",
    )
    reissue.add_argument("release", metavar="RELEASE", help="the folder of a release, or its run")
    reissue.add_argument("--reason", metavar="TEXT", required=True, help="why, for the readers of the old version")
    reissue.add_argument("--spec", metavar="SPEC", type=Path, help="the corrected spec")


def _add(verbs: Verbs, name: str, act: object, **words: str) -> argparse.ArgumentParser:
    parser = add_verb(verbs, name, act, **words)
    parser.add_argument("--ledger", metavar="URL", help=f"the ledger: a file or postgresql://... ({LEDGER})")
    parser.add_argument("--as", dest="person", metavar="NAME", help="who you are, in the ledger (your login name)")
    parser.add_argument("--json", action="store_true", help="end with one JSON object")
    return parser


def person_of(chosen: argparse.Namespace) -> str:
    """Who runs a command, by the ledger's name."""
    return str(chosen.person or os.environ.get(PERSON_VARIABLE) or getpass.getuser())


def _run(chosen: argparse.Namespace) -> int:
    from flows.conducting import conduct, rehearse
    from flows.preparing import Order, Persons, prepare
    from flows.publishing import RELEASES

    loaded = load_or_say(chosen.spec, "Nothing was reserved and no file was opened")
    if loaded is None:
        return WRONG_INPUT
    place = Workplace.chosen(ledger=chosen.ledger, beside=chosen.spec.parent)
    if chosen.dry_run:
        return rehearse(loaded, place, folder=chosen.spec.parent, edition=chosen.edition, as_json=chosen.json)
    out = (chosen.out or chosen.spec.parent / RELEASES).resolve()
    spill = str(chosen.private) if chosen.private is not None else None
    order = Order("", chosen.edition, place.ledger, str(out), chosen.engine, chosen.memory, chosen.master, spill)
    me = person_of(chosen)
    return conduct(
        place,
        lambda: prepare(chosen.spec, place, order, data=dict(chosen.data), persons=Persons(me, chosen.author or me)),
        as_json=chosen.json,
    )


def _resume(chosen: argparse.Namespace) -> int:
    from flows.conducting import conduct
    from flows.preparing import Order, order_of

    place = Workplace.chosen(ledger=chosen.ledger, beside=Path())

    def found() -> Order:
        if chosen.data:
            place.note_dataset(chosen.run, dict(chosen.data))
        return order_of(place.private, chosen.run)[1]

    return conduct(place, found, as_json=chosen.json)


def _review(chosen: argparse.Namespace) -> int:
    from flows.job import Job
    from flows.reviewing import compare, decide

    job = Job.of(Workplace.chosen(ledger=chosen.ledger, beside=Path()).private, chosen.run)
    if chosen.data:
        with Stages() as stages:
            path = compare(job, data=dict(chosen.data), tell=stages.tell)
        say(f"The comparison is confidential, for the custodian alone: {path}")
    if chosen.approve or chosen.reject:
        decide(job, by=person_of(chosen), reason=chosen.reject or "")
        say(f"Run {chosen.run} is {'rejected: ' + chosen.reject if chosen.reject else 'approved by the custodian'}.")
    elif not chosen.data:
        raise UserError("name the confidential files with --data, or decide with --approve or --reject REASON")
    return OK


def _reissue(chosen: argparse.Namespace) -> int:
    from flows.job import Job
    from flows.ledger.errors import Held
    from flows.reissuing import reissue
    from reporting.manifest import MANIFEST, read_manifest

    folder = Path(chosen.release)
    run = read_manifest(folder).run if (folder / MANIFEST).exists() else chosen.release
    job = Job.of(Workplace.chosen(ledger=chosen.ledger, beside=Path()).private, run)
    with Stages() as stages:
        try:
            made = reissue(job, reason=chosen.reason, spec=chosen.spec, tell=stages.tell)
        except Held as held:
            say(f"Held: {held}")
            return HELD
    say(f"Reissued as version {made.version}: {made.folder}. Nothing was charged.")
    return OK
