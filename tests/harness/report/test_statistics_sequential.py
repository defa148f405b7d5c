"""The anytime-valid comparison: its error rate at any time, its power, and what it must equal."""

from __future__ import annotations

import math

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaln

from harness.report import statistics as stats
from harness.report.statistics import e_values

PAIRED = st.lists(st.sampled_from([-1.0, 0.0, 1.0]), max_size=60)
GRADED = st.lists(st.floats(-1, 1, allow_nan=False), max_size=40)


def _stopped(differences: numpy.ndarray, alpha: float = 0.05) -> numpy.ndarray:
    """For each row: was 1 / alpha reached at any time?"""
    return numpy.array([max(e_values(list(row))) >= 1 / alpha for row in differences])


# --- error rate -------------------------------------------------------------------------------------------------------
def test_looking_after_every_task_stops_falsely_in_at_most_alpha_of_the_experiments() -> None:
    generator = numpy.random.default_rng(11)
    for only_one in (0.05, 0.2, 0.5):  # the share of tasks that only the first, and only the second, solves
        draws = generator.choice([1.0, -1.0, 0.0], p=[only_one, only_one, 1 - 2 * only_one], size=(600, 300))
        assert _stopped(draws).mean() <= 0.05
    # McNemar's test looked at after every task would stop far more often: this is what the e-process is for
    draws = generator.choice([1.0, -1.0], size=(300, 200))
    peeking = [
        min(stats.mcnemar([d > 0 for d in row[:n]], [d < 0 for d in row[:n]]).p for n in range(10, 200, 10))
        for row in draws[:100]
    ]
    assert numpy.mean(numpy.array(peeking) <= 0.05) > 0.1


def test_graded_differences_without_a_mean_stop_falsely_in_at_most_alpha_of_the_experiments() -> None:
    generator = numpy.random.default_rng(12)
    skewed = generator.choice([0.9, -0.1], p=[0.1, 0.9], size=(500, 300))  # mean 0, far from symmetric
    assert _stopped(skewed).mean() <= 0.05
    assert _stopped(generator.uniform(-1, 1, size=(500, 300))).mean() <= 0.05


def test_a_difference_that_depends_on_the_past_is_no_false_alarm_as_long_as_its_mean_is_zero() -> None:
    """A memory makes tasks depend on earlier ones: after a win the stakes of the next task are ten times as large."""
    generator = numpy.random.default_rng(13)
    signs = generator.choice([1.0, -1.0], size=(500, 200))
    sizes = numpy.ones_like(signs)
    sizes[:, 1:] = numpy.where(signs[:, :-1] > 0, 1.0, 0.1)
    assert _stopped(signs * sizes).mean() <= 0.05


def test_a_real_difference_stops_the_experiment_early() -> None:
    """The paper's 29.85 points on ALFWorld: 40 more of 134, here with 44 won and 4 lost, decided before a third is played."""
    generator = numpy.random.default_rng(14)
    found = [stats.sequential(list(generator.permutation([1.0] * 44 + [-1.0] * 4 + [0.0] * 86))) for _ in range(40)]
    assert all(one.decided for one in found)
    assert numpy.median([one.decided_at for one in found if one.decided_at]) < 134 / 3


# --- what it equals ---------------------------------------------------------------------------------------------------
@given(PAIRED)
@settings(deadline=None, max_examples=40)
def test_for_successes_it_is_the_beta_mixture_of_the_discordant_pairs(differences: list[float]) -> None:
    won, lost = differences.count(1.0), differences.count(-1.0)
    log = (won + lost) * math.log(2) + betaln(won + 1.5, lost + 1.5) - betaln(1.5, 1.5)
    assert [1.0, *e_values(differences)][-1] == pytest.approx(math.exp(log), rel=1e-6)


@given(PAIRED)
@settings(deadline=None, max_examples=25)
def test_the_evidence_ignores_ties_the_order_and_which_method_is_called_first(differences: list[float]) -> None:
    found = [1.0, *e_values(differences)][-1]
    for other in ([-value for value in differences], [value for value in differences if value], sorted(differences)):
        assert ([1.0, *e_values(other)])[-1] == pytest.approx(found, rel=1e-9)


@given(GRADED)
@settings(deadline=None, max_examples=40)
def test_decision_peak_and_interval_belong_together(differences: list[float]) -> None:
    found = stats.sequential(differences)
    values = e_values(differences)
    assert 0 <= found.e <= found.peak
    assert found.decided == (found.peak >= 20)
    if found.decided_at is not None:
        assert values[found.decided_at - 1] >= 20 and max([0, *values[: found.decided_at - 1]]) < 20
    assert -1 <= found.interval.low <= found.interval.high <= 1
    if found.e < 20:
        assert found.interval.low <= 0 <= found.interval.high


def test_one_more_task_multiplies_the_evidence_by_a_fair_game() -> None:
    """Under no difference the next value is, on average, the present one."""
    past = [1.0, 0.0, 1.0, -1.0, 0.4]
    now = e_values(past)[-1]
    for step in (1.0, 0.3):
        assert (e_values([*past, step])[-1] + e_values([*past, -step])[-1]) / 2 == pytest.approx(now)


def test_the_interval_holds_the_true_difference_at_all_times_at_once() -> None:
    generator = numpy.random.default_rng(15)
    missed = 0
    for _ in range(40):
        draws = generator.choice([1.0, -1.0, 0.0], p=[0.35, 0.1, 0.55], size=150)
        found = [stats.sequential(list(draws[:n])).interval for n in (5, 20, 60, 150)]
        missed += any(not one.low <= 0.25 <= one.high for one in found)
    assert missed / 40 <= 0.05


def test_before_the_first_task_nothing_is_known() -> None:
    found = stats.sequential([])
    assert (found.n, found.e, found.decided) == (0, 1.0, False)
    assert (found.interval.low, found.interval.high) == (-1.0, 1.0)


def test_what_is_no_difference_of_scores_is_refused() -> None:
    with pytest.raises(ValueError, match="not between -1 and 1"):
        stats.sequential([0.2, 1.5])
    with pytest.raises(ValueError, match="not between -1 and 1"):
        stats.sequential([math.nan])
    with pytest.raises(ValueError, match="alpha is 0"):
        stats.sequential([0.2], alpha=0)
