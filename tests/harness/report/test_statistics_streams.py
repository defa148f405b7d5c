"""Curves over stream position, pooled seeds, orders, and the coverage of the intervals."""

from __future__ import annotations

import itertools

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.report import statistics as stats

BINARY = st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=120)


# --- blocks and trend -------------------------------------------------------------------------------------------------
@given(BINARY, st.one_of(st.none(), st.integers(1, 20)))
@settings(deadline=None)
def test_blocks_cover_every_task_once(values: list[float], count: int | None) -> None:
    found = stats.blocks(values, 0, count=count)
    assert [place for block in found for place in range(block.first, block.last + 1)] == list(range(len(values)))
    assert sum(block.mean * block.n for block in found) == pytest.approx(sum(values))
    assert max(block.n for block in found) - min(block.n for block in found) <= 1
    assert all(block.interval and block.interval.low <= block.mean <= block.interval.high for block in found)
    if count is None:
        assert len(found) <= 10 and (len(found) == 1 or min(block.n for block in found) >= 4)


def test_blocks_of_graded_scores_have_a_bootstrap_interval() -> None:
    found = stats.blocks([0.1, 0.5, 0.9, 0.4, 0.2], 0)
    assert [(block.n, block.interval.method if block.interval else None) for block in found] == [(5, "bootstrap")]
    assert stats.blocks([], 0) == []


def test_the_trend_is_the_least_squares_slope() -> None:
    values = [float(value) for value in numpy.random.default_rng(2).normal(0, 1, 30) + numpy.arange(30) * 0.1]
    found = stats.trend(values, 0)
    assert found is not None and found.interval is not None
    assert found.slope == pytest.approx(100 * float(numpy.polyfit(numpy.arange(30), values, 1)[0]))
    assert found.interval.low < found.slope < found.interval.high
    assert found.p < 0.01


def test_the_trend_of_a_few_values_is_tested_against_all_their_orders() -> None:
    values = [0.0, 0.0, 1.0, 0.0, 1.0, 1.0]
    x = numpy.arange(6) - 2.5
    observed = abs(x @ numpy.array(values))
    orders = [abs(x @ numpy.array(order)) >= observed - 1e-12 for order in itertools.permutations(values)]
    found = stats.trend(values, 0)
    assert found is not None
    assert found.p == pytest.approx(float(numpy.mean(orders)), abs=0.015)
    assert stats.trend([1.0, 0.0], 0) is None


def test_a_flat_stream_has_no_trend() -> None:
    found = stats.trend([1.0] * 10, 0)
    assert found is not None
    assert (found.slope, found.interval, found.p) == (0.0, None, 1.0)


# --- coverage ---------------------------------------------------------------------------------------------------------
def test_wilson_covers_the_truth_as_often_as_it_says() -> None:
    """Exact: over all counts of 60 tasks, averaged over 40 true rates (Brown, Cai and DasGupta 2001: close to nominal)."""
    from scipy.stats import binom

    held = [stats.wilson(k, 60) for k in range(61)]
    rates = numpy.linspace(0.05, 0.95, 40)
    covered = [sum(binom.pmf(k, 60, p) for k in range(61) if held[k].low <= p <= held[k].high) for p in rates]
    assert 0.945 <= float(numpy.mean(covered)) <= 0.96
    assert min(covered) > 0.91


def test_the_bootstrap_covers_the_mean_of_graded_scores_nearly_as_often_as_it_says() -> None:
    generator = numpy.random.default_rng(4)
    hits = 0
    for index in range(250):
        found = stats.bootstrap([float(value) for value in generator.beta(2, 3, size=50)], 0, index)
        assert found is not None
        hits += found.low <= 0.4 <= found.high
    assert 0.91 <= hits / 250 <= 0.985


def test_the_bootstrap_of_three_values_is_that_of_all_27_resamples() -> None:
    values = [0.1, 0.4, 0.9]
    means = [sum(drawn) / 3 for drawn in itertools.product(values, repeat=3)]
    found = stats.bootstrap(values, 0)
    assert found is not None
    # the 0.025 and 0.975 quantiles of 27 equally likely means lie on their extremes, which have a chance of 1/27 each
    assert (found.low, found.high) == (pytest.approx(min(means)), pytest.approx(max(means)))


