"""Random families of areas to settle, and what an independent solver makes of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from estimation.kernels.sweep import Families, Result, settle

Floats = npt.NDArray[np.float64]


def random_families(
    rng: np.random.Generator, *, parents: int = 1, kinds: int = 2, skew: float = 1.0, bounded: bool = False
) -> Families:
    """Families with a truth behind them, so that everything asked of them can be had."""
    fans = rng.integers(1, 8, parents)
    starts = np.concatenate([[0], np.cumsum(fans)])
    children, cells = int(starts[-1]), int(rng.integers(4, 25))
    truth = rng.poisson(rng.gamma(0.5, 6, (1, cells)), (children, cells)).astype(float)
    group_of = np.sort(rng.integers(0, max(1, cells // 5), cells)).astype(np.int32)
    group_of = np.unique(group_of, return_inverse=True)[1].astype(np.int32)
    labels, soft, edges = [], [], [0]
    for _ in range(kinds):
        label = rng.integers(0, 4, cells)
        _, label = np.unique(label, return_inverse=True)
        sums = np.stack([truth[:, label == i].sum(1) for i in range(label.max() + 1)], axis=1)
        soft.append(sums + rng.normal(0, 3, sums.shape))
        labels.append(label + edges[-1])
        edges.append(edges[-1] + label.max() + 1)
    pull = np.exp(rng.normal(0, skew, (children, edges[-1])))
    slack = rng.poisson(1, truth.shape)
    return Families(
        targets=truth + rng.normal(0, 4, truth.shape),
        ease=np.exp(rng.normal(0, 0.5 * skew, children)),
        cell_ease=np.ones(cells),
        starts=starts.astype(np.int64),
        columns=np.add.reduceat(truth, starts[:-1], axis=0),
        group_of=group_of,
        groups=np.stack([truth[:, group_of == g].sum(1) for g in range(group_of.max() + 1)], axis=1),
        soft_of=np.array(labels, np.int32).reshape(kinds, cells),
        soft=np.concatenate(soft, axis=1) if kinds else np.zeros((children, 0)),
        pull=pull,
        soft_starts=np.array(edges, np.int64),
        low=np.maximum(truth - slack, 0) if bounded else np.zeros((0, 0)),
        high=truth + rng.poisson(2, truth.shape) if bounded else np.zeros((0, 0)),
    )


def solved(families: Families, *, tolerance: float = 1e-3, most_sweeps: int = 20_000) -> Result:
    """What the sweeps make of them."""
    parents = len(families.starts) - 1
    result = Result(np.zeros_like(families.targets), np.zeros(parents, np.int64), np.zeros(parents))
    settle(families, result, 0, parents, tolerance, most_sweeps)
    return result


def objective(families: Families, parent: int, x: Floats) -> float:
    """What the solvers minimise, for the children of one parent."""
    start, end = families.starts[parent], families.starts[parent + 1]
    weight = 1 / np.outer(families.ease[start:end], families.cell_ease)
    total = float((weight * (x - families.targets[start:end]) ** 2).sum())
    for kind in range(len(families.soft_of)):
        for i in range(families.soft_starts[kind], families.soft_starts[kind + 1]):
            sums = x[:, families.soft_of[kind] == i].sum(axis=1)
            pull = families.pull[start:end, i] / families.ease[start:end]
            total += float((pull * (sums - families.soft[start:end, i]) ** 2).sum())
    return total
