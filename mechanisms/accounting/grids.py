"""Laws of privacy loss placed on one common ladder of losses, so that their sums can be taken by convolution.

On a lattice nothing is lost: every law's spacing is a whole multiple of the common one. On a grid of width h = 2^-bits
a law is replaced by one that dominates it (`spread`) and by one that it dominates (`merged`), so that the figures
computed from them enclose the true one. Offsets are left out: they add exactly, outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mechanisms.accounting.losses import UNIT_ROUNDOFF, Floats, Integers, Loss, TooManyPoints, collected

FURTHEST = 2.0**52
"""Steps beyond this are not exact as floats."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Steps of the ladder with the logarithms of their masses, and the relative error of the masses."""

    steps: Integers
    logs: Floats
    error: float


def _placed(steps: Floats, logs: Floats, *, run: float, largest: float = 0.0) -> Placed:
    """Sums of up to `run` masses, each right to 8 roundoffs times its logarithm, its loss (below `largest`) and ten."""
    kept = ~np.isneginf(logs)
    steps, logs = steps[kept], logs[kept]
    if np.abs(steps).max() > FURTHEST:
        raise TooManyPoints("the losses of this release have no ladder that is both common and bearable")
    error = UNIT_ROUNDOFF * (8 * (float(np.abs(logs).max()) + largest + 10) + run)
    return Placed(steps.astype(np.int64), logs, error)


def on_lattice(loss: Loss, multiple: int, *, log_negligible: float) -> Placed:
    """The law itself; `multiple` is how many rungs of the ladder its own spacing takes."""
    steps, logs = (np.concatenate(parts) for parts in zip(*loss.blocks(log_negligible), strict=True))
    return _placed(steps * multiple, logs, run=1)


def _on_grid(loss: Loss, bits: int, log_negligible: float) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Blocks of rungs, how far beyond its rung (in rungs) each loss lies once rounded up, and the log masses."""
    for steps, logs in loss.blocks(log_negligible):
        losses = float(loss.spacing) * steps
        height = np.ldexp(losses + 4 * UNIT_ROUNDOFF * np.abs(losses), bits)  # exact: the grid is a power of two
        rungs = np.floor(height)
        yield rungs, height - rungs, logs


def spread(loss: Loss, bits: int, *, log_negligible: float) -> Placed:
    """A law on the grid that dominates this one.

    A loss between two rungs is divided between them so that E exp(-loss) stays. Merging the two parts again gives
    the loss back, so the divided pair can do all that the true pair can (the hockey-stick curve becomes its chord).
    The share of the upper rung is rounded up: more mass on a larger loss never lowers a delta.
    """
    width = 2.0**-bits

    def divided() -> Iterator[tuple[Floats, Floats]]:
        for rungs, beyond, logs in _on_grid(loss, bits, log_negligible):
            share = np.expm1(-beyond * width) / np.expm1(-width)
            share = np.minimum(1.0, share * (1 + 8 * UNIT_ROUNDOFF))
            with np.errstate(divide="ignore"):
                yield collected(rungs, logs + np.log1p(-share))
                yield collected(rungs + 1, logs + np.log(share))

    return _gathered(divided, width, run=width / float(loss.spacing))


def merged(loss: Loss, bits: int, *, log_negligible: float) -> tuple[Placed, Placed]:
    """Two measures on the grid that this law dominates: P, and Q times exp(h * step), of all outputs of one rung.

    Telling only the rung of an output is a post-processing, so no delta computed from these is above the true one.
    """
    width = 2.0**-bits

    def under_p() -> Iterator[tuple[Floats, Floats]]:
        for rungs, _, logs in _on_grid(loss, bits, log_negligible):
            yield collected(rungs, logs)

    def under_q() -> Iterator[tuple[Floats, Floats]]:
        for rungs, beyond, logs in _on_grid(loss, bits, log_negligible):
            yield collected(rungs, logs - beyond * width)

    run = width / float(loss.spacing)
    return _gathered(under_p, width, run=run), _gathered(under_q, width, run=run)


def _gathered(blocks: Callable[[], Iterator[tuple[Floats, Floats]]], width: float, *, run: float) -> Placed:
    """All blocks as one law; rungs that several blocks share are added up."""
    rungs, logs = (np.concatenate(parts) for parts in zip(*blocks(), strict=True))
    order = np.argsort(rungs, kind="stable")
    return _placed(*collected(rungs[order], logs[order]), run=run + 8, largest=width * float(np.abs(rungs).max()))