# --- pooled seeds -----------------------------------------------------------------------------------------------------
def test_pooled_streams_have_a_wider_interval_than_as_many_independent_tasks() -> None:
    """Ten streams with the same results say nothing new."""
    scores = [1.0] * 20 + [0.0] * 20
    one, ten = stats.pooled([scores], 0), stats.pooled([scores] * 10, 0)
    assert (ten.mean, ten.spread, one.spread) == (0.5, 0.0, None)
    assert one.interval is not None and ten.interval is not None
    assert ten.interval.high - ten.interval.low == pytest.approx(one.interval.high - one.interval.low, rel=0.1)


def test_pooled_streams_that_differ_as_wholes_have_an_interval_that_says_so() -> None:
    found = stats.pooled([[1.0] * 200, [0.0] * 200, [1.0] * 200, [0.0] * 200], 0)
    assert found.interval is not None and found.spread == pytest.approx(0.5773, abs=1e-3)
    assert (found.interval.low, found.interval.high) == (0.0, 1.0)
    assert found.interval.method == "pigeonhole bootstrap"


def test_pooling_covers_the_mean_when_tasks_and_streams_both_vary() -> None:
    generator = numpy.random.default_rng(6)
    hits = 0
    for index in range(40):
        tasks, streams = generator.normal(0, 0.2, 40), generator.normal(0, 0.05, 5)
        scores = 0.5 + tasks[None, :] + streams[:, None] + generator.normal(0, 0.1, (5, 40))
        found = stats.pooled(scores.tolist(), 0, index)
        assert found.interval is not None
        hits += found.interval.low <= 0.5 <= found.interval.high
    assert hits / 40 >= 0.88


def test_pooled_refuses_what_is_no_matrix() -> None:
    with pytest.raises(ValueError):
        stats.pooled([[1.0], [1.0, 0.0]], 0)
    with pytest.raises(ValueError, match="a row a stream"):
        stats.pooled([], 0)


# --- orders -----------------------------------------------------------------------------------------------------------
def test_cochrans_q_of_two_streams_is_mcnemars_test() -> None:
    first, second = [True] * 9 + [False] * 2 + [True] * 5, [False] * 9 + [True] * 2 + [True] * 5
    p = stats.mcnemar(first, second).p
    assert stats.cochran_q([list(map(float, first)), list(map(float, second))], 0) == pytest.approx(p, abs=0.01)


def test_cochrans_q_finds_a_stream_that_is_worse_and_only_that() -> None:
    good, bad = [1.0] * 24 + [0.0] * 6, [1.0] * 12 + [0.0] * 18
    assert stats.cochran_q([good, good, bad], 0) < 0.001
    assert stats.cochran_q([good, good, good], 0) == 1.0
    assert stats.cochran_q([good], 0) == 1.0


def test_learning_is_found_within_tasks_whatever_their_difficulty() -> None:
    generator = numpy.random.default_rng(7)
    n, streams = 60, 4
    difficulty = generator.normal(0, 1, n)
    places = [list(map(int, generator.permutation(n))) for _ in range(streams)]
    scores = [
        [float(difficulty[task] + 0.02 * place[task] + noise) for task, noise in enumerate(generator.normal(0, 0.1, n))]
        for place in places
    ]
    found = stats.learning(scores, places, 0)
    assert found is not None and found.interval is not None
    assert found.slope == pytest.approx(2.0, abs=0.15)
    assert found.interval.low < 2.0 < found.interval.high
    assert found.p == pytest.approx(1 / 10_000)


def test_without_learning_none_is_found_and_one_order_cannot_tell() -> None:
    generator = numpy.random.default_rng(8)
    places = [list(map(int, generator.permutation(50))) for _ in range(3)]
    scores = [[float(value) for value in generator.integers(0, 2, 50)] for _ in range(3)]
    found = stats.learning(scores, places, 0)
    assert found is not None and found.p > 0.05
    assert stats.learning(scores, [places[0]] * 3, 0) is None


def test_resamples_that_are_all_alike_give_a_slope_no_interval() -> None:
    """Both tasks gain the same: a width of nothing beside a p of a half would be a false certainty."""
    found = stats.learning([[1, 0], [0, 1]], [[0, 1], [1, 0]], 0)
    assert found is not None and (found.slope, found.interval) == (-100.0, None) and found.p == pytest.approx(0.5, abs=0.05)
