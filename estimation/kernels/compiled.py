"""The one decorator of every kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numba

P = ParamSpec("P")
T = TypeVar("T")


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """The function, compiled when it is first called; kept on disk where that is possible, free of the interpreter lock."""
    try:
        return _compile(function, cache=True)
    except RuntimeError:  # numba found no folder that it may write to
        return _compile(function, cache=False)


def _compile(function: Callable[P, T], **options: bool) -> Callable[P, T]:
    decorate: Callable[[Callable[P, T]], Any] = numba.njit(nogil=True, error_model="numpy", **options)
    made: Callable[P, T] = decorate(function)
    return made
