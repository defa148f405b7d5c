"""Paired tests of two methods on the same tasks, how large the difference is, and Holm's adjustment of a family."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.report.statistics.intervals import CONFIDENCE, RESAMPLES, Interval
from harness.seeds import derive

# So many differences that are not zero are tested by all their sign flips (65,536), more by a sample of them.
EXACT_FLIPS = 16


@dataclass(frozen=True)
class McNemar:
    """Exact McNemar test: tasks that only the first or only the second solved, and the two-sided p."""

    only_first: int
    only_second: int
    p: float


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> McNemar:
    """Exact McNemar test (binomial on the discordant pairs, McNemar 1947) of paired successes. p is 1 without any."""
    pairs = list(zip(first, second, strict=True))
    only_first = sum(a and not b for a, b in pairs)
    only_second = sum(b and not a for a, b in pairs)
    if only_first + only_second == 0:
        return McNemar(0, 0, 1.0)
    from scipy.stats import binomtest

    p = binomtest(only_first, only_first + only_second, 0.5).pvalue
    return McNemar(only_first, only_second, min(1.0, float(p)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment (Holm 1979) of a family of p values, in the order they came."""
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted


@dataclass(frozen=True)
class Permutation:
    """Sign-flip test of a mean paired difference: the two-sided p, and whether all flips were tried (else a sample)."""

    p: float
    exact: bool


def permutation(differences: Sequence[float], seed: int, *path: str | int) -> Permutation:
    """Paired permutation test (Fisher 1935): under the null hypothesis every difference is as likely to have the other sign.

    Zero differences cannot change the mean and are left out. Beyond EXACT_FLIPS the flips are drawn by
    `derive(seed, "report", *path)` and the observed one is counted among them, so that p is never 0.
    """
    import numpy

    moved = numpy.asarray([value for value in differences if value != 0.0], dtype=float)
    if len(moved) < 2:
        return Permutation(1.0, True)
    from scipy.stats import permutation_test

    exact = len(moved) <= EXACT_FLIPS
    found = permutation_test(
        (moved,),
        numpy.mean,
        permutation_type="samples",
        n_resamples=2**EXACT_FLIPS if exact else RESAMPLES,
        vectorized=True,
        batch=500,
        random_state=numpy.random.Generator(numpy.random.PCG64(derive(seed, "report", *path))),
    )
    return Permutation(min(1.0, float(found.pvalue)), exact)


# --- how large --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class OddsRatio:
    """Tasks that only the first solved for each that only the second solved. Infinite where there is none of the latter."""

    value: float
    interval: Interval


def odds_ratio(only_first: int, only_second: int, confidence: float = CONFIDENCE) -> OddsRatio | None:
    """Conditional odds ratio of the discordant pairs with the exact interval of Clopper and Pearson (1934).

    None without discordant pairs. The interval is that of the share p of the first among them, as p / (1 − p).
    """
    discordant = only_first + only_second
    if not discordant:
        return None
    from scipy.stats import binomtest

    share = binomtest(only_first, discordant).proportion_ci(confidence_level=confidence, method="exact")
    low, high = (_odds(float(bound)) for bound in (share.low, share.high))
    return OddsRatio(_odds(only_first / discordant), Interval(low, high, "clopper-pearson", confidence))


def _odds(share: float) -> float:
    return math.inf if share >= 1 else share / (1 - share)


def cohens_h(first: float, second: float) -> float:
    """Cohen's h (1988, chapter 6) of two proportions, in [-π, π]; 0.2 is called small, 0.5 medium, 0.8 large."""
    return 2 * math.asin(math.sqrt(first)) - 2 * math.asin(math.sqrt(second))


def standardised(differences: Sequence[float]) -> float | None:
    """Cohen's d_z: the mean paired difference in standard deviations of the differences; None where they do not differ."""
    if len(differences) < 2:
        return None
    deviation = spread(differences)
    return None if deviation < 1e-12 else math.fsum(differences) / len(differences) / deviation


def spread(differences: Sequence[float]) -> float:
    """Standard deviation of at least two differences (n − 1)."""
    import numpy

    return float(numpy.std(numpy.asarray(differences, dtype=float), ddof=1))
