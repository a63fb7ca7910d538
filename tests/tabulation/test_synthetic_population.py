"""The generated population is plausible: skewed, uneven between areas, and true to what is public."""

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from release_specs.load import load_text
from tabulation.synthesize import SynthesisError, synthesize
from tests.tabulation.reading import Microdata
from tests.tabulation.town import TOWN, load_town

RECORDS = 20_000

SIMPLE = """
margrave: 1
release: {name: simple, title: Simple}
microdata:
  rows:
    defaults: {outside: leave_out, missing: leave_out}
    columns:
COLUMNS
privacy:
  protect: rows
  neighbours: add-remove
  budget: {epsilon: 1}
tables:
  rows: {count: rows}
"""


def frames(folder: Path, text: str = TOWN, *, records: int = RECORDS, public: bool = False) -> dict[str, pd.DataFrame]:
    """The generated files of a spec, in pandas' own types."""
    loaded = load_town(folder, text)
    files = synthesize(
        loaded.spec,
        loaded.domain,
        records=records,
        seed=11,
        out=folder / "out",
        folder=folder if public else None,
    )
    return {file.entity: pd.read_parquet(file.path) for file in files}


def simple(folder: Path, *columns: str, records: int = RECORDS, more: str = "") -> pd.DataFrame:
    """Rows of one entity with these columns."""
    listed = "\n".join(f"      {column}" for column in columns)
    return frames(folder, SIMPLE.replace("COLUMNS", listed) + more, records=records)["rows"]


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pd.DataFrame]:
    return frames(tmp_path_factory.mktemp("town"))


def unlike_uniform(counts: Counter[str], values: int) -> float:
    """The largest count over the mean count: 1 where all are equal."""
    return max(counts.values()) / (sum(counts.values()) / values)


def test_codes_are_not_equally_common(tmp_path: Path) -> None:
    found = simple(tmp_path, f"code: {{codes: [{', '.join(f'c{n}' for n in range(20))}]}}")
    counts = Counter(found["code"])
    assert len(counts) == 20
    assert unlike_uniform(counts, 20) > 3
    uniform = Counter(np.random.default_rng(1).integers(0, 20, RECORDS).tolist())
    assert unlike_uniform(uniform, 20) < 1.2, "and the test would notice equally common codes"


def test_there_are_about_as_many_women_as_men(town: dict[str, pd.DataFrame]) -> None:
    assert 0.47 < (town["people"]["sex"] == "2").mean() < 0.53


def test_neighbourhoods_differ(town: dict[str, pd.DataFrame]) -> None:
    people = town["people"]
    shares = pd.crosstab(people["zone"], people["born"], normalize="index")["here"]
    size = people["zone"].value_counts()
    expected = (shares.mean() * (1 - shares.mean()) / size).mean() ** 0.5
    assert shares.std() > 2 * expected
    shuffled = people["born"].sample(frac=1, random_state=1).to_numpy()
    mixed = pd.crosstab(people["zone"], shuffled, normalize="index")["here"]
    assert mixed.std() < 2 * expected, "and the test would notice if all were alike"


def test_areas_are_very_unequal_and_some_are_empty(town: dict[str, pd.DataFrame]) -> None:
    sizes = town["dwellings"]["zone"].value_counts().reindex([f"{n:03d}" for n in range(1, 41)], fill_value=0)
    assert sizes.max() > 3 * sizes.median()
    assert 4 <= (sizes == 0).sum() <= 7
    assert sizes["007"] == 0, "`only` leaves it out"


def test_public_sizes_decide_where_people_live(tmp_path: Path) -> None:
    text = TOWN + "expect: {areas: {file: zones.csv, people: people}}\n"
    sizes = frames(tmp_path, text, public=True)["people"]["zone"].value_counts()
    assert 0.8 < sizes["040"] / sizes["020"] / 4 < 1.25
    assert sizes["040"] > 20 * sizes.get("005", 0)


def test_public_sizes_of_larger_areas_are_shared_out(tmp_path: Path) -> None:
    (tmp_path / "sizes.csv").write_text("quarter,homes\nQ0,0\nQ1,100\nQ2,0\nQ3,300\nQ4,0\n")
    text = TOWN + "expect: {areas: {file: sizes.csv, homes: homes}}\n"
    zones = frames(tmp_path, text, public=True)["dwellings"]["zone"].astype(int)
    quarters = (zones % 5).value_counts()
    assert set(quarters.index) == {1, 3}
    assert 2.7 < quarters[3] / quarters[1] < 3.3


