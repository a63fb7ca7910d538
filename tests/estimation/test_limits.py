"""Bounds of groups: what they imply for other groups, pushed up the tree and handed on to earlier histograms."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimation.errors import Infeasible
from estimation.histogram import Link
from estimation.limits import Limited, handed_on, pushed_up
from estimation.passes import Pass
from estimation.settling import Family, Limits, Seen, bounds_of, implied
from estimation.tree import Level, Tree

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int32]
Bound = tuple[list[float], list[float]]
INFINITE = np.inf
TREE = Tree("whole", ((Level("region", np.array([0, 0]), 1), Level("town", np.array([0, 0, 1]), 2)),))
quick = settings(deadline=None, max_examples=60)


def labels(*found: int) -> Labels:
    """Labels of cells."""
    return np.array(found, np.int32)


def implies(limits: Labels, low: list[float], high: list[float], of_cell: Labels) -> Bound:
    """What bounds of one area say about other groups."""
    given_bounds = Limits(limits, np.array([low], float), np.array([high], float))
    least, most = implied(given_bounds, of_cell, int(of_cell.max()) + 1)
    return least[0].tolist(), most[0].tolist()


def test_bounds_of_groups_that_fill_another_add_up() -> None:
    assert implies(labels(0, 1, 2, 2), [1, 2, 3], [4, 5, 6], labels(0, 0, 1, 1)) == ([3, 3], [9, 6])


def test_a_group_that_is_filled_in_part_has_a_least_number_only() -> None:
    assert implies(labels(0, -1, 1, 1), [1, 2], [4, 5], labels(0, 0, 1, 1)) == ([1, 2], [INFINITE, 5])


def test_a_bound_over_several_groups_says_nothing_about_one() -> None:
    assert implies(labels(0, 0, 1), [1, 2], [4, 5], labels(0, 1, 1)) == ([-INFINITE, 2], [INFINITE, INFINITE])


def test_bounds_of_no_cell_of_a_group_leave_it_free() -> None:
    assert implies(labels(0, -1), [1], [4], labels(0, 1)) == ([1, -INFINITE], [4, INFINITE])


@given(
    limits=st.lists(st.integers(-1, 2), min_size=4, max_size=4),
    of_cell=st.lists(st.integers(0, 2), min_size=4, max_size=4),
    bounds=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=3, max_size=3),
)
@quick
def test_no_table_within_the_bounds_is_outside_what_they_imply(
    limits: list[int], of_cell: list[int], bounds: list[tuple[int, int]]
) -> None:
    """Every table of four small numbers that keeps the bounds keeps the implied ones."""
    low, high = [min(one) for one in bounds], [max(one) for one in bounds]
    given_bounds = Limits(labels(*limits), np.array([low], float), np.array([high], float))
    least, most = implied(given_bounds, labels(*of_cell), 3)
    tables = np.array(list(product(range(4), repeat=4)))
    limited = np.stack([tables[:, np.array(limits) == one].sum(axis=1) for one in range(3)], axis=1)
    held = [one in limits for one in range(3)]
    kept = ((limited >= low) & (limited <= high))[:, held].all(axis=1)
    groups = np.stack([tables[kept][:, np.array(of_cell) == one].sum(axis=1) for one in range(3)], axis=1)
    assert (groups >= least).all()
    assert (groups <= most).all()


def test_where_numbers_may_be_negative_a_part_of_a_group_says_nothing_about_it() -> None:
    total = Pass(1, labels(0, 0), labels(), 0, ())
    exact = Limits(labels(0, -1), np.array([[5.0]]), np.array([[5.0]]))
    family = Family(
        "whole", np.array([0, 1]), np.zeros((0, 0)), Seen([], [], []), [exact], np.zeros(1, np.uint64), signed=True
    )
    low, high = bounds_of(total, family, 1)
    assert (low.item(), high.item()) == (-INFINITE, INFINITE)


def limited(reason: str = "a rule", histogram: int = 0, of_cell: Labels | None = None, **bounds: Bound) -> Limited:
    """Bounds of one group (a number for each area) at some levels."""
    made = {
        level: (np.array(low, float).reshape(len(low), -1), np.array(high, float).reshape(len(high), -1))
        for level, (low, high) in bounds.items()
    }
    return Limited(reason, histogram, labels(0) if of_cell is None else of_cell, made)


def bounds_at(found: Limited, level: str) -> Bound:
    """The bounds of one group at a level."""
    return found.bounds[level][0].ravel().tolist(), found.bounds[level][1].ravel().tolist()


def test_bounds_of_areas_are_pushed_up_to_the_whole() -> None:
    found = pushed_up(limited(town=([1, 2, 3], [4, 5, INFINITE])), TREE)
    assert bounds_at(found, "town") == ([1, 2, 3], [4, 5, INFINITE])
    assert bounds_at(found, "region") == ([3, 3], [9, INFINITE])
    assert bounds_at(found, "whole") == ([6], [INFINITE])


def test_a_bound_of_an_area_stays_where_it_is_tighter_than_those_of_its_parts() -> None:
    found = pushed_up(limited(town=([1, 2, 3], [4, 5, 9]), region=([5, 0], [7, 8]), whole=([0], [14])), TREE)
    assert bounds_at(found, "region") == ([5, 3], [7, 8])
    assert bounds_at(found, "whole") == ([8], [14])


def test_levels_below_the_bounds_stay_free() -> None:
    found = pushed_up(limited(region=([1, 2], [4, 5])), TREE)
    assert set(found.bounds) == {"region", "whole"}
    assert found.at("town", 0, 3) is None


def test_two_branches_both_bind_the_whole() -> None:
    tree = Tree("whole", ((Level("town", np.array([0, 0]), 1),), (Level("school", np.array([0, 0]), 1),)))
    found = pushed_up(limited(town=([1, 2], [4, 5]), school=([3, 4], [6, 7])), tree)
    assert bounds_at(found, "whole") == ([7], [9])


def test_what_is_settled_above_leaves_room_below() -> None:
    """For random bounds: any number that the whole may have can be divided among the towns."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        low = rng.integers(0, 5, 3).astype(float)
        high = low + rng.integers(0, 5, 3)
        found = pushed_up(limited(town=(low.tolist(), high.tolist()), region=([0, 0], [11, 11])), TREE)
        least, most = (one.ravel() for one in found.bounds["region"])
        assert (least == [low[0] + low[1], low[2]]).all()
        assert (most == np.minimum([high[0] + high[1], high[2]], 11)).all()


