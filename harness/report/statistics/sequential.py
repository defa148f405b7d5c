"""An anytime-valid comparison: look after every task, stop as soon as the difference is decided, and still err at most alpha.

The differences d of paired scores lie in [-1, 1]. If neither method is better on average, whatever happened before, the
wealth Π(1 + λ d) of a gambler who stakes the share λ on the first method is a fair game for every λ in [-1, 1], and so is
any average of such gamblers. It therefore reaches 1/alpha at any time with probability at most alpha (Ville 1939): this is an
e-process (Ramdas et al. 2023, Statistical Science 38:576; Waudby-Smith and Ramdas 2024, JRSS B 86:1). For scores of 0 and 1
it is the mixture likelihood ratio of the discordant pairs under a Beta(3/2, 3/2) prior.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.report.statistics.intervals import CONFIDENCE, Interval

# Stakes: Chebyshev nodes of the second kind, the quadrature of the semicircle. Any finite average of stakes is valid; 128 of
# them give the integral to five digits for some thousand tasks. Among Beta(a, a) weights, a = 3/2 stops soonest over the
# differences of 6 to 20 points and the 134 to 812 tasks that the papers have.
_STAKES = 128
# The interval is found on this many differences between -1 and 1: half a point apart.
_GRID = 401


@dataclass(frozen=True)
class Sequential:
    """What is known after `n` paired tasks.

    `e` is the evidence against "no difference" now and `peak` the most there was; it is decided, and one may stop, once the
    peak reaches 1 / alpha: `decided_at` is that task's number (1 is the first), None before. `interval` bounds the mean
    difference at any time (a confidence sequence, in the unit of the scores).
    """

    n: int
    alpha: float
    e: float
    peak: float
    decided_at: int | None
    interval: Interval

    @property
    def decided(self) -> bool:
        return self.decided_at is not None


def sequential(differences: Sequence[float], alpha: float = 1 - CONFIDENCE) -> Sequential:
    """The sequential comparison of first − second in the order in which the tasks were played; each difference in [-1, 1].

    Raises ValueError for a difference out of bounds or an alpha that is no probability.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha}, which is not between 0 and 1.")
    logs = _log_wealth(differences)
    bound = math.log(1 / alpha)
    decided = next((number for number, value in enumerate(logs, start=1) if value >= bound), None)
    peak = max([0.0, *logs])
    return Sequential(
        len(differences), alpha, _exp(logs[-1] if logs else 0.0), _exp(peak), decided, _interval(differences, alpha, bound)
    )


def e_values(differences: Sequence[float]) -> list[float]:
    """The e-process after each of the differences."""
    return [_exp(value) for value in _log_wealth(differences)]


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))  # beyond, a float would overflow


def _stakes() -> tuple[Any, Any]:
    """The stakes and the logarithms of their weights."""
    import numpy

    angles = numpy.arange(1, _STAKES + 1) * (math.pi / (_STAKES + 1))
    weights = numpy.sin(angles) ** 2
    return numpy.cos(angles), numpy.log(weights / weights.sum())


def _checked(differences: Sequence[float]) -> Any:
    import numpy

    data = numpy.asarray(differences, dtype=float)
    if len(data) and not float(numpy.max(numpy.abs(data))) <= 1:
        raise ValueError("A paired difference is not between -1 and 1.")
    return data


def _log_wealth(differences: Sequence[float]) -> list[float]:
    import numpy
    from scipy.special import logsumexp

    data = _checked(differences)
    stakes, weights = _stakes()
    wealth = numpy.cumsum(numpy.log1p(data[:, None] * stakes[None, :]), axis=0)
    return [float(value) for value in logsumexp(wealth + weights, axis=1)]


def _interval(differences: Sequence[float], alpha: float, bound: float) -> Interval:
    """The mean differences that the same game, played for them instead of for 0, does not rule out.

    Against a mean of m the gamble is 1 + λ (d − m), with λ held to what cannot ruin the gambler: 1 / (1 + m) upwards and
    1 / (1 − m) downwards. At m = 0 it is the e-process itself: the interval leaves out 0 exactly while that is at 1 / alpha or
    above. It is the one of now, not the overlap of all so far, which a difference that changes along the stream would empty.
    """
    import numpy

    values, counts = numpy.unique(_checked(differences), return_counts=True)
    stakes, weights = _stakes()
    means = numpy.linspace(-1, 1, _GRID)
    kept = []
    for index in range(1, _GRID - 1):
        mean = float(means[index])
        scaled = numpy.where(stakes > 0, stakes / (1 + mean), stakes / (1 - mean))
        # at the very edge rounding could stake more than all
        gains = numpy.log1p(numpy.maximum((values[:, None] - mean) * scaled, -1 + 1e-15))
        wealth = counts @ gains + weights
        top = float(wealth.max())
        if top + math.log(float(numpy.exp(wealth - top).sum())) < bound:
            kept.append(index)
    if not kept:  # nothing between -1 and 1 is left: every difference was the same extreme
        return Interval(min(differences), max(differences), "anytime", 1 - alpha)
    # one step outwards on either side, so that the grid never makes the interval narrower
    return Interval(float(means[min(kept) - 1]), float(means[max(kept) + 1]), "anytime", 1 - alpha)
