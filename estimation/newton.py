"""The fallback for families that sweeps do not solve: Newton's method on the same dual problem, for all sums at once.

The dual function is convex and piecewise quadratic, so its gradient is piecewise linear: each step solves the linear
equations of the current piece by a sparse factorisation, and is shortened until the function falls. It shares no code
with the sweeps.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csc_array, diags_array
from scipy.sparse.linalg import splu

from estimation.arrays import Floats, Numbers
from estimation.kernels.families import Families

NEAR = 1e-4
"""Where sums are off by less and steps do not help, heights differ by less than they can be told apart: it is there."""
MOST_STEPS = 3_000
SHORTEST = 2.0**-30
LIGHTEST, FIRST, HEAVIEST = 1e-10, 1e-3, 1e3
"""What is added to the equations so that steps stay short where nothing moves: more after one had to be shortened."""


def settle_one(families: Families, parent: int) -> tuple[Floats, float]:
    """The numbers (child, cell) of one family, and how far any sum is off, or any multiplier of a soft sum."""
    start, end = (int(at - families.starts[0]) for at in families.starts[parent : parent + 2])
    children, cells = end - start, families.targets.shape[1]
    bounded = len(families.low) > 0
    low = families.low[start:end].ravel() if bounded else np.zeros(children * cells)
    high = families.high[start:end].ravel() if bounded else np.full(children * cells, np.inf)
    target = families.targets[start:end].ravel()
    ease = np.outer(families.ease[start:end], families.cell_ease).ravel()
    matrix, wanted, slack = _equations(families, parent, (start, end))
    multipliers, weight = np.zeros(len(wanted)), FIRST

    def numbers(at: Floats) -> Floats:
        found: Floats = np.clip(target + ease * (matrix.T @ at), low, high)
        return found

    def height(at: Floats) -> float:
        x = numbers(at)
        step = x - target
        inner = (matrix.T @ at) @ x - (step * step / (2 * ease)).sum()
        return float(inner - wanted @ at + (slack * at * at).sum() / 2)

    for _ in range(MOST_STEPS):
        x = numbers(multipliers)
        gradient = matrix @ x - wanted + slack * multipliers
        wrong = np.abs(gradient).max(initial=0)
        if wrong < 1e-9 * max(1.0, np.abs(wanted).max(initial=0)):
            break
        moving = ((x > low) & (x < high)) * ease
        curvature = csc_array(
            matrix @ diags_array(moving) @ matrix.T + diags_array(slack + LIGHTEST + weight * min(1.0, wrong))
        )
        direction = -splu(curvature).solve(gradient)
        length, before, slope = 1.0, height(multipliers), float(gradient @ direction)
        while length > SHORTEST and height(multipliers + length * direction) > before + 1e-4 * length * slope:
            length /= 2
        if wrong < NEAR and length < 0.1:
            break
        multipliers = multipliers + length * direction
        weight = min(weight * 10, HEAVIEST) if length < 0.1 else max(weight / 10, LIGHTEST)
    x = numbers(multipliers)
    off = np.abs(matrix @ x - wanted + slack * multipliers).max(initial=0)
    return x.reshape(children, cells), float(off)


def _equations(families: Families, parent: int, span: tuple[int, int]) -> tuple[csc_array, Floats, Floats]:
    """Every sum as a row: its cells, what it should be, and how much its multiplier gives way (0: it must hold)."""
    start, end = span
    cells = families.targets.shape[1]
    own = np.arange(cells)
    rows: list[Numbers] = []
    columns: list[Numbers] = []
    wanted: list[Floats] = []
    slack: list[Floats] = []
    height = 0
    for child in range(end - start):
        weight = 1 / families.ease[start + child]
        sums = [(families.group_of, families.groups[start + child], np.zeros(families.groups.shape[1]))]
        for kind in range(len(families.soft_of)):
            first, last = families.soft_starts[kind : kind + 2]
            pull = families.pull[start + child, first:last] * weight
            give = np.where(pull > 0, 1 / np.where(pull > 0, pull, 1), np.inf)
            sums.append((families.soft_of[kind] - first, families.soft[start + child, first:last], give))
        for label, target, give in sums:
            inside = own[(label >= 0) & (label < len(target))] if len(target) else own[:0]
            inside = inside[np.isfinite(give[label[inside]])]
            rows.append(height + label[inside])
            columns.append(child * cells + inside)
            wanted.append(target)
            slack.append(np.where(np.isfinite(give), give, 1.0))
            height += len(target)
    if len(families.columns):
        for child in range(end - start):
            rows.append(height + own)
            columns.append(child * cells + own)
        wanted.append(families.columns[parent])
        slack.append(np.zeros(cells))
        height += cells
    entries = (np.concatenate(rows), np.concatenate(columns))
    matrix = coo_array((np.ones(len(entries[0])), entries), shape=(height, (end - start) * cells))
    return csc_array(matrix), np.concatenate(wanted), np.concatenate(slack)
