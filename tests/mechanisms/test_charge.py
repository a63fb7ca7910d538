"""A charge is stored as plain data and read back as the same charge, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.charge import MEASURES, SHAPES, Charge
from mechanisms.sensitivity import (
    RECORD,
    Counts,
    Decides,
    NoProvedBound,
    Relation,
    Responses,
    Rows,
    Scores,
    Sensitivity,
    Shape,
    Sums,
    Unit,
)


@dataclass(frozen=True, slots=True)
class Fan:
    """A mechanism of the tests: it costs its strength times the sensitivity."""

    strength: Fraction
    blades: int = 3
    name: str = "fan"

    @property
    def parameters(self) -> dict[str, Fraction]:
        return {"strength": self.strength, "blades": Fraction(self.blades)}

    def epsilon(self, sensitivity: Sensitivity) -> Fraction | None:
        return self.strength * sensitivity.l1

    def rho(self, sensitivity: Sensitivity) -> Fraction:
        return self.strength * sensitivity.l2_squared


@pytest.fixture(autouse=True)
def fans_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other test knows of them."""
    monkeypatch.setitem(MEASURES, "fan", tuple(SHAPES.values()))


def rebuild_fan(name: str, parameters: dict[str, Fraction]) -> Fan:
    if name != "fan":
        raise ValueError(f"no mechanism is called '{name}'. Known: fan")
    return Fan(parameters["strength"], int(parameters["blades"]))


def charge(shape: Shape, unit: Unit = RECORD, relation: Relation = Relation.REPLACE, **other: Any) -> Charge:
    return Charge("age_by_sex", Fan(Fraction(3, 8)), shape, unit, relation, **other)


def read(data: object) -> Charge:
    return Charge.from_data(data, rebuild_fan)


with pytest.MonkeyPatch.context() as for_now:
    for_now.setitem(MEASURES, "fan", (Counts,))
    HOUSEHOLDS = charge(Counts(cap=4), Unit(6), level="county", attributes=frozenset({"sex", "age"}))


def test_a_charge_is_written_as_text_numbers_and_lists() -> None:
    assert HOUSEHOLDS.as_data() == {
        "query": "age_by_sex",
        "level": "county",
        "attributes": ["age", "sex"],
        "mechanism": {"name": "fan", "parameters": {"strength": "3/8", "blades": "3"}},
        "shape": {"kind": "counts", "of": "records", "by": "own", "one_cell": False, "answers": 1, "cap": 4},
        "unit": {"protects": "group", "members": 6},
        "relation": "replace",
        "sensitivity": {"l1": "8", "l2_squared": "32"},
    }


def test_what_does_not_apply_is_left_out() -> None:
    data = charge(Scores()).as_data()
    assert data["shape"] == {"kind": "scores", "of": "records", "by": "own"}
    assert data["unit"] == {"protects": "record"}


def test_a_charge_derives_its_prices_from_what_was_done() -> None:
    assert HOUSEHOLDS.sensitivity == Sensitivity(Fraction(8), Fraction(32))
    assert (HOUSEHOLDS.epsilon, HOUSEHOLDS.rho) == (3, 12)


def test_a_charge_without_a_proved_bound_cannot_exist() -> None:
    with pytest.raises(NoProvedBound):
        charge(Counts(by=Decides.GROUP))


def test_noise_on_scores_has_no_price_because_their_sensitivity_bounds_one_of_them() -> None:
    with pytest.raises(ValueError, match="discrete_laplace has no price for scores"):
        Charge("most_common", Fan(Fraction(1), name="discrete_laplace"), Scores(), RECORD, Relation.REPLACE)
    with pytest.raises(ValueError, match="exponential has no price for counts"):
        Charge("most_common", Fan(Fraction(1), name="exponential"), Counts(), RECORD, Relation.REPLACE)


def test_every_kind_of_shape_has_a_mechanism() -> None:
    assert {shape for fitting in MEASURES.values() for shape in fitting} == set(SHAPES.values())


names = st.text(max_size=20)
caps = st.none() | st.integers(1, 9)
shapes = st.one_of(
    st.builds(Counts, one_cell=st.booleans(), cap=caps),
    st.builds(Counts, by=st.just(Decides.GROUP), cap=st.integers(1, 9)),
    st.builds(Counts, of=st.just(Rows.GROUPS), by=st.sampled_from((Decides.OWN, Decides.MEMBERS))),
    st.builds(Counts, answers=st.integers(1, 9)),
    st.builds(Sums, st.integers(-(2**62), -1), st.integers(0, 2**62), one_cell=st.booleans()),
    st.builds(Scores, st.none() | st.fractions(0, 1), of=st.sampled_from(Rows)),
    st.just(Responses()),
)
charges = st.builds(
    Charge,
    names,
    st.builds(Fan, st.fractions(min_value=Fraction(1, 10**12)), st.integers(1, 9)),
    shapes,
    st.builds(Unit, caps),
    st.just(Relation.REPLACE),
    names,
    st.frozensets(names, max_size=4),
)


@given(written=charges)
def test_a_charge_survives_the_ledger_unchanged(written: Charge) -> None:
    stored = json.dumps(written.as_data(), allow_nan=False)
    assert read(json.loads(stored)) == written
    assert read(json.loads(stored)).as_data() == written.as_data()


@given(written=charges)
def test_stored_data_hold_no_floats_and_no_nulls(written: Charge) -> None:
    def leaves(value: Any) -> list[Any]:
        if isinstance(value, dict | list):
            return [leaf for each in (value.values() if isinstance(value, dict) else value) for leaf in leaves(each)]
        return [value]

    assert {type(leaf) for leaf in leaves(written.as_data())} <= {str, int, bool}


