"""Exact samplers against an independent computation, on forced deep paths, and by chi-square with power."""

import math
from collections.abc import Iterator
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mechanisms.noise import bernoulli
from mechanisms.noise.envelope import NARROW, TAIL, WEDGE, Sampler
from mechanisms.noise.exponentials import exp_neg
from mechanisms.noise.integers import LARGEST, add_saturating, as_integers, saturated
from mechanisms.noise.inversion import UNDECIDED, Inversion
from mechanisms.noise.laws import GaussianLaw, LaplaceLaw, Law
from mechanisms.noise.sampling import draw
from mechanisms.noise.scales import draw_each
from mechanisms.noise.seeded import SeededBits
from mechanisms.randomness import Bits
from tests.mechanisms.enumeration import Tape

IMPLAUSIBLE = 1e-6
SCALES = [Fraction(text) for text in ("1/20", "7/10", "1", "22/7", "5", "50", "127", "128", "1000", "100000", "1e9")]
LAWS = [law for scale in SCALES for law in (LaplaceLaw(scale), GaussianLaw(scale**2))]
BALL_BITS = 3000


def ball(value: Fraction) -> flint.arb:
    """A rational number as a ball."""
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def weight(law: Law, x: int) -> flint.arb:
    """exp(-h) by flint, written down anew."""
    exponent = Fraction(x * x) / (2 * law.variance) if isinstance(law, GaussianLaw) else Fraction(x) / law.scale
    return (-ball(exponent)).exp()


def true_edges(sampler: Sampler, law: Law) -> Iterator[int]:
    """The cumulative weights times 2^64, rounded down, by flint's balls."""
    boxes, box = sampler._boxes, sampler._box
    heights = [weight(law, j * box) for j in range(boxes + 1)]
    if box == 1:
        weights = [*heights[:0:-1], *heights[:-1]]
    else:
        weights = [box * height for height in (*heights[:0:-1], *heights[1:])]
        weights.append(2 * box * (1 - heights[-1]))
    variance_or_scale = law.variance if isinstance(law, GaussianLaw) else law.scale
    slope = Fraction(boxes * box if isinstance(law, GaussianLaw) else 1) / variance_or_scale
    tails = 2 * heights[-1] / (1 - (-ball(slope)).exp())
    total = sum(weights, flint.arb(0)) + tails
    running = flint.arb(0)
    for part in weights:
        running += part
        edge = (running / total * flint.arb(2) ** 64).floor().unique_fmpz()
        assert edge is not None
        yield min(int(edge), 2**64 - 1)


@pytest.fixture(autouse=True)
def precise() -> Iterator[None]:
    before, flint.ctx.prec = flint.ctx.prec, BALL_BITS
    yield
    flint.ctx.prec = before


@pytest.mark.parametrize("law", LAWS)
def test_every_edge_of_the_table_is_the_true_edge_rounded_down(law: Law) -> None:
    sampler = Sampler(law)
    assert [int(edge) for edge in sampler._top._edges] == list(true_edges(sampler, law))


@pytest.mark.parametrize("law", [law for law in LAWS if Sampler(law)._box > 1])
def test_every_step_of_the_wedges_is_the_true_step_rounded_down(law: Law) -> None:
    sampler = Sampler(law)
    heights = [weight(law, j * sampler._box) for j in range(1, sampler._boxes + 1)]
    last = 1 - heights[-1]
    edges = [((1 - height) / last * flint.arb(2) ** 64).floor().unique_fmpz() for height in heights[:-1]]
    assert [int(edge) for edge in sampler._steps._edges] == [int(edge) for edge in edges]


@pytest.mark.parametrize("law", LAWS)
def test_all_65536_cells_of_the_guide_agree_with_the_edges(law: Law) -> None:
    table = Sampler(law)._top
    edges = [int(edge) for edge in table._edges]
    firsts = np.searchsorted(table._edges, np.arange(65536, dtype=np.uint64) << np.uint64(48), "right")
    decided = np.ones(65536, bool)
    decided[[edge >> 48 for edge in edges]] = False
    assert (table.guide[~decided] == UNDECIDED).all()
    assert (table.guide[decided] == table.marks[firsts[decided]]).all()


