"""Paired tests, effect sizes and power: against enumeration, published figures and each other."""

from __future__ import annotations

import itertools
import math

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, ttest_1samp

from harness.report import statistics as stats

DIFFERENCES = st.lists(st.integers(-4, 4).map(lambda value: value / 4), min_size=1, max_size=9)


# --- McNemar ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("only_first", "only_second"), [(b, c) for b in range(6) for c in range(6) if b + c])
def test_mcnemar_is_what_all_assignments_of_the_discordant_pairs_give(only_first: int, only_second: int) -> None:
    m = only_first + only_second
    extreme = abs(2 * only_first - m)
    outcomes = itertools.product((False, True), repeat=m)
    p = sum(abs(2 * sum(outcome) - m) >= extreme for outcome in outcomes) / 2**m
    found = stats.mcnemar([True] * only_first + [False] * only_second, [False] * only_first + [True] * only_second)
    assert found.p == pytest.approx(p, abs=1e-12)


def test_mcnemar_agrees_with_agrestis_approval_survey() -> None:
    """Agresti, Categorical Data Analysis, table 10.1: 150 changed one way, 86 the other; z² = 17.36."""
    found = stats.mcnemar([True] * 150 + [False] * 86, [False] * 150 + [True] * 86)
    assert found.p == pytest.approx(2 * binom.cdf(86, 236, 0.5), rel=1e-12)
    assert found.p == pytest.approx(math.erfc(math.sqrt(17.36 / 2)), rel=0.35)


# --- permutation ------------------------------------------------------------------------------------------------------
@given(DIFFERENCES)
@settings(deadline=None, max_examples=60)
def test_the_permutation_test_is_what_all_sign_flips_give(differences: list[float]) -> None:
    flips = list(itertools.product((1, -1), repeat=len(differences)))
    observed = abs(sum(differences))
    p = sum(
        abs(
            math.sumprod(flip, differences)
            if hasattr(math, "sumprod")
            else sum(a * b for a, b in zip(flip, differences, strict=True))
        )
        >= observed
        for flip in flips
    ) / len(flips)
    found = stats.permutation(differences, 0)
    assert found.exact
    assert found.p == pytest.approx(p, abs=1e-12)


def test_fishers_test_of_darwins_plants() -> None:
    """Fisher, The Design of Experiments, section 21: 1,726 of 32,768 sign patterns reach Darwin's difference of 314."""
    inches = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
    assert stats.permutation([value / 100 for value in inches], 0).p == 1726 / 32768


def test_many_differences_are_sampled_repeatably_and_never_give_zero() -> None:
    differences = [0.3, 0.2, 0.1, 0.4] * 10
    found = stats.permutation(differences, 0)
    assert found == stats.permutation(differences, 0)
    assert (found.exact, found.p) == (False, pytest.approx(2 / 10_000, rel=1e-6))


def test_the_sampled_permutation_test_agrees_with_the_t_test_on_normal_differences() -> None:
    differences = numpy.random.default_rng(3).normal(0.1, 0.4, 60)
    assert stats.permutation(list(differences), 0).p == pytest.approx(ttest_1samp(differences, 0).pvalue, abs=0.01)


def test_no_difference_at_all_has_p_1() -> None:
    assert stats.permutation([0.0, 0.0], 0) == stats.Permutation(1.0, True)


# --- paired proportions -----------------------------------------------------------------------------------------------
@given(st.tuples(*[st.integers(0, 30)] * 4).filter(lambda counts: sum(counts) > 0))
@settings(deadline=None)
def test_the_interval_of_paired_proportions_holds_the_difference_and_mirrors(counts: tuple[int, int, int, int]) -> None:
    both, b, c, neither = counts
    found, mirrored = stats.paired_proportions(both, b, c, neither), stats.paired_proportions(both, c, b, neither)
    assert -1 <= found.low <= (b - c) / sum(counts) + 1e-12
    assert (b - c) / sum(counts) - 1e-12 <= found.high <= 1
    assert found.low == pytest.approx(-mirrored.high, abs=1e-12)
    assert found.low < found.high


def test_the_interval_of_paired_proportions_covers_the_truth_as_often_as_it_says() -> None:
    for both, b, c in ((0.4, 0.2, 0.1), (0.7, 0.15, 0.05), (0.1, 0.3, 0.3)):
        generator = numpy.random.default_rng(1)
        counts = generator.multinomial(40, [both, b, c, 1 - both - b - c], size=400)
        hits = 0
        for row in counts:
            found = stats.paired_proportions(*(int(value) for value in row))
            hits += found.low <= b - c <= found.high
        assert 0.93 <= hits / 400 <= 0.995


