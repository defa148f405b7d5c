"""How many tasks a paired comparison needs."""

from __future__ import annotations

import math
from collections.abc import Callable

ALPHA = 0.05
POWER = 0.8
# Beyond this the answer is "more than anyone will play".
MOST_TASKS = 1_000_000


def mcnemar_power(n: int, only_first: float, only_second: float, alpha: float = ALPHA) -> float:
    """Probability that the exact two-sided McNemar test rejects at `alpha` on `n` tasks.

    `only_first` and `only_second` are the probabilities that a task is solved by one method alone. Exact: the number of
    discordant pairs is binomial, and given it the split is (Duffy 1984, Biometrics 40:1005).
    """
    discordant = only_first + only_second
    if not 0 <= discordant <= 1 or min(only_first, only_second) < 0:
        raise ValueError(f"{only_first} and {only_second} are not the probabilities of two discordant outcomes.")
    if discordant == 0:
        return 0.0
    import numpy
    from scipy.stats import binom

    # numbers of discordant pairs that practically do not occur (1e-12 on either side) are left out
    least, most = int(binom.ppf(1e-12, n, discordant)), int(binom.isf(1e-12, n, discordant))
    counts = numpy.arange(max(0, least), most + 1)
    chances = binom.pmf(counts, n, discordant)
    # the largest c with 2 P(X ≤ c) ≤ alpha for X ~ Bin(m, 1/2): the test rejects at c or fewer, and at m − c or more
    critical = binom.ppf(alpha / 2, counts, 0.5)
    critical = numpy.where(2 * binom.cdf(critical, counts, 0.5) <= alpha * (1 + 1e-12), critical, critical - 1)
    share = only_first / discordant
    rejects = binom.cdf(critical, counts, share) + binom.sf(counts - critical - 1, counts, share)
    return float(numpy.sum(numpy.where(critical >= 0, chances * rejects, 0.0)))


def tasks_needed(only_first: float, only_second: float, alpha: float = ALPHA, power: float = POWER) -> int | None:
    """The number of tasks with which the exact McNemar test finds this difference with probability `power`.

    None where the two probabilities are alike, or more than MOST_TASKS would be needed.
    """
    if only_first == only_second:
        return None
    return _least(lambda n: mcnemar_power(n, only_first, only_second, alpha), power)


def paired_power(n: int, standardised: float, alpha: float = ALPHA) -> float:
    """Power of the two-sided paired t test on `n` tasks for a difference of `standardised` standard deviations (d_z).

    It stands for the permutation test of graded scores, which has the same power but for small n (Hoeffding 1952).
    """
    if n < 2:
        return 0.0
    from scipy.stats import nct, t

    bound = t.isf(alpha / 2, n - 1)
    shift = abs(standardised) * math.sqrt(n)
    # the far tail is at most alpha / 2 and vanishes with the shift; nct gives nan there for large shifts
    far = float(nct.cdf(-bound, n - 1, shift)) if shift < 10 else 0.0
    return float(nct.sf(bound, n - 1, shift)) + far


def tasks_needed_graded(standardised: float, alpha: float = ALPHA, power: float = POWER) -> int | None:
    """The number of tasks with which a difference of `standardised` (d_z) is found with probability `power`; None for 0."""
    if standardised == 0:
        return None
    return _least(lambda n: paired_power(n, standardised, alpha), power)


def _least(achieved: Callable[[int], float], power: float) -> int | None:
    """The least n with that power, by bisection. Power grows with n but for ripples of an exact test, so that the steps
    before the bisection's answer are looked at, too."""
    high = 2
    while achieved(high) < power:
        high *= 2
        if high > MOST_TASKS:
            return None
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if achieved(middle) >= power else (middle, high)
    while high > 2 and achieved(high - 1) >= power:
        high -= 1
    return high