def test_bounds_that_contradict_each_other_say_where() -> None:
    with pytest.raises(Infeasible, match=r"a rule: at level 'region', area number 2 .* at least 3 and at most 2\."):
        pushed_up(limited(town=([1, 2, 3], [4, 5, 6]), region=([0, 0], [9, 2])), TREE)


def test_a_contradiction_in_one_group_does_not_quote_another() -> None:
    tree = Tree("whole", ((Level("town", np.array([0]), 1),),))
    both = labels(0, 1)
    low, high = np.array([[100.0, 5.0]]), np.array([[200.0, 9.0]])
    above = np.zeros((1, 2)), np.array([[150.0, 3.0]])
    with pytest.raises(Infeasible, match="at least 5 and at most 3"):
        pushed_up(Limited("a rule", 0, both, {"town": (low, high), "whole": above}), tree)


def test_some_areas_of_a_level_are_read_as_they_stand() -> None:
    found = limited(town=([1, 2, 3], [4, 5, 6])).at("town", 1, 3)
    assert found is not None
    assert (found.low.ravel().tolist(), found.high.ravel().tolist()) == ([2, 3], [5, 6])


def histograms(*links: Link | None) -> list[SimpleNamespace]:
    """As much of histograms as handing on looks at."""
    return [SimpleNamespace(link=link) for link in links]


FIRST = Link(later=1, earlier=0, groups=2, here=labels(0, 0, 1), there=labels(0, 1, 1, 0))
SECOND = Link(later=2, earlier=1, groups=1, here=labels(0, 0), there=labels(0, 0, -1))


def test_an_earlier_histogram_keeps_what_a_later_one_needs() -> None:
    bounds = np.array([[1.0, 2, 3]]), np.array([[4.0, 5, 6]])
    own = Limited("a rule", 1, labels(0, 1, 2), {"town": bounds})
    first, second = handed_on([own], histograms(None, FIRST))
    assert first is own
    assert (second.histogram, second.of_cell.tolist()) == (0, [0, 1, 1, 0])
    assert [one.tolist() for one in second.bounds["town"]] == [[[3, 3]], [[9, 6]]]


def test_what_is_handed_on_is_handed_on_further() -> None:
    own = limited(histogram=2, of_cell=labels(0, 0), town=([7], [8]))
    found = handed_on([own], histograms(None, FIRST, SECOND))
    assert [one.histogram for one in found] == [2, 1, 0]
    assert [one.tolist() for one in found[1].bounds["town"]] == [[[7]], [[8]]]
    assert found[1].of_cell.tolist() == [0, 0, -1]
    least, most = found[2].bounds["town"]
    assert (least[0, 0], most[0, 0]) == (7, 8)
    assert (least[0, 1], most[0, 1]) == (-INFINITE, INFINITE)


def test_bounds_that_say_nothing_to_an_earlier_histogram_are_not_handed_on() -> None:
    crossing = limited(histogram=1, of_cell=labels(0, -1, 0), town=([1], [4]))
    assert handed_on([crossing], histograms(None, FIRST)) == [crossing]
    elsewhere = limited(histogram=1, of_cell=labels(0, 1, 2), town=([1], [4]))
    assert handed_on([elsewhere], histograms(None, None)) == [elsewhere]