def test_ages_make_a_pyramid(town: dict[str, pd.DataFrame]) -> None:
    ages = town["people"]["age"]
    bands = [ages.between(low, low + 9).mean() for low in range(0, 100, 10)]
    assert bands[0] > 0.05
    assert min(bands[2:6]) > 0.7 * max(bands[2:6]), "about level up to sixty"
    assert bands[5] > bands[6] > bands[7] > bands[8] > bands[9] > 0, "and then ever fewer"
    assert sum(bands[8:]) < 0.1


def test_those_who_live_alone_or_head_a_group_are_adults(town: dict[str, pd.DataFrame]) -> None:
    people = town["people"]
    assert people[people["line"] == 1]["age"].min() >= 18
    assert people[people["line"] > 1]["age"].min() == 0


def test_money_has_zeros_losses_a_body_inside_the_clip_and_a_tail_beyond_it(tmp_path: Path) -> None:
    money = simple(tmp_path, "pay: {number: -10000..9000000, clip: 0..120000, step: 100}")["pay"]
    assert 0.03 < (money == 0).mean() < 0.15
    assert 0.002 < (money < 0).mean() < 0.03
    assert 0.005 < (money > 120_000).mean() < 0.1
    assert money.max() > 500_000
    assert 10_000 < money.median() < 60_000
    assert money.mean() > money.median()


def test_amounts_that_are_all_negative_stay_about_the_clip(tmp_path: Path) -> None:
    debts = simple(tmp_path, "debt: {number: -1000000..-50, clip: -2000..-50, step: 1}")["debt"]
    assert debts.max() <= -50
    assert debts.between(-2000, -50).mean() > 0.9
    assert debts.nunique() > 500


def test_a_range_too_wide_to_draw_from_is_named(tmp_path: Path) -> None:
    with pytest.raises(SynthesisError, match=r"microdata.rows.columns.wide: the valid range is too wide"):
        simple(tmp_path, f"wide: {{integer: 0..1{'0' * 30}}}")


def test_small_numbers_have_one_hump(tmp_path: Path) -> None:
    shares = simple(tmp_path, "cars: {integer: 0..9}")["cars"].value_counts(normalize=True).sort_index()
    top = int(shares.idxmax())
    assert 0 < top < 5
    assert shares.loc[:top].is_monotonic_increasing
    assert shares.loc[top:].is_monotonic_decreasing


@pytest.mark.parametrize("column", ["big: {integer: 0..1000000}", "fine: {number: 0..10, step: 0.001}"])
def test_wide_ranges_are_skewed_and_stay_inside(tmp_path: Path, column: str) -> None:
    values = simple(tmp_path, column).iloc[:, 0]
    assert values.nunique() > 1000
    assert values.mean() > values.median()
    assert values.min() >= 0


def test_a_range_that_the_step_does_not_divide_keeps_to_valid_multiples(tmp_path: Path) -> None:
    values = simple(tmp_path, "pay: {number: -59..251, step: 100}", records=500)["pay"]
    assert set(values) == {0, 100, 200}


def test_values_that_mean_no_value_are_not_drawn(tmp_path: Path) -> None:
    found = simple(
        tmp_path,
        "sort: {codes: [a, b, c], read_as: {b: a}, not_applicable: x}",
        "size: {integer: 0..9, not_applicable: [77, 88]}",
        records=3000,
    )
    assert set(found["sort"]) == {"a", "c", "x"}
    assert set(found["size"]) == {*range(10), 77}
    assert (found["size"] == 77).mean() < 0.05, "only those without a value"


def test_a_rare_range_can_be_demanded(tmp_path: Path) -> None:
    only = "    only: {pay: 8000000..8000100}\n    columns:"
    text = SIMPLE.replace("    columns:", only).replace(
        "COLUMNS", "      pay: {number: 0..9000000, clip: 0..100, step: 50}"
    )
    assert set(frames(tmp_path, text, records=200)["rows"]["pay"]) <= {8_000_000, 8_000_050, 8_000_100}


def test_sizes_follow_what_is_expected_of_them(tmp_path: Path) -> None:
    people = frames(tmp_path, TOWN + "expect: {sizes: {1: 1/4, 4: 3/4}}\n")["people"]
    sizes = people[people["place"] != "inmate"].groupby("dwelling_id").size().value_counts(normalize=True)
    assert abs(sizes[4] - 0.75) < 0.02
    assert sizes[1] + sizes[4] > 0.999


