"""The example specs: all of them load without a warning, and each shows what its first lines say."""

import csv
import json
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import pytest

from release_specs.diagnostics import Severity
from release_specs.domain import Attribute
from release_specs.language.values import ShareWord
from release_specs.load import Loaded, load_spec
from release_specs.reading.resolve import queries_of

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "release_specs" / "examples"
SAMPLES = ROOT.parent / "shared" / "data"
NAMES = ("acs", "births", "detailed_race", "households", "redistricting_2020", "schools")

needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the sample data are not beside this checkout")


@cache
def example(name: str) -> Loaded:
    """One loaded example."""
    return load_spec(EXAMPLES / f"{name}.yaml")


def attribute(name: str, entity: str, word: str) -> Attribute:
    """What a word means in an example."""
    found = example(name).domain.attribute(entity, word)
    assert found is not None, word
    return found


def codes(name: str, entity: str, word: str) -> list[str]:
    """The codes of an attribute of an example, in published order."""
    return [category.code for category in attribute(name, entity, word).categories]


def areas(name: str, spine: str) -> dict[str, int]:
    """The number of areas at each level of an example's spine."""
    return {level: len(found) for level, found in example(name).domain.hierarchies[spine].areas.items()}


def cells(name: str, table: str) -> dict[str | None, int]:
    """The cells of one area of a table, level by level."""
    loaded = example(name)
    return {
        query.level: query.cells // query.areas
        for query in queries_of(loaded.spec, loaded.domain)
        if query.table == table
    }


