"""What must hold after every kill and every refusal of a disk, and what must hold when the release is finished."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from flows.checking import checks_of
from flows.estimating import tables_of
from flows.job import Job
from flows.ledger.books import Run
from flows.ledger.ledger import Ledger
from flows.ledger.verifying import verify_ledger
from flows.planning.noise import noise_of
from flows.preparing import ORDER, order_of
from flows.stored import FILE, hash_of
from reporting.check_release import check_release
from reporting.replay import MADE, replay
from reporting.spec_files import FOLDER as SPEC_FOLDER
from tests.flows.crashes.office import Office

KEPT = {ORDER, FILE, SPEC_FOLDER}
"""All that a finished run keeps in its private folder."""


@dataclass
class Inquest:
    """Looks at an office from outside, again and again, and remembers the measurements it saw."""

    office: Office
    scratch: Path
    charges: int = 1
    """How often the release may be paid for."""
    seen: dict[str, str] = field(default_factory=dict)
    """The hash of each run's stored measurements, from the first time they were there."""

    def look(self) -> None:
        """After a kill: a sound ledger, no overspending, no half release, and measurements that never change."""
        store = self.office.ledger_copy(self.scratch / "ledger")
        assert [check for check in verify_ledger(store) if not check.ok] == []
        ledger = Ledger(store)
        for run in ledger.books().runs.values():
            assert run.charged in ([self.price] * count for count in range(self.charges + 1))
            assert self.draws <= run.attempts
            self._look_at_measurements(run)
        ledger.close()
        for visible in self._visible():
            assert [check for check in check_release(visible) if not check.ok] == []

    def finish(self) -> Run:
        """At the end: one release, paid for as often as said, that follows from the measurements stored first."""
        self.look()
        run = self.office.only_run()
        assert run.charged == [self.price] * self.charges
        assert run.stored is not None
        assert run.stored.sha256 == self.seen[run.id]
        assert run.stored.attempt == run.attempts
        assert len(run.versions) == 1
        (release,) = self._visible()
        ledger = self.office.place.open_ledger()
        assert [check for check in checks_of(release, ledger) if not check.ok] == []
        ledger.close()
        self._compare(run, release)
        self._look_for_leftovers(run, release)
        return run

    @property
    def price(self) -> Fraction:
        """What one charge comes to."""
        return self.office.plan.price

    @property
    def draws(self) -> int:
        """How often noise began to be drawn."""
        return len(self.office.draws.read_text().splitlines()) if self.office.draws.exists() else 0

    def _visible(self) -> list[Path]:
        """What a reader sees in the folder of releases."""
        return [path for path in self.office.out.glob("*") if not path.name.startswith(".")]

    def _look_at_measurements(self, run: Run) -> None:
        file = self.office.place.private / "runs" / run.id / FILE
        if run.stored is not None:
            assert self.seen.setdefault(run.id, run.stored.sha256) == run.stored.sha256
            assert file.exists()
        if file.exists():
            found = hash_of(file)
            assert self.seen.setdefault(run.id, found) == found

    def _compare(self, run: Run, release: Path) -> None:
        """The tables are those of an estimate that nobody interrupted, from what is stored and what is published."""
        job = Job(*order_of(self.office.place.private, run.id))
        again = self.scratch / "again"
        again.mkdir()
        tables_of(job).write(again)
        job.ledger.close()
        made = [path.relative_to(again) for path in again.rglob("*") if path.is_file()]
        assert {path.parts[0] for path in made} == set(MADE)
        assert [path for path in made if (again / path).read_bytes() != (release / path).read_bytes()] == []
        replayed = self.scratch / "replayed"
        replayed.mkdir()
        assert replay(release, replayed, noise_of=noise_of) == []

    def _look_for_leftovers(self, run: Run, release: Path) -> None:
        assert list(self.office.out.iterdir()) == [release]
        runs = self.office.place.private / "runs"
        assert [path.name for path in runs.iterdir()] == [run.id]
        assert {path.name for path in (runs / run.id).iterdir()} == KEPT
        assert list((self.office.folder / "tmp").iterdir()) == []
