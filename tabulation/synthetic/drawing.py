"""Draws the columns of a population one after another, each row within what is demanded of it.

A column's first draft follows its law (or its group, or the area). Rows that would breach a demand are drawn again
from the law among the places left to them, so what is kept has the law's proportions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from release_specs.language.conditions import Criterion
from tabulation.synthetic.demands import Demand
from tabulation.synthetic.laws import Law, adults, law_of
from tabulation.synthetic.matches import Match
from tabulation.synthetic.ordering import in_drawing_order, twin_of
from tabulation.synthetic.population import Population, Role, Rows
from tabulation.synthetic.strata import Stratum, strata_of
from tabulation.synthetic.streams import Streams
from tabulation.synthetic.variables import NOT_APPLICABLE, NOTHING, Bools, Integers, Variable

WITHOUT_VALUE = 0.03
"""How many rows have no value where the spec names a code for that and does not say who has none."""
FURTHER_ANSWER = 0.3
"""How many of those who gave an answer give one more."""
MOST_BANS = 60
MOST_DRAFTS = 40


@dataclass(frozen=True, slots=True)
class Ban:
    """Where `active`, places that meet all of `unwanted` are not to be drawn."""

    active: Bools
    unwanted: tuple[Match, ...]

    def breaches(self, places: Integers, chosen: Integers) -> Bools:
        """Which of the chosen rows must not keep their places."""
        wrong: Bools = self.active[chosen]
        for match in self.unwanted:
            wrong = wrong & match.meets(places)
        return wrong


@dataclass(slots=True)
class Drawer:
    """Draws columns into a population."""

    population: Population
    demands: tuple[Demand, ...]
    streams: Streams
    draft: int = 0
    _laws: dict[tuple[str, str], Law] = field(default_factory=dict)
    _strata: dict[str, list[tuple[Stratum, Integers]]] = field(default_factory=dict)

    def draw_all(self) -> None:
        """Draws every column of every entity."""
        early, late = in_drawing_order(self.population.meanings)
        for entity, variables in groupby(early, key=lambda variable: variable.entity):
            self._draw_entity(entity, list(variables))
        for variable in late:
            self._draw(variable)

    def _draw_entity(self, entity: str, variables: list[Variable]) -> None:
        """Draws columns of an entity, and anew for rows that came to a dead end, where no place was left to draw."""
        for variable in variables:
            self._draw(variable)
        for draft in range(self.draft + 1, MOST_DRAFTS):
            faulty = np.flatnonzero(self._breaches(entity))
            if not len(faulty):
                return
            part = Population(self.population.meanings, dict(self.population.rows))
            part.rows[entity] = self.population.rows[entity].part(faulty)
            redrawn = Drawer(part, self.demands, self.streams, draft, self._laws)
            for variable in variables:
                redrawn._draw(variable)
            sound = ~redrawn._breaches(entity)
            for name, places in part.rows[entity].places.items():
                self.population.rows[entity].places[name][faulty[sound]] = places[sound]

    def _breaches(self, entity: str) -> Bools:
        """Rows of an entity that breach what is demanded of columns drawn so far."""
        wrong = np.zeros(self.population.rows[entity].count, dtype=np.bool_)
        for demand in self.demands:
            tests = [test for _, test in demand.condition.criteria()]
            if demand.entity == entity and all(self._is_drawn(entity, test) for test in tests):
                wrong |= demand.breaches(self.population)
        return wrong

    def _draw(self, variable: Variable) -> None:
        rows = self.population.rows[variable.entity]
        random = self.streams.of("draw", variable.entity, variable.name, str(self.draft))
        places = self._first_draft(variable, rows, random)
        if variable.column.area is None:
            free = self._settle(variable, places, random)
            if variable.answers > 1:
                places = self._further_answers(variable, places, free, random)
        if variable.column.applies_to is not None:
            places[~self.population.meets(variable.entity, variable.column.applies_to)] = NOT_APPLICABLE
            if places.ndim > 1:
                places[places[:, 0] == NOT_APPLICABLE, 1:] = NOTHING
        rows.places[variable.name] = places

    def _first_draft(self, variable: Variable, rows: Rows, random: np.random.Generator) -> Integers:
        column = variable.column
        if column.area is not None:
            return rows.areas[column.area].copy()
        if (twin := twin_of(self.population.meanings, variable)) is not None:
            copied: Integers = self.population.rows[twin.entity].places[twin.name][rows.parent]
            return copied
        places = self._law(variable).draw(rows.archetype, random)
        if column.not_applicable and column.applies_to is None:
            places[random.random(rows.count) < WITHOUT_VALUE] = NOT_APPLICABLE
        return places

    def _settle(self, variable: Variable, places: Integers, random: np.random.Generator) -> Bools:
        """Draws again what breaches a demand; says which rows nothing at all is demanded of."""
        bans = list(self._bans(variable))[:MOST_BANS]
        free = np.ones(len(places), dtype=np.bool_)
        for stratum, chosen in self._strata_of(variable.entity):
            wanted = stratum.wanted.get(variable.name, ())
            wished = self._wished(variable, stratum.role)
            relevant = [ban for ban, roles in bans if stratum.role in roles]
            if not (wanted or wished or relevant):
                continue
            kept = places[chosen]
            wrong = np.zeros(len(chosen), dtype=np.bool_)
            for match in (*wanted, *wished):
                wrong |= ~match.meets(kept)
            active = np.zeros(len(chosen), dtype=np.bool_)
            for ban in relevant:
                wrong |= ban.breaches(kept, chosen)
                active |= ban.active[chosen]
            free[chosen[active | bool(wanted)]] = False
            self._redraw(variable, places, chosen[wrong], ((*wanted, *wished), wanted, relevant), random)
        return free

    def _redraw(
        self,
        variable: Variable,
        places: Integers,
        chosen: Integers,
        limits: tuple[tuple[Match, ...], tuple[Match, ...], list[Ban]],
        random: np.random.Generator,
    ) -> None:
        wished, wanted, bans = limits
        pattern = np.zeros(len(chosen), dtype=np.int64)
        for bit, ban in enumerate(bans):
            pattern |= ban.active[chosen].astype(np.int64) << bit
        law, archetypes = self._law(variable), self.population.rows[variable.entity].archetype
        for found in np.unique(pattern):
            some = chosen[pattern == found]
            unwanted = [match for bit, ban in enumerate(bans) if found >> bit & 1 for match in ban.unwanted]
            left = law.restricted(wished, unwanted) or law.restricted(wanted, unwanted) or law.restricted(wanted)
            places[some] = (left or law).draw(archetypes[some], random)

    def _further_answers(
        self, variable: Variable, first: Integers, free: Bools, random: np.random.Generator
    ) -> Integers:
        """Up to as many answers as may be given, all different, those given first."""
        rows, law = self.population.rows[variable.entity], self._law(variable)
        answers = np.full((rows.count, variable.answers), NOTHING, dtype=first.dtype)
        answers[:, 0] = first
        going = free & (first >= 0)
        for number in range(1, variable.answers):
            going = going & (random.random(rows.count) < FURTHER_ANSWER)
            drawn = law.draw(rows.archetype, random)
            going = going & (answers[:, :number] != drawn[:, None]).all(axis=1)
            answers[going, number] = drawn[going]
        return answers

    def _wished(self, variable: Variable, role: Role) -> tuple[Match, ...]:
        """The first of a group and those who live alone are adults, where nothing else is said."""
        nested = self.population.rows[variable.entity].nested
        grown = adults(variable) if nested and role is not Role.LATER else None
        return (grown,) if grown is not None else ()

    def _bans(self, variable: Variable) -> Iterator[tuple[Ban, frozenset[Role]]]:
        """What must not be met by rows, as far as this column is the last to decide it."""
        for demand in self.demands:
            if demand.met or demand.entity != variable.entity:
                continue
            for tests in demand.condition.any_of:
                here = tuple(test for test in tests if self._is_on(variable, test))
                others = tuple(test for test in tests if test not in here)
                if here and all(self._is_drawn(demand.entity, test) for test in others):
                    matches = tuple(self.population.meanings.of(demand.entity, test).match for test in here)
                    yield Ban(self.population.meets_all(demand.entity, others), matches), demand.roles

    def _is_on(self, variable: Variable, test: Criterion) -> bool:
        meaning = self.population.meanings.of(variable.entity, test)
        return (meaning.owner, meaning.base) == (variable.entity, variable.name)

    def _is_drawn(self, entity: str, test: Criterion) -> bool:
        meaning = self.population.meanings.of(entity, test)
        return meaning.base in self.population.rows[meaning.owner].places

    def _law(self, variable: Variable) -> Law:
        key = (variable.entity, variable.name)
        if key not in self._laws:
            self._laws[key] = law_of(variable, self.streams)
        return self._laws[key]

    def _strata_of(self, entity: str) -> list[tuple[Stratum, Integers]]:
        """The strata of an entity, each with its rows."""
        if entity not in self._strata:
            meanings, rows = self.population.meanings, self.population.rows[entity]
            roles = [role for role in Role if (rows.role == role).any()]
            strata = strata_of(
                entity, roles, self.demands, meanings, lambda name: self._law(meanings.variables[entity, name])
            )
            self._strata[entity] = list(self._divide(rows, strata))
        return self._strata[entity]

    def _divide(self, rows: Rows, strata: list[Stratum]) -> Iterator[tuple[Stratum, Integers]]:
        random = self.streams.of("strata", rows.entity, str(self.draft))
        for role in Role:
            ways = [stratum for stratum in strata if stratum.role is role]
            members = np.flatnonzero(rows.role == role)
            way = random.integers(0, max(len(ways), 1), len(members))
            for number, stratum in enumerate(ways):
                yield stratum, members[way == number]
