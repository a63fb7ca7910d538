"""How long exact noise takes, as ratios to numpy's floating-point noise (not safe to publish) and to OpenDP's.

Every rival is timed in turn with ours in the same run, in processor time, the best of several rounds. Noise is drawn:
ours with a fresh ChaCha20 key, numpy's of the same law and scale, OpenDP's through its Python call on a list of
`OPENDP_CELLS` zeros, its cost for each cell taken as constant. Before a ratio is printed our draws are checked for the
exact variance. A ratio below 1 says that ours is slower.

`--json` prints the list alone; `--stream` adds 100 million cells measured in blocks, with the memory they took.
"""

import argparse
import json
import math
import resource
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from time import process_time

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.noise.sampling import draw
from mechanisms.randomness import Randomness

SCALES = (Fraction(7, 10), Fraction(5), Fraction(50), Fraction(1000))
SIZES = (10_000, 1_000_000)
OPENDP_CELLS = 20_000
STREAM, BLOCK = 100_000_000, 1_000_000


def mechanism(law: str, scale: Fraction) -> DiscreteGaussian | DiscreteLaplace:
    """Ours, for a standard deviation (Gaussian) or a scale (Laplace)."""
    return DiscreteGaussian(scale**2) if law == "gaussian" else DiscreteLaplace(scale)


def opendp(law: str, scale: Fraction) -> Callable[[list[int]], object] | None:
    """OpenDP's measurement of a list of integers, where it is installed."""
    if find_spec("opendp") is None:
        return None
    import opendp.prelude as dp

    dp.enable_features("contrib")
    integers = dp.vector_domain(dp.atom_domain(T=int))
    if law == "gaussian":
        return dp.m.make_gaussian(integers, dp.l2_distance(T=float), scale=float(scale))
    return dp.m.make_laplace(integers, dp.l1_distance(T=int), scale=float(scale))


def best(ours: Callable[[], object], rival: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The best processor time of each, taken in turns after one warm call."""
    ours()
    rival()
    times = [(seconds(ours), seconds(rival)) for _ in range(rounds)]
    return min(mine for mine, _ in times), min(theirs for _, theirs in times)


def seconds(work: Callable[[], object]) -> float:
    """Processor time of one piece of work."""
    start = process_time()
    work()
    return process_time() - start


def check(drawn: np.ndarray, variance: float) -> None:
    """Our draws have the variance of the law, within eight standard errors."""
    error = 8 * variance * math.sqrt(5 / len(drawn))
    if abs(float(np.mean(drawn.astype(float) ** 2)) - variance) > error:
        raise SystemExit("our draws have the wrong variance: no ratio is printed")


def compare(law: str, scale: Fraction, size: int) -> dict[str, object]:
    """Both ratios for one law, scale and number of cells."""
    ours, random = mechanism(law, scale), np.random.default_rng()
    check(ours.measure(np.zeros(1_000_000, np.int64), Randomness()), ours.law.variance_of_draw())
    rounds = 15 if size >= 1_000_000 else 300

    def by_numpy() -> object:
        return random.normal(0, float(scale), size) if law == "gaussian" else random.laplace(0, float(scale), size)

    mine, numpys = best(lambda: draw(ours.law, size, Randomness().bits()), by_numpy, rounds)
    rival = opendp(law, scale)
    ratio = None
    if rival is not None:
        cells = [0] * OPENDP_CELLS
        again, theirs = best(lambda: draw(ours.law, size, Randomness().bits()), lambda: rival(cells), 5)
        ratio = theirs / OPENDP_CELLS * size / min(mine, again)
    return {
        "law": law,
        "scale": float(scale),
        "n": size,
        "numpy_over_ours": round(numpys / mine, 3),
        "opendp_over_ours": None if ratio is None else round(ratio, 1),
    }


def stream() -> str:
    """100 million cells in blocks: the largest memory before and after."""
    blocks: Iterator[np.ndarray] = (np.zeros(BLOCK, np.int64) for _ in range(STREAM // BLOCK))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = process_time()
    cells = sum(len(block) for block in DiscreteGaussian(Fraction(25)).measure_blocks(blocks, Randomness()))
    took = process_time() - start
    floor = seconds(lambda: np.random.default_rng().normal(0, 5, BLOCK)) * STREAM / BLOCK
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (
        f"{cells:,} cells in blocks: numpy/ours {floor / took:.1f}, {max(0, after - before) / 1024:.0f} MB more memory"
    )


def main() -> None:
    """Prints every ratio, as lines or as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print a list of objects and nothing else")
    parser.add_argument("--stream", action="store_true", help="also measure 100 million cells in blocks")
    chosen = parser.parse_args()
    found = []
    for law in ("gaussian", "laplace"):
        for scale in SCALES:
            for size in SIZES:
                found.append(compare(law, scale, size))
                if not chosen.json:
                    row = found[-1]
                    print(
                        f"{law:8} scale {float(scale):>6g}  n {size:>9,}  numpy/ours {row['numpy_over_ours']:>6}  "
                        f"OpenDP/ours {row['opendp_over_ours'] or 'not installed'}",
                        flush=True,
                    )
    if chosen.json:
        print(json.dumps(found, indent=2))
    if chosen.stream:
        print(stream(), file=sys.stderr if chosen.json else sys.stdout)


if __name__ == "__main__":
    main()
