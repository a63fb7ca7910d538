"""The confidential step: records come in, noise goes on, stored measurements stay. Nothing else leaves.

The order is the law: structure, identity, approvals, counts; then the charge, on disk; then the attempt, on disk; then
the first random bit; then the file; then its hash. A structural fault gives the reservation back. What is stored is
never drawn again, and a file that was linked before a crash is taken as it is.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from flows.code import code_digest
from flows.datasets import keyed_names
from flows.job import Job, step
from flows.ledger.books import ATTEMPTS
from flows.plan import Plan, PlannedQuery
from flows.preparing import digest_of, require_same
from flows.stored import FILE, Integers, Part, hash_of, sweep_stored, write_stored
from mechanisms.randomness import Randomness
from release_specs.language.phrases import Microdata
from release_specs.tallies import Tally
from tabulation.counts import ExactCounts
from tabulation.errors import MicrodataError
from tabulation.tabulate import dataset_fingerprint, open_dataset, tabulate

BLOCK = 1 << 20
"""How many cells get their noise at a time."""

Tell = Callable[[str], None]


def parts_of(plan: Plan) -> list[Part]:
    """What a run stores: every query, then the exact totals that come from the microdata."""
    noisy = [Part(one.name, one.tally.areas(one.level), one.tally.cells) for one in plan.queries]
    exact = [
        Part(exact_name(tally, level), tally.areas(level), tally.cells, exact=True)
        for tally in plan.exact
        for level in tally.levels or (None,)
    ]
    return [*noisy, *exact]


def exact_name(tally: Tally, level: str | None) -> str:
    """How an exact total is called among what is stored."""
    return f"{tally.name}:{level or ''}"


def exact_totals(plan: Plan) -> Iterator[tuple[Tally, str]]:
    """The exact totals that come from the microdata, each with its justification in the spec."""
    stated = {
        (total.count, total.by): total.because for total in plan.spec.exact if isinstance(total.source, Microdata)
    }
    for tally in plan.exact:
        yield tally, stated[tally.universe, tuple(attribute.name for attribute in tally.attributes)]


@step("measuring")
def measure(job: Job, *, tell: Tell) -> None:
    """Measures what a job's plan says, once. Raises `Held` without approvals, `MicrodataError` for bad structure."""
    ledger, run = job.ledger, job.run
    job.forget_spill()
    sweep_stored(job.folder)
    if job.known.stored is None and job.known.attempts and (job.folder / FILE).exists():
        ledger.store(run, sha256=hash_of(job.folder / FILE), attempt=job.known.attempts)
    if job.known.stored is not None:
        job.place.forget_dataset(run)
        return
    require_same(
        job.known, replace(job.known.asked, spec=digest_of(job.spec), plan=job.plan.digest, code=code_digest())
    )
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # what is drawn and not stored is in memory only
    try:
        counts = _count(job, tell)
    except MicrodataError:
        if not job.known.charged:
            ledger.release(run)
            job.place.forget_dataset(run)
        raise
    finally:
        job.forget_spill()
    for tally, because in exact_totals(job.plan):
        ledger.declare_exact(run, tally.name, at=tally.levels, because=because)
    tell("paying")
    if not job.known.charged or job.known.attempts >= ATTEMPTS * len(job.known.charged):
        ledger.charge(run, job.plan.charges, price=job.plan.price)
    attempt = ledger.attempt(run)
    tell("drawing and storing")
    digest = write_stored(job.folder, parts_of(job.plan), _drawn(job.plan, counts))
    ledger.store(run, sha256=digest, attempt=attempt)
    job.place.forget_dataset(run)


def _count(job: Job, tell: Tell) -> Mapping[str, ExactCounts]:
    tell("opening the microdata")
    plan, ledger = job.plan, job.ledger
    places, key = job.place.dataset(job.run), ledger.fingerprint_key()
    sources = open_dataset(plan.spec, plan.domain, places)
    ledger.identify(job.run, dataset_fingerprint(sources, key), places=keyed_names(places, key))
    if not job.known.charged:
        ledger.require_approved_spending(job.run)
    return tabulate(
        plan.spec,
        plan.domain,
        sources,
        key=ledger.row_key(job.run),
        edition=plan.edition,
        tallies=plan.counted,
        work=job.work,
        tell=tell,
    )


def _drawn(plan: Plan, counts: Mapping[str, ExactCounts]) -> Iterator[Integers]:
    """The numbers to be stored, block after block: as many draws as cells, zeros included."""
    randomness = Randomness()
    for query in plan.queries:
        yield from _noisy(query, counts[query.tally.name], randomness)
    for tally in plan.exact:
        for level in tally.levels or (None,):
            for _, block in counts[tally.name].blocks(level, cells=BLOCK):
                yield block


def _noisy(query: PlannedQuery, counts: ExactCounts, randomness: Randomness) -> Iterator[Integers]:
    for _, block in counts.blocks(query.level, cells=BLOCK):
        yield query.mechanism.measure(block, randomness)