def rows_of(file: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with file.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def dictionary(sample: str) -> dict[str, Any]:
    """The declared domains of a sample."""
    found: dict[str, Any] = json.loads((SAMPLES / sample / "dictionary.json").read_text(encoding="utf-8"))
    return found


def declared_codes(columns: list[dict[str, Any]]) -> Iterator[tuple[str, set[str]]]:
    """The coded columns of a dictionary with their codes."""
    return ((column["name"], set(column["codes"])) for column in columns if "codes" in column)


def shares_at(level: str) -> dict[str, Fraction | ShareWord]:
    """The tables' shares of one level of the redistricting example."""
    division = example("redistricting_2020").spec.spend.by_level
    assert division is not None
    return dict(division.named[level].tables.named)


def promises(name: str) -> Iterator[tuple[str, str, Fraction]]:
    """Every promise of an example: table, level and margin of error."""
    for table, facts in example(name).spec.tables.items():
        for level, promise in facts.precision.items():
            yield table, level, promise.moe.amount


def test_these_are_all_the_examples() -> None:
    assert sorted(path.stem for path in EXAMPLES.glob("*.yaml")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_loads_without_an_error_or_a_warning(name: str) -> None:
    assert [str(found) for found in example(name).diagnostics if found.severity is not Severity.NOTE] == []


@pytest.mark.parametrize("name", NAMES)
def test_an_example_begins_with_what_it_shows_and_fits_the_page(name: str) -> None:
    lines = (EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    assert all(line.startswith("#") for line in lines[:4])
    assert any("Shows:" in line for line in lines[:8])
    assert max(map(len, lines)) <= 130


@pytest.mark.parametrize("name", NAMES)
def test_every_table_and_attribute_of_an_example_has_words_for_the_reader(name: str) -> None:
    loaded = example(name)
    assert [table for table, facts in loaded.spec.tables.items() if not facts.title] == []
    used = {found for query in queries_of(loaded.spec, loaded.domain) for found in query.attributes}
    assert [found.name for found in used if found.label == found.name] == []


def test_the_readme_names_every_file_and_every_file_is_named_by_a_spec() -> None:
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    specs = "".join(path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*.yaml"))
    for path in EXAMPLES.iterdir():
        if path.suffix == ".csv":
            assert path.name in specs
        if path.suffix in (".csv", ".yaml"):
            assert path.name in readme or path.stem.startswith("labels_")


def test_a_redistricting_block_has_2016_cells_at_each_of_six_levels() -> None:
    sizes = [len(codes("redistricting_2020", "persons", word)) for word in ("hhgq", "votingage", "hispanic", "cenrace")]
    assert sizes == [8, 2, 2, 63]
    levels = ("us", "state", "county", "tract", "block_group", "block")
    assert cells("redistricting_2020", "detailed") == dict.fromkeys(levels, 2016)


def test_redistricting_areas_are_a_sample_with_codes_that_nest() -> None:
    assert areas("redistricting_2020", "blocks") == {
        "us": 1, "state": 2, "county": 7, "tract": 14, "block_group": 28, "block": 124,
    }  # fmt: skip
    for row in rows_of(EXAMPLES / "us_sample_blocks.csv"):
        widths = {"state": 2, "county": 5, "tract": 11, "block_group": 12, "block": 15}
        assert all(row[level] == row["block"][:width] for level, width in widths.items())


def test_redistricting_spends_the_exact_budget_of_the_census() -> None:
    budget = example("redistricting_2020").spec.privacy.budget
    assert budget.rho == Fraction(542, 339) ** 2 == Fraction(293764, 114921)
    assert budget.delta == Fraction(1, 10**10)


def test_redistricting_shares_are_those_of_the_certificate_and_add_to_one_at_every_level() -> None:
    division = example("redistricting_2020").spec.spend.by_level
    assert division is not None
    shares = {level: spend.share for level, spend in division.named.items()}
    parts = {"us": 104, "state": 1440, "county": 447, "tract": 687, "block_group": 1256, "block": 165}
    assert shares == {level: Fraction(part, 4099) for level, part in parts.items()}
    assert sum(shares.values()) == 1
    for level in parts:
        assert sum(share for share in shares_at(level).values() if isinstance(share, Fraction)) == 1
        assert list(shares_at(level)) == list(example("redistricting_2020").spec.tables)


def test_the_national_total_is_not_measured_and_the_largest_shares_are_the_published_ones() -> None:
    assert shares_at("us")["total"] is ShareWord.NONE
    assert shares_at("state")["total"] == Fraction(3773, 4097)
    assert shares_at("county")["total"] == Fraction(3126, 4097)
    assert shares_at("tract")["hispanic_by_race"] == Fraction(1933, 4102)
    assert shares_at("block_group")["detailed"] == Fraction(1288, 4099)
    assert shares_at("block")["detailed"] == Fraction(3945, 4097)


def test_the_63_races_are_the_combinations_of_six_in_official_order() -> None:
    labels = [row["label"] for row in rows_of(EXAMPLES / "race_63.csv")]
    single = [label.removesuffix(" alone") for label in labels[:6]]
    assert [comb(6, size) for size in range(1, 7)] == [6, 15, 20, 15, 6, 1]
    assert labels[6:] == ["; ".join(races) for size in range(2, 7) for races in combinations(single, size)]
    assert codes("redistricting_2020", "persons", "cenrace") == [f"{number:02d}" for number in range(1, 64)]


def test_nobody_is_left_out_of_the_exact_state_totals() -> None:
    loaded = example("redistricting_2020")
    columns = loaded.spec.microdata["persons"].columns.values()
    assert {rule.kind for column in columns for rule in (column.outside, column.missing) if rule} == {"count_as"}
    assert [(str(total.source), total.at) for total in loaded.spec.exact] == [("microdata", ("state",))]
    assert loaded.spec.privacy.neighbours == "replace"


def test_detailed_race_promises_margins_of_3_11_and_50() -> None:
    wanted = {
        ("detailed", "nation"): 3, ("detailed", "state"): 3, ("detailed", "county"): 11, ("detailed", "tract"): 11,
        **{("regional", level): 50 for level in ("nation", "state", "county", "tract")},
    }  # fmt: skip
    found = {(table, level): margin for table, level, margin in promises("detailed_race")}
    assert {key: found[key] for key in wanted} == wanted
    assert set(found.values()) == {3, 11, 50}


def test_the_margins_of_detailed_race_cost_what_the_census_paid_and_fit_the_budget() -> None:
    answers = attribute("detailed_race", "persons", "group").up_to
    z = Fraction("1.96")
    prices = {margin: answers * z**2 / (2 * margin**2) for _, _, margin in promises("detailed_race")}
    assert [round(float(prices[Fraction(margin)]), 6) for margin in (3, 11, 50)] == [1.9208, 0.142869, 0.006915]
    total = sum(prices[margin] for _, _, margin in promises("detailed_race"))
    budget = example("detailed_race").spec.privacy.budget.rho
    assert budget == Fraction("8.8953")
    assert total <= budget


def test_regional_groups_hold_every_detailed_group_once() -> None:
    regional = attribute("detailed_race", "persons", "regional_group")
    held = [str(code) for category in regional.coded for code in category.holds]
    assert sorted(held) == sorted(codes("detailed_race", "persons", "group"))
    assert regional.up_to == 9


def test_households_tables_have_the_cells_they_say() -> None:
    assert areas("households", "zones") == {"county": 1, "district": 2, "taz": 51, "maz": 184}
    assert cells("households", "population") == {"county": 1, "district": 1, "taz": 1, "maz": 1}
    assert cells("households", "sex_by_age") == {"county": 6, "district": 6, "taz": 6}
    assert cells("households", "relationship") == {"county": 18, "district": 18}
    assert cells("households", "household_size")["taz"] == 12


@needs_samples
def test_the_domains_of_households_contain_every_declared_code_of_the_sample() -> None:
    spec = example("households").spec
    for entity, columns in dictionary("households_mi")["tables"].items():
        if entity not in spec.microdata:
            continue
        for name, wanted in declared_codes(columns):
            if name in spec.microdata[entity].columns:
                not_applicable = set(spec.microdata[entity].columns[name].not_applicable or ())
                assert set(codes("households", entity, name)) | not_applicable == wanted | not_applicable, name


@needs_samples
def test_the_public_zones_of_households_are_those_of_the_sample() -> None:
    ours, theirs = rows_of(EXAMPLES / "zones.csv"), rows_of(SAMPLES / "households_mi" / "zones.csv")
    shared = ("maz", "taz", "district", "county", "tot_hhs", "hhs_pop", "grppop", "tot_pop")
    assert [[row[name] for name in shared] for row in ours] == [[row[name] for name in shared] for row in theirs]


@needs_samples
def test_the_public_totals_are_the_housing_units_and_persons_of_the_sample() -> None:
    zones = rows_of(EXAMPLES / "zones.csv")
    households = rows_of(SAMPLES / "households_mi" / "households.csv")
    persons = rows_of(SAMPLES / "households_mi" / "persons.csv")
    assert sum(int(row["tot_hhs"]) for row in zones) == sum(row["type"] == "1" for row in households)
    assert sum(int(row["tot_pop"]) for row in zones) == len(persons)


@needs_samples
def test_the_domains_of_acs_contain_every_declared_code_of_the_sample() -> None:
    columns = dictionary("acs_excerpts")["columns"]
    declared = example("acs").spec.microdata["persons"].columns
    for name, wanted in declared_codes(columns):
        if name == "PUMA":
            found = {area.code for area in example("acs").domain.hierarchies["places"].areas["puma"]}
        else:
            found = set(codes("acs", "persons", name)) | set(declared[name].not_applicable or ())
        assert found == wanted, name


@needs_samples
def test_acs_reads_all_columns_but_the_weights_the_density_and_the_open_list() -> None:
    wanted = {column["name"] for column in dictionary("acs_excerpts")["columns"]}
    assert wanted - set(example("acs").spec.microdata["persons"].columns) == {"PWGTP", "WGTP", "DENSITY", "INDP"}


def test_acs_is_an_account_of_its_own_without_approvals() -> None:
    privacy = example("acs").spec.privacy
    assert privacy.account is None
    assert (privacy.approvals.to_spend, privacy.approvals.to_publish) == (0, 0)
    assert privacy.budget.epsilon is not None
    assert privacy.budget.delta is not None


def test_births_protect_mothers_with_a_pure_budget_that_starts_afresh_each_year() -> None:
    spec = example("births").spec
    assert (spec.privacy.protect, spec.microdata["mothers"].built_from) == ("mothers", "births")
    assert spec.privacy.caps == {"births": 3}
    assert spec.privacy.budget.epsilon == 24
    assert spec.privacy.budget.delta is None
    account = spec.privacy.account
    assert account is not None
    assert (account.every, account.renew, account.unspent) == ("month", "year", "lost")
    assert areas("births", "cantons") == {"country": 1, "region": 7, "canton": 26}


@pytest.mark.parametrize(("name", "language"), [("births", "de"), ("births", "fr"), ("households", "es")])
def test_a_translation_holds_every_title_label_and_code_that_is_printed(name: str, language: str) -> None:
    loaded = example(name)
    rows = rows_of(EXAMPLES / loaded.spec.publish.languages[language])
    translated = {(row["name"], row["code"]) for row in rows if row["label"]}
    attributes = {found for query in queries_of(loaded.spec, loaded.domain) for found in query.attributes}
    wanted = {(word, "") for word in ("release", *loaded.spec.tables, *(found.name for found in attributes))}
    wanted |= {(found.name, category.code) for found in attributes for category in found.categories}
    assert wanted <= translated
    assert len(translated) == len(rows)


def test_schools_are_protected_whole_and_paid_in_three_terms() -> None:
    spec = example("schools").spec
    assert (spec.privacy.protect, spec.privacy.caps) == ("schools", {"pupils": 60})
    account, schedule = spec.privacy.account, spec.schedule
    assert account is not None
    assert schedule is not None
    assert schedule.day is not None
    assert (account.every, len(schedule.day.months), schedule.timezone) == ("term", 3, "America/Santiago")
    assert attribute("schools", "pupils", "type").owner == "schools"
    assert areas("schools", "communes") == {"north": 1, "region": 5, "commune": 44}
