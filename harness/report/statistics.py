"""Intervals and paired tests (ARCHITECTURE.md rule 8). All are two-sided; `confidence` is a fraction, 0.95 throughout.

scipy does the work where it has it and is imported when a function is called, never with the module.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.seeds import derive

CONFIDENCE = 0.95
RESAMPLES = 9999
# Bootstrap values are drawn a block of resamples at a time, so that 10,000 tasks do not need a 10,000 × 9,999 matrix.
_BLOCK = 500
# Values closer than this are the same but for rounding.
_ALIKE = 1e-12


@dataclass(frozen=True)
class Interval:
    """A confidence interval in the unit of its data; `method` is wilson or bootstrap."""

    low: float
    high: float
    method: str
    confidence: float = CONFIDENCE


def wilson(successes: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Wilson score interval (Wilson 1927, without continuity correction) of a proportion, in [0, 1]."""
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"{successes} of {n} is not a count.")
    from scipy.stats import binomtest

    found = binomtest(successes, n).proportion_ci(confidence_level=confidence, method="wilson")
    estimate = successes / n
    # at 0 and n the bound equals the estimate but for rounding
    return Interval(min(float(found.low), estimate), max(float(found.high), estimate), "wilson", confidence)


def bootstrap(values: Sequence[float], seed: int, *path: str | int, confidence: float = CONFIDENCE) -> Interval | None:
    """Percentile bootstrap interval of the mean of `values` (Efron 1979; 9,999 resamples), in their unit.

    The generator is seeded by `derive(seed, "report", *path)`. None for fewer than two values, and where all are alike:
    resampling these gives a width of 0, which would claim a certainty that nobody has.
    """
    if len(values) < 2 or max(values) - min(values) < _ALIKE:
        return None
    import numpy

    data = numpy.asarray(values, dtype=float)
    generator = numpy.random.Generator(numpy.random.PCG64(derive(seed, "report", *path)))
    means = numpy.empty(RESAMPLES)
    for start in range(0, RESAMPLES, _BLOCK):
        count = min(_BLOCK, RESAMPLES - start)
        chosen = generator.integers(0, len(data), size=(count, len(data)))
        means[start : start + count] = data[chosen].mean(axis=1)
    tail = (1 - confidence) / 2
    low, high = numpy.quantile(means, [tail, 1 - tail])
    estimate = math.fsum(values) / len(values)
    return Interval(min(float(low), estimate), max(float(high), estimate), "bootstrap", confidence)


def paired_bootstrap(
    first: Sequence[float], second: Sequence[float], seed: int, *path: str | int, confidence: float = CONFIDENCE
) -> Interval | None:
    """Bootstrap interval of mean(first − second) where both lists hold the same tasks in the same order."""
    differences = [a - b for a, b in zip(first, second, strict=True)]
    return bootstrap(differences, seed, *path, confidence=confidence)


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


def interaction(scores: Mapping[str, float]) -> float:
    """SEPM paper (17), SEPM-R40: I = s_BMA − s_BM − s_BA + s_B, keys "BMA", "BM", "BA", "B"; in the unit of the scores."""
    return scores["BMA"] - scores["BM"] - scores["BA"] + scores["B"]


def unweighted_mean(values: Sequence[float]) -> float:
    """SEPM-R41: the plain mean of displayed benchmark scores, whatever their numbers of tasks."""
    return math.fsum(values) / len(values)
