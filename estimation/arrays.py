"""The arrays this room works with."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]
"""For each of many things the number of the group it belongs to; negative where it belongs to none."""
Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[Any]
