"""Intervals of one quantity: a proportion, a mean, a paired difference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.seeds import derive

CONFIDENCE = 0.95
RESAMPLES = 9999
# Resamples are drawn a batch at a time, so that 10,000 tasks do not need a 10,000 × 9,999 matrix.
_DRAWN_AT_ONCE = 2_000_000
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
    means = numpy.concatenate(
        [data[generator.integers(0, len(data), size=(count, len(data)))].mean(axis=1) for count in batches(len(data))]
    )
    tail = (1 - confidence) / 2
    low, high = numpy.quantile(means, [tail, 1 - tail])
    estimate = math.fsum(values) / len(values)
    return Interval(min(float(low), estimate), max(float(high), estimate), "bootstrap", confidence)


def batches(size: int, total: int = RESAMPLES) -> list[int]:
    """`total` resamples of `size` values each, in batches that fit into memory."""
    most = max(1, _DRAWN_AT_ONCE // max(1, size))
    return [min(most, total - start) for start in range(0, total, most)]


def paired_bootstrap(
    first: Sequence[float], second: Sequence[float], seed: int, *path: str | int, confidence: float = CONFIDENCE
) -> Interval | None:
    """Bootstrap interval of mean(first − second) where both lists hold the same tasks in the same order."""
    differences = [a - b for a, b in zip(first, second, strict=True)]
    return bootstrap(differences, seed, *path, confidence=confidence)


def paired_proportions(both: int, only_first: int, only_second: int, neither: int, confidence: float = CONFIDENCE) -> Interval:
    """Interval of the difference first − second of two paired proportions, in [-1, 1]: Newcombe's hybrid score interval.

    Newcombe (1998, Statistics in Medicine 17:2635), method 10: Wilson's intervals of both proportions joined with the
    correlation of the pairs, whose numerator is continuity-corrected where it is positive. Unlike the bootstrap it has a
    width where no pair or every pair is discordant.
    """
    n = both + only_first + only_second + neither
    first, second = wilson(both + only_first, n, confidence), wilson(both + only_second, n, confidence)
    p, q = (both + only_first) / n, (both + only_second) / n
    margins = (both + only_first) * (only_second + neither) * (both + only_second) * (only_first + neither)
    excess: float = both * neither - only_first * only_second
    if excess > 0:
        excess = max(excess - n / 2, 0.0)
    phi = excess / math.sqrt(margins) if margins else 0.0
    low = _joined(p - first.low, second.high - q, phi)
    high = _joined(first.high - p, q - second.low, phi)
    return Interval(max(-1.0, p - q - low), min(1.0, p - q + high), "newcombe", confidence)


def _joined(one: float, other: float, correlation: float) -> float:
    return math.sqrt(max(0.0, one * one - 2 * correlation * one * other + other * other))


def interaction(scores: Mapping[str, float]) -> float:
    """SEPM paper (17), SEPM-R40: I = s_BMA − s_BM − s_BA + s_B, keys "BMA", "BM", "BA", "B"; in the unit of the scores."""
    return scores["BMA"] - scores["BM"] - scores["BA"] + scores["B"]


def unweighted_mean(values: Sequence[float]) -> float:
    """SEPM-R41: the plain mean of displayed benchmark scores, whatever their numbers of tasks."""
    return math.fsum(values) / len(values)
