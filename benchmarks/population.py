"""Makes a census-like population of any size for the benchmarks: persons, households, areas and two specs.

Nobody in it is real. Shares and sizes are set by hand to resemble a census: a third of the blocks are empty and most
others small, most cells are zero, a few facilities are large. Tracts are made some hundreds at a time, each batch from
random numbers of its own, so memory does not grow with the size, and a seed and a size always give the same bytes.

`python benchmarks/population.py --persons 10_000_000 --out FOLDER` writes one; without `--out` it is timed and removed.
"""

import argparse
import itertools
import json
import math
import resource
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]

BATCH, ROW_GROUP, THREADS = 1_500_000, 500_000, 2
FULL_SIZE, FULL_STATES, FULL_COUNTIES = 331_000_000, 51, 3143
PERSONS_IN_TRACT, BLOCKS_IN_TRACT = 4000, 98
HOUSEHOLD_SIZES = (0, 0.278, 0.343, 0.153, 0.131, 0.060, 0.024, *(0.0044 * 0.6**step for step in range(14)))
IN_FACILITIES, LARGEST_FACILITY = 0.025, 4000
FACILITY_TYPES = (0, 0.27, 0.015, 0.20, 0.02, 0.345, 0.04, 0.11)
SPOUSE, CHILD, RESIDENT = 1, 2, 17
LOWEST_INCOME, HIGHEST_INCOME, EARNING_AGE = -20_000, 5_000_000, 15
KINDS = 24  # of neighbourhoods: each has its own mix of races and its own incomes
PLACES = 1 << 16
AREA_DIGITS = (2, 5, 11, 12, 15)

PERSONS_AND_AREAS = f"""\
      block:     {{area: blocks, outside: leave_out, missing: leave_out}}
      hhgq:      {{codes: [0, 1, 2, 3, 4, 5, 6, 7], outside: {{count_as: 0}}, missing: {{count_as: 0}}}}
      votingage: {{codes: {{0: Under 18, 1: 18 and over}}, outside: {{count_as: 1}}, missing: {{count_as: 1}}}}
      hispanic:  {{codes: {{0: Not Hispanic, 1: Hispanic}}, outside: {{count_as: 0}}, missing: {{count_as: 0}}}}
      cenrace:   {{codes: {list(range(1, 64))}, outside: {{count_as: 6}}, missing: {{count_as: 6}}}}

geography:
  blocks: {{levels: [nation, state, county, tract, block_group, block], areas: blocks.csv, whole: {{code: N}}}}
"""

BUDGET_AND_TABLES = """\
  neighbours: add-remove
  budget: {rho: 2, delta: 1e-10}

tables:
  total:                    {count: persons, at: all}
  race:                     {count: persons, by: [cenrace], at: all}
  hispanic_origin:          {count: persons, by: [hispanic], at: all}
  voting_age:               {count: persons, by: [votingage], at: all}
  group_quarters:           {count: persons, by: [hhgq], at: all}
  hispanic_by_race:         {count: persons, by: [hispanic, cenrace], at: all}
  voting_age_by_race:       {count: persons, by: [votingage, cenrace], at: all}
  voting_age_by_hispanic:   {count: persons, by: [votingage, hispanic], at: all}
  voting_age_hispanic_race: {count: persons, by: [votingage, hispanic, cenrace], at: all}
  detailed:                 {count: persons, by: [hhgq, votingage, hispanic, cenrace], at: all}
"""

PERSONS_SPEC = f"""margrave: 1
release: {{name: benchmark-persons, title: A made-up population}}

microdata:
  persons:
    columns:
{PERSONS_AND_AREAS}
privacy:
  protect: persons
{BUDGET_AND_TABLES}"""

