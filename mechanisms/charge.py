"""Charge: what was done to the data, so that its price can be derived now and derived again later.

A charge says which mechanism ran with which parameters on a query of which shape, for which protected unit and under
which relation. It holds no price: epsilon and rho follow from what happened, exactly or rounded up to a multiple of
10^-12, and a tighter theorem found next year can reprice an old ledger.

The ledger stores a charge as plain data: text, whole numbers, truths and lists, fractions as text such as "3/8". What
does not apply (a cap, a quantile) is left out. The sensitivity is stored too, and read back only if today's table of
sensitivities still says the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, Protocol, Self, get_type_hints

from mechanisms.plain_data import Found, as_plain
from mechanisms.sensitivity import Counts, Decides, Relation, Responses, Rows, Scores, Sensitivity, Shape, Sums, Unit


class Mechanism(Protocol):
    """What the accountant needs to know of a mechanism: its price for a sensitivity, in both currencies."""

    @property
    def name(self) -> str:
        """The name under which the ledger knows it."""

    @property
    def parameters(self) -> dict[str, Fraction]:
        """Everything that decides its law."""

    def epsilon(self, sensitivity: Sensitivity) -> Fraction | None:
        """The pure price, or None where there is none."""

    def rho(self, sensitivity: Sensitivity) -> Fraction:
        """The price in zero-concentrated differential privacy."""


Rebuild = Callable[[str, Mapping[str, Fraction]], Mechanism]
"""The mechanism of a name and parameters; `mechanisms.catalogue` has the one that knows all mechanisms."""

SHAPES: dict[str, type[Shape]] = {"counts": Counts, "sums": Sums, "scores": Scores, "responses": Responses}

MEASURES: dict[str, tuple[type[Shape], ...]] = {
    "discrete_laplace": (Counts, Sums),
    "discrete_gaussian": (Counts, Sums),
    "randomised_response": (Responses,),
    "exponential": (Scores,),
    "permute_and_flip": (Scores,),
    "noisy_max": (Scores,),
}
"""What each mechanism's price is proved for. The sensitivity of scores bounds one score: no price for noise on all."""

WHOLE_SCORES = ("permute_and_flip", "noisy_max")
"""They take scores as they are; the ranks of a quantile are parts of whole numbers, which only `Quantile` scales."""


@dataclass(frozen=True, slots=True)
class Charge:
    """One measurement as the ledger remembers it."""

    query: str
    mechanism: Mechanism
    shape: Shape
    unit: Unit
    relation: Relation
    level: str = "whole"
    attributes: frozenset[str] = field(default=frozenset())

    def __post_init__(self) -> None:
        name = self.mechanism.name
        if type(self.shape) not in MEASURES.get(name, ()):
            raise ValueError(f"query '{self.query}': {name} has no price for {_kind(self.shape)}")
        if isinstance(self.shape, Scores) and self.shape.quantile is not None and name in WHOLE_SCORES:
            raise ValueError(
                f"query '{self.query}': a quantile is selected by the exponential mechanism, not by {name}"
            )
        if type(self.attributes) is not frozenset:
            raise TypeError(f"attributes are a frozenset of names, got {type(self.attributes).__name__}")
        self.shape.sensitivity(self.unit, self.relation)  # a charge without a proved bound cannot exist

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one unit moves what was measured."""
        return self.shape.sensitivity(self.unit, self.relation)

    @property
    def epsilon(self) -> Fraction | None:
        """The pure price, or None where the mechanism has none."""
        return self.mechanism.epsilon(self.sensitivity)

    @property
    def rho(self) -> Fraction:
        """The price in zCDP."""
        return self.mechanism.rho(self.sensitivity)

    def as_data(self) -> dict[str, Any]:
        """The charge as plain data, from which `from_data` rebuilds the same charge."""
        sensitivity = self.sensitivity
        return {
            "query": self.query,
            "level": self.level,
            "attributes": sorted(self.attributes),
            "mechanism": {"name": self.mechanism.name, "parameters": as_plain(self.mechanism.parameters)},
            "shape": {"kind": _kind(self.shape)} | as_plain(_values(self.shape)),
            "unit": {"protects": "group" if self.unit.is_group else "record"} | as_plain(_values(self.unit)),
            "relation": str(self.relation),
            "sensitivity": as_plain(_values(sensitivity)),
        }

    @classmethod
    def from_data(cls, data: object, rebuild: Rebuild) -> Self:
        """The charge that `as_data` wrote; a `ValueError` says what was found and expected if it did not."""
        found = Found("charge", data)
        found.has_only("query", "level", "attributes", "mechanism", "shape", "unit", "relation", "sensitivity")
        charge = cls(
            query=found.text("query"),
            mechanism=_mechanism(found.part("mechanism"), rebuild),
            shape=_shape(found.part("shape")),
            unit=_unit(found.part("unit")),
            relation=found.one_of("relation", Relation),
            level=found.text("level"),
            attributes=frozenset(found.texts("attributes")),
        )
        _check_sensitivity(found.part("sensitivity"), charge.sensitivity)
        return charge


def _kind(shape: Shape) -> str:
    return next(kind for kind, known in SHAPES.items() if isinstance(shape, known))


def _values(of: Shape | Unit | Sensitivity) -> dict[str, Any]:
    return {each.name: getattr(of, each.name) for each in fields(of)}


READERS: dict[Any, Callable[[Found, str], Any]] = {
    Rows: lambda found, key: found.one_of(key, Rows),
    Decides: lambda found, key: found.one_of(key, Decides),
    bool: Found.truth,
    int: Found.whole,
    int | None: lambda found, key: found.whole(key) if key in found else None,
    Fraction | None: lambda found, key: found.fraction(key) if key in found else None,
}
"""How a field of a shape is read, by its type."""


def _shape(found: Found) -> Shape:
    kind = found.text("kind")
    if kind not in SHAPES:
        raise found.mistake("kind", kind, f"one of {', '.join(SHAPES)}")
    types = get_type_hints(SHAPES[kind])
    found.has_only("kind", *types)
    return SHAPES[kind](**{name: READERS[held](found, name) for name, held in types.items()})


def _unit(found: Found) -> Unit:
    protects = found.text("protects")
    if protects not in ("record", "group"):
        raise found.mistake("protects", protects, "record or group")
    found.has_only("protects", *(["members"] if protects == "group" else []))
    return Unit(found.whole("members") if protects == "group" else None)


def _mechanism(found: Found, rebuild: Rebuild) -> Mechanism:
    found.has_only("name", "parameters")
    parameters = found.part("parameters")
    return rebuild(found.text("name"), {key: parameters.fraction(key) for key in parameters.keys})


def _check_sensitivity(found: Found, derived: Sensitivity) -> None:
    found.has_only("l1", "l2_squared")
    stored = Sensitivity(found.fraction("l1"), found.fraction("l2_squared"))
    if stored != derived:
        raise ValueError(
            f"{found.where} is L1 {stored.l1}, squared L2 {stored.l2_squared}, but its shape, unit and relation give "
            f"L1 {derived.l1}, squared L2 {derived.l2_squared}: the charge was altered, or stored by another version"
        )
