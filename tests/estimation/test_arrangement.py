"""How tables become histograms: join trees where columns allow it, merged ones where they are small, and no product."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release_specs.histograms import Arrangement, Nodes, arrange
from release_specs.meanings import Node
from tests.estimation.made_up import Normal
from tests.estimation.promises import broken, shared_places
from tests.estimation.releases import NAMES, Release, example, small

TWO_DOZEN = "abcdefghijklmnopqrstuvwx"


def tables(*words: str) -> list[Nodes]:
    return [frozenset(("persons", letter) for letter in word) for word in words]


def sizes(of: Iterable[Nodes], size: int = 3) -> dict[Node, int]:
    return {node: size for nodes in of for node in nodes}


def arranged(*words: str, size: int = 3, first: Iterable[str] = (), most: int = 100_000) -> Arrangement:
    found = tables(*words)
    return arrange(found, sizes(found, size), first=tables(*first), most=most)


def letters(nodes: Iterable[Node]) -> str:
    return "".join(sorted(name for _, name in nodes))


def is_join_tree(found: Arrangement) -> bool:
    """Running intersection: what a histogram shares with all before it, it shares with the one it hangs on."""
    for number, one in enumerate(found.histograms):
        if number == 0:
            if one.after is not None or one.shared:
                return False
            continue
        before = frozenset[Node]().union(*(other.nodes for other in found.histograms[:number]))
        above = found.histograms[one.after if one.after is not None else number]
        if one.after is None or one.after >= number or one.shared != one.nodes & above.nodes:
            return False
        if one.nodes & before != one.shared:
            return False
    return True


@pytest.mark.parametrize(
    "words",
    [
        ("ab",),
        ("ab", "bc", "cd"),
        ("ab", "ac", "ad", "ae"),
        ("abc", "bcd", "cde", "ce"),
        ("ab", "cd"),
        ("a", "ab", "abc"),
        ("abc", "abd", "ace", "bcf"),
        ("",),
        ("", "a", "b"),
    ],
)
def test_tables_without_a_cycle_form_a_join_tree_of_themselves(words: tuple[str, ...]) -> None:
    found = arranged(*words)
    assert found.crossing == ()
    assert is_join_tree(found)
    assert sorted(letters(one.nodes) for one in found.histograms) == sorted(words)


def test_no_tables_at_all_are_one_cell() -> None:
    found = arrange([], {})
    assert [one.nodes for one in found.histograms] == [frozenset()]


def test_a_triangle_is_merged_where_that_is_small() -> None:
    found = arranged("ab", "bc", "ca")
    assert found.crossing == ()
    assert is_join_tree(found)
    assert "abc" in [letters(one.nodes) for one in found.histograms]


def test_a_triangle_that_is_too_large_is_left_as_it_is_and_named() -> None:
    found = arranged("ab", "bc", "ca", size=10, most=999)
    assert found.crossing
    assert sorted(letters(one.nodes) for one in found.histograms) == ["ab", "ac", "bc"]
    assert arranged("ab", "bc", "ca", size=10, most=1000).crossing == ()


def test_only_the_columns_that_cross_are_named() -> None:
    found = arranged("ab", "bc", "ca", "cd", "de", size=10, most=999)
    assert set(letters(found.crossing)) <= set("abc")


def test_a_square_is_merged_into_what_is_smallest() -> None:
    found = arranged("ab", "bc", "cd", "da", most=27)
    assert found.crossing == ()
    assert is_join_tree(found)
    assert max(len(one.nodes) for one in found.histograms) == 3


def test_tables_that_must_be_kept_are_settled_first() -> None:
    for wanted in ("ab", "bc", "cd", "de"):
        found = arranged("ab", "bc", "cd", "de", first=[wanted])
        assert letters(found.histograms[0].nodes) == wanted
        assert is_join_tree(found)


@settings(max_examples=150, derandomize=True, deadline=None, database=None)
@given(
    st.lists(st.frozensets(st.sampled_from("abcdefg"), min_size=1, max_size=4), min_size=1, max_size=7, unique=True),
    st.sampled_from([10, 100, 100_000]),
)
def test_every_table_has_a_histogram_and_what_does_not_cross_is_connected(
    drawn: list[frozenset[str]], most: int
) -> None:
    words = ["".join(sorted(word)) for word in drawn]
    found = arranged(*words, most=most)
    for word in words:
        assert any(set(word) <= set(letters(one.nodes)) for one in found.histograms)
    assert set(letters(found.crossing)) <= set("".join(words))
    assert is_join_tree(found) or found.crossing
    for number, one in enumerate(found.histograms):
        assert letters(one.nodes) in words or 3 ** len(one.nodes) <= most
        if number:
            before = frozenset[Node]().union(*(other.nodes for other in found.histograms[:number]))
            assert (one.nodes & before) - set(found.crossing) <= one.shared


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_are_join_trees(name: str) -> None:
    for planned in example(name).problem.populations:
        assert planned.arrangement.crossing == ()
        assert not planned.arrangement.histograms or is_join_tree(planned.arrangement)


def test_two_dozen_columns_in_all_pairs_never_become_one_histogram() -> None:
    pairs = ["".join(pair) for pair in combinations(TWO_DOZEN, 2)]
    start = time.monotonic()
    found = arranged(*pairs, size=4)
    assert time.monotonic() - start < 20
    assert found.crossing
    assert max(4 ** len(one.nodes) for one in found.histograms) <= 100_000


def web(columns: str, folder: Path, *, codes: int = 3) -> str:
    """A spec with every table of two of these columns."""
    lines = [
        "margrave: 1",
        "release: {name: web, title: All pairs}",
        "microdata:",
        "  persons:",
        "    key: id",
        "    columns:",
    ]
    rule = "outside: {count_as: 1}, missing: {count_as: 1}"
    lines += [f"      col_{one}: {{codes: {list(range(1, codes + 1))}, {rule}}}" for one in columns]
    lines += ["privacy: {protect: persons, neighbours: add-remove, budget: {rho: 1, delta: 1e-10}}", "tables:"]
    lines += [f"  {a}{b}: {{count: persons, by: [col_{a}, col_{b}]}}" for a, b in combinations(columns, 2)]
    return "\n".join([*lines, "spend: {by_table: {rest: optimal}}", "publish: {confidence: 90%}", ""])


def crosses_and_is_estimated(release: Release) -> None:
    """Estimates agree everywhere, whole numbers wherever no crossing column is shared; all tables have one total."""
    (planned,) = release.problem.populations
    found = release.estimate(release.truth(1, rows=400), Normal(4.0), 2)
    assert broken(found) == []
    assert any(one.nodes and one.nodes <= set(planned.arrangement.crossing) for one in shared_places(found))
    assert len({int(found.value(tally, None).sum()) for tally in release.measured}) == 1


def test_a_release_of_pairs_that_cross_is_estimated_and_names_what_crosses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("estimation.arranging.arrange", partial(arrange, most=30))
    release = small(web("abcdef", tmp_path), tmp_path)
    (planned,) = release.problem.populations
    assert planned.arrangement.crossing
    assert max(one.cells for one in planned.histograms) <= 30
    crosses_and_is_estimated(release)


@pytest.mark.slow
def test_a_release_of_all_pairs_of_a_dozen_columns_is_estimated_and_names_what_crosses(tmp_path: Path) -> None:
    release = small(web(TWO_DOZEN[:12], tmp_path), tmp_path)
    (planned,) = release.problem.populations
    assert len(planned.arrangement.crossing) > 6
    crosses_and_is_estimated(release)


def test_a_web_of_few_columns_agrees_in_every_number(tmp_path: Path) -> None:
    release = small(web("abcd", tmp_path), tmp_path)
    (planned,) = release.problem.populations
    assert planned.arrangement.crossing == ()
    for seed in range(5):
        truth = release.truth(seed, rows=100)
        assert broken(release.estimate(truth, Normal(9.0), seed)) == []
        exact = release.estimate(truth, Normal(9.0), None)
        for tally in release.measured:
            assert np.allclose(exact.estimate(tally, None), truth[tally.name, None])