HOUSEHOLDS_SPEC = f"""margrave: 1
release: {{name: benchmark-households, title: A made-up population in its households}}

microdata:
  households:
    key: household_id
    columns:
      block:  {{area: blocks, outside: leave_out, missing: leave_out}}
      tenure: {{codes: {{1: Owned, 2: Rented, 3: Neither}}, outside: {{count_as: 3}}, missing: {{count_as: 3}}}}
      hhtype: {{codes: {{1: Housing unit, 2: Group quarters}}, outside: {{count_as: 1}}, missing: {{count_as: 1}}}}
  persons:
    key: person_id
    in: {{households: household_id}}
    columns:
      relate:    {{codes: [0, 1, 2, 3, 17], outside: {{count_as: 3}}, missing: {{count_as: 3}}}}
{PERSONS_AND_AREAS}
derive:
  households: {{size: {{number_of: persons, into: {{None: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7 or more: 7..}}}}}}

universes:
  housing_units: {{of: households, where: {{hhtype: 1}}}}

privacy:
  protect: households
  at_most: {{persons: 6, keep_first: {{relate: 0}}}}
  singles: {{relate: 17}}
{BUDGET_AND_TABLES}\
  units_by_size:            {{count: housing_units, by: [size, tenure], at: [nation, state, county, tract]}}
"""


@dataclass(frozen=True)
class Population:
    """Where the files of a population are, and how many persons it has."""

    folder: Path
    persons: Path
    households: Path
    spec_persons: Path
    spec_households: Path
    rows: int


@dataclass(frozen=True)
class Tracts:
    """Tracts in order of their codes, each with about so many persons; so many have ids before theirs."""

    code: Array
    persons: Array
    before: int = 0

    def batches(self) -> Iterator["Tracts"]:
        """Neighbouring tracts with about as many persons together as one batch may have."""
        ends = np.cumsum(self.persons)
        number = math.ceil(int(ends[-1]) / BATCH)
        cuts = [0, *np.searchsorted(ends, ends[-1] * np.arange(1, number) / number), len(ends)]
        for first, last in itertools.pairwise(cuts):
            before = int(ends[first - 1]) if first else 0
            yield Tracts(self.code[first:last], self.persons[first:last], before)


@dataclass(frozen=True)
class Blocks:
    """Blocks in order of their codes: the digits of each, the share of persons it draws, and its kind."""

    digits: Array
    share: Array
    kind: Array

    def lines(self) -> bytes:
        """The lines of `blocks.csv`: the code of a larger area is the beginning of the block's."""
        comma, end = (np.full((len(self.digits), 1), ord(sign), np.uint8) for sign in (",", "\n"))
        fields = [part for width in AREA_DIGITS for part in (self.digits[:, :width], comma)]
        return np.hstack([*fields[:-1], end]).tobytes()

    def column(self, place: Array) -> pa.Array:
        """The codes at these places, as a column of text."""
        names = self.digits.view(f"S{AREA_DIGITS[-1]}").ravel().astype(str)
        return pa.DictionaryArray.from_arrays(place, names)


@dataclass(frozen=True)
class Units:
    """Households and facilities in order of their blocks; `block` is a place in `Blocks`."""

    block: Array
    size: Array
    hhgq: Array
    tenure: Array


def places(shares: ArrayLike) -> Array:
    """Codes to pick from with 16 random bits: each in proportion to its share, and at least once if it has one."""
    shares = np.asarray(shares, float)
    number = np.maximum(np.rint(shares / shares.sum() * PLACES), shares > 0).astype(np.int64)
    number[number.argmax()] += PLACES - number.sum()
    return np.repeat(np.arange(len(shares), dtype=np.int8), number)


