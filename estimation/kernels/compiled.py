"""The one decorator of every kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numba

P = ParamSpec("P")
T = TypeVar("T")


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """The function, compiled when first called, kept on disk where that is possible, free of the interpreter's lock."""
    try:
        made: Any = numba.njit(nogil=True, error_model="numpy", cache=True)(function)
    except RuntimeError:  # numba found no folder that it may write to
        made = numba.njit(nogil=True, error_model="numpy")(function)
    found: Callable[P, T] = made
    return found
