"""Rivals of `estimate.py`: OSQP on the problem of one family, top-down runs on less information, and mbi.

OSQP is handed a family as sparse matrices, without the cells that are zero in the parent, with a variable for every
soft sum so that its curvature is diagonal; writing the matrices down is not counted. mbi only fits: it gets the
measurements that ours gets. Started with files of measurements, in an environment that has mbi and nothing of ours,
this script is mbi's side of the comparison; that is why it imports what it needs where it needs it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from estimate_beds import Bed

    from estimation.kernels.families import Families, Result
    from estimation.least_squares import Fit
    from estimation.measurement import Measurement
    from estimation.release import Estimated
    from estimation.stages import Stage

Found = dict[str, Any]
Floats = npt.NDArray[np.float64]

TIGHTNESS = (1e-3, 1e-4, 1e-5, 1e-6)
"""OSQP's tolerances, tried in turn until its objective agrees."""
AGREES = 1e-4
"""So near, relatively, two objectives are the same."""
MBI = "mbi==2.0.0"
MBI_STEPS = 10_000
"""Fewer leave it far off on this job: after 1,000 its tract totals are ten times worse."""


@dataclass(frozen=True, eq=False)
class Written:
    """A family in sparse matrices: numbers x with weights and targets, sums that must hold, and sums that are soft."""

    weights: Floats
    targets: Floats
    hard: Any
    wanted: Floats
    soft: Any
    aims: Floats
    pulls: Floats

    def objective(self, x: Floats) -> float:
        """What both minimise."""
        own = self.weights * (x - self.targets) ** 2
        return float(own.sum() + (self.pulls * (self.soft @ x - self.aims) ** 2).sum())

    def off(self, x: Floats) -> float:
        """How far any sum is off, or any number below zero."""
        return float(max(np.abs(self.hard @ x - self.wanted).max(initial=0), -x.min(initial=0)))


def written(family: Families) -> tuple[Written, npt.NDArray[np.int64]]:
    """One family written out, and which of its cells are not zero in the parent."""
    from scipy import sparse

    cells = np.flatnonzero(family.columns[0])
    children, size = len(family.targets), len(cells)
    x = np.arange(children * size)
    child, cell = np.divmod(x, size)

    def sums(rows: npt.NDArray[np.int64], count: int) -> Any:
        """A matrix that adds up the numbers of each row; negative rows are left out."""
        inside = rows >= 0
        return sparse.csr_matrix((np.ones(inside.sum()), (rows[inside], x[inside])), shape=(count, len(x)))

    groups, kinds = family.groups.shape[1], family.soft.shape[1]
    hard = sparse.vstack([sums(child * groups + family.group_of[cells][cell], children * groups), sums(cell, size)])
    wanted = np.concatenate([family.groups.ravel(), family.columns[0][cells]])
    soft = sum(
        sums(np.where(label[cells][cell] >= 0, child * kinds + label[cells][cell], -1), children * kinds)
        for label in family.soft_of
    )
    used = np.flatnonzero(hard.getnnz(axis=1))
    problem = Written(
        weights=1 / np.outer(family.ease, family.cell_ease[cells]).ravel(),
        targets=family.targets[:, cells].ravel(),
        hard=hard.tocsr()[used],
        wanted=wanted[used],
        soft=soft,
        aims=family.soft.ravel(),
        pulls=(family.pull / family.ease[:, None]).ravel(),
    )
    return problem, cells


def by_osqp(problem: Written, tightness: float) -> tuple[Floats, float]:
    """What OSQP makes of a family, and its processor time."""
    import osqp
    from scipy import sparse

    size, sums = len(problem.targets), len(problem.aims)
    curvature = sparse.diags(np.concatenate([problem.weights, problem.pulls]), format="csc")
    linear = -np.concatenate([problem.weights * problem.targets, problem.pulls * problem.aims])
    rows = sparse.bmat(
        [[problem.hard, None], [problem.soft, -sparse.identity(sums)], [sparse.identity(size), None]], format="csc"
    )
    low = np.concatenate([problem.wanted, np.zeros(sums + size)])
    high = np.concatenate([problem.wanted, np.zeros(sums), np.full(size, np.inf)])
    start = process_time()
    solver = osqp.OSQP()
    solver.setup(
        curvature, linear, rows, low, high, verbose=False, eps_abs=tightness, eps_rel=tightness, max_iter=100_000
    )
    found = solver.solve()
    return np.asarray(found.x[:size]), process_time() - start


