"""The order of passes: chains of partitions, what a pass sees of a margin, and sums by label."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimation.passes import Meeting, Sight, chain_of, folded, joint, meeting, passes_of, refines

Labels = npt.NDArray[np.int32]
CELLS = 6
partitions = st.lists(st.integers(0, 3), min_size=CELLS, max_size=CELLS).map(lambda found: np.array(found, np.int32))
labels = st.lists(st.integers(-1, 3), min_size=CELLS, max_size=CELLS).map(lambda found: np.array(found, np.int32))
quick = settings(deadline=None)


def partition(text: str) -> Labels:
    """Cells as characters: the same digit is the same group, a dot is none."""
    return np.array([-1 if one == "." else int(one) for one in text], np.int32)


def written(found: Labels) -> str:
    """The inverse of `partition`."""
    return "".join("." if one < 0 else str(one) for one in found)


def groups_of(found: Labels) -> set[frozenset[int]]:
    """A partition as the sets of its cells."""
    return {frozenset(np.flatnonzero(found == one).tolist()) for one in np.unique(found)}


@given(one=partitions, other=partitions)
@quick
def test_a_joint_partition_is_the_coarsest_that_refines_both(one: Labels, other: Labels) -> None:
    both = joint([one, other], CELLS)
    assert refines(both, one)
    assert refines(both, other)
    pairs = {frozenset(a & b) for a, b in product(groups_of(one), groups_of(other)) if a & b}
    assert groups_of(both) == pairs


def test_groups_are_numbered_as_they_first_appear_and_cells_without_one_are_a_group() -> None:
    assert written(joint([partition("2.1.22")], CELLS)) == "012100"
    assert written(joint([], CELLS)) == "000000"


@given(fine=partitions, coarse=partitions)
@quick
def test_a_partition_refines_another_if_no_group_is_cut(fine: Labels, coarse: Labels) -> None:
    assert refines(fine, coarse) == all(any(a <= b for b in groups_of(coarse)) for a in groups_of(fine))


def chain(must: tuple[str, ...] = (), may: tuple[str, ...] = ()) -> list[str]:
    """A chain over six cells."""
    found = chain_of(CELLS, must=[partition(one) for one in must], may=[partition(one) for one in may])
    return [written(one) for one in found]


TOTAL, ALL = "000000", "012345"


def test_without_anything_to_settle_on_the_way_a_chain_is_the_total_and_the_cells() -> None:
    assert chain() == [TOTAL, ALL]


def test_a_histogram_of_one_cell_has_one_pass() -> None:
    assert [one.tolist() for one in chain_of(1, must=[], may=[np.zeros(1, np.int32)])] == [[0]]


def test_what_must_be_settled_comes_coarse_before_fine_whatever_the_order() -> None:
    assert chain(must=("001123", "000011")) == [TOTAL, "000011", "001123", ALL]
    assert chain(must=("000011", "001123")) == [TOTAL, "000011", "001123", ALL]
    assert chain(must=("000011", "000011", TOTAL, ALL)) == [TOTAL, "000011", ALL]


def test_what_must_be_settled_may_not_cross() -> None:
    with pytest.raises(ValueError, match="cross"):
        chain(must=("000111", "001122"))


def test_what_may_be_settled_is_settled_where_it_fits_and_else_left_out() -> None:
    assert chain(must=("000111",), may=("001234", "010101")) == [TOTAL, "000111", "001234", ALL]
    assert chain(may=("000111", "001122")) == [TOTAL, "000111", ALL]
    assert chain(may=("001122", "000011", "000111")) in ([TOTAL, "000111", ALL], [TOTAL, "000011", "001122", ALL])


def test_cells_outside_a_margin_are_a_group_of_the_chain() -> None:
    assert chain(must=("00..11",)) == [TOTAL, "001122", ALL]


@given(may=st.lists(labels, max_size=4), must=st.lists(labels, max_size=1))
@quick
def test_every_link_of_a_chain_refines_the_one_before_and_is_finer(must: list[Labels], may: list[Labels]) -> None:
    found = chain_of(CELLS, must=must, may=may)
    counts = [len(np.unique(one)) for one in found]
    assert counts[0] == 1
    assert counts[-1] == CELLS
    assert all(a < b for a, b in pairwise(counts))
    assert all(refines(fine, coarse) for coarse, fine in pairwise(found))
    for one in must:
        assert any(groups_of(joint([one], CELLS)) == groups_of(link) for link in found)


def met(margin: str, groups: str) -> Meeting:
    """Where a margin's cells meet groups."""
    label, of_cell = partition(margin), partition(groups)
    return meeting(label, int(label.max()) + 1, of_cell, int(of_cell.max()) + 1)


def test_a_margin_meets_finer_groups_cell_by_cell() -> None:
    found = met("000111", "012345")
    assert (written(found.sum_of), written(found.fold), found.sums) == ("000111", "01", 2)