@settings(deadline=None)
@given(st.fractions(min_value=0, max_value=400, max_denominator=10**6), st.integers(8, 400))
def test_exponentials_are_enclosed_within_two_units(exponent: Fraction, precision: int) -> None:
    flint.ctx.prec = 1200
    low, high = exp_neg(exponent, precision)
    true = (-ball(exponent)).exp() * flint.arb(2) ** precision
    assert flint.arb(low) <= true <= flint.arb(high)
    assert high - low <= 2


@settings(deadline=None)
@given(st.lists(st.integers(0, 40 << 32), min_size=1, max_size=50))
def test_fixed_point_exponentials_are_never_above_and_less_than_their_error_below(exponents: list[int]) -> None:
    found = bernoulli.exp_below(np.array(exponents, np.int64))
    for exponent, below in zip(exponents, found, strict=True):
        true = (-ball(Fraction(exponent, 2**32))).exp() * 2**31
        assert flint.arb(int(below)) <= true < flint.arb(int(below) + bernoulli.ERROR)


@pytest.mark.parametrize("law", [law for law in LAWS if Sampler(law)._box > 1])
def test_wedge_exponents_are_never_too_large_and_within_their_slack(law: Law) -> None:
    from mechanisms.noise.envelope import SLACK

    sampler = Sampler(law)
    chance = np.random.default_rng(7)
    steps = chance.integers(0, sampler._boxes, 400)
    distances = chance.integers(0, sampler._box + 1, 400)
    found = sampler._exponents(steps, distances)
    for step, distance, exponent in zip(steps.tolist(), distances.tolist(), found.tolist(), strict=True):
        start = step * sampler._box
        true = (law.exponent(start + distance) - law.exponent(start)) * 2**32
        assert exponent <= true <= exponent + SLACK


def on_edge(table: Inversion, edge: int, *more: int) -> int:
    """The mark of a draw whose first 64 bits are those of an edge, followed by more words."""
    lead, rest = edge >> 48, edge & (2**48 - 1)
    script = ((lead, 16), (rest << 16, 64), *((word, 64) for word in more))
    return int(table.draw(1, Tape(script))[0])