def osqp_agreeing(problem: Written, objective: float) -> tuple[Floats, float, float]:
    """OSQP's numbers, processor time and relative gap at the loosest tolerance where its objective is the given one."""
    best: tuple[Floats, float, float] | None = None
    for tightness in TIGHTNESS:
        numbers, seconds = by_osqp(problem, tightness)
        gap = abs(problem.objective(numbers) - objective) / objective
        if best is None or gap < best[2]:
            best = numbers, seconds, gap
        if gap <= AGREES:
            break
    return best or (np.zeros(0), 0.0, np.inf)


def detail_families(found: Bed, measurements: list[Measurement]) -> list[Families]:
    """The problems of the last pass at the lowest level, one for each parent, taken from a run of the product."""
    from estimation.release import estimate_release
    from estimation.settling import _solved

    seen: list[Families] = []

    def noting(problem: Families, level: str) -> tuple[Result, tuple[int, ...]]:
        if level == found.shape.lowest and problem.targets.shape[1] == found.shape.cells:
            seen.append(problem)
        return _solved(problem, level)

    with patch("estimation.settling._solved", noting):
        estimate_release(found.problem, measurements, workers=1)
    return [one_family(problem, parent) for problem in seen for parent in range(len(problem.columns))]


def one_family(problem: Families, parent: int) -> Families:
    """One parent of several."""
    start, end = problem.starts[parent : parent + 2] - problem.starts[0]
    mine = {name: getattr(problem, name)[start:end] for name in ("targets", "ease", "groups", "soft", "pull")}
    starts = np.array([0, end - start], np.int64)
    return problem._replace(starts=starts, columns=problem.columns[parent : parent + 1], **mine)


def by_sweeps(family: Families) -> tuple[Floats, float]:
    """What ours makes of a family, and its processor time: the median of five."""
    from estimation.kernels.families import Result
    from estimation.kernels.sweep import settle
    from estimation.settling import MOST_SWEEPS, TOLERANCE

    result = Result(np.zeros(family.targets.shape), np.zeros(1, np.int64), np.zeros(1))
    times = []
    for _ in range(5):
        start = process_time()
        settle(family, result, 0, 1, TOLERANCE, MOST_SWEEPS)
        times.append(process_time() - start)
    if not result.off[0] < TOLERANCE:
        raise SystemExit("a family did not settle: no ratio is printed")
    return result.numbers, median(times)


