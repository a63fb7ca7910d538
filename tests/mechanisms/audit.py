"""How much of epsilon shows from outside: a lower bound, from draws of a mechanism on two neighbouring inputs.

If a mechanism is (epsilon, delta)-DP, then P <= e^epsilon Q + delta for every event, of probability P on one input and
Q on its neighbour; so epsilon is at least log((P - delta) / Q). The draws come in three independent parts:

* the first orders the outputs by how much likelier each is on one input than on the other;
* the second chooses an event: the outputs up to a place in that order, the outputs below or above a value, or one value;
* the third and largest counts how often the chosen event occurs, and the counts bound P from below and Q from above.

`epsilon_at_least` is above the truth with probability at most FALSE_ALARM, so a result above a claim refutes the claim.
A result below it proves nothing: rare faults stay unseen. At epsilon 1 noise that is missing in one of a thousand draws
adds 0.0014 to the truth, and no affordable number of draws shows that; it shows at a small epsilon, where the exact
value stands out of wide noise. What is rarer still is left to `test_enumeration`, which follows every string of random
bits, and to `test_discrete_noise`, which counts that every cell is drawn for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, chi2

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]
Draws = Callable[[int], Integers]
"""So many independent outputs of a mechanism on one input, each as one integer; a new call draws anew."""

FALSE_ALARM = 2e-9
"""How often an audit may exceed the truth: all audits of a run together, fewer than 300, less than once in 10^6 runs."""
FOR_THE_CHOICE = 100_000
"""The most draws that each of the first two parts takes; with few draws each takes a tenth."""
BLOCK = 1 << 20
SPLITS = 200


@dataclass(frozen=True)
class Event:
    """Some cells of a partition of the integers. A cell runs from its edge to the next; the outermost ones are open."""

    edges: Integers
    cells: NDArray[np.bool_]
    likelier_on_second: bool

    def hits(self, outputs: Integers) -> int:
        """How many of the outputs lie in the event."""
        return int(np.count_nonzero(self.cells[_places(self.edges, outputs)]))


def epsilon_at_least(
    first: Draws, second: Draws, *, draws: int, delta: float = 0.0, false_alarm: float = FALSE_ALARM
) -> float:
    """A lower bound on the epsilon at `delta` between two neighbouring inputs, from `draws` outputs on each."""
    few = min(draws // 10, FOR_THE_CHOICE)
    rest = draws - 2 * few
    order, choice = ((first(few), second(few)) for _ in range(2))
    event = choose_event(order, choice, of=rest, delta=delta)
    likelier, other = (second, first) if event.likelier_on_second else (first, second)
    hits, others = (sum(event.hits(draw(size)) for size in _blocks(rest)) for draw in (likelier, other))
    return lower_bound(hits, others, of=rest, delta=delta, false_alarm=false_alarm)


def _blocks(draws: int) -> Iterator[int]:
    """Sizes that add up to `draws` and fit into memory."""
    yield from (min(BLOCK, draws - start) for start in range(0, draws, BLOCK))


def _places(edges: Integers, outputs: Integers) -> Integers:
    """The cell of each output."""
    return np.maximum(np.searchsorted(edges, outputs, side="right") - 1, 0)


def choose_event(
    order: tuple[Integers, Integers], choice: tuple[Integers, Integers], *, of: int, delta: float = 0.0
) -> Event:
    """The event that promises the largest bound from `of` more draws on each input."""
    edges = np.unique(np.concatenate([*order, *choice]))
    ordering, choosing = (
        tuple(np.bincount(_places(edges, outputs), minlength=len(edges)) for outputs in part)
        for part in (order, choice)
    )
    by_ratio = np.argsort(np.log(ordering[1] + 1) - np.log(ordering[0] + 1), kind="stable")
    upwards = np.arange(len(edges))
    best, found = -np.inf, Event(edges, np.ones(len(edges), np.bool_), likelier_on_second=False)
    for swapped in (False, True):
        more, less = choosing[::-1] if swapped else choosing
        ratios = by_ratio[::-1] if swapped else by_ratio
        for members, gather in ((upwards, np.cumsum), (upwards[::-1], np.cumsum), (ratios, np.cumsum), (upwards, None)):
            counts = [each[members] if gather is None else gather(each[members]) for each in (more, less)]
            promises = _promise(*counts, of=of, seen=len(choice[0]), delta=delta)
            place = int(promises.argmax())
            if promises[place] > best:
                cells = np.zeros(len(edges), np.bool_)
                cells[members[place] if gather is None else members[: place + 1]] = True
                best, found = promises[place], Event(edges, cells, likelier_on_second=swapped)
    return found


def _promise(hits: Any, others: Any, *, of: int, seen: int, delta: float) -> Reals:
    """About the bound that an event will give; one standard error is taken off for the luck of being chosen."""
    p = (hits - np.sqrt(hits)) / seen
    q = np.minimum((others + np.sqrt(others) + 1) / seen, 1)
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
