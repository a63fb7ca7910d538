"""A job: one run at its workplace, with everything its steps need, read once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from flows.disk import on_disk
from flows.ledger.books import Run
from flows.ledger.errors import HERE
from flows.ledger.ledger import Ledger
from flows.plan import Plan, plan_release
from flows.preparing import Order, order_of
from flows.workplace import CANDIDATE, Workplace
from reporting.spec_files import FOLDER, load_shipped
from tabulation.tabulate import Work

P = ParamSpec("P")
R = TypeVar("R")
SPILL = "spill"
KEPT = "What was paid and stored is kept: mend that, and go on with"


@dataclass(frozen=True)
class Job:
    """What a step of a run is given."""

    place: Workplace
    order: Order

    @staticmethod
    @lru_cache(maxsize=2)
    def of(private: Path, run: str) -> Job:
        """The job of a run in a private folder; its steps in one process share what was read and planned."""
        return Job(*order_of(private, run))

    @property
    def run(self) -> str:
        """The run."""
        return self.order.run

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger."""
        return self.place.open_ledger()

    @property
    def known(self) -> Run:
        """How far the run came, by the ledger."""
        return self.ledger.books().runs[self.run]

    @property
    def folder(self) -> Path:
        """The run's private folder."""
        return self.place.run_folder(self.run)

    @property
    def spec(self) -> Path:
        """The folder with the run's copies of the spec and its public files."""
        return self.folder / FOLDER

    @property
    def candidate(self) -> Path:
        """The folder of tables that wait to be published."""
        return self.folder / CANDIDATE

    @cached_property
    def plan(self) -> Plan:
        """The plan, from the run's copies."""
        return plan_release(load_shipped(self.folder, self.order.edition), folder=self.spec, edition=self.order.edition)

    @property
    def spill(self) -> Path:
        """The folder for what spills to disk while records are counted: this run's alone."""
        return self.folder / SPILL if self.order.spill is None else Path(self.order.spill) / f"margrave-{self.run}"

    def forget_spill(self) -> None:
        """Removes whatever spilled, a killed process's too. Only while nobody else works on the run."""
        shutil.rmtree(self.spill, ignore_errors=True)

    @property
    def work(self) -> Work:
        """What reads the confidential files."""
        return Work(self.order.engine, self.spill, self.order.memory, self.order.master)


def step(doing: str) -> Callable[[Callable[Concatenate[Job, P], R]], Callable[Concatenate[Job, P], R]]:
    """A step of a run: one process at a time takes it, and what the disk refuses meanwhile is said in one sentence."""

    def wrap(function: Callable[Concatenate[Job, P], R]) -> Callable[Concatenate[Job, P], R]:
        @wraps(function)
        def alone(job: Job, /, *args: P.args, **kwargs: P.kwargs) -> R:
            go_on = f"{KEPT}: margrave resume {job.run}{HERE}"
            with on_disk(f"{doing} (run {job.run})", job.place.private, then=go_on), job.place.alone(job.run):
                return function(job, *args, **kwargs)

        return alone

    return wrap
