"""Random families of areas to settle, and what an independent solver makes of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import osqp
from scipy import sparse

from estimation.kernels.sweep import Families, Result, settle

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
NONE = np.zeros((0, 0))
PRECISE = 1e-9


def random_families(
    rng: np.random.Generator, *, parents: int = 1, kinds: int = 2, skew: float = 1.0, bounded: bool = False
) -> Families:
    """Families with a truth behind them, so that everything asked of them can be had.

    Each kind of soft sums leaves out some cells, some were not measured in some children, and the wider the skew the
    more unequal the weights.
    """
    starts = np.concatenate([[0], np.cumsum(rng.integers(1, 8, parents))])
    children, cells = int(starts[-1]), int(rng.integers(4, 25))
    truth = rng.poisson(rng.gamma(0.5, 6, (1, cells)), (children, cells)).astype(float)
    group_of = dense_labels(rng.integers(0, max(1, cells // 5), cells))
    labels, edges = random_labels(rng, kinds, cells)
    soft = np.concatenate([np.zeros((children, 0)), *(_summed(truth, label) for label in labels)], axis=1)
    pull = np.exp(rng.normal(0, skew, soft.shape)) * (rng.random(soft.shape) < 0.9)
    return Families(
        targets=truth + rng.normal(0, 4, truth.shape),
        ease=np.exp(rng.normal(0, 0.5 * skew, children)),
        cell_ease=np.exp(rng.normal(0, 0.3 * skew, cells)),
        starts=starts.astype(np.int64),
        columns=np.add.reduceat(truth, starts[:-1], axis=0),
        group_of=group_of,
        groups=_summed(truth, group_of),
        soft_of=np.array([np.where(a >= 0, a + b, -1) for a, b in zip(labels, edges, strict=False)], np.int32).reshape(
            kinds, cells
        ),
        soft=soft + rng.normal(0, 3, soft.shape),
        pull=pull,
        soft_starts=edges,
        low=np.maximum(truth - rng.poisson(1, truth.shape), 0) if bounded else NONE,
        high=truth + rng.poisson(2, truth.shape) if bounded else NONE,
    )


def dense_labels(labels: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Labels without gaps; negative ones stay."""
    found = np.unique(labels[labels >= 0])
    return np.where(labels >= 0, np.searchsorted(found, labels), -1).astype(np.int32)


def random_labels(
    rng: np.random.Generator, kinds: int, cells: int
) -> tuple[list[npt.NDArray[np.int32]], npt.NDArray[np.int64]]:
    """For each kind of sum the sum of each cell; and where the sums of each kind begin among all."""
    labels = [dense_labels(rng.integers(-1, 4, cells)) for _ in range(kinds)]
    return labels, np.cumsum([0, *(int(label.max()) + 1 for label in labels)]).astype(np.int64)


def _summed(numbers: Floats, labels: npt.NDArray[np.int32]) -> Floats:
    return np.stack([numbers[:, labels == i].sum(axis=1) for i in range(labels.max() + 1)], axis=1).reshape(
        len(numbers), -1
    )


def signed(families: Families) -> Families:
    """The same without bounds: numbers may be negative."""
    low = np.full_like(families.targets, -np.inf)
    return families._replace(low=low, high=-low)


def the_whole(families: Families) -> Families:
    """Every child a family of its own, without a parent and with nothing settled."""
    children = len(families.targets)
    return families._replace(columns=NONE, groups=np.zeros((children, 0)), starts=np.arange(children + 1))


def solved(families: Families, *, tolerance: float = 1e-3, most_sweeps: int = 20_000) -> Result:
    """What the sweeps make of them."""
    parents = len(families.starts) - 1
    result = Result(np.zeros_like(families.targets), np.zeros(parents, np.int64), np.zeros(parents))
    settle(families, result, 0, parents, tolerance, most_sweeps)
    return result


@dataclass(frozen=True)
class Written:
    """A family written out: numbers x (child, cell) with a weight each, and sums of them."""

    weights: Floats
    targets: Floats
    hard: Floats
    wanted: Floats
    soft: Floats
    aims: Floats
    pulls: Floats
    low: Floats
    high: Floats

    def objective(self, numbers: Floats) -> float:
        """What the solvers minimise."""
        x = numbers.ravel()
        own = (self.weights * (x - self.targets) ** 2).sum()
        return float(own + (self.pulls * (self.soft @ x - self.aims) ** 2).sum())

    def off(self, numbers: Floats) -> float:
        """How far any sum is off that must hold, or any number outside its bounds."""
        x = numbers.ravel()
        outside = np.maximum(self.low - x, x - self.high).max(initial=0)
        return float(max(np.abs(self.hard @ x - self.wanted).max(initial=0), outside))


def written(families: Families, parent: int = 0) -> Written:
    """One family in full matrices."""
    start, end = families.starts[parent], families.starts[parent + 1]
    children, cells = int(end - start), families.targets.shape[1]
    each = np.eye(children)
    groups = [np.kron(each, families.group_of == group) for group in range(families.groups.shape[1])]
    soft = [np.kron(each, (families.soft_of == one).any(axis=0)) for one in range(families.soft.shape[1])]
    columns = (
        np.kron(np.ones((1, children)), np.eye(cells)) if len(families.columns) else np.zeros((0, children * cells))
    )
    given = families.columns[parent] if len(families.columns) else np.zeros(0)
    bounded, room = len(families.low) > 0, np.zeros((0, children * cells))
    return Written(
        weights=1 / np.outer(families.ease[start:end], families.cell_ease).ravel(),
        targets=families.targets[start:end].ravel(),
        hard=np.concatenate([room, *groups, columns]),
        wanted=np.concatenate([families.groups[start:end].T.ravel(), given]),
        soft=np.concatenate([room, *soft]),
        aims=families.soft[start:end].T.ravel(),
        pulls=(families.pull[start:end] / families.ease[start:end, None]).T.ravel(),
        low=families.low[start:end].ravel() if bounded else np.zeros(children * cells),
        high=families.high[start:end].ravel() if bounded else np.full(children * cells, np.inf),
    )


def by_osqp(problem: Written) -> Floats:
    """What OSQP makes of a family: another method, by other people."""
    curvature = np.diag(problem.weights) + (problem.soft.T * problem.pulls) @ problem.soft
    linear = -(problem.weights * problem.targets + problem.soft.T @ (problem.pulls * problem.aims))
    rows = np.concatenate([problem.hard, np.eye(len(problem.targets))])
    solver = osqp.OSQP()
    solver.setup(
        sparse.csc_matrix(np.triu(curvature)),
        linear,
        sparse.csc_matrix(rows),
        np.concatenate([problem.wanted, problem.low]),
        np.concatenate([problem.wanted, problem.high]),
        verbose=False, eps_abs=PRECISE, eps_rel=PRECISE, max_iter=200_000, polishing=True,
    )  # fmt: skip
    found = solver.solve(raise_error=False)
    if found.info.status != "solved":
        raise ArithmeticError(f"OSQP says: {found.info.status}")
    return np.asarray(found.x)
