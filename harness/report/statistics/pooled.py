"""Several streams of one cell: seeds pooled, and what the order of the tasks does.

A stream is one draw of everything that its memory went through, so that several streams are not so many more tasks: the
bootstrap here draws streams and tasks, each as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.report.statistics.intervals import CONFIDENCE, RESAMPLES, Interval, batches
from harness.seeds import derive

Scores = Sequence[Sequence[float]]  # a row a stream, a column a task


@dataclass(frozen=True)
class Pooled:
    """The mean over `streams` × `tasks`; `spread` is the standard deviation of the streams' means, None for one stream."""

    mean: float
    streams: int
    tasks: int
    interval: Interval | None
    spread: float | None


def pooled(scores: Scores, seed: int, *path: str | int, confidence: float = CONFIDENCE) -> Pooled:
    """Mean of streams over the same tasks with the percentile interval of the pigeonhole bootstrap.

    Rows and columns are drawn independently and each as a whole (Owen 2007, Annals of Applied Statistics 1:386): it respects
    that the scores of one task are alike in all streams, and those of one stream share its memory. Two or three streams say
    little about how streams vary; the interval is then mostly that of the tasks.
    """
    import numpy

    data = _matrix(scores)
    streams, tasks = data.shape
    mean = float(data.mean())
    spread = float(data.mean(axis=1).std(ddof=1)) if streams > 1 else None
    if tasks < 2 or float(data.max() - data.min()) < 1e-12:
        return Pooled(mean, streams, tasks, None, spread)
    generator = numpy.random.Generator(numpy.random.PCG64(derive(seed, "report", "pooled", *path)))
    drawn = numpy.concatenate(
        [
            ((_redrawn(generator, streams, count) @ data) * _redrawn(generator, tasks, count)).sum(axis=1) / (streams * tasks)
            for count in batches(tasks)
        ]
    )
    tail = (1 - confidence) / 2
    low, high = (float(bound) for bound in numpy.quantile(drawn, [tail, 1 - tail]))
    return Pooled(mean, streams, tasks, Interval(min(low, mean), max(high, mean), "pigeonhole bootstrap", confidence), spread)


def _redrawn(generator: Any, size: int, count: int) -> Any:
    """How often each of `size` items is drawn in `count` resamples."""
    return generator.multinomial(size, [1 / size] * size, size=count)


def _matrix(scores: Scores) -> Any:
    import numpy

    data = numpy.asarray(scores, dtype=float)
    if data.ndim != 2 or not data.size:
        raise ValueError("Scores of several streams are a row a stream with the same tasks in each.")
    return data


def cochran_q(scores: Scores, seed: int, *path: str | int) -> float:
    """p of "all streams do equally well on these tasks": Cochran's Q (1950) by permutation within each task.

    With two streams of 0/1 scores it is McNemar's test; graded scores need no other test, since the statistic is the variance
    of the streams' means. Every task's scores are dealt anew to the streams 9,999 times, the observed deal counted in.
    """
    import numpy

    data = _matrix(scores)
    streams, _ = data.shape
    moved = data[:, data.max(axis=0) - data.min(axis=0) > 1e-12]
    if streams < 2 or not moved.size:
        return 1.0
    generator = numpy.random.Generator(numpy.random.PCG64(derive(seed, "report", "cochran", *path)))
    observed = float(moved.sum(axis=1).var())
    reached = 0
    for count in batches(moved.size):
        dealt = generator.permuted(numpy.tile(moved, (count, 1, 1)), axis=1)
        reached += int(numpy.sum(dealt.sum(axis=2).var(axis=1) >= observed * (1 - 1e-9)))
    return (1 + reached) / (RESAMPLES + 1)


@dataclass(frozen=True)
class Learning:
    """Gain a 100 positions within tasks, from streams in different orders: interval by bootstrap over tasks, and the
    two-sided p of a permutation test that deals each task's scores anew to its appearances."""

    slope: float
    interval: Interval | None
    p: float


def learning(scores: Scores, positions: Sequence[Sequence[int]], seed: int, *path: str | int) -> Learning | None:
    """Is the same task done better when it comes later? The slope of score on position with a fixed effect for each task.

    `positions` has the stream position of each score. How hard a task is cancels out, which no single stream can tell from
    learning. None where no task moves (one stream, or the same order in all).
    """
    import numpy

    data, places = _matrix(scores), _matrix(positions)
    values = data - data.mean(axis=0)
    x = places - places.mean(axis=0)
    products, squares = (x * values).sum(axis=0), (x * x).sum(axis=0)
    if float(squares.sum()) == 0:
        return None
    slope = float(products.sum() / squares.sum())
    tasks = data.shape[1]
    generator = numpy.random.Generator(numpy.random.PCG64(derive(seed, "report", "learning", *path)))
    drawn, reached = [], 0
    for count in batches(values.size):
        weights = _redrawn(generator, tasks, count)
        below = weights @ squares
        drawn.append((weights @ products)[below > 0] / below[below > 0])
        dealt = (generator.permuted(numpy.tile(values, (count, 1, 1)), axis=1) * x).sum(axis=(1, 2))
        reached += int(numpy.sum(numpy.abs(dealt) >= abs(float(products.sum())) - 1e-9))
    p = (1 + reached) / (RESAMPLES + 1)
    slopes = numpy.concatenate(drawn)
    if tasks < 2 or float(slopes.max() - slopes.min()) < 1e-12:  # resamples that are all alike tell no width
        return Learning(100 * slope, None, p)
    low, high = (100 * float(bound) for bound in numpy.quantile(slopes, [0.025, 0.975]))
    return Learning(100 * slope, Interval(min(low, 100 * slope), max(high, 100 * slope), "bootstrap"), p)
