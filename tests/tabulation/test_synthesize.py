"""Generated microdata keep what the spec says: of a town that uses most of the language, and of every example."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path

import pytest

from release_specs.diagnostics import SpecError
from release_specs.language.microdata import Column
from release_specs.load import Loaded, load_spec
from release_specs.reading.resolve import group_of, members_of
from tabulation.synthesize import GeneratedFile, synthesize
from tests.tabulation.reading import Microdata, applicable
from tests.tabulation.town import load_town

EXAMPLES = Path(__file__).resolve().parents[2] / "release_specs" / "examples"
RECORDS = 2000


@dataclass(frozen=True)
class Case:
    """A spec with the files generated from it."""

    loaded: Loaded
    files: tuple[GeneratedFile, ...]
    microdata: Microdata

    def columns(self) -> Iterator[tuple[str, str, Column]]:
        """Every declared column with its entity and name."""
        for entity, declared in self.loaded.spec.microdata.items():
            for name, column in declared.columns.items():
                yield entity, name, column

    def nested(self) -> Iterator[tuple[str, str]]:
        """Every entity whose rows lie in groups, with the groups."""
        for entity in self.loaded.spec.microdata:
            if (group := group_of(self.loaded.spec, entity)) is not None:
                yield entity, group


@pytest.fixture(scope="module", params=["town", *sorted(path.stem for path in EXAMPLES.glob("*.yaml"))])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    folder = tmp_path_factory.mktemp(request.param)
    public = folder if request.param == "town" else EXAMPLES
    try:
        loaded = load_town(folder) if request.param == "town" else load_spec(EXAMPLES / f"{request.param}.yaml")
    except SpecError:
        pytest.skip(f"{request.param} does not load")
    files = synthesize(loaded.spec, loaded.domain, records=RECORDS, seed=3, out=folder / "out", folder=public)
    return Case(loaded, files, Microdata(loaded, folder / "out"))


def test_there_is_one_file_for_each_entity_that_has_one(case: Case) -> None:
    expected = [name for name, entity in case.loaded.spec.microdata.items() if entity.built_from is None]
    assert [file.entity for file in case.files] == expected
    for file in case.files:
        assert file.path.name == f"{file.entity}.parquet"
        assert file.rows == len(case.microdata.frames[file.entity])


def test_the_innermost_entities_have_as_many_rows_as_were_asked_for(case: Case) -> None:
    spec = case.loaded.spec
    innermost = [file for file in case.files if not members_of(spec, file.entity)]
    assert innermost
    assert {file.rows for file in innermost} == {RECORDS}


def test_keys_come_first_and_then_the_declared_columns_in_order(case: Case) -> None:
    for name, entity in case.loaded.spec.microdata.items():
        if entity.built_from is not None:
            continue
        keys = dict.fromkeys((*(entity.key or ()), *(entity.group or {}).values()))
        expected = [key for key in keys if key not in entity.columns]
        for column, facts in entity.columns.items():
            expected += facts.columns or (column,)
        found = list(case.microdata.frames[name])
        assert sorted(found[: len(keys)]) == sorted(expected[: len(keys)])
        assert found[len(keys) : len(expected)] == expected[len(keys) :]
        built = [facts for facts in case.loaded.spec.microdata.values() if facts.built_from == name]
        assert set(found[len(expected) :]) == {column for facts in built for column in facts.columns} - set(expected)


def test_every_value_is_in_its_domain(case: Case) -> None:
    for entity, name, column in case.columns():
        values = {value for answers in case.microdata.values(entity, name) for value in answers}
        assert values, name
        if column.area is not None:
            tree = case.loaded.domain.hierarchies[column.area]
            assert values <= {area.code for area in tree.areas[tree.smallest]}
        elif column.codes is not None:
            assert values <= {category.code for category in case.loaded.domain.attribute(entity, name).coded}
        elif column.date is not None:
            assert all(column.date.low <= date.fromisoformat(value) <= column.date.high for value in values)
        else:
            numbers = [Fraction(value) for value in values]
            assert all(column.valid.low <= number <= column.valid.high for number in numbers), name
            assert all((number / (column.step or 1)).denominator == 1 for number in numbers), name


def test_a_value_stands_exactly_where_the_column_applies(case: Case) -> None:
    for entity, name, column in case.columns():
        given = [bool(answers) for answers in case.microdata.values(entity, name)]
        if column.applies_to is not None:
            assert given == case.microdata.meets(entity, column.applies_to), name
        elif column.not_applicable is None:
            assert all(given), name


def test_where_a_column_does_not_apply_the_first_declared_value_for_that_stands(case: Case) -> None:
    for entity, name, column in case.columns():
        cells = [row[(column.columns or (name,))[0]] for row in case.microdata.rows[entity]]
        without = {cell for cell in cells if applicable(column, cell) is None}
        assert without <= {column.not_applicable[0] if column.not_applicable else None}


def test_every_row_is_one_of_this_release(case: Case) -> None:
    for entity, declared in case.loaded.spec.microdata.items():
        if declared.only is not None:
            assert all(case.microdata.meets(entity, declared.only))


def test_what_is_impossible_does_not_occur(case: Case) -> None:
    for condition in case.loaded.spec.impossible:
        entities = [
            entity
            for entity in case.loaded.spec.microdata
            if all(case.loaded.domain.attribute(entity, column) for column in condition.columns())
        ]
        assert entities
        for entity in entities:
            assert not any(case.microdata.meets(entity, condition)), condition


def test_keys_identify_rows_and_every_group_exists(case: Case) -> None:
    for file in case.files:
        key = case.loaded.spec.microdata[file.entity].key
        if key is not None:
            assert not case.microdata.frames[file.entity].duplicated(list(key)).any()
    for entity, group in case.nested():
        link = case.microdata.link(entity)
        assert set(case.microdata.frames[entity][link]) == set(case.microdata.frames[group][link])


def test_a_row_lives_where_its_group_does(case: Case) -> None:
    for entity, group in case.nested():
        areas = {
            owner: {c.area: n for n, c in case.loaded.spec.microdata[owner].columns.items() if c.area}
            for owner in (entity, group)
        }
        for spine in set(areas[entity]) & set(areas[group]):
            own = [answers[0] for answers in case.microdata.values(entity, areas[entity][spine])]
            theirs = [answers[0] for answers in case.microdata.values(group, areas[group][spine])]
            assert own == case.microdata.inherited(entity, group, theirs)


def test_columns_of_one_name_and_the_same_codes_agree_in_group_and_row(case: Case) -> None:
    for entity, group in case.nested():
        columns, theirs = (case.loaded.spec.microdata[owner].columns for owner in (entity, group))
        for name in set(columns) & set(theirs):
            if columns[name].codes is not None and columns[name].codes == theirs[name].codes:
                values = case.microdata.values(group, name)
                assert case.microdata.values(entity, name) == case.microdata.inherited(entity, group, values)


def test_singles_are_alone_and_every_other_group_has_one_row_that_is_kept_first(case: Case) -> None:
    privacy = case.loaded.spec.privacy
    keep_first = privacy.at_most.keep_first if privacy.at_most else None
    for entity in list(privacy.caps)[:1]:
        single = case.microdata.singles(entity)
        heads = case.microdata.meets(entity, keep_first) if keep_first else [False] * len(single)
        found: dict[str, list[tuple[bool, bool]]] = {}
        for row, pair in zip(case.microdata.rows[entity], zip(single, heads, strict=True), strict=True):
            found.setdefault(row[case.microdata.link(entity)], []).append(pair)
        for pairs in found.values():
            singles, kept = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
            assert singles == 0 or (len(pairs) == 1 and kept == 0)
            assert keep_first is None or singles == 1 or kept == 1
        if privacy.singles is not None:
            assert 0.03 <= sum(single) / len(single) <= 0.10


def test_group_sizes_are_skewed_and_some_pass_the_cap(case: Case) -> None:
    expected = case.loaded.spec.expect.sizes if case.loaded.spec.expect else None
    for entity, cap in case.loaded.spec.privacy.caps.items():
        sizes = sorted(len(rows) for rows in case.microdata.groups(entity).values())
        assert sizes[0] == 1 or cap > 20
        assert sum(sizes) / len(sizes) > sizes[len(sizes) // 2] or expected, "the mean lies above the median"
        if expected is None:
            assert 0 < sum(size > cap for size in sizes) / len(sizes) < 0.1


def test_answers_of_a_row_are_different_and_no_more_than_may_be_given(case: Case) -> None:
    for entity, name, column in case.columns():
        if column.up_to is not None:
            answers = case.microdata.values(entity, name)
            assert all(len(set(given)) == len(given) <= column.up_to for given in answers)
            assert any(len(given) > 1 for given in answers)