def test_heads_equal_households_where_a_rule_says_so(tmp_path: Path) -> None:
    text = TOWN.replace("keep_first: {place: head, age: 18..}", "keep_first: {place: head}")
    found = frames(tmp_path, text + "rules: [heads(place=head) = homes_by_size]\n", records=3000)
    assert (found["people"]["place"] == "head").sum() == (found["dwellings"]["kind"] != "I").sum()
    assert (found["dwellings"]["kind"] == "I").sum() == (found["people"]["place"] == "inmate").sum()


@pytest.mark.parametrize(
    ("release", "privacy", "year"),
    [
        ("edition: 2025", "", "2025"),
        ("notes: none", "  account: {name: town, editions: {2026: 1/2, 2025: 1/2}}\n", "2026"),
        ("notes: none", "  account: {name: town, every: year, renew: year, unspent: lost}\n", "2025"),
    ],
)
def test_rows_are_of_the_edition_or_else_the_first_there_is(
    tmp_path: Path, release: str, privacy: str, year: str
) -> None:
    text = TOWN.replace("edition: 2026", release).replace("tables:\n", f"{privacy}tables:\n")
    found = frames(tmp_path, text, records=300)
    assert set(found["people"]["year"]) == set(found["dwellings"]["year"]) == {year}


def test_two_kinds_of_rows_may_lie_in_one_group(tmp_path: Path) -> None:
    cars = """
  cars:
    key: car_id
    in: {dwellings: dwelling_id}
    defaults: {outside: leave_out, missing: leave_out}
    columns:
      place: {codes: [drive, street]}
      rooms_there: {codes: [few, many], applies_to: {rooms: 1..3}}
geography:"""
    text = TOWN.replace("geography:", cars.strip("\n"), 1).replace("{people: 5,", "{people: 5, cars: 2,")
    found = frames(tmp_path, text, records=2000)
    assert len(found["cars"]) == len(found["people"]) == 2000
    inmates = found["people"][found["people"]["place"] == "inmate"]["dwelling_id"]
    assert set(found["cars"]["dwelling_id"]) <= set(found["dwellings"]["dwelling_id"]) - set(inmates)
    rooms = found["cars"].merge(found["dwellings"], on="dwelling_id")["rooms"]
    assert (rooms.between(1, 3) == found["cars"]["rooms_there"].notna()).all()


def test_a_second_spine_lies_across_the_first(tmp_path: Path) -> None:
    columns = "      zone: {area: zones}\n      parish: {area: parishes}"
    parishes = "  parishes: {levels: [church, parish], areas: {A: {}, B: {}, C: {}}}"
    zones = "geography:\n  zones: {levels: [town, quarter, zone], areas: zones.csv}"
    text = SIMPLE.replace("COLUMNS", f"{columns}\n{zones}\n{parishes}")
    found = frames(tmp_path, text.replace("{count: rows}", "{count: rows, at: all}"))["rows"]
    crossed = pd.crosstab(found["zone"], found["parish"])
    assert crossed.shape[1] == 3
    assert (crossed > 0).sum(axis=1).max() > 1


@pytest.mark.parametrize("records", [1, 2, 7])
def test_a_handful_of_records_is_enough(tmp_path: Path, records: int) -> None:
    found = frames(tmp_path, records=records)
    assert len(found["people"]) == records


def test_derived_attributes_keep_off_what_is_impossible(tmp_path: Path) -> None:
    loaded = load_town(tmp_path)
    synthesize(loaded.spec, loaded.domain, records=3000, seed=2, out=tmp_path / "with")
    plain = load_town(tmp_path, TOWN.replace("  - {size: Two, lodgers: yes}\n", ""))
    synthesize(plain.spec, plain.domain, records=3000, seed=2, out=tmp_path / "without")
    condition = next(part for part in loaded.spec.impossible if "lodgers" in part.columns())
    assert not any(Microdata(loaded, tmp_path / "with").meets("dwellings", condition))
    assert any(Microdata(plain, tmp_path / "without").meets("dwellings", condition)), "and it would be noticed"


