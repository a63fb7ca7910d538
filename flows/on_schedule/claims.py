"""Which edition a firing stands for, and where that edition is.

A firing is known by the moment it was scheduled for. The moment names an occurrence of the calendar, the occurrence an
edition, and the ledger lets only one run have an edition: whatever fires twice, late or after an outage finds the same.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

from flows.deployments.load import Deployment, load_deployments
from flows.ledger.books import Books, Run
from flows.on_schedule.duty import Duty
from flows.persons import PERSON_VARIABLE, person_in
from flows.preparing import Order, Persons, order_of, prepare
from flows.scheduling.calendar import Occurrence
from flows.terminal import UserError
from flows.workplace import Workplace

REACH = timedelta(days=400)
"""How far a nominal day may lie from the moment of its firing, and how far back missed firings are looked for."""

Moment = Callable[[Occurrence], datetime]


def measuring(occurrence: Occurrence) -> datetime:
    """When an occurrence is measured."""
    return occurrence.measuring


def publication(occurrence: Occurrence) -> datetime:
    """When an occurrence is published."""
    return occurrence.publication


@dataclass(frozen=True)
class Claim:
    """One edition of a deployment, by an occurrence of its calendar."""

    one: Deployment
    occurrence: Occurrence

    @property
    def edition(self) -> str:
        """What only one run may have: the edition, or the nominal day where no edition is named."""
        return self.occurrence.claim

    @property
    def name(self) -> str:
        """As it is spoken of."""
        return f"{self.one.name}, edition {self.edition}"

    @cached_property
    def place(self) -> Workplace:
        """The ledger and the private folder."""
        return place_of(self.one)

    @cached_property
    def duty(self) -> Duty:
        """What is remembered of the deployment."""
        return Duty.of(self.place, self.one.name)

    def known(self) -> Run | None:
        """The run that has the edition, by the ledger."""
        return run_of(self.place.open_ledger().books(), self.one, self.edition)

    def is_too_late(self, moment: datetime, now: datetime) -> bool:
        """Whether what was due at a moment needs a person to decide."""
        return now - moment > self.one.max_lateness

    def order(self) -> Order:
        """The order of the edition's run: the one it has, or a new reservation. No record is read."""
        known = self.known()
        if known is not None and known.stored is not None:
            return order_of(self.place.private, known.id)[1]
        one, persons = self.one, persons_of(self.one, self.place.open_ledger().books())
        asked = Order("", self.edition, self.place.ledger, str(one.output), one.engine)
        found = prepare(one.spec_path, self.place, asked, data=None, persons=persons)
        self.place.note_references(found.run, one.data, edition=self.edition)
        return found


def place_of(one: Deployment) -> Workplace:
    """The workplace of a deployment, with a private folder that is the same from everywhere."""
    found = Workplace.chosen(ledger=one.ledger, beside=one.spec_path.parent)
    return Workplace(found.ledger, found.private.resolve())


def persons_of(one: Deployment, books: Books) -> Persons:
    """Who starts a deployment's runs and who wrote its spec: in an office of several, both must be named.

    What starts them may be a desk, which is no person. Then nobody is left out of the approvals but the author.
    """
    named, login = os.environ.get(PERSON_VARIABLE), getpass.getuser()
    if books.solo:
        return Persons(named or login, one.author or named or login)
    if one.author is None:
        raise UserError(
            f"{one.file}: deployments.{one.name}: its ledger is of several persons, and nobody is named who wrote the "
            "spec and may therefore not approve it; add author: NAME"
        )
    return Persons(named or person_in(books, None), one.author)


def run_of(books: Books, one: Deployment, edition: str) -> Run | None:
    """The run that has an edition; where it was rejected, that one: nothing is drawn again by itself."""
    name = one.spec.release.name
    known = books.open_run(name, edition)
    if known is not None:
        return known
    all_of_it = (run for run in books.runs.values() if (run.asked.release, run.asked.edition) == (name, edition))
    return next((run for run in all_of_it if run.state == "rejected"), None)


def deployment_in(file: str, name: str) -> Deployment:
    """A deployment, read anew from its file."""
    for one in load_deployments(Path(file)):
        if one.name == name:
            return one
    raise UserError(
        f"{file} has no deployment '{name}' any more; serve the file again, so that its dates are taken out"
    )


def claim_at(one: Deployment, moment: datetime, *, by: Moment) -> Claim:
    """What a firing at a moment stands for: what is due exactly then, else the last that was due before.

    Raises `UserError` where nothing was due.
    """
    found = [each for each in around(one, moment) if by(each) <= moment]
    exact = [each for each in found if by(each) == moment]
    if not found:
        raise UserError(f"{one.name}: nothing was due at {moment:%Y-%m-%d %H:%M} UTC; look at the spec's schedule")
    return Claim(one, exact[0] if exact else max(found, key=by))


def around(one: Deployment, moment: datetime) -> list[Occurrence]:
    """The occurrences with nominal days about a moment."""
    return one.occurrences((moment - REACH).date(), (moment + REACH).date())
