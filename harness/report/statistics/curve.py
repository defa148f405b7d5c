"""Does a method get better along its stream? Scores over stream position."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.report.statistics.intervals import RESAMPLES, Interval, batches, bootstrap, wilson
from harness.seeds import derive

# A stream is cut into at most so many blocks, of at least so many tasks each.
MOST_BLOCKS = 10
LEAST_TASKS = 5


@dataclass(frozen=True)
class Block:
    """The mean of the tasks from `first` to `last` (counted from 0, both included), with its own 95 % interval."""

    first: int
    last: int
    n: int
    mean: float
    interval: Interval | None


def blocks(values: Sequence[float], seed: int, *path: str | int, count: int | None = None, share: bool = True) -> list[Block]:
    """`values` by position in consecutive blocks of (nearly) equal size. Neighbouring blocks share no task, so that their
    intervals are independent but for what the memory carries over. Wilson where all values are 0 or 1 (and a `share`: the
    difference of two methods is none), else bootstrap."""
    n = len(values)
    if not n:
        return []
    wanted = count or min(MOST_BLOCKS, max(1, n // LEAST_TASKS))
    edges = [round(n * index / min(wanted, n)) for index in range(min(wanted, n) + 1)]
    found = []
    for first, end in itertools.pairwise(edges):
        held = list(values[first:end])
        mean = math.fsum(held) / len(held)
        binary = share and all(value in (0.0, 1.0) for value in held)
        interval = wilson(round(math.fsum(held)), len(held)) if binary else bootstrap(held, seed, "curve", first, *path)
        found.append(Block(first, end - 1, len(held), mean, interval))
    return found


@dataclass(frozen=True)
class Trend:
    """Least-squares slope over stream position in units of the values a 100 tasks, its bootstrap interval (over tasks), and
    the two-sided p of a permutation test: how often a random order of the same values rises or falls as much."""

    slope: float
    interval: Interval | None
    p: float


def trend(values: Sequence[float], seed: int, *path: str | int) -> Trend | None:
    """The trend of one stream; None for fewer than three values. The benchmark's own order (easy tasks first, say) is part
    of it: only the paired difference of two methods, or several orders, tells learning from difficulty."""
    n = len(values)
    if n < 3:
        return None
    import numpy

    data = numpy.asarray(values, dtype=float)
    places = numpy.arange(n) - (n - 1) / 2
    squares = float(places @ places)
    slope = float(places @ data) / squares
    generator = numpy.random.Generator(numpy.random.PCG64(derive(seed, "report", "trend", *path)))
    drawn, reached = [], 0
    for count in batches(n):
        chosen = generator.integers(0, n, size=(count, n))
        x = places[chosen] - places[chosen].mean(axis=1, keepdims=True)
        spread = (x * x).sum(axis=1)
        # a resample of one task over and over has no slope
        drawn.append((x * data[chosen]).sum(axis=1)[spread > 0] / spread[spread > 0])
        shuffled = generator.permuted(numpy.tile(data, (count, 1)), axis=1) @ places / squares
        reached += int(numpy.sum(numpy.abs(shuffled) >= abs(slope) - 1e-12))
    p = (1 + reached) / (RESAMPLES + 1)
    low, high = (100 * float(bound) for bound in numpy.quantile(numpy.concatenate(drawn), [0.025, 0.975]))
    alike = float(data.max() - data.min()) < 1e-12
    interval = None if alike else Interval(min(low, 100 * slope), max(high, 100 * slope), "bootstrap")
    return Trend(100 * slope, interval, p)
