"""Numbers as the papers display them: exact arithmetic, rounded half away from zero (SEPM-R39)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction


def half_up(exact: Fraction, decimals: int) -> str:
    """`exact` with `decimals` digits after the point, a tie away from zero."""
    digits = math.floor(abs(exact) * 10**decimals + Fraction(1, 2))
    return f"{Decimal(digits if exact >= 0 else -digits).scaleb(-decimals):.{decimals}f}"


def exact_mean(values: Sequence[float]) -> Fraction:
    """The mean of `values` taken as the decimals that they print as, so that 0.1 is a tenth."""
    return sum((Fraction(repr(value)) for value in values), Fraction(0)) / len(values)


def displayed_mean(values: Sequence[float], scale: float, decimals: int) -> str:
    """The mean of `values` times `scale` as displayed."""
    return half_up(exact_mean(values) * Fraction(repr(scale)), decimals)
