"""A whole state, estimated in a process that does nothing else: time beside numpy's normals, and peak memory."""

import json
import resource
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from estimate_beds import RHO, TINY, Bed, bed, census_bed, census_shape, equal, gaussian_noises
from estimate_peers import Found

from estimation.measurement import Measurement
from estimation.release import Estimated, estimate_release

TURNS = 3


def state_part(*, size: tuple[int, int, int, int]) -> Found:
    """Draws the measurements of a state here, and has another process estimate it."""
    state = census_bed(*size)
    noises = gaussian_noises(state.shape, equal(state), RHO)
    start = perf_counter()
    measurements = state.measure(noises, 1)
    drawing = perf_counter() - start
    with TemporaryDirectory() as folder:
        for one in measurements:
            np.save(Path(folder) / f"{one.tally.table}.{one.level}.npy", one.numbers)
            truth = state.truth[one.tally.table, one.level or ""]
            np.save(Path(folder) / f"{one.tally.table}.{one.level}.truth.npy", truth.astype(np.int32))
        command = [sys.executable, __file__, folder, *map(str, size[:3])]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout)
    found["state"]["estimate_over_exact_noise"] = round(found["state"]["seconds"]["estimate"] / drawing, 2)
    return dict(found)


def estimate_alone(folder: Path, size: tuple[int, int, int]) -> Found:
    """The other process: estimates what was measured, and nothing before it but a tiny state to compile everything."""
    tiny = census_bed(*TINY)
    estimate_release(tiny.problem, tiny.measure(gaussian_noises(tiny.shape, equal(tiny), RHO), 1))
    state = bed(census_shape(*size))
    noises = gaussian_noises(state.shape, equal(state), RHO)
    measurements = [
        Measurement(state.tallies[table], level, np.load(folder / f"{table}.{level}.npy"), noises[table, level])
        for table, level in state.shape.measured()
    ]
    count, before, peak = sum(one.numbers.size for one in measurements), peak_mb(), 0.0
    runs, normals = [], []
    for _ in range(TURNS):  # in turns, so that neither has quieter minutes or warmer memory
        estimated, times = timed_estimate(state, measurements)
        runs.append(times)
        peak = peak or peak_mb()
        errors = state_errors(estimated, state, folder)
        del estimated
        normals.append(timed_normals(count))
    seconds, processor, fitting = (median(one) for one in zip(*runs, strict=True))
    normal, normal_processor = (median(one) for one in zip(*normals, strict=True))
    return {
        "estimate_over_numpy_normal": round(seconds / normal, 2),
        "peak_mb": round(peak),
        "state": {
            "areas": list(state.shape.levels.values()),
            "numbers": count,
            "peak_mb_before": round(before),
            "settle_over_numpy_normal": round((seconds - fitting) / normal, 2),
            "processor_over_numpy_normal": round(processor / normal_processor, 2),
            "seconds": {
                "estimate": round(seconds, 2),
                "least_squares_up_and_whole": round(fitting, 2),
                "down_and_settle": round(seconds - fitting, 2),
                "numpy_normal": round(normal, 3),
            },
            "mae": errors,
        },
    }


def timed_estimate(state: Bed, measurements: list[Measurement]) -> tuple[Estimated, tuple[float, float, float]]:
    """Estimates, with seconds, processor time, and the seconds until the whole was settled."""
    marks, processor = [perf_counter()], process_time()
    estimated = estimate_release(state.problem, measurements, progress=lambda _: marks.append(perf_counter()))
    seconds, processor = perf_counter() - marks[0], process_time() - processor
    return estimated, (seconds, processor, marks[2] - marks[0])  # told of: the population, then the first level below


def state_errors(estimated: Estimated, state: Bed, folder: Path) -> dict[str, dict[str, Found]]:
    """Mean absolute errors by table and level: of published numbers, and of unbiased estimates."""
    errors: dict[str, dict[str, Found]] = {"ours": {}, "unbiased": {}}
    for table, level in state.shape.measured():
        truth, tally = np.load(folder / f"{table}.{level}.truth.npy"), state.tallies[table]
        errors["ours"].setdefault(table, {})[level] = mean_error(estimated.value(tally, level), truth)
        errors["unbiased"].setdefault(table, {})[level] = mean_error(estimated.estimate(tally, level), truth)
    return errors


def peak_mb() -> float:
    """The largest resident set of this program; where Linux tells, without that of the process that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed_normals(count: int) -> tuple[float, float]:
    """Seconds, and processor time, of numpy's normals."""
    start, processor = perf_counter(), process_time()
    np.random.default_rng(0).standard_normal(count)
    return perf_counter() - start, process_time() - processor


def mean_error(numbers: npt.NDArray[Any], truth: npt.NDArray[Any]) -> float:
    """The mean absolute error of a number."""
    return round(float(np.abs(numbers - truth).mean()), 4)


if __name__ == "__main__":
    folder, *size = sys.argv[1:]
    counties, tracts, blocks = map(int, size)
    print(json.dumps(estimate_alone(Path(folder), (counties, tracts, blocks))))
