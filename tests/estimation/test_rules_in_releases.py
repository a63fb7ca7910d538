"""Rules and exact totals in small releases: kept code by code, and refused by name where they contradict each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from estimation.errors import Infeasible
from release_specs.diagnostics import SpecError
from tests.estimation.made_up import Normal, Truth
from tests.estimation.promises import broken, rule_sides
from tests.estimation.releases import Release, made, small
from tests.estimation.small_specs import AREAS, HOMES, HOUSES, REGISTER


def homes(folder: Path, register: str = REGISTER) -> tuple[Release, Truth]:
    """A release of homes and people that keep the rule: two people in every home."""
    release = small(HOMES, folder, areas=AREAS, register=register)
    houses, folk = release.tally("houses"), release.tally("folk")
    spots, truth = np.array(HOUSES), Truth()
    for level, starts in (("land", [0]), ("part", [0, 2, 3]), ("spot", range(6))):
        truth[houses.name, level] = np.add.reduceat(spots, starts, axis=0)
        truth[folk.name, level] = np.repeat(truth[houses.name, level], 2, axis=1)
    (exact,) = (one for one in release.tallies if one.table == "exact")
    return release, truth | {
        (exact.name, level): truth[houses.name, level].sum(axis=1)[:, None] for level in exact.levels
    }


def test_a_rule_holds_code_by_code_beside_exact_totals(tmp_path: Path) -> None:
    release, truth = homes(tmp_path)
    exact = release.estimate(truth, Normal(9.0), None)
    for tally, level in (
        (release.tally(name), level) for name in ("houses", "folk") for level in ("land", "part", "spot")
    ):
        assert np.array_equal(exact.value(tally, level), truth[tally.name, level])
    bound = 0
    for seed in range(8):
        found = release.estimate(truth, Normal(50.0), seed)
        assert broken(found, [*release.exact(truth), *release.problem.public]) == []
        for words, _, left, right in rule_sides(found):
            assert left.shape == (left.shape[0], 2), words
            bound += int((left == right).sum())
    assert bound > 8


@pytest.mark.parametrize("by", ["", "kind"])
@pytest.mark.parametrize("tables", [("folk", "women"), ("women", "folk")])
def test_a_rule_holds_whichever_table_of_its_rows_is_written_first(
    tables: tuple[str, str], by: str, tmp_path: Path
) -> None:
    """The table of a part may be settled before the one that the rule binds: it has to leave room for the rule."""
    written = {
        "folk": f"{{count: people, by: [{by}], at: all}}",
        "women": f"{{count: women, by: [{by or 'kind'}], at: all}}",
    }
    head, _, rest = HOMES.partition("tables:\n")
    lines = "".join(f"  {name}: {written[name]}\n" for name in tables)
    text = (
        f"{head}universes: {{women: {{of: people, where: {{sex: 2}}}}}}\ntables:\n  houses: {{count: homes, at: all}}\n"
    )
    tail = "spend:" + rest.partition("spend:")[2].partition("exact:")[0] + "rules:\n  - folk >= houses\n"
    release = small(f"{text}{lines}{tail}publish: {{confidence: 90%}}\n", tmp_path, areas=AREAS)
    spots, truth = np.array(HOUSES), Truth()
    for level, starts in (("land", [0]), ("part", [0, 2, 3]), ("spot", range(6))):
        each = np.add.reduceat(spots, starts, axis=0)
        truth[release.tally("houses").name, level] = each.sum(axis=1)[:, None]
        truth[release.tally("women").name, level] = each
        truth[release.tally("folk").name, level] = 2 * (each if by else each.sum(axis=1)[:, None])
    for seed in range(8):
        assert broken(release.estimate(truth, Normal(100.0), seed)) == []


def test_exact_totals_that_contradict_each_other_are_refused_by_name(tmp_path: Path) -> None:
    release, truth = homes(tmp_path)
    (exact,) = (one for one in release.tallies if one.table == "exact")
    truth[exact.name, "land"] = truth[exact.name, "land"] + 1
    with pytest.raises(Infeasible, match=r"the exact total of homes.*contradict"):
        release.estimate(truth, Normal(4.0), 1)


def test_exact_totals_that_break_a_rule_are_refused(tmp_path: Path) -> None:
    release, truth = homes(tmp_path, REGISTER.replace("a,12", "a,5"))
    with pytest.raises(Infeasible, match="level 'part': rules and exact totals leave no number for some cells"):
        release.estimate(truth, Normal(4.0), 1)


def test_a_rule_that_exact_totals_leave_no_room_beside_holds_with_equality(tmp_path: Path) -> None:
    release, truth = homes(tmp_path, REGISTER.replace("12", "6").replace("16", "8"))  # as many people as homes
    for seed in range(4):
        found = release.estimate(truth, Normal(20.0), seed)
        assert broken(found, [*release.exact(truth), *release.problem.public]) == []
        assert all(np.array_equal(left, right) for _, _, left, right in rule_sides(found))


def test_a_rule_between_parts_of_the_same_rows_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    tables = {"one": "count: persons, by: [a], at: all", "two": "count: adults, at: all"}
    with pytest.raises(SpecError, match="rule-same-rows"):
        made(tables, tmp_path, extra="rules:\n  - one(a=1) >= two")