# --- effect sizes -----------------------------------------------------------------------------------------------------
def test_the_odds_ratio_of_discordant_pairs_with_its_exact_interval() -> None:
    found = stats.odds_ratio(10, 5)
    assert found is not None
    assert found.value == pytest.approx(2.0)
    # Clopper-Pearson of 10 of 15 is (0.38380, 0.88176)
    assert (found.interval.low, found.interval.high) == (
        pytest.approx(0.38380 / 0.61620, abs=1e-3),
        pytest.approx(0.88176 / 0.11824, abs=5e-3),
    )
    only = stats.odds_ratio(4, 0)
    assert only is not None and only.value == math.inf and only.interval.high == math.inf
    assert stats.odds_ratio(0, 0) is None


def test_cohens_h_of_cohens_own_table() -> None:
    """Cohen 1988, table 6.2.2: phi is 1.571 for 0.50 and 1.772 for 0.60."""
    assert stats.cohens_h(0.6, 0.5) == pytest.approx(1.772 - 1.571, abs=1e-3)
    assert stats.cohens_h(0.2, 0.9) == -stats.cohens_h(0.9, 0.2)
    assert stats.cohens_h(1, 0) == pytest.approx(math.pi)


def test_the_standardised_difference() -> None:
    assert stats.standardised([1.0, 2.0, 3.0]) == pytest.approx(2.0)
    assert stats.standardised([0.5, 0.5]) is None
    assert stats.standardised([0.5]) is None


# --- power ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("n", "b", "c"), [(6, 0.5, 0.2), (9, 0.3, 0.3), (12, 0.6, 0.05), (7, 1.0, 0.0)])
def test_mcnemars_power_is_the_chance_of_every_rejecting_table(n: int, b: float, c: float) -> None:
    total = 0.0
    for i in range(n + 1):
        for j in range(n + 1 - i):
            p = stats.mcnemar([True] * i + [False] * j, [False] * i + [True] * j).p
            if p <= 0.05:
                ways = math.comb(n, i) * math.comb(n - i, j)
                total += ways * b**i * c**j * max(0.0, 1 - b - c) ** (n - i - j)
    assert stats.mcnemar_power(n, b, c) == pytest.approx(total, abs=1e-9)


def test_the_needed_number_of_tasks_is_confirmed_by_simulation() -> None:
    n = stats.tasks_needed(0.25, 0.10)
    assert n is not None
    assert stats.mcnemar_power(n - 1, 0.25, 0.10) < 0.8 <= stats.mcnemar_power(n, 0.25, 0.10)
    draws = numpy.random.default_rng(5).multinomial(n, [0.25, 0.10, 0.65], size=4000)
    p = 2 * binom.cdf(draws[:, :2].min(axis=1), draws[:, :2].sum(axis=1), 0.5)
    assert numpy.mean(p <= 0.05) == pytest.approx(0.8, abs=0.025)


def test_the_needed_number_of_graded_tasks_is_the_published_one() -> None:
    """Cohen 1988: a paired t test needs 34 pairs for d_z = 0.5 and 199 for 0.2 at a power of 0.8 (as G*Power gives)."""
    assert stats.tasks_needed_graded(0.5) == 34
    assert stats.tasks_needed_graded(0.2) == 199
    assert stats.tasks_needed_graded(-0.8) == 15


def test_no_number_of_tasks_finds_no_difference() -> None:
    assert stats.tasks_needed(0.1, 0.1) is None
    assert stats.tasks_needed_graded(0.0) is None
    assert stats.mcnemar_power(50, 0.0, 0.0) == 0.0
    assert stats.tasks_needed(0.1, 0.0999) is None
    with pytest.raises(ValueError, match="not the probabilities"):
        stats.mcnemar_power(5, 0.7, 0.7)


@given(st.integers(1, 10), st.integers(0, 9), st.integers(2, 300))
@settings(deadline=None, max_examples=40)
def test_power_is_a_probability_and_symmetric(b: int, c: int, n: int) -> None:
    power = stats.mcnemar_power(n, b / 20, c / 20)
    assert -1e-12 <= power <= 1 + 1e-12
    assert power == pytest.approx(stats.mcnemar_power(n, c / 20, b / 20), abs=1e-9)