Change = Callable[[dict[str, Any]], Any]


def put(*path: str, value: Any) -> Change:
    """A change of stored data: this value at this place."""

    def change(data: dict[str, Any]) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return change


def leave_out(*path: str) -> Change:
    def change(data: dict[str, Any]) -> None:
        for key in path[:-1]:
            data = data[key]
        del data[path[-1]]

    return change


WRONG: dict[str, tuple[Change, str]] = {
    "unknown key": (put("price", value="1"), r"^charge: 'price' is not known\. Known: query, level"),
    "missing key": (leave_out("relation"), "^charge: 'relation' is missing"),
    "query a number": (put("query", value=7), r"^charge\.query: found 7, expected text"),
    "attributes a text": (put("attributes", value="age"), r"^charge\.attributes: found 'age', expected a list"),
    "attributes numbers": (put("attributes", value=[1]), "expected a list of texts"),
    "attributes twice": (put("attributes", value=["a", "a"]), "expected each text once"),
    "unknown relation": (put("relation", value="bounded"), "found 'bounded', expected one of add-remove, replace"),
    "mechanism a text": (put("mechanism", value="fan"), r"^charge\.mechanism: found 'fan', expected named values"),
    "unknown mechanism": (put("mechanism", "name", value="heater"), "no mechanism is called 'heater'. Known: fan"),
    "mechanism with a price": (put("mechanism", "rho", value="1"), r"^charge\.mechanism: 'rho' is not known"),
    "float parameter": (put("mechanism", "parameters", "strength", value=0.375), "found 0.375, expected a fraction"),
    "whole parameter": (put("mechanism", "parameters", "strength", value=1), "found 1, expected a fraction as text"),
    "decimal parameter": (put("mechanism", "parameters", "strength", value="0.5"), "found '0.5', expected a fraction"),
    "power of ten": (put("mechanism", "parameters", "strength", value="1e3"), "expected a fraction"),
    "not lowest terms": (put("mechanism", "parameters", "strength", value="6/16"), "lowest terms"),
    "whole over one": (put("mechanism", "parameters", "strength", value="3/1"), "lowest terms"),
    "over zero": (put("mechanism", "parameters", "strength", value="1/0"), "expected a fraction"),
    "minus zero": (put("mechanism", "parameters", "strength", value="-0"), "expected a fraction"),
    "blank around": (put("mechanism", "parameters", "strength", value=" 3/8"), "expected a fraction"),
    "line end": (put("mechanism", "parameters", "strength", value="3/8\n"), "expected a fraction"),
    "other digits": (put("mechanism", "parameters", "strength", value="٣/٨"), "expected a fraction"),
    "endless digits": (put("mechanism", "parameters", "strength", value="9" * 5000), r"found '999.*\.\.\., expected"),
    "unknown shape": (put("shape", "kind", value="means"), "found 'means', expected one of counts, sums, scores"),
    "unknown key of a shape": (put("shape", "low", value=0), r"^charge\.shape: 'low' is not known\. Known: kind, of"),
    "missing key of a shape": (leave_out("shape", "answers"), r"^charge\.shape: 'answers' is missing"),
    "unknown rows": (put("shape", "of", value="people"), "found 'people', expected one of records, groups"),
    "unknown decider": (put("shape", "by", value="area"), "found 'area', expected one of own, group, members"),
    "number for a truth": (put("shape", "one_cell", value=0), "found 0, expected true or false"),
    "truth for a number": (put("shape", "answers", value=True), "found True, expected a whole number"),
    "float for a number": (put("shape", "cap", value=4.0), "found 4.0, expected a whole number"),
    "null for a number": (put("shape", "cap", value=None), "found None, expected a whole number"),
    "impossible number": (put("shape", "cap", value=0), "cap must be at least 1"),
    "unknown unit": (put("unit", "protects", value="person"), "found 'person', expected record or group"),
    "a record with members": (put("unit", "protects", value="record"), r"^charge\.unit: 'members' is not known"),
    "a group without members": (leave_out("unit", "members"), r"^charge\.unit: 'members' is missing"),
    "float sensitivity": (put("sensitivity", "l1", value=8.0), r"^charge\.sensitivity\.l1: found 8\.0, expected"),
    "no sensitivity": (leave_out("sensitivity"), "'sensitivity' is missing"),
    "half a sensitivity": (leave_out("sensitivity", "l1"), r"^charge\.sensitivity: 'l1' is missing"),
    "too small a sensitivity": (put("sensitivity", "l2_squared", value="8"), "squared L2 8, but .* squared L2 32"),
    "sensitivity of another unit": (put("unit", "members", value=2), "L1 8, .* give L1 4, .* the charge was altered"),
}


@pytest.mark.parametrize(("change", "said"), WRONG.values(), ids=WRONG)
def test_altered_data_are_refused_with_what_was_found_and_expected(change: Change, said: str) -> None:
    data = HOUSEHOLDS.as_data()
    change(data)
    with pytest.raises(ValueError, match=said):
        read(data)


@pytest.mark.parametrize("data", [None, [], "charge", 1.5, {1: 2}])
def test_what_is_no_charge_at_all_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match="charge: "):
        read(data)


def test_a_stored_charge_without_a_proved_bound_is_refused() -> None:
    data = charge(Counts(by=Decides.GROUP, cap=2)).as_data()
    del data["shape"]["cap"]
    with pytest.raises(NoProvedBound):
        read(data)
