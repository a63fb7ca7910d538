"""How much of epsilon shows from outside: a lower bound, from draws of a mechanism on two neighbouring inputs.

If a mechanism is (epsilon, delta)-DP, then P <= e^epsilon Q + delta for every event, of probability P on one input and
Q on its neighbour; so epsilon is at least log((P - delta) / Q). The draws come in three independent parts:

* the first orders the outputs by how much likelier each is on one input than on the other;
* the second chooses an event: all outputs up to a place in that order, all below or above a value, or one value;
* the third and largest counts how often the chosen event occurs, and the counts bound P from below and Q from above.

`epsilon_at_least` is above the truth with probability at most FALSE_ALARM, so a result above a claim refutes the claim.
A result below it proves nothing: rare faults stay unseen. At epsilon 1 noise that is missing in one of a thousand draws
adds 0.0022 to the truth, which ten million draws do not show; a million show it at epsilon 1/1000, where the exact
value stands out of the wide noise. What is rarer still is left to `test_enumeration`, which follows every string of
random bits, and to `test_discrete_noise`, which counts that every cell is drawn for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, chi2

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]
Draws = Callable[[int], Integers]
"""So many independent outputs of a mechanism on one input, each as one integer; a new call draws anew."""

FALSE_ALARM = 2e-9
"""How often an audit may exceed the truth: less than once in a million runs of all audits, which are fewer than 300."""
FOR_THE_CHOICE = 1_000_000
"""The most draws that each of the first two parts takes; else each takes a tenth."""
CAUTIONS = (1.0, 3.0)
"""Standard errors taken off what an event promises: little caution finds rare events, much is not misled by luck. Each
gets its choice and its part of the false alarms, and the larger bound counts."""
BLOCK = 1 << 20
SPLITS = 200


@dataclass(frozen=True)
class Event:
    """Some cells of a partition of the integers, and the input on which they are the likelier: 0 or 1."""

    cells: Integers
    likelier: int


def epsilon_at_least(
    first: Draws, second: Draws, *, draws: int, delta: float = 0.0, false_alarm: float = FALSE_ALARM
) -> float:
    """A lower bound on the epsilon at `delta` between two neighbouring inputs, from `draws` outputs on each."""
    few = min(draws // 10, FOR_THE_CHOICE)
    rest = draws - 2 * few
    outputs = [[draw(few) for draw in (first, second)] for _ in range(2)]
    edges = np.unique(np.concatenate([*outputs[0], *outputs[1]]))
    ordering, choosing = (np.stack([count_cells(edges, each) for each in part]) for part in outputs)
    blocks = [min(BLOCK, rest - start) for start in range(0, rest, BLOCK)]
    bounding = np.stack([sum(count_cells(edges, draw(size)) for size in blocks) for draw in (first, second)])

    def bound(caution: float) -> float:
        event = choose_event(ordering, choosing, caution=caution, of=rest, delta=delta)
        hits = bounding[:, event.cells].sum(axis=1).tolist()
        share = false_alarm / len(CAUTIONS)
        return lower_bound(hits[event.likelier], hits[1 - event.likelier], of=rest, delta=delta, false_alarm=share)

    return max(bound(caution) for caution in CAUTIONS)


def count_cells(edges: Integers, outputs: Integers) -> Integers:
    """How many outputs lie in each cell: from its edge to before the next, the first open below, the last above."""
    places = np.maximum(np.searchsorted(edges, outputs, side="right") - 1, 0)
    return np.bincount(places, minlength=len(edges))


def choose_event(
    ordering: Integers, choosing: Integers, *, of: int, delta: float = 0.0, caution: float = CAUTIONS[-1]
) -> Event:
    """The event that promises the largest bound from `of` more draws on each input.

    Both arguments hold the outputs in each cell, in a row for each input. Events grow cell by cell from the left, from
    the right or from the largest ratio of likelihoods downwards, or they are one cell.
    """
    upwards, best, chosen = np.arange(choosing.shape[1]), -np.inf, Event(np.arange(0), 0)
    for side in (0, 1):
        by_ratio = np.argsort(np.log((ordering[1 - side] + 1) / (ordering[side] + 1)), kind="stable")
        orders = (upwards, upwards[::-1], by_ratio)
        families = [(order, np.cumsum(choosing[:, order], axis=1), np.zeros_like(order)) for order in orders]
        for order, counts, starts in [*families, (upwards, choosing, upwards)]:
            promises = _promise(counts[side], counts[1 - side], caution, seen=choosing[0].sum(), of=of, delta=delta)
            place = int(promises.argmax())
            if promises[place] > best:
                best, chosen = promises[place], Event(order[starts[place] : place + 1], side)
    return chosen


def _promise(hits: Integers, others: Integers, caution: float, *, seen: int, of: int, delta: float) -> Reals:
    """About the bound that an event will give: its counts, made worse by some standard errors (half one for a root)."""
    p = np.maximum(np.sqrt(hits) - caution / 2, 0) ** 2 / seen
    q = np.minimum((np.sqrt(others + 1) + caution / 2) ** 2 / seen, 1)
    low = p - 4.5 * np.sqrt(p * (1 - p) / of) - delta
    high = q + 4.5 * np.sqrt(q * (1 - q) / of)
    return np.log(np.maximum(low, 1e-300)) - np.log(high)


def lower_bound(hits: int, others: int, *, of: int, delta: float = 0.0, false_alarm: float = FALSE_ALARM) -> float:
    """log((P - delta) / Q) at its least over all P and Q that are plausible, or 0 if that is larger.

    With A the chance under P of so many hits or more and B the chance under Q of so few others or fewer, minus twice
    the logarithm of A B exceeds a chi-square of four degrees of freedom no more often than that law itself (Fisher's
    combination of two independent tests). Plausible are the P and Q for which it stays below its quantile. On that
    region's border P and Q are Clopper-Pearson bounds of opposite strictness; it is followed in small steps, each of
    which takes P from its stricter end and Q from its other, stricter end, so no step is left out.
    """
    whole = chi2.isf(false_alarm, 4) / 2
    steps = np.linspace(0, whole, SPLITS + 1)
    low = chance_at_least(hits, of, np.exp(-steps[1:]))
    high = chance_at_most(others, of, np.exp(steps[:-1] - whole))
    least = float(((low - delta) / high).min())
    return max(0.0, float(np.log(least))) if least > 0 else 0.0


def chance_at_least(hits: int, of: int, level: Reals) -> Reals:
    """Clopper-Pearson: the probability under which so many hits or more have just the chance `level`."""
    return np.zeros_like(level) if hits == 0 else beta.ppf(level, hits, of - hits + 1)


def chance_at_most(hits: int, of: int, level: Reals) -> Reals:
    """Clopper-Pearson: the probability under which so few hits or fewer have just the chance `level`."""
    return np.ones_like(level) if hits == of else beta.isf(level, hits + 1, of - hits)