class Laws:
    """What a population is drawn from: the same for every seed and size."""

    def __init__(self) -> None:
        random = np.random.Generator(np.random.SFC64(2020))
        self.size = places(HOUSEHOLD_SIZES)
        self.mean_size = float(self.size.mean())
        self.facility = places(FACILITY_TYPES)
        self.tenure = places((0, 0.64, 0.34, 0.02))
        self.relate = np.stack([places(shares) for shares in ((1,), (0, 0.6, 0.22, 0.18), (0, 0, 0.8, 0.2))])
        self.age = np.stack([places(shares) for shares in _ages()])
        alone = 0.9 * random.dirichlet(6 * np.array((0.69, 0.137, 0.013, 0.066, 0.002, 0.092)), KINDS)
        several = np.append((0.033, 0.012, 0.011, 0.009, 0.007), 0.0034 * 0.88 ** np.arange(52))
        mix = np.hstack([alone, several * random.lognormal(0, 0.5, (KINDS, len(several)))])
        self.race = np.stack([places((0, *shares)) for shares in np.maximum(mix, 1e-9)])
        self.hispanic = (random.beta(0.6, 2.6, KINDS) * PLACES).astype(np.uint16)
        losses, zeros = -random.lognormal(7.6, 1.1, 260), np.zeros(8_840)
        high, ordinary = 150_000 * (1 + random.pareto(1.9, 1_300)), random.lognormal(10.35, 0.95, PLACES - 10_400)
        self.income = np.concatenate([losses, zeros, high, ordinary]).astype(np.float32)
        self.wealth = np.exp(random.normal(0, 0.38, KINDS)).astype(np.float32)
        self.earning = np.interp(np.arange(116), (15, 26, 64, 65), (0.15, 1, 1, 0.62)).astype(np.float32)


def _ages() -> Iterator[Array]:
    """Shares of the ages 0 to 115: of householders, spouses, children and others, then of residents by hhgq."""
    age = np.arange(116)

    def around(centre: float, spread: float, youngest: int = 0, oldest: int = 115) -> Array:
        return np.exp(-0.5 * ((age - centre) / spread) ** 2) * ((age >= youngest) & (age <= oldest))

    yield from (around(52, 17, 16), around(52, 17, 16))
    yield np.exp(-np.maximum(age - 18, 0) / 6) * (age <= 60)
    yield around(36, 20, oldest=100)
    yield from (around(37, 12, 18, 90), around(16, 2, 8, 20), around(83, 9, 30), around(50, 20, 5, 105))
    yield from (around(19.5, 1.6, 17, 40), around(25, 6, 17, 60), around(45, 17, 16, 100))


def draw(law: Array, random: np.random.Generator, row: ArrayLike = 0, number: int | None = None) -> Array:
    """One value from each row of a law that is named, or `number` from its only one."""
    row = np.asarray(row, np.int32)
    return law.take((row << 16) | random.integers(0, PLACES, row.size if number is None else number, np.uint16))