@pytest.mark.parametrize("law", [LaplaceLaw(Fraction(5)), GaussianLaw(Fraction(25)), GaussianLaw(Fraction(10**6))])
def test_draws_on_an_edge_are_settled_by_as_many_bits_as_it_takes(law: Law) -> None:
    table = Sampler(law)._top
    bounds, _ = table._edge_bounds(640, 256)
    edges = [int(edge) for edge in table._edges]
    for i in range(0, len(edges), max(1, len(edges) // 20)):
        true = bounds[i]
        words = [(true >> shift) & (2**64 - 1) for shift in (128, 64, 0)]
        if not 0 < words[0] < 2**64 - 1 or not 0 < words[1] < 2**64 - 1:
            continue
        assert on_edge(table, edges[i], 0) == table.marks[i]
        assert on_edge(table, edges[i], 2**64 - 1) == table.marks[i + 1]
        assert on_edge(table, edges[i], words[0], words[1] - 1) == table.marks[i]
        assert on_edge(table, edges[i], words[0], words[1] + 1) == table.marks[i + 1]


@pytest.mark.parametrize(
    "law", [LaplaceLaw(Fraction(1000)), GaussianLaw(Fraction(10**6)), LaplaceLaw(Fraction(10**15))]
)
def test_points_of_a_wedge_on_the_curve_are_settled_exactly(law: Law) -> None:
    sampler = Sampler(law)
    box = sampler._box
    for step in range(0, sampler._boxes, max(1, sampler._boxes // 7)):
        for distance in {1, box // 3 + 1, box - 1}:
            start = step * box
            curve = (-ball(law.exponent(start + distance) - law.exponent(start))).exp()
            floor = (-ball(law.exponent(start + box) - law.exponent(start))).exp()
            height = ((curve - floor) / (1 - floor) * flint.arb(2) ** 192).floor().unique_fmpz()
            words = [(int(height) >> shift) & (2**64 - 1) for shift in (128, 64, 0)]
            places = np.array([step]), np.array([distance], object if sampler._box_bits > NARROW else np.int64)
            for change, expected in ((-1, True), (1, False)):
                tape = Tape(((words[0], 64), (words[1], 64), (words[2] + change, 64)), None)
                assert sampler._accept(*places, tape)[0] == expected


def test_the_foot_of_a_wedge_is_never_accepted_and_its_top_always() -> None:
    sampler = Sampler(GaussianLaw(Fraction(10**6)))
    highest, lowest = Tape(((2**64 - 1, 64), (2**63, 64))), Tape(((0, 64),) * 9)
    assert not sampler._accept(np.array([3]), np.array([sampler._box]), lowest)[0]
    assert sampler._accept(np.array([3]), np.array([0]), highest)[0]


def chi_square(drawn: np.ndarray, law: Law, other: Law | None = None) -> float:
    """The p-value of draws under a law, in blocks that each expect at least 25 of them."""
    target = other or law
    reach = law.margin(Fraction(999999, 1000000))
    block = max(1, reach // 60)
    starts = np.arange(-reach, reach + 1, block)
    tails = np.array([target.tail(int(start)) for start in (*starts, int(starts[-1]) + block)])
    shares = np.concatenate([[1 - tails[0]], tails[:-1] - tails[1:], [tails[-1]]])
    counts = np.bincount(np.clip((drawn - starts[0]) // block + 1, 0, len(starts) + 1), minlength=len(starts) + 2)
    expected = shares * len(drawn)
    common = expected >= 25
    counts = np.append(counts[common], counts[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    return float(stats.chi2.sf(((counts - expected) ** 2 / np.maximum(expected, 1e-9)).sum(), len(counts) - 1))


def wider(law: Law, by: Fraction) -> Law:
    """The law with another scale."""
    return GaussianLaw(law.variance * by**2) if isinstance(law, GaussianLaw) else LaplaceLaw(law.scale * by)


@pytest.mark.parametrize("scale", ["7/10", "5", "127", "1000"])
@pytest.mark.parametrize("family", [LaplaceLaw, GaussianLaw])
def test_twenty_million_draws_have_the_law_and_a_scale_2_percent_off_is_noticed(
    family: type[LaplaceLaw] | type[GaussianLaw], scale: str
) -> None:
    law = family(Fraction(scale) if family is LaplaceLaw else Fraction(scale) ** 2)
    drawn = draw(law, 20_000_000, SeededBits(f"law {scale}"))
    assert chi_square(drawn, law) > IMPLAUSIBLE
    assert chi_square(drawn, law, wider(law, Fraction(102, 100))) < IMPLAUSIBLE
    assert chi_square(drawn, law, wider(law, Fraction(98, 100))) < IMPLAUSIBLE


@pytest.mark.parametrize("law", [LaplaceLaw(Fraction(40)), GaussianLaw(Fraction(1600))])
def test_the_rare_paths_have_the_law_too_when_they_are_forced(law: Law) -> None:
    drawn = Sampler(law, cells=4, tail_bits=3).draw(200_000, SeededBits("forced"))
    assert chi_square(drawn, law) > IMPLAUSIBLE
    assert chi_square(drawn, law, wider(law, Fraction(11, 10))) < IMPLAUSIBLE


@pytest.mark.parametrize("family", [LaplaceLaw, GaussianLaw])
def test_each_cell_of_a_vector_of_scales_has_its_own_law(family: type[LaplaceLaw] | type[GaussianLaw]) -> None:
    cells = np.arange(400_000)
    above = np.where(cells % 2, 7_300_001, 9_100_003) + 10**7 * (cells % 200 // 2)
    drawn = draw_each(family, above, np.full(len(cells), 10**6), SeededBits("vector"))
    for odd, up in ((1, 7_300_001), (0, 9_100_003)):
        mine = drawn[(cells % 200 == odd)]
        law = family(Fraction(up, 10**6))
        assert chi_square(mine, law) > IMPLAUSIBLE
        assert chi_square(np.tile(mine, 50), law, wider(law, Fraction(12, 10))) < IMPLAUSIBLE


def test_few_scales_and_scales_off_the_ladder_are_drawn_one_by_one() -> None:
    above = np.array([1, 1, 10**18, 1, 3] * 40)
    below = np.array([10**18, 3, 1, 3, 1] * 40)
    drawn = draw_each(LaplaceLaw, above, below, SeededBits("few"))
    assert (drawn[::5] == 0).all()
    assert np.median(np.abs(drawn[2::5])) > 10**17
    above = np.concatenate([above, np.arange(1, 200)])
    below = np.concatenate([below, np.ones(199, np.int64)])
    many = draw_each(GaussianLaw, above, below, SeededBits("many"))
    assert (many[:200:5] == 0).all()


@pytest.mark.parametrize(("above", "below"), [([0], [1]), ([1], [0]), ([-1], [1]), ([1, 2], [1]), ([[1]], [[1]])])
def test_a_vector_of_scales_is_positive_and_has_one_denominator_for_each(above: list[int], below: list[int]) -> None:
    with pytest.raises(ValueError, match=r"positive|two rows"):
        draw_each(LaplaceLaw, np.array(above), np.array(below), SeededBits(1))


def test_a_vector_of_float_scales_is_refused() -> None:
    with pytest.raises(TypeError, match="no float"):
        draw_each(LaplaceLaw, np.array([1.5]), np.array([1]), SeededBits(1))


def test_draws_of_enormous_scales_are_held_at_the_limits_of_64_bits() -> None:
    drawn = draw(GaussianLaw(Fraction(10**44)), 2000, SeededBits("huge"))
    assert drawn.dtype == np.int64
    assert abs(drawn).max() == LARGEST
    assert stats.binomtest(int((drawn > 0).sum()), 2000).pvalue > IMPLAUSIBLE
    exact = draw(LaplaceLaw(Fraction(2**52)), 60_000, SeededBits("wide objects"))
    assert stats.kstest(exact / 2**52, "laplace").pvalue > IMPLAUSIBLE
    assert stats.kstest(exact / 2**52 * 1.1, "laplace").pvalue < IMPLAUSIBLE


@settings(deadline=None)
@given(st.integers(-LARGEST - 1, LARGEST), st.integers(-LARGEST, LARGEST))
def test_sums_saturate_where_they_would_wrap(first: int, second: int) -> None:
    total = add_saturating(np.array([first], np.int64), np.array([second], np.int64))[0]
    assert int(total) == max(-LARGEST, min(LARGEST, first + second))


def test_integers_of_any_size_are_held_at_the_limits() -> None:
    assert list(saturated(np.array([2**70, -(2**70), 5], object))) == [LARGEST, -LARGEST, 5]


@pytest.mark.parametrize(
    "values", [np.array([1.0]), np.array([np.nan]), np.array([np.inf]), np.array([True]), np.array([2**63], np.uint64),
               np.array([1], object), [1], 3, np.ma.array([1]), np.array(["7"])]
)  # fmt: skip
def test_only_arrays_of_integers_are_accepted_and_no_value_is_quoted(values: object) -> None:
    with pytest.raises(TypeError, match="expected an array of integers") as refusal:
        as_integers(values)  # type: ignore[arg-type]
    assert "7" not in str(refusal.value)


@pytest.mark.parametrize("law", [law for law in LAWS if law.reach(300) < 30_000])
def test_probabilities_tails_and_variances_agree_with_flint(law: Law) -> None:
    reach = law.reach(300) + 2
    weights = [weight(law, x) for x in range(reach + 1)]
    total = weights[0] + 2 * sum(weights[1:], flint.arb(0))
    for x in (0, 1, 2, reach // 20, reach // 5):
        assert law.pmf(-x) == pytest.approx(float((weights[x] / total).mid()), rel=1e-14)
        tail = sum(weights[max(x, 1) :], flint.arb(0)) / total
        assert law.tail(max(x, 1)) == pytest.approx(float(tail.mid()), rel=1e-14)
        assert law.tail(1 - max(x, 1)) == pytest.approx(float((1 - tail).mid()), rel=1e-14)
    spread = 2 * sum((x * x * w for x, w in enumerate(weights)), flint.arb(0)) / total
    assert law.variance_of_draw() == pytest.approx(float(spread.mid()), rel=1e-14)


@pytest.mark.parametrize("deviation", [4096, 5000, 20000])
def test_wide_sums_by_integral_agree_with_sums_term_by_term(deviation: int) -> None:
    from mechanisms.noise.gaussian_sums import _integrated, _suffix_sums

    variance = Fraction(deviation**2) + Fraction(1, 3)
    terms = _suffix_sums(variance, 96)
    for x in (1, deviation // 2, deviation, 3 * deviation, 6 * deviation):
        by_integral = _integrated(x, variance, 96)
        assert by_integral.low <= terms[x].high
        assert terms[x].low <= by_integral.high
        assert by_integral.high - by_integral.low <= 2**16


@pytest.mark.parametrize("law", [law for law in LAWS if law.reach(1) < 10**7])
@pytest.mark.parametrize("probability", ["1/1000", "1/20", "1/2", "9/10", "95/100", "999999/1000000"])
def test_a_quantile_is_the_first_value_that_reaches_the_probability(law: Law, probability: str) -> None:
    asked = Fraction(probability)
    quantile = law.quantile(asked)
    assert 1 - law.tail(quantile + 1) >= float(asked) - 1e-12
    assert 1 - law.tail(quantile) <= float(asked) + 1e-12
    margin = law.margin(asked)
    assert margin == law.quantile((1 + asked) / 2)


def test_the_variance_of_a_narrow_gaussian_is_below_its_parameter_and_rounding_a_normal_would_be_far_above() -> None:
    ratios = [GaussianLaw(Fraction(sd) ** 2).variance_of_draw() / float(Fraction(sd) ** 2) for sd in ("7/10", "1", "5")]
    assert ratios == pytest.approx([0.99756, 0.9999998, 1], abs=5e-6)


@pytest.mark.parametrize("law", [LaplaceLaw, GaussianLaw])
def test_scales_are_positive_fractions_and_never_floats(law: type[LaplaceLaw] | type[GaussianLaw]) -> None:
    with pytest.raises(TypeError, match="floats are not exact"):
        law(1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be positive"):
        law(Fraction(0))
    with pytest.raises(TypeError, match="floats are not exact"):
        law(Fraction(1)).quantile(0.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="strictly between"):
        law(Fraction(1)).margin(Fraction(1))


class Counting(Bits):
    """Counts the words of each width."""

    def __init__(self, source: Bits) -> None:
        self._source, self.leads = source, 0

    def read(self, size: int) -> bytes:
        return self._source.read(size)

    def words(self, count: int, width: int) -> np.ndarray:
        self.leads += count if width == 16 else 0
        return super().words(count, width)


@pytest.mark.parametrize("count", [0, 1, 65535, 65536, 200_000])
def test_every_cell_gets_a_draw_of_its_own(count: int) -> None:
    bits = Counting(SeededBits("cells"))
    drawn = draw(GaussianLaw(Fraction(10**6)), count, bits)
    assert len(drawn) == count
    assert bits.leads >= count
    assert len(np.unique(drawn)) >= min(count, 5000) * 0.9


def test_no_mark_of_a_box_can_be_taken_for_a_mark_of_the_slow_path() -> None:
    for law in LAWS:
        assert Sampler(law)._boxes < -max(TAIL, WEDGE)
    assert math.log2(-UNDECIDED) == 15
