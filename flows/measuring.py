"""The confidential step: records come in, noise goes on, stored measurements stay. Nothing else leaves.

The order is the law: structure, identity, approvals, counts; then the charge, on disk; then the attempt, on disk; then
the first random bit; then the file; then its hash. A structural fault gives the reservation back. What is stored is
never drawn again, and a file that was linked before a crash is taken as it is.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator, Mapping

from flows.ledger.ledger import Ledger
from flows.plan import Plan, PlannedQuery
from flows.stored import FILE, Integers, Part, hash_of, write_stored
from flows.workplace import Workplace
from mechanisms.randomness import Randomness
from release_specs.tallies import Tally
from tabulation.counts import ExactCounts
from tabulation.errors import MicrodataError
from tabulation.tabulate import Work, dataset_fingerprint, open_dataset, tabulate

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


def measure(place: Workplace, ledger: Ledger, run: str, plan: Plan, *, work: Work, tell: Tell) -> None:
    """Measures what a plan says, once. Raises `Held` while approvals are missing, `MicrodataError` for bad structure."""
    folder = place.run_folder(run)
    known = ledger.books().runs[run]
    if known.stored is None and known.attempts and (folder / FILE).exists():
        ledger.store(run, sha256=hash_of(folder / FILE), attempt=known.attempts)
    if ledger.books().runs[run].stored is not None:
        place.forget_dataset(run)
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # what is drawn and not stored is in memory only
    try:
        counts = _count(place, ledger, run, plan, work=work, tell=tell)
    except MicrodataError:
        if not known.charged:
            ledger.release(run)
            place.forget_dataset(run)
        raise
    tell("paying")
    _pay(ledger, run, plan)
    attempt = ledger.attempt(run)
    tell("drawing and storing")
    digest = write_stored(folder, parts_of(plan), _drawn(plan, counts))
    ledger.store(run, sha256=digest, attempt=attempt)
    place.forget_dataset(run)


def _count(
    place: Workplace, ledger: Ledger, run: str, plan: Plan, *, work: Work, tell: Tell
) -> Mapping[str, ExactCounts]:
    tell("opening the microdata")
    sources = open_dataset(plan.spec, plan.domain, place.dataset(run))
    ledger.identify(run, dataset_fingerprint(sources, ledger.fingerprint_key()))
    ledger.require_approved_spending(run)
    return tabulate(
        plan.spec,
        plan.domain,
        sources,
        key=ledger.row_key(run),
        edition=plan.edition,
        tallies=plan.counted,
        work=work,
        tell=tell,
    )


def _pay(ledger: Ledger, run: str, plan: Plan) -> None:
    """Charges the run, unless that was done before a crash and attempts are left."""
    from flows.ledger.books import ATTEMPTS

    known = ledger.books().runs[run]
    if not known.charged or known.attempts >= ATTEMPTS * len(known.charged):
        ledger.charge(run, plan.charges, price=plan.price)


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