def test_conditions_that_contradict_each_other_are_named(tmp_path: Path) -> None:
    text = TOWN.replace("custody: closed}", "custody: closed, present: no}")
    with pytest.raises(SynthesisError, match=r"no row of 'people' can meet .*people.only and privacy.singles; mend"):
        frames(tmp_path, text, records=100)


def test_an_impossibility_that_leaves_nothing_is_named(tmp_path: Path) -> None:
    text = TOWN.replace("impossible:\n", "impossible:\n  - {place: head, sex: [1, 2]}\n")
    with pytest.raises(SynthesisError, match=r"impossible\[0\]: no rows of 'people' were found that obey it"):
        frames(tmp_path, text, records=100)


def test_columns_that_wait_for_each_other_are_named(tmp_path: Path) -> None:
    """A group's column that waits for its rows, and rows that take it over from their group."""
    text = """
margrave: 1
release: {name: circle, title: A circle}
microdata:
  homes:
    key: home_id
    defaults: {outside: leave_out, missing: leave_out}
    columns: {kind: {codes: [x, y], applies_to: {busy: yes}}}
  people:
    key: person_id
    in: {homes: home_id}
    defaults: {outside: leave_out, missing: leave_out}
    columns: {kind: {codes: [x, y]}}
derive: {homes: {busy: {any: people, where: {kind: x}}}}
privacy: {protect: homes, at_most: {people: 3}, neighbours: add-remove, budget: {epsilon: 1}}
tables: {kinds: {count: homes, by: [kind]}}
"""
    with pytest.raises(SynthesisError, match=r"homes.kind and people.kind depend on each other"):
        frames(tmp_path, text, records=100)


def test_conditions_that_leave_no_area_are_named(tmp_path: Path) -> None:
    codes = ", ".join(f"{n:03d}" for n in range(1, 41))
    text = TOWN.replace("zone: {not: 007}", f"zone: {{not: [{codes}]}}")
    with pytest.raises(SynthesisError, match=r"geography.zones: .* no area to live in"):
        frames(tmp_path, text, records=100)


def test_an_area_of_the_release_may_be_asked_for(tmp_path: Path) -> None:
    found = frames(tmp_path, TOWN.replace("zone: {not: 007}", "zone: [003, 007]"), records=500)
    assert set(found["people"]["zone"]) == {"003", "007"}


@pytest.mark.parametrize(
    ("only", "records", "column", "values"),
    [("{side: both, kind: [H, I]}", 1000, "kind", {"H", "I"}), ("{built: 1900-01-01}", 60, "built", {"1900-01-01"})],
)
def test_what_is_asked_of_rows_through_their_group_is_asked_of_the_group(
    tmp_path: Path, only: str, records: int, column: str, values: set[str]
) -> None:
    text = TOWN.replace("[{year: edition, present: yes}, {year: edition, present: away}]", only)
    found = frames(tmp_path, text.replace("  singles: {place: inmate, custody: closed}\n", ""), records=records)
    assert {str(value) for value in found["dwellings"][column]} == values


def test_a_rare_column_that_is_asked_for_applies(tmp_path: Path) -> None:
    columns = "      age: {integer: 0..110}\n      medal: {codes: [gold, silver], applies_to: {age: 110}}"
    text = SIMPLE.replace("    columns:\nCOLUMNS", f"    only: {{medal: gold}}\n    columns:\n{columns}")
    found = frames(tmp_path, text, records=100)["rows"]
    assert (set(found["age"]), set(found["medal"])) == ({110}, {"gold"})


def test_rows_are_numbered_within_their_group_where_the_key_names_it(town: dict[str, pd.DataFrame]) -> None:
    people = town["people"]
    assert (people["line"] == people.groupby("dwelling_id").cumcount() + 1).all()


def test_steps_that_are_no_whole_number_are_exact(tmp_path: Path) -> None:
    values = simple(tmp_path, "size: {number: 0..3, step: 0.1}", records=2000)["size"]
    assert set(map(str, values)) <= {str(float(Fraction(n, 10))) for n in range(31)}


def test_a_spec_without_areas_or_keys_will_do(tmp_path: Path) -> None:
    text = SIMPLE.replace("COLUMNS", "      a: {codes: [x, y]}")
    loaded = load_text(text, file="simple.yaml", folder=tmp_path)
    (file,) = synthesize(loaded.spec, loaded.domain, records=50, seed=0, out=tmp_path / "deep" / "er")
    assert list(pd.read_parquet(file.path)) == ["a"]
