"""Intervals and tests against values from the literature or worked by hand, and what must hold for all inputs."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.report import statistics as stats

COUNTS = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
SCORES = st.lists(st.floats(0, 1), min_size=2, max_size=40)
PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=60)


# --- Wilson -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),  # Newcombe 1998, Table I, method 3
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 1 - 0.1170, 1.0),  # by symmetry from 0 of 29: z² / (n + z²)
    ],
)
def test_wilson_gives_newcombes_published_intervals(k: int, n: int, low: float, high: float) -> None:
    found = stats.wilson(k, n)
    assert (found.low, found.high) == (pytest.approx(low, abs=6e-5), pytest.approx(high, abs=6e-5))


@given(COUNTS)
@settings(deadline=None)
def test_wilson_contains_the_estimate_lies_in_0_1_and_mirrors(counts: tuple[int, int]) -> None:
    k, n = counts
    found, mirrored = stats.wilson(k, n), stats.wilson(n - k, n)
    assert 0 <= found.low <= k / n <= found.high <= 1
    assert found.low == pytest.approx(1 - mirrored.high, abs=1e-12)


@given(COUNTS)
@settings(deadline=None)
def test_wilson_solves_its_own_equation(counts: tuple[int, int]) -> None:
    """The bounds are where |p̂ − p| is z standard errors of p."""
    k, n = counts
    z = 1.959963984540054
    for bound in (stats.wilson(k, n).low, stats.wilson(k, n).high):
        assert abs(k / n - bound) == pytest.approx(z * math.sqrt(bound * (1 - bound) / n), abs=1e-8)


@pytest.mark.parametrize(("k", "n"), [(0, 0), (-1, 3), (4, 3)])
def test_wilson_refuses_what_is_no_count(k: int, n: int) -> None:
    with pytest.raises(ValueError, match="not a count"):
        stats.wilson(k, n)


# --- bootstrap --------------------------------------------------------------------------------------------------------
@given(SCORES, st.integers(0, 9))
@settings(deadline=None, max_examples=40)
def test_a_bootstrap_interval_contains_the_mean_within_the_data(values: list[float], seed: int) -> None:
    found = stats.bootstrap(values, seed, "x")
    if found is None:
        assert max(values) - min(values) < 1e-9
        return
    mean = math.fsum(values) / len(values)
    assert found.low <= mean <= found.high
    assert min(values) - 1e-12 <= found.low <= found.high <= max(values) + 1e-12


def test_a_bootstrap_is_repeatable_and_depends_on_its_path() -> None:
    values = [math.sqrt(i) / 7 for i in range(40)]
    assert stats.bootstrap(values, 0, "a") == stats.bootstrap(values, 0, "a")
    assert stats.bootstrap(values, 0, "a") != stats.bootstrap(values, 1, "b")


def test_a_bootstrap_of_one_value_or_of_equal_ones_is_not_an_interval() -> None:
    assert stats.bootstrap([0.5], 0) is None
    assert stats.bootstrap([], 0) is None
    assert stats.bootstrap([0.1 + 0.2, 0.3, 0.3], 0) is None


def test_a_bootstrap_of_many_values_agrees_with_the_normal_interval() -> None:
    values = [i % 10 / 10 for i in range(1000)]
    found = stats.bootstrap(values, 0)
    assert found is not None
    half = 1.96 * math.sqrt(0.0825 / 1000)
    assert (found.low, found.high) == (pytest.approx(0.45 - half, abs=0.002), pytest.approx(0.45 + half, abs=0.002))


def test_a_paired_bootstrap_sees_through_differences_between_tasks() -> None:
    hard_and_easy = [0.0, 0.1, 0.5, 0.9]
    found = stats.paired_bootstrap(
        [score + gain for score, gain in zip(hard_and_easy, (0.05, 0.06, 0.05, 0.06), strict=True)], hard_and_easy, 0
    )
    assert found is not None
    assert 0.0499 <= found.low < found.high <= 0.0601


def test_pairs_must_be_pairs() -> None:
    with pytest.raises(ValueError, match="zip"):
        stats.paired_bootstrap([1.0], [1.0, 0.0], 0)
    with pytest.raises(ValueError, match="zip"):
        stats.mcnemar([True], [True, False])


# --- McNemar ----------------------------------------------------------------------------------------------------------
def _discordant(only_first: int, only_second: int) -> tuple[list[bool], list[bool]]:
    return [True] * only_first + [False] * only_second, [False] * only_first + [True] * only_second


@pytest.mark.parametrize(
    ("only_first", "only_second", "p"),
    [
        (10, 0, 2 / 2**10),  # analytic
        (5, 1, 14 / 64),
        (4, 4, 1.0),
        (3, 9, 2 * (1 + 12 + 66 + 220) / 4096),  # 0.146
        (0, 0, 1.0),
    ],
)
def test_mcnemar_is_the_exact_binomial_on_discordant_pairs(only_first: int, only_second: int, p: float) -> None:
    first, second = _discordant(only_first, only_second)
    found = stats.mcnemar([*first, True, False], [*second, True, False])
    assert (found.only_first, found.only_second) == (only_first, only_second)
    assert found.p == pytest.approx(p)


@given(PAIRS)
@settings(deadline=None)
def test_mcnemar_is_symmetric_and_ignores_concordant_pairs(pairs: list[tuple[bool, bool]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    found, swapped = stats.mcnemar(first, second), stats.mcnemar(second, first)
    assert found.p == pytest.approx(swapped.p)
    assert (found.only_first, found.only_second) == (swapped.only_second, swapped.only_first)
    assert 0 < found.p <= 1
    assert stats.mcnemar([*first, True], [*second, True]).p == found.p


# --- Holm -------------------------------------------------------------------------------------------------------------
def test_holm_adjusts_the_textbook_family() -> None:
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert stats.holm([0.6, 0.7]) == [1.0, 1.0]
    assert stats.holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_lies_between_nothing_and_bonferroni(ps: list[float]) -> None:
    found = stats.holm(ps)
    for raw, adjusted in zip(ps, found, strict=True):
        assert raw <= adjusted <= min(1.0, len(ps) * raw) + 1e-12
    ranked = sorted(range(len(ps)), key=ps.__getitem__)
    assert [found[i] for i in ranked] == sorted(found)


# --- import -----------------------------------------------------------------------------------------------------------
def test_importing_the_report_package_loads_nothing_heavy() -> None:
    modules = "show, listing, tables, statistics, reported, definition, render"
    code = (
        f"import sys; from harness.report import {modules};"
        "print([name for name in ('numpy', 'scipy', 'pandas', 'matplotlib', 'omegaconf', 'hydra', 'litellm') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
