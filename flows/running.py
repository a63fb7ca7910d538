"""The verbs that make a release: `margrave run`, `resume`, `publish`, `review` and `reissue`."""

from __future__ import annotations

import argparse
from pathlib import Path

from flows.inspecting import add_work_options, named_file
from flows.ledger.errors import HERE, REASONS
from flows.persons import PERSON_VARIABLE, person_in
from flows.terminal import HELD, OK, WRONG_INPUT, Stages, UserError, load_or_say, say, tell
from flows.verbs import Verbs, add_verb
from flows.workplace import LEDGER, Workplace


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
    resume.add_argument("run", metavar="RUN", help="the run, or its first digits: see 'margrave ledger doctor'")
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
    review.add_argument("run", metavar="RUN", help="the run, or its first digits")
    review.add_argument("--data", metavar="NAME=PATH", action="append", type=named_file, default=[], help="as for run")
    decision = review.add_mutually_exclusive_group()
    decision.add_argument("--approve", action="store_true", help="the release is fit to be published")
    decision.add_argument("--reject", metavar="REASON", help=f"it is not: {', '.join(REASONS)}")
    publish = _add(
        verbs,
        "publish",
        _publish,
        help="publish tables that waited for approval",
        description="Publishes what a run has made, when enough persons approved. Nothing is measured.",
        example="margrave publish 7f3a91c2",
    )
    publish.add_argument("run", metavar="RUN", help="the run, or its first digits")
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
    reissue.add_argument("release", metavar="RELEASE", help="the folder of a release, or its run (its first digits)")
    reissue.add_argument("--reason", metavar="TEXT", required=True, help="why, for the readers of the old version")
    reissue.add_argument("--spec", dest="corrected", metavar="SPEC", type=Path, help="the corrected spec")


def _add(verbs: Verbs, name: str, act: object, **words: str) -> argparse.ArgumentParser:
    parser = add_verb(verbs, name, act, **words)
    parser.add_argument("--ledger", metavar="URL", help=f"the ledger: a file or postgresql://... ({LEDGER})")
    parser.add_argument("--as", dest="person", metavar="NAME", help=f"who you are, in the ledger ({PERSON_VARIABLE})")
    parser.add_argument("--json", action="store_true", help="end with one JSON object")
    return parser


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
    data, me = places_of(chosen), person_in(place.open_ledger().books(), chosen.person)

    def prepared() -> Order:
        found = prepare(chosen.spec, place, order, data=data, persons=Persons(me, chosen.author or me))
        _note_changes(chosen.spec, place, found.run)
        return found

    return conduct(place, prepared, as_json=chosen.json)


def _note_changes(spec: Path, place: Workplace, run: str) -> None:
    """Says that a spec was edited after its edition was published: the edition stays as it is."""
    from flows.job import Job
    from flows.preparing import has_changed

    job = Job.of(place.private, run)
    if job.known.versions and has_changed(spec, job.known, job.spec):
        tell(
            place.hinted(
                f"note: {spec} is not the spec that was published. Correct labels, titles, notes or the publish "
                f"section with: margrave reissue {run} --spec {spec} --reason TEXT{HERE}; what is measured anew is "
                "another edition"
            )
        )


def places_of(chosen: argparse.Namespace) -> dict[str, str]:
    """The files that a command names, each entity once."""
    names = [name for name, _ in chosen.data]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"--data names '{name}' {names.count(name)} times; name its file once")
    return dict(chosen.data)


def _chosen_run(chosen: argparse.Namespace) -> tuple[Workplace, str]:
    """The workplace of a command, and the run that it names by all or the first of its digits."""
    place = Workplace.chosen(ledger=chosen.ledger, beside=Path())
    return place, place.run_named(chosen.run)


def _resume(chosen: argparse.Namespace) -> int:
    from flows.conducting import conduct
    from flows.datasets import require_files
    from flows.job import Job
    from flows.preparing import Order, order_of

    place, run = _chosen_run(chosen)
    data = places_of(chosen)

    def found() -> Order:
        order = order_of(place.private, run)[1]
        if data:
            require_files(Job.of(place.private, run).plan.spec, data)
            place.note_dataset(run, data)
        return order

    return conduct(place, found, as_json=chosen.json)


def _publish(chosen: argparse.Namespace) -> int:
    from flows.conducting import LAST, conduct
    from flows.job import Job
    from flows.publishing import require_tables

    place, run = _chosen_run(chosen)
    job = Job.of(place.private, run)
    require_tables(job)
    return conduct(place, lambda: job.order, as_json=chosen.json, flows=LAST)


def _review(chosen: argparse.Namespace) -> int:
    from flows.conducting import faults_told
    from flows.job import Job
    from flows.reviewing import compare, decide

    place, run = _chosen_run(chosen)
    job, data = Job.of(place.private, run), places_of(chosen)
    if not (data or chosen.approve or chosen.reject):
        raise UserError("name the confidential files with --data, or decide with --approve or --reject REASON")
    me = person_in(job.ledger.books(), chosen.person)
    if data:
        with Stages() as stages, faults_told(job):
            path = compare(job, data=data, tell=stages.tell)
        say(f"The comparison is confidential, for the custodian alone: {path}")
    if chosen.approve or chosen.reject:
        decide(job, by=me, reason=chosen.reject or "")
        say(f"Run {run} is {'rejected: ' + chosen.reject if chosen.reject else 'approved by the custodian'}.")
    return OK


def _reissue(chosen: argparse.Namespace) -> int:
    from flows.conducting import faults_told
    from flows.job import Job
    from flows.ledger.errors import Embargoed, Held
    from flows.reissuing import reissue
    from reporting.manifest import MANIFEST, read_manifest

    folder = Path(chosen.release)
    if folder.is_dir() and not (folder / MANIFEST).exists():
        raise UserError(f"{folder} is no release: it has no {MANIFEST}; name the folder that 'margrave run' printed")
    chosen.run = read_manifest(folder).run if folder.is_dir() else chosen.release
    place, run = _chosen_run(chosen)
    job = Job.of(place.private, run)
    with Stages() as stages, faults_told(job):
        try:
            made = reissue(job, reason=chosen.reason, spec=chosen.corrected, tell=stages.tell)
        except (Held, Embargoed) as held:
            say(place.hinted(f"Held: {held}"))
            return HELD
    say(f"Reissued as version {made.version}: {made.folder}. Nothing was charged.")
    return OK
