"""Finished release folders for tests: small specs and examples with made-up numbers and seeded noise."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from estimation.measurement import ExactNumbers, Measurement
from estimation.problem import Problem, problem
from release_specs.load import Loaded, load_spec
from release_specs.tallies import EXACT, Tally, tallies_of
from reporting.folder import Fill, Sign, write_release
from reporting.manifest import Manifest
from reporting.replay import MadeTables, make_tables
from reporting.spec_files import gather_spec
from tests.estimation.made_up import Laplace, Normal, Truth, exact_numbers, measured
from tests.estimation.published import SMALL
from tests.estimation.releases import truth_of
from tests.estimation.small_specs import AREAS, HOMES, HOUSES, REGISTER

EXAMPLES = Path(__file__).resolve().parents[2] / "release_specs" / "examples"
MOMENT = "2026-09-15T09:00:00+02:00"


def noise_of(described: Mapping[str, Any]) -> Normal | Laplace:
    """The law that a measurement file describes."""
    (amount,) = described["parameters"].values()
    known = {"normal": Normal, "laplace": Laplace}
    if described["mechanism"] not in known:
        raise ValueError(f"no mechanism is called '{described['mechanism']}'")
    return known[described["mechanism"]](float(Fraction(amount)))


@dataclass(frozen=True)
class Made:
    """A spec in a file, with made-up numbers of all that it counts."""

    path: Path
    truth: Truth
    noise: Normal | Laplace
    seed: int = 2

    @cached_property
    def loaded(self) -> Loaded:
        """The spec."""
        return load_spec(self.path)

    @cached_property
    def tallies(self) -> list[Tally]:
        """All that is counted."""
        return list(tallies_of(self.loaded.spec, self.loaded.domain))

    @cached_property
    def problem(self) -> Problem:
        """The spec as a problem of estimation."""
        return problem_of(self.path)

    @cached_property
    def measurements(self) -> list[Measurement]:
        """The numbers with noise."""
        tallies = [tally for tally in self.tallies if tally.table != EXACT]
        return measured(self.truth, tallies, self.noise, np.random.default_rng(self.seed))

    @property
    def exact(self) -> list[ExactNumbers]:
        """The numbers of the microdata without noise."""
        totals = [tally for tally in self.tallies if tally.table == EXACT]
        return [
            ExactNumbers(tally, level, self.truth[tally.name, level])
            for tally in totals
            for level in tally.levels or (None,)
        ]

    @cached_property
    def tables(self) -> MadeTables:
        """The tables."""
        backwards = self.measurements[::-1]
        return make_tables(self.problem, self.loaded.domain, measurements=backwards, exact=self.exact)

    @property
    def described(self) -> dict[tuple[str, str | None], dict[str, Any]]:
        """How each measurement was made."""
        gaussian = isinstance(self.noise, Normal)
        amount = str(Fraction(self.noise.variance if gaussian else self.noise.scale))
        told = {"mechanism": "normal" if gaussian else "laplace", "parameters": {"amount": amount}}
        return {(one.tally.name, one.level): {**told, "charge": {"query": one.tally.name}} for one in self.measurements}

    @property
    def manifest(self) -> Manifest:
        """What the release says of itself."""
        release = self.loaded.spec.release
        return Manifest(
            release.name,
            release.title,
            release.edition,
            1,
            run="7f3a",
            published=MOMENT,
            code={"margrave": "0.1.0"},
            plan={"queries": len(self.measurements)},
            ledger={"id": "x", "anchor": {"head": "00"}},
            measured=self.tables.measured,
        )

    def publish(self, target: Path, *, sign: Sign | None = None, add: Fill | None = None) -> Manifest:
        """Publishes the release, with further files where asked."""

        def fill(folder: Path) -> None:
            self.tables.write_release(folder, spec=gather_spec(self.path), described=self.described)
            if add is not None:
                add(folder)

        return write_release(target, self.manifest, fill=fill, sign=sign)


def problem_of(path: Path) -> Problem:
    """A spec in a file as a problem of estimation."""
    loaded = load_spec(path)
    return problem(loaded.spec, loaded.domain, list(tallies_of(loaded.spec, loaded.domain)), folder=path.parent)


def written(text: str, folder: Path, **files: str) -> Path:
    """A spec and its public files in a folder."""
    for name, content in files.items():
        (folder / f"{name}.csv").write_text(content, encoding="utf-8")
    path = folder / "given.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def small(folder: Path) -> Made:
    """The small release, with every kind of statistic."""
    path = written(SMALL, folder)
    return Made(path, exact_numbers(problem_of(path), np.random.default_rng(3), rows=3000), Normal(50.0))


def example(name: str, folder: Path) -> Made:
    """An example with made-up rows that keep its rules."""
    shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
    return Made(folder / f"{name}.yaml", truth_of(name, 1), Normal(9.0))


def homes(folder: Path, *, noise: Normal | Laplace | None = None) -> Made:
    """People and homes: exact totals from microdata and from a public file, and a rule between tables."""
    path = written(HOMES, folder, areas=AREAS, register=REGISTER)
    spots = {"houses.count@land": np.array(HOUSES)}
    spots["folk.count@land"] = np.repeat(2 * spots["houses.count@land"], 2, axis=1)
    spots["folk.count@land"][:, 1::2] = 0
    spots["exact.total1@land"] = spots["houses.count@land"].sum(axis=1, keepdims=True)
    truth: Truth = {}
    for name, numbers in spots.items():
        parts = np.array([numbers[:2].sum(0), numbers[2:3].sum(0), numbers[3:].sum(0)])
        truth |= {(name, "spot"): numbers, (name, "part"): parts, (name, "land"): parts.sum(0, keepdims=True)}
    return Made(path, truth, noise or Normal(4.0))
