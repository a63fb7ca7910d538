"""How far any sum that must hold is off in numbers that a solver returned, whichever solver it was."""

from __future__ import annotations

import numpy as np

from estimation.arrays import Floats
from estimation.kernels.compiled import compiled
from estimation.kernels.families import Families


@compiled
def left_off(families: Families, numbers: Floats) -> Floats:
    """For each parent the largest amount that a group of a child, or a column of the parent, is off."""
    parents, cells = len(families.starts) - 1, numbers.shape[1]
    found = np.zeros(parents)
    for parent in range(parents):
        columns = np.zeros(cells)
        for child in range(
            families.starts[parent] - families.starts[0], families.starts[parent + 1] - families.starts[0]
        ):
            sums = np.zeros(families.groups.shape[1])
            for k in range(cells):
                columns[k] += numbers[child, k]
                if len(sums) > 0 and families.group_of[k] >= 0:
                    sums[families.group_of[k]] += numbers[child, k]
            for group in range(len(sums)):
                found[parent] = max(found[parent], abs(sums[group] - families.groups[child, group]))
        if len(families.columns) > 0:
            for k in range(cells):
                found[parent] = max(found[parent], abs(columns[k] - families.columns[parent, k]))
    return found