def rank(sizes: Array) -> Array:
    """The place of every member within its group, for groups of these sizes one after another."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def scaled(weights: Array, group: Array, totals: Array) -> Array:
    """Weights that add up to the total of each group."""
    return weights * (totals / np.bincount(group, weights, len(totals)))[group]


def apportion(weights: Array, total: int) -> Array:
    """Whole numbers in proportion to the weights that add up to the total."""
    ends = np.rint(np.cumsum(weights) / weights.sum() * total).astype(np.int64)
    return np.diff(ends, prepend=0)


def plan_tracts(persons: int, random: np.random.Generator) -> Tracts:
    """The tracts of a nation of this size, which has more states and counties the larger it is."""
    part = min(1.0, persons / FULL_SIZE)
    states = math.ceil(FULL_STATES * part**0.5)
    further = max(0, round(FULL_COUNTIES * part**0.75) - states)
    counties = 1 + random.multinomial(further, np.full(states, 1 / states))
    state = np.repeat(np.arange(states), counties)
    weight = scaled(random.lognormal(0, 1.48, len(state)), state, random.lognormal(0, 1, states))
    living = apportion(weight, persons)
    tracts = np.maximum(1, np.rint(living / PERSONS_IN_TRACT)).astype(np.int64)
    county = np.repeat(np.arange(len(tracts)), tracts)
    county_code = (state + 1) * 1000 + 2 * rank(counties) + 1
    weight = scaled(random.gamma(6, size=len(county)), county, living)
    return Tracts(county_code[county] * 10**6 + rank(tracts) + 1, apportion(weight, persons))


def lay_out_blocks(tracts: Tracts, random: np.random.Generator) -> Blocks:
    """The blocks of some tracts; three in ten draw nobody, and a few draw many."""
    number = BLOCKS_IN_TRACT * random.lognormal(-0.18, 0.6, len(tracts.code))
    number = np.rint(np.clip(number, 8, 900)).astype(np.int64)
    groups = 1 + random.binomial(4, 0.5, len(number))
    tract, inside = np.repeat(np.arange(len(number)), number), rank(number)
    group = inside * groups[tract] // number[tract]
    first_of_group = -(-group * number[tract] // groups[tract])
    code = tracts.code[tract] * 10**4 + (group + 1) * 1000 + inside - first_of_group
    powers = 10 ** np.arange(AREA_DIGITS[-1])[::-1]
    digits = (code[:, None] // powers % 10 + ord("0")).astype(np.uint8)
    inhabited = (random.random(len(code)) > 0.3) | (inside == 0)
    weight = scaled(random.lognormal(0, 0.97, len(code)) * inhabited, tract, tracts.persons)
    kind = random.integers(0, KINDS, len(number))[tract]
    return Blocks(digits, weight / weight.sum(), kind)


def cut(sizes: Array, total: int) -> Array:
    """As many of the sizes as add up to the total, the last of them made to fit."""
    ends = np.minimum(np.cumsum(sizes, dtype=np.int64), total)
    kept = np.diff(ends, prepend=0)
    return kept[kept > 0]


def settle(blocks: Blocks, persons: int, laws: Laws, random: np.random.Generator) -> Units:
    """Households and facilities that hold exactly so many persons."""
    residents = round(persons * IN_FACILITIES)
    sizes = np.minimum(1 + 9 * random.pareto(1.05, residents // 8 + 300), LARGEST_FACILITY)
    facilities = cut(sizes.astype(np.int64), residents)
    in_households = persons - int(facilities.sum())
    sizes = draw(laws.size, random, number=int(in_households / laws.mean_size * 1.02) + 300)
    households = cut(sizes, in_households)
    in_block = random.multinomial(len(households), blocks.share)
    somewhere = random.choice(len(in_block), len(facilities), p=blocks.share)
    block = np.append(np.repeat(np.arange(len(in_block)), in_block), somewhere).astype(np.int32)
    order = np.argsort(block, kind="stable")
    hhgq = np.append(np.zeros(len(households), np.int8), draw(laws.facility, random, number=len(facilities)))[order]
    tenure = np.where(hhgq > 0, np.int8(3), draw(laws.tenure, random, number=len(hhgq)))
    return Units(block[order], np.append(households, facilities)[order], hhgq, tenure)


def populate(units: Units, kind: Array, laws: Laws, random: np.random.Generator) -> dict[str, Array]:
    """The columns of the persons in these units, and `unit`, the place of each person's unit."""
    unit = np.repeat(np.arange(len(units.size), dtype=np.int32), units.size)
    head = (np.cumsum(units.size) - units.size).astype(np.int32)
    place = np.arange(len(unit), dtype=np.int32) - head[unit]
    hhgq, kind = units.hhgq[unit], kind[unit]
    resident = hhgq > 0
    relate = draw(laws.relate, random, np.minimum(place, 2))
    age = draw(laws.age, random, np.where(resident, hhgq + 3, relate)).astype(np.int16)
    age_of_head = age[head][unit]
    near = np.clip(age_of_head + random.integers(-8, 8, len(unit), np.int8), 16, 115)
    age = np.where(~resident & (relate == SPOUSE), near, age)
    age = np.where(~resident & (relate == CHILD), np.minimum(age, np.maximum(age_of_head - 16, 0)), age)
    differs = resident | (place == 0) | (random.integers(0, 256, len(unit), np.uint8) < 18)
    race = draw(laws.race, random, kind)
    hispanic = (random.integers(0, PLACES, len(unit), np.uint16) < laws.hispanic[kind]).astype(np.int8)
    income = draw(laws.income, random, number=len(unit)) * laws.wealth[kind] * laws.earning[age]
    return {
        "unit": unit,
        "hhgq": hhgq,
        "votingage": (age >= 18).astype(np.int8),
        "hispanic": np.where(differs, hispanic, hispanic[head][unit]),
        "cenrace": np.where(differs, race, race[head][unit]),
        "age": age,
        "income": np.clip(income, LOWEST_INCOME, HIGHEST_INCOME).astype(np.int32),
        "relate": np.where(resident, np.int8(RESIDENT), relate),
    }


