"""A desk at which commands are typed wrongly: the command line in a folder that is not the office's own.

Every answer is looked at: no traceback, no internal error, no placeholder where a command should name its ledger, and
an exit code of the documented ones. A hint is taken as it is printed and typed.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

from flows import conducting
from flows.cli import main
from flows.job import Job
from flows.ledger.books import Run
from flows.ledger.errors import HERE
from flows.ledger.keys import write_key
from flows.terminal import Stages
from flows.workplace import DATASET
from tests.flows.offices import SPEC, Office, office
from tests.flows.without_prefect import no_server, take_steps

OK, NOT_SO, WRONG_INPUT, HELD, STOPPED = 0, 1, 2, 3, 130
COMMAND = r"margrave ({})((?: (?!\()(?:'[^']*'|[^\s;']+))*)"
CANARY = "zebrafinch"
APPROVED = SPEC.replace("delta: 1e-10}}", "delta: 1e-10}, approvals: {to_spend: 1, to_publish: 0}}")


@dataclass(frozen=True)
class Answer:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """All of it."""
        return self.out + self.err

    def hint(self, verb: str) -> list[str]:
        """The words of a command that was suggested."""
        found = re.search(COMMAND.format(re.escape(verb)), self.said)
        assert found is not None, f"no 'margrave {verb}' in: {self.said}"
        return [*verb.split(), *shlex.split(found[2].rstrip(".,"))]


@dataclass
class Desk:
    """An office, and somebody who types commands elsewhere."""

    office: Office
    capsys: pytest.CaptureFixture[str]
    patch: pytest.MonkeyPatch

    def margrave(self, *words: str) -> Answer:
        """Types a command; a new process would share nothing with the last one."""
        Job.of.cache_clear()
        self.capsys.readouterr()
        code = main(words)
        answer = Answer(code, *self.capsys.readouterr())
        assert code in (OK, NOT_SO, WRONG_INPUT, HELD, STOPPED), answer
        assert not any(word in answer.said for word in ("Traceback", "internal error", HERE, CANARY)), answer
        return answer

    def run(self, *more: str, ledger: str | None = None) -> Answer:
        """The command that makes the release."""
        data = [] if any(word.startswith("--data") for word in more) else self.data
        return self.margrave("run", str(self.office.spec), "--ledger", ledger or self.ledger, *data, *more)

    @property
    def ledger(self) -> str:
        """The ledger's address."""
        return self.office.place.ledger

    @property
    def data(self) -> list[str]:
        """The words that name the microdata."""
        return [f"--data={name}={path}" for name, path in self.office.data.items()]

    def stopped_at(self, stage: str, *more: str) -> Answer:
        """Ctrl-C when a stage begins."""
        with interrupted(self.patch, stage):
            return self.run(*more)

    def runs(self) -> list[Run]:
        """The runs that the ledger knows."""
        return list(self.office.ledger().books().runs.values())

    def only_run(self) -> Run:
        """The one run."""
        (run,) = self.runs()
        return run

    def entries(self) -> int:
        """How many entries the ledger has."""
        return self.office.ledger().anchor().seq

    def stands(self, state: str, *, reserved: int, charged: int) -> bool:
        """Whether the one run has a state, and its price is so many times reserved and charged."""
        run, books = self.only_run(), self.office.ledger().books()
        price, name = run.asked.price, run.asked.policy
        found = run.state, books.held(name), books.spent(name)
        return found == (state, reserved * price, charged * price) and books.left(name) == (
            books.policies[name].cap - found[1] - found[2]
        )

    def left(self) -> Fraction:
        """What the one account has left."""
        books = self.office.ledger().books()
        (name,) = books.policies
        return books.left(name)

    def published(self) -> list[str]:
        """Everything in the folder of releases, half-made ones too."""
        folder = self.office.folder / "releases"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def notes(self) -> list[Path]:
        """The notes of where confidential files are, and whatever spilled."""
        return [path for path in self.office.place.private.rglob("*") if path.name in (DATASET, "spill")]

    def key(self, person: str) -> str:
        """A file with a person's key."""
        path = self.office.folder / f"{person}.key"
        if not path.exists():
            write_key(path, self.office.keys[person])
        return str(path)

    def approve(self, answer: Answer, *persons: str) -> None:
        """Has what waits approved, by the command that was suggested."""
        words = answer.hint("ledger approve")
        for person in persons:
            assert self.margrave(*(self.key(person) if word == "KEY" else word for word in words)).code == OK

    def granted(self, *more: str, by: tuple[str, ...] = ("Ada", "Ben")) -> None:
        """Opens the budget, as persons do."""
        words = ["ledger", "grant", str(self.office.spec), "--ledger", self.ledger, *more]
        answer = self.margrave(*words)
        if answer.code == HELD:
            self.approve(answer, *by)
            answer = self.margrave(*words)
        assert answer.code == OK, answer


def interrupt() -> None:
    """Ctrl-C."""
    os.kill(os.getpid(), signal.SIGINT)


@contextmanager
def interrupted(patch: pytest.MonkeyPatch, stage: str) -> Iterator[None]:
    """While it lasts, Ctrl-C comes when a stage begins."""

    def tell(self: Stages, begun: str) -> None:
        del self
        if begun == stage:
            interrupt()

    with patch.context() as patched:
        patched.setattr(Stages, "tell", tell)
        yield


def desk_in(
    folder: Path, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch, *, persons: tuple[str, ...] = (),
    text: str = SPEC, wait: Callable[[], None] = lambda: None,
) -> Desk:  # fmt: skip
    """A desk beside an office; steps are taken without Prefect."""
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    patch.chdir(elsewhere)
    for name in ("MARGRAVE_LEDGER", "MARGRAVE_PRIVATE", "MARGRAVE_PERSON"):
        patch.delenv(name, raising=False)
    patch.setattr(conducting, "start_early", lambda: no_server(wait))
    patch.setattr(conducting, "_through_prefect", take_steps)
    return Desk(office(folder / "the office", persons=persons, text=text), capsys, patch)