def compare_families(small: Bed, measurements: list[Measurement], *, families: int) -> Found:
    """OSQP over ours, for families spread over all tracts with more than one block and with persons."""
    every = [one for one in detail_families(small, measurements) if one.columns.any() and len(one.targets) > 1]
    by_sweeps(every[0])
    rows = []
    for family in every[:: max(1, len(every) // families)][:families]:
        numbers, ours = by_sweeps(family)
        problem, cells = written(family)
        x = numbers[:, cells].ravel()
        theirs, osqp, gap = osqp_agreeing(problem, problem.objective(x))
        rows.append((osqp / ours, gap, problem.off(x), problem.off(theirs), ours, osqp, len(x)))
    ratio, gap, off, their_off, ours, osqp, size = np.array(rows).T
    return {
        "qp_cpu_osqp_over_ours": round(float(np.median(ratio)), 1),
        "objective_gap": float(f"{gap.max():.2g}"),
        "qp": {
            "families": len(rows),
            "numbers_in_a_family": int(np.median(size)),
            "ratio_least_most": [round(float(ratio.min()), 1), round(float(ratio.max()), 1)],
            "milliseconds_ours_osqp": [round(1e3 * float(np.median(one)), 2) for one in (ours, osqp)],
            "largest_sum_off_ours_osqp": [round(float(off.max()), 4), round(float(their_off.max()), 4)],
        },
    }


def own_level_only(found: Bed, measurements: list[Measurement]) -> Estimated:
    """The product's top-down run where every level sees its own measurements only, nothing from below or above."""
    from estimation.estimate import settle_population
    from estimation.least_squares import Fit
    from estimation.problem import work_for
    from estimation.release import Done, Estimated

    planned = found.problem.populations[0]
    work = work_for(found.problem, planned, (measurements, ()), ())
    precisions: dict[str, dict[str, Floats]] = {}
    for one in measurements:
        here = precisions.setdefault(planned.forest.name_of(one.tally.spine, one.level), {})
        here[one.tally.name] = 1 / one.variances
    whole = _by_itself(work.fit, work.fit.whole)
    blind = replace(
        work,
        fit=Fit(work.fit.coordinates, work.fit.core, whole, {}, dict.fromkeys(work.fit.exact, ())),
        precisions=precisions,
    )
    return Estimated(found.problem, (Done(planned, blind, settle_population(blind)),))


def _by_itself(fit: Fit, at: Stage) -> Stage:
    """A stage that knows nothing from below, and passes nothing down."""
    from estimation.stages import stage

    own = stage(at.name, at.observations, coordinates=fit.coordinates, shape=(at.areas, fit.core))
    below = tuple((level, _by_itself(fit, lower)) for level, lower in at.below)
    return replace(own, below=below, upwards=tuple(np.zeros_like(own.covariance) for _ in below))


def errors_of_a_draw(found: Bed, measurements: list[Measurement]) -> dict[tuple[str, str, str], float]:
    """Mean absolute errors by way, table and level."""
    from estimation.release import estimate_release

    ours, blind = estimate_release(found.problem, measurements), own_level_only(found, measurements)
    noisy = {(one.tally.table, one.level or ""): one.numbers for one in measurements}
    errors: dict[tuple[str, str, str], float] = {}
    for (table, level), truth in found.truth.items():
        tally = found.tallies[table]
        ways = {
            "ours": ours.value(tally, level),
            "unbiased": ours.estimate(tally, level),
            "own_level_only": blind.value(tally, level),
            "independent": noisy[table, level],
            "clamped": np.maximum(noisy[table, level], 0),
            "clamped_detail_added_up": found.shape.margin(np.maximum(noisy["detail", level], 0), table),
        }
        errors |= {(way, table, level): float(np.abs(numbers - truth).mean()) for way, numbers in ways.items()}
    return errors


def peers_part(*, tracts: int, draws: int, mbi: int) -> Found:
    """Errors of totals added up from published cells, and of mbi's on the first measurements where asked."""
    from estimate_beds import bed, peers_noises, peers_population, peers_shape

    from estimation.release import estimate_release

    job = bed(peers_shape(tracts), peers_population(tracts, 1_000 * tracts, seed=7))
    noises = peers_noises(Fraction(1))
    errors: dict[str, list[float]] = {}
    seconds: list[float] = []
    for seed in range(draws):
        measurements = job.measure(noises, seed)
        start = perf_counter()
        estimated = estimate_release(job.problem, measurements)
        seconds.append(perf_counter() - start)
        for level, error in errors_of_cells(job, estimated.value(job.tallies["cells"], "tract")).items():
            errors.setdefault(level, []).append(error)
    found: Found = {level: round(float(np.mean(one)), 2) for level, one in errors.items()}
    found |= {"runs": draws, "tracts": tracts, "seconds": round(median(seconds), 3)}
    found["standard_error"] = {
        level: round(float(np.std(one, ddof=1) / np.sqrt(draws)), 2) for level, one in errors.items()
    }
    if mbi:
        found["mbi"] = mbi_part(job, draws=mbi, ours=median(seconds))
        found["mbi"]["ours_on_these"] = {level: round(float(np.mean(one[:mbi])), 2) for level, one in errors.items()}
    return {"peers_job": found}


def by_mbi(folder: Path, environment: Path, files: list[Path]) -> dict[str, Any]:
    """Seconds of mbi for each file of measurements; its cells are left beside them. Makes its environment once."""
    python = environment / "bin" / "python"
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True, capture_output=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", MBI], check=True, capture_output=True)
        command = [str(python), str(Path(__file__).resolve()), *map(str, files)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
    except (OSError, subprocess.CalledProcessError) as problem:
        told = getattr(problem, "stderr", None) or str(problem)
        last = (told.decode() if isinstance(told, bytes) else told).strip().splitlines()[-1:]
        return {"skipped": f"mbi could not be installed or run in {environment}: {' '.join(last)}"}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def errors_of_cells(job: Bed, cells: npt.NDArray[Any]) -> dict[str, float]:
    """Mean absolute errors of the totals of every level, added up from cells, and of the cells."""
    totals = np.asarray(cells, float).sum(axis=1)
    found = {"cells": float(np.abs(cells - job.truth["cells", "tract"]).mean())}
    for level in job.shape.levels:
        summed = np.bincount(job.shape.places()[level], totals)
        found[level] = float(np.abs(summed - job.truth["total", level][:, 0]).mean())
    return found


def mbi_part(job: Bed, *, draws: int, ours: float) -> Found:
    """mbi on the same measurements: its errors, and its time over ours."""
    from estimate_beds import peers_noises

    noises, places = peers_noises(Fraction(1)), job.shape.places()
    with TemporaryDirectory() as folder:
        files = [Path(folder) / f"{seed}.npz" for seed in range(draws)]
        for seed, file in enumerate(files):
            given: Found = {f"{level}_of_tract": places[level] for level in ("county", "state")}
            for one in job.measure(noises, seed):
                name = "cells" if one.tally.table == "cells" else str(one.level)
                given[name] = one.numbers if name == "cells" else one.numbers[:, 0]
                given[f"{name}_deviation"] = one.noise.variance**0.5
            np.savez(file, **given)
        done = by_mbi(Path(folder), ROOT / "build" / "mbi", files)
        if "skipped" in done:
            return done
        errors = [errors_of_cells(job, np.load(file.with_suffix(".mbi.npy"))) for file in files]
    means = {level: round(float(np.mean([one[level] for one in errors])), 2) for level in errors[0]}
    seconds = [round(float(one), 2) for one in done["seconds"]]
    return {"runs": draws, "seconds": seconds, "mbi_over_ours": round(min(seconds) / ours, 1), **means}


def _fit_by_mbi(file: Path) -> float:
    """Fits mbi's model to a file of measurements, writes its cells, and says how long it took."""
    import jax
    from mbi import Domain, LinearMeasurement, estimation

    given = np.load(file)
    tracts, names = len(given["tract"]), ("tract", "sex", "band", "race")
    start = perf_counter()
    domain = Domain(names, (tracts, 2, 12, 7))

    def adding_up(places: npt.NDArray[np.int64], areas: int) -> Any:
        return lambda factor: jax.ops.segment_sum(factor.datavector(), places, areas)

    measurements = [
        LinearMeasurement(given["cells"].ravel().astype(float), names, stddev=float(given["cells_deviation"])),
        LinearMeasurement(given["tract"].astype(float), ("tract",), stddev=float(given["tract_deviation"])),
    ]
    for level in ("county", "state"):
        query = adding_up(given[f"{level}_of_tract"], len(given[level]))
        deviation = float(given[f"{level}_deviation"])
        measurements.append(LinearMeasurement(given[level].astype(float), ("tract",), stddev=deviation, query=query))
    total = float(max(1, given["nation"][0]))
    model = estimation.MirrorDescent().estimate(domain, measurements, known_total=total, iters=MBI_STEPS)
    cells = np.asarray(model.project(names).datavector()).reshape(tracts, -1)
    seconds = perf_counter() - start
    np.save(file.with_suffix(".mbi.npy"), cells)
    return seconds


def main() -> None:
    """mbi's side: fits every file of measurements that is named and prints the seconds of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="measurements, as estimate.py --mbi writes them")
    chosen = parser.parse_args()
    if chosen.files:
        print(json.dumps({"seconds": [_fit_by_mbi(file) for file in chosen.files]}))
    else:
        print("nothing to fit: benchmarks/estimate.py --mbi starts this script")


if __name__ == "__main__":
    main()
