"""The custodian's review: finished tables beside the truth, inside the private folder, and a decision.

The comparison is confidential like the microdata. What leaves is the decision alone: approved, or rejected for one of
a few reasons, which the account's next certificates count.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from flows.estimating import Tell, forget_candidate, tables_of
from flows.job import Job
from flows.ledger.errors import Refused
from reporting.replay import MadeTables
from tabulation.counts import ExactCounts
from tabulation.tabulate import dataset_fingerprint, open_dataset, tabulate

COMPARISON, OTHERS = "comparison.csv", "other_accounts.txt"
COLUMNS = ("tally", "level", "cells", "total_true", "total_published", "mean_off", "most_off", "expected_deviation")


@dataclass(frozen=True, slots=True)
class Compared:
    """One tally at one level beside the truth."""

    tally: str
    level: str
    cells: int
    total_true: int
    total_published: int
    mean_off: float
    most_off: int
    expected_deviation: float


def compare(job: Job, *, data: Mapping[str, str], tell: Tell) -> Path:
    """Writes how far the tables of a job are from the truth, for the custodian alone; returns the file."""
    plan, ledger = job.plan, job.ledger
    sources = open_dataset(plan.spec, plan.domain, data)
    if not ledger.is_dataset(job.run, dataset_fingerprint(sources, ledger.fingerprint_key())):
        raise Refused(f"these are not the files that run {job.run} was made from")
    truth = tabulate(
        plan.spec,
        plan.domain,
        sources,
        key=ledger.row_key(job.run),
        edition=plan.edition,
        tallies=plan.tallies,
        work=job.work,
        tell=tell,
    )
    tell("comparing")
    made = tables_of(job)
    _note_other_payers(job)
    path = job.folder / COMPARISON
    with _closed(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for one in _compared(made, truth):
            writer.writerow([getattr(one, name) for name in COLUMNS])
    return path


def _note_other_payers(job: Job) -> None:
    """Tells the custodian alone which other accounts paid for the very same records: files may be renamed or copied."""
    others = job.ledger.other_payers(job.run)
    (job.folder / OTHERS).unlink(missing_ok=True)
    if others:
        with _closed(job.folder / OTHERS) as file:
            file.write(f"The records of run {job.run} were also paid for by account {', '.join(others)}.\n")
            file.write("What these accounts spent adds up for the persons in them: let one account pay.\n")


def _closed(path: Path) -> TextIO:
    """A new file for the custodian alone."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8")


def _compared(made: MadeTables, truth: Mapping[str, ExactCounts]) -> Iterator[Compared]:
    for tally in made.estimated.problem.tallies:
        for level in tally.levels or (None,):
            true, shown = truth[tally.name].dense(level), made.estimated.value(tally, level)
            off = np.abs(shown - true)
            deviation = float(made.estimated.deviation(tally, level).mean())
            yield Compared(
                tally.name, level or "", off.size, int(true.sum()), int(shown.sum()), round(float(off.mean()), 3),
                int(off.max(initial=0)), round(deviation, 3),
            )  # fmt: skip


def decide(job: Job, *, by: str, reason: str) -> None:
    """Records the decision; a rejected release is never published, and a new draw is a new charge."""
    job.ledger.review(job.run, by=by, reason=reason)
    for left in (COMPARISON, OTHERS):
        (job.folder / left).unlink(missing_ok=True)
    if reason:
        forget_candidate(job)