def test_a_finer_margin_meets_groups_group_by_group() -> None:
    found = met("012345", "000111")
    assert (written(found.sum_of), written(found.fold), found.sums) == ("01", "000111", 2)


def test_crossing_partitions_meet_where_unions_of_both_agree() -> None:
    found = met("001122", "011022")
    assert (written(found.sum_of), written(found.fold), found.sums) == ("001", "001", 2)
    assert met("001122", "010101").sums == 1


def test_groups_that_hold_a_cell_outside_the_margin_are_unseen() -> None:
    found = met("0.1122", "001122")
    assert (written(found.sum_of), written(found.fold), found.sums) == (".01", ".01", 2)
    assert met("0.....", "000111").sums == 0


def test_a_margin_cell_that_no_cell_counts_in_is_left_out() -> None:
    found = meeting(partition("002200"), 4, partition("012345"), CELLS)
    assert (written(found.fold), found.sums) == ("0.1.", 2)


@given(label=labels, of_cell=partitions)
@quick
def test_sums_that_meet_are_the_same_from_both_sides(label: Labels, of_cell: Labels) -> None:
    """Whatever the numbers: groups folded to sums equal the margin folded to sums; and no finer sums do."""
    of_cell = joint([of_cell], CELLS)
    groups, cells = int(of_cell.max()) + 1, int(label.max(initial=0)) + 1
    found = meeting(label, cells, of_cell, groups)
    numbers = np.eye(CELLS)
    by_group = folded(folded(numbers, of_cell, groups), found.sum_of, found.sums)
    by_margin = folded(folded(numbers, label, cells), found.fold, found.sums)
    assert (by_group == by_margin).all()
    known = [folded(numbers, of_cell, groups).T, folded(numbers, label, cells).T]
    ranks = [np.linalg.matrix_rank(one) if one.size else 0 for one in (*known, np.concatenate(known))]
    assert found.sums == ranks[0] + ranks[1] - ranks[2]  # as many as both sides can tell


@given(found=labels, seed=st.integers(0, 999), count=st.integers(4, 6))
@quick
def test_folding_adds_up_columns_by_their_labels(found: Labels, seed: int, count: int) -> None:
    numbers = np.random.default_rng(seed).integers(-9, 9, (3, CELLS)).astype(float)
    expected = np.zeros((3, count))
    for place, label in enumerate(found):
        if label >= 0:
            expected[:, label] += numbers[:, place]
    assert (folded(numbers, found, count) == expected).all()


def test_folding_nothing_gives_zeros() -> None:
    assert folded(np.ones((2, 3)), np.full(3, -1, np.int32), 2).tolist() == [[0, 0], [0, 0]]
    assert folded(np.ones((2, 0)), np.zeros(0, np.int32), 2).tolist() == [[0, 0], [0, 0]]
    assert folded(np.ones((0, 3)), np.zeros(3, np.int32), 1).shape == (0, 1)


def sight(name: str, text: str) -> Sight:
    """A margin seen in full."""
    found = partition(text)
    return Sight.in_full(name, found, int(found.max()) + 1)


def test_each_pass_lies_within_the_one_before() -> None:
    one, two, three = passes_of(chain_of(CELLS, must=[partition("000111")], may=[]), [sight("all", ALL)])
    assert (one.groups, one.earlier, len(one.within)) == (1, 0, 0)
    assert (two.groups, two.earlier, written(two.within)) == (2, 1, "00")
    assert (three.groups, three.earlier, written(three.within)) == (CELLS, 2, "000111")


def test_a_pass_sees_of_a_margin_what_it_can_tell_and_its_noise() -> None:
    first, second = passes_of(chain_of(CELLS, must=[], may=[]), [sight("halves", "000111"), sight("all", ALL)])
    assert [(aim.margin, aim.is_own, aim.sizes.tolist()) for aim in first.aims] == [(0, True, [2.0]), (1, True, [6.0])]
    assert [(aim.margin, aim.is_own, aim.sums) for aim in second.aims] == [(0, False, 2), (1, True, 6)]


def test_what_an_earlier_pass_settled_is_not_aimed_at_again() -> None:
    passes = passes_of(
        chain_of(CELLS, must=[], may=[partition("000111")]), [sight("halves", "000111"), sight("all", ALL)]
    )
    assert [[aim.margin for aim in one.aims] for one in passes] == [[0, 1], [0, 1], [1]]


def test_a_total_that_nothing_was_measured_of_is_not_settled_first() -> None:
    passes = passes_of(chain_of(CELLS, must=[], may=[partition("0011..")]), [sight("some", "0011..")])
    assert [one.groups for one in passes] == [3, CELLS]
    assert written(passes[0].aims[0].sum_of) == "01."
    assert not passes[0].aims[0].is_own