def write_table(columns: dict[str, pa.Array | Array], path: Path) -> None:
    """Writes a Parquet file; an id is little larger than the one above it, and is written as the difference."""
    table, ids = pa.table(columns), [name for name in columns if name.endswith("_id")]
    encoding = {
        "use_dictionary": [name for name in columns if name not in (*ids, "income")],
        "column_encoding": dict.fromkeys(ids, "DELTA_BINARY_PACKED"),
    }
    pq.write_table(table, path, row_group_size=ROW_GROUP, compression="zstd", store_schema=False, **encoding)


def write_batch(tracts: Tracts, random: np.random.Generator, laws: Laws, persons: Path, households: Path) -> bytes:
    """Draws the people of some tracts and writes them to two files. The lines of their blocks are left to write."""
    blocks = lay_out_blocks(tracts, random)
    units = settle(blocks, int(tracts.persons.sum()), laws, random)
    people = populate(units, blocks.kind[units.block], laws, random)
    unit = people.pop("unit")
    household_id = tracts.before + np.arange(1, len(units.size) + 1)  # no more households than persons: ids are free
    people["income"] = pa.array(people["income"], mask=people["age"] < EARNING_AGE)
    ids = {"person_id": tracts.before + np.arange(1, len(unit) + 1), "household_id": household_id[unit]}
    write_table({**ids, "block": blocks.column(units.block[unit]), **people}, persons)
    columns = {"household_id": household_id, "block": blocks.column(units.block), "tenure": units.tenure}
    write_table({**columns, "hhtype": np.where(units.hhgq > 0, np.int8(2), np.int8(1))}, households)
    return blocks.lines()


def generate(folder: Path, persons: int, *, seed: int = 7) -> Population:
    """Writes a population to a folder, in place of one that is there already."""
    if persons < 1:
        raise ValueError(f"a population of {persons} persons cannot be made; ask for at least 1")
    names = ("persons", "households", "persons.yaml", "households.yaml")
    made = Population(folder, *(folder / name for name in names), rows=persons)
    for parts in (made.persons, made.households):
        parts.mkdir(parents=True, exist_ok=True)
        for part in parts.glob("part-*.parquet"):
            part.unlink()
    made.spec_persons.write_text(PERSONS_SPEC, encoding="utf-8")
    made.spec_households.write_text(HOUSEHOLDS_SPEC, encoding="utf-8")
    tracts, laws = plan_tracts(persons, np.random.Generator(np.random.SFC64([seed, 0]))), Laws()

    def write(number: int, batch: Tracts) -> bytes:
        random, part = np.random.Generator(np.random.SFC64([seed, 1, number])), f"part-{number:05}.parquet"
        return write_batch(batch, random, laws, made.persons / part, made.households / part)

    with (folder / "blocks.csv").open("wb") as areas, ThreadPoolExecutor(THREADS) as pool:
        areas.write(b"state,county,tract,block_group,block\n")
        areas.writelines(pool.map(write, itertools.count(), tracts.batches()))
    return made


def main() -> None:
    """Makes a population and prints how long that took and what it needed."""
    parser = argparse.ArgumentParser(description="Makes a census-like population for the benchmarks.")
    parser.add_argument("--persons", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, help="the folder to write to; left out: a temporary one")
    parser.add_argument("--seed", type=int, default=7)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        start = perf_counter()
        population = generate(chosen.out or Path(temporary), chosen.persons, seed=chosen.seed)
        seconds = perf_counter() - start
        sizes = [path.stat().st_size for path in population.folder.rglob("*.*")]
    facts = {
        "benchmark": "population",
        "persons": population.rows,
        "seconds": round(seconds, 2),
        "persons_per_second": round(population.rows / seconds),
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "megabytes_written": round(sum(sizes) / 1e6, 1),
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
